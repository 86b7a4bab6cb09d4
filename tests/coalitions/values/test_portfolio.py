"""The surrogates know their own Shapley values, and a wrong one costs evaluations only."""

from __future__ import annotations

import time

import numpy as np
import pytest

from coalitions import (
    AirportGame,
    FunctionGame,
    InvalidInputError,
    TableGame,
    UnanimityGame,
    VotingGame,
    bankruptcy_game,
    shapley,
    value_table,
)
from coalitions.values.designs import Pool, Surrogate, most_pairs, pairs_per_size, random_pairs
from coalitions.values.estimators.portfolio import Portfolio, left_over, mixed, unseen
from coalitions.values.exact import shapley_of_table
from coalitions.values.models.polynomials import additive, borders, symmetric, trees
from coalitions.values.models.process import (
    Covariance,
    _fitted,
    _Likelihood,
    _prior,
    posterior,
    process,
)


def pool_of(game, n, n_pairs, seed=0):
    rows = random_pairs(n, n_pairs, seed, borders=True)
    empty, grand = game(np.repeat([[False], [True]], n, axis=1))
    return Pool.of(rows, game(np.concatenate([rows, ~rows])), (empty, grand), seed)


@pytest.fixture
def game():
    return UnanimityGame.random(9, 25, seed=5, max_size=5)


def by_all_pairs(f, n):
    """Return the Shapley values of an odd function of signs, from its table."""
    return shapley_of_table(value_table(FunctionGame(lambda rows: f(np.where(rows, 1.0, -1.0)), n)))


@pytest.mark.parametrize("n", [2, 3, 6, 9])
def test_the_shares_of_all_pairs_are_the_shapley_value(n):
    table = np.random.default_rng(n).normal(size=1 << n)
    pool = pool_of(TableGame(table), n, most_pairs(n))
    np.testing.assert_allclose(pool.odd @ pool.shares, shapley_of_table(table), atol=1e-12)
    assert (pool.missing == 0).all()


@pytest.mark.parametrize("n", [2, 5, 8])
def test_the_process_knows_the_shapley_values_of_its_covariance(n):
    rng = np.random.default_rng(n)
    mean, deviation = _prior(n)
    covariance = Covariance.of(mean + 0.3 * deviation * rng.normal(size=len(mean)), n)
    some = np.where(rng.random((6, n)) < 0.5, 1.0, -1.0)
    known = covariance.shapley(some)
    for k, row in enumerate(some):
        values = by_all_pairs(lambda z, row=row: covariance.between(z, row[None])[:, 0], n)
        np.testing.assert_allclose(known[k], values, atol=1e-10)


def test_a_player_that_rules_all_does_not_overflow():
    mean, _ = _prior(4)
    mean[-4:] = 12.0
    assert np.isfinite(Covariance.of(mean, 4).shapley(np.ones((1, 4)))).all()


def test_the_gradient_of_the_likelihood_is_that_of_finite_differences(game):
    pool = pool_of(game, 9, 40)
    likelihood = _Likelihood(pool.signs, pool.odd)
    mean, deviation = _prior(9)
    point = mean + 0.2 * deviation * np.random.default_rng(1).normal(size=len(mean))
    _, gradient = likelihood(point)
    for k in range(len(point)):
        step = np.zeros(len(point))
        step[k] = 1e-5
        slope = (likelihood(point + step)[0] - likelihood(point - step)[0]) / 2e-5
        assert gradient[k] == pytest.approx(slope, abs=1e-4 * (1 + abs(slope)))


def test_the_process_says_of_a_held_out_pair_what_a_fit_without_it_says(game):
    pool = pool_of(game, 9, 60)
    whole = process(pool)[0]
    logs = _fitted(pool.signs, pool.odd / np.abs(pool.odd).max())
    covariance = Covariance.of(logs, 9)
    left_out = 7
    rest = np.delete(np.arange(len(pool.odd)), left_out)
    matrix = covariance.between(pool.signs[rest], pool.signs[rest])
    matrix += np.diag(covariance.noise[pool.sizes[rest]] + 1e-9 * covariance.variance)
    guess = covariance.between(pool.signs[[left_out]], pool.signs[rest]) @ np.linalg.solve(
        matrix, pool.odd[rest]
    )
    assert whole.held_out[left_out] == pytest.approx(float(guess[0]), abs=1e-6)


