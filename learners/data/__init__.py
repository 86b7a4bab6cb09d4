"""Data: sets we know by name, a user's own, and how they are dealt out to clients."""

from __future__ import annotations

from coalitions.importing import lazy_package

__getattr__, __dir__, __all__ = lazy_package(__name__, __file__)  # the names: __init__.pyi
