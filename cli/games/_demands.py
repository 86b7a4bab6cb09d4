"""Demands on coalitions as flags: sizes, numbers, links, loads and roles."""

from __future__ import annotations

import csv
import inspect
import io
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from cli.terminal.flags import with_flags
from coalitions.errors import InvalidInputError
from coalitions.files.opening import check_whole
from coalitions.formatting import composed, players_by_name

# ----------------------------------------------------------------------------------------
# Demands on a structure, from flags and in words: who is kept together, who apart, what sizes.

Pairs = Sequence[tuple[int, int]]


def names_in(group: str, labels: Sequence[str] = ()) -> list[str]:
    """Return the names in a list with commas; a name that has one itself stands in quotes.

    Where the list is one of players as it stands, quotes are part of their names.

    Examples
    --------
    >>> names_in("ann, bob"), names_in('"Smith, Ann",Bob')
    (['ann', 'bob'], ['Smith, Ann', 'Bob'])
    """
    import csv

    group = composed(group)
    plain = [name.strip() for name in group.split(",")]
    if '"' not in group or set(plain) <= set(labels):
        return plain
    try:
        return [name.strip() for row in csv.reader([group], skipinitialspace=True) for name in row]
    except csv.Error:  # a line end in a name
        return plain


def pairs_of(groups: list[str] | None, labels: Sequence[str], option: str) -> list[tuple[int, int]]:
    """Return all pairs of players in each comma-separated group of names."""
    pairs: list[tuple[int, int]] = []
    for group in groups or ():
        names = names_in(group, labels)
        if len(names) < 2:
            raise InvalidInputError(
                f"{option} takes two names or more, as in a,b; it got {group!r}"
            )
        pairs += itertools.combinations(players_by_name(names, labels, option), 2)
    return pairs


def by_name(pairs: Pairs, labels: Sequence[str]) -> list[list[str]]:
    """Return pairs of players as pairs of names, as files have them."""
    return [[labels[a], labels[b]] for a, b in pairs]


# ----------------------------------------------------------------------------------------
# Flags for demands: who is together and apart, how many coalitions, how large, how heavy.

DIVIDERS = ("\t", ";", ",")
"""Between name and weight; a comma is the last one, as it may be a decimal mark."""


@dataclass(frozen=True)
class DemandFlags:
    """What was typed of the demands on a structure; each field is a flag.

    Examples
    --------
    >>> flags = DemandFlags(n_groups="1-2", max_size=2, at_least_one_of=["ann, bob"])
    >>> flags.sizes(["ann", "bob"])
    {'n_groups': [1, 2], 'max_size': 2, 'at_least_one_of': [['ann', 'bob']]}
    >>> DemandFlags(must_link=["ann,bob"]).links(["ann", "bob"])
    {'must_link': [(0, 1)], 'cannot_link': []}
    """

    must_link: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,…", help="Players that must be together, two or more; may be repeated."
        ),
    ] = None
    cannot_link: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,…",
            help="Players that must all be apart, two or more; may be repeated.",
        ),
    ] = None
    n_groups: Annotated[
        str | None, typer.Option(metavar="K|A-B", help="Number of coalitions, or from A to B.")
    ] = None
    min_size: Annotated[int | None, typer.Option(help="Fewest players in a coalition.")] = None
    max_size: Annotated[int | None, typer.Option(help="Most players in a coalition.")] = None
    weights: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|NAME=W",
            help="Weight of each player: a file with lines name,weight, or a name;"
            " may be repeated.",
        ),
    ] = None
    max_weight: Annotated[
        float | None, typer.Option(help="Largest total weight of a coalition.")
    ] = None
    at_least_one_of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,…", help="Every coalition must have one of these; may be repeated."
        ),
    ] = None

    def links(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return who must be together and who apart, in pairs."""
        return {
            "must_link": pairs_of(self.must_link, labels, "--must-link"),
            "cannot_link": pairs_of(self.cannot_link, labels, "--cannot-link"),
        }

    def sizes(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return what else is demanded, as `solve` takes it and a solution's file records it."""
        asked: dict[str, Any] = {
            "n_groups": None if self.n_groups is None else _count(self.n_groups),
            "min_size": self.min_size,
            "max_size": self.max_size,
            "weights": _weights(self.weights, labels) if self.weights else None,
            "max_weight": self.max_weight,
            "at_least_one_of": [_named_role(role, labels) for role in self.at_least_one_of or ()]
            or None,
        }
        return {name: demand for name, demand in asked.items() if demand is not None}


DEMANDS = ("n_groups", "min_size", "max_size", "weights", "max_weight", "at_least_one_of")
"""What is demanded of coalitions and their number, as `solve` takes it and files record it."""


def takes_demands(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a flag for every demand; it gets them as its argument `demands`."""
    hints = get_type_hints(DemandFlags, include_extras=True)
    flags = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(DemandFlags)
    ]
    return with_flags("demands", flags, lambda typed: DemandFlags(**typed))(command)


def _count(text: str) -> int | list[int]:
    """Return a number, or the least and the largest one."""
    found = re.fullmatch(r"\s*(\d{1,18})\s*(?:(?:[-:–]|\.\.)\s*(\d{1,18})\s*)?", text)
    if found is None:
        raise InvalidInputError(
            f"--n-groups takes a number or a range, as in 4 or 3-6; it got {text!r}"
        )
    least, largest = found.groups()
    return int(least) if largest is None else [int(least), int(largest)]


def _named_role(role: str, labels: Sequence[str]) -> list[str]:
    names = names_in(role, labels)
    players_by_name(names, labels, "--at-least-one-of")
    return names


def _weights(given: list[str], labels: Sequence[str]) -> dict[str, float]:
    """Return the weight of each player, by name."""
    lines: list[tuple[str, str, str]] = []  # where it stands, who, how much
    for text in given:
        name, equals, weight = text.rpartition("=")
        if equals and not Path(text).exists():
            lines.append(("--weights", name.strip(), weight))
        else:
            lines += _read(Path(text))
    weights: dict[str, float] = {}
    for where, given_name, weight in lines:
        name = composed(given_name)
        players_by_name([name], labels, where)
        if name in weights:
            raise InvalidInputError(f"{where}: {name} has two weights")
        weights[name] = _number(weight, where, name)
    missing = [name for name in labels if name not in weights]
    if missing:
        raise InvalidInputError(f"--weights has none for {missing[0]}; every player needs one")
    return weights


def _read(path: Path) -> list[tuple[str, str, str]]:
    """Return the lines of a file of names and weights; a heading is passed over."""
    check_whole(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInputError(
            f"--weights: {path} cannot be read ({error.strerror}); give a file with lines"
            " name,weight, or name=weight"
        ) from None
    except UnicodeDecodeError:
        raise InvalidInputError(f"--weights: {path} is not text in UTF-8") from None
    tables = {each: _rows(text, each) for each in DIVIDERS}
    divider = next((each for each, rows in tables.items() if {2} >= {*map(len, rows)}), ",")
    rows = tables[divider]
    lines = []
    for number, row in enumerate(rows, 1):
        if len(row) != 2:
            raise InvalidInputError(f"{path}, line {number}: must be name{divider}weight")
        name, weight = (cell.strip() for cell in row)
        if number == 1 and not _is_number(weight):
            continue
        lines.append((f"{path}, line {number}", name, weight))
    return lines


def _rows(text: str, divider: str) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(text), delimiter=divider) if any(row)]


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _number(text: str, where: str, name: str) -> float:
    if not _is_number(text):
        raise InvalidInputError(f"{where}: the weight of {name} is {text!r}, not a number")
    return float(text.replace(",", "."))
