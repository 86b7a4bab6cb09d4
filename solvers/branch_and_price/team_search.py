r"""The tree of cases: the best bound first, until the best structure is proven.

**Triples** make the bound sharper. Of the coalitions of a structure, at most one has two nodes or
more of any three:

.. math:: \sum_{C : |C \cap T| \ge 2} x_C \le 1 \quad\text{for } |T| = 3

are the subset-row inequalities of [Jepsen2008]_. With :math:`y_{ij}` the share of coalitions that
hold i and j, and :math:`t_{ijk}` of those that hold all three, the left side is
:math:`y_{ij} + y_{ik} + y_{jk} - 2\,t_{ijk}`.

**Diving** finds structures: fix the coalitions that the linear program is surest of, solve it
again, and so on down to a structure.
"""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from coalitions.game import BoolMatrix, FloatVector, IntMatrix, IntVector
from solvers.branch_and_price.branch_and_price import (
    TeamCase,
    TeamIncumbent,
    TeamProblem,
    TeamRecord,
)
from solvers.branch_and_price.column_generation import Master, Pricer, Prices, Relaxed
from solvers.branch_and_price.listed import ListedMaster, ListedPricer, all_coalitions
from solvers.branch_and_price.neighbourhood import Nearby
from solvers.proofs.teams import Fork, Leaf

# `python benchmarks/teams.py targets` shows what a change of these does.

KEEP = 3
"""Columns kept for each node in a search for columns."""

INERTIA = 0.6
"""How much of the prices searched for stays with the best so far [Wentges1997]_."""

ROOT_STEPS = 1_000_000
"""The search for columns of a node is given up after so many steps; more if none are found so."""

DIVE_EVERY, DIVE_NEARBY = 16, 8
"""After so many branchings, one case is followed down to a structure: of the whole, of a part."""

ROOT_ROUNDS, CASE_ROUNDS = 12, 0
"""How often triples are added at the root, and in every other case."""

ROOT_ROUNDS_LISTED = 2
"""The same at the root where all coalitions are listed: more take longer than some more cases."""

MOST_TRIPLES = 1.5
"""Triples in all, as a multiple of the nodes."""

LARGE = 80
"""From so many nodes on it pays to look for structures on the way, and to solve parts of them."""

FIRST_NEARBY, NEARBY = 300, 2.0
"""Rounds for such parts at first, and then for each round of the whole; they take far less time."""

NEARBY_CASES = 100
"""Cases in the search of a part."""

CANDIDATES, DOUBTFUL = 16, 0.1
"""So many pairs are tried before branching: those nearest to one half, by a margin at least."""

CANDIDATES_LISTED = 2
"""The same where nothing is compiled: a trial takes as long as the search of a case there."""

TRIAL, TRIAL_COLUMNS = 20, 4.0
"""Exchanges in a trial, and columns, as a multiple of the nodes."""

NEGLIGIBLE = 1e-4
"""Levels this near to whole numbers are whole."""


@dataclass(frozen=True, eq=False)
class Open:
    """A case that is not closed.

    Attributes
    ----------
    entry
        Its place in the record.
    case
        Its pairs.
    total
        The bound, in units of prices.
    relaxed
        The solution of its linear program.
    """

    entry: int
    case: TeamCase
    total: int
    relaxed: Relaxed

    def __lt__(self, other: Open) -> bool:
        return (-self.total, self.entry) < (-other.total, other.entry)


