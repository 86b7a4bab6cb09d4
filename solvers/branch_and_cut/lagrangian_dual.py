r"""The Lagrangian dual: multipliers of inequalities, and the bounds that they prove.

**Inequalities.** Each one is a 2-partition inequality [Groetschel1990]_: for disjoint sets S and T,

.. math:: \sum_{s \in S, t \in T} x_{st} - \sum_{s < s' \in S} x_{ss'}
   - \sum_{t < t' \in T} x_{tt'} \le |S|,

where x_ij says whether i and j are together. A coalition with a of S and b of T adds
ab − a(a − 1)/2 − b(b − 1)/2 = a − d(d + 1)/2 ≤ a to the left, with d = a − b whole. With one player
in S, its *centre*, and two in T this is a triangle inequality: if c is with both, they are with
each other.

**Ascent.** The bound U(y) = Σy + Σ max(0, r_e) with r = w − Aᵀy is smoothed by replacing max(0, r)
with μ·log(1 + exp(r/μ)). The gradient of a row is then its slack at the soft point
x = 1/(1 + exp(−r/μ)), and FISTA with restarts applies [Nesterov2005]_, [Beck2009]_. Of all
3·C(m, 3) triangles only those are kept that are violated by the soft point or have a multiplier.

**Proof.** With multipliers y ≥ 0 and the reduced weights r = w − Aᵀy, no structure is worth more
than

.. math:: U = \sum_c y_c + \sum_{\text{undecided } e} \max(0, r_e),

and none in which the pair e is decided against the sign of r_e is worth more than U − |r_e|. All
numbers are integers in units of 2^−bits of a weight, so neither can be wrong by a rounding. A pair
whose other choice cannot beat the best structure so far is *pegged*.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coalitions.game import BoolMatrix, BoolVector, FloatVector, IntMatrix, IntVector
from solvers.branch_and_cut.partition_problem import FEW_GROUPS, PartitionProblem
from solvers.reductions import components
from solvers.solver import RandomState

# ----------------------------------------------------------------------------------------
# Multipliers: a number y ≥ 0 for each triangle and each cut.

Singles = NDArray[np.float32]
Smalls = NDArray[np.int32]
Ages = NDArray[np.int16]

LONGEST = 12
"""Most groups in the set T of a cut with one centre."""

WIDEST = 16
"""Most groups in both sets of a cut."""


@dataclass(frozen=True)
class Multipliers:
    """Multipliers of triangles and of larger cuts, in units of the integer weights.

    Attributes
    ----------
    triangles
        Centre and the two other groups, the smaller first [t, 3].
    triangle_values
        Their multipliers [t].
    cuts
        S, then T, each in ascending order, filled up with −1 [k, WIDEST].
    heads
        How many groups are in S [k]; T has more.
    cut_values
        Their multipliers [k].
    """

    triangles: IntMatrix
    triangle_values: FloatVector
    cuts: IntMatrix
    heads: IntVector
    cut_values: FloatVector

    @classmethod
    def none(cls) -> Multipliers:
        """Return no multipliers at all."""
        return cls(
            np.empty((0, 3), np.int64),
            np.empty(0),
            np.empty((0, WIDEST), np.int64),
            np.empty(0, np.int64),
            np.empty(0),
        )

    def mapped(self, merge: IntVector) -> Multipliers:
        """Return the multipliers after each group g became part of group merge[g].

        Groups of one side that meet count once, those of two sides not at all; an inequality that
        becomes trivial is left out.
        """
        m = int(merge.max()) + 1
        t = merge[self.triangles]
        low, high = np.minimum(t[:, 1], t[:, 2]), np.maximum(t[:, 1], t[:, 2])
        proper = (t[:, 0] != low) & (t[:, 0] != high) & (low != high)
        keys = ((t[:, 0] * m + low) * m + high)[proper]
        keys, values = _summed(keys, self.triangle_values[proper])
        triangles = np.stack([keys // (m * m), keys // m % m, keys % m], axis=1)

        row, place = np.nonzero(self.cuts >= 0)
        side = np.where(place < self.heads[row], -1.0, 1.0)
        cells, where = np.unique(row * m + merge[self.cuts[row, place]], return_inverse=True)
        side = np.sign(np.bincount(where, side, len(cells)))
        cells, side = cells[side != 0.0], side[side != 0.0]
        cuts, heads, kept = cuts_of(cells // m, cells % m, side < 0.0, len(self.cuts))
        names, first, where = np.unique(
            row_keys(cuts, heads), return_index=True, return_inverse=True
        )
        cut_values = np.bincount(where, self.cut_values[kept], len(names)).astype(np.float64)
        return Multipliers(triangles, values, cuts[first], heads[first], cut_values)


def cuts_of(
    row: IntVector, group: IntVector, is_head: BoolVector, n_rows: int
) -> tuple[IntMatrix, IntVector, IntVector]:
    """Return cuts, their heads, and which rows they were; what triangles imply is left out.

    Group group[k] is on one or the other side of row row[k]. The smaller side becomes S.
    """
    heads = np.bincount(row[is_head], minlength=n_rows)
    tails = np.bincount(row[~is_head], minlength=n_rows)
    is_head = is_head ^ (heads > tails)[row]
    heads, tails = np.minimum(heads, tails), np.maximum(heads, tails)
    # Sides of equal size say no more than what is left when one of either is taken away.
    kept = np.flatnonzero((heads > 0) & (tails > np.maximum(heads, 2)))
    order = np.lexsort((group, ~is_head, row))
    row, group = row[order], group[order]
    size = heads + tails
    cuts = np.full((n_rows, WIDEST), -1, np.int64)
    cuts[row, np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)] = group
    return cuts[kept], heads[kept], kept


def row_keys(cuts: IntMatrix, heads: IntVector) -> IntVector:
    """Return a number for each cut that another cut hardly ever has (a 64-bit hash).

    Two cuts with one number only cost one of them: multipliers of either are valid.
    """
    keys = np.zeros(len(cuts), np.uint64)
    for column in (heads, *cuts.T):
        keys = (keys ^ (column + 2).astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(29)
    return keys.view(np.int64)


def _summed(keys: IntVector, values: FloatVector) -> tuple[IntVector, FloatVector]:
    """Return the different keys in ascending order, and the sums of their values."""
    names, where = np.unique(keys, return_inverse=True)
    return names, np.bincount(where, values, len(names)).astype(np.float64)


# ----------------------------------------------------------------------------------------
# The same functions twice: compiled, or NumPy where groups are few.

DualFunctions: TypeAlias = ModuleType
"""`_cut_kernels` or `plain_dual`: the same functions with the same arguments."""


def dual_functions(n_groups: int, *, hurry: bool) -> DualFunctions:
    """Return what a search with so many groups at its root uses all the way down.

    Without a `hurry`, which is where the best structure is known or time is up, the search will be
    a long one, and worth a wait for kernels.
    """
    if hurry and n_groups <= FEW_GROUPS:
        from solvers.branch_and_cut import plain_dual as plain

        return plain
    from solvers.branch_and_cut import _cut_kernels as kernels

    return kernels


# ----------------------------------------------------------------------------------------
# Ascent: single precision, which guides and proves nothing.

# `python benchmarks/optimisers.py targets` shows what a change of these does.

BOLDNESS = 2.0
"""Steps are this much longer than the smoothness of the dual guarantees; restarts catch errors."""

PATIENCE = 3
"""Rounds for which a triangle without a multiplier is kept."""

MOST_TRIANGLES = 4_000_000


class TriangleRows(NamedTuple):
    """Triangles at work, one in each row.

    Attributes
    ----------
    pairs
        The three pairs of each, the one between its two outer groups last [t, 3].
    values, previous
        Multipliers now, and a step before [t].
    steps
        Step lengths, in units of μ [t].
    """

    pairs: Smalls
    values: Singles
    previous: Singles
    steps: Singles


class CutRows(NamedTuple):
    """Cuts at work, one in each row.

    Attributes
    ----------
    pointer, pairs, signs
        Row k has the pairs ``pairs[pointer[k] : pointer[k + 1]]``, and their signs there.
    sides
        Right-hand sides [k].
    values, previous, steps
        As of triangles [k].
    """

    pointer: IntVector
    pairs: Smalls
    signs: Singles
    sides: Singles
    values: Singles
    previous: Singles
    steps: Singles


class DualPoint(NamedTuple):
    """Where an ascent is; vectors over pairs.

    Attributes
    ----------
    reduced, previous
        Reduced weights r = w − Aᵀy now, and a step before.
    soft
        The soft point x.
    """

    reduced: Singles
    previous: Singles
    soft: Singles


class Ascent:
    """The dual of one problem under way.

    Parameters
    ----------
    problem
        What is to be bounded.
    multipliers
        Where to start.
    mu
        Smoothing, in units of the integer weights.
    functions
        Who does the arithmetic.
    """

    def __init__(
        self,
        problem: PartitionProblem,
        multipliers: Multipliers,
        mu: float,
        functions: DualFunctions,
    ) -> None:
        m = problem.n_groups
        self._functions = functions
        self.problem = problem
        self.scale = float(np.abs(problem.weights).max()) or 1.0
        self.mu = mu / self.scale
        self._weights = (np.triu(problem.weights, 1) / self.scale).astype(np.float32).ravel()
        self._undecided = (~problem.apart).astype(np.float32).ravel()
        order = np.lexsort(multipliers.triangles.T[::-1])
        triangles = multipliers.triangles[order]
        self._keys = (triangles[:, 0] * m + triangles[:, 1]) * m + triangles[:, 2]
        self._y = (multipliers.triangle_values[order] / self.scale).astype(np.float32)
        self._previous_y = self._y.copy()
        self._idle = np.zeros(len(self._y), np.int16)
        self._cuts = multipliers.cuts
        self._heads = multipliers.heads
        self._cut_keys = row_keys(self._cuts, self._heads)
        self._cut_y = (multipliers.cut_values / self.scale).astype(np.float32)
        self._previous_cut_y = self._cut_y.copy()
        self._cut_idle = np.zeros(len(self._cut_y), np.int64)
        self._x = np.zeros(m * m, np.float32)
        self._momentum = 1.0
        self._index()
        self._restart()

    @property
    def n_rows(self) -> int:
        """Number of inequalities at work."""
        return len(self._keys) + len(self._cuts)

    @property
    def point(self) -> Singles:
        """The soft point x as a symmetric matrix [m, m]."""
        m = self.problem.n_groups
        upper = np.triu(self._x.reshape(m, m), 1)
        point = upper + upper.T
        return point

    @property
    def multipliers(self) -> Multipliers:
        """The multipliers that are not zero."""
        m = self.problem.n_groups
        used = np.flatnonzero(self._y)
        keys = self._keys[used]
        triangles = np.stack([keys // (m * m), keys // m % m, keys % m], axis=1)
        cuts_used = np.flatnonzero(self._cut_y)
        return Multipliers(
            triangles,
            self._y[used].astype(np.float64) * self.scale,
            self._cuts[cuts_used],
            self._heads[cuts_used],
            self._cut_y[cuts_used].astype(np.float64) * self.scale,
        )

    def run(self, iterations: int, decay: float = 1.0) -> float:
        """Take some steps, μ shrinking by `decay` in each; return the bound, as a float."""
        triangles = TriangleRows(self._pairs, self._y, self._previous_y, self._steps)
        cuts = CutRows(
            self._cut_pointer,
            self._cut_pairs,
            self._signs,
            self._heads.astype(np.float32),
            self._cut_y,
            self._previous_cut_y,
            self._cut_steps,
        )
        point = DualPoint(self._reduced, self._previous_reduced, self._x)
        # numba takes plain tuples in a tenth of the time that named ones take.
        arrays = tuple(triangles), tuple(cuts), tuple(point)
        bound, self.mu, self._momentum = self._functions.ascend(
            self._weights, self._undecided, *arrays, self.mu, decay, self._momentum, iterations
        )
        return float(bound) * self.scale + self.problem.inside

    def update_triangles(self, tolerance: float, check: Callable[[], None]) -> int:
        """Take in violated triangles, let go of idle ones; return how many were violated.

        `check` is called often, and may raise an exception.
        """
        point = self.point
        m = len(point)
        room = max(1000, MOST_TRIANGLES - len(self._keys))
        # In pieces that take no more than some hundredths of a second.
        centres = max(1, min(m, int(1e8 / (m * m))))
        found = []
        for first in range(0, m, centres):
            last = min(m, first + centres)
            share = room * (last - first) // m
            found.append(self._functions.violated_triangles(point, first, last, tolerance, share))
            check()
        keys = np.concatenate(found)
        self._keys, self._y, self._previous_y, self._idle = self._functions.merge_rows(
            self._keys, self._y, self._previous_y, self._idle, PATIENCE, keys
        )
        self._index()
        return len(keys)

    def update_cuts(self, cuts: IntMatrix, heads: IntVector, patience: int) -> None:
        """Take in cuts, and let go of those that were idle for `patience` rounds."""
        self._cut_idle = np.where(self._cut_y > 0.0, 0, self._cut_idle + 1)
        keep = self._cut_idle < patience
        keys = row_keys(cuts, heads)
        new = ~np.isin(keys, self._cut_keys[keep])
        self._cuts = np.concatenate([self._cuts[keep], cuts[new]])
        self._heads = np.concatenate([self._heads[keep], heads[new]])
        self._cut_keys = np.concatenate([self._cut_keys[keep], keys[new]])
        none = np.zeros(np.count_nonzero(new), np.float32)
        self._cut_y = np.concatenate([self._cut_y[keep], none])
        self._previous_cut_y = np.concatenate([self._previous_cut_y[keep], none])
        self._cut_idle = np.concatenate([self._cut_idle[keep], none.astype(np.int64)])
        self._index()

    def decide(self, problem: PartitionProblem) -> None:
        """Go on with a problem in which more pairs of the same groups are apart."""
        self.problem = problem
        self._undecided = (~problem.apart).astype(np.float32).ravel()

    def _index(self) -> None:
        """Lay out pairs and step sizes of the rows at work.

        The curvature of row c is at most Σ_{e ∈ c} d_e / 4μ, with d_e the number of rows at
        pair e.
        """
        m = self.problem.n_groups
        self._pairs, degree = self._functions.triangle_pairs(self._keys, m)
        self._cut_pointer, self._cut_pairs, self._signs = self._functions.cut_pairs(
            self._cuts, self._heads, m
        )
        if len(self._cuts):
            degree += np.bincount(self._cut_pairs, minlength=m * m).astype(np.int32)
        self._steps = self._functions.step_lengths(self._pairs, degree, 4.0 * BOLDNESS)
        if len(self._cuts):
            crowd = np.add.reduceat(degree[self._cut_pairs], self._cut_pointer[:-1])
            self._cut_steps = (4.0 * BOLDNESS / crowd).astype(np.float32)
        else:
            self._cut_steps = np.empty(0, np.float32)

    def _restart(self) -> None:
        """Compute the reduced weights afresh, and drop the momentum."""
        reduced = self._weights.copy()
        for column, sign in ((0, -1.0), (1, -1.0), (2, 1.0)):
            reduced += sign * np.bincount(
                self._pairs[:, column], self._y, minlength=len(reduced)
            ).astype(np.float32)
        spread = np.repeat(self._cut_y, np.diff(self._cut_pointer)) * self._signs
        reduced -= np.bincount(self._cut_pairs, spread, minlength=len(reduced)).astype(np.float32)
        self._reduced = reduced
        self._previous_reduced = reduced.copy()
        self._momentum = 1.0


# ----------------------------------------------------------------------------------------
# Cuts: violated 2-partition inequalities at a fractional point.


def violated_cuts(
    x: Singles,
    *,
    violation: float,
    starts: int,
    at_most: int,
    state: RandomState,
    functions: DualFunctions,
) -> tuple[IntMatrix, IntVector]:
    """Return violated cuts with one centre as in `Multipliers`, and their heads; the worst first.

    Parameters
    ----------
    x
        A symmetric matrix with entries in [0, 1].
    violation
        Smallest violation worth a cut.
    starts
        Greedy constructions for each centre.
    at_most
        How many cuts to return.
    state
        Source of randomness.
    functions
        Who looks for them.
    """
    rows, depths = functions.grow_cuts(x, violation, starts, state)
    heads = np.ones(len(rows), np.int64)
    return _worst(rows, heads, depths, at_most)


def violated_partitions(
    x: Singles, *, violation: float, starts: int, at_most: int, state: RandomState
) -> tuple[IntMatrix, IntVector]:
    """Return violated cuts with any number of groups on both sides, and their heads.

    `starts` searches are made in all; the rest is as in `violated_cuts`.
    """
    from solvers.branch_and_cut._cut_kernels import grow_partitions

    row, group, is_head, depths = grow_partitions(x, violation, starts, state)
    cuts, heads, kept = cuts_of(row, group, is_head, len(depths))
    return _worst(cuts, heads, depths[kept], at_most)


def _worst(
    rows: IntMatrix, heads: IntVector, depths: FloatVector, at_most: int
) -> tuple[IntMatrix, IntVector]:
    """Return the deepest of the rows, each once, and their heads."""
    order = np.argsort(-depths, kind="stable")
    first = np.unique(row_keys(rows[order], heads[order]), return_index=True)[1]
    chosen = order[np.sort(first)[:at_most]]
    return rows[chosen], heads[chosen]


# ----------------------------------------------------------------------------------------
# Proof: the bound in whole numbers.

MAX_BITS = 20
HEADROOM = 2.0**60
"""Sums of scaled weights and multipliers stay below this, far from the end of int64."""


@dataclass(frozen=True)
class ExactBound:
    """What multipliers prove about a problem.

    Attributes
    ----------
    bits
        Weights and multipliers are counted in units of 2^−bits.
    triangle_values, cut_values
        The multipliers as integers.
    scaled
        U, in those units.
    reduced
        r above the diagonal [m, m], in those units; zero where a pair is decided.
    """

    bits: int
    triangle_values: IntVector
    cut_values: IntVector
    scaled: int
    reduced: IntMatrix

    @property
    def level(self) -> float:
        """U in units of a weight, rounded."""
        return float(self.scaled) / 2.0**self.bits

    @property
    def bound(self) -> int:
        """The largest whole number that is not above U."""
        return self.scaled >> self.bits


def exact_bound(
    problem: PartitionProblem, multipliers: Multipliers, functions: DualFunctions
) -> ExactBound:
    """Return the bound that the multipliers prove, after rounding them to integers."""
    heaviest = float(np.abs(problem.weights).sum(dtype=np.float64)) + abs(problem.inside)
    heaviest += 3.0 * float(multipliers.triangle_values.sum())
    heaviest += multipliers.cuts.shape[1] ** 2 * float(multipliers.cut_values.sum())
    bits = MAX_BITS
    while bits and heaviest * 2.0**bits >= HEADROOM:
        bits -= 1
    triangle_values = _as_integers(multipliers.triangle_values, bits)
    cut_values = _as_integers(multipliers.cut_values, bits)
    reduced = problem.weights << bits
    total = functions.subtract_rows(
        reduced,
        multipliers.triangles,
        triangle_values,
        multipliers.cuts,
        multipliers.heads,
        cut_values,
    )
    reduced[problem.apart | _below(problem.n_groups)] = 0
    scaled = int(total) + int(np.maximum(reduced, 0).sum()) + (problem.inside << bits)
    return ExactBound(bits, triangle_values, cut_values, scaled, reduced)


@functools.lru_cache(maxsize=8)
def _below(m: int) -> BoolMatrix:
    """Return which cells of a matrix [m, m] are not above the diagonal."""
    return np.tri(m, dtype=np.bool_)


def _as_integers(values: FloatVector, bits: int) -> IntVector:
    return np.floor(np.maximum(values, 0.0) * 2.0**bits).astype(np.int64)


# ----------------------------------------------------------------------------------------
# Pegging: pairs that the reduced weights decide.


def pegged(
    problem: PartitionProblem, proof: ExactBound, value: int
) -> tuple[PartitionProblem | None, IntVector | None]:
    """Return the problem after pegging, and how its groups were merged.

    A structure in which pair e is decided against the sign of r_e is worth at most U − |r_e|. If
    that is not above `value`, only structures with the sign of r_e can be better. Decisions carry
    over: whoever is apart from one member of a group is apart from all.

    Returns
    -------
    problem
        None if no structure can be better than `value`.
    merge
        New number of each group; None if no groups were put together.
    """
    enough = proof.scaled - ((value + 1) << proof.bits)
    first, second = np.nonzero(np.abs(proof.reduced) > enough)
    undecided = ~problem.apart[first, second] & (first < second)
    first, second = first[undecided], second[undecided]
    positive = proof.reduced[first, second] > 0
    if not positive.all():
        problem = problem.separated(first[~positive], second[~positive])
    if not positive.any():
        return problem, None
    merge = components(problem.n_groups, first[positive], second[positive])
    return problem.merged(merge), merge
