"""A search over options with the same budget for every method, on data that are not reported."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from coalitions.errors import InvalidInputError
from learners.experiments.cells import Cell, planned_cell, tried_cells
from learners.experiments.scores import main_metric, score_of
from learners.experiments.search_space import Space, drawn
from learners.experiments.variants import Variant, variant_of
from learners.runs.run import Result, completed
from learners.settings.config import RunConfig
from learners.settings.seeding import generator, seeds_of

Strategy = Literal["random", "halving"]

SHRINK = 3
"""Successive halving keeps a third of the trials, and gives them three times the rounds."""

FIRST_SEED = 1000
"""Where the seeds to tune on begin: far from 0, where those that are reported begin."""

_ATTEMPTS = 50

Outcome = Result | Exception


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
class Search:
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
    """

    shared: Mapping[str, Any]
    spaces: Mapping[str, Space]
    seeds: int | Sequence[int]
    trials: int
    strategy: Strategy = "random"
    seed: int = 0
    fixed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

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
        >>> Search({"rounds": 18}, {}, [0], 9, "halving").rungs
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


@dataclass(frozen=True)
class Found:
    """What a search found: every trial of every rung, the metric, and the best of each method."""

    metric: str
    trials: tuple[Trial, ...]
    best: Mapping[str, Trial]


def points(search: Search) -> dict[str, list[Trial]]:
    """Return the trials of each method; the same for the same seed, whatever else is searched.

    The first is the method as it is, so that what is found is no worse where it was measured.
    Points that a run would refuse are drawn again.
    """
    found = {}
    for algorithm, space in search.spaces.items():
        rng = generator(search.seed, "tuning", algorithm)
        trials = [Trial(algorithm, 0, {})]
        _completed(search, trials[0])  # what is refused as it is, is said
        while len(trials) < search.trials:
            trials.append(_drawn(search, algorithm, space, len(trials), rng))
        found[algorithm] = trials
    return found


def _drawn(search: Search, algorithm: str, space: Space, number: int, rng: Any) -> Trial:  # noqa: ANN401 (numpy's)
    refusal = None
    for _ in range(_ATTEMPTS):
        point = drawn(algorithm, space, rng, search.fixed.get(algorithm, {}))
        trial = Trial(algorithm, number, point)
        try:
            _completed(search, trial)
        except InvalidInputError as error:
            refusal = error
            continue
        return trial
    raise InvalidInputError(
        f"{algorithm}: {_ATTEMPTS} points of its space in a row cannot be run: {refusal}"
    )


def _completed(search: Search, trial: Trial) -> RunConfig:
    variant = variant_of(trial.algorithm, trial.algorithm, search.values_of(trial))
    return _config(search, variant, search.numbers[0])


def _config(search: Search, variant: Variant, seed: int) -> RunConfig:
    return completed(
        {
            **search.shared,
            **variant.settings,
            "algorithm": variant.algorithm,
            "options": variant.options,
            "seed": seed,
            "evaluate_on": "validation",
        }
    )


Carry = Callable[[Sequence[Cell]], Sequence[Outcome]]
"""How cells are carried out."""


def tune(
    search: Search,
    out: Path | None = None,
    *,
    metric: str | None = None,
    carry: Carry = tried_cells,
) -> Found:
    """Return what a search found.

    Parameters
    ----------
    search
        What is asked.
    out
        Folder of the runs, where an interrupted search goes on; None keeps nothing.
    metric
        What is searched for; what the runs are judged by if None.
    carry
        How cells are carried out, such as several at a time.
    """
    if search.trials < 2:
        raise InvalidInputError(f"a search needs 2 trials or more, not {search.trials}")
    if out is not None and out.exists() and not out.is_dir():
        raise InvalidInputError(f"{out} is a file; a search needs a folder")
    alive = points(search)
    history: list[Trial] = []
    for n_trials, rounds in search.rungs:
        alive = {name: _ranked(trials)[:n_trials] for name, trials in alive.items()}
        racing = [replace(trial, rounds=rounds) for trials in alive.values() for trial in trials]
        cells = [cell for trial in racing for cell in _cells(search, trial, out)]
        outcomes = list(carry(cells))
        n = len(search.numbers)
        metric = metric or _metric_of(outcomes)
        scored = [
            _scored(trial, outcomes[k * n : (k + 1) * n], metric) for k, trial in enumerate(racing)
        ]
        history += scored
        alive = {name: [each for each in scored if each.algorithm == name] for name in alive}
    best = {name: _ranked(trials)[0] for name, trials in alive.items()}
    for name, trial in best.items():
        if trial.score is None:
            raise InvalidInputError(
                f"{name}: training stayed finite in no trial; give --space lr=… with smaller values"
            )
    return Found(metric or "", tuple(history), best)


def _ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials, best first; of equals, the earlier one."""
    return sorted(trials, key=lambda trial: (-trial.gain, trial.number))


def _cells(search: Search, trial: Trial, out: Path | None) -> list[Cell]:
    name = f"{trial.algorithm}-trial{trial.number}-rounds{trial.rounds}"
    variant = variant_of(trial.algorithm, trial.algorithm, search.values_of(trial))
    config = _config(search, variant, search.numbers[0])
    config = replace(config, rounds=trial.rounds, evaluate_every=trial.rounds)
    return [
        planned_cell(
            name,
            replace(config, seed=seed),
            None if out is None else out / f"{name}-seed{seed}",
        )
        for seed in search.numbers
    ]


def _metric_of(outcomes: Sequence[Outcome]) -> str | None:
    for each in outcomes:
        if isinstance(each, Result):
            return main_metric(each.document())
    return None


def _scored(trial: Trial, outcomes: Sequence[Outcome], metric: str | None) -> Trial:
    results = [each for each in outcomes if isinstance(each, Result)]
    if len(results) < len(outcomes) or metric is None:
        return trial
    scores = [score_of(result.document(), metric) for result in results]
    mean = math.fsum(score.mean for score in scores) / len(scores)
    return replace(trial, score=mean, gain=-mean if scores[0].lower_is_better else mean)
