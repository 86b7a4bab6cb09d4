"""Public names that are imported when they are first used (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any


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
