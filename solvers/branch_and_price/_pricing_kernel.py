r"""Compiled search for coalitions that are worth more than their members pay.

A coalition of the last node i of an order and some nodes before it is found by depth first: to a
set S one adds nodes in descending order of what they may bring. With k places left, a candidate j
brings at most

.. math:: \hat g_j = g_j + \tfrac12 \sum \text{the } k - 1 \text{ largest positive weights of } j,

where :math:`g_j` is what j brings to S alone: half of each weight between two newcomers goes to
either. So the k largest of these bound what S can still gain.
"""

from __future__ import annotations

import numpy as np

from coalitions.compiling import njit
from coalitions.game import BoolMatrix, IntMatrix, IntVector

TURN, DEPTH, FOUND, KEPT, STEPS, COMPLETE, LIMIT = range(7)
"""Places in the state of a search: the node of the order, the depth (−1 between nodes), columns
found, columns kept of this node, steps taken for it, whether all nodes were searched to the end,
and the bound at the top of this node's search."""

STATE = 7

FEW = 8
"""Up to this many places, the candidates that cannot help are left out before they are sorted."""


@njit(cache=True)
def price(
    weights: IntMatrix,
    base: IntVector,
    count_price: int,
    apart: BoolMatrix,
    players: IntVector,
    loads: IntVector,
    holds: BoolMatrix,
    halves: IntMatrix,
    order: IntVector,
    demands: IntVector,
    triples: IntMatrix,
    triple_prices: IntVector,
    triples_from: IntVector,
    triples_of: IntVector,
    keep: int,
    root_steps: int,
    budget: int,
    state: IntVector,
    raised: IntVector,
    columns: BoolMatrix,
    excess: IntVector,
    stack: IntMatrix,
    candidates: IntMatrix,
    gains: IntMatrix,
    hopes: IntMatrix,
    rests: IntMatrix,
) -> bool:
    """Search on, for about `budget` steps; return whether the search has come to its end.

    After it, the prices of `base`, each higher by `raised`, pay for every allowed coalition.

    Parameters
    ----------
    weights
        Synergies of the nodes [g, g].
    base
        What a node is worth alone less its price [g].
    count_price
        What a coalition pays by itself.
    apart
        Pairs that must not be together [g, g].
    players, loads
        Of each node [g].
    holds
        Which roles a node holds [g, r].
    halves
        Half of the sum of the k largest positive weights of a node, rounded up [g, 1 + places].
    order
        The nodes that may be in a coalition, in the order of the search.
    demands
        Fewest and most players, the most load, players of the smallest and the largest node, and
        whether to look at kinds of candidates.
    triples, triple_prices
        Triples of different nodes [t, 3]; a coalition with two or three of one pays its price.
    triples_from, triples_of
        The triples of node j are ``triples_of[triples_from[j] : triples_from[j + 1]]``.
    keep
        Columns kept for each node of the order.
    root_steps
        A node's search is given up after so many steps.
    state, raised, columns, excess
        Where the search is; what prices must rise by; columns found, and by how much they exceed
        their prices.
    stack, candidates, gains, hopes, rests
        Room for the search, by depth: node, value, players, load, number of candidates, position,
        places left; and for each candidate its number, its gain, its hope, and what it and those
        after it can add, one of each kind.
    """
    n_roles = holds.shape[1]
    least, most, max_load = demands[0], demands[1], demands[2]
    smallest, largest, by_kind = demands[3], demands[4], demands[5] > 0
    held = np.zeros(n_roles, np.int64)
    possible = np.zeros(n_roles, np.int64)
    change = np.zeros(len(base), np.int64)
    top = np.zeros(FEW, np.int64)
    kind = np.zeros(len(base), np.int64)
    best_of = np.zeros(len(base), np.int64)
    inside = np.zeros(len(base), np.bool_)
    depth = state[DEPTH]
    for d in range(depth + 1):
        inside[stack[d, 0]] = True
    spent = 0
    while True:
        fresh = False
        if depth < 0:
            turn = state[TURN]
            if turn == len(order):
                return True
            if spent > budget:
                state[DEPTH] = depth
                return False
            node = order[turn]
            if players[node] > most or loads[node] > max_load:
                state[TURN] += 1
                continue
            n_candidates = 0
            for s in range(turn):
                j = order[s]
                if not apart[node, j]:
                    candidates[0, n_candidates] = j
                    gains[0, n_candidates] = base[j] - raised[j] + weights[node, j]
                    n_candidates += 1
            depth = 0
            stack[0, 0], stack[0, 1] = node, base[node]
            stack[0, 2], stack[0, 3], stack[0, 4] = players[node], loads[node], n_candidates
            state[KEPT] = state[STEPS] = 0
            fresh = True
        else:
            # The next candidate, if there is hope.
            position, places = stack[depth, 5], stack[depth, 6]
            n_candidates = stack[depth, 4]
            floor = 0
            if state[KEPT] == keep:
                floor = excess[state[FOUND] - 1]
            bound = stack[depth, 1] - count_price
            wanted = max(0, -((stack[depth, 2] - least) // largest))
            for s in range(position, min(position + places, n_candidates)):
                if hopes[depth, s] <= 0 and s - position >= max(1, wanted):
                    break
                bound += hopes[depth, s]
            if by_kind and position < n_candidates:
                bound = min(bound, stack[depth, 1] - count_price + rests[depth, position])
            over = state[STEPS] > root_steps
            if position >= n_candidates or bound <= floor or over:
                inside[stack[depth, 0]] = False
                depth -= 1
                if depth < 0:
                    node = order[state[TURN]]
                    if state[KEPT]:
                        raised[node] = excess[state[FOUND] - state[KEPT]]
                    if over:
                        state[COMPLETE] = 0
                        raised[node] = max(raised[node], state[LIMIT])
                    state[TURN] += 1
                elif over:
                    stack[depth, 5] = stack[depth, 4]
                continue
            if spent > budget:
                state[DEPTH] = depth
                return False
            stack[depth, 5] += 1
            node = candidates[depth, position]
            n = 0
            for t in range(triples_from[node], triples_from[node + 1]):
                triple = triples_of[t]
                before = 0
                for s in range(3):
                    before += inside[triples[triple, s]]
                for s in range(3):
                    # The second of a triple pays its price, the third does not.
                    if before == 0:
                        change[triples[triple, s]] -= triple_prices[triple]
                    elif before == 1:
                        change[triples[triple, s]] += triple_prices[triple]
            for s in range(position + 1, n_candidates):
                j = candidates[depth, s]
                if not apart[node, j]:
                    candidates[depth + 1, n] = j
                    gains[depth + 1, n] = gains[depth, s] + weights[node, j] + change[j]
                    n += 1
            for t in range(triples_from[node], triples_from[node + 1]):
                for s in range(3):
                    change[triples[triples_of[t], s]] = 0
            spent += n_candidates - position
            state[STEPS] += n_candidates - position
            stack[depth + 1, 0] = node
            stack[depth + 1, 1] = stack[depth, 1] + gains[depth, position]
            stack[depth + 1, 2] = stack[depth, 2] + players[node]
            stack[depth + 1, 3] = stack[depth, 3] + loads[node]
            stack[depth + 1, 4] = n
            depth += 1
        # A new set: inside[0 … depth].
        node = stack[depth, 0]
        inside[node] = True
        if fresh:
            # Its first node pays for triples with each candidate.
            for t in range(triples_from[node], triples_from[node + 1]):
                for s in range(3):
                    change[triples[triples_of[t], s]] -= triple_prices[triples_of[t]]
            for s in range(stack[0, 4]):
                gains[0, s] += change[candidates[0, s]]
            for t in range(triples_from[node], triples_from[node + 1]):
                for s in range(3):
                    change[triples[triples_of[t], s]] = 0
        value, size, load = stack[depth, 1], stack[depth, 2], stack[depth, 3]
        missing = 0
        for r in range(n_roles):
            held[r] = 0
            for d in range(depth + 1):
                held[r] |= holds[stack[d, 0], r]
            missing += 1 - held[r]
            possible[r] = held[r]
        # Those who fit.
        n, lightest = 0, max_load + 1
        for s in range(stack[depth, 4]):
            j = candidates[depth, s]
            if size + players[j] <= most and load + loads[j] <= max_load:
                candidates[depth, n], gains[depth, n] = j, gains[depth, s]
                lightest = min(lightest, loads[j])
                for r in range(n_roles):
                    possible[r] |= holds[j, r]
                n += 1
        places = min((most - size) // smallest, n)
        if lightest > 0 and n > 0:
            places = min(places, (max_load - load) // lightest)
        # The set itself, and sets with one more, if there are no two places, are columns.
        single = places == 1
        for s in range(-1, n if single else 0):
            worth = value - count_price
            if s < 0:
                good = size >= least and missing == 0
            else:
                worth += gains[depth, s]
                good = size + players[candidates[depth, s]] >= least
            if not good or worth <= 0:
                continue
            kept, found = state[KEPT], state[FOUND]
            if kept == keep and worth <= excess[found - 1]:
                continue
            if missing and s >= 0:
                for r in range(n_roles):
                    good &= bool(held[r] or holds[candidates[depth, s], r])
                if not good:
                    continue
            # Of each node of the order the best are kept, the very best first.
            if kept < keep:
                state[KEPT] += 1
                state[FOUND] += 1
                found += 1
            at = found - 1
            first = found - state[KEPT]
            while at > first and excess[at - 1] < worth:
                excess[at] = excess[at - 1]
                for j in range(len(base)):
                    columns[at, j] = columns[at - 1, j]
                at -= 1
            excess[at] = worth
            for j in range(len(base)):
                columns[at, j] = False
            for d in range(depth + 1):
                columns[at, stack[d, 0]] = True
            if s >= 0:
                columns[at, candidates[depth, s]] = True
        wanted = max(0, -((size - least) // largest))
        enough = n >= wanted and places >= wanted
        for r in range(n_roles):
            enough &= bool(possible[r])
        if places <= 1 or not enough:
            n = 0
        if n > 0:
            floor = 0
            if state[KEPT] == keep:
                floor = excess[state[FOUND] - 1]
            others = places - 1
            # Two newcomers that complete a triple pay its price once: half of it each.
            for d in range(depth + 1):
                for t in range(triples_from[stack[d, 0]], triples_from[stack[d, 0] + 1]):
                    triple, held_of = triples_of[t], 0
                    for s in range(3):
                        held_of += inside[triples[triple, s]]
                    if held_of == 1:
                        for s in range(3):
                            change[triples[triple, s]] += (triple_prices[triple] + 1) // 2
            if by_kind:
                n_kinds = _sort_out(candidates[depth], n, apart, kind)
                others = min(others, n_kinds - 1)
                places = min(places, n_kinds)
                spent += n * n // 4
                state[STEPS] += n * n // 4
            for s in range(n):
                j = candidates[depth, s]
                half = halves[j, others]
                if by_kind:
                    around = _around(j, candidates[depth], n, weights, apart, kind, best_of)
                    half = min(half, (around + 1) // 2)
                hopes[depth, s] = gains[depth, s] + half + change[j]
            for d in range(depth + 1):
                for t in range(triples_from[stack[d, 0]], triples_from[stack[d, 0] + 1]):
                    for s in range(3):
                        change[triples[triples_of[t], s]] = 0
            if by_kind:
                # What a candidate can be part of has one of each other kind.
                rest = (
                    value
                    - count_price
                    + _rests(candidates[depth], hopes[depth], n, kind, best_of, rests[depth])
                )
                m = 0
                for s in range(n):
                    j = candidates[depth, s]
                    if hopes[depth, s] + rest - best_of[kind[j]] > floor:
                        candidates[depth, m] = j
                        gains[depth, m], hopes[depth, m] = gains[depth, s], hopes[depth, s]
                        m += 1
                n = m
            elif others <= FEW:
                # The largest hopes of the others bound what one can be part of.
                size_top = 0
                for s in range(n):
                    hope = hopes[depth, s]
                    if size_top == others and hope <= top[size_top - 1]:
                        continue
                    if size_top < others:
                        size_top += 1
                    at = size_top - 1
                    while at > 0 and top[at - 1] < hope:
                        top[at] = top[at - 1]
                        at -= 1
                    top[at] = hope
                rest = value - count_price
                for s in range(size_top):
                    if top[s] > 0 or s < wanted - 1:
                        rest += top[s]
                m = 0
                for s in range(n):
                    if hopes[depth, s] + rest > floor:
                        candidates[depth, m] = candidates[depth, s]
                        gains[depth, m], hopes[depth, m] = gains[depth, s], hopes[depth, s]
                        m += 1
                spent += n
                state[STEPS] += n
                n = m
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
            if by_kind:
                _rests(candidates[depth], hopes[depth], n, kind, best_of, rests[depth])
        if fresh:
            limit = value - count_price
            for s in range(min(n, places)):
                limit += max(0, hopes[0, s])
            state[LIMIT] = limit
        stack[depth, 4], stack[depth, 5], stack[depth, 6] = n, 0, places


@njit(cache=True)
def _sort_out(candidates: IntVector, n: int, apart: BoolMatrix, kind: IntVector) -> int:
    """Give each candidate a kind, and return how many there are: those of one are all apart.

    So no set has two of a kind.
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
    """Return what a candidate can have with others, one of each kind."""
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
def _rests(
    candidates: IntVector,
    hopes: IntVector,
    n: int,
    kind: IntVector,
    best_of: IntVector,
    rests: IntVector,
) -> int:
    """Note for each candidate the hopes of it and those after it, the best of each kind in sum."""
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
