"""Forecast: what a first look at the bound costs, and whether a bound leaves hope for a proof."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.branch_and_cut.problem import Problem

SAMPLE = 20_000
"""Triples of groups that are asked how many triangles the dual will begin with."""

SECONDS_PER_TRIPLE, SECONDS_PER_ROW = 2.5e-9, 2.5e-7
"""CPU time of the first look, twenty steps: per m³ for finding violated triangles, and per row."""

RANDOM, AT_ONCE = 0.15, 0.1
"""Weights in conflict like random ones: 0.21 of the triangles there, 0.11 at most in graphs of so
many groups that were seen proven. Then a look must be over at once, in seconds."""

SHARE_OF_LOOK = 0.3
"""Part of the time that is left which the first look may take else."""

HOPELESS = (2.0, 0.9, 0.6, 0.5)
"""How far above the value, relative to it, a bound may be after the first, second … look. Of 86
instances of 150 to 1150 players all that are proven in 10 s are nearer at every look; those of
random weights are not, at the first or the second."""


def is_hopeless(looks: int, bound: int, value: int) -> bool:
    """Tell whether a bound after so many looks is too far from the value to come down to it."""
    return bound - value > HOPELESS[min(looks, len(HOPELESS)) - 1] * max(value, 1)


@dataclass(frozen=True)
class Forecast:
    r"""What the dual will begin with.

    A row is a triangle that the first soft point x = 1/(1 + exp(−w/μ)) violates,
    :math:`x_{ij} + x_{jk} - x_{ik} > 1`; their number is estimated by a sample.

    Attributes
    ----------
    conflicts
        Part of all triangles that are rows.
    seconds
        CPU time until the first bound.
    """

    conflicts: float
    seconds: float

    @classmethod
    def of(cls, problem: Problem, *, smoothing: float, most_rows: int, seed: int) -> Forecast:
        """Return the forecast for a dual that is smoothed by μ, relative to the largest weight."""
        m = problem.n_groups
        triples = np.random.default_rng(seed).integers(0, m, (3, SAMPLE))
        i, j, k = triples[:, (triples != np.roll(triples, 1, axis=0)).all(axis=0)]
        mu = smoothing * max(1.0, float(np.abs(problem.weights).max(initial=0)))
        one, two, three = (
            1.0 / (1.0 + np.exp(-np.clip(problem.weights[a, b] / mu, -50.0, 50.0)))
            for a, b in ((i, j), (j, k), (i, k))
        )
        conflicts = float(np.mean(one + two - three > 1.02)) if len(i) else 0.0
        rows = min(float(most_rows), conflicts * m**3 / 2)
        return cls(conflicts, SECONDS_PER_TRIPLE * m**3 + SECONDS_PER_ROW * rows)

    def search_first(self, seconds_left: float) -> bool:
        """Tell whether local search is to come before the dual, which will take too long."""
        if self.conflicts > RANDOM:
            return self.seconds > AT_ONCE
        return self.seconds > SHARE_OF_LOOK * seconds_left
