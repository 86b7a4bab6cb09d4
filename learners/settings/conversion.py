"""Plain values from TOML or the command line, converted to the annotations of a dataclass."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from coalitions.errors import (
    SYNONYMS,
    InvalidInputError,
    UnknownKeywordError,
    did_you_mean,
    shown,
)

# ----------------------------------------------------------------------------------------
# Ranges of numbers, and how a message describes them.

LARGEST = 3.4e38
"""Largest number an option can be: networks compute with 32 bits."""

LARGEST_WHOLE = 2**63 - 1
"""Largest whole number an option can be, for generators of random numbers and arrays."""


@dataclass(frozen=True)
class Range:
    """The numbers an option can be.

    Examples
    --------
    >>> str(Range(least=1)), str(Range(above=0, most=1)), 2 in Range(above=0, most=1)
    ('1 or more', 'above 0 and at most 1', False)
    """

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float)) and (
            (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
            and (self.below is None or value < self.below)
            and value == value  # not NaN
            # An infinite number is within no range that is closed to one side only.
            and (abs(value) < math.inf or self == Range())
        )

    def __str__(self) -> str:
        if self.most is None and self.below is None:
            if self.least is not None:
                return f"{self.least:g} or more"
            return "any number" if self.above is None else f"above {self.above:g}"
        if self.least is not None and self.most is not None:
            return f"from {self.least:g} to {self.most:g}"
        low = f"at least {self.least:g}" if self.least is not None else f"above {self.above:g}"
        high = f"at most {self.most:g}" if self.most is not None else f"below {self.below:g}"
        return f"{low} and {high}"


# ----------------------------------------------------------------------------------------
# Plain values, from TOML or the command line, as the annotations of a dataclass want them.

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
            meant = SYNONYMS.get(name)
            hint = f"did you mean {meant!r}? " if meant in known else did_you_mean(name, known)
            there = f"there are: {', '.join(known)}" if known else "it has none"
            raise UnknownKeywordError(f"there is no {noun} {shown(key)}; {hint}{there}")
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
