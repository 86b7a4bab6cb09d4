"""The methods of a report: their runs, and how they rank."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coalitions.errors import InvalidInputError
from learners.experiments.paired_statistics import (
    CONFIDENCE,
    Standing,
    best_of,
    best_sentence,
    difference_text,
    not_settled,
    standings,
)
from learners.measures.scores import main_metric, score_of
from learners.runs.reading import RunRecord, read_run
from learners.settings.config import NO_EFFECT

# ----------------------------------------------------------------------------------------
# Which runs a report is about, those together that repeat each other with another seed.


def read_runs(folders: Sequence[Path]) -> tuple[list[RunRecord], list[Path]]:
    """Return the runs in some folders, and which were left out as they have no round yet.

    A folder of runs, such as `compare --out` makes, stands for all runs in it.
    """
    runs, waiting = [], []
    for folder in folders:
        inside = sorted(path.parent for path in folder.glob("*/config.toml"))
        if (folder / "config.toml").is_file() or not inside:
            runs.append(read_run(folder))
            if not runs[-1].history:
                raise InvalidInputError(f"{folder}: the run has not finished a round yet")
            continue
        found = [(path, read_run(path)) for path in inside]
        waiting += [path for path, run in found if not run.history]
        begun = [run for _, run in found if run.history]
        runs += sorted(begun, key=lambda run: (run.config["algorithm"], run.config["seed"]))
    if not runs:
        raise InvalidInputError(f"{folders[0]}: no run has finished a round yet")
    names = [run.name for run in runs]
    return [
        run if names.count(run.name) == 1 else replace(run, name=run.folder) for run in runs
    ], waiting


@dataclass(frozen=True)
class Method:
    """Runs that differ in their seeds alone."""

    name: str
    runs: tuple[RunRecord, ...]


def methods_of(runs: Sequence[RunRecord]) -> list[Method]:
    """Return the runs, those together that are repetitions of each other with another seed.

    A method with one run is called like the run. The same algorithm with other settings is another
    method, called after what differs.
    """
    groups: dict[str, list[RunRecord]] = {}
    for run in runs:
        groups.setdefault(json.dumps(_repeated(run), sort_keys=True, default=str), []).append(run)
    rows = [{_row(run) for run in group} for group in groups.values()]
    named = [name for (name, *more) in rows if name and not more]
    if len(named) == len(groups) == len(set(named)):  # a comparison says what its rows are called
        return [
            Method(run.name if len(group) == 1 and len(named) == 1 else name, tuple(group))
            for name, group in zip(named, groups.values(), strict=True)
            for run in group[:1]
        ]
    if all(len(group) == 1 for group in groups.values()):
        return [Method(run.name, (run,)) for run in runs]
    methods = []
    for group in groups.values():
        if len({run.config["seed"] for run in group}) < len(group):  # the same run twice
            methods += [Method(run.name, (run,)) for run in group]
            continue
        rivals = [_repeated(other[0]) for other in groups.values()]
        methods.append(Method(_method_name(_repeated(group[0]), rivals), tuple(group)))
    names = [method.name for method in methods]
    return [
        method
        if names.count(method.name) == 1
        else replace(method, name=f"{method.name} {number + 1}")
        for number, method in enumerate(methods)
    ]


def _row(run: RunRecord) -> str:
    """Return the row of a comparison that a run is in, from its folder; empty if it is in none."""
    name, dash, seed = run.folder.rpartition("-seed")
    return name if dash and seed == str(run.config["seed"]) else ""


def _repeated(run: RunRecord) -> dict[str, Any]:
    """Return the settings that repetitions share, the method's options among them."""
    ignored = ("seed", "options", *NO_EFFECT)
    settings = {key: value for key, value in run.config.items() if key not in ignored}
    return settings | dict(run.config["options"])


def _method_name(own: Mapping[str, Any], all_settings: Sequence[Mapping[str, Any]]) -> str:
    rivals = [each for each in all_settings if each["algorithm"] == own["algorithm"]]
    different = [key for key in own if any(each.get(key) != own[key] for each in rivals)]
    return " ".join([str(own["algorithm"]), *(f"{key}={own[key]}" for key in different)])


# ----------------------------------------------------------------------------------------
# Ranks and paired differences of the methods in a report, as `compare` has them.


@dataclass(frozen=True)
class Standings:
    """How methods compare, seed by seed, after the same round."""

    metric: str
    baseline: str
    seeds: int
    standing: dict[str, Standing]
    verdict: str
    chosen: bool = False

    def cells(self, name: str) -> dict[str, str]:
        """Return what a row of the table of results adds for a method."""
        own = self.standing[name]
        told = difference_text(own.difference, self.seeds)
        told = "baseline" if name == self.baseline else told
        return {"rank": f"{own.rank:.2f}", f"vs {self.baseline}": told}

    @property
    def sentence(self) -> str:
        """Which method is the best, and whether that is settled."""
        over = f"over {self.seeds} seeds" if self.seeds > 1 else "with 1 seed"
        return f"By mean {self.metric} {over}: {self.verdict[0].lower()}{self.verdict[1:]}"

    @property
    def legend(self) -> str:
        """What the columns mean."""
        interval = (
            "one seed gives no interval"
            if self.seeds == 1
            else f"± half of its {CONFIDENCE:.0%} interval (Student's t over {self.seeds} seeds)"
        )
        why = "the baseline that was chosen" if self.chosen else "the best by these seeds"
        return (
            f"rank: mean place by {self.metric} over seeds. vs {self.baseline}: paired difference"
            f" from {self.baseline}, {why}, {interval}."
        )


def standing_of(methods: Sequence[Method], chosen: str | None = None) -> Standings | None:
    """Return how the methods compare; None if they have other seeds, rounds or metrics.

    Differences are taken from the method that was chosen, if it is there, or from the best one.
    """
    seeds = [[run.config["seed"] for run in method.runs] for method in methods]
    if len(methods) < 2 or any(sorted(each) != sorted(seeds[0]) for each in seeds):
        return None
    names = [method.name for method in methods]
    if len(set(names)) < len(names):
        return None
    ordered = {
        method.name: sorted(method.runs, key=lambda run: int(run.config["seed"]))
        for method in methods
    }
    runs = [run for each in ordered.values() for run in each]
    if not all(run.evaluated for run in runs):
        return None
    if len({int(run.evaluated[-1]["round"]) for run in runs}) > 1:
        return None
    metric = main_metric(runs[0].evaluated[-1])
    try:
        found = {
            name: [score_of(run.evaluated[-1], metric) for run in each]
            for name, each in ordered.items()
        }
    except InvalidInputError:  # methods with other tasks
        return None
    lower = found[names[0]][0].lower_is_better
    scores = {name: [score.mean for score in each] for name, each in found.items()}
    best = best_of(scores, lower_is_better=lower)
    baseline = chosen if chosen is not None and chosen in scores else best[0]
    return Standings(
        metric,
        baseline,
        len(seeds[0]),
        standings(scores, baseline, lower_is_better=lower),
        best_sentence(scores, best, not_settled(scores, lower_is_better=lower)),
        chosen=baseline == chosen,
    )
