"""All coalitions of a few players, listed size by size, and sums over those that contain them."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.game import FloatVector, IntMatrix, IntVector
from coalitions.joint.index import Index

MOST_COALITIONS = 1_000_000
"""Most coalitions that have an index at a time."""

Parts = dict[int, FloatVector]
"""A number for each coalition, size by size, in the order of `listed`."""


def listed(n_players: int, size: int) -> IntMatrix:
    """Return all coalitions of a size in lexicographic order, one a row [C(n, size), size]."""
    flat = [player for coalition in combinations(range(n_players), size) for player in coalition]
    return np.array(flat, np.int64).reshape(comb(n_players, size), size)


def check_number(index: Index, n_players: int) -> None:
    """Refuse an order at which there are too many coalitions."""
    count = sum(comb(n_players, size) for size in index.sizes())
    if count > MOST_COALITIONS:
        raise InvalidInputError(
            f"{n_players} players have {count} coalitions of up to {index.order}, more than"
            f" {MOST_COALITIONS}; ask for a lower order"
        )


def rank_of(coalitions: IntMatrix, n_players: int) -> IntVector:
    r"""Return the places of coalitions, each in ascending order, in the list of their size.

    Before :math:`c_1 < \dots < c_s` come all that differ from it first by a smaller player:
    the rank is :math:`\binom ns - 1 - \sum_i \binom{n - 1 - c_i}{s - i + 1}`.
    """
    size = coalitions.shape[1]
    rank = np.full(len(coalitions), comb(n_players, size) - 1, np.int64)
    for place in range(size):
        ways = np.array([comb(n_players - 1 - c, size - place) for c in range(n_players)])
        rank -= ways[coalitions[:, place]]
    return rank


def gathered(index: Index, plain: Parts, n_players: int) -> Parts:
    """Return an index from its integrals: each coalition's own, and its share of larger ones'."""
    total = {size: index.share(0) * plain[size] for size in index.sizes()}
    for size in index.sizes():
        for more in range(1, index.order - size + 1):
            share = index.share(more)
            if share == 0.0:
                continue
            larger = listed(n_players, size + more)
            for chosen in combinations(range(size + more), size):
                places = rank_of(larger[:, list(chosen)], n_players)
                sums = np.bincount(places, plain[size + more], minlength=len(total[size]))
                total[size] = total[size] + share * sums
    return total


def joined(parts: Parts) -> FloatVector:
    """Return the numbers of all sizes one after the other."""
    return np.concatenate([parts[size] for size in sorted(parts)])
