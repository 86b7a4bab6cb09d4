"""Interaction indices from all values that they depend on."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from coalitions.game import table_of
from coalitions.joint.coalitions import joined, listed
from coalitions.joint.sums import counting_sizes, weighted_sums
from coalitions.joint.table import indices_of_table
from coalitions.sampling.estimator import INTERACTION_ESTIMATORS, InteractionEstimator, Sampled
from coalitions.sampling.evaluator import Evaluator


@INTERACTION_ESTIMATORS.register("exact")
@dataclass(frozen=True)
class Exact(InteractionEstimator):
    """The index itself: all 2^n coalitions, or those of the sizes that count."""

    def minimum_budget(self, n_players: int) -> int:
        """Return the number of coalitions that the index depends on."""
        return sum(comb(n_players, size) for size in counting_sizes(self.index, n_players))

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return the indices; the seed plays no part."""
        del seed
        n, index = game.n_players, self.index
        sizes = counting_sizes(index, n)
        if len(sizes) > n or table_of(game.game) is not None:
            values = joined(indices_of_table(game.table(), index))
            return Sampled(values, np.zeros(len(values)), evaluations=1 << n)
        rows = np.zeros((self.minimum_budget(n), n), np.bool_)
        first = 0
        for size in sizes:
            members = listed(n, size)
            np.put_along_axis(rows[first : first + len(members)], members, True, axis=1)
            first += len(members)
        worth = game(rows)
        masses = index.masses(n)
        parts = {s: weighted_sums(masses[s], listed(n, s), rows, worth) for s in index.sizes()}
        values = joined(parts)
        return Sampled(values, np.zeros(len(values)))
