r"""Compiled search for coalitions that are worth more than their members pay.

A coalition is a node of an order, its *root*, with some nodes before it. All coalitions of a root
are searched depth first. With a set S go its *candidates*: nodes that may still be added. To add
candidate j to S *gains* :math:`g_j`. If k nodes fit in, j brings at most its *hope*

.. math:: \hat g_j = g_j + \tfrac12 \sum \text{the } k - 1 \text{ largest positive weights of } j,

because half of each weight between two newcomers goes to either. So S gains at most the sum of the
k largest hopes.

1. **Root.** Take the next node of the order. Its candidates are the nodes before it that may be
   with it.
2. **Bound.** The candidates of S stand in descending order of hope, and those before a position
   have been tried. If the next k hopes cannot lift S above the floor, go back to the set before S.
   The floor is the worst of the columns kept for this root, or zero while there is room for more.
   When the search returns from the root, the price of the root rises by the best excess it found.
3. **Grow.** Else add the next candidate to S. The candidates after it remain.
4. **Fit.** Leave out candidates that are too large or too heavy, and find how many nodes fit in.
5. **Keep.** S is a column if it exceeds the floor and has the players and roles that it needs. If
   one more node fits in, S with each of its candidates is a column in the same way.
6. **Hope.** Compute the hopes of the candidates.
7. **Prune.** Leave out candidates that no set above the floor has.
8. **Sort** the rest by hope, and go on with step 2.

**Kinds.** Where many pairs must be apart, the candidates are sorted into kinds: any two of a kind
are apart. So a set has at most one of each kind, which sharpens the bounds of steps 2, 6 and 7.

**Triples.** The second node of a triple in a set pays its price, the third does not. So a node that
joins the set changes the gains of the other two (steps 1 and 3). Two newcomers that join one node
of a triple pay its price once, though either gain has it: half of it goes back to either (step 6).

All numbers are integers, so the prices that come out prove a bound without rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coalitions.compiling import njit
from coalitions.game import BoolMatrix, BoolVector, IntMatrix, IntVector

TURN, DEPTH, FOUND, KEPT, STEPS, COMPLETE, LIMIT = range(7)
"""Cells of `PricingState.progress`: the root's place in the order, the depth (−1 between roots),
columns found, columns kept of this root, steps taken for it, whether all roots were searched to the
end, and the bound at the top of this root's search."""

NODE, VALUE, PLAYERS, LOAD, N_CANDIDATES, POSITION, PLACES = range(7)
"""Columns of `PricingScratch.stack`, one row for each node of the set: the node, then of the set up
to this node the value, the players, the load, the number of candidates, the next candidate to try,
and how many more nodes fit in."""

SHORT_LIST = 8
"""Up to this many places, hopeless candidates are left out before the rest is sorted. It trades the
upkeep of a short list of the largest hopes, which grows with the places, against a shorter sort."""


class PricingNodes(NamedTuple):
    """What the search knows of g nodes.

    Attributes
    ----------
    weights
        Synergies of the nodes [g, g].
    base
        What a node is worth alone less its price [g].
    apart
        Pairs that must not be together [g, g].
    players, loads
        Of each node [g].
    holds
        Which roles a node holds [g, r].
    halves
        Half of the sum of the k largest positive weights of a node, rounded up [g, 1 + places].
    """

    weights: IntMatrix
    base: IntVector
    apart: BoolMatrix
    players: IntVector
    loads: IntVector
    holds: BoolMatrix
    halves: IntMatrix


class PricingTriples(NamedTuple):
    """Triples of different nodes; a coalition with two or three nodes of one pays its price.

    Attributes
    ----------
    members, prices
        Nodes [t, 3] and prices [t].
    starts, numbers
        The triples of node j are ``numbers[starts[j] : starts[j + 1]]``.
    """

    members: IntMatrix
    prices: IntVector
    starts: IntVector
    numbers: IntVector


