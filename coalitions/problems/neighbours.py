"""Data values for nearest neighbours, in closed form: 10 000 points in seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coalitions.checks import whole_number
from coalitions.errors import InvalidInputError
from coalitions.game import BoolMatrix, FloatMatrix, FloatVector, IntMatrix
from coalitions.problems.named import NamedGame, names_of, numbers
from coalitions.values.estimate import Estimate

CELLS_PER_PART = 1 << 22
"""Distances are computed for parts of the test points of at most this many cells."""


def knn_shapley(
    X: ArrayLike, y: ArrayLike, X_test: ArrayLike, y_test: ArrayLike, k: int = 5
) -> Estimate:
    r"""Return the exact Shapley value of each training point for k nearest neighbours.

    With the points in order of their distance to a test point :math:`(x, t)`, the farthest last
    [Jia2019b]_ (Theorem 1):

    .. math::
        \phi_{\alpha_N} &= \frac{\min(k, N)}{k N} [y_{\alpha_N} = t] \\
        \phi_{\alpha_i} &= \phi_{\alpha_{i+1}}
            + \frac{[y_{\alpha_i} = t] - [y_{\alpha_{i+1}} = t]}{k} \frac{\min(k, i)}{i}

    and the mean over all test points. See `knn_game` for the game.

    Parameters
    ----------
    X, y
        Training points [N, d] and their classes.
    X_test, y_test
        Test points and their classes.
    k
        How many neighbours are asked. Of equally distant ones the first counts as nearer.

    Examples
    --------
    >>> knn_shapley([[0], [1], [5]], ["a", "b", "a"], [[0.2]], ["a"], k=1).values.round(3)
    array([ 0.833, -0.167,  0.333])
    """
    game = knn_game(X, y, X_test, y_test, k)
    return Estimate.exact(game.shapley_values(), game.labels, 0, "the game has a closed form")


def knn_game(
    X: ArrayLike, y: ArrayLike, X_test: ArrayLike, y_test: ArrayLike, k: int = 5
) -> KnnGame:
    r"""Return the game in which training points are worth what their neighbours' votes are.

    .. math:: v(S) = \frac{1}{k} \sum_{i \text{ among the } \min(k, |S|) \text{ nearest of } S}
        [y_i = t]

    on average over the test points. The parameters are those of `knn_shapley`.
    """
    points, tests = numbers(X, "X", 2), numbers(X_test, "X_test", 2)
    classes, wanted = np.asarray(y), np.asarray(y_test)
    if points.shape[1] != tests.shape[1]:
        raise InvalidInputError(
            f"X has {points.shape[1]} features, X_test {tests.shape[1]}; they must be the same"
        )
    for name, labels, rows in (("y", classes, points), ("y_test", wanted, tests)):
        if labels.shape != (len(rows),):
            raise InvalidInputError(
                f"{name} has shape {labels.shape}; expected one class for each of {len(rows)} rows"
            )
    return KnnGame(points, classes, tests, wanted, whole_number(k, "k", 1))


class KnnGame(NamedGame):
    """The game of nearest neighbours; see `knn_game`."""

    def __init__(
        self,
        points: FloatMatrix,
        classes: Any,  # noqa: ANN401 (labels of any kind)
        tests: FloatMatrix,
        wanted: Any,  # noqa: ANN401
        k: int,
    ) -> None:
        self.points, self.classes = points, classes
        self.tests, self.wanted = tests, wanted
        self.k = k
        self.labels = names_of(None, len(points), "points")

    def shapley_values(self) -> FloatVector:
        """Return the values in closed form, see `knn_shapley`."""
        n, k = self.n_players, self.k
        position = np.arange(1, n)
        factor = np.minimum(k, position) / (k * position)
        total = np.zeros(n)
        for tests, wanted in self._parts():
            order = self._order(tests)
            right = (self.classes[order] == wanted[:, None]).astype(np.float64)
            values = np.empty_like(right)
            values[:, -1] = right[:, -1] * min(k, n) / (k * n)
            steps = (right[:, :-1] - right[:, 1:]) * factor
            values[:, :-1] = values[:, -1:] + np.cumsum(steps[:, ::-1], axis=1)[:, ::-1]
            total += np.bincount(order.ravel(), values.ravel(), minlength=n)
        return total / len(self.tests)

    def _values(self, rows: BoolMatrix) -> FloatVector:
        total = np.zeros(len(rows))
        for tests, wanted in self._parts():
            for order, target in zip(self._order(tests), wanted, strict=True):
                there = rows[:, order]
                asked = there & (np.cumsum(there, axis=1) <= self.k)
                total += (asked & (self.classes[order] == target)).sum(axis=1)
        return total / (self.k * len(self.tests))

    def _parts(self) -> list[tuple[FloatMatrix, Any]]:
        step = max(1, CELLS_PER_PART // self.n_players)
        starts = range(0, len(self.tests), step)
        return [(self.tests[s : s + step], self.wanted[s : s + step]) for s in starts]

    def _order(self, tests: FloatMatrix) -> IntMatrix:
        """Return the points in order of their distance to each test point."""
        from scipy.spatial.distance import cdist

        # Differences, not products of matrices: equal distances come out equal.
        return np.argsort(cdist(tests, self.points, "sqeuclidean"), axis=1, kind="stable")
