"""How fast branch-and-price proves the best teams of limited sizes, next to others.

Run from the repository's root::

    python benchmarks/teams.py [targets] [peers] [ratios] [heuristics] [certificates]
        [--seconds 120] [--seeds 3] [--first 0] [--only TEXT] [--gap 0.003] [--most-players 40]

``targets`` runs the families that must be proven, ``peers`` gives the smaller ones to HiGHS, CP-SAT
and CBC on the full formulation (a quarter of an hour or more: they often need all their time), and
prints how many times ours each took; a peer that has no proof at its limit took more than that.
``ratios`` prints by what factor each of them is slower where it finishes, for 20, 25, … players:
the least and the geometric mean over the seeds, up to ``--most-players``. Who leaves a graph open
gets no larger ones. ``heuristics`` prints what greedy and local-search reach, ``certificates`` how
long a proof takes to find and to check; there the seed of a graph is its number of players.
Graphs are random, normal(0.1, 1) with two decimals; planted ones have 2 more inside planted teams.
Times are CPU-seconds of this process and its children on one core; compilation and imports are not
counted. ``--seconds`` is CPU time for ours, whatever else runs on the machine, and wall time for
the others; ``--gap`` ends a search of ours where that is reached.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import numpy as np

# This folder must not come first: it has modules with the names of packages.
sys.path[:] = [folder for folder in sys.path if Path(folder) != Path(__file__).resolve().parent]

from coalitions import CoalitionError, SynergyGraph  # noqa: E402
from solvers import solve, verify  # noqa: E402

SMALL = {"max_size": 4}

TARGETS = {
    "n = 20, at most 4": (20, SMALL),
    "n = 20, 3 to 5 in 5 teams": (20, {"min_size": 3, "max_size": 5, "n_groups": 5}),
    "n = 60, at most 4": (60, SMALL),
    "n = 60, 3 to 5 in 15 teams": (60, {"min_size": 3, "max_size": 5, "n_groups": 15}),
    "n = 100, at most 4": (100, SMALL),
    "n = 100, 3 to 5 in 25 teams": (100, {"min_size": 3, "max_size": 5, "n_groups": 25}),
    "n = 150, at most 4": (150, SMALL),
    "n = 200, planted teams of 5": (200, {"max_size": 5}),
}

OURS = "branch-and-price"
PEERS = ("highs", "cp-sat", "cbc")
PEER_PLAYERS = 60
"""The full formulation of more players is not handed over: at 60, nobody came near."""

RATIO_PLAYERS = (20, 25, 30, 35, 40)
RATIO_DEMANDS = {
    "at most 4": lambda n: SMALL,
    "3 to 5 in n / 4 teams": lambda n: {"min_size": 3, "max_size": 5, "n_groups": n // 4},
}
HEURISTICS = ("n = 60, at most 4", "n = 60, 3 to 5 in 15 teams", "n = 100, at most 4")

CERTIFICATES = {
    **{name: TARGETS[name] for name in HEURISTICS},
    "n = 50, at most 8": (50, {"max_size": 8}),
    "n = 40, at most 10": (40, {"max_size": 10}),
}

REPEATS = 5
"""Ours takes milliseconds there, so a mean of so many runs counts."""


def graph(n, seed, planted=0):
    """Return a random graph; with `planted`, teams of that size are there to be found."""
    rng = np.random.default_rng(seed)
    team = rng.permutation(n) // planted if planted else np.arange(n)
    weights = rng.normal(0.1, 1, (n, n)) + 2.0 * (team[:, None] == team)
    upper = np.triu(weights.round(2), 1)
    return upper + upper.T


def cpu_seconds():
    """CPU time of this process and of the children that have ended."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in usage)


def timed(matrix, seconds, solver, **demands):
    """Solve, and return the CPU-seconds, whether it was proven, and what is printed of it."""
    own = patch.object(time, "monotonic", time.process_time) if solver == OURS else nullcontext()
    began = cpu_seconds()
    try:
        with own:
            found = solve(matrix, solver, time_limit=seconds, **demands)
    except CoalitionError as error:
        spent = cpu_seconds() - began
        return spent, False, f"{spent:8.2f} s  {type(error).__name__}"
    spent = cpu_seconds() - began
    verdict = "proven" if found.optimal else f"gap {100 * found.gap:.2f} %"
    nodes = f"  {found.stats['nodes']} nodes" if "nodes" in found.stats else ""
    line = f"{spent:8.3f} s  {verdict:12} {found.value:9.2f} ≤ {found.bound:9.2f}{nodes}"
    return spent, found.optimal, line