class PricingRules(NamedTuple):
    """What a coalition must have, what it pays, and how the search goes.

    Attributes
    ----------
    min_size, max_size, max_load
        Fewest and most players of a coalition, and the most load.
    smallest, largest
        Players of the smallest and the largest node.
    count_price
        What a coalition pays by itself.
    by_kind
        Whether to sort candidates into kinds: 0 or 1.
    keep
        Columns kept for each root.
    root_steps
        The search of a root is given up after so many steps.
    """

    min_size: int
    max_size: int
    max_load: int
    smallest: int
    largest: int
    count_price: int
    by_kind: int
    keep: int
    root_steps: int


class PricingState(NamedTuple):
    """Where the search is, and what it has found.

    Attributes
    ----------
    progress
        Cells `TURN` to `LIMIT`.
    raised
        What the price of each node must rise by [g].
    columns, excess
        Coalitions found [c, g], and by how much each exceeds its prices [c].
    """

    progress: IntVector
    raised: IntVector
    columns: BoolMatrix
    excess: IntVector

    @staticmethod
    def start(n_nodes: int, most_columns: int) -> PricingState:
        """Return the state before the first root."""
        progress = np.zeros(LIMIT + 1, np.int64)
        progress[DEPTH], progress[COMPLETE] = -1, 1
        columns = np.zeros((most_columns, n_nodes), np.bool_)
        excess = np.zeros(most_columns, np.int64)
        return PricingState(progress, np.zeros(n_nodes, np.int64), columns, excess)


class PricingScratch(NamedTuple):
    """Room for the search. Only the first five must survive between two calls of one search.

    Attributes
    ----------
    stack
        The set at work, a row for each of its nodes, with columns `NODE` to `PLACES`.
    candidates, gains, hopes
        The candidates of each row of the stack, with the gain and the hope of each.
    rests
        The most that a candidate and those after it can add, with one of each kind.
    inside
        Which nodes are in the set.
    change
        By how much triples change the gain of a node; zero outside of the steps that use it.
    kind, best_of
        Kind of each candidate, and the best entry of each kind.
    top
        The largest hopes.
    held, possible
        Roles that the set holds, and those that it can hold with candidates.
    """

    stack: IntMatrix
    candidates: IntMatrix
    gains: IntMatrix
    hopes: IntMatrix
    rests: IntMatrix
    inside: BoolVector
    change: IntVector
    kind: IntVector
    best_of: IntVector
    top: IntVector
    held: BoolVector
    possible: BoolVector

    @staticmethod
    def of_size(n_nodes: int, places: int, n_roles: int) -> PricingScratch:
        """Return room for coalitions of at most `places` nodes."""

        def rows() -> IntMatrix:
            return np.zeros((places + 1, n_nodes), np.int64)

        def row() -> IntVector:
            return np.zeros(n_nodes, np.int64)

        return PricingScratch(
            np.zeros((places + 1, PLACES + 1), np.int64),
            rows(),
            rows(),
            rows(),
            rows(),
            np.zeros(n_nodes, np.bool_),
            row(),
            row(),
            row(),
            np.zeros(SHORT_LIST, np.int64),
            np.zeros(n_roles, np.bool_),
            np.zeros(n_roles, np.bool_),
        )


def price(
    nodes: PricingNodes,
    triples: PricingTriples,
    rules: PricingRules,
    order: IntVector,
    budget: int,
    state: PricingState,
    scratch: PricingScratch,
) -> bool:
    """Search on, for about `budget` steps; return whether the search has come to its end.

    After it, the prices of `nodes.base`, each higher by `state.raised`, pay for every allowed
    coalition. `order` has the nodes that may be in one.
    """
    # numba takes plain tuples in a tenth of the time that named ones take.
    known = tuple(nodes), tuple(triples), tuple(rules)
    ended: bool = _price(*known, order, budget, tuple(state), tuple(scratch))
    return ended


