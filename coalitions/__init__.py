"""Games, values, synergy graphs and coalition structures.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from coalitions.importing import lazy_package, warn_of_foreign

__version__ = "0.1.0"

warn_of_foreign("solvers", "learners")

__getattr__, __dir__, __all__ = lazy_package(__name__, __file__)  # the names: __init__.pyi
