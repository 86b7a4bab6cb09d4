"""The k largest are right as often as claimed, and easy games stop early."""

from __future__ import annotations

import numpy as np
import pytest

from coalitions import (
    AirportGame,
    Estimate,
    FunctionGame,
    InvalidInputError,
    TableGame,
    VotingGame,
    shapley,
    top_k,
)
from coalitions.values.top import _top


def asked(game):
    """Return the game without its short cuts."""
    return FunctionGame(lambda rows: game(rows), game.n_players)


def right(truth, players):
    """Tell whether nobody left out is worth more than one of these."""
    left = np.delete(truth, list(players))
    return truth[list(players)].min() >= left.max() - 1e-12


def outcomes(game, truth, k, seeds, **options):
    found = [top_k(game, k, seed=seed, **options) for seed in range(seeds)]
    settled = [one for one in found if one.settled]
    wrong = sum(not right(truth, one.players) for one in settled)
    return len(settled), wrong, float(np.median([one.evaluations for one in found]))


@pytest.mark.slow
def test_a_hundred_seeds_are_right_at_least_as_often_as_claimed():
    rng = np.random.default_rng(3)
    rows = np.array([[mask >> k & 1 for k in range(8)] for mask in range(1 << 8)])
    table = np.tanh(rows @ rng.normal(0.3, 0.5, 8)) + 0.05 * rng.normal(size=1 << 8)
    truth = shapley(TableGame(table)).values
    game = asked(TableGame(table))
    settled, wrong, _ = outcomes(game, truth, 2, 100, budget=64, confidence=0.8)
    assert settled >= 50  # else it shows nothing
    assert wrong <= 20


def test_one_look_alone_settles_nothing_unless_it_is_exact():
    easy = FunctionGame(lambda rows: rows @ np.arange(30.0), 30)
    top = top_k(easy, 4, budget=100)
    assert not top.settled
    assert top.players == (29, 28, 27, 26)
    assert top_k(easy, 4, budget=400).settled


def test_the_method_has_a_reason_that_is_not_the_users():
    easy = FunctionGame(lambda rows: rows @ np.arange(16.0), 16)
    sampled = top_k(easy, 4).estimate
    assert (sampled.method, sampled.reason[:23]) == ("leverage", "smallest measured error")
    exact = top_k(FunctionGame(lambda rows: rows.any(axis=1), 4), 2).estimate
    assert (exact.method, exact.reason[:8]) == ("exact", "all 2^4 ")


def test_two_players_are_apart_if_their_difference_is_and_not_only_if_their_intervals_are():
    errors = np.full(30, 0.2)
    estimate = Estimate(np.where(np.arange(30) < 3, 1.1, 0.0), errors, 500, "portfolio")
    low, high = estimate.interval(1 - 2 * 0.05 / 30)
    assert low[:3].min() < high[3:].max()
    assert _top(estimate, 3, 0.95, 1).settled
    close = Estimate(np.where(np.arange(30) < 3, 0.9, 0.0), errors, 500, "portfolio")
    assert not _top(close, 3, 0.95, 1).settled


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 8])
@pytest.mark.parametrize(
    "hard", [VotingGame(np.arange(1, 21), 105), AirportGame(np.arange(1.0, 21) ** 2)]
)
def test_games_that_mislead_samplers_are_right_as_often_as_claimed(hard, k):
    truth = shapley(hard).values
    _, wrong, _ = outcomes(asked(hard), truth, k, 100, budget=240)
    assert wrong <= 5


def test_an_easy_game_stops_early_and_a_hopeless_one_says_so():
    easy = FunctionGame(lambda rows: rows @ np.arange(30.0) + np.sqrt(rows.sum(axis=1)), 30)
    top = top_k(easy, 4, budget=3000)
    assert top.settled
    assert top.players == (29, 28, 27, 26)
    assert top.named == ("29", "28", "27", "26")
    assert top.evaluations <= 400
    assert top.open == ()
    alike = FunctionGame(lambda rows: np.cos(7.0 * rows.sum(axis=1)), 20)  # all players are alike
    top = top_k(alike, 4, budget=300)
    assert not top.settled or not top.estimate.stderr.any()


def test_what_is_open_is_named():
    rng = np.random.default_rng(0)
    weights = np.array([9.0, 1.0, 1.001, *np.zeros(15)])
    noise = rng.normal(size=(18, 18, 18))
    game = FunctionGame(
        lambda rows: (
            rows @ weights + 0.01 * np.einsum("mi,mj,mk,ijk->m", *[rows.astype(float)] * 3, noise)
        ),
        18,
    )
    top = top_k(game, 2, budget=300)
    assert not top.settled
    assert 0 in top.players
    assert {1, 2} <= set(top.open)
    assert 0 not in top.open


def test_nothing_is_evaluated_twice_and_the_budget_holds():
    calls = []
    game = FunctionGame(lambda rows: calls.extend(map(tuple, rows)) or np.sin(rows.sum(axis=1)), 12)
    seen = []
    top = top_k(game, 3, budget=500, progress=lambda state: seen.append((state.done, state.total)))
    assert len(calls) == len(set(calls)) == top.evaluations <= 500
    assert seen[-1] == (top.evaluations, 500)


def test_an_exact_answer_is_certain_and_a_closed_form_costs_nothing():
    top = top_k(AirportGame([1, 2, 3, 4]), 2)
    assert (top.players, top.settled, top.confidence, top.evaluations) == ((3, 2), True, 1.0, 0)
    flat = top_k(FunctionGame(lambda rows: np.floor(rows.sum(axis=1) / 2), 6), 2)
    assert flat.settled  # a tie: any two are two of the largest
    assert flat.confidence == 1.0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"k": 0}, "k is 0"),
        ({"k": 4}, "ask for fewer than all"),
        ({"k": 1, "confidence": 1.0}, "the confidence is 1.0"),
        ({"k": 1, "budget": 0}, "the budget is 0"),
    ],
)
def test_wrong_arguments_are_refused(options, said):
    with pytest.raises(InvalidInputError, match=said):
        top_k(asked(AirportGame([1, 2, 3, 4])), **options)
