"""How fast branch-and-cut proves, next to RP* on HiGHS, CBC and CP-SAT.

Run from the repository's root::

    python benchmarks/solvers.py [targets] [peers] [small] [--seconds 60] [--only TEXT]
    python benchmarks/solvers.py --all-instances [--seconds 10] [--only TEXT]

``targets`` runs the families that must be proven, ``peers`` the comparison (slow: the others often
need all their time), ``small`` the case of 15 players. ``--all-instances`` runs every instance of
``../shared/instances`` (or ``--instances FOLDER``), checks that value ≤ proven optimum ≤ bound and
that every certificate verifies, and prints what is left open. Times are CPU-seconds of this process
and its children on one core; compilation is not counted, ``--seconds`` is wall time.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

# This file has the name of the package it measures; its folder must not come first.
sys.path[:] = [folder for folder in sys.path if Path(folder) != Path(__file__).resolve().parent]

from coalitions import SynergyGraph  # noqa: E402
from solvers import solve, verify  # noqa: E402

SHARED = Path(__file__).resolve().parents[2] / "shared" / "instances"

PEERS = {
    "highs": {"solver": "highs"},
    "highs lazy": {"solver": "highs", "lazy": True},
    "cbc": {"solver": "cbc"},
    "cp-sat": {"solver": "cp-sat"},
}


# ------------------------------------------------------------------ graphs


def planted(n, domains, noise, seed):
    """Clients in domains: +0.3 inside, −0.1 across, Gaussian noise; four decimals, as integers."""
    rng = np.random.default_rng(seed)
    domain = np.sort(rng.integers(0, domains, n))
    mean = np.where(domain[:, None] == domain[None, :], 0.3, -0.1)
    upper = np.triu(np.clip(mean + rng.normal(0, noise, (n, n)), -1, 1), 1)
    return np.rint(1e4 * (upper + upper.T))


def cosines(n, domains, noise, threshold, seed, dimensions=64):
    """Cosine similarities of noisy client updates, less a threshold."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(domains, dimensions))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    updates = centres[np.sort(rng.integers(0, domains, n))]
    updates = updates + noise * rng.normal(size=updates.shape) / math.sqrt(dimensions)
    updates /= np.linalg.norm(updates, axis=1, keepdims=True)
    matrix = np.rint(1e4 * (updates @ updates.T - threshold))
    np.fill_diagonal(matrix, 0)
    return matrix


def load(folder, row):
    with np.load(folder / row["file"]) as file:
        return file["S"].astype(float)


def target_families(folder):
    """Yield (family, name, matrix, best known value or None)."""
    index = {row["name"]: row for row in json.loads((folder / "index.json").read_text())}

    def known(family, names):
        for name in names:
            row = index[name]
            yield family, name, load(folder, row), row["best_known"]

    abr = [r for r in index.values() if r["family"] == "cplib_abr" and r["difficulty"] == "easy"]
    yield from known("ABR easy", [r["name"] for r in abr if r["n"] <= 160])
    mcf = [r for r in index.values() if r["family"] == "cplib_mcf" and r["proven"]]
    yield from known("MCF proven", [r["name"] for r in mcf])
    for seed in (1, 2):
        yield "well separated", f"cos-500-{seed}", cosines(500, 12, 1.0, 0.25, seed), None
    for seed in (1, 2):
        yield "noise 0.2", f"planted-300-{seed}", planted(300, 10, 0.2, seed), None
    for seed in (1, 2):
        yield "noise 0.3", f"planted-250-{seed}", planted(250, 5, 0.3, seed), None
    yield from known("modularity", ["karate", "lesmis"])
    yield from known("named", ["corr40-1", "boc_1", "ce50-20"])
    yield from known("random", ["rand100-100", "fl_hard_100"] if "rand100-100" in index else [])
    for n in (50, 100):
        yield "noise 0.5", f"hard-{n}-1", planted(n, 8, 0.5, 1), None


# ------------------------------------------------------------------ measuring


