"""Data: sets we know by name, a user's own, and how they are dealt out to clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coalitions.importing import lazy_names

if TYPE_CHECKING:
    from learners.data.own.hugging_face import from_hf

__all__ = ["from_hf"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (any public name of the package)
    return lazy_names(__name__, {"learners.data.own.hugging_face": ("from_hf",)}, name)


def __dir__() -> list[str]:
    return sorted(__all__)
