from __future__ import annotations

import itertools
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalitions import (
    BudgetError,
    InvalidInputError,
    SynergyGraph,
    TableGame,
    UnknownNameError,
    banzhaf,
    interactions,
    shapley,
)
from coalitions.values.estimators.permutation import _neighbourly_orders
from tests.coalitions.table_games import (
    Asked,
    index_of_all,
    mask,
    pairs_of,
    relabelled,
    subsets,
    tables,
)

INDICES = ["shapley", "banzhaf"]


def by_definition(table, coalition, index):
    """Grabisch and Roubens 1999: the weighted sum of all discrete derivatives."""
    n, s = len(table).bit_length() - 1, len(coalition)
    total = 0.0
    for others in subsets(k for k in range(n) if k not in coalition):
        t = len(others)
        derivative = sum(
            (-1) ** (s - len(part)) * table[mask((*others, *part))] for part in subsets(coalition)
        )
        if index == "shapley":
            weight = factorial(n - t - s) * factorial(t) / factorial(n - s + 1)
        else:
            weight = 2.0 ** (s - n)
        total += weight * derivative
    return total


@pytest.mark.parametrize("index", INDICES)
@given(table=tables(max_players=5))
def test_indices_of_all_coalitions_are_their_definition(index, table):
    game = TableGame(table)
    found = index_of_all(game, index)
    for coalition in filter(None, subsets(range(game.n_players))):
        assert found[mask(coalition)] == pytest.approx(
            by_definition(table, coalition, index), abs=1e-10
        )


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("n", [8, 11])
def test_quadrature_is_exact_for_larger_games(index, n, rng):
    table = rng.normal(size=1 << n)
    found = index_of_all(TableGame(table), index)
    for coalition in [(0,), (1, 4), (0, 2, 5, 7), tuple(range(n - 1)), tuple(range(n))]:
        assert found[mask(coalition)] == pytest.approx(
            by_definition(table, coalition, index), abs=1e-9
        )


@pytest.mark.parametrize("index", INDICES)
@given(table=tables(max_players=6))
def test_pairs_are_those_of_the_whole_table(index, table):
    game = TableGame(table)
    whole = index_of_all(game, index)
    pairs = pairs_of(game, index)
    np.testing.assert_array_equal(pairs.matrix, pairs.matrix.T)
    assert (np.diag(pairs.matrix) == 0).all()
    for i, j in itertools.combinations(range(game.n_players), 2):
        assert pairs[i, j] == pytest.approx(whole[1 << i | 1 << j], abs=1e-10)


@given(tables(max_players=6))
def test_single_players_have_their_value(table):
    game = TableGame(table)
    singles = 1 << np.arange(game.n_players)
    np.testing.assert_allclose(
        index_of_all(game, "shapley")[singles], shapley(game).values, atol=1e-10
    )
    np.testing.assert_allclose(
        index_of_all(game, "banzhaf")[singles], banzhaf(game).values, atol=1e-10
    )


@pytest.mark.parametrize("index", INDICES)
@given(table=tables(min_players=2, max_players=5), seed=st.integers(0, 5))
def test_relabelled_game_gives_relabelled_pairs(index, table, seed):
    order = np.random.default_rng(seed).permutation(TableGame(table).n_players)
    moved = pairs_of(TableGame(relabelled(table, order.tolist())), index).matrix
    here = pairs_of(TableGame(table), index).matrix
    np.testing.assert_allclose(moved, here[np.ix_(order, order)], atol=1e-10)


def test_two_gloves_substitute_each_other():
    """One left glove, two right ones: both right ones complete the left and replace each other."""
    glove = TableGame([0, 0, 0, 1, 0, 1, 0, 1])
    np.testing.assert_allclose(
        pairs_of(glove).matrix,
        [[0, 0.5, 0.5], [0.5, 0, -0.5], [0.5, -0.5, 0]],
        atol=1e-12,
    )


def graph_like_table(n, rng):
    """A game of pairs and a little of everything else."""
    bits = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
    pairs = np.triu(rng.normal(size=(n, n)), 1)
    return ((bits @ pairs) * bits).sum(axis=1) + 0.2 * np.sin(3 * bits @ rng.random(n))


SAMPLED = [
    ("shapley", "stratified", 160),
    ("shapley", "chains", 240),
    ("banzhaf", "msr", 120),
    ("banzhaf", "regression", 120),
]


