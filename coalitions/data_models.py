"""Models that learn from a table of data, by name: one for classes, one for numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coalitions.registry import Registry

DATA_MODELS: Registry[Callable[[bool], Any]] = Registry("model", "coalitions.data_models")
"""Functions that return a model which is not yet trained: an estimator of scikit-learn, or anything
with ``fit(X, y)`` and ``predict(X)``. The argument says whether it predicts
classes; otherwise it predicts numbers.

Examples
--------
>>> type(DATA_MODELS["tree"](True)).__name__
'DecisionTreeClassifier'
"""


class Prepared:
    """A model before which the columns are prepared, by steps that its training rows teach.

    A pipeline of scikit-learn would do for estimators of its own, but asks for more than
    ``fit`` and ``predict``.

    Parameters
    ----------
    model
        Has ``fit(X, y)`` and ``predict(X)``.
    *steps
        Each has ``fit_transform(X)`` and ``transform(X)``; the first is applied first.
    """

    def __init__(self, model: Any, *steps: Any) -> None:  # noqa: ANN401
        self.model = model
        self.steps = steps

    def fit(self, X: Any, y: Any) -> None:  # noqa: ANN401 (as scikit-learn has it)
        """Train the steps, then the model."""
        for step in self.steps:
            X = step.fit_transform(X)
        self.model.fit(X, y)

    def predict(self, X: Any) -> Any:  # noqa: ANN401
        """Return the model's answers."""
        for step in self.steps:
            X = step.transform(X)
        return self.model.predict(X)

    def get_params(self) -> dict[str, Any]:
        """Return the model's options, if it has some."""
        return dict(getattr(self.model, "get_params", dict)())

    def set_params(self, **options: Any) -> None:  # noqa: ANN401
        """Set the model's options."""
        self.model.set_params(**options)


@DATA_MODELS.register("forest")
def forest(classes: bool) -> Any:  # noqa: ANN401 (scikit-learn has no types)
    """Return a random forest."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    return RandomForestClassifier() if classes else RandomForestRegressor()


@DATA_MODELS.register("linear")
def linear(classes: bool) -> Any:  # noqa: ANN401 (scikit-learn has no types)
    """Return logistic regression, or ridge regression."""
    from sklearn.linear_model import LogisticRegression, Ridge

    return LogisticRegression() if classes else Ridge()


@DATA_MODELS.register("nearest")
def nearest(classes: bool) -> Any:  # noqa: ANN401 (scikit-learn has no types)
    """Return the vote, or the mean, of the nearest neighbours."""
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    return KNeighborsClassifier() if classes else KNeighborsRegressor()


@DATA_MODELS.register("tree")
def tree(classes: bool) -> Any:  # noqa: ANN401 (scikit-learn has no types)
    """Return a decision tree."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    return DecisionTreeClassifier() if classes else DecisionTreeRegressor()
