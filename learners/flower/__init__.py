"""Our methods on Flower: engine, apps for projects that exist, and apps to deploy.

Names are loaded when they are first used: only then flwr is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coalitions.importing import lazy_names

if TYPE_CHECKING:
    from learners.flower.node import client_app
    from learners.flower.server import server_app

_HOME = {
    "learners.flower.node": ("client_app",),
    "learners.flower.server": ("server_app",),
}

__all__ = ["client_app", "server_app"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (a public name of the package)
    return lazy_names(__name__, _HOME, name)


def __dir__() -> list[str]:
    return sorted(__all__)
