"""A look at whether the packages are ours: others on PyPI have the same names."""

from __future__ import annotations

import importlib.util
import os

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def warn_of_foreign(*packages: str) -> None:
    """Warn of a package that Python finds under one of our names, but not beside this one."""
    for package in packages:
        spec = importlib.util.find_spec(package)
        origin = None if spec is None else spec.origin
        if origin is not None and not os.path.abspath(origin).startswith(_ROOT + os.sep):
            import warnings

            warnings.warn(
                f"import {package} finds {origin}, which is not coalition-kit's; uninstall the"
                " other package, or run from another folder",
                stacklevel=3,
            )
