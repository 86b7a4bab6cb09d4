"""Whether the default is as good as local-search at any time limit, and how fast a first pass is.

Run from the repository's root::

    python benchmarks/anytime.py [table] [first] [--limits 2 5 10 60] [--only TEXT] [--rows FILE]
        [--igraph PYTHON]

``table`` solves instances of ``../shared/instances`` (or ``--instances FOLDER``) with at least 200
players twice in each time: with the default and with ``local-search``. The clock of this process is
its CPU time, so both get equal CPU-seconds, whatever else runs on the machine. The ratio is value
of the default / value of local-search. With ``--rows`` each row is added to a file (JSON, one a
line) when it is measured, and what the file has is printed from there: a run that was stopped goes
on, and the verdict at the end is on all rows. ``first`` runs local-search on planted graphs
without a limit, and one descent from players alone, its first step; ``--igraph`` names a Python
that has igraph, whose ``community_leiden`` (CPM, resolution 0: our objective) then runs on the same
graphs. Compilation is not counted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

# This folder comes first on the path, and its files must not hide packages of the same names.
sys.path[:] = [folder for folder in sys.path if Path(folder) != Path(__file__).resolve().parent]

from coalitions import SynergyGraph  # noqa: E402
from solvers import solve  # noqa: E402
from solvers.heuristics.dense_search import improve  # noqa: E402
from solvers.heuristics.random_numbers import random_state  # noqa: E402

SHARED = Path(__file__).resolve().parents[2] / "shared" / "instances"

INSTANCES = (
    "exact103",
    "exact132",
    "fl_hard_200",
    "fl_coshard_200",
    "regnier300-50",
    "sym300-50",
    "exact167",
    "fl_easy_400",
    "gauss500-100-1",
    "p500-100-1",
    "unif700-100-2",
    "p1000-1",
)
"""Of every kind that is not proven at once: cluster editing, federated clients, random graphs."""

WORST, MEDIAN = 0.997, 1.0
"""What the ratios must not be below."""


def instance(folder, name):
    (row,) = (r for r in json.loads((folder / "index.json").read_text()) if r["name"] == name)
    with np.load(folder / row["file"]) as file:
        return SynergyGraph(file["S"].astype(float))


def measured(graph, name, limit, seed):
    """Return the row of one instance and limit: both values, gaps and CPU-seconds."""
    row = {"name": name, "n": graph.n_players, "limit": limit, "seed": seed}
    for solver in ("auto", "local-search"):
        began = time.process_time()
        found = solve(graph, solver, time_limit=limit, seed=seed)
        spent = time.process_time() - began
        row[solver] = {"value": found.value, "seconds": spent, "gap": found.gap}
    return row


def table(folder, limits, names, seed, file):
    print(
        f"{'instance':15} {'n':>5} {'limit':>5} | {'default':>12} {'CPU s':>6} {'gap':>7} |"
        f" {'local-search':>12} {'CPU s':>6} {'gap':>7} | {'ratio':>8}"
    )
    lines = file.read_text().splitlines() if file and file.exists() else []
    kept = {(row["name"], row["limit"], row["seed"]): row for row in map(json.loads, lines)}
    ratios = []
    for limit in limits:
        for name in names:
            row = kept.get((name, limit, seed))
            if row is None:
                row = measured(instance(folder, name), name, limit, seed)
                if file:
                    with file.open("a") as rows:
                        rows.write(json.dumps(row) + "\n")
            line = f"{name:15} {row['n']:5} {limit:5g} |"
            for ours in (row["auto"], row["local-search"]):
                line += (
                    f" {ours['value']:12.0f} {ours['seconds']:6.2f} {100 * ours['gap']:5.1f} % |"
                )
            ratios.append(row["auto"]["value"] / row["local-search"]["value"])
            print(f"{line} {ratios[-1]:8.5f}", flush=True)
    worst, median = min(ratios), statistics.median(ratios)
    met = worst >= WORST and median >= MEDIAN
    print(
        f"{len(ratios)} rows: worst ratio {worst:.5f} (at least {WORST}), median {median:.5f}"
        f" (at least {MEDIAN}): {'kept' if met else 'NOT KEPT'}"
    )


def planted(n, groups, noise, seed=0):
    """Return a graph of hidden groups, +1 inside and −1 across, under noise; two decimals."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, n)
    upper = np.where(group[:, None] == group, 1.0, -1.0) + rng.normal(0, noise, (n, n))
    upper = np.triu(np.round(upper, 2), 1)
    return SynergyGraph(upper + upper.T)


LEIDEN = """
import sys, time, igraph, numpy as np
matrix = np.load(sys.argv[1])
i, j = np.nonzero(np.triu(matrix, 1))
graph = igraph.Graph(len(matrix), list(zip(i.tolist(), j.tolist())))
weights = matrix[i, j].tolist()
began = time.process_time()
found = graph.community_leiden("CPM", weights=weights, resolution=0.0, n_iterations=-1)
print(time.process_time() - began)
labels = np.array(found.membership)
print(matrix[labels[:, None] == labels].sum() / 2)
"""


def first(igraph):
    print(
        f"{'planted':>16} | {'local-search':>12} {'CPU s':>6} |"
        f" {'a descent':>11} {'CPU s':>7} | {'igraph':>11} {'CPU s':>7}"
    )
    for n, groups, noise in ((100, 5, 1.0), (200, 10, 1.0), (500, 25, 1.0), (1000, 20, 2.0)):
        graph = planted(n, groups, noise)
        began = time.process_time()
        found = solve(graph, "local-search")
        spent = time.process_time() - began
        matrix = graph.matrix.copy()
        before = time.process_time()
        value, _ = improve(matrix, np.arange(n), 0, random_state(0))
        took = time.process_time() - before
        line = f"{n:5} {groups:4} {noise:5.1f} | {found.value:12.2f} {spent:6.2f} |"
        line += f" {value:11.2f} {took:7.4f} |"
        if igraph:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "matrix.npy"
                np.save(path, matrix)
                job = subprocess.run(
                    [igraph, "-c", LEIDEN, path], capture_output=True, text=True, check=True
                )
            seconds, value = map(float, job.stdout.split())
            line += f" {value:11.2f} {seconds:7.4f}"
        print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["table", "first"])
    parser.add_argument("--limits", type=float, nargs="+", default=[2.0, 5.0, 10.0, 60.0])
    parser.add_argument("--instances", type=Path, default=SHARED)
    parser.add_argument("--only", default="", help="part of an instance's name")
    parser.add_argument("--rows", type=Path, help="file of rows: read, and added to")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--igraph", help="a Python that has igraph")
    chosen = parser.parse_args()
    for graph in (planted(60, 2, 2.0), planted(200, 2, 4.0)):  # compiles, or loads what is compiled
        for solver in ("auto", "local-search"):
            solve(graph, solver, time_limit=1.0)
    time.monotonic = time.process_time
    if "table" in chosen.parts:
        names = [name for name in INSTANCES if chosen.only in name]
        table(chosen.instances, chosen.limits, names, chosen.seed, chosen.rows)
    if "first" in chosen.parts:
        first(chosen.igraph)


if __name__ == "__main__":
    main()
