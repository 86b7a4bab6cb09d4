from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from coalitions import (
    BudgetError,
    FunctionGame,
    InvalidInputError,
    SynergyGraph,
    TableGame,
    UnknownNameError,
    VotingGame,
    banzhaf,
    beta_shapley,
    semivalue,
    shapley,
)
from tests.coalitions.table_games import Asked, mask, relabelled, subsets, tables
from tests.strategies import synergy_graphs


def by_definition(table, sizes):
    n = len(sizes)
    values = np.zeros(n)
    for i in range(n):
        for others in subsets(k for k in range(n) if k != i):
            weight = sizes[len(others)] / comb(n - 1, len(others))
            values[i] += weight * (table[mask((*others, i))] - table[mask(others)])
    return values


def some_sizes(n, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(n))


@given(tables(max_players=7), st.integers(0, 5))
def test_semivalue_is_its_definition(table, seed):
    game = TableGame(table)
    sizes = some_sizes(game.n_players, seed)
    np.testing.assert_allclose(
        semivalue(game, sizes).values, by_definition(table, sizes), atol=1e-10
    )


@given(tables(max_players=7))
def test_banzhaf_and_shapley_are_semivalues(table):
    game = TableGame(table)
    n = game.n_players
    coin = [comb(n - 1, k) / 2 ** (n - 1) for k in range(n)]
    np.testing.assert_allclose(banzhaf(game).values, by_definition(table, coin), atol=1e-10)
    np.testing.assert_allclose(
        semivalue(game, np.full(n, 1 / n)).values, shapley(game).values, atol=1e-10
    )
    np.testing.assert_allclose(beta_shapley(game, 1, 1).values, shapley(game).values, atol=1e-10)


def test_beta_shapley_looks_at_small_coalitions_if_alpha_is_large():
    """Kwon and Zou 2022, Figure 1: Beta(16, 1) weighs small cardinalities most."""
    alone = TableGame([0, 1, 1, 1, 1, 1, 1, 1])  # the first to come brings everything
    assert beta_shapley(alone, 16, 1).values[0] > shapley(alone).values[0] > 0.3
    assert beta_shapley(alone, 1, 16).values[0] < shapley(alone).values[0]
    # n = 3, q_0 = B(1, 18) / B(16, 1) = 16 / 18
    np.testing.assert_allclose(beta_shapley(alone, 16, 1).values, 16 / 18)


@given(tables(max_players=6), st.integers(0, 5))
def test_relabelled_game_gives_relabelled_values(table, seed):
    n = TableGame(table).n_players
    order = np.random.default_rng(seed).permutation(n)
    moved = TableGame(relabelled(table, order.tolist()))
    sizes = some_sizes(n)
    np.testing.assert_allclose(
        semivalue(moved, sizes).values,
        semivalue(TableGame(table), sizes).values[order],
        atol=1e-10,
    )


@given(tables(min_players=1, max_players=4), st.integers(0, 3))
def test_null_player_gets_nothing_and_dummy_their_worth(table, seed):
    # A last player is added who brings 0, or 2.5, to everybody.
    for worth in (0.0, 2.5):
        game = TableGame(np.concatenate([table, table + worth]))
        value = semivalue(game, some_sizes(game.n_players, seed)).values[-1]
        assert value == pytest.approx(worth, abs=1e-10)


@given(st.integers(1, 5), st.data())
def test_semivalues_are_linear_and_blind_to_constants(n, data):
    arrays = hnp.arrays(float, 1 << n, elements=st.integers(-9, 9).map(float))
    one, other = data.draw(arrays), data.draw(arrays)
    sizes = some_sizes(n)
    both = semivalue(TableGame(2 * one - 3 * other + 7), sizes).values
    parts = 2 * semivalue(TableGame(one), sizes).values
    parts -= 3 * semivalue(TableGame(other), sizes).values
    np.testing.assert_allclose(both, parts, atol=1e-9)


def test_a_large_constant_does_not_wash_the_values_out(rng):
    table = rng.random(1 << 6)
    np.testing.assert_allclose(
        banzhaf(TableGame(table + 1e6)).values, banzhaf(TableGame(table)).values, atol=1e-8
    )


@given(synergy_graphs(max_players=6, scales=(1.0,)))
def test_closed_form_on_graphs_is_that_of_the_table(graph):
    game = graph.game()
    n = game.n_players
    np.testing.assert_allclose(banzhaf(game).values, banzhaf(TableGame.of(game)).values, atol=1e-10)
    sizes = some_sizes(n)
    np.testing.assert_allclose(
        semivalue(game, sizes).values, by_definition(TableGame.of(game).table, sizes), atol=1e-10
    )
    assert banzhaf(game).evaluations == 0


def test_three_large_parties_and_two_small_ones_in_the_eec_of_1958():
    """The Treaty of Rome's council [12; 4, 4, 4, 2, 2, 1]: Luxembourg never swings a vote."""
    council = VotingGame([4, 4, 4, 2, 2, 1], 12)
    np.testing.assert_allclose(banzhaf(council).values * 32, [10, 10, 10, 6, 6, 0], atol=1e-12)


def test_un_security_council():
    """Five permanent members, ten others; 848 and 84 swings out of 2^14."""
    council = VotingGame([7] * 5 + [1] * 10, 39)
    swings = banzhaf(council).values * 2**14
    np.testing.assert_allclose(swings, [848] * 5 + [84] * 10)
    np.testing.assert_allclose(
        shapley(council, "exact").values, [421 / 2145] * 5 + [4 / 2145] * 10, atol=1e-12
    )


