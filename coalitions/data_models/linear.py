"""Linear models: logistic regression, ridge regression."""

from __future__ import annotations

from typing import Any

from coalitions.data_models.model import DATA_MODELS


@DATA_MODELS.register("linear")
def linear(classes: bool) -> Any:  # noqa: ANN401 (scikit-learn has no types)
    """Return logistic regression, or ridge regression."""
    from sklearn.linear_model import LogisticRegression, Ridge

    return LogisticRegression() if classes else Ridge()
