"""What a certificate's file holds, checked before anything is made of it."""

from __future__ import annotations

import reprlib
from fractions import Fraction
from typing import Any

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.game import IntVector

LARGEST_UNIT = 1 << 1200
"""Numerator and denominator of a unit are below this: no grid of floats is coarser or finer."""


def damaged(complaint: str) -> InvalidInputError:
    """Return the error of a file that is no certificate."""
    return InvalidInputError(f"the certificate is damaged: {complaint}")


def refuse_unless(condition: object, complaint: str) -> None:
    """Raise the error of a certificate that proves nothing."""
    if not condition:
        raise InvalidInputError(f"the certificate is refused: {complaint}")


def entry(document: Any, name: str) -> Any:  # noqa: ANN401
    """Return what stands under a name."""
    if not isinstance(document, dict) or name not in document:
        raise damaged(f"where {name!r} should be is {reprlib.repr(document)}")
    return document[name]


def list_of(document: Any, name: str) -> list[Any]:  # noqa: ANN401
    """Return the list that stands under a name."""
    found = entry(document, name)
    if not isinstance(found, list):
        raise damaged(f"{name!r} is {reprlib.repr(found)}, not a list")
    return found


def whole(number: Any, name: str) -> int:  # noqa: ANN401
    """Return a whole number."""
    if type(number) is not int:
        raise damaged(f"{name!r} is {reprlib.repr(number)}, not a whole number")
    return number


def wholes(numbers: Any, name: str, length: int | None = None) -> tuple[int, ...]:  # noqa: ANN401
    """Return whole numbers, as many as there should be."""
    if not isinstance(numbers, list) or not {int}.issuperset(map(type, numbers)):
        raise damaged(f"{name!r} holds {reprlib.repr(numbers)}, not a list of whole numbers")
    if length is not None and len(numbers) != length:
        raise damaged(f"{name!r} holds {reprlib.repr(numbers)}, not {length} numbers")
    return tuple(numbers)


def pairs_of(document: Any, name: str) -> tuple[tuple[int, int], ...]:  # noqa: ANN401
    """Return the pairs of whole numbers that stand under a name."""
    pairs = [wholes(pair, name, 2) for pair in list_of(document, name)]
    return tuple((i, j) for i, j in pairs)


def vector(numbers: Any, name: str) -> IntVector:  # noqa: ANN401
    """Return whole numbers of at most 62 bits as an array."""
    checked = wholes(numbers, name)
    if any(abs(number) >= 1 << 62 for number in checked):
        raise damaged(f"{name!r} holds a number of more than 62 bits")
    return np.array(checked, np.int64)


def fraction(numbers: Any, name: str) -> Fraction:  # noqa: ANN401
    """Return the fraction that numerator and denominator make, if a unit can be so."""
    numerator, denominator = wholes(numbers, name, 2)
    if not (abs(numerator) < LARGEST_UNIT and 0 < denominator < LARGEST_UNIT):
        raise damaged(f"{name!r} is no fraction that a grid of floats can have")
    return Fraction(numerator, denominator)
