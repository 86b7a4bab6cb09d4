from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coalitions import (
    CoalitionStructure,
    InfeasibleError,
    InvalidInputError,
    TableGame,
    VotingGame,
    least_core,
    nucleolus,
    payoffs,
    verify_nucleolus,
)
from tests.coalitions.table_games import mask, relabelled, subsets, tables
from tests.strategies import synergy_graphs


def bankruptcy(estate, claims):
    n = len(claims)
    return TableGame(
        [
            max(0, estate - sum(claims[k] for k in range(n) if not code >> k & 1))
            for code in range(1 << n)
        ]
    )


def runway(costs):
    """Return the airport game with costs as negative values."""
    n = len(costs)
    return TableGame(
        [-max((costs[k] for k in range(n) if code >> k & 1), default=0) for code in range(1 << n)]
    )


@pytest.mark.parametrize(
    ("estate", "shares"),
    [(100, [100 / 3] * 3), (200, [50, 75, 75]), (300, [50, 100, 150])],
)
def test_the_three_wives_of_the_talmud(estate, shares):
    """Aumann and Maschler 1985: the Mishnah's divisions are the nucleoli of bankruptcy games."""
    np.testing.assert_allclose(nucleolus(bankruptcy(estate, [100, 200, 300])).payoff, shares)


def littlechild(costs):
    """Littlechild 1974: the nucleolus of an airport game, for ascending costs."""
    n, done, rate, shares = len(costs), 0, 0.0, []
    cost = [0, *costs]
    while done < n:
        choices = [
            ((cost[i] - cost[done] + rate) / (i - done + 1 if i < n else n - done), i)
            for i in range(done + 1, n + 1)
        ]
        rate = min(choice[0] for choice in choices)
        last = max(i for share, i in choices if share <= rate + 1e-12)
        shares += [rate] * (last - done)
        done = last
    return shares


@pytest.mark.parametrize("costs", [[12, 20, 33], [1, 2, 3, 4], [5, 5, 5], [1, 10, 11, 30, 31, 50]])
def test_airport_fees_of_littlechild(costs):
    np.testing.assert_allclose(nucleolus(runway(costs)).payoff, np.negative(littlechild(costs)))


def test_airport_by_hand():
    np.testing.assert_allclose(nucleolus(runway([12, 20, 33])).payoff, [-6, -7, -20])


def test_the_glove_market():
    np.testing.assert_allclose(
        nucleolus(TableGame([0, 0, 0, 1, 0, 1, 0, 1])).payoff, [1, 0, 0], atol=1e-12
    )


def test_prenucleolus_and_nucleolus_differ_where_players_could_lose():
    """Game of the CoopGame package: v(12) = 10, v(N) = 2, all else nothing."""
    game = TableGame([0, 0, 0, 10, 0, 0, 0, 2])
    np.testing.assert_allclose(nucleolus(game).payoff, [1, 1, 0], atol=1e-12)
    np.testing.assert_allclose(nucleolus(game, domain="preimputations").payoff, [3, 3, -4])


def sorted_excesses(table, shares):
    n = len(shares)
    return sorted(
        (
            table[mask(part)] - table[0] - sum(shares[i] for i in part)
            for part in subsets(range(n))
            if 0 < len(part) < n
        ),
        reverse=True,
    )


@settings(max_examples=80)
@given(tables(max_players=5), st.sampled_from(["imputations", "preimputations"]), st.data())
def test_nothing_is_lexicographically_better(table, domain, data):
    """Schmeidler 1969, the definition, against points nearby and far away."""
    game = TableGame(table)
    n = game.n_players
    try:
        found = nucleolus(game, domain=domain)
    except InfeasibleError:
        alone = table[1 << np.arange(n)] - table[0]
        assert domain == "imputations"
        assert alone.sum() > table[-1] - table[0]
        return
    assert verify_nucleolus(game, found).holds
    assert found.payoff.sum() == pytest.approx(table[-1] - table[0], abs=1e-8)
    seed = data.draw(st.integers(0, 1000))
    rng = np.random.default_rng(seed)
    best = sorted_excesses(table, found.payoff)
    for size in (1e-3, 1.0):
        step = rng.normal(size=n) * size
        other = found.payoff + step - step.mean()
        if domain == "imputations" and (other < table[1 << np.arange(n)] - table[0]).any():
            continue
        for mine, theirs in zip(best, sorted_excesses(table, other), strict=True):
            if abs(mine - theirs) > 1e-9:
                assert mine < theirs
                break


