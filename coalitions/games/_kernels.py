"""The built-in games as compiled code; see `coalitions.game.Kernel`."""

from __future__ import annotations

from coalitions.compiling import njit
from coalitions.game import FloatVector


@njit(cache=True)
def add_voting(state: FloatVector, player: int, parameters: FloatVector) -> float:
    """Add the player's votes; parameters: quota, votes."""
    state[0] += parameters[1 + player]
    return 1.0 if state[0] >= parameters[0] else 0.0


@njit(cache=True)
def add_airport(state: FloatVector, player: int, parameters: FloatVector) -> float:
    """Lengthen the runway if need be; parameters: costs."""
    state[0] = max(state[0], parameters[player])
    return float(state[0])


@njit(cache=True)
def add_unanimity(state: FloatVector, player: int, parameters: FloatVector) -> float:
    """Complete groups; parameters: n, number of memberships, starts, groups, dividends.

    The state is the value, then the number of members each group still misses.
    """
    n, n_memberships = int(parameters[0]), int(parameters[1])
    groups = 2 + n + 1
    for k in range(int(parameters[2 + player]), int(parameters[3 + player])):
        group = int(parameters[groups + k])
        state[1 + group] -= 1.0
        if state[1 + group] == 0.0:
            state[0] += parameters[groups + n_memberships + group]
    return float(state[0])


@njit(cache=True)
def add_induced_subgraph(state: FloatVector, player: int, parameters: FloatVector) -> float:
    """Bring in the synergies with the members; parameters: the matrix, row by row.

    The state is the value, then what each player would bring.
    """
    n = len(state) - 1
    state[0] += state[1 + player]
    for other in range(n):
        state[1 + other] += parameters[player * n + other]
    return float(state[0])
