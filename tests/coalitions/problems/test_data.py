"""Data is worth what a model learns from it; nearest neighbours have a closed form."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import pytest

from coalitions import (
    InvalidInputError,
    all_coalitions,
    banzhaf,
    beta_shapley,
    data_game,
    ensemble_game,
    knn_game,
    knn_shapley,
    leave_one_out,
    shapley,
)


def blobs(rng, n, classes=2):
    y = np.arange(n) % classes
    return rng.normal(size=(n, 2)) + 3 * np.stack([y == 1, y == 2], axis=1), y


@pytest.fixture
def points(rng):
    return (*blobs(rng, 8), *blobs(rng, 20))


class Mean:
    """A model without any option: it answers with the mean."""

    def fit(self, X, y):
        if len(y) < 2:
            raise ValueError("two points are needed")
        self.mean = y.mean()

    def predict(self, X):
        return np.full(len(X), self.mean)


class Centroids:
    """The class with the nearest mean: quick, so that many coalitions can be tried."""

    def fit(self, X, y):
        self.classes = np.unique(y)
        self.means = np.array([X[y == each].mean(axis=0) for each in self.classes])

    def predict(self, X):
        distances = ((X[:, None] - self.means) ** 2).sum(axis=2)
        return self.classes[distances.argmin(axis=1)]


def logistic(**options):
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(**options)


def test_a_coalition_is_worth_the_accuracy_of_its_model(points):
    X, y, X_test, y_test = points
    row = np.array([1, 1, 0, 0, 1, 1, 0, 0], bool)
    expected = logistic().fit(X[row], y[row]).score(X_test, y_test)
    assert data_game(logistic(), *points)(row).tolist() == [expected]


def test_groups_are_players_in_the_order_of_their_names(points):
    owners = list("bbaabbaa")
    game = data_game(Centroids(), *points, units="groups", groups=owners, names=["a", "b", "c"])
    by_point = data_game(Centroids(), *points, units="groups", groups=owners)
    assert (game.labels, by_point.labels) == (("a", "b", "c"), ("b", "a"))
    assert game([[1, 0, 1], [0, 1, 0]]).tolist() == by_point([[0, 1], [1, 0]]).tolist()
    with pytest.raises(InvalidInputError, match="'b' is not among the names"):
        data_game(Centroids(), *points, units="groups", groups=owners, names=["a"])


def test_too_little_to_learn_from_is_answered_by_what_is_most_frequent(points):
    y_test = points[3]
    game = data_game(logistic(), *points)
    assert game([1, 0, 1, 0, 0, 0, 0, 0]).tolist() == [np.mean(y_test == 0)]  # one class
    assert game([0, 1, 0, 1, 0, 0, 0, 0]).tolist() == [np.mean(y_test == 1)]
    assert game([0] * 8).tolist() == [np.mean(y_test == 0)]  # the first of two equal ones
    assert data_game(logistic(), *points, empty=0.25)([0] * 8).tolist() == [0.25]
    small = data_game(logistic(), *points, least_points=4)
    assert small([1, 1, 1, 0, 0, 0, 0, 0]).tolist() == [np.mean(y_test == 0)]


def test_regression(rng):
    X, X_test = rng.normal(size=(6, 2)), rng.normal(size=(5, 2))
    y, y_test = X @ [1.0, 2.0], X_test @ [1.0, 2.0]
    game = data_game(Mean(), X, y, X_test, y_test, metric="r2", least_points=2)

    def expected(chosen):
        residual = ((y_test - y[chosen].mean()) ** 2).sum()
        return 1 - residual / ((y_test - y_test.mean()) ** 2).sum()

    rows = [[0] * 6, [1] + [0] * 5, [1, 1, 0, 0, 0, 1]]
    np.testing.assert_allclose(game(rows), [expected(range(6)), expected([0]), expected([0, 1, 5])])
    with pytest.raises(InvalidInputError, match=r"two points are needed.*least_points"):
        data_game(Mean(), X, y, X_test, y_test, metric="r2")([1, 0, 0, 0, 0, 0])


def test_groups_are_players(points):
    groups = ["ulm", "ulm", "bonn", "bonn", "ulm", "ulm", "bonn", "bonn"]
    game = data_game(Centroids(), *points, units="groups", groups=groups)
    assert game.labels == ("ulm", "bonn")
    single = data_game(Centroids(), *points)
    assert game([1, 0]).tolist() == single([1, 1, 0, 0, 1, 1, 0, 0]).tolist()


def test_every_semivalue_and_leave_one_out(points):
    game = data_game(Centroids(), *points)
    ends = game([[1] * 8, [0] * 8])
    assert shapley(game).values.sum() == pytest.approx(ends[0] - ends[1])
    for result in (banzhaf(game, budget=100), beta_shapley(game, 4, 1, budget=100)):
        assert np.isfinite(result.values).all()
    one = leave_one_out(game)
    rows = ~np.eye(8, dtype=bool)
    np.testing.assert_array_equal(one.values, ends[0] - game(rows))
    assert (one.evaluations, one.stderr.max()) == (9, 0)


def test_a_wrong_label_is_worth_least(rng):
    X, y = blobs(rng, 12)
    y[3] = 1 - y[3]
    game = data_game(Centroids(), X, y, *blobs(rng, 60))
    assert shapley(game).values.argmin() == 3


def test_a_model_that_draws_has_one_value_for_a_coalition(points):
    pytest.importorskip("sklearn")
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    forest = make_pipeline(StandardScaler(), RandomForestClassifier(3))
    game = data_game(forest, *points)
    rows = all_coalitions(8)[-6:]
    np.testing.assert_array_equal(game(rows), game(rows[::-1])[::-1])
    assert forest.get_params()["randomforestclassifier__random_state"] is None  # it is the user's


def test_warm_starts_find_the_same_and_do_not_depend_on_the_order(rng):
    X, y = blobs(rng, 12, classes=3)
    test = blobs(rng, 60, classes=3)
    cold = data_game(logistic(tol=1e-8, max_iter=1000), X, y, *test)
    warm = data_game(logistic(tol=1e-8, max_iter=1000), X, y, *test, warm_start=True)
    rows = np.random.default_rng(1).random((10, 12)) < 0.6
    np.testing.assert_allclose(warm(rows), cold(rows), atol=1e-9)
    np.testing.assert_array_equal(warm(rows[::-1])[::-1], warm(rows))


def test_a_forest_is_not_started_warm(points):
    pytest.importorskip("sklearn")
    from sklearn.ensemble import RandomForestClassifier

    with pytest.raises(InvalidInputError, match="cannot be started from coefficients"):
        data_game(RandomForestClassifier(2), *points, warm_start=True)
    with pytest.raises(InvalidInputError, match="cannot be started from coefficients"):
        data_game(Mean(), *points, warm_start=True)


def test_frames_and_sparse_matrices_are_cut_by_rows(points):
    pandas = pytest.importorskip("pandas")
    from scipy.sparse import csr_array

    X, y, X_test, y_test = points
    rows = all_coalitions(8)[100:104]
    plain = data_game(logistic(), *points)(rows)
    frames = data_game(
        logistic(), pandas.DataFrame(X), pandas.Series(y), pandas.DataFrame(X_test), y_test
    )
    np.testing.assert_allclose(frames(rows), plain)
    sparse = data_game(logistic(), csr_array(X), y, csr_array(X_test), y_test)
    np.testing.assert_allclose(sparse(rows), plain)


def test_wrong_input_is_said_in_a_sentence(points):
    X, y, X_test, y_test = points
    make = partial(data_game, Mean(), X, y, X_test, y_test)
    for call, said in [
        (partial(data_game, "model", *points), "which has no fit"),
        (partial(data_game, Mean(), X, y[:3], X_test, y_test), "y has shape"),
        (partial(make, units="rows"), "it must be one of points, groups"),
        (partial(make, units="groups"), "needs groups"),
        (partial(make, groups=y), "needs groups"),
        (partial(make, units="groups", groups=[1]), "1 groups for 8 points"),
        (partial(make, metric="acuracy"), "did you mean 'accuracy'"),
        (partial(make, least_points=0), "least_points is 0"),
        (partial(make, empty="x"), "empty is 'x'; it must be a finite number"),
        (partial(data_game, Mean(), X, y / 3, X_test, y_test), "say metric='r2'"),
        (partial(data_game, Mean(), X, y, X_test, y_test * 0, metric="r2"), "are 0, 20 times"),
        (
            partial(data_game, Mean(), X, y, X_test[:1], y_test[:1], metric="r2"),
            "1 times; r2 needs",
        ),
        (partial(data_game, Mean(), X, [*"abcdabcd"], X_test, y_test, metric="r2"), "are numbers"),
    ]:
        with pytest.raises(InvalidInputError, match=said):
            call()


@pytest.mark.parametrize("k", [1, 2, 3, 9, 20])
def test_neighbours_in_closed_form_are_what_brute_force_says(k, rng):
    X, X_test = rng.integers(0, 4, (9, 2)), rng.integers(0, 4, (6, 2))  # many equal distances
    y, y_test = rng.integers(0, 3, 9), rng.integers(0, 3, 6)
    game = knn_game(X, y, X_test, y_test, k)
    plain = shapley(lambda_of(game), "exact")
    np.testing.assert_allclose(knn_shapley(X, y, X_test, y_test, k), plain.values, atol=1e-12)
    np.testing.assert_array_equal(shapley(game).values, game.shapley_values())


def lambda_of(game):
    """Return the game without its closed form."""
    from coalitions import FunctionGame

    return FunctionGame(lambda rows: game(rows), game.n_players)


def test_the_game_of_neighbours_by_hand():
    game = knn_game([[0.0], [1.0], [5.0]], list("aba"), [[0.2]], ["a"], k=2)
    assert game(all_coalitions(3)).tolist() == [0, 0.5, 0, 0.5, 0.5, 1, 0.5, 0.5]


def test_parts_of_the_test_points_change_nothing(rng, monkeypatch):
    X, y = blobs(rng, 30)
    test = blobs(rng, 17)
    whole = knn_shapley(X, y, *test)
    monkeypatch.setattr("coalitions.problems.neighbours.CELLS_PER_PART", 30 * 5)
    np.testing.assert_allclose(knn_shapley(X, y, *test), whole, rtol=1e-12)


def test_ten_thousand_points_take_seconds(rng):
    X, y = blobs(rng, 10_000, classes=3)
    test = blobs(rng, 300, classes=3)
    start = time.process_time()
    values = knn_shapley(X, y, *test)
    assert time.process_time() - start < 5
    # Efficiency: the values add up to what five neighbours say of all points.
    assert sum(values) == pytest.approx(knn_game(X, y, *test)(np.ones((1, 10_000), bool))[0])


def test_wrong_neighbours_are_a_sentence():
    for arguments, said in [
        (([[0, 1]], [0], [[0]], [0]), "X has 2 features, X_test 1"),
        (([[0]], [0, 1], [[0]], [0]), "y has shape"),
        (([[0]], [0], [[0]], [0], 0), "k is 0"),
        (([[np.nan]], [0], [[0]], [0]), "finite numbers"),
    ]:
        with pytest.raises(InvalidInputError, match=said):
            knn_shapley(*arguments)


def test_models_vote():
    said = [["a", "b", "c"], ["a", "a", "c"], ["b", "a", "a"]]
    game = ensemble_game(said, ["a", "a", "a"], names=["x", "y", "z"])
    # all: a, a, c (two of three); x and y: a, a (of equal ones the first), c.
    np.testing.assert_allclose(game([[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]]),
                               [2 / 3, 2 / 3, 2 / 3, 0])  # fmt: skip


def test_models_average_probabilities_and_numbers():
    sure = [[[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.8], [0.1, 0.9]]]
    game = ensemble_game(sure, [0, 1], empty=0.5)
    assert game([[1, 0], [0, 1], [1, 1], [0, 0]]).tolist() == [1, 0.5, 1, 0.5]
    game = ensemble_game([[1.0, 2.0], [3.0, 6.0]], [2.0, 4.0], metric="r2")
    assert game([[1, 1], [1, 0]]).tolist() == [1, -1.5]


def test_wrong_ensembles_are_a_sentence():
    for call, said in [
        (partial(ensemble_game, [[1, 2]], [1]), "expected \\(models, rows\\)"),
        (partial(ensemble_game, [[[0.5], [0.5]]], [0, 1]), "probabilities of 1 classes"),
        (partial(ensemble_game, [[1, 2], [1]], [1, 2]), "predictions must be a table whose rows"),
        (partial(ensemble_game, [["a", "b"]], ["a", "b"], metric=max), "only numbers can"),
        (partial(ensemble_game, [[1, 2]], [1, 2], empty="x"), "empty is 'x'"),
        (partial(ensemble_game, [[np.inf, 1.0]], [0.0, 1.0], metric="r2"), "finite numbers"),
    ]:
        with pytest.raises(InvalidInputError, match=said):
            call()
