r"""An exact search for small or well-separated graphs: Russian dolls.

Players have an order. :math:`V_k` is the value of the best structure of the players k … n−1 alone.
It is found for k = n−1 down to 0; each search uses what the smaller ones found [Verfaillie1996]_.
A search puts players into blocks one after the other. With the blocks of the players before k
chosen, worth v, and :math:`g_{bj}` what player j gains in block b, nothing that follows is worth
more than

.. math:: v + V_k + \sum_{j \ge k} \max(0, \max_b g_{bj}).

All numbers are integers, so whatever ends within its steps is proven.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coalitions.compiling.kernel import copy_into, njit
from coalitions.game import IntMatrix, IntVector


@njit(cache=True)
def best_of_dolls(
    weights: IntMatrix, start: IntVector, floor: int, most_steps: int
) -> tuple[bool, IntVector]:
    """Return whether the search came to its end, and labels.

    If it did, the labels are of a best structure, unless none is worth more than `floor`.

    Parameters
    ----------
    weights
        Synergies in the order in which players are placed [n, n], with a zero diagonal.
    start
        Labels of a structure, 0 … n−1.
    floor
        Structures of this value or less are of no interest.
    most_steps
        The search is given up after this many changes of a bound.
    """
    n = len(weights)
    best_value = np.zeros(n + 1, np.int64)
    best = np.zeros(n, np.int64)
    gains = np.zeros((n + 1, n), np.int64)
    caps = np.zeros((n + 1, n), np.int64)
    block = np.zeros(n, np.int64)
    blocks = np.zeros(n + 1, np.int64)
    value = np.zeros(n + 1, np.int64)
    choices = np.zeros((n + 1, n + 1), np.int64)
    turn = np.zeros(n + 1, np.int64)
    steps = 0
    given = np.int64(0)
    for first in range(n - 1, -1, -1):
        known = _extended(weights, best, first, best_value[first + 1])
        for j in range(first + 1, n):
            if start[first] == start[j]:
                given += weights[first, j]
        if given > known:
            known = given
            copy_into(best[first:], start[first:])
        if first == 0:
            known = max(known, floor)
        depth = first
        blocks[first] = 0
        turn[first] = 0
        choices[first, 0] = 0
        caps[first] = 0
        while True:
            b = block[depth]
            if turn[depth] > 0 and depth + 1 < n:
                # Take back the choice made here last.
                for j in range(depth + 1, n):
                    gains[b, j] -= weights[depth, j]
            if turn[depth] > blocks[depth]:
                if depth == first:
                    break
                depth -= 1
                continue
            b = choices[depth, turn[depth]]
            turn[depth] += 1
            block[depth] = b
            worth = value[depth] + gains[b, depth]
            new = depth + 1
            if new == n:
                if worth > known:
                    known = worth
                    copy_into(best[first:], block[first:])
                continue
            bound = worth + best_value[new]
            used = max(blocks[depth], b + 1)
            for j in range(new, n):
                w = weights[depth, j]
                old = gains[b, j]
                gains[b, j] = old + w
                cap = caps[depth, j]
                if w > 0:
                    cap = max(cap, old + w)
                elif w < 0 and old == cap and cap > 0:
                    cap = np.int64(0)
                    for c in range(used):
                        cap = max(cap, gains[c, j])
                caps[new, j] = cap
                bound += cap
            steps += n - new
            if bound <= known:
                continue
            if steps > most_steps:
                return False, best
            depth = new
            value[depth] = worth
            blocks[depth] = used
            turn[depth] = 0
            # The most attractive block first; the empty one is number `used`.
            for c in range(used + 1):
                p = c
                while p > 0 and gains[choices[depth, p - 1], depth] < gains[c, depth]:
                    choices[depth, p] = choices[depth, p - 1]
                    p -= 1
                choices[depth, p] = c
        best_value[first] = known
    return True, best


@njit(cache=True)
def _extended(weights: IntMatrix, best: IntVector, first: int, value: int) -> Any:  # noqa: ANN401 (int64)
    """Put player `first` where it gains the most in the best structure of those after it."""
    n = len(weights)
    gain = np.zeros(n, np.int64)
    size = np.zeros(n, np.int64)
    for j in range(first + 1, n):
        gain[best[j]] += weights[first, j]
        size[best[j]] += 1
    choice = 0
    while size[choice] > 0:
        choice += 1
    for b in range(n):
        if gain[b] > gain[choice]:
            choice = b
    best[first] = choice
    return value + gain[choice]
