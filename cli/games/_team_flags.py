"""Flags about coalitions and their number: how many, how large, how heavy, with whom."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.terminal.output import players_by_name
from coalitions.errors import InvalidInputError

NGroups = Annotated[
    str | None, typer.Option(metavar="K|A-B", help="Number of coalitions, or from A to B.")
]
MinSize = Annotated[int | None, typer.Option(help="Fewest players in a coalition.")]
MaxSize = Annotated[int | None, typer.Option(help="Most players in a coalition.")]
Weights = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE|NAME=W",
        help="Weight of each player: a file with lines name,weight, or a name; may be repeated.",
    ),
]
MaxWeight = Annotated[
    float | None, typer.Option(help="What the players of a coalition may weigh together.")
]
AtLeastOneOf = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B,…", help="Every coalition has one of these; may be repeated."),
]


def team_demands(
    labels: Sequence[str],
    *,
    n_groups: str | None,
    min_size: int | None,
    max_size: int | None,
    weights: list[str] | None,
    max_weight: float | None,
    at_least_one_of: list[str] | None,
) -> dict[str, Any]:
    """Return what the flags demand, as `solve` takes it and a solution's file records it.

    Examples
    --------
    >>> flags = dict(min_size=None, max_size=2, weights=None, max_weight=None)
    >>> team_demands(["ann", "bob"], n_groups="1-2", at_least_one_of=["ann, bob"], **flags)
    {'n_groups': [1, 2], 'max_size': 2, 'at_least_one_of': [['ann', 'bob']]}
    """
    asked: dict[str, Any] = {
        "n_groups": None if n_groups is None else _count(n_groups),
        "min_size": min_size,
        "max_size": max_size,
        "weights": _weights(weights, labels) if weights else None,
        "max_weight": max_weight,
        "at_least_one_of": [_named(role, labels) for role in at_least_one_of or ()] or None,
    }
    return {name: demand for name, demand in asked.items() if demand is not None}


def _count(text: str) -> int | list[int]:
    """Return a number, or the least and the largest one."""
    found = re.fullmatch(r"\s*(\d{1,18})\s*(?:[-:–]\s*(\d{1,18})\s*)?", text)
    if found is None:
        raise InvalidInputError(
            f"--n-groups takes a number or a range, as in 4 or 3-6; it got {text!r}"
        )
    least, largest = found.groups()
    return int(least) if largest is None else [int(least), int(largest)]


def _named(role: str, labels: Sequence[str]) -> list[str]:
    names = [name.strip() for name in role.split(",")]
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
    for where, name, weight in lines:
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
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInputError(
            f"--weights: {path} cannot be read ({error.strerror}); give a file with lines"
            " name,weight, or name=weight"
        ) from None
    except UnicodeDecodeError:
        raise InvalidInputError(f"--weights: {path} is not text in UTF-8") from None
    divider = ";" if ";" in text and "," not in text.splitlines()[0] else ","
    if "\t" in text:
        divider = "\t"
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=divider) if any(row)]
    lines = []
    for number, row in enumerate(rows, 1):
        if len(row) != 2:
            raise InvalidInputError(f"{path}, line {number}: must be name{divider}weight")
        name, weight = (cell.strip() for cell in row)
        if number == 1 and not _is_number(weight):
            continue
        lines.append((f"{path}, line {number}", name, weight))
    return lines


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
