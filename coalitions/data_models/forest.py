"""Random forests."""

from __future__ import annotations

from typing import Any

from coalitions.data_models.model import DATA_MODELS


@DATA_MODELS.register("forest")
def forest(classes: bool) -> Any:  # noqa: ANN401 (scikit-learn has no types)
    """Return a random forest."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    return RandomForestClassifier() if classes else RandomForestRegressor()
