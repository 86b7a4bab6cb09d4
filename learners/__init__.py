"""Federated learning: train models, exchange them, and play games on them.

Names are loaded when they are first used: only then torch is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    from coalitions.importing import lazy_names
except ImportError as error:
    raise ImportError(
        "the package named coalitions that Python finds is not coalition-kit's; uninstall the other"
        " one, and install coalition-kit again"
    ) from error

if TYPE_CHECKING:
    from learners.algorithm import ALGORITHMS, Algorithm, Traits
    from learners.client.client import Client
    from learners.client.model_games import ModelGame
    from learners.client.training import Fitted, fit
    from learners.data.client_data import FederatedData
    from learners.data.clients import federated_data
    from learners.data.dataset import DATASETS, DataSet, Images, ImageSet
    from learners.data.ground_truth import are_separated, detection, label_overlap, true_structure
    from learners.data.own.federation_of import federation_of
    from learners.loggers.callback import Callback
    from learners.models import MODELS, Network, build_model
    from learners.runs.run import Result, load_model, resume, run
    from learners.server.federation import Federation
    from learners.settings.config import RunConfig
    from learners.settings.options import option
    from learners.task import TASKS, Message, Reveals, Task

_HOME = {
    "learners.loggers.callback": ("Callback",),
    "learners.algorithm": ("ALGORITHMS", "Algorithm", "Traits"),
    "learners.settings.config": ("RunConfig",),
    "learners.data.clients": ("federated_data",),
    "learners.data.client_data": ("FederatedData",),
    "learners.data.dataset": ("DATASETS", "DataSet", "Images", "ImageSet"),
    "learners.runs.run": ("Result", "load_model", "resume", "run"),
    "learners.server.federation": ("Federation",),
    "learners.data.ground_truth": ("are_separated", "detection", "label_overlap", "true_structure"),
    "learners.data.own.federation_of": ("federation_of",),
    "learners.models": ("MODELS", "Network", "build_model"),
    "learners.client.client": ("Client",),
    "learners.client.training": ("Fitted", "fit"),
    "learners.client.model_games": ("ModelGame",),
    "learners.settings.options": ("option",),
    "learners.task": ("TASKS", "Message", "Reveals", "Task"),
}

__all__ = [
    "ALGORITHMS",
    "DATASETS",
    "MODELS",
    "TASKS",
    "Algorithm",
    "Callback",
    "Client",
    "DataSet",
    "FederatedData",
    "Federation",
    "Fitted",
    "ImageSet",
    "Images",
    "Message",
    "ModelGame",
    "Network",
    "Result",
    "Reveals",
    "RunConfig",
    "Task",
    "Traits",
    "are_separated",
    "build_model",
    "detection",
    "federated_data",
    "federation_of",
    "fit",
    "label_overlap",
    "load_model",
    "option",
    "resume",
    "run",
    "true_structure",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (any public name of the package)
    return lazy_names(__name__, _HOME, name)


def __dir__() -> list[str]:
    return sorted(__all__)
