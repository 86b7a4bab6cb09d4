r"""Kernels for local search under demands on coalitions: sizes, counts, loads, roles, pairs apart.

A structure need not meet the demands on the way. How far it is from that is one whole number, the
*strain*: players too few or too many, loads too high, roles nobody has, pairs that should be apart
and coalitions that are missing. Annealing maximises

.. math:: \text{value} - \text{penalty} \cdot \text{strain},

a descent lowers the strain first and then raises the value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coalitions.compiling import copy_into, njit
from coalitions.game import FloatMatrix, FloatVector, IntMatrix, IntVector
from solvers.heuristics.random_numbers import RandomState, two_below, uniform

# A literal −1 or 1 would be a type of its own, and every kernel compiled for each of them.
NOBODY: Any = np.int64(-1)
NOTHING: Any = np.int64(0)
ONE_MORE: Any = np.int64(1)
ONE_LESS: Any = np.int64(-1)


class SizedRules(NamedTuple):
    """The demands as arrays.

    Attributes
    ----------
    players, loads
        Players behind each node, and its load.
    bounds
        Fewest and most players in a coalition, fewest coalitions, highest load.
    holds
        Whether node i has role r [n, roles], 0 or 1.
    first, rivals
        Nodes that must not be with node i are ``rivals[first[i]:first[i + 1]]``.
    """

    players: IntVector
    loads: IntVector
    bounds: IntVector
    holds: IntMatrix
    first: IntVector
    rivals: IntVector


class Teams(NamedTuple):
    """A partition into slots 0 … k−1 under change, and the best that met all demands.

    Attributes
    ----------
    slots
        The slot of each node.
    before, after, entry
        The nodes of a slot form a ring: who stands on either side of a node, and one of each slot.
    gains
        G[c, i] = Σ_{j ∈ c} w_ij.
    nodes, players, loads, roles, strains
        For each slot: its nodes, its players, its load, how many have each role [k, roles], and
        how far it is from what is demanded.
    used, strain, value
        Slots in use, strain in all and value now (one number each).
    best, best_slots, met
        Highest value of a structure that met all demands, that structure, and whether there is one.
    """

    slots: IntVector
    before: IntVector
    after: IntVector
    entry: IntVector
    gains: FloatMatrix
    nodes: IntVector
    players: IntVector
    loads: IntVector
    roles: IntMatrix
    strains: IntVector
    used: IntVector
    strain: IntVector
    value: FloatVector
    best: FloatVector
    best_slots: IntVector
    met: IntVector


@njit(cache=True)
def strain_of(rules: SizedRules, teams: Teams, c: int, out: int, into: int) -> int:
    """Return the strain of slot c if node `out` left it and node `into` came; −1 is nobody."""
    nodes, players, load = teams.nodes[c], teams.players[c], teams.loads[c]
    if out >= 0:
        nodes, players, load = nodes - 1, players - rules.players[out], load - rules.loads[out]
    if into >= 0:
        nodes, players, load = nodes + 1, players + rules.players[into], load + rules.loads[into]
    if nodes == 0:
        return 0  # whether a coalition is missing is counted once for all, not for each slot
    strain: int = max(0, rules.bounds[0] - players) + max(0, players - rules.bounds[1])
    # Loads count in quarters of what a coalition can bear, so that a little too much is one player.
    if load > rules.bounds[3]:
        strain += 1 + 4 * (load - rules.bounds[3]) // max(1, rules.bounds[3])
    for r in range(rules.holds.shape[1]):
        there = teams.roles[c, r]
        if out >= 0:
            there -= rules.holds[out, r]
        if into >= 0:
            there += rules.holds[into, r]
        if there == 0:
            strain += 1
    return strain


@njit(cache=True)
def _rivals_in(rules: SizedRules, teams: Teams, i: int, c: int, but: int) -> int:
    """Return how many rivals of node i are in slot c, not counting node `but`."""
    count = 0
    for k in range(rules.first[i], rules.first[i + 1]):
        j = rules.rivals[k]
        if teams.slots[j] == c and j != but:
            count += 1
    return count


@njit(cache=True)
def _strain_of_exchange(rules: SizedRules, teams: Teams, i: int, j: int, b: int) -> int:
    """Return the change of strain if i goes to slot b and j, if it is not −1, comes from there."""
    a = teams.slots[i]
    change: int = strain_of(rules, teams, a, i, j) - teams.strains[a]
    change += strain_of(rules, teams, b, j, i) - teams.strains[b]
    change += _rivals_in(rules, teams, i, b, j) - _rivals_in(rules, teams, i, a, j)
    # Only a move changes how many slots are in use; an exchange does not.
    if j >= 0:
        change += _rivals_in(rules, teams, j, a, i) - _rivals_in(rules, teams, j, b, i)
    else:
        used = teams.used[0]
        then = used - (teams.nodes[a] == 1) + (teams.nodes[b] == 0)
        change += max(0, rules.bounds[2] - then) - max(0, rules.bounds[2] - used)
    return change


@njit(cache=True)
def _count(
    rules: SizedRules, teams: Teams, weights: FloatMatrix, i: int, c: int, sign: int
) -> None:
    """Count node i in slot c, or no longer, with sign −1."""
    teams.nodes[c] += sign
    teams.players[c] += sign * rules.players[i]
    teams.loads[c] += sign * rules.loads[i]
    for r in range(rules.holds.shape[1]):
        teams.roles[c, r] += sign * rules.holds[i, r]
    teams.strains[c] = strain_of(rules, teams, c, NOBODY, NOBODY)
    row, into = weights[i], teams.gains[c]
    if teams.nodes[c] == 0:
        for j in range(len(row)):
            into[j] = 0.0  # an empty slot gains nothing, exactly
    else:
        for j in range(len(row)):
            into[j] += sign * row[j]


@njit(cache=True)
def _leave(rules: SizedRules, teams: Teams, weights: FloatMatrix, i: int) -> None:
    c, before, after = teams.slots[i], teams.before[i], teams.after[i]
    teams.after[before], teams.before[after] = after, before
    teams.entry[c] = before
    _count(rules, teams, weights, i, c, ONE_LESS)
    if teams.nodes[c] == 0:
        teams.used[0] -= 1


@njit(cache=True)
def _enter(rules: SizedRules, teams: Teams, weights: FloatMatrix, i: int, c: int) -> None:
    before = after = i
    if teams.nodes[c] > 0:
        before = teams.entry[c]
        after = teams.after[before]
    else:
        teams.used[0] += 1
    teams.before[i], teams.after[i] = before, after
    teams.after[before], teams.before[after] = i, i
    teams.entry[c], teams.slots[i] = i, c
    _count(rules, teams, weights, i, c, ONE_MORE)


@njit(cache=True)
def _exchange(
    rules: SizedRules, teams: Teams, weights: FloatMatrix, i: int, j: int, b: int, strain: int
) -> None:
    """Put node i into slot b and, if it is not −1, node j from there into i's slot."""
    a = teams.slots[i]
    teams.value[0] += teams.gains[b, i] - teams.gains[a, i]
    _leave(rules, teams, weights, i)
    if j >= 0:
        # What j finds in a is what i left there, so the pair's weight is counted once below.
        teams.value[0] += teams.gains[a, j] - teams.gains[b, j] - weights[i, j]
        _leave(rules, teams, weights, j)
        _enter(rules, teams, weights, j, a)
    _enter(rules, teams, weights, i, b)
    teams.strain[0] += strain


