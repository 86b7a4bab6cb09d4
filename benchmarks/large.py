"""Large sparse graphs: multilevel against SCC, at equal CPU-seconds.

Run from the repository's root::

    python benchmarks/large.py --peers PYTHON [--only TEXT ...] [--memetic 5 30] [--rows FILE]

``PYTHON`` is one that has the peers, in an environment of their own::

    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install chszlablib scipy

Each graph is solved with three seeds. SCC's multilevel search runs first; multilevel then gets as
many CPU-seconds, at least 0.1, and three times as many, and with ``--memetic`` as many as SCC's
memetic search was allowed. Ours is the whole call of `solve`, theirs is the search on a graph that
is built already. All values are summed from labels on the same edges; SCC takes whole numbers,
so it is given weights times 1000 where they are none. The clock of this process is its CPU time,
so what else runs on the machine does not count. ``--rows`` adds a line of JSON per row to a file.

Graphs with seed 0 are those that the search was tuned on; seeds 11 and 12 were never looked at.
The generators are those of `benchmarks/heuristics.py` (planted) and of this file.
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

# This folder comes first on the path, and its files must not hide packages of the same names.
sys.path[:] = [folder for folder in sys.path if Path(folder) != Path(__file__).resolve().parent]
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.heuristics import sparse_graph  # noqa: E402
from coalitions import SynergyGraph  # noqa: E402
from solvers import solve  # noqa: E402

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "bitcoin"
SEEDS = 3
LEAST = 0.1
"""CPU-seconds that ours gets in any case."""

PEER = """
import json, sys, time
import numpy as np
from scipy.sparse import csr_matrix
from chszlablib import Decomposition, Graph

file, seeds, *limits = sys.argv[1:]
data = np.load(file)
n, i, j, weight = int(data["n"]), data["i"], data["j"], data["weight"]
whole = np.rint(weight * (1 if (weight == np.rint(weight)).all() else 1000)).astype(np.int64)
rows = csr_matrix(
    (np.r_[whole, whole], (np.r_[i, j], np.r_[j, i])), shape=(n, n)
)
rows.eliminate_zeros()
rows.sort_indices()
graph = Graph.from_csr(
    rows.indptr.astype(np.int64), rows.indices.astype(np.int32), edge_weights=rows.data
)
for seed in range(int(seeds)):
    for limit in [None, *map(float, limits)]:
        began = time.process_time()
        if limit is None:
            found = Decomposition.correlation_clustering(graph, seed=seed)
        else:
            found = Decomposition.evolutionary_correlation_clustering(
                graph, seed=seed, time_limit=limit
            )
        spent = time.process_time() - began
        labels = np.asarray(found.assignment)
        value = float(weight[labels[i] == labels[j]].sum())
        print(json.dumps({"seed": seed, "limit": limit, "value": value, "seconds": spent}))
