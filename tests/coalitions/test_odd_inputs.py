"""Odd inputs: one clear sentence, or the right number; never a quiet wrong one."""

from __future__ import annotations

import numpy as np
import pytest

import coalitions
from coalitions import (
    ESTIMATORS,
    CoalitionStructure,
    FunctionGame,
    GraphRestrictedGame,
    InvalidInputError,
    TableGame,
    adjusted_rand_index,
    banzhaf,
    beta_shapley,
    cached,
    core_membership,
    deviations,
    estimate_synergy,
    interactions,
    least_core,
    myerson,
    normalized,
    nucleolus,
    owen,
    payoffs,
    reported,
    restricted,
    semivalue,
    shapley,
    value_table,
)
from tests.coalitions.table_games import pairs_of

GRAND = CoalitionStructure.grand(4)
CONCEPTS = {
    "shapley": shapley,
    "banzhaf": banzhaf,
    "beta": lambda game: beta_shapley(game, 2, 1),
    "semivalue": lambda game: semivalue(game, [0.25] * 4),
    "pairs": pairs_of,
    "indices": interactions,
    "interaction": lambda game: interactions(game, "SII", coalitions=[[0]], budget=16),
    "myerson": lambda game: myerson(game, [(0, 1), (1, 2), (2, 3)]),
    "least core": least_core,
    "membership": lambda game: core_membership(game, np.ones(4)),
    "nucleolus": nucleolus,
    "owen": lambda game: owen(game, GRAND),
    "payoffs": lambda game: payoffs(game, GRAND),
    "deviations": lambda game: deviations(game, GRAND),
    "synergy": lambda game: estimate_synergy(game).matrix,
    "pair synergy": lambda game: estimate_synergy(game, "pairs").matrix,
    "table": value_table,
}
WRAPPERS = {
    "cached": cached,
    "normalized": normalized,
    "restricted": lambda game: restricted(game, [0]),
    "reported": lambda game: reported(game, print),
    "links": lambda game: GraphRestrictedGame(game, []),
}


class Answers:
    """A game of four players that answers whatever it is told to."""

    def __init__(self, answer, n_players=4):
        self.answer = answer
        self.n_players = n_players

    def __call__(self, rows):
        return self.answer(rows)


class Scribbles:
    """A game that spoils the rows it is given."""

    n_players = 4

    def __call__(self, rows):
        values = rows.sum(axis=1) ** 2.0
        rows[:] = False
        return values


@pytest.mark.parametrize("name", CONCEPTS)
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda rows: np.where(rows.sum(axis=1) == 2, np.nan, 1.0),
            r"the value of coalition \[.*\] is nan",
        ),
        (lambda rows: rows.sum(axis=1) * 1j, "complex"),
        (lambda rows: 1.0, "one value for each row"),
        (lambda rows: ["a"] * len(rows), "not numbers"),
    ],
)
def test_a_bad_answer_of_the_game_is_named(name, answer, message):
    with pytest.raises(InvalidInputError, match=message):
        CONCEPTS[name](Answers(answer))


@pytest.mark.parametrize("use", [*CONCEPTS.values(), *WRAPPERS.values()])
@pytest.mark.parametrize("no_game", [Answers(len, 4.0), Answers(len, None), len, None])
def test_what_is_no_game_is_told_so(use, no_game):
    with pytest.raises(InvalidInputError, match="a game needs n_players, a whole number"):
        use(no_game)


def test_a_name_is_that_of_a_file():
    with pytest.raises(InvalidInputError, match="abc: there is no such file"):
        shapley("abc")


@pytest.mark.parametrize("name", CONCEPTS)
def test_a_list_of_numbers_is_an_answer_and_rows_may_be_spoiled(name):
    def plain(rows):
        return [float(sum(row)) ** 2 for row in rows]

    expected = CONCEPTS[name](FunctionGame(lambda rows: rows.sum(axis=1) ** 2.0, 4))
    for game in (Answers(plain), Scribbles()):
        assert repr(CONCEPTS[name](game)) == repr(expected)


