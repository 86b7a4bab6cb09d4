"""The data game: what a model learns from some of the data."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coalitions.checks import GameLike, Seed, as_game, seed_of, whole_number
from coalitions.errors import InvalidInputError, with_keywords
from coalitions.game import (
    BoolMatrix,
    BoolVector,
    FloatVector,
    IntVector,
    evaluate,
    labels_of,
    players_of,
)
from coalitions.problems.metrics import Metric, metric_of
from coalitions.problems.named import NamedGame, names_of, number
from coalitions.runtime import one_blas_thread
from coalitions.values.estimate import Estimate

UNITS = ("points", "groups")


@with_keywords()
def data_game(
    model: Any,  # noqa: ANN401 (whatever has fit and predict)
    X: Any,  # noqa: ANN401 (rows of whatever the model takes)
    y: Any,  # noqa: ANN401
    X_test: Any,  # noqa: ANN401
    y_test: Any,  # noqa: ANN401
    units: str = "points",
    metric: str | Metric = "accuracy",
    *,
    groups: Iterable[Hashable] | None = None,
    names: Iterable[Hashable] | None = None,
    empty: float | None = None,
    least_points: int = 1,
    warm_start: bool = False,
    seed: Seed = 0,
) -> DataGame:
    """Return the game in which data is worth what a model that learned from it can do.

    Data Shapley [Ghorbani2019]_ is ``shapley(game)``, Beta Shapley ``beta_shapley(game, 16, 1)``,
    data Banzhaf ``banzhaf(game)``, and `leave_one_out` what the name says. Each model is trained
    with one BLAS thread; ``parallel(game, workers=…)`` trains several at a time.

    Parameters
    ----------
    model
        An estimator of scikit-learn, or anything with ``fit(X, y)`` and ``predict(X)``. A copy
        of it is trained for each coalition.
    X, y, X_test, y_test
        Data to train with and data to measure with: arrays, DataFrames or sparse matrices.
    units
        Who plays: each of the ``"points"``, or ``"groups"`` of them.
    metric
        ``"accuracy"``, ``"r2"``, or a function of the truth and the predictions.
    groups
        The group of each point, such as its source.
    names
        Names of the points; of groups, who they are, in the order of the players: one that has no
        point is a player with nothing. By default groups are in order of the first point.
    empty
        The value of no data at all. By default that of an answer which knows only how common each
        target is in `y`: always the most frequent class, or the mean.
    least_points
        With fewer points than this the model is not trained. Then, and if all points are of one
        class, the answer is the most frequent class, or the mean, of the points that are there.
    warm_start
        Start each training from the model that was trained with everything: the same values for any
        order of coalitions, in less time. For models with a `warm_start` option and coefficients.
    seed
        For models that draw random numbers and have no ``random_state``: the same coalition always
        has the same value.

    Examples
    --------
    >>> from coalitions import shapley
    >>> class Nearest:  # any object with these two
    ...     def fit(self, X, y):
    ...         self.X, self.y = X, y
    ...     def predict(self, X):
    ...         return self.y[np.abs(X - self.X.T).argmin(axis=1)]
    >>> game = data_game(Nearest(), [[0], [1], [9]], [0, 0, 1], [[0.2], [8]], [0, 1])
    >>> game([[1, 0, 0], [1, 0, 1]])
    array([0.5, 1. ])
    >>> shapley(game).values.round(3)
    array([0.083, 0.083, 0.333])
    """
    check_model(model)
    inputs, test_inputs = _table(X), _table(X_test)
    targets, truth = np.asarray(y), np.asarray(y_test)
    for name, rows, answers in (("y", inputs, targets), ("y_test", test_inputs, truth)):
        if answers.shape[:1] != (rows.shape[0],) or not rows.shape[0]:
            raise InvalidInputError(
                f"{name} has shape {answers.shape}; expected one target for each of"
                f" {rows.shape[0]} rows, and at least one"
            )
    measure = metric_of(metric, truth, targets)
    owner, labels = _owners(units, groups, names, len(targets))
    votes = metric == "accuracy" or (metric != "r2" and _classifies(model))
    game = DataGame(
        _seeded(model, seed_of(seed)),
        (inputs, targets),
        (test_inputs, truth),
        measure,
        owner=owner,
        labels=labels,
        votes=votes,
        empty=empty,
        least_points=whole_number(least_points, "least_points", 1),
    )
    if warm_start:
        game.model = _warm(game.model, inputs, targets)
        game.warm = True
    return game


def check_model(model: object) -> None:
    """Refuse what cannot be trained, or not be asked."""
    for name in ("fit", "predict"):
        if not callable(getattr(model, name, None)):
            raise InvalidInputError(
                f"the model is a {type(model).__name__}, which has no {name}; expected an estimator"
                " such as scikit-learn's, not yet trained"
            )


class DataGame(NamedGame):
    """The game of training data; see `data_game`."""

    def __init__(
        self,
        model: Any,  # noqa: ANN401
        data: tuple[Any, NDArray[Any]],
        test: tuple[Any, NDArray[Any]],
        metric: Metric,
        *,
        owner: IntVector,
        labels: tuple[str, ...],
        votes: bool,
        empty: float | None,
        least_points: int,
    ) -> None:
        self.model = model
        self.warm = False
        self.X, self.y = data
        self.X_test, self.y_test = test
        self.metric = metric
        self.owner = owner
        self.labels = labels
        self.votes = votes
        self.empty = None if empty is None else number(empty, "empty")
        self.least_points = least_points

    def _values(self, rows: BoolMatrix) -> FloatVector:
        # Many small trainings: with two threads on two cores each took fourteen times as long, and
        # the numbers would depend on how many there are.
        with one_blas_thread():
            return np.array([self._value(row) for row in rows], np.float64)

    def _value(self, row: BoolVector) -> float:
        chosen = np.flatnonzero(row[self.owner])
        if not len(chosen):
            return self.value_of_nothing()
        targets = self.y[chosen]
        if len(chosen) < self.least_points or (self.votes and (targets == targets[0]).all()):
            return self.measured(self._constant(targets))
        model = copy.deepcopy(self.model)
        if self.warm and len(np.unique(targets)) < len(np.unique(self.y)) and self.votes:
            model.set_params(warm_start=False)  # it has coefficients for other classes
        try:
            model.fit(_rows(self.X, chosen), targets)
            predicted = model.predict(self.X_test)
        except ValueError as error:
            raise InvalidInputError(
                f"the model cannot be trained on {len(chosen)} of the points ({error}); say from"
                " how many on it can: least_points=…"
            ) from error
        return self.measured(predicted)

    def _constant(self, targets: NDArray[Any]) -> NDArray[Any]:
        """Return the answer of who knows these targets and nothing else."""
        if self.votes:
            classes, counts = np.unique(targets, return_counts=True)
            answer = classes[counts.argmax()]
        else:
            answer = targets.mean(axis=0)
        return np.broadcast_to(answer, self.y_test.shape)

    def value_of_nothing(self) -> float:
        """Return what the answer is worth that nothing was learned for."""
        return self.measured(self._constant(self.y)) if self.empty is None else self.empty

    def measured(self, predicted: Any) -> float:  # noqa: ANN401
        """Return how good these predictions are for the test rows."""
        return float(self.metric(self.y_test, predicted))


def leave_one_out(game: GameLike) -> Estimate:
    """Return what is lost without each player: v(N) − v(N∖i), by n + 1 evaluations.

    Examples
    --------
    >>> from coalitions import AirportGame
    >>> leave_one_out(AirportGame([8, 11, 13])).values
    array([0., 0., 2.])
    """
    game = as_game(game)
    n = players_of(game)
    without = np.concatenate([np.ones((1, n), np.bool_), ~np.eye(n, dtype=np.bool_)])
    values = evaluate(game, without)
    losses, reason = values[0] - values[1:], "leaving one out takes n + 1 evaluations"
    return Estimate.exact(losses, labels_of(game), n + 1, reason)


def _table(rows: Any) -> Any:  # noqa: ANN401 (arrays, DataFrames and sparse matrices stay)
    return rows if hasattr(rows, "shape") else np.asarray(rows)


def _rows(table: Any, chosen: IntVector) -> Any:  # noqa: ANN401
    return table.iloc[chosen] if hasattr(table, "iloc") else table[chosen]


def _owners(
    units: str, groups: Iterable[Hashable] | None, names: Iterable[Hashable] | None, n_points: int
) -> tuple[IntVector, tuple[str, ...]]:
    """Return the player of each point, and the names of the players."""
    if units not in UNITS:
        raise InvalidInputError(f"units is {units!r}; it must be one of {', '.join(UNITS)}")
    if (groups is None) is (units == "groups"):
        raise InvalidInputError(
            "units='groups' needs groups, the group of each point, and only then they are used"
        )
    if groups is None:
        return np.arange(n_points), names_of(names, n_points, "points")
    members = [str(group) for group in groups]
    if len(members) != n_points:
        raise InvalidInputError(
            f"there are {len(members)} groups for {n_points} points; give one for each"
        )
    players = dict.fromkeys(members if names is None else map(str, names))
    place = {name: k for k, name in enumerate(players)}
    nameless = next((name for name in members if name not in place), None)
    if nameless is not None:
        raise InvalidInputError(f"the group {nameless!r} is not among the names of the groups")
    return np.array([place[name] for name in members], np.int64), tuple(place)


def _classifies(model: Any) -> bool:  # noqa: ANN401
    return hasattr(model, "predict_proba") or hasattr(model, "decision_function")


def _seeded(model: Any, seed: int) -> Any:  # noqa: ANN401
    """Return a copy that draws the same random numbers at every training."""
    own = copy.deepcopy(model)
    options = own.get_params() if hasattr(own, "get_params") else {}
    unset = [
        name
        for name, value in options.items()
        if value is None and name.rpartition("__")[2] == "random_state"
    ]
    if unset:
        own.set_params(**dict.fromkeys(unset, seed % (1 << 32)))
    return own


def _warm(model: Any, X: Any, y: NDArray[Any]) -> Any:  # noqa: ANN401
    """Return the model trained with everything, to start others from."""
    options = model.get_params() if hasattr(model, "get_params") else {}
    if "warm_start" in options:
        model.set_params(warm_start=True)
        model.fit(X, y)
    # Forests and boosting keep their trees in a warm start: they would remember what they may not.
    if not (hasattr(model, "coef_") or hasattr(model, "coefs_")):
        raise InvalidInputError(
            f"{type(model).__name__} cannot be started from coefficients; leave warm_start out"
        )
    return model
