"""How fast branch-and-cut proves, next to RP* on HiGHS, CBC and CP-SAT.

Run from the repository's root::

    python benchmarks/optimisers.py [targets] [peers] [small] [random] [--seconds 60] [--only TEXT]
    python benchmarks/optimisers.py --all-instances [--seconds 10] [--only TEXT]

``targets`` runs the families that must be proven, ``peers`` the comparison (half an hour or more:
the others often need all their time), ``small`` the case of 15 players, ``random``
(half an hour, only if named) graphs that nobody proves. ``--all-instances`` runs every instance of
``../shared/instances`` (or ``--instances FOLDER``), checks that value ≤ proven optimum ≤ bound and
that every certificate verifies, and prints what is left open. Times are CPU-seconds of this
process and its children on one core; compilation and imports are not counted. ``--seconds`` is wall
time, in ``peers`` CPU-time.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

# This file has the name of the package it measures; its folder must not come first.
sys.path[:] = [folder for folder in sys.path if Path(folder) != Path(__file__).resolve().parent]

from coalitions import CoalitionError, SynergyGraph  # noqa: E402
from solvers import solve, verify  # noqa: E402
from solvers.ilp.program import estimated_rows  # noqa: E402

SHARED = Path(__file__).resolve().parents[2] / "shared" / "instances"

PEERS = {
    "highs": {"solver": "highs"},
    "cp-sat": {"solver": "cp-sat"},
    "cbc": {"solver": "cbc"},
    "highs lazy": {"solver": "highs", "lazy": True},
}
"""RP* as a whole model for each, at its best settings; and HiGHS with triangles added as needed."""

MOST_ROWS = 300_000
"""A larger model is not handed over: `uno_1a`, with 1.2 million rows, was unproven after 20 s."""


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
                f" {spent:7.2f}  {outcome(solution)}, {solution.stats.get('nodes', 0)} nodes",
                flush=True,
            )


def peer_graphs(folder):
    """Yield (family, name, matrix) of 50 players or more, families from small to large."""
    index = {row["name"]: row for row in json.loads((folder / "index.json").read_text())}
    easy = {
        "uno": ["uno", "uno_1a", "uno_3a"],
        "artificial": ["am-25-3", "am-25-10", "am-50-10", "am-50-20", "am-75-3"],
        "MCF": ["nai_96a"],
        "modularity": ["lesmis"],
        "PACE dense": ["exact018", "exact026", "exact041"],
        "PACE sparse": ["exact077", "exact079"],
    }
    hard = {
        "ABR": ["sponge", "zoo"],
        "MCF non-trivial": ["nai_96d"],
        "PACE noisy": ["exact019"],
        "cluster editing": ["ce50-20"],
    }
    for family, names in easy.items():
        for name in names:
            yield family, name, load(folder, index[name])
    for n, domains in ((60, 5), (100, 8), (150, 8), (200, 10)):
        yield "well separated", f"cos-{n}", cosines(n, domains, 1.0, 0.25, 3)
    for n, domains in ((60, 5), (80, 5)):
        yield "noise 0.2", f"planted-{n}", planted(n, domains, 0.2, 3)
    for family, names in hard.items():
        for name in names:
            yield family, name, load(folder, index[name])


def limited(graph, seconds, options):
    """Return (CPU-seconds, proven, value) of a solver, or None if it needs more CPU-seconds.

    The run is a process of its own, so that a limit of CPU-time ends it however busy the machine
    is. Short runs are repeated, half a second in all, and the mean counts.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 2, int(seconds) + 3))
        runs, total = 0, 0.0
        try:
            while total < 0.5 and runs < 50:
                solution, spent = timed(graph, None, **options)
                runs, total = runs + 1, total + spent
            found = json.dumps([total / runs, solution.optimal, solution.value])
        except CoalitionError:  # CBC was ended by the limit, or the model does not fit
            found = "null"
        os.write(writer, found.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    answer = json.loads(text or "null")
    return answer if answer is not None and answer[0] <= seconds else None


def report_peers(folder, seconds, only):
    """Compare with RP* as a model given to each back-end, and with our lazily separated HiGHS."""
    for options in PEERS.values():
        solve(planted(12, 3, 0.2, 0), **options)  # imports are not counted
    print(
        f"{'family':16} {'instance':10} {'n':>4} {'ours':>8} "
        + " ".join(f"{peer:>10}" for peer in PEERS)
        + f" {'ratio':>8} {'with lazy':>9}"
    )
    ratios = {"given": [], "any": []}
    most = {"given": -math.inf, "any": -math.inf}
    gave_up = set()
    for family, name, matrix in peer_graphs(folder):
        if only not in name:
            continue
        graph = SynergyGraph(matrix)
        ours = limited(graph, seconds, {"solver": "branch-and-cut"})
        mine = ours[0] if ours and ours[1] else seconds
        line = f"{family:16} {name:10} {len(matrix):4} {mine:8.4f}{'*' if mine == seconds else ' '}"
        best = {"given": math.inf, "any": math.inf}
        for peer, options in PEERS.items():
            lazy = "lazy" in options
            too_large = not lazy and estimated_rows(graph, "rp-star") > MOST_ROWS
            if too_large or (family, peer) in gave_up:
                line += f"{'-':>10} "
                continue
            # Only the fastest counts: whoever is slower than another is stopped.
            limit = math.ceil(min(seconds, best["any" if lazy else "given"] + 1))
            found = limited(graph, limit, options)
            if not found or not found[1]:
                line += f"{f'> {limit:g}':>10} "
                if limit == seconds:
                    gave_up.add((family, peer))
                continue
            agrees = ours is None or abs(found[2] - ours[2]) <= 1e-9 * np.abs(matrix).sum()
            line += f"{found[0]:10.3f}{' ' if agrees else '!'}"
            best["any"] = min(best["any"], found[0])
            if not lazy:
                best["given"] = min(best["given"], found[0])
        for kind, width in (("given", 8), ("any", 9)):
            line += (
                f" {best[kind] / mine:{width}.1f}" if best[kind] < math.inf else f" {'':{width}}"
            )
            if best[kind] < math.inf:
                ratios[kind].append(best[kind] / mine)
                most[kind] = max(most[kind], mine - best[kind])
        print(line, flush=True)
    print(
        f"CPU-seconds; > stopped there, unproven; - not tried: more than {MOST_ROWS:,} rows, or a"
        f" relative above was not proven in {seconds:g} s; ! another optimum\n"
        "ratio: the fastest of the others that proves it, over ours"
    )
    for kind, others in (("given", "RP* given to HiGHS, CBC, CP-SAT"), ("any", "lazy HiGHS too")):
        if ratios[kind]:
            mean = math.exp(sum(map(math.log, ratios[kind])) / len(ratios[kind]))
            print(
                f"{others}: geometric mean of the ratio {mean:.1f} over {len(ratios[kind])}"
                f" instances, least {min(ratios[kind]):.1f}; ours minus the fastest, at most"
                f" {most[kind]:.3f} s"
            )


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


def report_random(folder, seconds, only):
    """Tell how good the structures are where nobody has a proof: random graphs, 200 to 1000."""
    rows = json.loads((folder / "index.json").read_text())
    rows = [r for r in rows if r["family"] == "cplib_random" and 200 <= r["n"] <= 1000]
    print(
        f"{'instance':16} {'n':>5} {'value':>10} {'best known':>11} {'short':>8} {'CPU s':>6}  gap"
    )
    for row in sorted(rows, key=lambda r: (r["n"], r["name"])):
        if only in row["name"]:
            graph = SynergyGraph(load(folder, row))
            solution, spent = timed(graph, seconds, solver="branch-and-cut")
            short = 100 * (1 - solution.value / row["best_known"])
            print(
                f"{row['name']:16} {row['n']:5} {solution.value:10.0f} {row['best_known']:11}"
                f" {short:6.3f} % {spent:6.1f}  {100 * solution.gap:.0f} %",
                flush=True,
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
            # Where a short cut was taken the certificate is a search of its own: it may prove more.
            checked = verify(graph, solution.structure, solution.certificate)
            if checked.bound > solution.bound + 1e-9 * solution.positive_weight:
                faults.append(f"the certificate proves no more than {checked.bound}")
            if row["proven"] and checked.bound < row["best_known"]:
                faults.append(f"the certificate claims {checked.bound}")
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
    parser.add_argument("tables", nargs="*", choices=["targets", "peers", "small", "random", []])
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
    if "random" in tables:
        report_random(arguments.instances, arguments.seconds, arguments.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
