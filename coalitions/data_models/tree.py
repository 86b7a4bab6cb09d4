"""Decision trees."""

from __future__ import annotations

from typing import Any

from coalitions.data_models.model import DATA_MODELS


@DATA_MODELS.register("tree")
def tree(classes: bool) -> Any:  # noqa: ANN401 (scikit-learn has no types)
    """Return a decision tree."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    return DecisionTreeClassifier() if classes else DecisionTreeRegressor()
