"""The features of a row: what is known comes from the row, the rest from the background."""

from __future__ import annotations

import sys
import types
import warnings
from functools import partial

import numpy as np
import pytest

from coalitions import (
    Estimates,
    FunctionGame,
    InvalidInputError,
    MissingDependencyError,
    all_coalitions,
    feature_game,
    feature_games,
    interactions,
    shapley,
    to_shap,
    to_shapiq,
)

WEIGHTS = np.array([2.0, -1.0, 0.5, 3.0])


def bent(rows):
    """A model with interactions."""
    return np.tanh(rows @ WEIGHTS) + rows[:, 0] * rows[:, 3]


@pytest.fixture
def background(rng):
    return rng.normal(size=(7, 4))


def by_hand(x, background, coalition):
    return np.mean([bent(np.where(coalition, x, row)[None])[0] for row in background])


def test_the_values_are_the_formula(rng, background):
    x = rng.normal(size=4)
    expected = [by_hand(x, background, row) for row in all_coalitions(4)]
    np.testing.assert_allclose(feature_game(bent, x, background)(all_coalitions(4)), expected)


def test_a_linear_model_in_closed_form(rng, background):
    x = rng.normal(size=4)
    values = shapley(feature_game(lambda rows: rows @ WEIGHTS, x, background)).values
    np.testing.assert_allclose(values, WEIGHTS * (x - background.mean(axis=0)))


def test_a_single_row_is_a_baseline(rng):
    x, baseline = rng.normal(size=(2, 4))
    game = feature_game(bent, x, baseline)
    ends = game([[0] * 4, [1] * 4])
    np.testing.assert_array_equal(ends, bent(np.array([baseline, x])))


@pytest.mark.parametrize("batch_size", [1, 7, 20, 10_000])
def test_batches_change_nothing_but_the_calls(batch_size, rng, background):
    x, sizes = rng.normal(size=4), []

    def predict(rows):
        sizes.append(len(rows))
        return bent(rows)

    game = feature_game(predict, x, background, batch_size=batch_size)
    whole = feature_game(bent, x, background)(all_coalitions(4))
    np.testing.assert_allclose(game(all_coalitions(4)), whole, rtol=1e-13)
    assert max(sizes) <= max(7, batch_size)
    assert sum(sizes) == 16 * 7


def test_groups_come_and_go_together_and_the_rest_is_known(rng, background):
    x = rng.normal(size=4)
    game = feature_game(bent, x, background, groups={"ends": ["a", 3], "b": "b"}, names="abcd")
    assert game.labels == ("ends", "b")
    wide = np.array([[0, 0, 1, 0], [1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1]], bool)
    np.testing.assert_allclose(
        game(all_coalitions(2)), [by_hand(x, background, row) for row in wide]
    )


def test_many_rows(rng, background):
    rows = rng.normal(size=(3, 4))
    games = feature_games(bent, rows, background, names=iter("abcd"))
    for row, game in zip(rows, games, strict=True):
        alone = feature_game(bent, row, background)
        np.testing.assert_array_equal(game(all_coalitions(4)), alone(all_coalitions(4)))
        assert game.labels == ("a", "b", "c", "d")


def test_one_of_several_outputs(rng, background):
    x = rng.normal(size=4)

    def both(rows):
        return np.stack([rows.sum(axis=1), bent(rows)], axis=1)

    game = feature_game(both, x, background, output=1)
    plain = feature_game(bent, x, background)
    np.testing.assert_array_equal(game(all_coalitions(4)), plain(all_coalitions(4)))
    with pytest.raises(InvalidInputError, match="2 outputs; say which one"):
        feature_game(both, x, background)([1, 0, 0, 0])
    with pytest.raises(InvalidInputError, match="the output is 2, but the number of outputs is 2"):
        feature_game(both, x, background, output=2)([1, 0, 0, 0])
    with pytest.raises(InvalidInputError, match="the output is 3, but the number of outputs is 1"):
        feature_game(bent, x, background, output=3)([1, 0, 0, 0])


def test_a_frame_reaches_the_model_as_a_frame_with_its_kinds():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": [1.5, 2.5], "rooms": [2, 4], "town": ["Ulm", "Bonn"]})

    def predict(rows):
        assert list(rows.columns) == ["size", "rooms", "town"]
        assert rows["size"].dtype == np.float64
        assert rows["rooms"].dtype == np.int64
        return rows["size"] + rows["rooms"] + 10 * (rows["town"] == "Ulm")

    game = feature_game(predict, frame.iloc[0], frame)
    assert game.labels == ("size", "rooms", "town")
    assert game([[0, 0, 0], [1, 1, 1], [0, 0, 1]]).tolist() == [10, 13.5, 15]
    assert len(feature_games(predict, frame, frame)) == 2


