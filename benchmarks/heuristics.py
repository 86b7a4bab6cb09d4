"""How good greedy and local-search are, and how long they and solve_game take.

Run from the repository's root::

    python benchmarks/heuristics.py [instances] [sparse] [games] [noisy] [--seconds 60]
        [--only TEXT]

Instances come from ``../shared/instances`` (or ``--instances FOLDER``), with the best value anybody
found; the rest is generated. ``noisy`` (a quarter of an hour) has random graphs of 200, 500 and
1000 players, or ``--only`` one of these. Times are CPU-seconds of this process, compilation not
counted.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path

# This folder comes first on the path, and its solvers.py is not the package of that name.
sys.path.pop(0)

import numpy as np

from coalitions import SynergyGraph
from coalitions.games.table import TableGame
from solvers import solve, solve_game

SHARED = Path(__file__).resolve().parents[2] / "shared" / "instances"
SPARSE = [(1_000, 20_000), (10_000, 200_000), (100_000, 1_000_000)]
PLAYERS = range(14, 23, 2)


def instances(folder, seconds, only):
    index = json.loads((folder / "index.json").read_text())
    # Where nobody published a value, a graph of the kind the issue asks about still counts.
    rows = [r for r in index if r["n"] >= 40 and (r["best_known"] or r["name"].startswith("fl_"))]
    rows = [r for r in rows if only in r["name"] or only == r["family"]]
    print(
        f"{'instance':18} {'n':>5} {'best known':>11} | {'greedy':>11} {'short':>8} {'CPU s':>6} |"
        f" {'local-search':>12} {'short':>8} {'CPU s':>6} | {'bound':>12}"
    )
    short: dict[str, list[float]] = {}
    for row in sorted(rows, key=lambda r: (r["family"], r["n"], r["name"])):
        with np.load(folder / row["file"]) as file:
            graph = SynergyGraph(file["S"].astype(float))
        line = f"{row['name']:18} {row['n']:5} {row['best_known'] or '':>11} |"
        for name in ("greedy", "local-search"):
            started = time.process_time()
            solution = solve(graph, name, time_limit=seconds)
            spent = time.process_time() - started
            percent = 100 * (1 - solution.value / row["best_known"]) if row["best_known"] else None
            shown = "" if percent is None else f"{percent:.3f} %"
            line += f" {solution.value:{12 if name == 'local-search' else 11}.0f}"
            line += f" {shown:>8} {spent:6.2f} |"
        if percent is not None:
            size = (
                "n ≤ 100" if row["n"] <= 100 else "100 < n < 200" if row["n"] < 200 else "n ≥ 200"
            )
            short.setdefault(size, []).append(percent)
        print(line + f" {solution.bound:12.0f}", flush=True)
    for size, percents in short.items():
        equal = sum(percent <= 1e-9 for percent in percents)
        print(
            f"local-search, {size}: {equal} of {len(percents)} equal to the best known,"
            f" mean {np.mean(percents):.3f} %, worst {max(percents):.3f} % short"
        )


def sparse_graph(n, m, seed=0):
    """Return a graph of hidden groups of 50: half the edges inside, +0.5; others −0.5; noise 1."""
    rng = np.random.default_rng(seed)
    group = np.sort(rng.integers(0, n // 50, n))
    start = np.searchsorted(group, np.arange(n // 50 + 1))
    i = rng.integers(0, n, int(1.09 * m))
    low, high = start[group[i]], start[group[i] + 1]
    inside = low + (rng.random(len(i)) * (high - low)).astype(np.int64)
    j = np.where(rng.random(len(i)) < 0.5, inside, rng.integers(0, n, len(i)))
    pair = np.unique(np.minimum(i, j) * n + np.maximum(i, j))
    i, j = pair // n, pair % n
    keep = rng.permutation(np.flatnonzero(i < j))[:m]
    i, j = i[keep], j[keep]
    weight = np.where(group[i] == group[j], 0.5, -0.5) + rng.normal(0, 1, len(i))
    return SynergyGraph.from_edges(n, i, j, weight), group


def sparse_row(n, m, name, seconds):
    """Print one line, in a process of its own so that the peak of memory is this run's."""
    import resource

    from coalitions import CoalitionStructure

    small, _ = sparse_graph(1000, 5000, seed=1)
    solve(small, name, time_limit=60)  # compiles, or loads what is compiled
    graph, group = sparse_graph(n, m)
    wall, started = time.monotonic(), time.process_time()
    solution = solve(graph, name, time_limit=seconds)
    spent, wall = time.process_time() - started, time.monotonic() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    planted = graph.value(CoalitionStructure.from_labels(group))
    print(
        f"{n:8} {len(graph.edges.weight):9} {name:13} {solution.value:12.1f} {planted:12.1f}"
        f" {solution.bound:12.1f} {spent:8.2f} {wall:8.2f} {peak:6.2f} GiB",
        flush=True,
    )