@settings(max_examples=30)
@given(tables(min_players=2, max_players=5))
def test_prenucleolus_lies_in_the_least_core(table):
    found = nucleolus(TableGame(table), domain="preimputations")
    epsilon = least_core(TableGame(table)).epsilon
    assert found.stages[0].excess == pytest.approx(epsilon, abs=1e-7)
    assert sorted_excesses(table, found.payoff)[0] == pytest.approx(epsilon, abs=1e-7)


@settings(max_examples=30)
@given(tables(min_players=2, max_players=5), st.integers(0, 5))
def test_relabelled_game_gives_relabelled_shares(table, seed):
    order = np.random.default_rng(seed).permutation(len(table).bit_length() - 1)
    moved = nucleolus(TableGame(relabelled(table, order.tolist())), domain="preimputations")
    here = nucleolus(TableGame(table), domain="preimputations")
    np.testing.assert_allclose(moved.payoff, here.payoff[order], atol=1e-7)


@settings(max_examples=30)
@given(tables(max_players=4), st.floats(0.5, 2), st.integers(-4, 4))
def test_prenucleolus_is_covariant(table, factor, gift):
    """A gift to player 0 and another unit of account change nothing else."""
    with_gift = factor * table + np.where(np.arange(len(table)) & 1, float(gift), 0.0)
    here = factor * nucleolus(TableGame(table), domain="preimputations").payoff
    here[0] += gift
    moved = nucleolus(TableGame(with_gift), domain="preimputations").payoff
    np.testing.assert_allclose(moved, here, atol=1e-6)


@settings(max_examples=30)
@given(synergy_graphs(min_players=2, max_players=5, scales=(1.0,)))
def test_on_graphs_the_prenucleolus_is_the_shapley_value(graph):
    """Deng and Papadimitriou 1994: both are half of the synergies."""
    found = nucleolus(graph.game(), domain="preimputations")
    truth = payoffs(graph, CoalitionStructure.grand(graph.n_players))
    np.testing.assert_allclose(found.payoff, truth, atol=1e-7)


@pytest.mark.parametrize("domain", ["imputations", "preimputations"])
@pytest.mark.parametrize("kind", ["random", "integers", "voting", "convex"])
def test_agrees_with_coopgame(domain, kind):
    coopgame = pytest.importorskip("coopgame")
    rng = np.random.default_rng(7)
    for _ in range(8):
        n = int(rng.integers(2, 8))
        bits = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
        if kind == "random":
            table = rng.random(1 << n)
        elif kind == "integers":
            table = rng.integers(-5, 6, 1 << n).astype(float)
        elif kind == "voting":
            weights = rng.integers(1, 9, n)
            table = (bits @ weights > weights.sum() / 2).astype(float)
        else:
            table = (bits @ rng.integers(1, 6, n)) ** 2.0
        table[0], table[-1] = 0, max(table[-1], table[1 << np.arange(n)].sum())
        truth = coopgame.nucleolus(coopgame.Game(table[1:].tolist()), domain[:-1])["allocation"]
        found = nucleolus(TableGame(table), domain=domain)
        np.testing.assert_allclose(found.payoff, truth, atol=1e-7)
        assert verify_nucleolus(TableGame(table), found).holds


def twelve_players(kind):
    rng = np.random.default_rng(3)
    n = 12
    bits = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
    if kind == "random":
        table = rng.random(1 << n)
        table[-1] = n
    elif kind == "voting":
        weights = rng.integers(1, 9, n)
        table = (bits @ weights > weights.sum() / 2).astype(float)
    elif kind == "pairs":
        table = ((bits @ np.triu(rng.integers(0, 6, (n, n)), 1)) * bits).sum(axis=1).astype(float)
    else:
        costs = np.sort(rng.integers(1, 40, n))
        table = -(bits * costs).max(axis=1).astype(float)
    table[0] = 0
    return TableGame(table)


