"""A shapiq game goes into our functions as it is, and ours go into shapiq's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from coalitions import (
    INDICES,
    AirportGame,
    Game,
    SynergyGraph,
    TableGame,
    VotingGame,
    all_coalitions,
    cached,
    interactions,
    shapley,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what it imports is not ours to mend
    shapiq = pytest.importorskip("shapiq")

pytestmark = pytest.mark.filterwarnings("ignore")

GAMES = {
    "voting": VotingGame([4, 3, 3, 2, 2, 1], 8),
    "airport": AirportGame([1, 2, 4, 4, 7, 9]),
    "graph": SynergyGraph(1.0 - np.eye(6)).game(),
    "table": TableGame(np.random.default_rng(0).normal(size=64)),
}


class Bosses(shapiq.Game):
    """A game of shapiq: player 0 needs one other."""

    def __init__(self, normalize):
        super().__init__(n_players=5, normalize=normalize, normalization_value=2.0)

    def value_function(self, coalitions):
        return 2.0 + (coalitions[:, 0] & coalitions[:, 1:].any(axis=1))


@pytest.mark.parametrize("normalize", [True, False])
def test_their_games_are_ours(normalize):
    game = Bosses(normalize)
    assert isinstance(game, Game)
    np.testing.assert_allclose(shapley(game).values, [0.8, 0.05, 0.05, 0.05, 0.05])
    sampled = shapley(cached(game), "permutation", 20)
    assert sampled.values.sum() == pytest.approx(1.0)
    assert sampled.evaluations <= 20


@pytest.mark.parametrize("name", sorted(GAMES))
def test_their_exact_computer_takes_our_games(name):
    game = GAMES[name]
    computed = shapiq.ExactComputer(game, n_players=6)("SV", 1)
    np.testing.assert_allclose(
        [computed[(i,)] for i in range(6)], shapley(game, "exact").values, atol=1e-9
    )


@pytest.mark.parametrize("approximator", ["KernelSHAP", "SVARM", "PermutationSamplingSV"])
@pytest.mark.parametrize("name", sorted(GAMES))
def test_their_approximators_take_our_games(approximator, name):
    game = cached(GAMES[name])
    method = getattr(shapiq.approximator, approximator)(n=6, random_state=0)
    found = method.approximate(2000, game)
    values = np.array([found[(i,)] for i in range(6)])
    truth = shapley(GAMES[name], "exact").values
    spread = np.ptp(GAMES[name](all_coalitions(6)))
    np.testing.assert_allclose(values, truth, atol=0.12 * spread)
    assert game.evaluations <= 64


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("index", sorted(INDICES))
def test_their_interaction_indices_are_ours(index, order):
    game = GAMES["table"]
    theirs = shapiq.ExactComputer(game, n_players=6)(index, order)
    ours = interactions(game, index, order)
    # Faithful indices are theirs by a least-squares fit with large weights for equalities.
    np.testing.assert_allclose(ours.values, [theirs[coalition] for coalition in ours], atol=1e-5)
