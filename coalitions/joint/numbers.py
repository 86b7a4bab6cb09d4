"""A game in which only numbers count."""

from __future__ import annotations

from math import comb

import numpy as np

from coalitions.joint.model import Model, Question, indices_of_sizes


def numbers(asked: Question) -> tuple[list[Model], list[Model]]:
    """Return the games of the mean even and the mean odd part of each size.

    A size borrows from its neighbours as `coalitions.surrogates.equal` has it.
    """
    return [_model(asked, 0)], [_model(asked, 1)]


def _model(asked: Question, parity: int) -> Model:
    pool = asked.pool
    n = pool.n_players
    s = np.arange(n // 2 + 1)
    near = np.exp(-np.abs(s[:, None] - s))
    # The odd part of the smaller of the two is minus that of the larger; for n/2 they are one size.
    flip = np.where(2 * pool.members > n, -1.0, 1.0) if parity else np.ones(len(pool.sizes))
    there = np.where(2 * s == n, 0.0, 1.0) if parity else np.ones(len(s))
    target = asked.target(parity)
    smaller = target * flip
    sums = np.bincount(pool.sizes, smaller, minlength=len(s))
    weighted, weight = near @ sums, near @ pool.taken
    level = there * weighted / weight
    level[0] = smaller[0]
    sign = flip * there[pool.sizes]
    fitted = flip * level[pool.sizes]
    held_out = sign * (weighted[pool.sizes] - smaller) / np.maximum(1e-9, weight[pool.sizes] - 1)
    held_out[0] = fitted[0] = target[0]
    other = level[: (n + 1) // 2][::-1] * (-1.0 if parity else 1.0)
    same = indices_of_sizes(np.concatenate([level, other]), asked.masses)
    parts = {size: np.full(comb(n, size), float(value)) for size, value in same.items()}
    return Model(parts, fitted, held_out)
