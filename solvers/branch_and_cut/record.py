"""Record: the tree of a search, kept so that it can be written down as a certificate."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from coalitions.game import IntVector
from solvers.branch_and_cut.exact import ExactBound
from solvers.branch_and_cut.multipliers import LONGEST, Multipliers, row_keys
from solvers.branch_and_cut.problem import IntMatrix, Problem
from solvers.certificate import Branch, Stage


@dataclass(frozen=True)
class _Stage:
    """Integer multipliers of rows named by players, not by groups that change."""

    bits: int
    triangles: IntMatrix
    triangle_values: IntVector
    cuts: IntMatrix
    cut_values: IntVector


@dataclass
class _Branch:
    stages: list[_Stage] = field(default_factory=list)
    pair: tuple[int, int] | None = None
    together: int | None = None
    apart: int | None = None


class Record:
    """Branches of a search in the order in which they were opened.

    Parameters
    ----------
    n_players
        Number of players of the graph.
    """

    def __init__(self, n_players: int) -> None:
        self._n_players = n_players
        self._branches = [_Branch()]

    def __len__(self) -> int:
        return len(self._branches)

    def prove(
        self, branch: int, problem: Problem, multipliers: Multipliers, proof: ExactBound
    ) -> None:
        """Note multipliers that decided pairs, or the whole branch."""
        # One more cell, so that −1 stays −1.
        player = np.append(problem.representatives, -1)
        triangles_used = np.flatnonzero(proof.triangle_values)
        cuts_used = np.flatnonzero(proof.cut_values)
        self._branches[branch].stages.append(
            _Stage(
                proof.bits,
                player[multipliers.triangles[triangles_used]].astype(np.int32),
                proof.triangle_values[triangles_used],
                player[multipliers.cuts[cuts_used]].astype(np.int32),
                proof.cut_values[cuts_used],
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

    def written(self) -> tuple[IntMatrix, IntMatrix, tuple[Branch, ...]]:
        """Return the triangles and the cuts that were used and the tree over them, for a `Part`."""
        stages = [stage for entry in self._branches for stage in entry.stages]
        n = self._n_players
        no_triangle = np.empty((0, 3), np.int64)
        triangles = np.concatenate([no_triangle, *(stage.triangles for stage in stages)])
        keys, row = np.unique(
            (triangles[:, 0] * n + triangles[:, 1]) * n + triangles[:, 2], return_inverse=True
        )
        triangles = np.stack([keys // (n * n), keys // n % n, keys % n], axis=1)
        no_cut = np.empty((0, 1 + LONGEST), np.int64)
        cuts = np.concatenate([no_cut, *(stage.cuts for stage in stages)])
        _, first, cut_row = np.unique(row_keys(cuts), return_index=True, return_inverse=True)
        cuts = cuts[first]
        cut_row += len(triangles)
        t = c = 0
        tree = []
        for entry in self._branches:
            written = []
            for stage in entry.stages:
                ends = t + len(stage.triangles), c + len(stage.cuts)
                rows = np.concatenate([row[t : ends[0]], cut_row[c : ends[1]]])
                values = np.concatenate([stage.triangle_values, stage.cut_values])
                written.append(Stage(stage.bits, rows, values))
                t, c = ends
            tree.append(Branch(tuple(written), entry.pair, entry.together, entry.apart))
        return triangles, cuts, tuple(tree)