@pytest.mark.parametrize("kind", ["random", "voting", "pairs", "airport"])
def test_twelve_players_take_less_than_a_second(kind):
    game = twelve_players(kind)
    nucleolus(TableGame([0, 1, 1, 3]))  # SciPy is loaded
    start = time.process_time()
    found = nucleolus(game)
    assert time.process_time() - start < 1
    assert verify_nucleolus(game, found).holds


def test_one_player_and_a_game_of_nothing():
    assert nucleolus(TableGame([3, 5])).payoff.tolist() == [2]
    assert verify_nucleolus(TableGame([3, 5]), nucleolus(TableGame([3, 5]))).holds
    np.testing.assert_allclose(nucleolus(TableGame(np.zeros(16))).payoff, 0, atol=1e-12)


def broken(claim, number, **changes):
    stages = list(claim.stages)
    stages[number] = dataclasses.replace(stages[number], **changes)
    return dataclasses.replace(claim, stages=tuple(stages))


def test_the_verifier_finds_every_kind_of_lie():
    game = bankruptcy(200, [100, 200, 300])
    claim = nucleolus(game)
    assert verify_nucleolus(game, claim).holds
    first = claim.stages[0]
    lies = {
        "do not add up": dataclasses.replace(claim, values=claim.payoff + 1),
        "not one finite number": dataclasses.replace(claim, values=claim.payoff[:2]),
        "less than alone": dataclasses.replace(claim, values=np.array([-10.0, 100, 110])),
        "another excess": dataclasses.replace(claim, values=claim.payoff + np.array([2, -1, -1])),
        "more than one point": dataclasses.replace(claim, stages=claim.stages[:-1]),
        "not positive": broken(claim, 0, weights=tuple(-w for w in first.weights)),
        "one weight for each of its coalitions": broken(claim, 0, weights=()),
        "one weight for each of its floor": broken(claim, 0, floor_players=(0,)),
        "do not exist": broken(claim, 0, coalitions=((0, 9), *first.coalitions[1:])),
        "not balanced": broken(
            claim, 0, coalitions=first.coalitions[:1], weights=first.weights[:1]
        ),
        "gets more than alone": broken(claim, 0, floor_players=(0,), floor_weights=(1.0,)),
    }
    for reason, lie in lies.items():
        verdict = verify_nucleolus(game, lie)
        assert not verdict.holds, reason
        assert reason in verdict.reason


def test_the_verifier_refutes_other_points_of_the_core():
    # Every division of a pair's unit is in the core; only the equal one is the nucleolus. The
    # claim is consistent, but a coalition with a larger excess was left out.
    game = TableGame([0, 0, 0, 1])
    claim = nucleolus(game)
    np.testing.assert_allclose(claim.payoff, 0.5)
    lie = dataclasses.replace(
        broken(claim, 0, coalitions=((0,),), weights=(1.0,), excess=-0.9),
        values=np.array([0.9, 0.1]),
    )
    assert not verify_nucleolus(game, lie).holds
    floors = dataclasses.replace(
        broken(claim, 0, floor_players=(0,), floor_weights=(1.0,)), domain="preimputations"
    )
    assert "floors" in verify_nucleolus(game, floors).reason
    missing = TableGame([0, 0, 0, 1, 0, 1, 1, 1])
    stage = dataclasses.replace(
        claim.stages[0], excess=0.0, coalitions=((0,), (1,), (2,)), weights=(1.0, 1.0, 1.0)
    )
    lie = dataclasses.replace(
        claim, values=np.full(3, 1 / 3), stages=(dataclasses.replace(stage, excess=-1 / 3),)
    )
    assert "has a larger excess" in verify_nucleolus(missing, lie).reason


def test_no_imputation_and_bad_domains_get_a_sentence():
    with pytest.raises(InfeasibleError, match="alone the players get 2 in all, together 1"):
        nucleolus(TableGame([0, 1, 1, 1]))
    with pytest.raises(InvalidInputError, match="'imputations' or 'preimputations'"):
        nucleolus(VotingGame([1, 1], 2), domain="all")