def test_categories_reach_the_model_with_their_order():
    pandas = pytest.importorskip("pandas")
    sizes = pandas.CategoricalDtype(["S", "M", "L"], ordered=True)
    frame = pandas.DataFrame({"size": ["M", "S", None], "price": [1.0, 2.0, 3.0]})
    frame["size"] = frame["size"].astype(sizes)

    def predict(rows):
        assert rows["size"].dtype == sizes
        return rows["size"].cat.codes + 10 * rows["price"]

    game = feature_game(predict, ["L", 5.0], frame)
    codes = [1, 0, -1]
    assert game([[0, 0], [1, 0]]).tolist() == [20 + np.mean(codes), 22]
    assert len(feature_games(predict, frame, frame)) == 3
    with pytest.raises(InvalidInputError, match="the row has 'XL' as 'size', which is none of"):
        feature_game(predict, ["XL", 5.0], frame)


def test_a_model_of_scikit_learn(rng):
    pytest.importorskip("sklearn")
    from sklearn.ensemble import RandomForestClassifier

    X = rng.normal(size=(60, 5))
    model = RandomForestClassifier(20, random_state=0).fit(X, X[:, 0] + X[:, 1] > 0)
    x = np.array([2.0, 2.0, 0.0, 0.0, 0.0])
    game = feature_game(model.predict_proba, x, X[:20], output=1)
    values = shapley(game).values
    expected = model.predict_proba(x[None])[0, 1] - model.predict_proba(X[:20])[:, 1].mean()
    assert values.sum() == pytest.approx(expected)
    assert set(np.argsort(-np.abs(values))[:2]) == {0, 1}


X = np.zeros(4)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (partial(feature_game, "model", X, X), "it must be a function of rows"),
        (partial(feature_game, bent, [1, 2], X), "explain many rows by feature_games"),
        (partial(feature_game, bent, X, np.zeros((0, 4))), "expected rows of features"),
        (partial(feature_game, bent, X, X, names="abc"), "for 4 features"),
        (partial(feature_game, bent, X, X, groups=[[0, 1], [1]]), "is in two groups"),
        (partial(feature_game, bent, X, X, groups=[[]]), "has no features"),
        (partial(feature_game, bent, X, X, groups={1: [0], "1": [1]}), "two groups are named '1'"),
        (partial(feature_game, bent, X, X, groups={"a": 0}), r"the group 'a' is 0; .* as \[0\]"),
        (partial(feature_game, bent, X, X, groups=2), "groups are 2; expected lists"),
        (partial(feature_game, bent, X, X, output="a"), "the output is 'a'; it must be a whole"),
        (partial(feature_game, bent, X, X, groups={}), "no groups of features"),
        (partial(feature_game, bent, X, X, groups=[[4]]), "4 is no feature"),
        (partial(feature_game, bent, X, X, groups=[["size"]]), "'size' is no feature"),
        (partial(feature_game, bent, X, X, batch_size=0), "the batch size is 0"),
        (partial(feature_games, bent, X, X), r"expected \[rows, features\]"),
    ],
)
def test_wrong_input_is_said_in_a_sentence(make, said):
    with pytest.raises(InvalidInputError, match=said):
        make()


@pytest.mark.parametrize("answer", [np.zeros(3), np.array(["a"]), np.zeros((1, 1, 1))])
def test_a_model_that_answers_something_else_is_a_sentence(answer):
    with pytest.raises(InvalidInputError, match="expected one number for each row"):
        feature_game(lambda rows: answer, X, X)([1, 0, 0, 0])


@pytest.mark.filterwarnings("ignore")
def test_shapiq_takes_the_result(rng, background):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("shapiq")
    game = feature_game(bent, rng.normal(size=4), background)
    result = shapley(game)
    theirs = to_shapiq(result, game)
    assert [theirs[(k,)] for k in range(4)] == pytest.approx(result.values.tolist())
    assert theirs.baseline_value == pytest.approx(game([0] * 4)[0])
    assert (theirs.index, theirs.max_order, theirs.estimated) == ("SV", 1, False)