class TeamSearch:
    """Branch and price.

    Parameters
    ----------
    problem
        What is asked.
    incumbent
        The best structure so far; it may not be there yet.
    allowed
        How large a bound may be, for the value of the incumbent, in whole weights.
    check
        Called after each piece of work; it may raise.
    glance
        Called also inside of longer pieces, for those who count the calls of `check`; it may raise.
        `check` unless given.
    seed
        Source of all randomness.
    most_cases
        The search ends when there are more; None if it does not.
    """

    def __init__(
        self,
        problem: TeamProblem,
        incumbent: TeamIncumbent,
        *,
        allowed: Callable[[int], int],
        check: Callable[[], None],
        glance: Callable[[], None] | None = None,
        seed: int = 0,
        most_cases: int | None = None,
    ) -> None:
        self.problem, self.incumbent = problem, incumbent
        self.allowed, self.check, self.glance = allowed, check, glance or check
        self._most_cases = most_cases
        # After a dive: a descent, but nothing in a part. More local search takes more time than it
        # is worth: parts that are solved anew find more in it.
        self._local_rounds = None if most_cases is not None else 0
        self._seed = seed
        self._listed = all_coalitions(problem)
        self.master = (
            Master(problem, self.glance)
            if self._listed is None
            else ListedMaster(problem, self._listed)
        )
        self.rounds = 0
        # What is known of each case: that it was split, or prices that are valid in it.
        self._entries: list[Prices | Fork] = [_half_sums(problem)]
        # What missing nodes cost in the linear program: first more than a coalition can be worth,
        # and more later if nodes are still missing, up to more than any structure is worth.
        unit = float(max(1, np.abs(problem.weights).max()))
        worst = np.sort(np.abs(problem.weights), axis=1)[:, -problem.places :].sum(axis=1).max()
        self._dear = 2.0 + 2.0 * float(worst) / unit
        self._dearest = 2.0 + 64.0 * float(np.abs(problem.weights).sum()) / unit

    @functools.cached_property
    def _nearby(self) -> Nearby:
        rng = np.random.default_rng((self._seed, 5))
        return Nearby(self.problem, self.incumbent, self._solved_part, rng)

    @property
    def bound(self) -> int:
        """No structure is worth more, in whole weights."""
        totals = [self._total(entry) for entry in self._entries if isinstance(entry, Prices)]
        return max(self.problem.floor(max(totals)), self.incumbent.value)

    def __len__(self) -> int:
        return len(self._entries)

    def run(self) -> None:
        """Search until the bound is proven or `check` raises."""
        if self.incumbent.labels is not None:
            self.add_structure(self.incumbent.labels)
        waiting: list[Open] = []
        root = self._bounded(0, TeamCase.whole(self.problem), self.master.start())
        if root is not None:
            waiting.append(root)
        turn = 0
        while waiting and (self._most_cases is None or len(self) <= self._most_cases):
            node = heapq.heappop(waiting)
            if self._closes(node.total):
                continue
            if turn % (DIVE_EVERY if self._most_cases is None else DIVE_NEARBY) == 0:
                self._dive(node)
            turn += 1
            self._search_nearby(node)
            if self._closes(node.total):
                continue
            if node.case.decided:
                # One structure is left, and prices are too coarse to close it: its bound stays.
                continue
            # Split it: the entry of the case becomes a fork, both cases begin with its prices,
            # which are valid for fewer structures all the more.
            basis = self.master.pinned(node.relaxed.basis)
            a, b = self._pair(node, basis)
            prices, together = self._entries[node.entry], len(self._entries)
            self._entries[node.entry] = Fork((a, b), together, together + 1)
            self._entries += [prices, prices]
            cases = node.case.with_together(a, b), node.case.with_apart(a, b)
            for entry, case in enumerate(cases, together):
                child = self._bounded(entry, case, basis)
                if child is not None:
                    heapq.heappush(waiting, child)

    def record(self) -> TeamRecord:
        """Return the proof of the bound."""
        tree: list[Leaf | Fork] = []
        for entry in self._entries:
            if isinstance(entry, Fork):
                tree.append(entry)
                continue
            used = np.flatnonzero(entry.triples)
            triples = self.master.triples[used]
            tree.append(Leaf(entry.nodes, entry.count, triples, entry.triples[used]))
        return TeamRecord(self.problem.bits, self.bound, tuple(tree))

    def add_structure(self, labels: IntVector) -> None:
        """Make columns of the coalitions of a structure."""
        self.master.add(labels == np.unique(labels)[:, None])

    def _total(self, prices: Prices) -> int:
        return prices.total(self.problem.sizes.fewest, self.problem.sizes.most)

    def _closes(self, total: int) -> bool:
        reached, value = self.problem.floor(total), self.incumbent.value
        return reached <= value or reached <= self.allowed(value)

    def _bounded(self, entry: int, case: TeamCase, basis: IntVector) -> Open | None:
        """Lower the bound of a case; return the case, or None if it is closed."""
        problem, master = self.problem, self.master
        prices = self._entries[entry]
        assert isinstance(prices, Prices)
        total = self._total(prices)
        misfit = case.misfit()
        if misfit is not None:
            # No structure at all: a node in no coalition may pay as little as closes the case.
            nodes = prices.nodes.copy()
            nodes[misfit] -= total + problem.ceiling(problem.losses + 1)
            self._entries[entry] = Prices(nodes, prices.count, prices.triples)
            return None
        prices = _padded(prices, len(master.triples))
        pricer = self._pricer(case)
        # Where all columns are known, the prices of the linear program are the best at once.
        inertia, root_steps = INERTIA if self._listed is None else 0.0, ROOT_STEPS
        at_root = ROOT_ROUNDS if self._listed is None else ROOT_ROUNDS_LISTED
        rounds_left = CASE_ROUNDS if entry else at_root
        active = case.allows(master.members)
        while True:
            self.check()
            self.rounds += 1
            # 1. Solve the linear program over the columns so far; whole levels are a structure.
            relaxed = master.solve(active, basis, self._dear)
            basis = relaxed.basis
            if relaxed.missing < NEGLIGIBLE:
                self._try(relaxed)
            # 2. Look for columns that exceed its prices, mixed with the best prices so far. Raised
            #    by what was found, they are valid and prove a bound.
            proposal = _mixed(prices, relaxed, inertia, problem.highest_price)
            priced = pricer.price(proposal, keep=KEEP, root_steps=root_steps, check=self.check)
            found = self._total(priced.prices)
            if found < total:
                self._entries[entry] = prices = priced.prices
                total = found
            if self._closes(total):
                return None
            # 3. New columns: solve again. None, or no room below the bound: sharpen by triples,
            #    else the case is as good as it gets.
            fresh = master.add(priced.columns)
            active = np.concatenate((active, case.allows(master.members[len(active) :])))
            reached = math.ldexp(relaxed.value, -problem.bits)
            done = problem.floor(total) <= reached + 1e-6
            if not fresh and not priced.complete:
                root_steps *= 4  # the search was given up too early
            elif done or (not fresh and inertia == 0.0):
                if relaxed.missing >= NEGLIGIBLE and self._dear < self._dearest:
                    # Perhaps nodes are missing because that is too cheap.
                    self._dear = min(16.0 * self._dear, self._dearest)
                    continue
                rounds_left -= 1
                triples = self._new_triples(relaxed) if rounds_left >= 0 else master.triples[:0]
                if not len(triples):
                    return Open(entry, case, total, relaxed)
                master.add_triples(triples)
                pricer = self._pricer(case)
                prices = _padded(prices, len(master.triples))
            inertia = INERTIA if fresh else 0.0

    def _pricer(self, case: TeamCase) -> Pricer | ListedPricer:
        """Return what finds the columns of a case."""
        if self._listed is None:
            return Pricer(case, self.master.triples)
        return ListedPricer(case, self.master.triples, self._listed)

    def _new_triples(self, relaxed: Relaxed) -> IntMatrix:
        """Return triples that a solution breaks, if there is room for them."""
        room = int(MOST_TRIPLES * self.problem.n) - len(self.master.triples)
        if room <= 0 or relaxed.missing >= NEGLIGIBLE:
            return self.master.triples[:0]
        return violated(self.master.members[relaxed.columns], relaxed.levels)[:room]

    def _dive(self, node: Open) -> IntVector | None:
        """Look for a structure of a case."""
        highest = self.problem.highest_price
        zeros = Prices(np.zeros(self.problem.n, np.int64), 0, np.zeros(0, np.int64))
        labels = dive(
            self.master,
            self._pricer(node.case),
            node.relaxed,
            dear=self._dear,
            root_steps=ROOT_STEPS,
            proposal=lambda relaxed: _mixed(
                _padded(zeros, len(self.master.triples)), relaxed, 0.0, highest
            ),
            check=self.check,
        )
        if labels is not None:
            self.incumbent.improve(labels, self._local_rounds)
        return labels

    def _search_nearby(self, node: Open) -> None:
        """Solve some teams of good structures anew, while there is time for it."""
        small = self.problem.n < LARGE or self._most_cases is not None
        while not small and self._nearby.rounds < FIRST_NEARBY + NEARBY * self.rounds:
            if self.incumbent.labels is None or self._closes(node.total):
                return
            members = self.master.members[node.relaxed.columns]
            found = self._nearby.improve(members, node.relaxed.levels, lambda: self._dive(node))
            if found is not None:
                self.add_structure(found)

    def _solved_part(self, part: TeamProblem, best: TeamIncumbent) -> int:
        """Improve a structure of a part; return how many rounds that took."""
        search = TeamSearch(
            part,
            best,
            allowed=lambda value: value,
            check=self.check,
            glance=self.glance,
            most_cases=NEARBY_CASES,
        )
        search.run()
        return search.rounds

    def _try(self, relaxed: Relaxed) -> None:
        """Offer the structure of a solution in whole numbers."""
        levels, columns = relaxed.levels, relaxed.columns
        if np.abs(levels - np.rint(levels)).max() > NEGLIGIBLE:
            return
        chosen = columns[levels > 0.5]
        self.incumbent.offer(np.argmax(self.master.members[chosen], axis=0))

    def _pair(self, node: Open, basis: IntVector) -> tuple[int, int]:
        """Return the pair of nodes about which the linear program is most in doubt."""
        case, relaxed = node.case, node.relaxed
        first = np.unique(case.group, return_index=True)[1]
        used = self.master.members[relaxed.columns][:, first].astype(np.float64)
        # y_ij, the share of coalitions with both: one half is the most open.
        together = (used * relaxed.levels[:, None]).T @ used
        doubt = np.abs(together - 0.5)
        doubt[case.apart] = 2.0
        doubt[np.tril_indices(len(doubt))] = 3.0
        candidates = CANDIDATES if self._listed is None else CANDIDATES_LISTED
        nearest = np.argsort(doubt, axis=None, kind="stable")[:candidates]
        a, b = np.unravel_index(nearest, doubt.shape)
        open_ = doubt[a, b] < 0.5 - DOUBTFUL
        if open_.sum() < 2:
            return int(first[a[0]]), int(first[b[0]])
        a, b = first[a[open_]], first[b[open_]]
        # Whichever lowers both bounds, as far as the known columns tell.
        members = self.master.members
        few = int(TRIAL_COLUMNS * self.problem.n)
        active = self.master.nearest(case.allows(members), basis, self._dear, few)
        best, chosen = -1.0, 0
        for place, (i, j) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
            self.check()
            same, both = members[:, i] == members[:, j], members[:, i] & members[:, j]
            drops = [
                relaxed.value - self.master.estimate(active & some, basis, self._dear, TRIAL)
                for some in (same, ~both)
            ]
            # The product of both drops; a drop of nothing must not hide the other.
            least = 1e-3 * abs(relaxed.value)
            score = max(drops[0], 1e-9 * least) * max(drops[1], 1e-9 * least)
            if score > best:
                best, chosen = score, place
        return int(a[chosen]), int(b[chosen])


