"""The networks, by name."""

from __future__ import annotations

from learners.models.network import (
    MODELS,
    Network,
    build_model,
    classifier_parameters,
    network_for,
    suited_model,
)

__all__ = [
    "MODELS",
    "Network",
    "build_model",
    "classifier_parameters",
    "network_for",
    "suited_model",
]