@pytest.mark.slow
def test_held_out_errors_of_few_pairs_are_about_those_of_new_pairs():
    """The parameters of a process fit some of 49 pairs by luck, if they have seen them all."""
    claims = np.random.default_rng(100).integers(1, 80, 25)
    estate = claims.sum() // 2

    def bankruptcy(rows):
        return np.maximum(0.0, estate - (~rows) @ claims)

    told, true = [], []
    for seed in range(8):
        pool, new = (pool_of(bankruptcy, 25, 49, s) for s in (seed, seed + 100))
        fit = posterior(pool)
        guess = fit.covariance.between(new.signs, fit.signs) @ fit.weights
        told.append(np.mean((pool.odd - fit.held_out)[pool.sizes > 1] ** 2))
        true.append(np.mean((new.odd - guess)[new.sizes > 1] ** 2))
    assert 0.4 < np.mean(told) / np.mean(true) < 2  # it was 0.14


def test_trees_and_polynomials_know_their_own_values():
    """With all pairs, the values of a model are what its own predictions share out."""
    pool = pool_of(TableGame(np.random.default_rng(9).normal(size=1 << 9)), 9, most_pairs(9))
    surrogates = trees(pool)
    assert len(surrogates) == 3
    for surrogate in surrogates:
        np.testing.assert_allclose(
            surrogate.values, surrogate.fitted @ pool.shares, atol=1e-9 * np.abs(pool.odd).max()
        )


def test_terms_that_do_not_stand_out_are_noise_in_all_values():
    """A sparse game with noise: a few terms fit it better than all that the pool carries."""
    rng = np.random.default_rng(4)
    noise = {}

    def noisy(rows):
        z = np.where(rows, 1.0, -1.0)
        off = [noise.setdefault(row.tobytes(), rng.normal(0, 0.1)) for row in rows]
        return z @ np.arange(30) / 10 + 2 * z[:, 0] * z[:, 3] * z[:, 7] + off

    values = 0.2 * np.arange(30)
    values[[0, 3, 7]] += 4 / 3
    _, whole, clear = trees(pool_of(noisy, 30, 300))
    errors = [float(((one.values - values) ** 2).mean()) for one in (whole, clear)]
    assert errors[1] < 0.6 * errors[0]


def test_an_additive_game_is_exact_from_few_pairs():
    pool = pool_of(lambda rows: rows @ np.arange(12.0), 12, 20)
    (fit,) = additive(pool)
    np.testing.assert_allclose(fit.values, np.arange(12.0), atol=1e-9)
    np.testing.assert_allclose(fit.held_out, pool.odd, atol=1e-9)


def test_where_only_numbers_count_all_get_the_same():
    pool = pool_of(lambda rows: np.sqrt(rows.sum(axis=1)), 10, 30)
    (fit,) = symmetric(pool)
    np.testing.assert_allclose(fit.values, np.sqrt(10) / 10)


def test_players_count_as_at_the_borders_and_numbers_besides():
    """Noise at other sizes does not touch the values, which a regression would share out."""
    noise = np.random.default_rng(1)

    def rough(rows):
        size = rows.sum(axis=1)
        inner = (size > 1) & (size < 11)
        return rows @ np.arange(12.0) + np.cos(size) + inner * noise.normal(size=len(rows))

    pool = pool_of(rough, 12, 40)
    (fit,) = borders(pool)
    shared = (np.cos(12) - np.cos(0)) / 12
    np.testing.assert_allclose(fit.values, np.arange(12.0) + shared, atol=1e-9)
    assert borders(pool_of(rough, 12, 5)) == ()  # not all single players are there
    assert borders(pool_of(lambda rows: rows.sum(axis=1), 2, 1)) == ()