def restart(rules: SizedRules, teams: Teams, weights: FloatMatrix, labels: IntVector) -> None:
    """Make `labels`, which are slots, the structure, computed afresh; the best so far stays."""
    for numbers in (teams.gains, teams.nodes, teams.players, teams.loads, teams.roles):
        numbers.fill(0)
    teams.strains.fill(0)
    teams.used.fill(0)
    fill(rules, teams, weights, labels)


@njit(cache=True)
def fill(rules: SizedRules, teams: Teams, weights: FloatMatrix, labels: IntVector) -> None:
    """Put everybody into empty slots."""
    for i in range(len(labels)):
        _enter(rules, teams, weights, i, labels[i])
    total, strain, rivals = 0.0, max(0, rules.bounds[2] - teams.used[0]), 0
    for c in range(len(teams.nodes)):
        strain += teams.strains[c]
    for i in range(len(labels)):
        total += teams.gains[labels[i], i]
        rivals += _rivals_in(rules, teams, i, labels[i], NOBODY)
    teams.value[0] = total / 2.0
    teams.strain[0] = strain + rivals // 2
    _keep_if_best(teams, 0.0)


@njit(cache=True)
def _keep_if_best(teams: Teams, threshold: float) -> None:
    if teams.strain[0] == 0 and (not teams.met[0] or teams.value[0] > teams.best[0] + threshold):
        teams.met[0] = 1
        teams.best[0] = teams.value[0]
        copy_into(teams.best_slots, teams.slots)


