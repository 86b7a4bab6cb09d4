"""Small games with everything that breaks formulas in them, and sums straight from definitions."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from coalitions import CoalitionStructure, TableGame, interactions

VALUES = {
    "ties": st.integers(0, 1).map(float),
    "integers": st.integers(-9, 9).map(float),
    "floats": st.floats(-10, 10, allow_nan=False, allow_subnormal=False, width=32),
    "zero": st.just(0.0),
}


@st.composite
def tables(draw, min_players=1, max_players=5):
    """Draw a table of 2^n values; the empty coalition is worth whatever comes."""
    n = draw(st.integers(min_players, max_players))
    kind = draw(st.sampled_from(sorted(VALUES)))
    return np.array(draw(st.lists(VALUES[kind], min_size=1 << n, max_size=1 << n)))


@st.composite
def structures(draw, n_players):
    labels = draw(st.lists(st.integers(0, n_players), min_size=n_players, max_size=n_players))
    return CoalitionStructure.from_labels(labels)


@st.composite
def links(draw, n_players):
    pairs = list(itertools.combinations(range(n_players), 2))
    return draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []


class Asked:
    """A game without its table: it has to be asked, and says how often it was."""

    def __init__(self, table):
        self._game = TableGame(table)
        self.n_players = self._game.n_players
        self.rows = 0

    def __call__(self, coalitions):
        self.rows += len(coalitions)
        return self._game(coalitions)


def mask(coalition):
    return sum(1 << player for player in coalition)


def subsets(players):
    players = list(players)
    for size in range(len(players) + 1):
        yield from itertools.combinations(players, size)


def relabelled(table, order):
    """Return the table of the game in which new player k is old player ``order[k]``."""
    n = len(order)
    return np.array(
        [table[mask(order[k] for k in range(n) if code >> k & 1)] for code in range(1 << n)]
    )


def pairs_of(game, index="SII", **options):
    """Return the interactions of all pairs."""
    return interactions(game, index, coalitions="pairs", **options)


def index_of_all(game, index="SII", order=None):
    """Return an interaction index of all coalitions by their bits [2^n]; 0 where there is none."""
    found = interactions(game, index, game.n_players if order is None else order)
    vector = np.zeros(1 << game.n_players)
    for coalition, value in found.mapping.items():
        vector[mask(coalition)] = value
    return vector
