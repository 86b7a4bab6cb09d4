"""Names and numbers of things, as a line of words has them."""

from __future__ import annotations

import re
from collections.abc import Iterable


def listed(names: Iterable[str]) -> str:
    """Return names in one line; one with a comma or a bar stands in quotes, as flags take it.

    Examples
    --------
    >>> print(listed(["Ann", "Smith, Bob", 'the "one", Eve']))
    Ann, "Smith, Bob", "the ""one"", Eve"
    """
    return ", ".join(map(quoted, names))


def quoted(name: str) -> str:
    """Return a name as it stands in a list: in quotes if it would look like several."""
    return f'"{name.replace(chr(34), chr(34) * 2)}"' if "," in name or "|" in name else name


def in_order(names: Iterable[str]) -> list[str]:
    """Return names in order, numbers in them by their size.

    Examples
    --------
    >>> in_order(["ward 10", "ward 9", "Ward 1"])
    ['Ward 1', 'ward 9', 'ward 10']
    """

    def key(name: str) -> tuple[list[tuple[int, int, str]], str]:
        pieces = re.split(r"([0-9]+)", name.casefold())
        return [(0, int(p), "") if p.isdecimal() else (1, 0, p) for p in pieces if p], name

    return sorted(names, key=key)


def many(count: int, one: str, more: str = "") -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> many(1, "client"), many(2, "category", "categories")
    ('1 client', '2 categories')
    """
    return f"{count:,} {one if count == 1 else more or one + 's'}"