"""


def random_signs(n, m, plus, seed):
    """Return a graph of random edges, +1 with probability `plus`, else −1."""
    rng = np.random.default_rng(seed)
    i, j = distinct(n, m, rng.integers(0, n, int(1.05 * m)), rng.integers(0, n, int(1.05 * m)), rng)
    return SynergyGraph.from_edges(n, i, j, np.where(rng.random(len(i)) < plus, 1.0, -1.0))


def power_law(n, m, seed):
    """Return a graph whose degrees follow a power law of exponent 3, a fifth of the edges −1."""
    rng = np.random.default_rng(seed)
    share = (np.arange(n) + 1.0) ** -0.5
    share /= share.sum()
    i, j = (rng.choice(n, int(1.1 * m), p=share) for _ in range(2))
    i, j = distinct(n, m, i, j, rng)
    return SynergyGraph.from_edges(n, i, j, np.where(rng.random(len(i)) < 0.2, -1.0, 1.0))


def distinct(n, m, i, j, rng):
    """Return m different pairs of the given ones."""
    pair = np.unique(np.minimum(i, j) * n + np.maximum(i, j))
    i, j = pair // n, pair % n
    keep = rng.permutation(np.flatnonzero(i < j))[:m]
    return i[keep], j[keep]


def bitcoin(name, signs):
    """Return who trusts whom: the sum of the ratings, or the sign of the sum of their signs."""
    rows = np.loadtxt(SHARED / f"{name}.csv", delimiter=",", skiprows=1, dtype=np.int64)
    people, ends = np.unique(rows[:, :2], return_inverse=True)
    i, j = np.sort(ends.reshape(-1, 2), axis=1).T
    n, rating = len(people), np.sign(rows[:, 2]) if signs else rows[:, 2]
    pair, place = np.unique((i * n + j)[i != j], return_inverse=True)
    weight = np.bincount(place, rating[i != j])
    weight = np.sign(weight) if signs else weight
    pair, weight = pair[weight != 0], weight[weight != 0]
    return SynergyGraph.from_edges(n, pair // n, pair % n, weight)


def graphs():
    """Give name and maker of every graph."""
    for seed in (0, 11, 12):
        for n, m in ((1_000, 20_000), (10_000, 200_000), (100_000, 1_000_000)):
            yield f"planted-{n}-{seed}", lambda n=n, m=m, s=seed: sparse_graph(n, m, s)[0]
        for plus in (0.5, 0.7):
            name = f"signs-{plus}-10000-{seed}"
            yield name, functools.partial(random_signs, 10_000, 100_000, plus, seed)
        yield f"power-100000-{seed}", functools.partial(power_law, 100_000, 500_000, seed)
    for name in ("otc", "alpha"):
        for signs in (True, False):
            kind = "signs" if signs else "ratings"
            yield f"bitcoin-{name}-{kind}", functools.partial(bitcoin, name, signs)


def theirs(python, graph, limits):
    """Return the rows of SCC: multilevel (limit None) and memetic, three seeds."""
    i, j, weight = graph.edges
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/graph.npz"
        np.savez(file, n=graph.n_players, i=i, j=j, weight=weight)
        job = [python, "-c", PEER, file, str(SEEDS), *map(str, limits)]
        done = subprocess.run(job, check=True, capture_output=True, text=True, cwd=folder)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def ours(graph, seconds):
    """Return means of value, bound and CPU-seconds of three seeds within a limit."""
    found = []
    for seed in range(SEEDS):
        began = time.process_time()
        solution = solve(graph, "multilevel", time_limit=seconds, seed=seed)
        found.append((solution.value, solution.bound, time.process_time() - began))
    return np.mean(found, axis=0).tolist()


def row(name, graph, python, memetic):
    """Print the lines of one graph and give them."""
    rows = theirs(python, graph, memetic)
    for limit in (None, *memetic):
        same = [r for r in rows if r["limit"] == limit]
        value, spent = (float(np.mean([r[key] for r in same])) for key in ("value", "seconds"))
        budgets = [limit] if limit else [max(spent, LEAST), 3 * max(spent, LEAST)]
        for budget in budgets:
            mine, bound, took = ours(graph, budget)
            peer = "multilevel" if limit is None else f"memetic {limit:g} s"
            print(
                f"{name:22} {len(graph.edges.weight):9} {peer:12} {value:11.1f} {spent:7.3f} |"
                f" {mine:11.1f} {took:7.3f} {mine / value:8.5f} | {bound:11.1f}"
                f" {100 * (bound / mine - 1):6.1f} %",
                flush=True,
            )
            yield {
                "graph": name,
                "peer": peer,
                "theirs": value,
                "their_seconds": spent,
                "ours": mine,
                "our_seconds": took,
                "ratio": mine / value,
                "bound": bound,
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", required=True, help="a Python that has chszlablib and scipy")
    parser.add_argument("--only", nargs="*", default=[""], help="parts of names of graphs")
    parser.add_argument("--memetic", type=float, nargs="*", default=[], help="seconds, such as 5")
    parser.add_argument("--rows", type=Path, help="file that lines of JSON are added to")
    chosen = parser.parse_args()
    # Every kernel is compiled, or loaded, before a clock runs.
    for small in (sparse_graph(1000, 5000, seed=1)[0], random_signs(400, 2000, 0.5, 1)):
        solve(small, "multilevel", steps=30)
    time.monotonic = time.process_time
    print(
        f"{'graph':22} {'edges':>9} {'SCC':12} {'value':>11} {'CPU s':>7} | {'multilevel':>11}"
        f" {'CPU s':>7} {'ratio':>8} | {'bound':>11} {'gap':>8}"
    )
    for name, make in graphs():
        if any(text in name for text in chosen.only):
            for line in row(name, make(), chosen.peers, chosen.memetic):
                if chosen.rows:
                    with chosen.rows.open("a") as file:
                        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
