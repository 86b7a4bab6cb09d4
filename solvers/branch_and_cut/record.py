"""Record: the tree of a search, kept so that it can be written down as a certificate."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from coalitions.game import IntVector
from solvers.branch_and_cut.exact import ExactBound
from solvers.branch_and_cut.multipliers import Multipliers
from solvers.branch_and_cut.problem import IntMatrix, Problem
from solvers.certificate import Branch, Stage


@dataclass(frozen=True)
class _Stage:
    """Integer multipliers of rows named by players, not by groups that change."""

    bits: int
    triangles: IntMatrix
    triangle_values: IntVector
    cuts: list[tuple[int, ...]]
    cut_values: list[int]


@dataclass
class _Branch:
    stages: list[_Stage] = field(default_factory=list)
    pair: tuple[int, int] | None = None
    together: int | None = None
    apart: int | None = None


class Record:
    """Branches of a search in the order in which they were opened."""

    def __init__(self) -> None:
        self._branches = [_Branch()]

    def __len__(self) -> int:
        return len(self._branches)

    def prove(
        self, branch: int, problem: Problem, multipliers: Multipliers, proof: ExactBound
    ) -> None:
        """Note multipliers that decided pairs, or the whole branch."""
        player = problem.representatives
        used = np.flatnonzero(proof.triangle_values)
        rows = multipliers.cuts
        cuts = [
            (tuple(player[list(rows[k])].tolist()), int(proof.cut_values[k]))
            for k in np.flatnonzero(proof.cut_values)
        ]
        self._branches[branch].stages.append(
            _Stage(
                proof.bits,
                player[multipliers.triangles[used]],
                proof.triangle_values[used],
                [row for row, _ in cuts],
                [value for _, value in cuts],
            )
        )

    def split(self, branch: int, problem: Problem, first: int, second: int) -> tuple[int, int]:
        """Note that a branch goes on in two cases; return the numbers of the cases."""
        player = problem.representatives
        together, apart = len(self._branches), len(self._branches) + 1
        entry = self._branches[branch]
        entry.pair = (int(player[first]), int(player[second]))
        entry.together, entry.apart = together, apart
        self._branches += [_Branch(), _Branch()]
        return together, apart

    def written(self) -> tuple[tuple[tuple[int, ...], ...], tuple[Branch, ...]]:
        """Return the rows that were used and the tree over them, for a `Part`."""
        number: dict[tuple[int, ...], int] = {}

        def stage(kept: _Stage) -> Stage:
            rows = [*map(tuple, kept.triangles.tolist()), *kept.cuts]
            values = [*kept.triangle_values.tolist(), *kept.cut_values]
            return Stage(
                kept.bits,
                tuple(number.setdefault(row, len(number)) for row in rows),
                tuple(values),
            )

        tree = tuple(
            Branch(tuple(map(stage, entry.stages)), entry.pair, entry.together, entry.apart)
            for entry in self._branches
        )
        return tuple(number), tree
