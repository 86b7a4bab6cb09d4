"""Solvers of synergy graphs and of games: the best coalition structure, with a proof."""

from __future__ import annotations

try:
    from coalitions.importing import lazy_package
except ImportError as error:
    raise ImportError(
        "the package named coalitions that Python finds is not coalition-kit's; uninstall the other"
        " one, and install coalition-kit again"
    ) from error

__getattr__, __dir__, __all__ = lazy_package(__name__, __file__)  # the names: __init__.pyi