def test_few_pairs_may_have_two_explanations():
    weights = np.random.default_rng(1).integers(1, 21, 30)
    vote = VotingGame(weights, weights.sum() // 2 + 1)
    assert len(process(pool_of(vote, 30, 49))) == 2
    assert len(process(pool_of(lambda rows: rows @ np.arange(12.0), 12, 40))) == 1


def test_a_fit_that_is_good_by_chance_does_not_win():
    """A dozen informative pairs of a vote: least squares and trees fit some of them by luck."""
    weights = np.random.default_rng(1).integers(1, 21, 30)
    vote = VotingGame(weights, weights.sum() // 2 + 1)
    truth = vote.shapley_values()
    runs = [shapley(FunctionGame(vote, 30), budget=100, seed=seed) for seed in (2, 8, 9, 10)]
    errors = [np.mean((run.values - truth) ** 2) / truth.var() for run in runs]
    assert np.mean(errors) < 2.5  # equal shares have 1; it was 5.7


def test_a_tree_that_explains_a_single_pair_is_luck(game):
    """One pair of a hundred goes another way; a free fit that knows it has no error at all."""
    pool = pool_of(game, 9, 100)
    odd = np.where(np.arange(len(pool.odd)) == 60, 1.0, 0.0)
    seen = Pool(pool.signs, odd, -odd, 0)
    nothing = Surrogate(np.zeros(9), 0 * odd, 0 * odd, guarded=True)
    lucky = Surrogate(np.arange(9.0), odd, odd)
    assert np.abs(mixed(seen, [nothing, lucky]).values).max() < 0.5


def test_the_mixture_takes_the_surrogate_that_is_right(game):
    pool = pool_of(game, 9, 100)
    noise = np.random.default_rng(0).normal(size=len(pool.odd))
    wrong = Surrogate(np.ones(9), noise, noise)
    right = Surrogate(np.arange(9.0), pool.odd, pool.odd)
    np.testing.assert_allclose(mixed(pool, [wrong, right]).values, np.arange(9.0), atol=1e-6)


def test_what_is_left_over_is_unbiased_and_its_variance_is_right():
    table = np.random.default_rng(3).normal(size=1 << 10)
    truth = shapley_of_table(table)
    guesses, variances = [], []
    for seed in range(300):
        pool = pool_of(TableGame(table), 10, 100, seed)
        guess, variance, _ = left_over(pool, pool.odd)
        known = pool.odd @ pool.shares
        known += (table[-1] - table[0] - known.sum()) / 10
        guesses.append(known + guess)
        variances.append(variance)
    off = np.array(guesses) - truth
    error = off.std(axis=0) / np.sqrt(300)
    assert (np.abs(off.mean(axis=0)) < 4.5 * error).all()
    assert np.mean(variances) == pytest.approx((off**2).mean(), rel=0.25)


def test_pairs_that_tell_nobody_apart_do_not_prove_that_all_are_alike():
    """No pair turns this vote, so nothing is left over; the intervals cover all the same."""
    vote = VotingGame(np.array([4, *np.full(40, 1)]), 23)
    result = shapley(FunctionGame(vote, 41), budget=40, seed=1)
    low, high = result.interval()
    truth = vote.shapley_values()
    assert pool_of(vote, 41, 19, seed=1).equal_by_size
    assert ((low <= truth) & (truth <= high)).all()


def coverage(game, truth, budget, seeds):
    """Return the share of values in their 95 % intervals, over some seeds."""
    inside = []
    for seed in seeds:
        low, high = shapley(game, "portfolio", budget, seed=seed).interval()
        inside.append((low <= truth) & (truth <= high))
    return np.mean(inside)


@pytest.mark.parametrize("budget", [100, 500])
def test_an_airport_of_equal_costs_is_covered_though_no_pair_goes_either_way(budget):
    """Its values are exact but for rounding, and errors of 1e-10 were smaller than that."""
    airport = FunctionGame(AirportGame(np.ones(20)), 20)
    assert coverage(airport, np.full(20, 0.05), budget, range(3)) == 1
    assert shapley(airport, budget=budget).stderr.min() > 1e-4


def test_votes_that_only_single_players_turn_do_not_prove_that_no_others_do():
    """All pairs of one player are known, and no other goes either way; no value was in."""
    votes = np.random.default_rng(0).integers(1, 21, 16)
    vote = VotingGame(votes, np.ceil(0.9 * votes.sum()))
    assert coverage(FunctionGame(vote, 16), vote.shapley_values(), 100, [11]) > 0.7


def vote_of_nine_tenths():
    """Return a vote that three of 16 players seldom block, and its values."""
    votes = np.random.default_rng(207).integers(1, 21, 16)
    vote = VotingGame(votes, np.ceil(0.9 * votes.sum()))
    return FunctionGame(vote, 16), vote.shapley_values()


@pytest.mark.parametrize("seed", [15, 24])
def test_a_rare_block_that_was_not_drawn_is_in_the_errors(seed):
    """None of 182 pairs of three players blocks, and 9 of 560 do: it said 1e-4 and was 5e-3 off."""
    game, truth = vote_of_nine_tenths()
    assert coverage(game, truth, 2000, [seed]) > 0.8
    error = np.abs(shapley(game, "portfolio", 2000, seed=seed).values - truth).mean()
    assert shapley(game, "portfolio", 2000, seed=seed).stderr.max() < 4 * error


def test_rare_pairs_are_doubted_where_none_was_seen_and_the_less_the_more_were_asked():
    game, _ = vote_of_nine_tenths()
    doubts = []
    for n_pairs in (300, 1000, 4000):
        pool = pool_of(game, 16, n_pairs)
        assert 0 < pool.rare.share < 0.5
        assert not unseen(pool, 0 * pool.odd, 5).any()  # models that miss no rare pair are right
        doubts.append(unseen(pool, pool.odd, 5))
    assert (doubts[0] > doubts[1]).all()
    assert (doubts[1] > doubts[2]).all()
    _, variance, doubt = left_over(pool, pool.odd)
    assert (doubt >= variance).all()


@pytest.mark.parametrize("n_pairs", [50, 500])
def test_where_no_two_pairs_are_equal_none_of_them_is_rare(n_pairs):
    noise = FunctionGame(TableGame(np.random.default_rng(0).normal(size=1 << 12)), 12)
    pool = pool_of(noise, 12, n_pairs)
    _, variance, doubt = left_over(pool, pool.odd)
    np.testing.assert_array_equal(variance, doubt)


def test_a_game_that_looks_the_same_from_both_sides_is_not_said_to_be_known():
    """A cut has no odd part; but this game is a cut only where it was asked."""
    flow = np.triu(np.random.default_rng(0).integers(1, 9, (14, 14)), 1)

    def cut(rows):
        inside, outside = rows * 1.0, ~rows * 1.0
        return np.einsum("ki,ij,kj->k", inside, flow + flow.T, outside)

    result = shapley(FunctionGame(cut, 14), budget=100)
    assert np.abs(result.values).max() < 1e-9
    assert result.stderr.min() > 0
    assert not shapley(FunctionGame(lambda rows: np.ones(len(rows)), 14), budget=100).stderr.any()


def test_the_reason_says_that_a_tail_was_not_seen():
    """No estimator can tell of one coalition in 4096 that it did not ask for."""
    table = np.random.default_rng(2).normal(size=1 << 12)
    table[1234] = 1e4
    outlier = FunctionGame(TableGame(table), 12)
    for method in ("auto", "permutation"):
        reason = shapley(outlier, method, 100).reason
        assert "rare coalition" in reason
        assert "among those evaluated" in reason
    assert "rare" not in shapley(outlier).reason
    assert "rare" not in shapley(outlier, "portfolio", 1 << 12).reason


def test_pairs_of_an_additive_game_do_not_prove_that_it_is_one():
    """Few coalitions claim half of this estate; without one of them the game looks additive."""
    claims = np.random.default_rng(7).integers(1, 60, 16)
    game = bankruptcy_game(claims, claims.sum() // 2)
    truth = shapley_of_table(value_table(game))
    looks, inside = [], []
    for seed in range(6):
        low, high = shapley(game, "portfolio", 80, seed=seed).interval()
        inside.append((low <= truth) & (truth <= high))
        looks.append(pool_of(game, 16, 39, seed).additive)
    assert claims.sum() % 2 == 1
    assert 1 <= sum(looks) < 6
    assert np.mean(inside) > 0.9


def test_errors_of_an_additive_game_fall_with_the_budget():
    plain = FunctionGame(lambda rows: rows @ np.arange(30.0), 30)
    few, many = (shapley(plain, budget=budget) for budget in (100, 500))
    np.testing.assert_allclose(few.values, np.arange(30.0), atol=1e-6)
    assert 0 < many.stderr.max() < few.stderr.max() / 5 < 0.2


def test_a_model_that_tells_all_pairs_does_not_prove_that_it_tells_the_others():
    """Gloves are additive but for a few coalitions; the process is sure where it met none."""
    left = np.arange(14) < 4
    game = FunctionGame(lambda rows: np.minimum(rows @ left, rows @ ~left).astype(float), 14)
    truth = shapley_of_table(value_table(game))
    answer = shapley(game, "portfolio", 100, seed=18)
    assert not pool_of(game, 14, 49, 18).additive
    assert np.abs(answer.values - truth).max() > 0.05
    low, high = answer.interval()
    assert ((low <= truth) & (truth <= high)).mean() > 0.5


def nonsense(pool):
    """Return a surrogate that claims a wrong game: each player's value is its number."""
    slope = np.arange(pool.n_players) * np.abs(pool.odd).max()
    guess = pool.signs @ slope / 2
    return (Surrogate(slope, guess, guess),)


def test_a_wrong_surrogate_costs_evaluations_and_not_correctness():
    """Its error falls with the budget, and so does that of a portfolio with it in first place."""
    game = UnanimityGame.random(12, 40, seed=8, max_size=8)
    asked, truth = FunctionGame(game, 12), game.shapley_values()

    def error(surrogates, budget):
        runs = [shapley(asked, Portfolio(surrogates), budget, seed=seed) for seed in range(4)]
        return np.mean([(run.values - truth) ** 2 for run in runs]) / truth.var()

    errors = [error((nonsense,), budget) for budget in (100, 400, 1600, 4000)]
    assert errors[0] > 1
    assert errors[1] < errors[0] / 2
    assert errors[2] < errors[1] / 2
    assert errors[3] < errors[2] / 20
    together = error((nonsense, process, additive, trees), 400)
    assert together < 2 * error((process, additive, trees), 400)


def test_no_surrogates_are_refused():
    with pytest.raises(InvalidInputError, match="at least one surrogate"):
        Portfolio(())


def test_the_pairs_of_single_players_are_complete_as_soon_as_they_are_affordable():
    for n in (2, 3, 10, 31, 60):
        for pairs in (1, n // 2, n, 2 * n, 5 * n):
            counts = pairs_per_size(n, pairs, borders=True)
            assert counts.sum() == min(pairs, most_pairs(n))
            if 2 * n <= pairs and n > 2:
                assert counts[1] == n
            fewer = pairs_per_size(n, pairs - 1, borders=True)
            assert (fewer <= counts).all()


def test_a_data_game_gets_better_with_the_budget():
    """The game jumps at small coalitions, as accuracies do: more evaluations must not hurt."""
    rng = np.random.default_rng(4)
    skill, jump = rng.random(16), rng.normal(size=(16, 40))

    def accuracy(rows):
        few = np.exp(-rows.sum(axis=1))
        noise = np.sin(rows @ jump * 3).mean(axis=1)
        return 1 - np.exp(-(rows @ skill)) + 2 * few * noise

    game = TableGame(value_table(FunctionGame(accuracy, 16)))
    truth = shapley_of_table(game.table)
    errors = [
        np.mean(
            [
                (shapley(FunctionGame(game, 16), budget=b, seed=s).values - truth) ** 2
                for s in (0, 1)
            ]
        )
        for b in (100, 400, 1600)
    ]
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


@pytest.mark.slow
def test_more_pairs_than_the_process_holds_are_used_as_held_out_ones(monkeypatch, game):
    monkeypatch.setattr("coalitions.values.models.process.MAX_PAIRS", 50)
    pool = pool_of(game, 9, 120)
    (surrogate,) = process(pool)
    unseen = surrogate.fitted == surrogate.held_out
    assert unseen.sum() >= 70
    assert np.corrcoef(surrogate.held_out[unseen], pool.odd[unseen])[0, 1] > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("budget", [100, 500])
@pytest.mark.parametrize("kind", ["unanimity", "voting", "table"])
def test_intervals_cover(kind, budget):
    game = {
        "unanimity": UnanimityGame.random(14, 60, seed=1),
        "voting": VotingGame([5, 4, 4, 3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1], 16),
        "table": TableGame(np.random.default_rng(0).normal(size=1 << 12)),
    }[kind]
    n = game.n_players
    truth = shapley(game).values
    inside = []
    for seed in range(50):
        low, high = shapley(FunctionGame(game, n), "portfolio", budget, seed=seed).interval()
        inside.append((low <= truth) & (truth <= high))
    assert np.mean(inside) >= 0.90


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "seconds"), [(2000, 2.0), (10_000, 10.0)])
def test_the_estimator_itself_takes_seconds(budget, seconds):
    game = FunctionGame(UnanimityGame.random(30, 100, seed=1), 30)
    shapley(game, "portfolio", 200)  # compiles
    start = time.process_time()
    shapley(game, "portfolio", budget)
    assert time.process_time() - start < 1.5 * seconds  # the machine may be shared
