"""What can be searched: ranges of options, declared or given, and points drawn from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coalitions.errors import InvalidInputError, shown
from learners.algorithm import ALGORITHMS, build_algorithm
from learners.experiments.variants import method_options, row_of
from learners.settings.config import RunConfig
from learners.settings.conversion import converted, without_none
from learners.settings.options import Option, options_of

RATIO = 10
"""Ends of a range that are positive and differ by such a factor are searched on a log scale."""

_SEARCHED = ("models", "data", "scores", "traffic", "relevance", "structure")
"""What an option changes that is searched unasked: not who solves, nor how long it may take."""


@dataclass(frozen=True)
class Dimension:
    """Values that an option is drawn from: some, or all between two ends.

    Examples
    --------
    >>> Dimension(ends=(0.01, 1.0)).log, Dimension(ends=(0.1, 0.9)).log
    (True, False)
    >>> rng = np.random.default_rng(0)
    >>> Dimension(ends=(2, 8), whole=True).draw(rng) in range(2, 9)
    True
    """

    values: tuple[Any, ...] = ()
    ends: tuple[float, float] = (0.0, 0.0)
    whole: bool = False

    @property
    def log(self) -> bool:
        """Whether values are drawn on a log scale."""
        low, high = self.ends
        return low > 0 and high >= RATIO * low

    def draw(self, rng: np.random.Generator) -> Any:  # noqa: ANN401 (a value of any option)
        """Return one of the values, all as likely."""
        if self.values:
            return self.values[int(rng.integers(len(self.values)))]
        low, high = self.ends
        if self.whole:  # every whole number has the same width, on either scale
            low, high = low - 0.5, high + 0.5
        share = rng.random()
        value = low * (high / low) ** share if self.log else low + (high - low) * share
        if self.whole:
            return int(min(max(round(value), self.ends[0]), self.ends[1]))
        return float(f"{value:.4g}")  # four digits are said, written and kept as they are

    def __str__(self) -> str:
        if self.values:
            return ", ".join(map(str, self.values))
        low, high = self.ends
        return f"{low:g} to {high:g}{' (log)' if self.log else ''}"


Space = Mapping[str, Dimension]
"""What is searched of a method, by option or setting."""


def declared_space(algorithm: str, lr: float) -> dict[str, Dimension]:
    """Return what is searched of a method unasked: the learning rate, and its numeric options.

    An option with two ends is searched between them; one without is searched from a tenth to ten
    times its default, a whole number from a quarter to four times. An option that may be left open,
    or begins at 0 with no other end, has no scale and is not searched; nor are choices, some of
    which tell a method what it should find out.

    Parameters
    ----------
    algorithm
        The method.
    lr
        The learning rate to search around.

    Examples
    --------
    >>> {key: str(each) for key, each in declared_space("fedprox", 0.05).items()}
    {'lr': '0.005 to 0.5 (log)', 'mu': '0.001 to 0.1 (log)'}
    """
    space = {"lr": Dimension(ends=(lr / RATIO, lr * RATIO))}
    for row in options_of(ALGORITHMS[algorithm]):
        found = _declared(row)
        if found is not None:
            space[row.name] = found
    return space


def _declared(row: Option) -> Dimension | None:
    kind, limits, default = without_none(row.hint), row.range, row.default
    if kind not in (int, float) or limits is None or row.changes not in _SEARCHED:
        return None
    whole = kind is int
    low = limits.least if limits.least is not None else limits.above
    high = limits.most if limits.most is not None else limits.below
    if low is not None and high is not None:
        inside = 0.01 * (high - low)  # an end that is excluded is not touched
        return Dimension(
            ends=(
                low if limits.least is not None else low + inside,
                high if limits.most is not None else high - inside,
            ),
            whole=whole,
        )
    if not default:
        return None
    factor = 4 if whole else RATIO
    bottom = max(default / factor, limits.least or 0)
    if whole:
        bottom = max(1, math.ceil(bottom))
    return Dimension(ends=(bottom, default * factor), whole=whole)


def read_space(text: str) -> tuple[str, str, str]:
    """Return whose option (empty for all methods), which one, and its values as they were typed."""
    target, equals, values = text.partition("=")
    row, _, key = target.rpartition(".")
    if not equals or not key or not values:
        raise InvalidInputError(
            "--space takes [ALGORITHM.]OPTION=LOW..HIGH, or values with commas, as in"
            f" pfedsv.alpha=0.1..0.9 or batch-size=5,10,20; it got {shown(text)}"
        )
    return row, key.replace("-", "_"), values


def given_dimension(algorithm: str, key: str, values: str) -> Dimension:
    """Return the dimension that ``0.1..0.9`` or ``5,10,20`` is for an option of a method."""
    row = row_of(algorithm, key)
    name = row.name
    low, dots, high = values.partition("..")
    hint = without_none(row.hint)
    if dots and hint not in (int, float):
        raise InvalidInputError(f"{name} is no number: give its values with commas, not {values}")
    parts = [low, high] if dots else [each.strip() for each in values.split(",")]
    found = [converted(each, hint, f"{name} in --space") for each in parts]
    for each in found:
        if row.range is not None and each not in row.range:
            raise InvalidInputError(f"{name} must be {row.range}, not {shown(each)} as in --space")
    if not dots:
        return Dimension(values=tuple(dict.fromkeys(found)))
    if not found[0] < found[1] or not all(map(math.isfinite, found)):
        raise InvalidInputError(f"--space {name}={values}: the first end must be the smaller one")
    return Dimension(ends=(found[0], found[1]), whole=hint is int)


def space_of(algorithm: str, lr: float, given: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    """Return what is searched of a method.

    What is given for the method by its name is all that is searched of it. What is given for all
    methods replaces, or joins, what is searched of those that have it.

    Parameters
    ----------
    algorithm
        The method.
    lr
        The learning rate to search around.
    given
        See `read_space`.
    """
    own = {
        key: given_dimension(algorithm, key, text) for row, key, text in given if row == algorithm
    }
    space: dict[str, Dimension] = own or declared_space(algorithm, lr)
    for row, key, text in given:
        if not row and key not in own and _has(algorithm, key):
            space[key] = given_dimension(algorithm, key, text)
    return space


def _has(algorithm: str, key: str) -> bool:
    known = [*options_of(ALGORITHMS[algorithm]), *options_of(RunConfig)]
    return key in [row.name for row in known]


def drawn(
    algorithm: str,
    space: Space,
    rng: np.random.Generator,
    fixed: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a point of a space, without the options that the others leave without effect.

    Parameters
    ----------
    algorithm
        The method.
    space
        What is searched of it.
    rng
        Source of the point.
    fixed
        Options that are not searched, where they are not their defaults.
    """
    usual = build_algorithm(
        algorithm,
        {key: value for key, value in (fixed or {}).items() if key in method_options(algorithm)},
    ).options()
    point = {key: dimension.draw(rng) for key, dimension in space.items()}
    rows = {row.name: row for row in options_of(ALGORITHMS[algorithm])}
    while True:
        now = {name: point.get(name, usual[name]) for name in rows}
        idle = [
            key
            for key in point
            if key in rows
            and any(now[name] not in _any_of(wanted) for name, wanted in rows[key].needs.items())
        ]
        if not idle:
            return point
        for key in idle:
            del point[key]


def _any_of(wanted: object) -> tuple[object, ...]:
    return wanted if isinstance(wanted, tuple) else (wanted,)
