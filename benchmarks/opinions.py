"""How long ten best structures, fragile pairs and overlapping coalitions take.

Run from the repository's root::

    python -m benchmarks.opinions [ranking] [fragile] [overlapping] [--seconds 60] [--seed 0]

Random graphs have synergies normal(0.1, 1) with two decimals, planted ones groups of five. Times
are CPU-seconds of this process, one run each, after `coalitions warm-up`.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from coalitions import SynergyGraph
from solvers import fragile, solve, solve_overlapping


def graph_of(weights):
    upper = np.triu(np.round(weights, 2), 1)
    return SynergyGraph(upper + upper.T)


def normal(n, seed):
    return graph_of(np.random.default_rng(seed).normal(0.1, 1, (n, n)))


def planted(n, seed):
    groups = np.kron(np.eye(n // 5), np.ones((5, 5)))
    return graph_of(np.random.default_rng(seed).normal(-0.5, 0.5, (n, n)) + 1.2 * groups)


def ranking(seconds, seed):
    print("ten best structures")
    cases = [(f"random {n}", normal(n, seed), {}) for n in (15, 20, 25, 30)]
    cases += [("planted 60", planted(60, seed), {})]
    cases += [(f"random {n}, at most 4", normal(n, seed), {"max_size": 4}) for n in (20, 30)]
    for name, graph, demands in cases:
        started = time.process_time()
        solution = solve(graph, n_best=10, time_limit=seconds, **demands)
        proven = sum(each.optimal for each in (solution, *solution.others))
        print(f"{name:22} {proven:3} proven {time.process_time() - started:8.2f} s", flush=True)


def fragile_pairs(seconds, seed):
    print("margins of all pairs")
    for n in (15, 20, 25):
        graph = normal(n, seed)
        solution = solve(graph, time_limit=seconds)
        started = time.process_time()
        pairs = fragile(graph, solution, time_limit=seconds)
        exact = sum(pair.exact for pair in pairs)
        spent = time.process_time() - started
        print(f"random {n:15} {exact:3} of {len(pairs)} exact {spent:8.2f} s", flush=True)


def overlapping(seconds, seed):
    print("two memberships")
    cases = [(12, None, 0.0), (15, None, 0.0), (15, None, 0.3), (18, None, 0.3)]
    cases += [(30, 4, 0.0), (40, 4, 0.3), (60, 4, 0.3)]
    for n, max_size, cost in cases:
        started = time.process_time()
        found = solve_overlapping(normal(n, seed), 2, cost, max_size=max_size, time_limit=seconds)
        name = f"random {n}, " + (f"at most {max_size}, " if max_size else "") + f"cost {cost}"
        spent = time.process_time() - started
        print(f"{name:32} gap {found.gap:7.2%} {spent:8.2f} s", flush=True)


PARTS = {"ranking": ranking, "fragile": fragile_pairs, "overlapping": overlapping}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of each")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for part in given.parts or PARTS:
        PARTS[part](given.seconds, given.seed)


if __name__ == "__main__":
    main()
