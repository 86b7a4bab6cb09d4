"""Random coalitions of a given size: streams that do not depend on how much is taken of them."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from coalitions.game import BoolMatrix

LISTED = 20_000
"""Up to this many coalitions of a size are listed and shuffled; else repeats are thrown away."""

BLOCK = 256
"""Coalitions drawn at a time; fixed, so that a longer sample starts with the shorter one."""


def random_subsets(n_players: int, size: int, count: int, rng: np.random.Generator) -> BoolMatrix:
    """Return independent coalitions of one size, uniform, [count, n]; repeats are possible."""
    rows = np.zeros((count, n_players), np.bool_)
    for start in range(0, count, BLOCK):
        block = rng.random((BLOCK, n_players)).argpartition(size - 1, axis=1)[:, :size]
        part = rows[start : start + BLOCK]
        np.put_along_axis(part, block[: len(part)], True, axis=1)
    return rows


def distinct_subsets(
    n_players: int, size: int, count: int, rng: np.random.Generator, *, halved: bool = False
) -> BoolMatrix:
    """Return different coalitions of one size in random order, [count, n].

    Parameters
    ----------
    n_players, size
        What to choose from, and how many, 1 ≤ size < n.
    count
        How many coalitions; never more than there are.
    rng
        Source of randomness.
    halved
        Take only coalitions with player 0: one of each pair of complements if size is n/2.
    """
    total = n_subsets(n_players, size, halved=halved)
    if total <= LISTED:
        picks = np.array(list(combinations(range(n_players), size)), np.int64)[:total]
        rows = np.zeros((count, n_players), np.bool_)
        np.put_along_axis(rows, picks[rng.permutation(total)[:count]], True, axis=1)
        return rows
    seen: dict[bytes, None] = {}
    found: list[BoolMatrix] = []
    while len(seen) < count:
        block = random_subsets(n_players, size, BLOCK, rng)
        if halved:
            block[~block[:, 0]] ^= True
        for row in block:
            key = row.tobytes()
            if key not in seen:
                seen[key] = None
                found.append(row)
    return np.array(found[:count])


def n_subsets(n_players: int, size: int, *, halved: bool = False) -> int:
    """Return the number of coalitions of a size; with `halved`, of those with player 0."""
    return comb(n_players - 1, size - 1) if halved else comb(n_players, size)