@pytest.mark.filterwarnings("ignore")
def test_shapiq_takes_many_results(rng, background):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("shapiq")
    games = feature_games(bent, rng.normal(size=(2, 4)), background)
    rows = Estimates([shapley(game) for game in games], games)
    first, second = to_shapiq(rows, games)
    assert [first[(k,)] for k in range(4)] == pytest.approx(rows.values[0].tolist())
    assert [second[(k,)] for k in range(4)] == pytest.approx(rows.values[1].tolist())
    (pairs,) = to_shapiq([interactions(games[0], "SII", order=2)], games[:1])
    assert pairs.index == "SII"
    with pytest.raises(InvalidInputError, match="2 results; give as many games"):
        to_shapiq(rows, games[:1])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("index", ["SII", "k-SII", "STII", "FSII", "FBII", "Moebius"])
def test_shapiq_takes_interactions_of_any_order_and_draws_them(index, rng, background):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shapiq = pytest.importorskip("shapiq")
    import matplotlib.pyplot as plt

    game = feature_game(bent, rng.normal(size=4), background)
    found = interactions(game, index, order=2)
    theirs = to_shapiq(found, game)
    assert (theirs.index, theirs.max_order, theirs.n_players) == (index, 2, 4)
    for players, value in found.values_of_order(2).items():
        assert theirs[players] == pytest.approx(value)
    plt.switch_backend("Agg")
    try:
        shapiq.network_plot(interaction_values=theirs, show=False)
    finally:
        plt.close("all")
    with pytest.raises(InvalidInputError, match="about 4 players"):
        to_shapiq(found, FunctionGame(lambda rows: rows.sum(axis=1), 3))


def test_shap_takes_the_result(rng, background):
    shap = pytest.importorskip("shap", reason="shap is not installed: pip install shap")
    games = feature_games(bent, rng.normal(size=(2, 4)), background, names="abcd")
    results = [shapley(game) for game in games]
    explanation = to_shap(results, games)
    assert isinstance(explanation, shap.Explanation)
    assert explanation.shape == (2, 4)
    np.testing.assert_array_equal(to_shap(Estimates(results), games).values, explanation.values)


@pytest.mark.filterwarnings("ignore")  # shap's own
def test_the_plots_of_shap_draw_it(rng, background, monkeypatch):
    shap = pytest.importorskip("shap", reason="shap is not installed: pip install shap")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    import matplotlib.pyplot as plt

    games = feature_games(bent, rng.normal(size=(8, 4)), background, names="abcd")
    results = [shapley(game) for game in games]
    plt.switch_backend("Agg")
    try:
        shap.plots.waterfall(to_shap(results[0], games[0]), show=False)
        assert any("a" in label.get_text() for label in plt.gca().get_yticklabels())
        plt.close("all")
        shap.plots.beeswarm(to_shap(results, games), show=False)
        assert plt.gca().collections
    finally:
        plt.close("all")


def test_what_shap_is_given(rng, background, monkeypatch):
    """The arguments, for machines without shap; the test above is for those with it."""
    shap = types.ModuleType("shap")
    shap.__spec__ = types.SimpleNamespace()
    shap.Explanation = lambda **given: given
    monkeypatch.setitem(sys.modules, "shap", shap)
    rows = rng.normal(size=(2, 4))
    games = feature_games(bent, rows, background, names="abcd")
    results = [shapley(game) for game in games]
    one = to_shap(results[0], games[0])
    np.testing.assert_array_equal(one["values"], results[0].values)
    np.testing.assert_array_equal(one["data"], rows[0])
    assert one["base_values"] + one["values"].sum() == pytest.approx(bent(rows)[0])
    many = to_shap(results, games)
    assert many["values"].shape == many["error_std"].shape == many["data"].shape == (2, 4)
    assert many["base_values"].shape == (2,)
    assert many["feature_names"] == ["a", "b", "c", "d"]
    grouped = feature_game(bent, rows[0], background, groups=[[0, 1], [2, 3]])
    assert to_shap(shapley(grouped), grouped)["data"] is None
    with pytest.raises(InvalidInputError, match="give as many games"):
        to_shap(results, games[:1])
    with pytest.raises(InvalidInputError, match="the game has 2 players"):
        to_shap(results[0], grouped)


def test_a_package_that_is_missing_is_named(monkeypatch, background):
    monkeypatch.setitem(sys.modules, "shap", None)
    game = feature_game(bent, X, background)
    with pytest.raises(MissingDependencyError, match="not installed: pip install shap"):
        to_shap(shapley(game), game)
