"""Kernels: branch and bound for a coalition of a graph that would rather be on its own.

A graph is given by rows of neighbours: those of player i are ``neighbour[start[i]:start[i + 1]]``
with their synergies, the largest first.
"""

from __future__ import annotations

import numpy as np

from coalitions.compiling import njit
from coalitions.game import BoolMatrix, FloatVector, IntVector

UNDECIDED, INSIDE, OUTSIDE = 0, 1, 2


@njit(cache=True)
def _tell_friends(
    start: IntVector,
    neighbour: IntVector,
    weight: FloatVector,
    player: int,
    decision: int,
    sign: float,
    inside: FloatVector,
    hope: FloatVector,
) -> None:
    """Count a player as decided for all neighbours (sign 1), or as undecided again (sign −1)."""
    for e in range(start[player], start[player + 1]):
        k = neighbour[e]
        if weight[e] > 0:
            hope[k] -= sign * weight[e]
        if decision == INSIDE:
            inside[k] += sign * weight[e]


@njit(cache=True)
def blocking_coalition(
    start: IntVector,
    neighbour: IntVector,
    weight: FloatVector,
    payoff: FloatVector,
    tolerance: float,
    strict: bool,
    most_nodes: int,
) -> tuple[int, BoolMatrix]:
    """Return 1 and a coalition in which all gain, 0 if there is none, −1 if out of nodes.

    With `strict`, one member has to gain and nobody to lose. A member whose synergies inside are
    not yet enough needs a further friend: take the best one that is undecided, or rule them out.
    If no member needs any, the coalition blocks. A member who could not get enough even from all
    undecided friends ends the branch.
    """
    n = len(payoff)
    tiny = 1e-3 * tolerance  # what adding and taking back may leave of rounding
    state = np.zeros(n, np.int64)
    inside = np.zeros(n)  # synergies with members
    hope = np.zeros(n)  # positive synergies with undecided players
    need = np.empty(n)  # twice the payoff: a member gets half of their synergies
    member = np.empty(n, np.int64)
    taken = np.empty(n, np.int64)  # decisions, in order
    second = np.zeros(n, np.bool_)  # whether a decision is already the second branch
    nodes = 0
    for root in range(n):
        # Earlier roots are in no blocking coalition; if one member is enough, they may still help.
        for i in range(n):
            state[i] = UNDECIDED if strict or i >= root else OUTSIDE
            inside[i] = 0.0
            need[i] = 2 * payoff[i] + (-2 * tolerance if strict else 2 * tolerance)
        need[root] = 2 * payoff[root] + 2 * tolerance
        for i in range(n):
            hope[i] = 0.0
            for e in range(start[i], start[i + 1]):
                if weight[e] > 0 and state[neighbour[e]] == UNDECIDED:
                    hope[i] += weight[e]
        n_members = 0
        depth = 0
        candidate = root
        branch = INSIDE
        while True:
            nodes += 1
            if nodes > most_nodes:
                return -1, state == INSIDE
            # Decide the candidate.
            taken[depth] = candidate
            second[depth] = branch == OUTSIDE
            depth += 1
            state[candidate] = branch
            _tell_friends(start, neighbour, weight, candidate, branch, 1.0, inside, hope)
            if branch == INSIDE:
                member[n_members] = candidate
                n_members += 1
            # Look for the member who is worst off.
            dead = False
            neediest = -1
            least_slack = np.inf
            for m in range(n_members):
                i = member[m]
                slack = inside[i] + hope[i] - need[i]
                if slack <= -tiny or (slack <= tiny and not (strict and i != root)):
                    dead = True
                    break
                enough = inside[i] > need[i] or (strict and i != root and inside[i] >= need[i])
                if not enough and slack < least_slack:
                    least_slack = slack
                    neediest = i
            if not dead and neediest < 0:
                return 1, state == INSIDE
            candidate = -1
            if not dead:
                for e in range(start[neediest], start[neediest + 1]):
                    if weight[e] <= 0:
                        break
                    if state[neighbour[e]] == UNDECIDED:
                        candidate = neighbour[e]
                        break
            if candidate >= 0:
                branch = INSIDE
                if inside[candidate] + hope[candidate] < need[candidate] - tiny:
                    branch = OUTSIDE  # even all friends together are not enough for them
                continue
            # Take decisions back until one has a second branch.
            while depth > 0:
                depth -= 1
                last = taken[depth]
                if state[last] == INSIDE:
                    n_members -= 1
                _tell_friends(start, neighbour, weight, last, state[last], -1.0, inside, hope)
                state[last] = UNDECIDED
                if not second[depth] and depth > 0:
                    candidate = last
                    break
            if depth == 0:
                break
            branch = OUTSIDE
    return 0, state == INSIDE


@njit(cache=True)
def gaining_coalition(
    start: IntVector,
    neighbour: IntVector,
    weight: FloatVector,
    payoff: FloatVector,
    tolerance: float,
    most_nodes: int,
) -> tuple[int, BoolMatrix]:
    """Return 1 and a coalition worth more than its payoffs, 0 if none is, −1 if out of nodes.

    An undecided player adds at most their synergies with members and half of the positive ones
    with undecided players, less their payoff. If that lifts no coalition over zero, the branch
    ends; else the most promising player is decided.
    """
    n = len(payoff)
    state = np.zeros(n, np.int64)
    inside = np.zeros(n)
    hope = np.zeros(n)
    for i in range(n):
        for e in range(start[i], start[i + 1]):
            if weight[e] > 0:
                hope[i] += weight[e]
    taken = np.empty(n, np.int64)
    second = np.zeros(n, np.bool_)
    depth = 0
    nodes = 0
    gain = 0.0
    while True:
        nodes += 1
        if nodes > most_nodes:
            return -1, state == INSIDE
        if gain > tolerance:
            return 1, state == INSIDE
        bound = gain
        candidate = -1
        best = 0.0
        for i in range(n):
            if state[i] == UNDECIDED:
                promise = inside[i] + 0.5 * hope[i] - payoff[i]
                if promise > 0:
                    bound += promise
                    if promise > best:
                        best = promise
                        candidate = i
        branch = INSIDE
        if candidate < 0 or bound <= tolerance:
            candidate = -1
            while depth > 0:
                depth -= 1
                last = taken[depth]
                if state[last] == INSIDE:
                    gain -= inside[last] - payoff[last]
                _tell_friends(start, neighbour, weight, last, state[last], -1.0, inside, hope)
                state[last] = UNDECIDED
                if not second[depth]:
                    candidate = last
                    break
            if candidate < 0:
                return 0, state == INSIDE
            branch = OUTSIDE
        taken[depth] = candidate
        second[depth] = branch == OUTSIDE
        depth += 1
        state[candidate] = branch
        if branch == INSIDE:
            gain += inside[candidate] - payoff[candidate]
        _tell_friends(start, neighbour, weight, candidate, branch, 1.0, inside, hope)