@njit(cache=True)
def _price(
    nodes: PricingNodes,
    triples: PricingTriples,
    rules: PricingRules,
    order: IntVector,
    budget: int,
    state: PricingState,
    scratch: PricingScratch,
) -> bool:
    """Do what `price` says."""
    nodes, triples, rules = PricingNodes(*nodes), PricingTriples(*triples), PricingRules(*rules)
    state, scratch = PricingState(*state), PricingScratch(*scratch)
    # Local names, because numba counts references each time it takes an array out of a tuple. It
    # does so for a row that gets a name, too, hence candidates[depth, s] wherever every set passes.
    progress, raised, excess = state.progress, state.raised, state.excess
    stack, inside, change = scratch.stack, scratch.inside, scratch.change
    candidates, gains = scratch.candidates, scratch.gains
    hopes, rests = scratch.hopes, scratch.rests
    kind, best_of, top = scratch.kind, scratch.best_of, scratch.top
    held, possible = scratch.held, scratch.possible
    weights, apart, base, halves = nodes.weights, nodes.apart, nodes.base, nodes.halves
    players, loads, holds = nodes.players, nodes.loads, nodes.holds
    keep, count_price, by_kind = rules.keep, rules.count_price, rules.by_kind > 0
    depth = progress[DEPTH]
    inside[:] = False
    for d in range(depth + 1):
        inside[stack[d, NODE]] = True
    spent = 0
    has_triples = len(triples.prices) > 0
    while True:
        if depth < 0:
            # 1. Root.
            turn = progress[TURN]
            if turn == len(order):
                return True
            if spent > budget:
                progress[DEPTH] = depth
                return False
            node = order[turn]
            if players[node] > rules.max_size or loads[node] > rules.max_load:
                progress[TURN] += 1
                continue
            if has_triples:
                _charge_triples(triples, node, inside, change)
            n = 0
            for s in range(turn):
                j = order[s]
                if not apart[node, j]:
                    candidates[0, n] = j
                    # Roots before this one pay what their own search made them pay.
                    gains[0, n] = base[j] - raised[j] + weights[node, j] + change[j]
                    n += 1
            if has_triples:
                _clear_triples(triples, node, change)
            depth = 0
            stack[0, NODE], stack[0, VALUE] = node, base[node]
            stack[0, PLAYERS], stack[0, LOAD] = players[node], loads[node]
            stack[0, N_CANDIDATES] = n
            progress[KEPT] = progress[STEPS] = 0
        else:
            # 2. Bound.
            position, places = stack[depth, POSITION], stack[depth, PLACES]
            n_candidates = stack[depth, N_CANDIDATES]
            worth = stack[depth, VALUE] - count_price
            bound = worth
            # So many nodes must come, even if they cost something; one is added in any case.
            wanted = _missing_nodes(rules, stack[depth, PLAYERS])
            for s in range(position, min(position + places, n_candidates)):
                if hopes[depth, s] <= 0 and s - position >= max(1, wanted):
                    break
                bound += hopes[depth, s]
            if by_kind and position < n_candidates:
                bound = min(bound, worth + rests[depth, position])
            over = progress[STEPS] > rules.root_steps
            if position >= n_candidates or bound <= _floor(progress, excess, keep) or over:
                inside[stack[depth, NODE]] = False
                depth -= 1
                if depth < 0:
                    # The best column of the root stands first.
                    node = order[progress[TURN]]
                    if progress[KEPT]:
                        raised[node] = excess[progress[FOUND] - progress[KEPT]]
                    if over:
                        progress[COMPLETE] = 0
                        raised[node] = max(raised[node], progress[LIMIT])
                    progress[TURN] += 1
                elif over:
                    # Nothing more of this root: each set before this one has no candidate left.
                    stack[depth, POSITION] = stack[depth, N_CANDIDATES]
                continue
            if spent > budget:
                progress[DEPTH] = depth
                return False
            # 3. Grow.
            stack[depth, POSITION] += 1
            node = candidates[depth, position]
            if has_triples:
                _charge_triples(triples, node, inside, change)
            n = 0
            for s in range(position + 1, n_candidates):
                j = candidates[depth, s]
                if not apart[node, j]:
                    candidates[depth + 1, n] = j
                    gains[depth + 1, n] = gains[depth, s] + weights[node, j] + change[j]
                    n += 1
            if has_triples:
                _clear_triples(triples, node, change)
            spent += n_candidates - position
            progress[STEPS] += n_candidates - position
            stack[depth + 1, NODE] = node
            stack[depth + 1, VALUE] = stack[depth, VALUE] + gains[depth, position]
            stack[depth + 1, PLAYERS] = stack[depth, PLAYERS] + players[node]
            stack[depth + 1, LOAD] = stack[depth, LOAD] + loads[node]
            stack[depth + 1, N_CANDIDATES] = n
            depth += 1

        # A new set: the nodes of the rows 0 … depth of the stack.
        inside[node] = True
        worth, size = stack[depth, VALUE] - count_price, stack[depth, PLAYERS]
        # 4. Fit.
        n, places = _fit(nodes, rules, scratch, depth)
        has_roles = _covers(held, held)
        # 5. Keep.
        if size >= rules.min_size and has_roles and worth > _floor(progress, excess, keep):
            _keep(state, keep, stack, depth, -1, worth)
        for s in range(n if places == 1 else 0):
            j, more = candidates[depth, s], worth + gains[depth, s]
            if more <= _floor(progress, excess, keep) or size + players[j] < rules.min_size:
                continue
            if has_roles or _covers(held, holds[j]):
                _keep(state, keep, stack, depth, j, more)
        wanted = _missing_nodes(rules, size)
        enough = n >= wanted and places >= wanted and _covers(possible, possible)
        if places <= 1 or not enough:
            n = 0
        if n > 0:
            # 6. Hope.
            others = places - 1
            if by_kind:
                n_kinds = _sort_out(candidates[depth], n, apart, kind)
                others = min(others, n_kinds - 1)
                places = min(places, n_kinds)
                spent += n * n // 4
                progress[STEPS] += n * n // 4
            for d in range(depth + 1 if has_triples else 0):
                _share_triples(triples, stack[d, NODE], inside, change)
            for s in range(n):
                j = candidates[depth, s]
                half = halves[j, others]
                if by_kind:
                    around = _around(j, candidates[depth], n, weights, apart, kind, best_of)
                    half = min(half, (around + 1) // 2)
                hopes[depth, s] = gains[depth, s] + half + change[j]
            for d in range(depth + 1 if has_triples else 0):
                _clear_triples(triples, stack[d, NODE], change)
            # 7. Prune.
            needed = _floor(progress, excess, keep) - worth
            if by_kind:
                total = _set_rests(candidates[depth], hopes[depth], n, kind, best_of, rests[depth])
                n = _prune_by_kind(
                    candidates[depth], gains[depth], hopes[depth], n, needed, kind, best_of, total
                )
            elif others <= SHORT_LIST:
                spent += n
                progress[STEPS] += n
                n = _prune(candidates, gains, hopes, depth, n, needed, others, wanted - 1, top)
            # 8. Sort.
            _sort_by_hope(candidates, gains, hopes, depth, n)
            if by_kind:
                _set_rests(candidates[depth], hopes[depth], n, kind, best_of, rests[depth])
        if depth == 0:
            limit = worth
            for s in range(min(n, places)):
                limit += max(0, hopes[depth, s])
            progress[LIMIT] = limit
        stack[depth, N_CANDIDATES], stack[depth, POSITION], stack[depth, PLACES] = n, 0, places


# ----------------------------------------------------------------------------------------
# Steps 2 to 5. What every set needs is inlined by force. Step 2, 3 or 5 in a function of its own
# takes a quarter more CPU time, inlined or not: numba counts references for each array argument.


@njit(cache=True, forceinline=True)
def _missing_nodes(rules: PricingRules, size: int) -> int:
    """Return how many nodes at least must join a set of so many players: ⌈missing / largest⌉."""
    return max(0, -((size - rules.min_size) // rules.largest))


@njit(cache=True, forceinline=True)
def _floor(progress: IntVector, excess: IntVector, keep: int) -> np.int64:
    """Return what a column must exceed to be kept."""
    if progress[KEPT] < keep:
        return np.int64(0)
    worst: np.int64 = excess[progress[FOUND] - 1]
    return worst


@njit(cache=True)
def _charge_triples(
    triples: PricingTriples, node: int, inside: BoolVector, change: IntVector
) -> None:
    """Add to `change` what triples make others gain or lose once `node` is in the set."""
    for t in range(triples.starts[node], triples.starts[node + 1]):
        triple = triples.numbers[t]
        before = 0
        for s in range(3):
            before += inside[triples.members[triple, s]]
        for s in range(3):
            # The second of a triple pays its price, the third does not.
            if before == 0:
                change[triples.members[triple, s]] -= triples.prices[triple]
            elif before == 1:
                change[triples.members[triple, s]] += triples.prices[triple]


@njit(cache=True)
def _clear_triples(triples: PricingTriples, node: int, change: IntVector) -> None:
    """Set `change` back to zero for all that share a triple with a node."""
    for t in range(triples.starts[node], triples.starts[node + 1]):
        for s in range(3):
            change[triples.members[triples.numbers[t], s]] = 0


@njit(cache=True, forceinline=True)
def _fit(
    nodes: PricingNodes, rules: PricingRules, scratch: PricingScratch, depth: int
) -> tuple[int, int]:
    """Leave out candidates that do not fit; return how many are left, and how many fit at once.

    `scratch.held` and `scratch.possible` are those of the set afterwards.
    """
    stack, held, possible = scratch.stack, scratch.held, scratch.possible
    players, loads, holds = nodes.players, nodes.loads, nodes.holds
    candidates, gains = scratch.candidates, scratch.gains
    for r in range(len(held)):
        held[r] = False
        for d in range(depth + 1):
            held[r] |= holds[stack[d, NODE], r]
        possible[r] = held[r]
    room = rules.max_size - stack[depth, PLAYERS]
    load_room = rules.max_load - stack[depth, LOAD]
    n, lightest = 0, rules.max_load + 1
    for s in range(stack[depth, N_CANDIDATES]):
        j = candidates[depth, s]
        if players[j] <= room and loads[j] <= load_room:
            candidates[depth, n], gains[depth, n] = j, gains[depth, s]
            lightest = min(lightest, loads[j])
            for r in range(len(possible)):
                possible[r] |= holds[j, r]
            n += 1
    places = min(room // rules.smallest, n)
    if lightest > 0 and n > 0:
        places = min(places, load_room // lightest)
    return n, places


@njit(cache=True, forceinline=True)
def _covers(held: BoolVector, more: BoolVector) -> bool:
    """Tell whether a set and one more node hold every role."""
    covered = True
    for r in range(len(held)):
        covered &= held[r] or more[r]
    return covered


@njit(cache=True)
def _keep(
    state: PricingState, keep: int, stack: IntMatrix, depth: int, newcomer: int, worth: int
) -> None:
    """Make the set a column, with one more node unless that is −1.

    The last `KEPT` columns are those of the root, the best first. The new one is inserted there; if
    `keep` are there already, the worst of them goes.
    """
    progress, columns, excess = state.progress, state.columns, state.excess
    if progress[KEPT] < keep:
        progress[KEPT] += 1
        progress[FOUND] += 1
    at = progress[FOUND] - 1
    first = progress[FOUND] - progress[KEPT]
    while at > first and excess[at - 1] < worth:
        excess[at] = excess[at - 1]
        for j in range(columns.shape[1]):
            columns[at, j] = columns[at - 1, j]
        at -= 1
    excess[at] = worth
    for j in range(columns.shape[1]):
        columns[at, j] = False
    for d in range(depth + 1):
        columns[at, stack[d, NODE]] = True
    if newcomer >= 0:
        columns[at, newcomer] = True


# ----------------------------------------------------------------------------------------
# Steps 6 to 8


@njit(cache=True)
def _share_triples(
    triples: PricingTriples, node: int, inside: BoolVector, change: IntVector
) -> None:
    """Add to `change` half the price of each triple of which the set holds `node` alone."""
    for t in range(triples.starts[node], triples.starts[node + 1]):
        triple, members_inside = triples.numbers[t], 0
        for s in range(3):
            members_inside += inside[triples.members[triple, s]]
        if members_inside == 1:
            for s in range(3):
                change[triples.members[triple, s]] += (triples.prices[triple] + 1) // 2


@njit(cache=True, forceinline=True)
def _prune(
    candidates: IntMatrix,
    gains: IntMatrix,
    hopes: IntMatrix,
    depth: int,
    n: int,
    needed: int,
    others: int,
    others_wanted: int,
    top: IntVector,
) -> int:
    """Leave out candidates of a row whose hope is too low; return how many are left.

    A set with candidate j is worth at most ``worth + hopes[j] + rest``. The rest is the sum of the
    largest hopes, as many as there are others; negative ones only as far as others are wanted.
    """
    n_top = 0
    for s in range(n):
        hope = hopes[depth, s]
        if n_top == others and hope <= top[n_top - 1]:
            continue
        if n_top < others:
            n_top += 1
        # `top` stays in descending order.
        at = n_top - 1
        while at > 0 and top[at - 1] < hope:
            top[at] = top[at - 1]
            at -= 1
        top[at] = hope
    rest = 0
    for s in range(n_top):
        if top[s] > 0 or s < others_wanted:
            rest += top[s]
    m = 0
    for s in range(n):
        if hopes[depth, s] + rest > needed:
            candidates[depth, m] = candidates[depth, s]
            gains[depth, m], hopes[depth, m] = gains[depth, s], hopes[depth, s]
            m += 1
    return m


@njit(cache=True, forceinline=True)
def _sort_by_hope(
    candidates: IntMatrix, gains: IntMatrix, hopes: IntMatrix, depth: int, n: int
) -> None:
    """Sort the n candidates of a row by descending hope (Shell's method with gaps 1, 4, 13, …)."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for s in range(gap, n):
            hope, gain, j = hopes[depth, s], gains[depth, s], candidates[depth, s]
            at = s
            while at >= gap and hopes[depth, at - gap] < hope:
                hopes[depth, at] = hopes[depth, at - gap]
                gains[depth, at] = gains[depth, at - gap]
                candidates[depth, at] = candidates[depth, at - gap]
                at -= gap
            hopes[depth, at], gains[depth, at], candidates[depth, at] = hope, gain, j
        gap //= 3


# ----------------------------------------------------------------------------------------
# Kinds


@njit(cache=True)
def _sort_out(candidates: IntVector, n: int, apart: BoolMatrix, kind: IntVector) -> int:
    """Give each candidate a kind, and return how many there are: those of one are all apart.

    Each candidate takes the first kind that is free for it, as in a greedy colouring.
    """
    n_kinds = 0
    for s in range(n):
        j = candidates[s]
        for k in range(n_kinds + 1):
            free = True
            for r in range(s):
                i = candidates[r]
                if kind[i] == k and not apart[i, j]:
                    free = False
                    break
            if free:
                kind[j] = k
                n_kinds = max(n_kinds, k + 1)
                break
    return n_kinds


@njit(cache=True)
def _around(
    j: int,
    candidates: IntVector,
    n: int,
    weights: IntMatrix,
    apart: BoolMatrix,
    kind: IntVector,
    best_of: IntVector,
) -> int:
    """Return the most weight that candidate j can have with others: the best of each kind."""
    total = 0
    for s in range(n):
        best_of[s] = 0
    for s in range(n):
        i = candidates[s]
        more = weights[j, i] - best_of[kind[i]]
        if more > 0 and not apart[i, j]:
            best_of[kind[i]] += more
            total += more
    return total


@njit(cache=True)
def _set_rests(
    candidates: IntVector,
    hopes: IntVector,
    n: int,
    kind: IntVector,
    best_of: IntVector,
    rests: IntVector,
) -> int:
    """Compute for each candidate the sum of the best hopes of each kind from it on.

    Returns that of the first; `best_of` has the best hope of each kind afterwards.
    """
    total = 0
    for s in range(n):
        best_of[kind[candidates[s]]] = 0
    for s in range(n - 1, -1, -1):
        more = hopes[s] - best_of[kind[candidates[s]]]
        if more > 0:
            best_of[kind[candidates[s]]] += more
            total += more
        rests[s] = total
    return total


@njit(cache=True)
def _prune_by_kind(
    candidates: IntVector,
    gains: IntVector,
    hopes: IntVector,
    n: int,
    needed: int,
    kind: IntVector,
    best_of: IntVector,
    total: int,
) -> int:
    """Leave out candidates whose hope is too low; return how many are left.

    A set with candidate j has at most the best of each kind, `total` in all, and j instead of the
    best of its own.
    """
    m = 0
    for s in range(n):
        j = candidates[s]
        if hopes[s] + total - best_of[kind[j]] > needed:
            candidates[m], gains[m], hopes[m] = j, gains[s], hopes[s]
            m += 1
    return m
