"""Federated learning: train models, exchange them, and play games on them.

Names are loaded when they are first used: only then torch is imported.
"""

from __future__ import annotations

try:
    from coalitions.importing import lazy_package
except ImportError as error:
    raise ImportError(
        "the package named coalitions that Python finds is not coalition-kit's; uninstall the other"
        " one, and install coalition-kit again"
    ) from error

__getattr__, __dir__, __all__ = lazy_package(__name__, __file__)  # the names: __init__.pyi
