r"""What more rules for merging players would bring: groups that are left, and time to a proof.

Run from the repository's root::

    python benchmarks/reductions.py [count] [times] [--families NAME …] [--limit 3]

If i and j are apart, with the sets A and B beside them, i could move to j, j to i, or both could
leave and be two. The value changes by

.. math:: w_{ij} - \sum_A w_{ik} + \sum_B w_{ik}, \quad
   w_{ij} + \sum_A w_{jk} - \sum_B w_{jk}, \quad
   w_{ij} - \sum_A w_{ik} - \sum_B w_{jk}.

If a mean with shares :math:`\alpha, \beta, \gamma` is never negative, whatever A and B are, some
best structure has them together: that is so if

.. math:: (\alpha + \beta + \gamma)\, w_{ij} \ge \sum_{k \ne i,j}
   \max(0,\; (\alpha + \gamma) w_{ik} - \beta w_{jk},\; (\beta + \gamma) w_{jk} - \alpha w_{ik}).

The solver has (1, 1, 0), players as good as twins, and (1, 0, 0), a player with one partner that
matters. ``out`` adds (0, 0, 1), a heavy edge with both its ends, as rules for cluster editing have
it; ``mean`` adds (2, 1, 0) and (2, 0, 1) and their mirror images to that. ``clique`` looks in what
``mean`` leaves for sets of players, a player and some of its friends, whose least cut outweighs all
that speaks against them (the almost-clique rule), and counts the players they would merge.

``count`` prints the groups left, ``times`` solves every graph with the solver's own rules and with
those of ``mean``, one after the other; times are CPU-seconds without compilation, and the limit is
one of CPU-seconds. The instances are those of ``../shared/instances`` (or ``--instances FOLDER``).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numba import njit

# This folder comes first on the path, and its files must not hide packages of the same names.
sys.path[:] = [folder for folder in sys.path if Path(folder) != Path(__file__).resolve().parent]

from coalitions import SynergyGraph  # noqa: E402
from coalitions.compiling.clock import ready_seconds  # noqa: E402
from solvers import solve  # noqa: E402
from solvers.branch_and_cut.merges import trimmed  # noqa: E402
from solvers.preparation.components import positive_components, settled  # noqa: E402

SHARED = Path(__file__).resolve().parents[2] / "shared" / "instances"
FAMILIES = ("pace2021_exact", "cplib_clusedit", "cplib_abr", "cplib_mcf", "modularity")
MOST_PLAYERS = 350

SHARES = np.array(
    [(1, 1, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1), (0, 2, 1)]
)
RULES = {"ours": SHARES[:3], "out": SHARES[:4], "mean": SHARES}


@njit
def may_merge(weights, i, j, shares):
    """Tell whether a mean with one of the shares is never negative."""
    one, two = weights[i], weights[j]
    for s in range(len(shares)):
        first, second, out = shares[s]
        left = (first + second + out) * one[j]
        for k in range(len(one)):
            if k not in (i, j):
                beside_i = (first + out) * one[k] - second * two[k]
                beside_j = (second + out) * two[k] - first * one[k]
                left -= max(0, max(beside_i, beside_j))
                if left < 0:
                    break
        if left >= 0:
            return True
    return False


@njit
def merge_pass(weights, alive, shares, pairs):
    """Merge every pair that a rule puts together at its turn; return how many were merged."""
    n, found = len(weights), 0
    for i in range(n):
        for j in range(i + 1, n):
            if weights[i, j] < 0 or not alive[i] or not alive[j]:
                continue
            if not may_merge(weights, i, j, shares):
                continue
            for k in range(n):
                if k not in (i, j):
                    weights[i, k] += weights[j, k]
                    weights[k, i] = weights[i, k]
                weights[j, k] = weights[k, j] = 0
            alive[j] = False
            pairs[found] = i, j
            found += 1
    return found


def merged(weights, shares):
    """Return the pairs that rules merge, in their order, and the weights between what is left."""
    left, alive = weights.copy(), np.ones(len(weights), np.bool_)
    pairs, found = np.empty((len(weights), 2), np.int64), []
    while number := merge_pass(left, alive, shares, pairs):
        found += [(i, j) for i, j in pairs[:number].tolist()]
    return found, left[np.ix_(alive, alive)]


@njit
def least_cut(gains):
    """Return the least weight of a cut of a graph with positive weights (Stoer and Wagner)."""
    gains, n = gains.copy(), len(gains)
    alive, best = np.ones(n, np.bool_), gains.sum()
    for left in range(n, 1, -1):
        pull, used = np.zeros(n, np.int64), ~alive
        before = last = -1
        for _ in range(left):
            before, last = last, -1
            for v in range(n):
                if not used[v] and (last < 0 or pull[v] > pull[last]):
                    last = v
            used[last] = True
            if _ == left - 1:
                best = min(best, pull[last])
            pull += gains[last]
        gains[before] += gains[last]
        gains[:, before] = gains[before]
        gains[before, before] = 0
        alive[last] = False
    return best


def almost_cliques(weights):
    """Return how many groups the almost-clique rule would merge, in sets that do not overlap."""
    gains, losses = np.maximum(weights, 0), np.maximum(-weights, 0)
    taken, count = np.zeros(len(weights), np.bool_), 0
    for player in range(len(weights)):
        members = np.append(player, np.flatnonzero(weights[player] > 0))
        while len(members) > 2:
            inside = gains[np.ix_(members, members)]
            kept = inside.sum(axis=1)
            leaving = gains[members].sum(axis=1) - kept
            against = losses[np.ix_(members, members)]
            price = against.sum() // 2 + leaving.sum()
            if kept.min() >= price and least_cut(inside) >= price:
                if not taken[members].any():
                    taken[members] = True
                    count += len(members) - 1
                break
            # Without the one that fits least; the first stays.
            worth = kept - against.sum(axis=1) - leaving
            members = np.delete(members, 1 + int(np.argmin(worth[1:])))
    return count


def whole(graph):
    """Return the trimmed whole weights of a graph whose weights are whole."""
    i, j, weight = graph.edges
    weights = np.zeros((graph.n_players, graph.n_players), np.int64)
    weights[i, j] = weights[j, i] = weight.astype(np.int64)
    return trimmed(weights)


def count(graphs):
    """Print the groups that rules leave, family by family."""
    print(f"{'family':16} graphs players {' '.join(f'{name:>7}' for name in RULES)}  clique")
    by_family = {}
    for row, graph in graphs:
        sums = by_family.setdefault(row["family"], np.zeros(6, np.int64))
        sums[0] += 1
        for piece in positive_components(graph):
            if settled(piece.graph) is not None:
                continue
            weights = whole(piece.graph)
            left = [merged(weights, shares)[1] for shares in RULES.values()]
            sums[1:] += [len(weights), *map(len, left), almost_cliques(left[-1])]
    for family, (n, players, *groups, cliques) in by_family.items():
        shown = " ".join(f"{number:7}" for number in groups)
        print(f"{family:16} {n:6} {players:7} {shown} {-cliques:7}", flush=True)


def solved(graph, limit):
    """Return CPU-seconds and whether it was proven."""
    graph = SynergyGraph(graph.matrix)  # one that keeps nothing of the last time
    began, waited = time.process_time(), ready_seconds()
    found = solve(graph, time_limit=limit)
    return time.process_time() - began - (ready_seconds() - waited), found.optimal


def times(graphs, limit):
    """Print how long proofs take with the solver's own rules and with more."""
    wider = patch(
        "solvers.branch_and_cut.merges.merges",
        lambda weights, expired=None: merged(weights, SHARES)[0],
    )
    rows = []
    for row, graph in graphs:
        before = solved(graph, limit)
        with wider:
            after = solved(graph, limit)
        rows.append((before, after))
        shown = (f"{spent:7.3f} {'proven' if proven else 'open':6}" for spent, proven in rows[-1])
        print(f"{row['name']:16} {row['n']:4}  {'  '.join(shown)}", flush=True)
    both = np.array([(a[0], b[0]) for a, b in rows if a[1] and b[1]])
    proven = [sum(pair[side][1] for pair in rows) for side in (0, 1)]
    ratio = math.exp(np.log(both[:, 1] / both[:, 0]).mean())
    print(
        f"proven {proven[0]} and {proven[1]} of {len(rows)} in {limit:g} CPU-seconds; the"
        f" {len(both)} that both prove take {both[:, 0].sum():.1f} and {both[:, 1].sum():.1f}"
        f" CPU-seconds, geometric mean of the ratios {ratio:.3f}"
    )


def main():
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help="count, times; count if none is named")
    parser.add_argument("--families", nargs="*", default=FAMILIES)
    parser.add_argument("--limit", type=float, default=3.0)
    parser.add_argument("--instances", type=Path, default=SHARED)
    asked = parser.parse_args()
    time.monotonic = time.process_time
    graphs = []
    for row in json.loads((asked.instances / "index.json").read_text()):
        if row["family"] in asked.families and row["n"] <= MOST_PLAYERS:
            with np.load(asked.instances / row["file"]) as file:
                graphs.append((row, SynergyGraph(file["S"].astype(float))))
    if "times" not in asked.parts or "count" in asked.parts:
        count(graphs)
    if "times" in asked.parts:
        solved(graphs[0][1], asked.limit)  # kernels are ready
        merged(whole(graphs[0][1]), SHARES)
        times(graphs, asked.limit)


if __name__ == "__main__":
    main()
