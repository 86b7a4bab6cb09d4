"""What constants of the solvers say of speed and of random graphs, measured again.

Run from the repository's root::

    python -m benchmarks.constants [NAME …] [--players 2000] [--edges 500000] [--instances FOLDER]

A line has a constant, what the code says, and what is measured here. Rates are CPU-seconds of a
second run, so compilation does not count. They are those of this machine: a rate that is off by a
factor of three makes a time limit a little less exact, and nothing wrong. ``HOPELESS`` is measured
only if it is named: it solves the instances of ``../shared/instances`` with 150 players or more,
ten CPU-seconds each, and prints how far above the value the bound is after each of the first looks.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from coalitions import SynergyGraph
from solvers import Limits, solve
from solvers.branch_and_cut import _cut_kernels, branch_and_cut, branching, lagrangian_dual, plain
from solvers.branch_and_cut import partition_problem as parts
from solvers.branch_and_cut import russian_dolls as dolls
from solvers.branch_and_price import _pricing_kernel
from solvers.heuristics import dense_search, greedy
from solvers.reductions import integer_weights
from solvers.solver import CLOSING_PER_PAIR, matrix_of, random_state

SHARED = Path(__file__).resolve().parents[2] / "shared" / "instances"


def random_graph(n, seed=0):
    """Return a graph of normal weights."""
    upper = np.triu(np.random.default_rng(seed).normal(0.0, 1.0, (n, n)), 1)
    return SynergyGraph(upper + upper.T)


def partition_problem(graph):
    """Return what branch-and-cut has to decide, and an incumbent."""
    scaled = integer_weights(graph.matrix[np.triu_indices(graph.n_players, 1)])
    weights = np.zeros((graph.n_players,) * 2, np.int64)
    weights[np.triu_indices(graph.n_players, 1)] = scaled.integers
    weights += weights.T
    return parts.PartitionProblem.undecided(weights), parts.PartitionIncumbent(weights, None, 0)


def circulant(n):
    """Return whole weights that look the same from every player."""
    signs = np.random.default_rng(1).choice([-1, 1], n // 2 + 1)
    gaps = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return np.where(gaps, signs[np.minimum(gaps, n - gaps)], 0)


def seconds_of(work):
    """Return the CPU-seconds of a second run."""
    for _ in range(2):
        began = time.process_time()
        work()
        taken = time.process_time() - began
    return taken


def preparation(asked):
    graph = random_graph(asked.players)

    def work():
        problem, incumbent = partition_problem(graph)
        parts.merges(parts.trimmed(problem.weights))
        incumbent.descend()

    return seconds_of(work) / asked.players**2


def closing(asked):
    weights = matrix_of(random_graph(asked.players))
    start = np.zeros(asked.players, np.int64)
    best = dense_search.improve(weights, start, 0, random_state(0))[1]
    again = seconds_of(lambda: dense_search.improve(weights, best, 0, random_state(0)))
    return again / asked.players**2


def unions(asked):
    n, rng = asked.edges // 20, np.random.default_rng(0)
    i, j = np.unique(np.sort(rng.integers(0, n, (asked.edges, 2)), axis=1), axis=0).T
    i, j = i[i < j], j[i < j]
    graph = SynergyGraph.from_edges(n, i, j, rng.normal(0.0, 1.0, len(i)))
    return seconds_of(lambda: greedy.united(graph, Limits())) / len(i)


def symmetric_steps(asked):
    weights, order = circulant(60), np.arange(60)
    steps = dolls.STEPS_FOR_SYMMETRY
    return seconds_of(lambda: _cut_kernels.russian_dolls(weights, order, 0, steps))


def plain_steps(asked):
    weights, steps = circulant(40), parts.ENOUGH_STEPS
    return seconds_of(lambda: plain.plain_russian_dolls(weights, 0, steps, lambda: False))


def pricing_steps(asked):
    """Return the CPU-seconds of the longest call that ends because its steps are spent."""
    longest, price = 0.0, _pricing_kernel.price

    def timed(*arguments):
        nonlocal longest
        began = time.process_time()
        ended = price(*arguments)
        if not ended:
            longest = max(longest, time.process_time() - began)
        return ended

    solve(random_graph(30), max_size=4)  # compiles
    _pricing_kernel.price = timed
    try:
        graph = random_graph(70)
        solve(graph, "branch-and-price", max_size=20, certify=True, time_limit=10.0)
    finally:
        _pricing_kernel.price = price
    return longest


def closed_graphs(asked):
    """Return how many of 300 random graphs of 20 players Russian dolls close in these steps."""
    closed = 0
    for seed in range(300):
        problem, incumbent = partition_problem(random_graph(20, seed))
        closed += dolls.closed_by_russian_dolls(problem, incumbent, dolls.STEPS_FOR_FEW)
    return closed


def conflicts(asked):
    """Return which part of all triangles begins as rows where weights are uniform."""
    upper = np.triu(np.random.default_rng(0).integers(-100, 101, (300, 300)), 1)
    problem, _ = partition_problem(SynergyGraph((upper + upper.T).astype(float)))
    return branch_and_cut.Forecast.of(
        problem, smoothing=branching.SMOOTH, most_rows=lagrangian_dual.MOST_TRIANGLES, seed=0
    ).conflicts


CONSTANTS = {
    "SECONDS_PER_PAIR": (branch_and_cut.SECONDS_PER_PAIR, preparation),
    "CLOSING_PER_PAIR": (CLOSING_PER_PAIR, closing),
    "SECONDS_PER_EDGE": (greedy.SECONDS_PER_EDGE, unions),
    "STEPS_FOR_SYMMETRY": (0.3, symmetric_steps),
    "ENOUGH_STEPS": (0.7, plain_steps),
    "STEPS_AT_ONCE": (0.25, pricing_steps),
    "STEPS_FOR_FEW": (300, closed_graphs),
    "RANDOM": (0.21, conflicts),
}


def looks_of(path):
    """Return whether an instance is proven in ten CPU-seconds, and the gaps of the first looks."""
    looks, is_hopeless = [], branch_and_cut.is_hopeless

    def noted(number, bound, value):
        looks.append((bound - value) / max(value, 1))
        return is_hopeless(number, bound, value)

    branching.is_hopeless = noted
    try:
        with np.load(path) as file:
            graph = SynergyGraph(file["S"].astype(float))
        solution = solve(graph, "branch-and-cut", time_limit=10.0)
    finally:
        branching.is_hopeless = is_hopeless
    return solution.optimal, looks[: len(branch_and_cut.HOPELESS)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *CONSTANTS, "HOPELESS"])
    parser.add_argument("--players", type=int, default=2000)
    parser.add_argument("--edges", type=int, default=500_000)
    parser.add_argument("--instances", type=Path, default=SHARED)
    asked = parser.parse_args()
    print(f"{'constant':20} {'says':>9} {'measured':>9}")
    for name, (says, measure) in CONSTANTS.items():
        if not asked.names or name in asked.names:
            print(f"{name:20} {says:9.2g} {measure(asked):9.2g}", flush=True)
    if "HOPELESS" in asked.names:
        time.monotonic = time.process_time
        rows = json.loads((asked.instances / "index.json").read_text())
        for row in sorted(rows, key=lambda row: row["n"]):
            if row["n"] >= 150:
                proven, looks = looks_of(asked.instances / row["file"])
                shown = " ".join(f"{look:.2f}" for look in looks)
                print(f"{row['name']:20} {row['n']:5} {'proven' if proven else 'open':6} {shown}")


if __name__ == "__main__":
    main()