def test_banzhaf_paradox_of_49_49_2():
    np.testing.assert_allclose(banzhaf(VotingGame([49, 49, 2], 51)).values, 0.5)


SAMPLED = [
    (lambda game, **options: banzhaf(game, method="msr", **options), "coin"),
    (lambda game, **options: banzhaf(game, method="regression", **options), "coin"),
    (lambda game, **options: banzhaf(game, method="star", **options), "coin"),
    (lambda game, **options: beta_shapley(game, 4, 1, method="star", **options), "beta"),
]


def exact_of(kind, game):
    return (banzhaf(game) if kind == "coin" else beta_shapley(game, 4, 1)).values


@pytest.fixture
def smooth_table(rng):
    """Concave in a sum of weights, with noise: nothing cancels by luck."""
    n = 8
    bits = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
    return np.sqrt(1 + bits @ rng.random(n)) + 0.1 * rng.random(1 << n)


@pytest.mark.parametrize(("sample", "kind"), SAMPLED)
def test_sampled_values_are_right_on_average_and_their_errors_honest(sample, kind, smooth_table):
    truth = exact_of(kind, TableGame(smooth_table))
    runs = [sample(Asked(smooth_table), budget=80, seed=seed) for seed in range(200)]
    values = np.array([run.values for run in runs])
    error_of_mean = values.std(axis=0, ddof=1) / np.sqrt(len(runs))
    assert (np.abs(values.mean(axis=0) - truth) < 4 * error_of_mean).all()
    covered = np.mean([(run.interval()[0] <= truth) & (truth <= run.interval()[1]) for run in runs])
    assert 0.90 <= covered <= 0.995


@pytest.mark.parametrize(("sample", "kind"), SAMPLED)
@pytest.mark.parametrize("budget", [40, 41, 63, 200])
def test_budget_is_kept_and_counted(sample, kind, budget, smooth_table):
    game = Asked(smooth_table)
    result = sample(game, budget=budget, seed=1)
    assert game.rows == result.evaluations <= budget


@pytest.mark.parametrize(("sample", "kind"), SAMPLED)
def test_same_seed_same_numbers(sample, kind, smooth_table):
    one, two, other = (sample(Asked(smooth_table), budget=60, seed=s) for s in (3, 3, 4))
    assert (one.values == two.values).all()
    assert (one.values != other.values).any()


def test_auto_is_exact_when_it_can_be(rng):
    small = Asked(rng.random(1 << 5))
    assert banzhaf(small).method == "exact"
    assert banzhaf(small, budget=31).method == "portfolio"
    assert beta_shapley(small, 2, 1, budget=31).method == "portfolio"
    additive = FunctionGame(lambda rows: rows.sum(axis=1), 1001)
    assert banzhaf(additive, budget=2100).method == "regression"
    assert beta_shapley(additive, 2, 1, budget=5000).method == "star"
    large = SynergyGraph(np.zeros((40, 40))).game()
    assert banzhaf(large).method == "exact"


def test_one_player_and_a_game_of_nothing():
    assert banzhaf(TableGame([3.0, 5.0])).values.tolist() == [2.0]
    assert semivalue(TableGame([3.0, 5.0]), [1.0]).values.tolist() == [2.0]
    assert banzhaf(TableGame(np.zeros(16))).values.tolist() == [0.0] * 4


def test_bad_requests_get_a_sentence(rng):
    game = Asked(rng.random(1 << 5))
    with pytest.raises(InvalidInputError, match="probabilities that add up to 1"):
        semivalue(game, [0.5] * 5)
    with pytest.raises(InvalidInputError, match="alpha is 0; it must be a number"):
        beta_shapley(game, 0, 1)
    with pytest.raises(
        UnknownNameError, match="there are: auto, exact, msr, portfolio, regression, star"
    ):
        banzhaf(game, method="guess")
    with pytest.raises(BudgetError, match="exact needs at least 32 evaluations"):
        banzhaf(game, method="exact", budget=31)
    with pytest.raises(BudgetError, match="at least 4"):
        banzhaf(game, method="msr", budget=3)
    with pytest.raises(BudgetError, match="star needs"):
        banzhaf(game, method="star", budget=8)


@pytest.mark.parametrize("kind", ["banzhaf", "beta", "sizes"])
def test_a_portfolio_needs_fewer_evaluations_than_stars(kind, rng):
    n = 11
    members = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
    table = np.tanh(members @ rng.normal(size=n))
    sizes = np.arange(1.0, n + 1) / np.arange(1.0, n + 1).sum()
    asked = {
        "banzhaf": lambda game, **options: banzhaf(game, **options),
        "beta": lambda game, **options: beta_shapley(game, 4, 1, **options),
        "sizes": lambda game, **options: semivalue(game, sizes, **options),
    }[kind]
    truth = asked(TableGame(table)).values
    errors = {}
    for method in ("portfolio", "star"):
        found = [asked(Asked(table), method=method, budget=300, seed=seed) for seed in range(2)]
        assert all(one.evaluations <= 300 for one in found)
        errors[method] = np.mean([(one.values - truth) ** 2 for one in found])
        if method == "portfolio":
            low, high = found[0].interval(0.99)
            assert ((low <= truth) & (truth <= high)).mean() > 0.8
    assert errors["portfolio"] < 0.2 * errors["star"]
