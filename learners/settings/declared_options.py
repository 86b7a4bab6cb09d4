"""What methods declare, read from their source: to list them, neither they nor torch are loaded."""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import make_dataclass
from pathlib import Path
from typing import Any, Literal

from coalitions.registry import Declaration, declared
from learners.settings.options import option

METHODS = "learners.algorithms"

_TYPES = {each.__name__: each for each in (bool, int, float, str)}


def declared_methods() -> dict[str, type]:
    """Return the built-in methods by name: their docstrings and options, and nothing they can do.

    A default, a range and a choice are constants in the source; anything else is an error.

    Examples
    --------
    >>> declared_methods()["fedprox"].mu
    0.01
    """
    return {name: _bare(method) for name, method in declared("ALGORITHMS", METHODS).items()}


def _bare(method: Declaration) -> type:
    """Return a dataclass with the docstring, the options and the class variables of a method."""
    options, variables = [], {"__doc__": ast.get_docstring(method.definition, clean=False)}
    for node in method.definition.body:
        match node:
            case ast.AnnAssign(
                target=ast.Name(name), annotation=ast.Subscript(ast.Name("ClassVar")), value=value
            ) if value is not None:
                variables[name] = ast.literal_eval(value)
            case ast.AnnAssign(
                target=ast.Name(name), annotation=hint, value=ast.Call(ast.Name("option")) as call
            ):
                (default,) = map(ast.literal_eval, call.args)
                facts = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
                options.append((name, _hint(hint, method.module), option(default, **facts)))
    return make_dataclass(method.definition.name, options, namespace=variables, frozen=True)


def _hint(node: ast.expr, module: ast.Module) -> Any:  # noqa: ANN401 (a type)
    """Return the type that an annotation stands for: plain ones, choices, and either of two."""
    match node:
        case ast.Constant(None):
            return None
        case ast.BinOp(left, ast.BitOr(), right):
            return _hint(left, module) | _hint(right, module)
        case ast.Subscript(ast.Name("Literal"), choices):
            return Literal[ast.literal_eval(choices)]
        case ast.Name(name):
            return _TYPES.get(name) or _alias(name, module)
    raise TypeError(f"an option cannot have the type {ast.unparse(node)}")


def _alias(name: str, module: ast.Module) -> Any:  # noqa: ANN401 (a type)
    """Return the type of a name that a module defines, or imports from one of ours."""
    for node in module.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(defined)], value=value)
                | ast.AnnAssign(target=ast.Name(defined), value=ast.expr() as value)
            ) if defined == name:
                return _hint(value, module)
            case ast.ImportFrom(module=str(home)) if name in [each.name for each in node.names]:
                spec = importlib.util.find_spec(home)
                assert spec is not None
                assert spec.origin is not None
                return _alias(name, ast.parse(Path(spec.origin).read_text(encoding="utf-8")))
    raise NameError(f"the type {name} of an option is not defined in its module")