def print_ratios(seconds, seeds, only, most_players):
    """Print a line for each demand, number of players and peer."""
    players = [n for n in RATIO_PLAYERS if n <= most_players]
    for name, demands_of in RATIO_DEMANDS.items():
        left = [peer for peer in PEERS if only in name]
        for n in players if left else ():
            demands = demands_of(n)
            matrices = [graph(n, seed) for seed in seeds]
            runs = [[timed(m, seconds, OURS, **demands) for _ in range(REPEATS)] for m in matrices]
            ours = [sum(run[0] for run in some) / REPEATS for some in runs]
            assert all(run[1] for some in runs for run in some)
            print(f"{name:22} n = {n}  {OURS:16}  {_listed(ours, '.4f')} s", flush=True)
            for peer in list(left):
                theirs = []
                for matrix in matrices:
                    run = timed(matrix, seconds, peer, formulation="full", **demands)
                    theirs.append(run[0])
                    if not run[1]:
                        left.remove(peer)
                        break
                ratios = np.array(theirs) / ours[: len(theirs)]
                finished = ratios if peer in left else ratios[:-1]
                shown = f"{_listed(theirs, '.2f')} s{'' if peer in left else ' (open)'}"
                if len(finished):
                    mean = np.exp(np.log(finished).mean())
                    shown += f"  least {finished.min():.0f} x, geometric mean {mean:.0f} x"
                if peer not in left:
                    shown += f"  open: > {ratios[-1]:.0f} x"
                print(f"{name:22} n = {n}  {peer:16}  {shown}", flush=True)
            if not left:
                break


def print_heuristics(seconds, only):
    """Print a line for each family and heuristic."""
    for name in HEURISTICS:
        n, demands = TARGETS[name]
        for solver in ("greedy", "local-search") if only in name else ():
            line = timed(graph(n, n), seconds, solver, **demands)[-1]
            print(f"{name:30} seed {n}  {solver:16}  {line}", flush=True)


def print_certificates(seconds, gap, only):
    """Print a line for each family: CPU-seconds to solve and to verify, and the bound."""
    for name, (n, demands) in CERTIFICATES.items():
        if only not in name:
            continue
        matrix = SynergyGraph(graph(n, n))
        began = cpu_seconds()
        found = solve(matrix, OURS, time_limit=seconds, gap=gap, certificate=True, **demands)
        solved = cpu_seconds()
        shown = verify(matrix, found.structure, found.certificate, **demands)
        checked = cpu_seconds() - solved
        print(
            f"{name:30} seed {n}  solve {solved - began:8.2f} s  verify {checked:8.2f} s"
            f"  {found.value:9.2f} ≤ {shown.bound:9.2f}",
            flush=True,
        )


def _listed(numbers, style):
    return ", ".join(format(number, style) for number in numbers)


def main():
    """Print a line for each graph and solver."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "parts",
        nargs="*",
        help="targets, peers, ratios, heuristics, certificates; the first two if none is named",
    )
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--gap", type=float, default=0.0)
    parser.add_argument("--most-players", type=int, default=max(RATIO_PLAYERS))
    parser.add_argument("--only", default="", help="families whose name has this text")
    asked = parser.parse_args()
    parts = asked.parts or ["targets", "peers"]
    solve(graph(24, 0), OURS, max_size=3)  # kernels are ready
    few = {"min_size": 2, "max_size": 3, "n_groups": 4}
    solve(graph(9, 0), OURS, **few)  # and what is loaded for small graphs
    for peer in PEERS if "ratios" in parts or "peers" in parts else ():
        solve(graph(9, 0), peer, formulation="full", **few)  # theirs as well
    if "ratios" in parts:
        seeds = range(asked.first, asked.first + asked.seeds)
        print_ratios(asked.seconds, seeds, asked.only, asked.most_players)
    if "heuristics" in parts:
        print_heuristics(asked.seconds, asked.only)
    if "certificates" in parts:
        print_certificates(asked.seconds, asked.gap, asked.only)
    if "targets" not in parts and "peers" not in parts:
        return
    for name, (n, demands) in TARGETS.items():
        if asked.only not in name:
            continue
        planted = 5 if "planted" in name else 0
        for seed in range(asked.first, asked.first + asked.seeds):
            matrix = graph(n, seed, planted)
            beside = "peers" in parts and n <= PEER_PLAYERS and seed == asked.first
            if "targets" not in parts and not beside:
                continue
            ours, proven, line = timed(matrix, asked.seconds, OURS, gap=asked.gap, **demands)
            print(f"{name:30} seed {seed}  {OURS:16}  {line}", flush=True)
            for peer in PEERS if beside else ():
                theirs, finished, line = timed(
                    matrix, asked.seconds, peer, formulation="full", **demands
                )
                ratio = f"  {'=' if finished else '>'} {theirs / ours:.0f} x ours" if proven else ""
                print(f"{name:30} seed {seed}  {peer:16}  {line}{ratio}", flush=True)


if __name__ == "__main__":
    main()