def sparse(seconds):
    print(
        f"{'players':>8} {'edges':>9} {'solver':13} {'value':>12} {'planted':>12} {'bound':>12}"
        f" {'CPU s':>8} {'wall s':>8} {'peak':>10}"
    )
    for n, m in SPARSE:
        for name in ("greedy", "local-search"):
            job = [sys.executable, __file__, "--sparse-row", str(n), str(m), name]
            subprocess.run([*job, "--seconds", str(seconds)], check=True)


def noisy_domains(n, seed):
    """Return clients of 8 domains, +0.3 inside and −0.1 across, under noise 0.5."""
    rng = np.random.default_rng(seed)
    domain = np.sort(rng.integers(0, 8, n))
    mean = np.where(domain[:, None] == domain[None, :], 0.3, -0.1)
    upper = np.triu(np.clip(mean + rng.normal(0, 0.5, (n, n)), -1, 1), 1)
    return SynergyGraph(np.rint(1e4 * (upper + upper.T)))


def noisy(seconds, sizes):
    """Compare the defaults with the best of three other seeds that go on four times as long."""
    print(
        f"{'n':>5} {'instance':>8} {'local-search':>12} {'CPU s':>6} {'short':>8}"
        f" {'branch-and-cut':>14} {'CPU s':>6} {'short':>8} {'best of all':>12} {'gap':>7}"
    )
    for n in sizes:
        for instance in (101, 102, 103):
            graph = noisy_domains(n, instance)
            found = {}
            for name in ("local-search", "branch-and-cut"):
                started = time.process_time()
                solution = solve(graph, name, time_limit=seconds, threads=1)
                found[name] = (solution, time.process_time() - started)
            others = [solve(graph, "local-search", seed=s, effort=4.0).value for s in (1, 2, 3)]
            best = max(*others, *(solution.value for solution, _ in found.values()))
            line = f"{n:5} {instance:8}"
            for (solution, spent), width in zip(found.values(), (12, 14), strict=True):
                short = 100 * (1 - solution.value / best)
                line += f" {solution.value:{width}.0f} {spent:6.1f} {short:6.3f} %"
            print(f"{line} {best:12.0f} {100 * solution.gap:5.1f} %", flush=True)


def tables(n, seed=0):
    """Give games of the kinds the literature on structure generation measures."""
    rng = np.random.default_rng(seed)
    sizes = np.array([mask.bit_count() for mask in range(1 << n)])
    uniform = rng.random(1 << n)
    yield "uniform in 0…|C|", sizes * uniform
    yield "normal, mean |C|", rng.normal(sizes, np.sqrt(sizes))
    yield "superadditive", sizes**1.5 + 0.01 * uniform
    yield "majority wins 1", (sizes > n // 2).astype(float)
    yield "30 % worth 1", np.where((sizes >= n // 3) & (uniform < 0.3), 1.0, 0.0)
    synergy = np.triu(rng.normal(size=(n, n)), 1)
    yield "graph", np.asarray(SynergyGraph(synergy + synergy.T).game()(_rows(n)))


def _rows(n):
    from coalitions.enumeration import all_coalitions

    return all_coalitions(n)


def games():
    print(f"{'game':18} " + " ".join(f"{f'n = {n}':>9}" for n in PLAYERS) + "   CPU-seconds")
    solve_game(TableGame(np.arange(16.0)))  # compiles, or loads what is compiled
    lines: dict[str, str] = {}
    for n in PLAYERS:
        for kind, table in tables(n):
            game = TableGame(table)
            started = time.process_time()
            solution = solve_game(game)
            spent = time.process_time() - started
            assert solution.optimal
            lines[kind] = lines.get(kind, f"{kind:18} ") + f"{spent:9.3f} "
    print("\n".join(lines.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["instances", "sparse", "games"])
    parser.add_argument("--seconds", type=float, default=60.0, help="wall time for one graph")
    parser.add_argument("--instances", type=Path, default=SHARED)
    parser.add_argument("--only", default="", help="a family, or part of an instance's name")
    parser.add_argument("--sparse-row", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.sparse_row:
        n, m, name = chosen.sparse_row
        sparse_row(int(n), int(m), name, chosen.seconds)
        return
    warm = np.triu(np.random.default_rng(0).normal(size=(160, 160)), 1)
    for name, options in (("greedy", {}), ("local-search", {"effort": 0.01})):
        solve(warm + warm.T, name, **options)
        solve((warm + warm.T)[:20, :20], name, **options)
    if "instances" in chosen.parts:
        instances(chosen.instances, chosen.seconds, chosen.only)
    if "sparse" in chosen.parts:
        sparse(chosen.seconds if math.isfinite(chosen.seconds) else 600)
    if "games" in chosen.parts:
        games()
    if "noisy" in chosen.parts:
        noisy(chosen.seconds, [int(chosen.only)] if chosen.only else [200, 500, 1000])


if __name__ == "__main__":
    main()
