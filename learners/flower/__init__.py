"""Our methods on Flower: engine, apps for projects that exist, and apps to deploy.

Names are loaded when they are first used: only then flwr is imported.
"""

from __future__ import annotations

from coalitions.importing import lazy_package

__getattr__, __dir__, __all__ = lazy_package(__name__, __file__)  # the names: __init__.pyi
