"""A look at whether the packages are ours: others on PyPI have the same names."""

from __future__ import annotations

import os
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def warn_of_foreign(*packages: str) -> None:
    """Warn of a package that Python finds under one of our names, but not beside this one."""
    for package in packages:
        origin = _origin(package)
        if origin is not None and not os.path.abspath(origin).startswith(_ROOT + os.sep):
            import warnings

            warnings.warn(
                f"import {package} finds {origin}, which is not coalition-kit's; uninstall the"
                " other package, or run from another folder",
                stacklevel=3,
            )


def _origin(package: str) -> str | None:
    """Return the file that `import package` would run.

    As `importlib.util.find_spec` does, whose import would take longer than all of this.
    """
    if package in sys.modules:
        return getattr(sys.modules[package], "__file__", None)
    for finder in sys.meta_path:
        spec = finder.find_spec(package, None)
        if spec is not None:
            return spec.origin
    return None
