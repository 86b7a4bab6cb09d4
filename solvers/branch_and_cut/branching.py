"""The tree: bound, cut, peg and branch until nothing can be better than the best structure so far.

The record of the tree is what a certificate is written from.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from coalitions.game import IntMatrix, IntVector
from coalitions.runtime import clock
from solvers.branch_and_cut.branch_and_cut import is_hopeless
from solvers.branch_and_cut.lagrangian_dual import (
    WIDEST,
    Ascent,
    ExactBound,
    Multipliers,
    Singles,
    dual_functions,
    exact_bound,
    pegged,
    violated_cuts,
    violated_partitions,
)
from solvers.branch_and_cut.partition_problem import PartitionIncumbent, PartitionProblem, Schedule
from solvers.branch_and_cut.russian_dolls import ConflictColumns, ShortCuts
from solvers.proofs.certificate import Branch, Stage
from solvers.proofs.teams import GroupPrices
from solvers.reductions import components
from solvers.solver import RandomState, random_state

# `python benchmarks/optimisers.py targets` shows what a change of these does.

SMOOTH, SHARP, SHARPEST = 0.2, 0.002, 0.0002
"""Smoothing at the start, after the warm-up and in the end, relative to the largest weight."""

WARM_UP = 100
"""Steps in which the smoothing shrinks to `SHARP`."""

CHUNK = 20
"""Steps between two looks at the bound."""

TINY, SMALL = 25, 60
"""Up to this many groups a look at the bound costs more than the steps between two looks."""

HORIZON = 100
"""Rounds of cuts within which a node must promise to close; else it is time to branch."""

FIRST_TRIALS, TRIALS, STEPS_OF_TRIAL = 3, 8, 30
"""Pairs that are tried before a node is split, fewer for the first split, which may be the only
one; and steps of the dual in each case of a trial."""

ROOT_HORIZON = 500
"""The same at the root for cuts of two sides: they come slowly, and every node below has them."""

SOFTER = 4.0
"""How much more smoothing a case begins with there than its node ended with: the dual has a long
way to go again, and sharp steps are short."""

MOST_FOR_PARTITIONS = 200
"""Cuts with several groups on both sides are looked for among so many groups; it takes 0.05 s."""

HORIZON_IF_KNOWN, PATIENCE_IF_KNOWN = 10, 1
"""The same where the best structure is known, and how many slow rounds are borne: groups are few
then, and a branch costs less than sharper steps."""


@dataclass(frozen=True)
class Proof:
    """Multipliers of a problem and the bound they prove."""

    problem: PartitionProblem
    multipliers: Multipliers
    exact: ExactBound


@dataclass(frozen=True)
class Node:
    """A problem that is still open.

    Attributes
    ----------
    problem, multipliers, mu
        What to bound, and where to start.
    bound
        No structure of the problem has an integer value above this.
    proof
        What proves the bound; None if it is just the sum of the positive weights.
    branch
        Number of the branch in the record.
    point
        Where the dual ended, if the bound became no sharper: here the node is to be split.
    """

    problem: PartitionProblem
    multipliers: Multipliers
    mu: float
    bound: int
    proof: Proof | None = None
    branch: int = 0
    point: Singles | None = None


class PartitionSearch:
    """Branch and cut on one graph with integer weights.

    Parameters
    ----------
    problem
        What is to be decided.
    incumbent
        The best structure so far; it is improved on the way.
    allowed
        Maps the incumbent's value to the highest bound that counts as closed.
    check
        Called often; raises an exception to end the search. Everything stays valid then.
    seconds_left
        Tells how much time there is; a short time makes the warm-up shorter.
    seed
        Source of randomness.
    certify
        Whether the record must hold a proof of everything.
    known
        Whether the incumbent is the best structure: then none is looked for.
    """

    def __init__(
        self,
        problem: PartitionProblem,
        incumbent: PartitionIncumbent,
        *,
        allowed: Callable[[int], int],
        check: Callable[[], None],
        seconds_left: Callable[[], float],
        seed: int,
        certify: bool,
        known: bool = False,
    ) -> None:
        self.incumbent = incumbent
        self._functions = dual_functions(problem.n_groups, hurry=known or seconds_left() <= 0.0)
        self._known = known
        self.record = PartitionRecord()
        self.steps = 0
        self.cuts = 0
        self.columns = 0
        # Dolls leave nothing to check, and the caller had a try with all that is undecided.
        self.short_cuts = None if certify else ShortCuts(incumbent, problem.n_undecided)
        self._beside = Schedule(incumbent, check, idle=known)
        # Cuts of two sides are for graphs that do not close by others.
        self._two_sided = False
        self._work = 0
        self._allowed = allowed
        self._check = check
        self._seconds_left = seconds_left
        self._seed = seed
        self._state: RandomState = random_state(seed, 1)
        self._closed = 0
        self._level = math.inf
        self._scale = float(np.abs(problem.weights).max(initial=1))
        bound = problem.inside + int(np.maximum(problem.weights, 0).sum()) // 2
        self._open = [Node(problem, Multipliers.none(), SMOOTH * self._scale, bound)]

    @property
    def bound(self) -> int:
        """No structure has an integer value above this."""
        return max([self.incumbent.value, self._closed, *(node.bound for node in self._open)])

    def run(self) -> None:
        """Search until nothing is open."""
        self._treat_root()
        if self._open and not self._known:
            self._take_columns()
        while self._open:
            self._branch()

    def finish(self) -> None:
        """Put what proves the bounds of open nodes into the record."""
        for node in self._open:
            proof = node.proof
            if proof is not None:
                self.record.prove_later(node.branch, proof.problem, proof.multipliers, proof.exact)

    def _note(self, branch: int, proof: Proof) -> None:
        self.record.prove(branch, proof.problem, proof.multipliers, proof.exact)

    # ------------------------------------------------------------------ one node

    def _learn(self, multipliers: Multipliers) -> bool:
        """Draw conclusions from multipliers for the node at work; tell whether it is closed.

        Its bound, its decided pairs and its groups are updated; its multipliers are these, in
        terms of its new groups.
        """
        node = self._open[-1]
        exact = exact_bound(node.problem, multipliers, self._functions)
        self._level = min(self._level, exact.level)
        # 1. A sharper bound, which may close the node at once.
        proof = Proof(node.problem, multipliers, exact)
        if exact.bound < node.bound or node.proof is None:
            node = replace(node, bound=min(exact.bound, node.bound), proof=proof)
        if exact.bound <= self._allowed(self.incumbent.value):
            self._close(node, proof)
            return True
        # 2. Pegging: pairs whose other choice cannot beat the incumbent are decided.
        problem, merge = pegged(node.problem, exact, self.incumbent.value)
        if problem is None:
            self._close(replace(node, bound=self.incumbent.value), proof)
            return True
        before, after = node.problem.n_undecided, problem.n_undecided
        if after == 0:
            # One structure is left.
            self.incumbent.offer(problem.groups)
            self._close(replace(node, bound=self.incumbent.value), proof)
            return True
        # 3. Few decisions are not worth a stage of the proof; they come again, with others.
        if before - after < 0.02 * before:
            self._open[-1] = replace(node, multipliers=multipliers)
            return False
        self._note(node.branch, proof)
        if merge is not None:
            multipliers = multipliers.mapped(merge)
        self._open[-1] = replace(node, problem=problem, multipliers=multipliers)
        return False

    def _close(self, node: Node, proof: Proof) -> None:
        self._note(node.branch, proof)
        self._closed = max(self._closed, node.bound)
        self._open.pop()

    def _look(self, ascent: Ascent) -> Ascent | None:
        """Learn from an ascent; return it, or one on the smaller problem, or None if closed."""
        multipliers = ascent.multipliers
        if self._learn(multipliers):
            return None
        problem = self._open[-1].problem
        if self._is_short_cut(problem):
            return None
        if problem.n_groups != ascent.problem.n_groups:
            mu = ascent.mu * ascent.scale
            return Ascent(problem, self._open[-1].multipliers, mu, self._functions)
        if problem is not ascent.problem:
            ascent.decide(problem)
        return ascent

    def _is_short_cut(self, problem: PartitionProblem) -> bool:
        """Close the node at work by Russian dolls, if it shrank and they are quick."""
        if self.short_cuts is None or not self.short_cuts.close(problem, self._work):
            return False
        self._closed = max(self._closed, self.incumbent.value)
        self._open.pop()
        return True

    def _steps(self, ascent: Ascent, steps: int, decay: float = 1.0) -> float:
        """Take steps in pieces short enough to look at the clock in between."""
        cost = 10 * ascent.n_rows + 3 * ascent.problem.n_groups**2 + 1000
        pace = int(2e7 / cost)
        estimate = 0.0
        while steps > 0:
            piece = min(steps, max(1, pace))
            estimate = ascent.run(piece, decay)
            steps -= piece
            self.steps += piece
            self._work += piece * cost
            self._check()
        return estimate

    def _treat_root(self) -> None:
        node = self._open[-1]
        if node.bound <= self._allowed(self.incumbent.value):
            self._closed = max(self._closed, node.bound)
            self._open.pop()
            return
        self._check()
        ascent = Ascent(node.problem, node.multipliers, node.mu, self._functions)
        ascent.run(1)
        # Warm-up: the smoothing falls to `SHARP` in WARM_UP steps, fewer if time is short.
        left, looks, sharp = WARM_UP, 0, SHARP * self._scale
        while left > 0:
            began = clock()
            ascent.update_triangles(0.02, self._check)
            steps = min(CHUNK, left)
            # What is left of the smoothing goes in equal ratios, one for each step that is left.
            self._steps(ascent, steps, (sharp / (ascent.mu * ascent.scale)) ** (1.0 / left))
            left -= steps
            before = self.incumbent.value
            self._beside.round(ascent, self.steps // CHUNK)
            following = self._look(ascent)
            if following is None:
                return
            ascent = following
            looks += 1
            # Far from a proof, local search is what the time is for; it goes to its end now.
            hopeless = is_hopeless(looks, self._open[-1].bound, self.incumbent.value)
            if hopeless or self.incumbent.quick:
                self.incumbent.search_to_the_end()
                self._check()
            if self.incumbent.value > before or left <= 0:
                self._beside.follow_up()
            # The warm-up takes half of the time that is left at most.
            pace = (clock() - began) / steps
            if left * pace > 0.5 * self._seconds_left():
                left = int(0.5 * self._seconds_left() / pace)
        steps = 60 if ascent.problem.n_groups > TINY else 160
        self._cut(ascent, patience=PATIENCE_IF_KNOWN if self._known else 4, steps=steps)

    def _cut(self, ascent: Ascent, *, patience: int, steps: int) -> None:
        """Sharpen the bound of the node at work by cuts, until it closes or progress is slow."""
        stalled = 0
        horizon = HORIZON_IF_KNOWN if self._known else HORIZON
        at_root = len(self.record) == 1
        self._level = math.inf
        for number in itertools.count():
            before = self._level
            ascent.update_triangles(0.01, self._check)
            # 1. Rows that the soft point violates come in, idle ones go.
            point = ascent.point
            m = ascent.problem.n_groups
            cuts, heads = self._violated(point)
            self.cuts += len(cuts)
            ascent.update_cuts(cuts, heads, 4)
            # 2. The dual takes its steps; each look may decide pairs or close the node.
            chunk = steps if m <= SMALL else CHUNK
            for _ in range(steps // chunk):
                self._steps(ascent, chunk)
                following = self._look(ascent)
                if following is None:
                    return
                ascent = following
            # 3. Local search gets its share of the work meanwhile.
            due = number % 4 == 0
            if due:
                self._beside.round(ascent, self.steps // CHUNK)
            self._beside.go_on(self._open[-1].bound, self._work, due=due)
            # 4. A round is slow if `horizon` such rounds would not close the gap. After some of
            #    those come cuts of two sides, then sharper smoothing, then it is time to branch.
            slow = (before - self._level) * horizon < self._level - self.incumbent.value
            stalled = stalled + 1 if slow else 0
            if stalled >= patience:
                if self._may_be_two_sided(ascent.problem):
                    self._two_sided, stalled = True, 0
                    if at_root:
                        horizon = ROOT_HORIZON
                    continue
                if self._known or ascent.mu * ascent.scale < 2.0 * SHARPEST * self._scale:
                    break
                ascent.mu /= 2.0
                stalled = 0
        mu = ascent.mu * ascent.scale
        self._open[-1] = replace(self._open[-1], mu=mu, point=ascent.point)

    def _may_be_two_sided(self, problem: PartitionProblem) -> bool:
        """Tell whether it is time for cuts of two sides."""
        if self._two_sided or self._known or problem.n_groups > MOST_FOR_PARTITIONS:
            return False
        # Columns come right after the root, and are far sharper where they can work.
        return len(self.record) > 1 or not ConflictColumns(problem, self.incumbent).promising

    def _violated(self, point: Singles) -> tuple[IntMatrix, IntVector]:
        """Return cuts that a point violates, and their heads."""
        m = len(point)
        cuts, heads = violated_cuts(
            point,
            violation=0.02,
            starts=10,
            at_most=6 * m,
            state=self._state,
            functions=self._functions,
        )
        if not self._two_sided:
            return cuts, heads
        more, theirs = violated_partitions(
            point, violation=0.02, starts=10 * m, at_most=3 * m, state=self._state
        )
        return np.concatenate([cuts, more]), np.concatenate([heads, theirs])

    def _take_columns(self) -> None:
        """Bound the node at work by columns, where coalitions are small enough for them."""
        node = self._open[-1]
        columns = ConflictColumns(node.problem, self.incumbent)
        if not columns.promising:
            return
        try:
            columns.search(allowed=self._allowed, check=self._check, seed=self._seed)
        finally:
            self.columns += columns.found
            if columns.bound is not None and columns.bound < node.bound:
                node = replace(node, bound=columns.bound)
                self._open[-1] = node
                assert columns.proof is not None
                self.record.price(columns.proof, columns.bound)
        if node.bound <= self._allowed(self.incumbent.value):
            self._closed = max(self._closed, node.bound)
            self._open.pop()

    # ------------------------------------------------------------------ branching

    def _branch(self) -> None:
        """Split the node at work in two, and bound both."""
        node, point = replace(self._open[-1], point=None), self._open[-1].point
        assert point is not None
        first, second, cases = self._best_split(node, point)
        together, apart = self.record.split(node.branch, node.problem, first, second)
        cases = [replace(cases[0], branch=apart), replace(cases[1], branch=together)]
        if self._two_sided:
            mu = min(SHARP * self._scale, SOFTER * node.mu)
            cases = [replace(case, mu=mu) for case in cases]
        # The likelier case is last in the list, so it is searched first.
        if point[first, second] < 0.5:
            cases.reverse()
        self._open[-1:] = cases
        self._treat()

    def _best_split(self, node: Node, point: Singles) -> tuple[int, int, list[Node]]:
        """Return the pair that lowers the bounds of both cases most, and the cases: apart first.

        Of the most open pairs, each is tried for some steps of the dual.
        """
        trials = TRIALS if len(self.record) > 1 else FIRST_TRIALS
        pairs = _most_open_pairs(node.problem, point, 1 if self._known else trials)
        best, chosen = -math.inf, (*pairs[0], _cases(node, *pairs[0]))
        if len(pairs) == 1:
            return chosen
        for first, second in pairs:
            # The product of what both bounds fall by: a split that helps one case only is no split.
            drops, cases = [], []
            for case in _cases(node, first, second):
                ascent = Ascent(case.problem, case.multipliers, case.mu, self._functions)
                drops.append(self._level - self._steps(ascent, STEPS_OF_TRIAL))
                cases.append(replace(case, multipliers=ascent.multipliers))
            least = 1e-6 * self._scale
            score = max(drops[0], least) * max(drops[1], least)
            if score > best:
                best, chosen = score, (first, second, cases)
        return chosen

    def _treat(self) -> None:
        """Bound open nodes from the last on, until one has to be split."""
        while self._open:
            node = self._open[-1]
            if node.bound <= self._allowed(self.incumbent.value):
                assert node.proof is not None
                self._close(node, node.proof)
                continue
            if self.short_cuts is not None:
                self.short_cuts.begin()
            if self._is_short_cut(node.problem):
                continue
            ascent = Ascent(node.problem, node.multipliers, node.mu, self._functions)
            ascent.run(1)
            self._cut(ascent, patience=PATIENCE_IF_KNOWN if self._known else 2, steps=40)
            if self._open and self._open[-1].branch == node.branch:
                return


def _cases(node: Node, first: int, second: int) -> list[Node]:
    """Return what becomes of a node if a pair is apart, and if it is together."""
    one, two = np.array([first]), np.array([second])
    merge = components(node.problem.n_groups, one, two)
    merged = node.problem.merged(merge)
    assert merged is not None
    return [
        replace(node, problem=node.problem.separated(one, two)),
        replace(node, problem=merged, multipliers=node.multipliers.mapped(merge)),
    ]


def _most_open_pairs(
    problem: PartitionProblem, point: Singles, at_most: int
) -> list[tuple[int, int]]:
    """Return undecided pairs whose soft value is nearest to one half; heavy pairs come first."""
    size = np.abs(problem.weights)
    distance = np.abs(point - 0.5) - 0.1 * size / size.max()
    distance[problem.apart] = np.inf
    distance[np.tril_indices(len(distance))] = np.inf
    nearest = np.argsort(distance, axis=None, kind="stable")[: min(at_most, problem.n_undecided)]
    first, second = np.unravel_index(nearest, distance.shape)
    return list(zip(first.tolist(), second.tolist(), strict=True))


# ----------------------------------------------------------------------------------------
# Record: the tree of a search, kept so that it can be written down as a certificate.

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


class PartitionRecord:
    """Branches of a search in the order in which they were opened.

    Attributes
    ----------
    complete
        Whether everything was kept; False once it grew too large.
    """

    def __init__(self) -> None:
        self._branches = [_Branch()]
        self._pending: list[tuple[int, PartitionProblem, Multipliers, ExactBound]] = []
        self._priced: tuple[GroupPrices, int] | None = None
        self._cells = 0
        self.complete = True

    def __len__(self) -> int:
        return len(self._branches)

    def prove(
        self, branch: int, problem: PartitionProblem, multipliers: Multipliers, proof: ExactBound
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
        self, branch: int, problem: PartitionProblem, multipliers: Multipliers, proof: ExactBound
    ) -> None:
        """Note multipliers when the record is written: whoever was stopped has no time left."""
        self._pending.append((branch, problem, multipliers, proof))

    def price(self, prices: GroupPrices, bound: int) -> None:
        """Note prices that prove a bound on everything that the root leaves."""
        self._priced = prices, bound

    def split(
        self, branch: int, problem: PartitionProblem, first: int, second: int
    ) -> tuple[int, int]:
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