def _half_sums(problem: TeamProblem) -> Prices:
    """Return prices that always pay: half of the best weights each node can have around it."""
    gains = np.maximum(problem.units, 0)
    gains[problem.apart] = 0
    best = -np.sort(-gains, axis=1)[:, : problem.places - 1]
    return Prices((best.sum(axis=1) + 1) // 2, 0, np.zeros(0, np.int64))


def _padded(prices: Prices, n_triples: int) -> Prices:
    more = np.zeros(n_triples - len(prices.triples), np.int64)
    return Prices(prices.nodes, prices.count, np.concatenate((prices.triples, more)))


def _mixed(prices: Prices, relaxed: Relaxed, inertia: float, highest: int) -> Prices:
    """Return prices between the best ones so far and those of the linear program."""

    def mixed(old: IntVector, new: FloatVector) -> IntVector:
        blend = np.minimum(np.maximum(inertia * old + (1.0 - inertia) * new, -highest), highest)
        whole: IntVector = np.rint(blend).astype(np.int64)
        return whole

    return Prices(
        mixed(prices.nodes, relaxed.nodes),
        int(mixed(np.array([prices.count]), np.array([relaxed.count]))[0]),
        mixed(prices.triples, relaxed.triples),
    )


# ----------------------------------------------------------------------------------------
# Triples

LEAST_VIOLATION = 0.05
AT_ONCE = 40
"""Triples added in a round."""

EACH = 4
"""Triples added in a round that hold the same node."""


def violated(members: BoolMatrix, levels: FloatVector) -> IntMatrix:
    """Return triples whose inequality a solution of the linear program breaks, the worst first.

    Parameters
    ----------
    members
        Columns in use [k, n].
    levels
        How much of each [k].
    """
    used = members.astype(np.float64)
    shared = (used * levels[:, None]).T @ used
    np.fill_diagonal(shared, 0.0)
    i, j = np.nonzero(np.triu((shared > 1e-3) & (shared < 1.0 - 1e-3)))
    all_three = (used[:, i] * used[:, j] * levels[:, None]).T @ used
    excess = shared[i, j][:, None] + shared[i] + shared[j] - 2.0 * all_three - 1.0
    rows = np.arange(len(i))
    excess[rows, i] = excess[rows, j] = 0.0
    row, k = np.nonzero(excess > LEAST_VIOLATION)
    triples = np.sort(np.stack((i[row], j[row], k), axis=1), axis=1)
    triples, place = np.unique(triples, axis=0, return_index=True)
    worst_first = np.argsort(-excess[row, k][place], kind="stable")
    chosen: list[list[int]] = []
    holding = np.zeros(members.shape[1], np.int64)
    for triple in triples[worst_first].tolist():
        if len(chosen) < AT_ONCE and holding[triple].max() < EACH:
            holding[triple] += 1
            chosen.append(triple)
    return np.array(chosen, np.int64).reshape(-1, 3)


# ----------------------------------------------------------------------------------------
# Diving

ROUNDS = 2
"""Searches for columns after each fixing."""

SURE = 0.9
"""Coalitions with a level above this are fixed together."""

NOTHING = 1e-4
"""What is missing in a solution counts from here on."""


def dive(
    master: Master,
    pricer: Pricer | ListedPricer,
    relaxed: Relaxed,
    *,
    dear: float,
    root_steps: int,
    proposal: Callable[[Relaxed], Prices],
    check: Callable[[], None],
) -> IntVector | None:
    """Return labels of a structure of a case, or None if the dive led to none.

    Parameters
    ----------
    master, pricer
        The linear program, which gains columns, and the search for columns of the case.
    relaxed
        The solution of the linear program of the case.
    dear, root_steps, proposal, check
        The cost of what is missing, how long to search for columns of a node, prices for a
        solution, and who looks at the clock.
    """
    case = pricer.case
    first = np.unique(case.group, return_index=True)[1]
    chosen: list[int] = []
    fixed = np.zeros(master.problem.n, np.bool_)
    while True:
        members = master.members[relaxed.columns]
        free = case.allows(members) & ~(members & fixed).any(axis=1)
        levels = np.where(free, relaxed.levels, 0.0)
        if levels.max(initial=0.0) <= NOTHING:
            return None
        sure = levels >= min(SURE, levels.max())
        for column in relaxed.columns[sure].tolist():
            if not (master.members[column] & fixed).any():
                chosen.append(column)
                fixed |= master.members[column]
        if fixed.all():
            labels: IntVector = np.argmax(master.members[chosen], axis=0)
            return labels
        order = np.flatnonzero(~fixed[first])
        for _ in range(ROUNDS):
            check()
            left = case.allows(master.members) & ~(master.members & fixed).any(axis=1)
            left[chosen] = True
            relaxed = master.solve(left, relaxed.basis, dear)
            if master.complete:
                break
            priced = pricer.price(
                proposal(relaxed), keep=1, root_steps=root_steps, check=check, order=order
            )
            if not master.add(priced.columns):
                break
