"""The ensemble game: which models of an ensemble does its quality come from."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coalitions.errors import InvalidInputError, with_keywords
from coalitions.game import BoolMatrix, FloatVector
from coalitions.problems.metrics import Metric, metric_of
from coalitions.problems.named import NamedGame, names_of, number


@with_keywords()
def ensemble_game(
    predictions: ArrayLike,
    y: ArrayLike,
    names: Iterable[Hashable] | None = None,
    *,
    metric: str | Metric = "accuracy",
    empty: float = 0.0,
) -> EnsembleGame:
    """Return the game in which models vote, and a coalition is as good as its common answer.

    With ``"accuracy"`` classes are voted for, and of equal counts the first class wins;
    probabilities are averaged [Rozemberczki2021]_. With any other metric numbers are averaged.

    Parameters
    ----------
    predictions
        What each model says of each row, [models, rows]; or probabilities of the classes
        [models, rows, classes], in the order of the sorted classes of `y`.
    y
        The truth.
    names
        Names of the models.
    metric
        ``"accuracy"``, ``"r2"``, or a function of the truth and the common answer.
    empty
        What no model at all is worth.

    Examples
    --------
    >>> from coalitions import shapley
    >>> game = ensemble_game([[1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1]], [1, 1, 1, 1])
    >>> game([[1, 0, 0], [1, 1, 1]])
    array([0.75, 1.  ])
    """
    said, truth = _array(predictions, "predictions"), _array(y, "y")
    if truth.ndim != 1 or said.ndim not in (2, 3) or said.shape[1] != len(truth) or not said.size:
        raise InvalidInputError(
            f"predictions have shape {said.shape} for {len(np.atleast_1d(truth))} rows; expected"
            " (models, rows) or (models, rows, classes)"
        )
    classes = None
    measure = metric_of(metric, truth)
    if metric == "accuracy" or said.ndim == 3:
        classes = np.unique(truth if said.ndim == 3 else np.append(truth, said))
        if said.ndim == 2:
            said = (said[:, :, None] == classes).astype(np.float64)
        elif said.shape[2] != len(classes):
            raise InvalidInputError(
                f"there are probabilities of {said.shape[2]} classes, but y has {len(classes)}"
            )
    try:
        said = said.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"predictions are of kind {said.dtype}; only numbers can be averaged, and words be"
            " voted for by metric='accuracy'"
        ) from None
    if not np.isfinite(said).all():
        raise InvalidInputError("predictions must be finite numbers")
    return EnsembleGame(said, truth, classes, measure, empty, names_of(names, len(said), "models"))


def _array(rows: ArrayLike, what: str) -> NDArray[Any]:
    try:
        return np.asarray(rows)
    except ValueError:
        raise InvalidInputError(f"{what} must be a table whose rows are of one length") from None


class EnsembleGame(NamedGame):
    """The game of models that vote; see `ensemble_game`."""

    def __init__(
        self,
        predictions: NDArray[np.float64],
        truth: NDArray[np.generic],
        classes: NDArray[np.generic] | None,
        metric: Metric,
        empty: float,
        labels: tuple[str, ...],
    ) -> None:
        self.predictions = predictions
        self.truth = truth
        self.classes = classes
        self.metric = metric
        self.empty = number(empty, "empty")
        self.labels = labels

    def _values(self, rows: BoolMatrix) -> FloatVector:
        return np.array([self._value(row) if row.any() else self.empty for row in rows], np.float64)

    def _value(self, row: BoolMatrix) -> float:
        common = self.predictions[row].mean(axis=0)
        answer = common if self.classes is None else self.classes[common.argmax(axis=1)]
        return float(self.metric(self.truth, answer))
