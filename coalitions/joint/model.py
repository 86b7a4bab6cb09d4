"""Models of the odd or the even part of a game, and the interaction indices of simple ones.

A game is the sum of its odd part ½[v(S) − v(N∖S)] and its even part ½[v(S) + v(N∖S)]. A pair of
complements tells one value of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from coalitions.game import FloatMatrix, FloatVector, IntMatrix
from coalitions.joint.coalitions import Parts, rank_of
from coalitions.joint.index import Index
from coalitions.surrogates.pool import Pool


class Model(NamedTuple):
    """A model of one part of a game, fitted to a pool.

    Attributes
    ----------
    indices
        The model's own interaction indices.
    fitted
        The model at the coalitions of the pool [m].
    held_out
        The same, each by a fit that has not seen its pair [m].
    """

    indices: Parts
    fitted: FloatVector
    held_out: FloatVector


@dataclass(frozen=True, eq=False)
class Question:
    """An index that is asked of a pool.

    Attributes
    ----------
    index, masses
        The index, and its weights by the number of others.
    pool
        The evaluated pairs.
    importance
        How much an error at a pair of each size 0 … n/2 counts, squared.
    """

    index: Index
    masses: dict[int, FloatVector]
    pool: Pool
    importance: FloatVector

    def target(self, parity: int) -> FloatVector:
        """Return the odd (1) or the even part (0) at the coalitions of the pool."""
        pool = self.pool
        return pool.odd if parity else (pool.inside + pool.outside) / 2

    @property
    def pair_weights(self) -> FloatVector:
        """The weight of each pair of the pool in a fit by least squares."""
        pool = self.pool
        return self.importance[pool.sizes] / pool.taken[pool.sizes]


Fit = Callable[[Question], tuple[list[Model], list[Model]]]
"""Fits models of the even and of the odd part; none if the pool is too small for them."""


def indices_of_terms(
    terms: IntMatrix, beta: FloatVector, masses: dict[int, FloatVector], n: int
) -> Parts:
    r"""Return the indices of :math:`\sum_T \beta_T \prod_{i \in T} z_i`, with signs z.

    The joint contribution of S ⊆ T is :math:`2^{|S|}` times the product of the other signs, whose
    mean over all R of a size is known. Terms are rows of players, filled up with n.
    """
    degree = (terms < n).sum(axis=1)
    parts = {}
    for size, mass in masses.items():
        total = np.zeros(comb(n, size))
        for d in range(size, terms.shape[1] + 1):
            of_degree = degree == d
            if not of_degree.any():
                continue
            players = np.sort(terms[of_degree], axis=1)[:, :d]  # n stands last
            each = beta[of_degree] * 2.0**size * (mean_of_signs(d - size, n - size) @ mass)
            for places in combinations(range(d), size):
                ranks = rank_of(players[:, list(places)], n)
                total += np.bincount(ranks, each, minlength=len(total))
        parts[size] = total
    return parts


def mean_of_signs(count: int, n_others: int) -> FloatVector:
    """Return the mean product of some signs over all R of r others, r = 0 … n_others.

    All zero if there are not so many others.
    """
    means = np.zeros(n_others + 1)
    if count > n_others:
        return means
    for r in range(n_others + 1):
        ways = sum(
            (-1) ** (count - inside) * comb(count, inside) * comb(n_others - count, r - inside)
            for inside in range(max(0, r - n_others + count), min(count, r) + 1)
        )
        means[r] = ways / comb(n_others, r)
    return means


def indices_of_sizes(
    by_size: FloatMatrix, masses: dict[int, FloatVector]
) -> dict[int, FloatMatrix]:
    """Return the index that all coalitions of a size have in games of numbers alone.

    `by_size` [n + 1, …] has the value of each number of players, for one game a column.
    """
    return {
        size: np.einsum("r,r...->...", mass, np.diff(by_size, size, axis=0))
        for size, mass in masses.items()
    }
