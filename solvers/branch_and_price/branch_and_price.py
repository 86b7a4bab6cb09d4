r"""branch-and-price: coalitions of limited sizes and counts, exact; a valid bound at any time.

The solver makes a `TeamProblem` in whole numbers; `team_search` solves it. What the search leaves
behind, so that its bound can be checked, is a `TeamRecord`. All its numbers are whole. Weights are
those of `integer_weights`, and prices count in units that are :math:`2^{-\text{bits}}` of them. The
root of the tree is ``tree[0]``; a fork splits its case: structures that have a pair of nodes
together, and those that have it apart. A leaf proves its case.

A leaf has a price :math:`\pi_i` for each node, a price :math:`\mu` for each coalition, and prices
:math:`\sigma_T \ge 0` for some triples of nodes, with

.. math:: 2^{\text{bits}}\, v(C) \le
   \sum_{i \in C} \pi_i + \mu + \sum_{T : |C \cap T| \ge 2} \sigma_T

for every coalition C that is allowed there: it meets the demands, it has both or none of each pair
together on the way to the leaf, and not both of any pair apart. A structure has every node once,
k coalitions with fewest ≤ k ≤ most, and at most one coalition with two nodes of a triple or more.
Added up, none that belongs to the leaf is worth more than

.. math:: 2^{-\text{bits}} \Bigl( \sum_i \pi_i
   + \max(\text{most} \cdot \mu, \text{fewest} \cdot \mu) + \sum_T \sigma_T \Bigr),

and since values are whole, not more than that rounded down: at most ``bound`` in every leaf.
Where weights are large, bits are negative: a price counts several units of weights then.
If no structure meets the demands, the bound is below minus the sum of all losses.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from coalitions.errors import InfeasibleError, NoSolutionError
from coalitions.game import BoolMatrix, BoolVector, IntMatrix, IntVector
from coalitions.graph import SynergyGraph, matrix_of_pairs
from coalitions.runtime import clock
from solvers.demands import Sizes, first_structure
from solvers.optimality import OPTIMALITY_TOLERANCE
from solvers.proofs.certificate import Certificate
from solvers.proofs.teams import Fork, Leaf, TeamsProof
from solvers.reductions import ScaledWeights, integer_weights
from solvers.solver import SOLVERS, Answer, Limits, SearchProgress, Solver, TimeIsUp, is_ctrl_c

REPORT_EVERY = 0.5
"""Seconds between two reports of progress."""


WIDE = 10
"""Where more nodes than this fit in a coalition, the search for columns may take very long."""

WIDE_ROUNDS = 8
"""Rounds of local search there."""

SHARE_OF_BOUND, LONGEST_BOUND = 0.25, 20.0
"""Part of the time, and seconds, for a bound that does not look at the demands: guesses."""


@SOLVERS.register("branch-and-price")
@dataclass(frozen=True)
class BranchAndPrice(Solver):
    r"""Exact structures of coalitions with limited sizes, by columns and prices.

    With a variable for each allowed coalition C, the best structure solves

    .. math:: \max \sum_C v(C)\, x_C \quad\text{subject to}\quad
       \sum_{C \ni i} x_C = 1 \;\forall i, \quad
       \text{fewest} \le \sum_C x_C \le \text{most}

    in zeros and ones. Its linear relaxation is far tighter than one on pairs, and coalitions are
    only looked for as prices ask for them [Barnhart1998]_. Branches have two nodes together or
    apart [Ryan1981]_. Weights are scaled to integers, and every bound is proven in integers by
    prices that pay for all coalitions; see `solvers.branch_and_price.branch_and_price`.

    Attributes
    ----------
    certify
        Use no bound that its prices do not prove. Without it, branch-and-cut bounds structures of
        large coalitions, and a certificate takes another search, when it is asked for.
    """

    certify: bool = False

    certifies_sizes: ClassVar[bool] = True

    @property
    def takes_sizes(self) -> bool:
        """It is made for them."""
        return True

    def certifying(self) -> BranchAndPrice:
        """Return this method without bounds of others."""
        return replace(self, certify=True)

    def search(
        self,
        graph: SynergyGraph,
        *,
        limits: Limits,
        warm_start: IntVector | None = None,
        sizes: Sizes | None = None,
    ) -> Answer:
        """Return the best structure and a bound."""
        from coalitions.runtime import one_blas_thread

        n = graph.n_players
        if sizes is None:
            sizes = Sizes(np.ones(n, np.int64), 1, n, 1, n)
        i, j, weight = graph.edges
        scaled = integer_weights(weight)
        problem = TeamProblem.of(matrix_of_pairs(n, i, j, scaled.integers), sizes)
        wide = problem.places > WIDE and n > 2 * WIDE and not self.certify
        seconds = limits.seconds_left
        with one_blas_thread():
            answer, own = _searched(graph, problem, scaled, limits, warm_start, wide)
        if own:
            return answer
        again = functools.partial(_certified, graph, sizes, answer.labels, limits.seed, seconds)
        return replace(answer, prove=again)


def _searched(
    graph: SynergyGraph,
    problem: TeamProblem,
    scaled: ScaledWeights,
    limits: Limits,
    warm_start: IntVector | None,
    wide: bool,
) -> tuple[Answer, bool]:
    """Return the answer, and whether its bound is proven by prices alone."""
    from solvers.branch_and_price.team_search import TeamSearch

    last_report = started = clock()
    incumbent = TeamIncumbent(problem, seed=limits.seed, expired=lambda: limits.expired)

    @functools.cache
    def allowed(value: int) -> int:
        if incumbent.labels is None:
            return value
        tolerance = _tolerance(problem, scaled, incumbent.labels)
        return value + max(tolerance, int(limits.gap * abs(value)))

    def check() -> None:
        nonlocal last_report
        if limits.expired:
            raise TimeIsUp
        now = clock()
        if limits.report is None or now - last_report < REPORT_EVERY or incumbent.labels is None:
            return
        last_report = now
        value = float(scaled.unit * incumbent.value)
        limits.report(SearchProgress(value, min(general, scaled.bound(tree.bound)), now - started))

    tree = TeamSearch(problem, incumbent, allowed=allowed, check=check, seed=limits.seed)
    general = math.inf
    try:
        incumbent.begin(warm_start)
        if wide:
            general = _general_bound(graph, incumbent, limits)
        unknown = general == math.inf or incumbent.labels is None
        if unknown or general > scaled.bound(allowed(incumbent.value)):
            tree.run()
    except TimeIsUp:
        pass
    except (KeyboardInterrupt, SystemError) as error:
        if not is_ctrl_c(error):
            raise
        limits.interrupted.set()
    if incumbent.labels is None:
        if tree.bound <= incumbent.value:
            raise InfeasibleError("no structure meets the demands")
        raise NoSolutionError(
            "no structure that meets the demands was found in time, nor a proof that there is none"
        )
    bound = scaled.bound(tree.bound)
    answer = Answer(
        labels=incumbent.labels,
        bound=min(general, bound),
        stats={"nodes": len(tree), "rounds": tree.rounds, "columns": len(tree.master)},
        prove=functools.partial(tree.record().certificate, problem.n, scaled.unit),
    )
    return answer, bound <= general


def _certified(
    graph: SynergyGraph, sizes: Sizes, labels: IntVector, seed: int, seconds: float
) -> Certificate | None:
    """Return a certificate of the bound that prices prove for a known structure in that time."""
    deadline = None if seconds == math.inf else clock() + seconds
    limits = Limits(deadline=deadline, seed=seed)
    answer = BranchAndPrice(certify=True).search(
        graph, limits=limits, warm_start=labels, sizes=sizes
    )
    if limits.interrupted.is_set():
        raise KeyboardInterrupt
    return answer.certificate


def _general_bound(graph: SynergyGraph, incumbent: TeamIncumbent, limits: Limits) -> float:
    """Return a bound on all structures, whatever their sizes; the best may meet the demands."""
    if not (graph.edges.weight > 0).any():
        return 0.0
    seconds = min(SHARE_OF_BOUND * limits.seconds_left, LONGEST_BOUND)
    part = replace(limits, deadline=clock() + seconds, report=None)
    found = SOLVERS["branch-and-cut"]().search(graph, limits=part)
    incumbent.begin(found.labels)
    if incumbent.labels is not None:
        incumbent.improve(incumbent.labels, WIDE_ROUNDS)
    return found.bound


def _tolerance(problem: TeamProblem, scaled: ScaledWeights, labels: IntVector) -> int:
    """Return by how much bound and value may differ in a proof, in whole weights."""
    gains = int(np.maximum(problem.weights, 0).sum()) // 2
    together = labels[:, None] == labels
    losses = -int(np.minimum(problem.weights, 0)[together].sum()) // 2
    stake = scaled.unit * (gains + losses)
    units = Fraction(0.9 * OPTIMALITY_TOLERANCE) * stake - Fraction(scaled.slack)
    return max(0, int(units / scaled.unit))


# ----------------------------------------------------------------------------------------
# The problem in whole numbers, and a case of it: some pairs are decided.

SUM_BITS = 50
"""Weights, in units of prices, stay below 2^50 in sum."""

PRICE_BITS = 20
"""Prices are at most so many bits finer than weights."""

ROOM_BITS = 60
"""Sums of prices stay below 2^60."""


@dataclass(frozen=True, eq=False)
class TeamProblem:
    """Whole weights between nodes, and the demands on coalitions.

    Attributes
    ----------
    weights
        Synergies [n, n], symmetric with a zero diagonal; whole numbers.
    sizes
        The demands.
    bits
        Prices count in units of 2^−bits of a weight; negative if weights are too large.
    units
        The weights in units of prices, rounded up [n, n].
    loads
        The load of each node, zeros if there is no such demand.
    holds
        Which roles a node holds [n, r].
    apart
        Pairs that must not be together [n, n].
    """

    weights: IntMatrix
    sizes: Sizes
    bits: int
    units: IntMatrix
    loads: IntVector
    holds: BoolMatrix
    apart: BoolMatrix

    @classmethod
    def of(cls, weights: IntMatrix, sizes: Sizes) -> TeamProblem:
        """Return the problem for a matrix of whole weights."""
        n = len(weights)
        total = sum(np.abs(np.triu(weights)).sum(axis=1).tolist())
        bits = min(PRICE_BITS, SUM_BITS - total.bit_length())
        holds = np.zeros((n, len(sizes.roles)), np.bool_)
        for role, members in enumerate(sizes.roles):
            holds[list(members), role] = True
        apart = np.zeros((n, n), np.bool_)
        for a, b in sizes.apart:
            apart[a, b] = apart[b, a] = True
        return cls(
            weights=weights,
            sizes=sizes,
            bits=bits,
            units=weights << bits if bits >= 0 else -(-weights >> -bits),
            loads=sizes.loads if len(sizes.loads) else np.zeros(n, np.int64),
            holds=holds,
            apart=apart,
        )

    @property
    def n(self) -> int:
        """Number of nodes."""
        return len(self.weights)

    @property
    def highest_price(self) -> int:
        """No price is above this, nor below minus this; sums of a coalition's prices have room."""
        return (1 << ROOM_BITS) // (self.places + 2)

    @property
    def places(self) -> int:
        """No coalition has more nodes."""
        return min(self.n, self.sizes.max_size // int(self.sizes.players.min()))

    def floor(self, total: int) -> int:
        """Return the whole weight that a sum of prices is, rounded down."""
        return total >> self.bits if self.bits >= 0 else total << -self.bits

    def ceiling(self, weight: int) -> int:
        """Return a whole weight in units of prices, rounded up."""
        return weight << self.bits if self.bits >= 0 else -(-weight >> -self.bits)

    @property
    def losses(self) -> int:
        """Sum of all negative weights, without the sign: no structure loses more."""
        lost: int = sum(np.minimum(np.triu(self.weights), 0).sum(axis=1).tolist())
        return -lost

    def worth(self, columns: BoolMatrix) -> IntVector:
        """Return the values of coalitions, given as rows of members."""
        members = columns.astype(np.int64)
        worth: IntVector = np.einsum("ij,ij->i", members @ self.weights, members) // 2
        return worth

    def value(self, labels: IntVector) -> int:
        """Return the value of a structure."""
        return int(self.weights[labels[:, None] == labels].sum()) // 2


@dataclass(frozen=True, eq=False)
class TeamCase:
    """The structures that have some pairs together and some apart.

    Attributes
    ----------
    problem
        What is asked.
    group
        Nodes that must be together have the same number, from 0 without gaps [n].
    apart
        Groups that must not be together [g, g].
    pairs_together, pairs_apart
        The pairs of nodes that were decided.
    """

    problem: TeamProblem
    group: IntVector
    apart: BoolMatrix
    pairs_together: tuple[tuple[int, int], ...] = ()
    pairs_apart: tuple[tuple[int, int], ...] = ()

    @classmethod
    def whole(cls, problem: TeamProblem) -> TeamCase:
        """Return the case of all structures."""
        return cls(problem, np.arange(problem.n), problem.apart)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.apart)

    @property
    def decided(self) -> bool:
        """Whether every pair is together or apart."""
        return bool(self.apart[~np.eye(self.n_groups, dtype=np.bool_)].all())

    @property
    def players(self) -> IntVector:
        """Number of players of each group."""
        return _added(self.problem.sizes.players, self.group, self.n_groups)

    @property
    def loads(self) -> IntVector:
        """Load of each group."""
        return _added(self.problem.loads, self.group, self.n_groups)

    def with_apart(self, a: int, b: int) -> TeamCase:
        """Return the case in which two nodes are apart."""
        apart = self.apart.copy()
        i, j = self.group[a], self.group[b]
        apart[i, j] = apart[j, i] = True
        return TeamCase(
            self.problem, self.group, apart, self.pairs_together, (*self.pairs_apart, (a, b))
        )

    def with_together(self, a: int, b: int) -> TeamCase:
        """Return the case in which two nodes are together."""
        i, j = sorted((int(self.group[a]), int(self.group[b])))
        group = np.where(self.group == j, i, self.group)
        group = np.where(group > j, group - 1, group)
        apart = self.apart.copy()
        apart[i] |= apart[j]
        apart[:, i] |= apart[:, j]
        apart = np.delete(np.delete(apart, j, axis=0), j, axis=1)
        return TeamCase(
            self.problem, group, apart, (*self.pairs_together, (a, b)), self.pairs_apart
        )

    def misfit(self) -> int | None:
        """Return a node of a group that no coalition can hold, or None if there is none."""
        sizes = self.problem.sizes
        bad = (
            (self.players > sizes.max_size) | (self.loads > sizes.max_load) | self.apart.diagonal()
        )
        return int(np.flatnonzero(bad[self.group])[0]) if bad.any() else None

    def allows(self, columns: BoolMatrix) -> BoolVector:
        """Tell which of some coalitions, all of them allowed by the demands, belong to the case."""
        allowed = np.ones(len(columns), np.bool_)
        for a, b in self.pairs_together:
            allowed &= columns[:, a] == columns[:, b]
        for a, b in self.pairs_apart:
            allowed &= ~(columns[:, a] & columns[:, b])
        return allowed