@pytest.mark.parametrize(("index", "method", "budget"), SAMPLED)
def test_sampled_pairs_are_right_on_average_and_their_errors_honest(index, method, budget, rng):
    n = 8
    table = graph_like_table(n, rng)
    truth = pairs_of(TableGame(table), index).values
    runs = [
        pairs_of(Asked(table), index, method=method, budget=budget, seed=seed)
        for seed in range(200)
    ]
    values = np.array([run.values for run in runs])
    errors = np.array([run.stderr for run in runs])
    error_of_mean = values.std(axis=0, ddof=1) / np.sqrt(len(runs))
    assert (np.abs(values.mean(axis=0) - truth) < 4.5 * error_of_mean + 1e-12).all()
    spread = np.sqrt(values.var(axis=0, ddof=1).mean())
    assert np.sqrt((errors**2).mean()) == pytest.approx(spread, rel=0.25)


@pytest.mark.parametrize(("index", "method", "budget"), SAMPLED)
def test_budget_is_kept_and_seeds_repeat(index, method, budget, rng):
    table = graph_like_table(8, rng)
    game = Asked(table)
    one = pairs_of(game, index, method=method, budget=budget, seed=5)
    assert game.rows == one.evaluations <= budget
    two = pairs_of(Asked(table), index, method=method, budget=budget, seed=5)
    other = pairs_of(Asked(table), index, method=method, budget=budget, seed=6)
    assert (one.values == two.values).all()
    assert (one.values != other.values).any()


@pytest.mark.parametrize(
    ("index", "method"),
    [("shapley", "stratified"), ("shapley", "chains"), ("banzhaf", "regression")],
)
def test_a_game_of_pairs_is_recovered_without_error(index, method, rng):
    n = 12
    pairs = np.triu(rng.normal(size=(n, n)), 1)
    graph = SynergyGraph(pairs + pairs.T)
    game = graph.game()
    found = pairs_of(game, index, method=method, budget=600)
    np.testing.assert_allclose(found.matrix, graph.matrix, atol=1e-10)
    assert found.stderr.max() < 1e-10
    exact = pairs_of(game, index)
    assert exact.evaluations == 0
    np.testing.assert_allclose(exact.matrix, graph.matrix)


@pytest.mark.parametrize("n", [2, 3, 6, 7])
def test_every_pair_meets_twice_in_n_orders(n, rng):
    orders = _neighbourly_orders(n, 2, rng)
    assert (np.sort(orders, axis=1) == np.arange(n)).all()
    met = np.zeros((n, n), int)
    for order in orders.tolist():
        for i, j in itertools.pairwise(order):
            met[min(i, j), max(i, j)] += 1
    assert (met[np.triu_indices(n, 1)] == 4).all()


@pytest.mark.parametrize("index", INDICES)
def test_sampled_interactions_of_any_order(index, rng):
    table = rng.normal(size=1 << 6)
    asked = [[0], [1, 2], [5, 0, 3], [0, 1, 2, 3, 4, 5]]
    found = interactions(
        Asked(table), index, coalitions=asked, method="draws", budget=40_000, seed=2
    )
    assert found.coalitions == tuple(tuple(sorted(c)) for c in asked)
    values, stderr = found.values, found.stderr
    truth = np.array([by_definition(table, c, index) for c in found.coalitions])
    assert (np.abs(values - truth) <= 4 * stderr + 1e-12).all()
    assert stderr[-1] < 1e-12  # nothing is left to draw
    assert stderr[:-1].max() < 0.3


def test_lone_players_have_no_pairs():
    for index in INDICES:
        assert len(pairs_of(TableGame([1, 5]), index)) == 0
    assert pairs_of(Asked([1, 5]), budget=1).matrix.tolist() == [[0.0]]


def test_bad_requests_get_a_sentence(rng):
    game = Asked(rng.random(1 << 5))
    with pytest.raises(UnknownNameError, match="no interaction index named 'myerson'"):
        pairs_of(game, "myerson")
    with pytest.raises(
        UnknownNameError, match="there are: auto, chains, exact, portfolio, stratified"
    ):
        pairs_of(game, "shapley", method="msr")
    with pytest.raises(BudgetError, match="chains needs at least 82 evaluations"):
        pairs_of(game, "shapley", method="chains", budget=81)
    with pytest.raises(BudgetError, match="stratified needs at least 10 evaluations"):
        pairs_of(game, "shapley", method="stratified", budget=9)
    with pytest.raises(BudgetError, match="regression needs at least 18 evaluations"):
        pairs_of(game, "banzhaf", method="regression", budget=17)
    with pytest.raises(InvalidInputError, match="names player 7; players are 0 … 4"):
        interactions(game, "SII", coalitions=[[0, 7]], budget=100)
    with pytest.raises(BudgetError, match="need 8 evaluations"):
        interactions(game, "SII", coalitions=[[0, 1]], budget=7)