GAME = FunctionGame(lambda rows: np.sqrt(rows.sum(axis=1)), 5)
SAMPLED = {
    "shapley": lambda **o: shapley(GAME, "permutation", **({"budget": 100} | o)),
    "msr": lambda **o: banzhaf(GAME, method="msr", **({"budget": 100} | o)),
    "star": lambda **o: beta_shapley(GAME, 1, 2, method="star", **({"budget": 100} | o)),
    "chains": lambda **o: pairs_of(GAME, method="chains", **({"budget": 200} | o)),
    "draws": lambda **o: interactions(GAME, "SII", coalitions=[[0, 1]], **({"budget": 100} | o)),
}


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("budget", [0, -5, 2.5, "100", float("nan"), float("inf"), True, [3]])
def test_budgets_are_whole_numbers(name, budget):
    with pytest.raises(InvalidInputError, match=r"the budget is .*; it must be a whole number"):
        SAMPLED[name](budget=budget)


@pytest.mark.parametrize("name", SAMPLED)
def test_a_budget_of_all_the_world_is_not_drawn(name):
    SAMPLED[name](budget=10**12)


@pytest.mark.parametrize("name", ESTIMATORS.names())
def test_no_estimator_draws_for_ever(name):
    game = TableGame(np.arange(8.0))
    asked = FunctionGame(game, 3)
    found = shapley(asked, name, 10**12)
    assert found.evaluations <= 8
    np.testing.assert_allclose(found.values, [1, 2, 4], atol=0.1)


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("seed", [-1, 1.5, "abc", None, float("nan")])
def test_seeds_are_whole_numbers_or_generators(name, seed):
    with pytest.raises(InvalidInputError, match="the seed is"):
        SAMPLED[name](seed=seed)