def cpu():
    """CPU-seconds of this process and of the solvers it started."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def timed(graph, seconds, **options):
    started = cpu()
    solution = solve(graph, time_limit=seconds, threads=1, **options)
    return solution, cpu() - started


def warm_up():
    """Compile, or load from the disk, everything that the runs use."""
    for n, noise in ((12, 0.2), (30, 0.5), (160, 0.2)):
        solve(planted(n, 3, noise, 0), solver="branch-and-cut", time_limit=5)


def outcome(solution):
    return "proven" if solution.optimal else f"gap {100 * solution.gap:.2f} %"


def report_targets(folder, seconds, only):
    print(
        f"{'family':15} {'instance':16} {'n':>4} {'value':>10} {'known':>9} {'CPU s':>7}  outcome"
    )
    for family, name, matrix, best in target_families(folder):
        if only in name or only == family:
            graph = SynergyGraph(matrix)
            solution, spent = timed(graph, seconds, solver="branch-and-cut")
            print(
                f"{family:15} {name:16} {len(matrix):4} {solution.value:10.0f} {best or '':>9}"
                f" {spent:7.2f}  {outcome(solution)}, {solution.stats['nodes']} nodes",
                flush=True,
            )


def report_peers(folder, seconds, only):
    names = ["wildcats", "cars", "karate", "boc_5", "fl_easy_50", "uno", "nai_96a", "sponge"]
    names += ["lesmis", "fl_easy_100", "zoo", "uno_1a", "uno_3a"]
    index = {row["name"]: row for row in json.loads((folder / "index.json").read_text())}
    graphs = [(name, load(folder, index[name])) for name in names]
    graphs += [("planted-60-1", planted(60, 5, 0.2, 1)), ("cos-100-1", cosines(100, 8, 1, 0.25, 1))]
    print(
        f"{'instance':14} {'n':>4} {'ours':>7} " + " ".join(f"{p:>10}" for p in PEERS) + "  ratio"
    )
    ratios = []
    for name, matrix in graphs:
        if only not in name:
            continue
        graph = SynergyGraph(matrix)
        solution, ours = timed(graph, seconds, solver="branch-and-cut")
        line = f"{name:14} {len(matrix):4} {ours:7.3f}{' ' if solution.optimal else '*'}"
        best = math.inf
        for options in PEERS.values():
            other, spent = timed(graph, seconds, **options)
            agrees = abs(other.value - solution.value) <= 1e-9 * solution.total_weight
            mark = "*" if not other.optimal else " " if agrees or not solution.optimal else "!"
            line += f"{spent:10.2f}{mark}"
            if mark == " ":
                best = min(best, spent)
        if best < math.inf and solution.optimal:
            line += f" {best / ours:6.1f}"
            if len(matrix) >= 50:
                ratios.append(best / ours)
        print(line, flush=True)
    print(
        "* not proven in the time; ! claims another optimum\n"
        "ratio: CPU-seconds of the fastest other that proves, over ours"
    )
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"geometric mean of the ratio, n ≥ 50: {mean:.1f} over {len(ratios)} instances")


FRESH = """
import time
began = time.perf_counter(), time.process_time()
import numpy as np
from solvers import solve
matrix = np.array({matrix})
imported = time.perf_counter(), time.process_time()
assert solve(matrix, solver="branch-and-cut").optimal
print(time.perf_counter() - imported[0], time.process_time() - imported[1], imported[1] - began[1])
"""


def report_small():
    graphs = [planted(15, 3, noise, seed) for noise in (0.2, 0.5) for seed in range(10)]
    spent = []
    for matrix in graphs:
        solution, seconds = timed(SynergyGraph(matrix), None, solver="branch-and-cut")
        assert solution.optimal
        spent.append(1000 * seconds)
    print(f"15 players, compiled: median {np.median(spent):.1f} ms, most {max(spent):.1f} ms CPU")
    script = FRESH.format(matrix=graphs[0].tolist())
    run = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    ).stdout.split()
    wall, used, imports = map(float, run)
    print(
        f"15 players, first call of a fresh process: {wall:.2f} s ({used:.2f} s CPU), after"
        f" {imports:.2f} s CPU for imports"
    )


def report_all(folder, seconds, only):
    rows = json.loads((folder / "index.json").read_text())
    wrong, left = [], []
    for row in sorted(rows, key=lambda r: (r["family"], r["n"], r["name"])):
        if only not in row["name"] and only != row["family"]:
            continue
        graph = SynergyGraph(load(folder, row))
        solution, spent = timed(graph, seconds, solver="branch-and-cut")
        faults = []
        if row["proven"] and not solution.value <= row["best_known"] <= solution.bound:
            faults.append(f"the optimum is {row['best_known']}")
        if solution.certificate is not None:
            checked = verify(graph, solution.structure, solution.certificate)
            if abs(checked.bound - solution.bound) > 1e-9 * max(1.0, solution.total_weight):
                faults.append(f"the certificate proves {checked.bound}")
        elif solution.optimal:
            faults.append("there is no certificate")
        print(
            f"{row['family']:18} {row['name']:18} {row['n']:5} {solution.value:11.0f}"
            f" {solution.bound:13.1f} {row['best_known'] or '':>10} {spent:7.2f}"
            f"  {outcome(solution)} {'WRONG: ' + '; '.join(faults) if faults else ''}",
            flush=True,
        )
        wrong += [row["name"]] if faults else []
        left += [] if solution.optimal else [row["name"]]
    print(f"left open ({len(left)}): {', '.join(left)}")
    print(f"wrong ({len(wrong)}): {', '.join(wrong)}")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tables", nargs="*", choices=["targets", "peers", "small", []])
    parser.add_argument("--all-instances", action="store_true")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", default="", help="instances whose name contains this")
    parser.add_argument("--instances", type=Path, default=SHARED)
    arguments = parser.parse_args()
    warm_up()
    if arguments.all_instances:
        return report_all(arguments.instances, arguments.seconds, arguments.only)
    tables = arguments.tables or ["targets", "peers", "small"]
    if "targets" in tables:
        report_targets(arguments.instances, arguments.seconds, arguments.only)
    if "peers" in tables:
        report_peers(arguments.instances, arguments.seconds, arguments.only)
    if "small" in tables:
        report_small()
    return 0


if __name__ == "__main__":
    sys.exit(main())
