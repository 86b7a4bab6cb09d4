"""Modules of a user's own, which register what they define when they are imported."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

from coalitions.errors import CoalitionError, InvalidInputError


def import_plugins(names: Iterable[str], *, beside: Path | None = None) -> None:
    """Import modules by name.

    Parameters
    ----------
    names
        The modules, as in an import statement.
    beside
        A folder where they may lie, too. It comes last on the module path: data often come with
        other people's files, and a `scipy.py` among them must not take the place of SciPy.
    """
    for name in names:
        if name.endswith(".py"):
            raise InvalidInputError(
                f"plugin {name!r}: name the module, not its file: {Path(name).stem}, in the folder"
                " where the file lies"
            )
        if beside is not None:
            if str(beside) not in sys.path:
                sys.path.append(str(beside))
            _refuse_taken_name(name, beside)
        try:
            importlib.import_module(name)
        except CoalitionError as error:  # what it registers is refused
            raise InvalidInputError(f"plugin {name!r}: {error}") from error
        except Exception as error:  # a user's module may fail in any way
            kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
            raise InvalidInputError(
                f"plugin {name!r} cannot be imported ({kind}{error}); --plugin takes a module's"
                " name as in import, installed or a file of the working folder"
            ) from error


def _refuse_taken_name(name: str, folder: Path) -> None:
    """Raise if a module of this name lies in the folder, and Python would import another."""
    top = name.partition(".")[0]
    own = PathFinder.find_spec(top, [str(folder)]) if top.isidentifier() else None
    if own is None:
        return
    found = sys.modules[top].__spec__ if top in sys.modules else find_spec(top)
    if found is None or found.origin != own.origin:
        raise InvalidInputError(
            f"plugin {name!r}: {Path(own.origin or top).name} of this folder is hidden by an"
            f" installed module of the same name; give yours another name"
        )
