"""Imports of the packages themselves: public names come late, foreign packages are noticed.

This module is loaded by every ``import coalitions``, so it imports next to nothing.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

# ----------------------------------------------------------------------------------------
# Packages of other projects that have our names

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


# ----------------------------------------------------------------------------------------
# Public names that are imported when they are first used (PEP 562)


def lazy_names(package: str, home: Mapping[str, Sequence[str]], name: str) -> Any:  # noqa: ANN401
    """Return the attribute `name` of `package` from the module that `home` lists it under."""
    for module, names in home.items():
        if name in names:
            try:
                value = getattr(importlib.import_module(module), name)
            except ModuleNotFoundError as error:
                from coalitions.errors import MissingDependencyError
                from coalitions.extras import install_command

                command = install_command(error.name or "")
                if command is None:
                    raise
                raise MissingDependencyError(
                    f"{package}.{name} needs {error.name}, which is not installed: {command}"
                ) from None
            setattr(sys.modules[package], name, value)  # the next access is an ordinary one
            return value
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
