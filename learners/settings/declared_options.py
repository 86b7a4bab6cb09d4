"""What methods declare, read from their source: to list them, neither they nor torch are loaded."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import ClassVar, Literal

from learners.settings.options import option

METHODS = "learners.algorithms"


def declared_methods() -> dict[str, type]:
    """Return the built-in methods by name: their docstrings and options, and nothing they can do.

    Examples
    --------
    >>> declared_methods()["fedprox"].mu
    0.01
    """
    methods = {name: method for file in _files() for name, method in _declared(file)}
    return dict(sorted(methods.items()))


def _files() -> Iterator[Path]:
    spec = importlib.util.find_spec(METHODS)
    assert spec is not None
    for folder in spec.submodule_search_locations or ():
        yield from Path(folder).glob("[!_]*.py")


def _declared(file: Path) -> Iterator[tuple[str, type]]:
    source = ast.parse(file.read_text(encoding="utf-8"))
    for node in source.body:
        name = _registered(node)
        if name is not None:
            assert isinstance(node, ast.ClassDef)
            yield name, _bare(node, source)


def _registered(node: ast.stmt) -> str | None:
    """Return under which name a statement registers a method; None if it does not."""
    for each in getattr(node, "decorator_list", ()):
        match each:
            case ast.Call(
                func=ast.Attribute(value=ast.Name("ALGORITHMS"), attr="register"),
                args=[ast.Constant(str(name))],
            ):
                return name
    return None


def _bare(method: ast.ClassDef, source: ast.Module) -> type:
    """Return a dataclass of the docstring and the fields of a method."""
    module = ModuleType(f"{__name__}.{method.name}")
    sys.modules[module.__name__] = module  # where dataclasses and type hints look names up
    vars(module).update(ClassVar=ClassVar, Literal=Literal, option=option)
    kept: list[ast.stmt]
    kept = [each for each in method.body if isinstance(each, ast.AnnAssign | ast.Expr)]
    used = {each.id for field in kept for each in ast.walk(field) if isinstance(each, ast.Name)}
    aliases = list(_choices(used, source))
    bare = ast.ClassDef(method.name, [], [], kept or [ast.Pass()], [])
    program = ast.fix_missing_locations(ast.Module([*aliases, bare], []))
    exec(compile(program, module.__name__, "exec"), vars(module))
    return dataclass(frozen=True)(getattr(module, method.name))


def _choices(used: set[str], source: ast.Module) -> Iterator[ast.stmt]:
    """Yield the definitions of the names in use that stand for a `Literal`, here or elsewhere."""
    for node in source.body:
        match node:
            case (
                ast.AnnAssign(target=ast.Name(name), value=ast.Subscript(ast.Name("Literal")) as it)
                | ast.Assign(
                    targets=[ast.Name(name)], value=ast.Subscript(ast.Name("Literal")) as it
                )
            ) if name in used:
                yield ast.Assign([ast.Name(name, ast.Store())], it)
            case ast.ImportFrom(module=str(home)) if home.startswith("learners."):
                wanted = used & {each.name for each in node.names}
                if wanted and home != option.__module__:
                    spec = importlib.util.find_spec(home)
                    assert spec is not None
                    assert spec.origin is not None
                    text = Path(spec.origin).read_text(encoding="utf-8")
                    yield from _choices(wanted, ast.parse(text))