def _added(amounts: IntVector, group: IntVector, n_groups: int) -> IntVector:
    added = np.zeros(n_groups, np.int64)
    np.add.at(added, group, amounts)
    return added


# ----------------------------------------------------------------------------------------
# The best structure so far that meets the demands.

SMALL = 20
"""Up to so many nodes the linear program leads to structures that need no improvement."""


class TeamIncumbent:
    """Keeps the best of the structures it is offered.

    Parameters
    ----------
    problem
        What is asked.
    seed
        Source of all randomness.
    expired
        Tells whether it is time to stop.

    Attributes
    ----------
    labels
        Its coalitions; None as long as no structure is known that meets the demands.
    value
        Its value in whole weights; without a structure, less than any structure is worth.
    """

    def __init__(self, problem: TeamProblem, *, seed: int, expired: Callable[[], bool]) -> None:
        self._problem = problem
        self._weights = problem.weights / max(1, np.abs(problem.weights).max())
        self._seed, self._turn, self._expired = seed, 0, expired
        self.labels: IntVector | None = None
        self.value = -problem.losses - 1

    def offer(self, labels: IntVector) -> bool:
        """Take a structure if it meets the demands and is better; tell whether it was."""
        value = self._problem.value(labels)
        if value <= self.value or not self._problem.sizes.met_by(labels):
            return False
        self.labels, self.value = labels.copy(), value
        return True

    def begin(self, start: IntVector | None) -> None:
        """Take a first structure, from `start` if there is one.

        Raises
        ------
        InfeasibleError
            There is none; it may also be that none is found.
        """
        if start is not None:
            self.offer(start)
        if self._problem.n <= SMALL:
            if self.labels is None:
                labels = first_structure(self._problem.sizes, expired=self._expired)
                if labels is not None:
                    self.offer(labels)
            return
        from solvers.heuristics.sized_search import repaired

        try:
            sizes = self._problem.sizes
            labels = repaired(self._weights, sizes, start, seed=self._seed, expired=self._expired)
        except NoSolutionError:
            return
        self.offer(labels)

    def improve(self, labels: IntVector, rounds: int | None) -> None:
        """Offer a structure, and what some rounds of local search make of it, or none at all."""
        self.offer(labels)
        if rounds is None or self._problem.n <= SMALL or not self._problem.sizes.met_by(labels):
            return
        from solvers.heuristics.sized_search import improved

        self._turn += 1
        better = improved(
            self._weights,
            self._problem.sizes,
            labels,
            seed=self._seed + self._turn,
            rounds=rounds,
            expired=self._expired,
        )
        self.offer(better)


# ----------------------------------------------------------------------------------------
# The record from which a certificate is written.


@dataclass(frozen=True)
class TeamRecord:
    """A tree of cases and the bound it proves.

    Attributes
    ----------
    bits
        Prices are in units of 2^−bits of an integer weight; may be negative.
    bound
        No structure is worth more, in integer weights.
    tree
        Forks and leaves; the first is the root.
    """

    bits: int
    bound: int
    tree: tuple[Leaf | Fork, ...]

    def certificate(self, n_nodes: int, unit: Fraction) -> Certificate:
        """Return a certificate for nodes, each a player, whose integer weights count in `unit`."""
        nodes = tuple((node,) for node in range(n_nodes))
        proof = TeamsProof(nodes, unit, self.bits, self.bound, self.tree)
        return Certificate(n_nodes, (), teams=proof)
