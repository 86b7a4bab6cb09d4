"""What a search asks: spaces of options, points drawn from them, trials, rounds and seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from coalitions.errors import InvalidInputError, shown
from learners.algorithm import ALGORITHMS, build_algorithm
from learners.experiments.resumable_runs import NO_INPUTS
from learners.experiments.variants import method_options, row_of
from learners.runs.inputs import UserInputs
from learners.settings.config import RunConfig
from learners.settings.conversion import converted, without_none
from learners.settings.options import Option, options_of
from learners.settings.seeding import seeds_of

# ----------------------------------------------------------------------------------------
# The space of a method: declared by its options, or given.

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


# ----------------------------------------------------------------------------------------
# A search: the spaces of several methods, and the same budget for each.

Strategy = Literal["random", "halving"]

SHRINK = 3
"""Successive halving keeps a third of the trials, and gives them three times the rounds."""

FIRST_SEED = 1000
"""Where the seeds to tune on begin: far from 0, where those that are reported begin."""


@dataclass(frozen=True)
class Trial:
    """One point of a method's space and what it scored.

    Attributes
    ----------
    algorithm, number
        The method, and the number of its trial; trial 0 is the method as it is.
    values
        What was drawn.
    rounds
        Rounds it was given; more in later rungs.
    score
        Mean over seeds of the metric; None if training did not stay finite in one of them.
    gain
        The score such that more is better.
    """

    algorithm: str
    number: int
    values: Mapping[str, Any]
    rounds: int = 0
    score: float | None = None
    gain: float = field(default=-math.inf)

    def document(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "trial": self.number,
            "values": dict(self.values),
            "rounds": self.rounds,
            "score": self.score,
        }


@dataclass(frozen=True)
class TuningSearch:
    """What is asked of a search.

    Attributes
    ----------
    shared
        Settings of all runs.
    spaces
        What is searched of each method.
    seeds
        Seeds to tune on, or how many, from `FIRST_SEED` on; none of them is to be reported.
    trials
        Points of each method, the method as it is among them.
    strategy
        ``random`` gives every trial all rounds, ``halving`` gives the better ones more.
    seed
        Source of the points.
    fixed
        Options and settings of each method that hold in all of its trials, where they are not
        searched.
    inputs
        What the user passed beside the settings, by seed; see `held_out_inputs`.
    """

    shared: Mapping[str, Any]
    spaces: Mapping[str, Space]
    seeds: int | Sequence[int]
    trials: int
    strategy: Strategy = "random"
    seed: int = 0
    fixed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    inputs: Mapping[int, UserInputs] = field(default_factory=dict, repr=False)

    def inputs_of(self, seed: int) -> UserInputs:
        """Return what the user passed beside the settings, for a seed."""
        return self.inputs.get(seed, NO_INPUTS)

    @property
    def numbers(self) -> list[int]:
        """The seeds."""
        return seeds_of(self.seeds, FIRST_SEED)

    def values_of(self, trial: Trial) -> dict[str, Any]:
        """Return all options and settings of a trial: those that are fixed, and those drawn."""
        return {**self.fixed.get(trial.algorithm, {}), **trial.values}

    @property
    def rungs(self) -> list[tuple[int, int]]:
        """How many trials of each method get how many rounds, in turn.

        Examples
        --------
        >>> TuningSearch({"rounds": 18}, {}, [0], 9, "halving").rungs
        [(9, 2), (3, 6), (1, 18)]
        """
        rounds = RunConfig.of(self.shared).rounds
        if self.strategy == "random":
            return [(self.trials, rounds)]
        steps = int(math.log(self.trials, SHRINK) + 1e-9)
        return [
            (max(1, self.trials // SHRINK**step), max(1, rounds // SHRINK ** (steps - step)))
            for step in range(steps + 1)
        ]

    @property
    def cost(self) -> int:
        """Rounds of training for each method, over all trials and seeds."""
        return len(self.numbers) * sum(trials * rounds for trials, rounds in self.rungs)


def search_of(
    shared: Mapping[str, Any],
    fixed: Mapping[str, Mapping[str, Any]],
    given: Sequence[tuple[str, str, str]],
    *,
    seeds: int | Sequence[int],
    trials: int,
    strategy: str,
    seed: int,
    kept: Mapping[str, Mapping[str, Any]] | None = None,
) -> TuningSearch:
    """Return a search whose spaces are those that are given, or else declared by the methods.

    Parameters
    ----------
    shared
        Settings of all runs.
    fixed
        Each method's options and settings that are not searched.
    given
        What to search, see `read_space`.
    seeds, trials, strategy, seed
        See `TuningSearch`.
    kept
        Options of a method that hold unless its space has them.
    """
    if strategy not in ("random", "halving"):
        raise InvalidInputError(f"strategy is random or halving, not {strategy!r}")
    way: Strategy = "halving" if strategy == "halving" else "random"
    for number, (row, key, _) in enumerate(given):
        if row and row not in fixed:
            raise InvalidInputError(
                f"space {row}.{key}: {row} is none of the algorithms ({', '.join(fixed)})"
            )
        if (row, key) in [(other, also) for other, also, _ in given[:number]]:
            raise InvalidInputError(f"the space of {key} is given twice; give it once")
    lr = RunConfig.of(shared).lr
    spaces: dict[str, Space] = {}
    values = {name: {**(kept or {}).get(name, {}), **own} for name, own in fixed.items()}
    for name in fixed:
        wanted = {key for row, key, _ in given if row in ("", name)}
        both = sorted(wanted & fixed[name].keys())
        if both:
            raise InvalidInputError(
                f"{both[0]} of {name} is both set and searched; leave one of them out"
            )
        spaces[name] = {
            key: dimension
            for key, dimension in space_of(name, lr, given).items()
            if key in wanted or key not in values[name]
        }
    for row, key, _ in given:
        if not row and not any(key in space for space in spaces.values()):
            raise InvalidInputError(f"space {key}: none of the methods has an option {key!r}")
    return TuningSearch(shared, spaces, seeds, trials, way, seed, values)
