r"""The tree of a proof, walked in exact integers.

With a claimed bound B, a branch is checked as follows. Some nodes are known to be together (one
*group*), some groups to be apart. A stage gives multipliers y ≥ 0 of inequalities that every
structure obeys, with right-hand sides s; with the reduced weights r = w − Aᵀy summed over groups,

.. math:: U = \sum s y + \sum_{\text{inside groups}} r + \sum_{\text{undecided } e} \max(0, r_e)

is a bound, and U − |r_e| one for structures that decide e against the sign of r_e. If U ≤ B the
branch is closed. If U − |r_e| ≤ B, pair e is decided by its sign, for the other case is closed. A
branching pair that is still undecided opens two branches, and every leaf must be closed. Prices of
coalitions close a branch, too; they are checked in `solvers.proofs._coalitions`.

Only pairs that have a weight, or are named by an inequality or a branch, are ever looked at: the
reduced weight of any other pair is 0. One state serves the whole walk, with a trail of what was
decided, to be undone on the way back. So memory grows with the graph and the certificate, not
with the depth of the tree.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from coalitions.game import BoolVector, IntVector
from solvers.proofs._coalitions import check_prices
from solvers.proofs._weights import SAFE, Whole
from solvers.proofs.certificate import LONGEST_CUT, MOST_BITS, Branch, Part, Stage
from solvers.proofs.proof_demands import refuse_unless
from solvers.proofs.teams import GroupPrices

LOOKS_FOR_FREE, CELLS_PER_NUMBER = 1000, 200
"""How often all pairs of a part may be looked at in any case, and how many pairs for each number in
its proof. Proofs of our solver took up to 650 looks, and 0.3 pairs for each number where they took
more than a few; without a limit a short file could ask for days."""


def check_part(part: Part, one: IntVector, two: IntVector, weights: Whole, name: str) -> None:
    """Refuse the proof of a part unless no structure of its nodes is worth more than its bound.

    Parameters
    ----------
    part
        The proof. Its nodes go by their places in the part.
    one, two
        Pairs of nodes with a weight, the smaller first, each pair once.
    weights
        Their whole numbers.
    name
        What the part is called in a complaint.

    Raises
    ------
    InvalidInputError
        The proof does not show it.
    """
    _check_tree(part, name)
    _check_rows(part, name)
    _Walk(part, one, two, weights, name).walk()


def _check_tree(part: Part, name: str) -> None:
    """Refuse what is no tree: each branch but the first is the case of one before it, once."""
    tree, named = part.tree, []
    refuse_unless(tree, f"{name} has no tree")
    for index, branch in enumerate(tree):
        if branch.pair is None:
            continue
        i, j = branch.pair
        refuse_unless(
            0 <= i < len(part.nodes) and 0 <= j < len(part.nodes) and i != j,
            f"{name} branches on no pair",
        )
        for case in (branch.together, branch.apart):
            refuse_unless(
                case is not None and index < case < len(tree),
                f"{name} has a branch without its two cases",
            )
            named.append(case)
    refuse_unless(len(set(named)) == len(named), f"{name} has a branch that two others lead to")
    refuse_unless(len(named) == len(tree) - 1, f"{name} has a branch that no other leads to")


def _check_rows(part: Part, name: str) -> None:
    """Refuse anything that is not a 2-partition inequality of the nodes."""
    n, triangles, cuts = len(part.nodes), part.triangles, part.cuts
    refuse_unless(
        triangles.ndim == 2
        and triangles.shape[1] == 3
        and bool(((triangles >= 0) & (triangles < n)).all())
        and not (triangles[:, [0, 0, 1]] == triangles[:, [1, 2, 2]]).any(),
        f"{name} has a triangle that is none",
    )
    refuse_unless(
        cuts.ndim == 2 and 1 <= cuts.shape[1] <= LONGEST_CUT,
        f"{name} has a cut of more than {LONGEST_CUT} nodes",
    )
    there = cuts >= 0
    ordered = np.sort(np.where(there, cuts, n + np.arange(cuts.shape[1])), axis=1)
    refuse_unless(
        not (there[:, 1:] & ~there[:, :-1]).any()
        and bool((there.sum(axis=1) >= 2).all())
        and bool(((cuts >= -1) & (cuts < n)).all())
        and not (ordered[:, 1:] == ordered[:, :-1]).any(),
        f"{name} has a cut that is none",
    )
    heads = part.sides
    refuse_unless(
        heads.shape == (len(cuts),) and bool(((heads >= 1) & (heads < there.sum(axis=1))).all()),
        f"{name} has a cut without two sides",
    )


class _Walk:
    """A walk through the tree of one part."""

    def __init__(
        self, part: Part, one: IntVector, two: IntVector, weights: Whole, name: str
    ) -> None:
        self._part, self._name = part, name
        self._given = one, two, weights
        n = self._n = len(part.nodes)
        rows, ends, signs = _entries(part)
        branches = np.array(
            [branch.pair for branch in part.tree if branch.pair is not None], np.int64
        ).reshape(-1, 2)
        asked = np.concatenate([ends, branches])
        keys = asked.min(axis=1) * n + asked.max(axis=1)
        own = one * n + two
        names = np.unique(np.concatenate([own, keys]))
        # The last pair is node 0 with itself: what is inside groups ends up there.
        self._one: IntVector = np.append(names // n, 0)
        self._two: IntVector = np.append(names % n, 0)
        self._weights: Whole = np.zeros(len(names) + 1, weights.dtype)
        self._weights[np.searchsorted(names, own)] = weights
        self._apart: BoolVector = np.zeros(len(names) + 1, np.bool_)
        # Row r has the entries from _start[r] on; each is a pair with a sign.
        self._start = np.concatenate([[0], np.cumsum(rows)])
        self._pair = np.searchsorted(names, keys[: len(ends)])
        self._sign = signs
        self._sides = np.concatenate([np.ones(len(part.triangles), np.int64), part.sides])
        self._groups: IntVector = np.arange(n)
        self._slots: IntVector | None = np.arange(len(names) + 1)
        self._trail: list[tuple[bool, IntVector, int]] = []
        self._cells_left = LOOKS_FOR_FREE * len(self._weights) + CELLS_PER_NUMBER * _size(part)

    def walk(self) -> None:
        """Go through all branches; complain about a leaf that stays open."""
        self._follow_merges(self._part.merges)
        tree = self._part.tree
        left: list[tuple[int, int, tuple[int, int] | None, bool]] = [(0, 0, None, False)]
        while left:
            index, mark, pair, is_together = left.pop()
            self._undo(mark)
            if pair is not None and not self._decide(pair, is_together):
                continue
            branch = tree[index]
            if self._is_closed(branch, at_root=index == 0):
                continue
            if branch.prices is not None:
                self._check_prices(branch.prices)
                continue
            refuse_unless(branch.pair is not None, f"{self._name} leaves branch {index} open")
            assert branch.together is not None
            assert branch.apart is not None
            mark = len(self._trail)
            left.append((branch.apart, mark, branch.pair, False))
            left.append((branch.together, mark, branch.pair, True))

    # ------------------------------------------------------------------ decisions

    def _unite(self, i: int, j: int) -> None:
        """Put the groups of two nodes together."""
        groups = self._groups
        if groups[i] == groups[j]:
            return
        one, two = np.flatnonzero(groups == groups[i]), np.flatnonzero(groups == groups[j])
        kept, moved = (one, two) if len(one) >= len(two) else (two, one)
        self._trail.append((True, moved, int(groups[moved[0]])))
        groups[moved] = groups[kept[0]]
        self._slots = None

    def _separate(self, pairs: IntVector) -> None:
        """Note that the two groups of each of these pairs are apart."""
        self._trail.append((False, pairs, 0))
        self._apart[pairs] = True

    def _undo(self, mark: int) -> None:
        while len(self._trail) > mark:
            is_merger, which, group = self._trail.pop()
            if is_merger:
                self._groups[which] = group
                self._slots = None
            else:
                self._apart[which] = False

    def _decide(self, pair: tuple[int, int], is_together: bool) -> bool:
        """Put the nodes of a branching pair together or apart; tell whether that is possible."""
        one, two = self._groups[list(pair)]
        if is_together or one == two:
            if is_together:
                self._unite(*pair)
            return is_together and not self._is_contradiction()
        a, b = self._groups[self._one], self._groups[self._two]
        between = ((a == one) & (b == two)) | ((a == two) & (b == one))
        self._separate(np.flatnonzero(between & ~self._apart))
        return True

    def _is_contradiction(self) -> bool:
        """Tell whether somebody is together with and apart from the same one."""
        apart = np.flatnonzero(self._apart)
        return bool((self._groups[self._one[apart]] == self._groups[self._two[apart]]).any())

    def _follow_merges(self, merges: tuple[tuple[int, int], ...]) -> None:
        """Put together pairs of nodes that some best structure has together, each by a rule.

        It is so if 2 w_ij ≥ Σ_k |w_ik − w_jk|, for else i or j would rather move to the other, or
        if w_ij ≥ Σ_k |w_ak| for one a of the two, which then has nothing better.
        """
        if not merges:
            return
        n, groups = self._n, self._groups
        ends = np.concatenate([self._one, self._two])
        order = np.argsort(ends, kind="stable")
        start = np.searchsorted(ends[order], np.arange(n + 1))
        others = np.concatenate([self._two, self._one])[order]
        values = np.concatenate([self._weights, self._weights])[order]
        rows: dict[int, tuple[IntVector, Whole]] = {}

        def row(i: int) -> Whole:
            near = slice(start[i], start[i + 1])
            columns, weights = rows.pop(i, (others[near], values[near]))
            line = np.zeros(n, values.dtype)
            np.add.at(line, groups[columns], weights)
            return line

        for i, j in merges:
            refuse_unless(
                0 <= i < n and 0 <= j < n and i != j and groups[i] == i and groups[j] == j,
                f"{self._name} merges nodes that are not there",
            )
            first, second = row(i), row(j)
            weight = int(first[j])
            first[[i, j]] = second[[i, j]] = 0
            refuse_unless(
                weight >= 0
                and (
                    2 * weight >= int(np.abs(first - second).sum())
                    or weight >= min(int(np.abs(first).sum()), int(np.abs(second).sum()))
                ),
                f"{self._name} merges nodes {i} and {j} without reason",
            )
            first += second
            columns = np.flatnonzero(first)
            rows[i] = columns, first[columns]
            groups[groups == j] = i
        self._slots = None

    # ------------------------------------------------------------------ bounds

    def _is_closed(self, branch: Branch, at_root: bool) -> bool:
        """Follow the stages of a branch; tell whether nothing in it is above the claim."""
        for stage in branch.stages:
            if at_root:
                self._shrink()
            if self._is_closed_by(*self._reduced(stage)):
                return True
        if at_root:
            self._shrink()
        # Multipliers of zero close a branch in which everything is decided.
        return self._is_closed_by(0, 1, self._weights)

    def _is_closed_by(self, total: int, scale: int, reduced: Whole) -> bool:
        """Decide pairs by their reduced weights; tell whether nothing is above the claim."""
        self._pay(len(reduced))
        slots = self._numbered()
        sums = np.zeros(len(slots), reduced.dtype)
        np.add.at(sums, slots, reduced)
        undecided = np.ones(len(slots), np.bool_)
        undecided[slots[self._apart]] = False
        undecided[slots[-1]] = False
        bound = total + int(sums[slots[-1]]) + int(np.maximum(sums[undecided], 0).sum())
        # Whole numbers: above the claim means at least one more.
        enough = bound - (self._part.bound + 1) * scale
        if enough < 0:
            return True
        if sums.dtype == np.int64 and enough >= SAFE:
            return False
        pegs = undecided & (np.abs(sums) > enough)
        if not pegs.any():
            return False
        pegged = pegs[slots] & ~self._apart
        is_positive = (sums > 0)[slots]
        self._separate(np.flatnonzero(pegged & ~is_positive))
        united = np.flatnonzero(pegged & is_positive)
        for i, j in zip(self._one[united].tolist(), self._two[united].tolist(), strict=True):
            self._unite(i, j)
        return self._is_contradiction()

    def _check_prices(self, prices: GroupPrices) -> None:
        """Refuse prices that leave something in this branch above the claim."""
        decided = np.flatnonzero(self._apart)
        apart = np.stack((self._one[decided], self._two[decided]), axis=1)
        bound = self._part.bound
        check_prices(prices, self._groups, apart, *self._given, bound, self._name)

    def _numbered(self) -> IntVector:
        """Return for each pair the number of its pair of groups; the last is for inside pairs."""
        if self._slots is None:
            a, b = self._groups[self._one], self._groups[self._two]
            low, high = np.minimum(a, b), np.maximum(a, b)
            keys = np.where(low == high, self._n * self._n, low * self._n + high)
            self._slots = np.unique(keys, return_inverse=True)[1]
        return self._slots

    def _shrink(self) -> None:
        """Make one pair of all pairs between two groups; only for what will not be undone."""
        slots = self._numbered()
        size = int(slots.max()) + 1
        if 2 * size > len(slots):
            return
        one, two = np.zeros(size, np.int64), np.zeros(size, np.int64)
        one[slots], two[slots] = self._groups[self._one], self._groups[self._two]
        one[-1] = two[-1] = 0
        weights = np.zeros(size, self._weights.dtype)
        np.add.at(weights, slots, self._weights)
        apart = np.zeros(size, np.bool_)
        apart[slots[self._apart]] = True
        self._pair = slots[self._pair]
        self._one, self._two, self._weights, self._apart = one, two, weights, apart
        self._trail.clear()
        self._slots = np.arange(size)

    def _reduced(self, stage: Stage) -> tuple[int, int, Whole]:
        """Return Σ y·|S|, the scale and the reduced weights of all pairs."""
        rows, values = stage.rows, stage.values
        refuse_unless(
            0 <= stage.bits <= MOST_BITS,
            f"{self._name} has a stage whose bits are not 0 to {MOST_BITS}",
        )
        refuse_unless(
            len(rows) == len(values)
            and bool(((rows >= 0) & (rows < len(self._start) - 1)).all())
            and bool((values >= 0).all()),
            f"{self._name} has a stage with wrong rows or negative multipliers",
        )
        scale = 1 << stage.bits
        start, count = self._start[rows], self._start[rows + 1] - self._start[rows]
        # Entry k of a row is k places after its first one.
        last = np.cumsum(count)
        entries = np.arange(last[-1] if len(last) else 0) + np.repeat(start - last + count, count)
        heaviest = float(values.astype(np.float64) @ count.astype(np.float64))
        heaviest += float(scale) * float(np.abs(self._weights).sum())
        kind: Any = np.int64 if self._weights.dtype == np.int64 and heaviest < SAFE else object
        reduced = self._weights.astype(kind) * scale
        y = np.repeat(values.astype(kind), count)
        np.add.at(reduced, self._pair[entries], self._sign[entries] * y)
        sides = self._sides[rows].tolist()
        total = sum(side * value for side, value in zip(sides, values.tolist(), strict=True))
        return total, scale, reduced

    def _pay(self, cells: int) -> None:
        self._cells_left -= cells
        refuse_unless(
            self._cells_left >= 0, f"{self._name} asks for more work than a proof of its size needs"
        )


def _entries(part: Part) -> tuple[IntVector, IntVector, IntVector]:
    """Return how many pairs each inequality has, and all of them [k, 2] with their signs.

    A pair between the sides has the coefficient 1 in the inequality, any other −1: that much of a
    multiplier is taken from its weight.
    """
    triangles, cuts = part.triangles.astype(np.int64), part.cuts.astype(np.int64)
    ends = [triangles[:, [0, 1, 0, 2, 1, 2]].reshape(-1, 2)]
    signs = [np.tile(np.array([-1, -1, 1], np.int8), len(triangles))]
    rows = [np.full(len(triangles), 3)]
    pairs = np.array(list(itertools.combinations(range(cuts.shape[1]), 2)), np.int64).reshape(-1, 2)
    one, two = pairs.T
    heads = part.sides[:, None]
    for start in range(0, len(cuts), 4096):  # some at a time: most cuts are far from the longest
        block = cuts[start : start + 4096]
        there = block[:, two] >= 0  # the later one of the two
        rows.append(there.sum(axis=1))
        ends.append(np.stack([block[:, one][there], block[:, two][there]], axis=1))
        head = heads[start : start + 4096]
        between = (one < head) & (head <= two)
        signs.append(np.where(between, -1, 1).astype(np.int8)[there])
    return np.concatenate(rows), np.concatenate(ends), np.concatenate(signs)


def _size(part: Part) -> int:
    """Return how many numbers a proof consists of, more or less."""
    stages = sum(2 * len(stage.rows) + 1 for branch in part.tree for stage in branch.stages)
    nodes = sum(map(len, part.nodes))
    named = 3 * len(part.triangles) + int(np.count_nonzero(part.cuts >= 0))
    return stages + nodes + named + 2 * len(part.merges) + 4 * len(part.tree)
