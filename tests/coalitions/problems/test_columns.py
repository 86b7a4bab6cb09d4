"""Columns are worth what a model that was trained with them can do."""

from __future__ import annotations

import numpy as np
import pytest

from coalitions import InvalidInputError, column_game, shapley


class Least:
    """Least squares, without any option."""

    def fit(self, X, y):
        if X.shape[1] > 2:
            raise ValueError("too wide")
        self.weights = np.linalg.lstsq(X, y, rcond=None)[0]

    def predict(self, X):
        return X @ self.weights


def test_each_coalition_is_trained_with_its_columns(rng):
    X = rng.normal(size=(40, 2))
    y = X @ [3.0, 0.0]
    game = column_game(Least(), X[:30], y[:30], X[30:], y[30:], names=["a", "b"], metric="r2")
    nothing, one, other, both = game([[0, 0], [1, 0], [0, 1], [1, 1]])
    spread = ((y[30:] - y[30:].mean()) ** 2).sum()
    assert nothing == pytest.approx(1 - ((y[30:] - y[:30].mean()) ** 2).sum() / spread)
    assert one == pytest.approx(1)
    assert both == pytest.approx(1)
    assert other < 0.5
    assert shapley(game).values.argmax() == 0


def test_columns_may_belong_together_and_empty_may_be_given(rng):
    X = rng.normal(size=(20, 3))
    game = column_game(
        Least(), X, X[:, 0], X, X[:, 0], {"ends": [0, 2], "middle": [1]}, metric="r2", empty=0.0
    )
    assert game.labels == ("ends", "middle")
    np.testing.assert_allclose(game([[0, 0], [1, 0]]), [0, 1])
    with pytest.raises(InvalidInputError, match=r"cannot be trained on columns \[0, 1, 2\]"):
        game([1, 1])
