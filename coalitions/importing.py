"""Imports of the packages themselves: public names come late, foreign packages are noticed.

This module is loaded by every ``import coalitions``, so it imports next to nothing.
"""

from __future__ import annotations

import importlib
import os
import sys
from _ast import ImportFrom, PyCF_ONLY_AST  # as `ast` has them, whose import takes longer
from collections.abc import Callable
from typing import Any

GetAttribute = Callable[[str], Any]
ListNames = Callable[[], list[str]]

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


def lazy_package(package: str, file: str) -> tuple[GetAttribute, ListNames, list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package.

    The public names are the imports of the stub beside the package's `__init__.py`. Type checkers
    and editors read the same stub, so a public name is one line:

        from coalitions.values.shapley import shapley as shapley

    Parameters
    ----------
    package
        The package's name.
    file
        Its `__init__.py`; the stub is `__init__.pyi` beside it.
    """
    home = _imports(os.path.join(os.path.dirname(file), "__init__.pyi"))

    def get_attribute(name: str) -> Any:  # noqa: ANN401 (any public name of the package)
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value = getattr(importlib.import_module(home[name]), name)
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

    def list_names() -> list[str]:
        return sorted(home.keys() | {"__version__"} & vars(sys.modules[package]).keys())

    return get_attribute, list_names, sorted(home)


def _imports(stub: str) -> dict[str, str]:
    """Return the module of each name that a stub imports."""
    with open(stub, encoding="utf-8") as file:
        tree: Any = compile(file.read(), stub, "exec", PyCF_ONLY_AST)
    return {
        each.name: node.module
        for node in tree.body
        if isinstance(node, ImportFrom) and node.module
        for each in node.names
    }
