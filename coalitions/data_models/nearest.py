"""Nearest neighbours."""

from __future__ import annotations

from typing import Any

from coalitions.data_models.model import DATA_MODELS


@DATA_MODELS.register("nearest")
def nearest(classes: bool) -> Any:  # noqa: ANN401 (scikit-learn has no types)
    """Return the vote, or the mean, of the nearest neighbours."""
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    return KNeighborsClassifier() if classes else KNeighborsRegressor()
