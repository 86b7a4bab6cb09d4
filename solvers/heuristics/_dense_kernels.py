r"""Kernels for local search on a full matrix of synergies.

A partition is kept with the *gain table* G[c, i] = Σ_{j ∈ c} w_ij, so that the change of value when
player i goes from block a to block b is read off as

.. math:: \Delta = G_{b,i} - G_{a,i}

and a move costs one pass over row i.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coalitions.compiling import copy_into, njit
from coalitions.game import FloatMatrix, FloatVector, IntVector
from solvers.heuristics.random_numbers import RandomState, below, shuffle, two_below, uniform

FOR_EVER = 2**62
"""More cells of a table than anybody looks at."""


class Table(NamedTuple):
    """A partition under change, and the best one it has been.

    Blocks are slots 0 … n−1: as many as there are players, so one is empty unless all are alone.

    Attributes
    ----------
    weights
        The synergies w [n, n].
    slots, sizes
        Block of each player; number of players in each block.
    gains
        G[c, i] = Σ_{j ∈ c} w_ij.
    order, place, used
        The slots, those in use first; where in that list a slot stands; how many are in use (one
        number in an array, because kernels change it).
    value, best, best_slots
        Value now (one number); the highest so far, and its partition.
    """

    weights: FloatMatrix
    slots: IntVector
    sizes: IntVector
    gains: FloatMatrix
    order: IntVector
    place: IntVector
    used: IntVector
    value: FloatVector
    best: FloatVector
    best_slots: IntVector


@njit(cache=True)
def tabulate(weights: FloatMatrix, labels: IntVector) -> Table:
    """Return the table of the partition `labels`, which must lie in 0 … n−1."""
    n = len(labels)
    table = Table(
        weights,
        np.empty(n, np.int64),
        np.zeros(n, np.int64),
        np.empty((n, n)),
        np.arange(n),
        np.arange(n),
        np.zeros(1, np.int64),
        np.zeros(1),
        np.zeros(1),
        np.empty(n, np.int64),
    )
    reset(table, labels)
    table.best[0] = table.value[0]
    copy_into(table.best_slots, table.slots)
    return table


@njit(cache=True)
def reset(table: Table, labels: IntVector) -> None:
    """Make `labels` the partition of the table, computed afresh; the best so far stays."""
    n = len(labels)
    table.sizes[:] = 0
    table.gains[:] = 0.0
    # Blocks get the slots 0, 1, … in the order of their first players.
    number = np.full(n, -1, np.int64)
    blocks = 0
    for i in range(n):
        if number[labels[i]] < 0:
            number[labels[i]] = blocks
            blocks += 1
        c = number[labels[i]]
        table.slots[i] = c
        table.sizes[c] += 1
        into, row = table.gains[c], table.weights[i]
        for j in range(n):
            into[j] += row[j]
    for c in range(n):
        table.order[c] = c
        table.place[c] = c
    table.used[0] = blocks
    # Σ_i G[block of i, i] counts each pair inside a block twice.
    total = 0.0
    for i in range(n):
        total += table.gains[table.slots[i], i]
    table.value[0] = total / 2.0


@njit(cache=True)
def move(table: Table, i: int, b: int) -> None:
    """Put player i into block b, another than its own; it may be an empty slot."""
    a = table.slots[i]
    # Δ = G[b, i] − G[a, i], before row i leaves G[a] and enters G[b].
    row, old, new = table.weights[i], table.gains[a], table.gains[b]
    table.value[0] += new[i] - old[i]
    for j in range(len(row)):
        old[j] -= row[j]
        new[j] += row[j]
    table.slots[i] = b
    # `order[: used]` are the slots in use: a slot that fills moves behind them, one that empties
    # changes places with the last of them.
    if table.sizes[b] == 0:
        _swap_places(table, table.place[b], table.used[0])
        table.used[0] += 1
    table.sizes[b] += 1
    table.sizes[a] -= 1
    if table.sizes[a] == 0:
        table.used[0] -= 1
        _swap_places(table, table.place[a], table.used[0])
        old[:] = 0.0  # an empty block gains nothing, exactly


@njit(cache=True)
def _swap_places(table: Table, p: int, q: int) -> None:
    order, place = table.order, table.place
    order[p], order[q] = order[q], order[p]
    place[order[p]] = p
    place[order[q]] = q


@njit(cache=True)
def keep_if_best(table: Table) -> None:
    """Remember the partition if it is the best so far."""
    if table.value[0] > table.best[0]:
        table.best[0] = table.value[0]
        copy_into(table.best_slots, table.slots)


@njit(cache=True)
def anneal(table: Table, temperature: float, proposals: int, limit: int, state: RandomState) -> int:
    """Make Metropolis moves at one temperature; return how many were accepted.

    A proposal is a random player and a random block, one empty block among them unless `limit`
    blocks are in use. The best partition is looked for only in the end: on the way down each is
    better than the last, and copying them all would cost more than the moves.
    """
    n = len(table.slots)
    slots, sizes, gains, order = table.slots, table.sizes, table.gains, table.order
    accepted = 0
    # exp(−40) is below 1e-17: such a proposal is refused without a random number.
    hopeless = -40.0 * temperature
    for _ in range(proposals):
        i, k = two_below(state, n, min(table.used[0] + 1, limit))
        a, b = slots[i], order[k]
        if a == b:
            continue
        # Metropolis: accept with probability min(1, exp(Δ / T)). A lone player that moves to an
        # empty slot changes nothing.
        change = gains[b, i] - gains[a, i]
        if change < 0.0:
            if change < hopeless or uniform(state) >= np.exp(change / temperature):
                continue
        elif sizes[b] == 0 and sizes[a] == 1:
            continue
        move(table, i, b)
        accepted += 1
    keep_if_best(table)
    return accepted


@njit(cache=True)
def descend(table: Table, threshold: float, state: RandomState) -> None:
    """Improve until no relocation, merger, split or swap gains more than `threshold`.

    The threshold is a little above the rounding error of a sum of weights: without it, rounding
    could let the search go round in a circle.
    """
    while True:
        relocate(table, threshold, state)
        if not (merge(table, threshold) or split(table, threshold) or swap(table, threshold)):
            break
    keep_if_best(table)


@njit(cache=True)
def relocate(table: Table, threshold: float, state: RandomState, patience: int = FOR_EVER) -> bool:
    """Let players go to their best block, in random order, until none wants to.

    `patience` limits how many cells of the table are looked at. Tells whether all are content.
    """
    n = len(table.slots)
    turn = np.arange(n)
    waiting, looked = n, 0
    while waiting > 0 and looked < patience:
        shuffle(state, turn)
        for i in turn:
            a = table.slots[i]
            # The best block, or one of its own: there the player gains 0 − G[a, i].
            target, gain = -1, threshold
            looked += table.used[0]
            for k in range(table.used[0]):
                b = table.order[k]
                change = table.gains[b, i] - table.gains[a, i]
                if change > gain:
                    target, gain = b, change
            if table.sizes[a] > 1 and -table.gains[a, i] > gain:
                target = table.order[table.used[0]]
            if target >= 0:
                move(table, i, target)
                looked += 2 * n
                # After a move all others must be asked again: the pass ends when n in a row are
                # content.
                waiting = n
            waiting -= 1
            if waiting == 0:
                break
    return bool(waiting == 0)


@njit(cache=True)
def merge(table: Table, threshold: float) -> bool:
    """Unite the two blocks that gain the most; tell whether there were such."""
    n, blocks = len(table.slots), table.used[0]
    # between[k, m] = Σ_{i in k} G[m, i] is what a union of the two gains.
    between = np.zeros((blocks, blocks))
    for i in range(n):
        row = between[table.place[table.slots[i]]]
        for k in range(blocks):
            row[k] += table.gains[table.order[k], i]
    first, second, gain = -1, -1, threshold
    for k in range(blocks):
        for m in range(k):
            if between[k, m] > gain:
                first, second, gain = table.order[k], table.order[m], between[k, m]
    if first < 0:
        return False
    for i in range(n):
        if table.slots[i] == first:
            move(table, i, second)
    return True


@njit(cache=True)
def split(table: Table, threshold: float) -> bool:
    """Divide a block in two if that gains; tell whether one was.

    A block is divided from its most hostile pair: each member joins the one it prefers, then
    members change sides while that gains.
    """
    weights = table.weights
    for k in range(table.used[0]):
        block = np.flatnonzero(table.slots == table.order[k])
        size = len(block)
        if size < 3:  # a pair that should part is parted by relocation
            continue
        # The most hostile pair become the cores of the two sides.
        one, two, worst = 0, 0, 0.0
        for p in range(size):
            for q in range(p):
                if weights[block[p], block[q]] < worst:
                    one, two, worst = p, q, weights[block[p], block[q]]
        if one == two:
            continue
        side = np.zeros(size, np.int64)
        pull = np.zeros((2, size))
        for p in range(size):
            i = block[p]
            side[p] = 0 if weights[i, block[one]] >= weights[i, block[two]] else 1
        side[one], side[two] = 0, 1
        for p in range(size):
            for q in range(size):
                pull[side[q], p] += weights[block[p], block[q]]
        # pull[s, p] is the weight between member p and side s. Each change of side adds to the
        # weight inside of the sides, so this ends.
        changing = True
        while changing:
            changing = False
            for p in range(size):
                here = side[p]
                if pull[1 - here, p] - pull[here, p] > threshold:
                    side[p] = 1 - here
                    changing = True
                    for q in range(size):
                        w = weights[block[p], block[q]]
                        pull[here, q] -= w
                        pull[1 - here, q] += w
        # A split gains what the pairs across it cost: −cut.
        cut = 0.0
        for p in range(size):
            if side[p] == 0:
                cut += pull[1, p]
        if cut < -threshold:
            empty = table.order[table.used[0]]
            for p in range(size):
                if side[p] == 1:
                    move(table, block[p], empty)
            return True
    return False


@njit(cache=True)
def swap(table: Table, threshold: float) -> bool:
    """Exchange two players of different blocks if that gains; tell whether two were."""
    n = len(table.slots)
    for i in range(n):
        a = table.slots[i]
        for j in range(i):
            b = table.slots[j]
            if a == b:
                continue
            # Both moves at once. w_ij is in both sums of gains, though the two never meet: hence −2
            # w_ij.
            change = (
                table.gains[b, i]
                - table.gains[a, i]
                + table.gains[a, j]
                - table.gains[b, j]
                - 2.0 * table.weights[i, j]
            )
            if change > threshold:
                move(table, i, b)
                move(table, j, a)
                return True
    return False


@njit(cache=True)
def perturb(table: Table, strength: int, state: RandomState) -> None:
    """Disturb the partition: unite two random blocks, dissolve one, or scatter some players.

    `strength` players are scattered, each to the block of another random player or out on its own.
    """
    n = len(table.slots)
    kind = below(state, 8)
    if kind < 2:
        # Blocks of random players, so that large ones are chosen more often than lone players.
        a, b = table.slots[below(state, n)], table.slots[below(state, n)]
        for i in range(n):
            if table.slots[i] == a and (kind == 1 or a != b):
                scatter = table.slots[below(state, n)] if kind == 1 else b
                if scatter != a:
                    move(table, i, scatter)
        return
    for _ in range(strength):
        i = below(state, n)
        b = table.slots[below(state, n)]
        if uniform(state) < 0.2 and table.used[0] < n:
            b = table.order[table.used[0]]
        if b != table.slots[i]:
            move(table, i, b)


@njit(cache=True)
def rounding_threshold(weights: FloatMatrix) -> float:
    """Return a gain that rounding cannot feign: 1e-12 of the largest sum of |weights| in a row."""
    largest = 0.0
    for i in range(len(weights)):
        total = 0.0
        for j in range(len(weights)):
            total += abs(weights[i, j])
        largest = max(largest, total)
    return 1e-12 * largest


class Home(NamedTuple):
    """Where an iterated search goes back to: slots, their value, and failures since the last."""

    slots: IntVector
    value: FloatVector
    failures: IntVector


@njit(cache=True)
def settle(table: Table, threshold: float, state: RandomState) -> Home:
    """Descend, and call the place where that ends home."""
    descend(table, threshold, state)
    return Home(table.slots.copy(), table.value.copy(), np.zeros(1, np.int64))


@njit(cache=True)
def wander(table: Table, home: Home, rounds: int, threshold: float, state: RandomState) -> None:
    """Disturb and descend `rounds` times, always from the best partition of late.

    A round that ends lower is undone; after 50 in a row the search goes on from where it is.
    """
    n = len(table.slots)
    for _ in range(rounds):
        perturb(table, 2 + below(state, max(2, n // 8)), state)
        descend(table, threshold, state)
        # A round that is as good as home becomes home, also if not better: plateaus can be crossed.
        tired = home.failures[0] >= 50
        if table.value[0] >= home.value[0] or tired:
            better = table.value[0] > home.value[0]
            home.failures[0] = 0 if better or tired else home.failures[0] + 1
            copy_into(home.slots, table.slots)
            home.value[0] = table.value[0]
        else:
            home.failures[0] += 1
            go_back(table, home.slots)


@njit(cache=True)
def iterate(table: Table, rounds: int, threshold: float, state: RandomState) -> None:
    """Settle, then wander."""
    wander(table, settle(table, threshold, state), rounds, threshold, state)


@njit(cache=True)
def go_back(table: Table, home: IntVector) -> None:
    """Make the partition `home`, in slots of the table, the present one."""
    for i in range(len(home)):
        if table.slots[i] != home[i]:
            move(table, i, home[i])
