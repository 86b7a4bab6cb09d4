"""Ranks and paired differences of the methods in a report, as `compare` has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cli.report.methods import Method
from coalitions.errors import InvalidInputError
from learners.comparisons.paired import (
    CONFIDENCE,
    Standing,
    best_of,
    best_sentence,
    difference_text,
    not_settled,
    standings,
)
from learners.comparisons.scores import main_metric, score_of


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