@pytest.mark.parametrize("name", SAMPLED)
def test_a_generator_is_a_seed_everywhere(name):
    one, same = (SAMPLED[name](seed=np.random.default_rng(7)) for _ in range(2))
    one, same = (found if name == "interaction" else [found.values] for found in (one, same))
    np.testing.assert_array_equal(one[0], same[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shapley(GAME, 3), "the method is 3"),
        (lambda: shapley(GAME, batch_size=2.5), "the batch size is 2.5"),
        (lambda: shapley(GAME, target_error="small"), "the target error is 'small'"),
        (lambda: beta_shapley(GAME, "1", 1), "alpha is '1'"),
        (lambda: semivalue(GAME, "abc"), "sizes must be 5 finite numbers"),
        (lambda: core_membership(GAME, "abc"), "the payoff must be 5 finite numbers"),
        (lambda: interactions(GAME, "SII", coalitions=[0, 1]), "0 is not a coalition"),
        (lambda: interactions(GAME, "SII", coalitions=[["a"]]), "names 'a', who is not a player"),
        (lambda: myerson(GAME, [(0, 1, 2)]), r"\(0, 1, 2\) is not a link"),
        (lambda: myerson(GAME, [(0.5, 1)]), "a link names 0.5, who is not a player"),
        (lambda: myerson(GAME, None), "links are a graph or pairs of players, not None"),
        (lambda: GraphRestrictedGame(GAME, [(0.5, 1)]), "a link names 0.5, who is not a player"),
        (lambda: owen(GAME, [[0, 1], [2, 3, 9]]), "there is no player 9"),
        (lambda: payoffs(GAME, [[0, 1], [2, 3]]), "in no coalition"),
        (lambda: adjusted_rand_index([0, 1], [0, 1]), "a coalition is a list of players"),
    ],
)
def test_one_sentence_says_what_is_wrong(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_options_need_a_method():
    with pytest.raises(TypeError, match="name the method that tolerance is for: truncated"):
        shapley(GAME, tolerance=0.1)


def test_no_interactions_are_none():
    found = interactions(GAME, "SII", coalitions=[], budget=10)
    assert (len(found), found.evaluations) == (0, 0)


@pytest.mark.parametrize("scale", [1e6, 1e12, 1e300])
def test_a_beta_coin_without_doubt_is_the_fair_coin(scale, rng):
    game = TableGame(rng.normal(size=64))
    np.testing.assert_allclose(
        beta_shapley(game, scale, scale).values, banzhaf(game).values, atol=1e-5
    )


def test_semivalues_of_more_players_than_factorials_can_count():
    game = FunctionGame(lambda rows: rows @ np.arange(1300.0), 1300)
    np.testing.assert_allclose(beta_shapley(game, 1, 1, budget=8000).values, np.arange(1300.0))
    star = banzhaf(game, method="star", budget=8000)
    np.testing.assert_allclose(star.values, np.arange(1300.0))


def test_every_public_name_is_there():
    assert all(hasattr(coalitions, name) for name in coalitions.__all__)


# -- games that write into their rows, and values that are no numbers ------------------------------


@pytest.mark.parametrize("name", ESTIMATORS.names())
def test_an_estimator_has_its_own_rows_whatever_a_game_writes(name):
    tidy = FunctionGame(lambda rows: rows.sum(axis=1) ** 2.0, 4)
    for budget in (None, 200):
        found = shapley(Scribbles(), method=name, budget=budget).values
        assert found.tolist() == shapley(tidy, method=name, budget=budget).values.tolist()


def shifted(game):
    """Return a normalised game that has asked for its two ends already."""
    found = normalized(game)
    found(np.zeros((1, 4), np.bool_))
    return found


@pytest.mark.parametrize(
    "wrapped",
    [cached, normalized, shifted, lambda game: restricted(game, range(4)),
     lambda game: reported(game, print), lambda game: FunctionGame(game, 4)],
)  # fmt: skip
def test_a_game_does_not_change_the_rows_of_its_caller(wrapped):
    rows, game = np.ones((3, 4), np.bool_), wrapped(Scribbles())
    once = game(rows).tolist()
    assert rows.all()
    assert game(rows).tolist() == once


def test_the_rows_of_a_game_can_be_handed_to_others():
    seen = []
    shapley(FunctionGame(lambda rows: seen.append(rows.flags.writeable) or rows.sum(axis=1), 3))
    assert all(seen)  # PyTorch warns of arrays that are read-only, and Cython refuses them


TEXTS = [
    np.array(["1.5", "2"]),
    np.array([b"1.5", b"2"]),
    np.array(["1.5", 2], object),
    ["1", 2.0],
    ["1.5", "2"],
    [["1.5"], ["2"]],
    np.array(["2024-01-01", "2024-01-02"], "datetime64[D]"),
    np.array([1, 2], "timedelta64[s]"),
]


@pytest.mark.parametrize("answer", TEXTS, ids=str)
def test_texts_and_times_are_no_values_of_a_game(answer):
    with pytest.raises(InvalidInputError, match="values are texts or times, not numbers"):
        shapley(FunctionGame(lambda rows: answer, 1))
    for takes in ("row", "members"):
        with pytest.raises(InvalidInputError, match="values are texts or times, not numbers"):
            shapley(FunctionGame(lambda _: answer[0], 1, takes=takes))
    if np.ndim(answer) == 1:
        with pytest.raises(InvalidInputError, match="not numeric: it has texts or times"):
            TableGame(answer)


def test_objects_that_are_numbers_are_values_of_a_game():
    from decimal import Decimal
    from fractions import Fraction

    values = np.array([Fraction(1, 2), Decimal("1.5")], object)
    assert shapley(FunctionGame(lambda rows: values, 1)).values.tolist() == [1.0]
    assert TableGame([Fraction(1, 2), 2**70]).table.tolist() == [0.5, 2.0**70]
