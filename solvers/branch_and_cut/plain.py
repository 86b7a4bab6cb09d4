"""Small problems in plain Python: the same decisions as the compiled kernels, without a compiler.

To solve a dozen players takes a millisecond, but to import a compiler a second, and to run it ten.
So the integer searches exist twice, step for step the same: whichever runs, the answer is the same.
`solvers.branch_and_cut.partition_problem.is_plain` says when these run.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coalitions.game import BoolMatrix, BoolVector, IntMatrix, IntVector

STEPS_BETWEEN_GLANCES = 50_000
"""Steps between two looks at the clock: a fiftieth of a second."""


def plain_russian_dolls(
    weights: IntMatrix, floor: int, most_steps: int, expired: Callable[[], bool]
) -> tuple[bool, IntVector, int]:
    """Return what the kernel `russian_dolls` returns for players in order, and the steps it took.

    When time has `expired`, the labels are of the best structure so far, the rest put where they
    gain most.
    """
    w = weights.tolist()
    n = len(w)
    best_value = [0] * (n + 1)
    best = [0] * n
    gains = [[0] * n for _ in range(n + 1)]
    caps = [[0] * n for _ in range(n + 1)]
    choices = [[0] * (n + 1) for _ in range(n + 1)]
    block = [0] * n
    blocks, value, turn = [0] * (n + 1), [0] * (n + 1), [0] * (n + 1)
    steps, glance = 0, STEPS_BETWEEN_GLANCES
    for first in range(n - 1, -1, -1):
        known = _extend(w, best, first, best_value[first + 1])
        if first == 0:
            known = max(known, floor)
        depth = first
        blocks[first] = turn[first] = choices[first][0] = 0
        caps[first] = [0] * n
        while True:
            row = w[depth]
            if turn[depth] > 0:
                # Take back the choice made here last.
                into = gains[block[depth]]
                for j in range(depth + 1, n):
                    into[j] -= row[j]
            if turn[depth] > blocks[depth]:
                if depth == first:
                    break
                depth -= 1
                continue
            b = choices[depth][turn[depth]]
            turn[depth] += 1
            block[depth] = b
            into = gains[b]
            worth = value[depth] + into[depth]
            new = depth + 1
            if new == n:
                if worth > known:
                    known = worth
                    best[first:] = block[first:]
                continue
            bound = worth + best_value[new]
            used = max(blocks[depth], b + 1)
            old_caps, new_caps = caps[depth], caps[new]
            for j in range(new, n):
                gain, old, cap = row[j], into[j], old_caps[j]
                into[j] = now = old + gain
                if gain > 0:
                    if now > cap:
                        cap = now
                elif gain < 0 and old == cap and cap > 0:
                    cap = 0
                    for c in range(used):
                        if gains[c][j] > cap:
                            cap = gains[c][j]
                new_caps[j] = cap
                bound += cap
            steps += n - new
            if bound <= known:
                continue
            if steps > most_steps:
                return False, np.array(best), steps
            if steps > glance:
                glance += STEPS_BETWEEN_GLANCES
                if expired():
                    for player in range(first - 1, -1, -1):
                        _extend(w, best, player, 0)
                    return False, np.array(best), steps
            depth = new
            value[depth], blocks[depth], turn[depth] = worth, used, 0
            # The most attractive block first; the empty one is number `used`.
            ranked = choices[depth]
            for c in range(used + 1):
                p = c
                while p > 0 and gains[ranked[p - 1]][depth] < gains[c][depth]:
                    ranked[p] = ranked[p - 1]
                    p -= 1
                ranked[p] = c
        best_value[first] = known
    return True, np.array(best), steps


def _extend(weights: list[list[int]], best: list[int], first: int, value: int) -> int:
    """Put player `first` where it gains the most in the best structure of those after it."""
    n = len(weights)
    gain, size = [0] * n, [0] * n
    for j in range(first + 1, n):
        gain[best[j]] += weights[first][j]
        size[best[j]] += 1
    choice = size.index(0)
    for b in range(n):
        if gain[b] > gain[choice]:
            choice = b
    best[first] = choice
    return value + gain[choice]


def plain_greedy(weights: IntMatrix) -> IntVector:
    """Unite the two blocks that gain the most, until none gain; for those who are out of time."""
    between = weights.copy()
    labels = np.arange(len(weights))
    while between.max() > 0:
        a, b = sorted(divmod(int(between.argmax()), len(between)))
        between[a] += between[b]
        between[a, a] = between[a, b] = 0
        between[:, a] = between[a]
        between[b] = between[:, b] = 0
        labels[labels == b] = a
    return labels


def plain_merges(weights: IntMatrix) -> list[tuple[int, int]]:
    """Return the pairs that passes of `merge_pass` merge, in their order."""
    left = weights.copy()
    n = len(left)
    alive = np.ones(n, np.bool_)
    found: list[tuple[int, int]] = []
    at = 0
    while len(fits := np.flatnonzero(_fitting(left, alive))):
        ahead = fits[fits >= at]  # a pass goes on behind the last pair, then another one begins
        i, j = divmod(int(ahead[0] if len(ahead) else fits[0]), n)
        left[i] += left[j]
        left[i, i] = left[i, j] = 0
        left[:, i] = left[i]
        left[j] = left[:, j] = 0
        alive[j] = False
        found.append((i, j))
        at = i * n + j + 1
    return found


def _fitting(weights: IntMatrix, alive: BoolVector) -> BoolMatrix:
    """Tell which pairs i < j a rule puts together."""
    size = np.abs(weights)
    sums = size.sum(axis=1)
    apart = np.abs(weights[:, None, :] - weights[None, :, :]).sum(axis=2) - 2 * size
    fits: BoolMatrix = (2 * weights >= np.minimum(sums[:, None], sums)) | (2 * weights >= apart)
    fits &= (weights >= 0) & alive & alive[:, None]
    return np.triu(fits, 1)
