"""Federated learning: train models, exchange them, and play games on them.

Names are loaded when they are first used: only then torch is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coalitions._lazy import lazy_names

if TYPE_CHECKING:
    from learners.algorithm import ALGORITHMS, Algorithm
    from learners.config import RunConfig
    from learners.data.clients import FederatedData, federated_data
    from learners.data.dataset import DATASETS, DataSet, Images, ImageSet
    from learners.experiment import Result, load_model, resume, run
    from learners.federation import Federation
    from learners.ground_truth import are_separated, detection, label_overlap, true_structure
    from learners.models import MODELS, Network, build_model
    from learners.utility import ModelGame

_HOME = {
    "learners.algorithm": ("ALGORITHMS", "Algorithm"),
    "learners.config": ("RunConfig",),
    "learners.data.clients": ("FederatedData", "federated_data"),
    "learners.data.dataset": ("DATASETS", "DataSet", "Images", "ImageSet"),
    "learners.experiment": ("Result", "load_model", "resume", "run"),
    "learners.federation": ("Federation",),
    "learners.ground_truth": ("are_separated", "detection", "label_overlap", "true_structure"),
    "learners.models": ("MODELS", "Network", "build_model"),
    "learners.utility": ("ModelGame",),
}

__all__ = [
    "ALGORITHMS",
    "DATASETS",
    "MODELS",
    "Algorithm",
    "DataSet",
    "FederatedData",
    "Federation",
    "ImageSet",
    "Images",
    "ModelGame",
    "Network",
    "Result",
    "RunConfig",
    "are_separated",
    "build_model",
    "detection",
    "federated_data",
    "label_overlap",
    "load_model",
    "resume",
    "run",
    "true_structure",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (any public name of the package)
    return lazy_names(__name__, _HOME, name)


def __dir__() -> list[str]:
    return sorted(__all__)
