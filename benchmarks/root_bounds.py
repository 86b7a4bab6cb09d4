"""How far each family of inequalities brings the bound of the dual, before any branching.

Run from the repository's root::

    python benchmarks/root_bounds.py [INSTANCE …] [--seconds 20] [--instances FOLDER]

Four bounds for each instance of ``../shared/instances``: with triangles alone, with cuts of one
centre (2-partition inequalities with one player in S), with these and odd wheels, and with cuts of
one centre and of two sides (any S and T). An odd wheel is a centre c and a cycle of an odd number k
of players: the sum of x_ci less that of x_ij along the cycle is at most (k − 1)/2; they
are found exactly, by shortest odd walks for each centre, and are in no solver. Each bound is the
lowest in ``--seconds`` CPU-seconds; a family that stalls ends earlier. Compilation is not counted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from scipy.sparse.csgraph import dijkstra

# This folder comes first on the path, and its files must not hide packages of the same names.
sys.path[:] = [folder for folder in sys.path if Path(folder) != Path(__file__).resolve().parent]

from solvers.branch_and_cut.dual import kernels  # noqa: E402
from solvers.branch_and_cut.dual.ascent import BOLDNESS, Ascent  # noqa: E402
from solvers.branch_and_cut.dual.cuts import violated_cuts, violated_partitions  # noqa: E402
from solvers.branch_and_cut.dual.multipliers import Multipliers  # noqa: E402
from solvers.branch_and_cut.problem import Problem  # noqa: E402
from solvers.branch_and_cut.tree import CHUNK, SHARP, SHARPEST, SMOOTH, WARM_UP  # noqa: E402
from solvers.seeds import random_state  # noqa: E402

SHARED = Path(__file__).resolve().parents[2] / "shared" / "instances"

NAMES = ("neg-c-60", "neg-c-10", "neg-c-00")

FAMILIES = ("triangles", "one centre", "odd wheels", "two sides")


class WheelAscent(Ascent):
    """The dual with odd wheels beside its cuts: rows of pairs, signs and a right-hand side."""

    def __init__(self, *arguments):
        self.wheels = []
        super().__init__(*arguments)

    def add_wheels(self, wheels):
        """Take in wheels (a centre and its cycle), each once, in place of those that were idle."""
        n_cuts, m = len(self._cuts), self.problem.n_groups
        kept = np.flatnonzero(self._cut_y[n_cuts:] > 0.0) if self.wheels else []
        known = [self.wheels[k] for k in kept]
        new = [wheel for wheel in dict.fromkeys(wheels) if wheel not in known]
        for name in ("_cut_y", "_previous_cut_y"):
            values = getattr(self, name)
            rows = np.concatenate([values[:n_cuts], values[n_cuts:][kept], np.zeros(len(new))])
            setattr(self, name, rows.astype(np.float32))
        self.wheels = known + new
        pairs, signs = [self._own[0]], [self._own[1]]
        for centre, *cycle in self.wheels:
            ends = [(centre, i) for i in cycle] + list(
                zip(cycle, cycle[1:] + cycle[:1], strict=True)
            )
            pairs.append(np.array([min(i, j) * m + max(i, j) for i, j in ends], np.int32))
            signs.append(np.repeat(np.float32([1.0, -1.0]), len(cycle)))
        sizes = [len(row) for row in pairs[1:]]
        self._cut_pointer = np.append(self._own[2], self._own[2][-1] + np.cumsum(sizes, dtype=int))
        self._cut_pairs, self._signs = np.concatenate(pairs), np.concatenate(signs)
        halves = np.array([(len(wheel) - 2) // 2 for wheel in self.wheels], np.int64)
        self._heads = np.append(self._heads[:n_cuts], halves)
        degree = np.bincount(np.append(self._pairs.ravel(), self._cut_pairs), minlength=m * m)
        self._steps = kernels.step_lengths(self._pairs, degree.astype(np.int32), 4.0 * BOLDNESS)
        if len(self._cut_pairs):
            crowd = np.add.reduceat(degree[self._cut_pairs], self._cut_pointer[:-1])
            self._cut_steps = (4.0 * BOLDNESS / crowd).astype(np.float32)

    def update_cuts(self, cuts, heads, patience):
        """Set the wheels aside while cuts change."""
        n_cuts, aside = len(self._cuts), (self._cut_y, self._previous_cut_y)
        self._heads, self._cut_y = self._heads[:n_cuts], self._cut_y[:n_cuts]
        self._previous_cut_y = self._previous_cut_y[:n_cuts]
        super().update_cuts(cuts, heads, patience)
        self._cut_y = np.append(self._cut_y, aside[0][n_cuts:])
        self._previous_cut_y = np.append(self._previous_cut_y, aside[1][n_cuts:])

    def _index(self):
        super()._index()
        self._own = self._cut_pairs, self._signs, self._cut_pointer


def odd_wheels(x, at_most):
    """Return violated odd wheels (centre, *cycle), the deepest first."""
    found = []
    for centre in range(len(x)):
        rim = np.flatnonzero((x[centre] > 0.01) & (x[centre] < 0.99))
        half, r = x[centre, rim] / 2.0, len(rim)
        # A closed walk of odd length below one half is a violated wheel; triangles keep it ≥ 0.
        length = np.maximum(0.5 - half[:, None] - half + x[np.ix_(rim, rim)], 1e-6)
        np.fill_diagonal(length, 0.0)
        # Every step goes from one copy of the rim to the other: back in the other one, it is odd.
        doubled = np.block([[np.zeros((r, r)), length], [length, np.zeros((r, r))]])
        far, before = dijkstra(doubled, indices=range(r), return_predecessors=True, limit=0.49)
        for start in np.flatnonzero(np.isfinite(far[np.arange(r), r + np.arange(r)])).tolist():
            walk, place = [start], int(before[start, r + start])
            while place != start:
                walk.append(place % r)
                place = int(before[start, place])
            if len(set(walk)) == len(walk) and min(walk) == start:
                depth = (0.5 - far[start, r + start]) / len(walk) ** 0.5
                found.append((depth, (centre, *rim[walk].tolist())))
    return [wheel for _, wheel in sorted(found, reverse=True)[:at_most]]


def root_bound(weights, family, seconds):
    """Return the lowest bound that a family gives, and the CPU-seconds it took."""
    n, scale, state = len(weights), float(np.abs(weights).max()), random_state(0, 1)
    began = time.process_time()
    ascent = WheelAscent(Problem.undecided(weights), Multipliers.none(), SMOOTH * scale, kernels)
    ascent.run(1)
    for left in range(WARM_UP, 0, -CHUNK):
        ascent.update_triangles(0.02, lambda: None)
        low = ascent.run(CHUNK, (SHARP * scale / (ascent.mu * ascent.scale)) ** (1.0 / left))
    bounds = [low]
    while time.process_time() - began < seconds:
        if not ascent.wheels:
            ascent.update_triangles(0.01, lambda: None)
        point = ascent.point
        if family != "triangles":
            options = {"violation": 0.02, "state": state}
            found = [violated_cuts(point, starts=10, at_most=6 * n, tools=kernels, **options)]
            if family == "two sides":
                found.append(violated_partitions(point, starts=10 * n, at_most=3 * n, **options))
            ascent.update_cuts(*map(np.concatenate, zip(*found, strict=True)), 4)
        if family == "odd wheels":
            ascent.update_triangles(0.01, lambda: None)
            ascent.add_wheels(odd_wheels(point, 3 * n))
        bounds.append(ascent.run(60))
        low = min(low, bounds[-1])
        # Half the smoothing whenever eight rounds have brought less than 0.03 % of the bound.
        if len(bounds) > 8 and bounds[-9] - bounds[-1] < 3e-4 * low:
            if ascent.mu * ascent.scale < 2.0 * SHARPEST * scale:
                break
            ascent.mu /= 2.0
            bounds.clear()
    return low, time.process_time() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--instances", type=Path, default=SHARED)
    asked = parser.parse_args()
    rows = {row["name"]: row for row in json.loads((asked.instances / "index.json").read_text())}
    small = np.triu(np.random.default_rng(0).integers(-9, 10, (25, 25)), 1)
    for family in FAMILIES:  # compiles, or loads what is compiled
        root_bound(small + small.T, family, 0.5)
    print(f"{'instance':10} {'n':>4} {'best':>6}", *(f"| {f:>11} {'CPU s':>6}" for f in FAMILIES))
    for name in asked.names:
        row = rows[name]
        with np.load(asked.instances / row["file"]) as file:
            weights = file["S"].astype(np.int64)
        print(f"{name:10} {len(weights):4} {row['best_known'] or '–':>6}", end="")
        for family in FAMILIES:
            low, spent = root_bound(weights, family, asked.seconds)
            print(f" | {low:11.1f} {spent:6.1f}", end="", flush=True)
        print()


if __name__ == "__main__":
    main()
