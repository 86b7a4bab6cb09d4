"""Record: the tree of a search, kept so that it can be written down as a certificate."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from coalitions.game import IntVector
from solvers.branch_and_cut.dual.exact import ExactBound
from solvers.branch_and_cut.dual.multipliers import WIDEST, Multipliers
from solvers.branch_and_cut.problem import Problem
from solvers.proofs.certificate import Branch, Stage
from solvers.proofs.teams import GroupPrices

Rows = NDArray[np.int32]

_NO_TRIANGLE = np.empty((0, 3), np.int32)
_NO_CUT = np.empty((0, WIDEST), np.int32)

MOST_CELLS = 250_000_000
"""A record that needs more cells than this (1 GB) is given up, and there is no certificate."""


@dataclass(frozen=True)
class _Stage:
    """Integer multipliers of rows named by players, not by groups that change."""

    bits: int
    triangles: Rows
    triangle_values: IntVector
    cuts: Rows
    heads: IntVector
    cut_values: IntVector


@dataclass
class _Branch:
    stages: list[_Stage] = field(default_factory=list)
    pair: tuple[int, int] | None = None
    together: int | None = None
    apart: int | None = None


class Record:
    """Branches of a search in the order in which they were opened.

    Attributes
    ----------
    complete
        Whether everything was kept; False once it grew too large.
    """

    def __init__(self) -> None:
        self._branches = [_Branch()]
        self._pending: list[tuple[int, Problem, Multipliers, ExactBound]] = []
        self._priced: tuple[GroupPrices, int] | None = None
        self._cells = 0
        self.complete = True

    def __len__(self) -> int:
        return len(self._branches)

    def prove(
        self, branch: int, problem: Problem, multipliers: Multipliers, proof: ExactBound
    ) -> None:
        """Note multipliers that decided pairs, or the whole branch."""
        self._cells += 5 * len(multipliers.triangles) + (3 + WIDEST) * len(multipliers.cuts)
        if self._cells > MOST_CELLS:
            self.complete = False
            for entry in self._branches:
                entry.stages.clear()
        if not self.complete:
            return
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
                multipliers.heads[cuts_used],
                proof.cut_values[cuts_used],
            )
        )

    def prove_later(
        self, branch: int, problem: Problem, multipliers: Multipliers, proof: ExactBound
    ) -> None:
        """Note multipliers when the record is written: whoever was stopped has no time left."""
        self._pending.append((branch, problem, multipliers, proof))

    def price(self, prices: GroupPrices, bound: int) -> None:
        """Note prices that prove a bound on everything that the root leaves."""
        self._priced = prices, bound

    def split(self, branch: int, problem: Problem, first: int, second: int) -> tuple[int, int]:
        """Note that a branch goes on in two cases; return the numbers of the cases."""
        player = problem.representatives
        together, apart = len(self._branches), len(self._branches) + 1
        entry = self._branches[branch]
        entry.pair = (int(player[first]), int(player[second]))
        entry.together, entry.apart = together, apart
        self._branches += [_Branch(), _Branch()]
        return together, apart

    def written(self, bound: int) -> tuple[Rows, Rows, IntVector, tuple[Branch, ...]]:
        """Return triangles, cuts and heads that were used and the tree over them, for a `Part`.

        Where prices prove the bound, the cases of the root are not needed.
        """
        while self._pending:
            self.prove(*self._pending.pop(0))
        branches, prices = self._branches, None
        if self._priced is not None and self._priced[1] <= bound:
            branches, prices = [_Branch(branches[0].stages)], self._priced[0]
        stages = [stage for entry in branches for stage in entry.stages]
        triangles = np.concatenate([_NO_TRIANGLE, *(stage.triangles for stage in stages)])
        cuts = np.concatenate([_NO_CUT, *(stage.cuts for stage in stages)])
        heads = np.concatenate([np.empty(0, np.int64), *(stage.heads for stage in stages)])
        t, c = 0, len(triangles)
        tree = []
        for entry in branches:
            written = []
            for stage in entry.stages:
                ends = t + len(stage.triangles), c + len(stage.cuts)
                rows = np.concatenate([np.arange(t, ends[0]), np.arange(c, ends[1])])
                values = np.concatenate([stage.triangle_values, stage.cut_values])
                written.append(Stage(stage.bits, rows, values))
                t, c = ends
            tree.append(Branch(tuple(written), entry.pair, entry.together, entry.apart, prices))
        return triangles, cuts, heads, tuple(tree)
