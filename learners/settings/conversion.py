"""Plain values, from TOML or the command line, as the annotations of a dataclass want them."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from coalitions.errors import InvalidInputError, did_you_mean, shown
from learners.settings._ranges import LARGEST

T = TypeVar("T")


def from_values(kind: type[T], values: Mapping[str, Any], noun: str) -> T:
    """Return an instance of a dataclass from plain values, each checked against its annotation.

    Text is read as the field's type, so that values can come from the command line as they are.

    Parameters
    ----------
    kind
        The dataclass.
    values
        Values by the names of its fields.
    noun
        What a field is called in messages.
    """
    known: dict[str, Field[Any]] = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(kind)
    arguments = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        if name not in known:
            hint = did_you_mean(name, known)
            there = f"there are: {', '.join(known)}" if known else "it has none"
            raise InvalidInputError(f"there is no {noun} {shown(key)}; {hint}{there}")
        arguments[name] = converted(value, hints[name], f"{noun} {key!r}")
    missing = [
        name
        for name, each in known.items()
        if name not in arguments and each.default is MISSING and each.default_factory is MISSING
    ]
    if missing:
        raise InvalidInputError(f"{noun} {missing[0]!r} is not given, and it has no default")
    return kind(**arguments)


def converted(value: object, hint: Any, what: str) -> Any:  # noqa: ANN401 (a type hint, a value of it)
    """Return `value` as the annotation `hint` wants it, or say what is wrong with it."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        if value is None or (value == "none" and type(None) in arguments):
            if type(None) in arguments:
                return None
        else:
            (hint,) = (each for each in arguments if each is not type(None))
            return converted(value, hint, what)
    elif origin is Literal:
        if value in arguments:
            return value
        hint_text = did_you_mean(value if isinstance(value, str) else "", arguments)
        raise InvalidInputError(
            f"{what} is {shown(value)}; {hint_text}it can be: {', '.join(map(str, arguments))}"
        )
    elif origin is tuple:
        if isinstance(value, str):
            value = value.split(",") if arguments[0] in (int, float) else [value]
        if isinstance(value, Sequence):
            return tuple(converted(each, arguments[0], what) for each in value)
    elif is_table(hint):
        if isinstance(value, Mapping):
            return dict(value)
    elif hint is bool:
        truth = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in truth:
            return truth[value.lower()]
    elif hint in (int, float):
        if isinstance(value, str):
            try:
                return hint(value)
            except ValueError:
                pass
        elif isinstance(value, hint) and not isinstance(value, bool):
            return value
        elif hint is float and isinstance(value, int) and not isinstance(value, bool):
            if abs(value) > LARGEST:
                raise InvalidInputError(f"{what} can be {LARGEST:g} at most, not {shown(value)}")
            return float(value)
    elif hint is str and isinstance(value, (str, Path)):
        return str(value)
    raise InvalidInputError(f"{what} must be {spoken(hint, article=True)}, not {shown(value)}")


def spoken(hint: Any, *, article: bool = False) -> str:  # noqa: ANN401 (a type hint)
    """Return a type in words."""
    names = {bool: "true or false", int: "whole number", float: "number", str: "text"}
    hint = without_none(hint)
    if typing.get_origin(hint) is Literal:
        return "text"
    if typing.get_origin(hint) is tuple:
        words = f"list of {spoken(typing.get_args(hint)[0])}"
    else:
        words = names.get(hint, "table")
    return f"a {words}" if article and hint not in (bool, str) else words


def without_none(hint: Any) -> Any:  # noqa: ANN401 (a type hint)
    """Return the type that an option has if it is given."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        (hint,) = (each for each in typing.get_args(hint) if each is not type(None))
    return hint


def is_table(hint: Any) -> bool:  # noqa: ANN401 (a type hint)
    """Tell whether a type is a table of further values."""
    origin = typing.get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Mapping)
