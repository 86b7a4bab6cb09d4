r"""Designs of pairs: a coalition and its complement, spread over the sizes.

The Shapley value depends on the odd part of a game only, ½[v(S) − v(N∖S)]: a pair tells one value
of it. Sizes s and n−s count as one. An even design has the same number of pairs of all sizes, which
is what the leverage scores of the Shapley regression come to [Musco2025]_, until there are no more
coalitions of a size. A design with borders has as many of each size as make the variance of
stratified means least, in proportion to :math:`1/\sqrt{s(n-s)}` [Witter2025]_; but all pairs of one
player and the others as soon as they are affordable, since games of data jump there.
"""

from __future__ import annotations

import heapq
from math import sqrt

import numpy as np

from coalitions.game import BoolMatrix, FloatVector, IntVector
from coalitions.sampling.subsets import distinct_subsets, n_subsets

GOLDEN = 0.6180339887498949

BORDERS_AFTER = 0.6
"""Pairs for each player, after which all pairs of one player and the others are taken."""


def most_pairs(n_players: int) -> int:
    """Return how many pairs there are; that of the empty and the grand coalition is left out."""
    return (1 << (n_players - 1)) - 1


def pairs_per_size(
    n_players: int, n_pairs: int, *, borders: bool = False, shares: FloatVector | None = None
) -> IntVector:
    """Return how many pairs to take of each size s = 0 … n/2; the counts grow with `n_pairs`.

    Size n/2 has one coalition of each pair where the others have two, so it gets half as many.
    With `shares`, sizes get as many as these positive numbers say, as long as there are any left.
    """
    counts = np.zeros(n_players // 2 + 1, np.int64)
    # A size's turn comes again after this long.
    pause = [sqrt(s * (n_players - s)) if borders else 1.0 for s in range(len(counts))]
    if shares is not None:
        pause = (1 / shares).tolist()
    # Sizes take turns; their first turns are spread out, so that few pairs meet all sorts of sizes.
    queue = [((s * GOLDEN) % 1.0 * pause[s], s) for s in range(1, len(counts))]
    heapq.heapify(queue)
    for taken in range(min(n_pairs, most_pairs(n_players))):
        if borders and counts[1] < n_players and taken >= BORDERS_AFTER * n_players:
            queue = [(turn, s) for turn, s in queue if s > 1]
            heapq.heapify(queue)
            counts[1] += 1
            continue
        turn, s = queue[0]
        counts[s] += 1
        halved = 2 * s == n_players
        if counts[s] == n_subsets(n_players, s, halved=halved):
            heapq.heappop(queue)
        else:
            heapq.heapreplace(
                queue, (turn + (2.0 if halved and shares is None else 1.0) * pause[s], s)
            )
    return counts


def random_pairs(
    n_players: int,
    n_pairs: int,
    seed: int,
    *,
    borders: bool = False,
    shares: FloatVector | None = None,
) -> BoolMatrix:
    """Return different coalitions S [m, n] with |S| ≤ n/2, no two of them complements.

    Fewer come back if there are not so many. The sets of a smaller design are among those of a
    larger one with the same seed.
    """
    counts = pairs_per_size(n_players, n_pairs, borders=borders, shares=shares)
    streams = np.random.SeedSequence(seed).spawn(len(counts))
    parts = [
        distinct_subsets(
            n_players,
            s,
            int(counts[s]),
            np.random.default_rng(streams[s]),
            halved=2 * s == n_players,
        )
        for s in range(1, len(counts))
        if counts[s]
    ]
    return np.concatenate([np.zeros((0, n_players), np.bool_), *parts])