@njit(cache=True)
def anneal(
    rules: SizedRules,
    teams: Teams,
    weights: FloatMatrix,
    friends: IntMatrix,
    temperature: float,
    penalty: float,
    proposals: int,
    threshold: float,
    state: RandomState,
) -> None:
    """Make Metropolis steps at one temperature: a node moves, or two change places.

    A random node i goes to the slot of one of its `friends` [n, m], those it gains most with, and
    by turns takes somebody's place there, or to the slot of anybody, or to any slot.
    """
    n, k, m = len(teams.slots), len(teams.nodes), friends.shape[1]
    hopeless = -40.0 * temperature
    for _ in range(proposals):
        # Of 16 proposals 11 go to a friend's slot (6 of them for somebody's place there), 4 to a
        # random node's (2 for its place), 1 to any slot, an empty one among them.
        i, kind = two_below(state, n, 16)
        a, partner = teams.slots[i], NOBODY
        if kind < 11:
            choice, steps = two_below(state, m, 8)
            friend = friends[i, choice]
            b = teams.slots[friend]
            if a == b:
                continue
            # Not the friend itself: some steps around the ring from it.
            if kind < 6 and teams.nodes[b] > 1:
                partner = friend
                for _ in range(1 + steps % (teams.nodes[b] - 1)):
                    partner = teams.after[partner]
        elif kind < 15:
            _, j = two_below(state, m, n)
            b = teams.slots[j]
            if kind < 13:
                partner = j
        else:
            _, b = two_below(state, m, k)
        if a == b or (teams.nodes[b] == 0 and teams.nodes[a] == 1):
            continue
        # In b and a the gains still count the pair (i, partner), which is parted before and after.
        gain = teams.gains[b, i] - teams.gains[a, i]
        if partner >= 0:
            gain += teams.gains[a, partner] - teams.gains[b, partner] - 2.0 * weights[i, partner]
        # Strain cannot fall below zero, so here it cannot help; saves the count of rivals.
        if gain < hopeless and teams.strain[0] == 0:
            continue
        strain = _strain_of_exchange(rules, teams, i, partner, b)
        change = gain - penalty * strain
        if change < 0.0 and (change < hopeless or uniform(state) >= np.exp(change / temperature)):
            continue
        _exchange(rules, teams, weights, i, partner, b, strain)
    _keep_if_best(teams, threshold)


@njit(cache=True)
def settle(
    rules: SizedRules, teams: Teams, weights: FloatMatrix, threshold: float, turn: IntVector
) -> int:
    """Let each node in turn move, or change places, as is best; return how many did.

    Best is what lowers the strain most, then what raises the value most.
    """
    n, k = len(teams.slots), len(teams.nodes)
    changes = 0
    for place in range(len(turn)):
        i = turn[place]
        a = teams.slots[i]
        partner, target, relief, most = NOBODY, NOBODY, NOTHING, threshold
        emptied = teams.nodes[a] == 1
        # Slots first, as moves; then nodes, as partners. All empty slots are the same.
        for choice in range(k + n):
            if choice < k:
                b, j = choice, NOBODY
                if teams.nodes[b] == 0:
                    if emptied:
                        continue
                    emptied = True
            else:
                j = choice - k
                b = teams.slots[j]
            if a == b:
                continue
            gain = teams.gains[b, i] - teams.gains[a, i]
            if j >= 0:
                gain += teams.gains[a, j] - teams.gains[b, j] - 2.0 * weights[i, j]
            if teams.strain[0] == 0 and gain <= most:
                continue  # nothing is to be relieved, and the sum tells that it does not pay
            strain = _strain_of_exchange(rules, teams, i, j, b)
            if strain < relief or (strain == relief and gain > most):
                partner, target, relief, most = j, b, strain, gain
        if target >= 0:
            _exchange(rules, teams, weights, i, partner, target, relief)
            changes += 1
    _keep_if_best(teams, threshold)
    return changes
