"""How fast pFedSV finds the relevant clients: a theorem for one order of downloads, not for all.

Client i downloads k models a round and values them by their Shapley values. With m ≥ 1 relevant
clients among n, all of them are found within ⌈(n−m−1)/k⌉ + ⌈m/k⌉ rounds if clients that were
never scored come first (``scan``). The paper orders by score alone (``top-k``): clients with a
positive score keep their slots, and fewer are left to explore.
"""

from __future__ import annotations

import numpy as np
import pytest

from coalitions import FunctionGame, shapley

N, RELEVANT, K = 20, 4, 5
RUNS = 100


def bound(n, m, k):
    return -(-(n - m - 1) // k) + -(-m // k)


def scores_of(downloads, merit):
    """Return the Shapley values of client 0 and its downloads in their game.

    The value of a coalition saturates in the merits of its members, as accuracy does; a relevant
    client has a positive marginal in it and an irrelevant one a negative.
    """
    members = np.array([0, *downloads])

    def accuracy(rows):
        return np.tanh(rows.astype(float) @ merit[members])

    return shapley(FunctionGame(accuracy, len(members))).values[1:]


def rounds_to_find_all(order, rng, n=N, m=RELEVANT, k=K):
    """Play client 0's rounds until every relevant client has been scored."""
    merit = np.full(n, -0.05)
    merit[0] = 0.3
    relevant = 1 + rng.permutation(n - 1)[:m]
    merit[relevant] = 0.2
    score, scored = np.zeros(n), np.zeros(n, bool)
    others = np.arange(1, n)
    for t in range(1, 10 * n):
        tie = rng.random(n)
        first = ~scored[others] if order == "scan" else np.zeros(n - 1, bool)
        best = np.lexsort((tie[others], -score[others], ~first))
        downloads = others[best[:k]]
        found = scores_of(downloads, merit)
        assert ((found > 0) == (merit[downloads] > 0)).all()
        score[downloads] = np.where(scored[downloads], 0.5 * score[downloads] + 0.5 * found, found)
        scored[downloads] = True
        if scored[relevant].all():
            return t
    raise AssertionError("not all relevant clients were found")


@pytest.mark.parametrize(("n", "m", "k"), [(N, RELEVANT, K), (20, 1, 5), (12, 6, 3), (9, 2, 4)])
def test_scan_keeps_the_bound(n, m, k):
    for seed in range(RUNS if n == N else 20):
        rng = np.random.default_rng(seed)
        assert rounds_to_find_all("scan", rng, n, m, k) <= bound(n, m, k)


def test_top_k_breaks_the_bound_in_most_runs():
    limit = bound(N, RELEVANT, K)
    assert limit == 4
    late = [rounds_to_find_all("top-k", np.random.default_rng(s)) > limit for s in range(RUNS)]
    assert np.mean(late) > 0.5
