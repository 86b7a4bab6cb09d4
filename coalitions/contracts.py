"""What small plug-ins of games promise: indices, synergies, data models, notions of stability.

`coalitions.values.estimator_checks` has what estimators promise. `coalitions check-plugin` and the
contract tests go through these checks.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from coalitions.data_models import DATA_MODELS
from coalitions.game import players_of
from coalitions.games.table import TableGame
from coalitions.graph import SynergyGraph
from coalitions.registry import Checks, Registry
from coalitions.structure import CoalitionStructure
from coalitions.structures.partitions import partition_labels
from coalitions.structures.stability import NOTIONS
from coalitions.synergy import SYNERGIES, estimate_synergy
from coalitions.values.estimator_checks import Recorder, mixed_game
from coalitions.values.interaction_indices import INDICES
from coalitions.values.interactions import interactions

BUDGET = 200
"""Evaluations that an estimator of synergies gets for a game of eight players."""


def described(registry: Registry[Any], name: str) -> str | None:
    """Return that an implementation has no docstring; None if it has one."""
    document = registry[name].__doc__ or ""
    return None if document.strip() else "it has no docstring"


# ----------------------------------------------------------------------------------------
# Interaction indices


def index_checks(name: str) -> Checks:
    """Give what is checked of the interaction index that is registered by this name."""
    yield "says what it is", lambda: described(INDICES, name)
    yield "one finite weight for each number of others", lambda: _index_weights(name)
    yield "exact values follow from its weights", lambda: _index_values(name)
    yield "efficient if it says so", lambda: _index_efficiency(name)


def _index_weights(name: str) -> str | None:
    for order in (1, 2, 3):
        index = INDICES[name](order)
        masses = index.masses(5)
        if sorted(masses) != list(index.sizes()):
            return f"with order {order} it has weights for the sizes {sorted(masses)}"
        for size, weights in masses.items():
            if weights.shape != (6 - size,) or not np.isfinite(weights).all():
                return f"coalitions of {size} among 5 players have the weights {weights}"
    return None


def _index_values(name: str) -> str | None:
    n, order = 5, 2
    table = _table(n)
    found = interactions(TableGame(table), name, order)
    masses = INDICES[name](order).masses(n)
    for size in {1, 2} & masses.keys():
        for members in combinations(range(n), size):
            others = [player for player in range(n) if player not in members]
            expected = sum(
                masses[size][r] / comb(len(others), r) * _joint(table, members, joined)
                for r in range(len(others) + 1)
                for joined in combinations(others, r)
            )
            value = found[members]
            if abs(value - expected) > 1e-9 * np.abs(table).max():
                return f"{members} has the value {value:.6g}, and by its weights {expected:.6g}"
    return None


def _index_efficiency(name: str) -> str | None:
    if not INDICES[name].efficient:
        return None
    table = _table(5)
    total = interactions(TableGame(table), name, 2).values.sum()
    if abs(total - (table[-1] - table[0])) > 1e-9 * np.abs(table).max():
        return f"the values sum to {total:.6g}, not to {table[-1] - table[0]:.6g}"
    return None


def _table(n_players: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.random.default_rng(6).integers(-9, 10, 1 << n_players).astype(float)


def _bits(members: tuple[int, ...]) -> int:
    return sum(1 << player for player in members)


def _joint(
    table: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    members: tuple[int, ...],
    joined: tuple[int, ...],
) -> float:
    """Return what the members add together to those who joined, beyond what they add apart."""
    return sum(
        (-1.0) ** (len(members) - size) * float(table[_bits(joined) | _bits(part)])
        for size in range(len(members) + 1)
        for part in combinations(members, size)
    )


# ----------------------------------------------------------------------------------------
# Estimators of synergies


def synergy_checks(name: str) -> Checks:
    """Give what is checked of the estimator of synergies that is registered by this name."""
    yield "says what it is", lambda: described(SYNERGIES, name)
    yield "a graph of the game's players", lambda: _synergy_players(name)
    yield "the budget is kept", lambda: _synergy_budget(name)
    yield "the same seed gives the same graph", lambda: _synergy_repeats(name)


def _synergy_players(name: str) -> str | None:
    for n in (2, 3, 5):
        graph = estimate_synergy(TableGame(_table(n)), name)
        if graph.n_players != n:
            return f"a game of {n} players becomes a graph of {graph.n_players}"
    return None


def _synergy_budget(name: str) -> str | None:
    asked = Recorder(mixed_game())
    estimate_synergy(asked, name, budget=BUDGET)
    different = len(set(asked.seen))
    if different > BUDGET:
        return f"with a budget of {BUDGET} it evaluated {different} coalitions"
    return None


def _synergy_repeats(name: str) -> str | None:
    first, second = (
        estimate_synergy(Recorder(mixed_game()), name, budget=BUDGET, seed=3).matrix
        for _ in range(2)
    )
    same = (first == second).all()
    return None if same else "two calls with seed 3 differ: take all chance from the given rng"


# ----------------------------------------------------------------------------------------
# Models of data


def data_model_checks(name: str) -> Checks:
    """Give what is checked of the data model that is registered by this name."""
    yield "says what it is", lambda: described(DATA_MODELS, name)
    yield "every call returns a new model", lambda: _new_model(name)
    yield "predicts classes it has seen", lambda: _predicted_classes(name)
    yield "predicts finite numbers", lambda: _predicted_numbers(name)


def _new_model(name: str) -> str | None:
    one, other = DATA_MODELS[name](True), DATA_MODELS[name](True)
    return "two calls return one model: what it learnt would stay" if one is other else None


def _predicted_classes(name: str) -> str | None:
    X = np.random.default_rng(4).normal(size=(40, 3))
    y = np.where(X[:, 0] > 0, 2, 5)
    found = _predictions(name, X, y, classes=True)
    if found.shape != (40,) or not np.isin(found, (2, 5)).all():
        return f"for 40 rows of the classes 2 and 5 it predicts {found!r}"
    return None


def _predicted_numbers(name: str) -> str | None:
    X = np.random.default_rng(4).normal(size=(40, 3))
    found = _predictions(name, X, X @ [1.0, -2.0, 0.5], classes=False)
    if found.shape != (40,) or not np.isfinite(found.astype(float)).all():
        return f"for 40 rows it predicts {found!r}"
    return None


def _predictions(
    name: str,
    X: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    y: np.ndarray[tuple[int, ...], np.dtype[np.generic]],
    *,
    classes: bool,
) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    model = DATA_MODELS[name](classes)
    model.fit(X, y)
    return np.asarray(model.predict(X))


# ----------------------------------------------------------------------------------------
# Notions of stability


def notion_checks(name: str) -> Checks:
    """Give what is checked of the notion of stability that is registered by this name."""
    yield "a deviation is a coalition with its movers", lambda: _deviations(name)
    yield "the same question has the same answer", lambda: _same_deviation(name)


def _questions() -> list[tuple[SynergyGraph, CoalitionStructure]]:
    upper = np.triu(_table(5)[:16].reshape(4, 4), 1)
    graph = SynergyGraph(upper + upper.T)
    return [(graph, CoalitionStructure.from_labels(labels)) for labels in partition_labels(4)]


def _deviations(name: str) -> str | None:
    for graph, structure in _questions():
        for game in (graph, graph.game()):
            found = NOTIONS[name](game, structure)
            if found is None:
                continue
            lengths = {len(found.movers), len(found.before), len(found.after)}
            if not found.movers or len(lengths) != 1:
                return f"a deviation has not one number before and after for each mover: {found}"
            players = range(players_of(graph.game()))
            if not set(found.movers) <= set(found.coalition) <= set(players):
                return f"a deviation's coalition has not all movers, or strangers: {found}"
            if not sum(found.after) > sum(found.before):
                return f"nobody gains by a deviation: {found}"
    return None


def _same_deviation(name: str) -> str | None:
    for graph, structure in _questions():
        if NOTIONS[name](graph, structure) != NOTIONS[name](graph, structure):
            return f"two calls for {structure} differ"
    return None
