"""Whether time limits hold: how late every solver comes back, and how long it does not look.

Run from the repository's root::

    python benchmarks/time_limits.py [graphs] [teams] [questions] [--limits 2 5 20] [--only TEXT …]
        [--solvers NAME …] [--cpu] [--quick] [--instances FOLDER]

``graphs`` are the instances of ``../shared/instances`` (or ``--instances FOLDER``), with and
without a certificate; ``teams`` are random graphs of 60 to 300 players with limited sizes, counts,
loads and roles; ``questions`` are all other calls that take a time limit. A row says how long a
call took on the wall and in CPU-seconds, by how much it came late (*over*), the longest time
between two looks at the clock (*blind*), and where that ended. A call is late if it takes more
than limit + max(1 s, 10 %).

On a machine that others use as well, take ``--cpu``: the clock of this process is then its CPU
time, and so are *over* and *blind*; back-ends, which have clocks of their own, are left out. With
``--quick`` each kind of call is made once, on one graph or two. A call that took less than half of
its limit would not meet a longer one either, so it is made once. Nothing takes much more than the
sum of its limits, which is printed first. Kernels are compiled before; their time is not counted.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

# This folder comes first on the path, and its files must not hide packages of the same names.
sys.path[:] = [folder for folder in sys.path if Path(folder) != Path(__file__).resolve().parent]

from coalitions import CoalitionError, SynergyGraph, TableGame  # noqa: E402
from coalitions.runtime import clock  # noqa: E402
from solvers import (  # noqa: E402
    available,
    explain,
    fragile,
    solve,
    solve_game,
    solve_overlapping,
    what_if,
)
from solvers.solver import Limits  # noqa: E402
from solvers.warm_up import warm_up  # noqa: E402

SHARED = Path(__file__).resolve().parents[2] / "shared" / "instances"

OURS = ("auto", "local-search", "greedy")
BACK_ENDS = ("highs", "cp-sat", "cbc")

LATE, LATE_SHARE = 1.0, 0.1
"""A call may be late by so many seconds, or by this part of its limit if that is more."""


class Looks:
    """The longest time between two looks at the clock, and who looked after it."""

    def __init__(self):
        self._expired, self._left = Limits.expired.fget, Limits.seconds_left.fget
        self.begin()

    def begin(self):
        """Forget what was before."""
        self.last, self.longest, self.where = clock(), 0.0, ""

    def look(self):
        """Note a look."""
        now = clock()
        if now - self.last > self.longest:
            self.longest, self.where = now - self.last, _callers()
        self.last = now

    def watch(self):
        """Note every look from now on."""

        def noted(read):
            def get(limits):
                self.look()
                return read(limits)

            return property(get)

        Limits.expired, Limits.seconds_left = noted(self._expired), noted(self._left)


def _callers():
    """Return the functions that led to a look, the innermost last."""
    frame, names = sys._getframe(3), []
    while frame is not None and len(names) < 4:
        code = frame.f_code
        if "/solvers/" in code.co_filename and "lambda" not in code.co_name:
            names.append(f"{Path(code.co_filename).stem}.{code.co_name}")
        frame = frame.f_back
    return " < ".join(names)


def cpu_seconds():
    """CPU time of this process and of the children that have ended."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in usage)


def random_graph(n, seed=0, mean=0.1, groups=0):
    """Return a graph of noise with two decimals, and of hidden groups if there are any."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(mean, 1, (n, n))
    if groups:
        group = rng.integers(0, groups, n)
        weights += 2.0 * (group[:, None] == group) - 1.0
    upper = np.triu(weights.round(2), 1)
    return SynergyGraph(upper + upper.T)


def instance_calls(folder, limits, solvers, only, quick):
    """Give (what is solved, by whom, limit, call) for the instances of a folder."""
    rows = json.loads((folder / "index.json").read_text())
    chosen = [row for row in rows if any(text in row["name"] for text in only)]
    if quick:
        chosen = [row for row in chosen if row["name"] in ("CPn45-1", "p500-100-1")]
    for row in sorted(chosen, key=lambda row: row["n"]):

        def graph(row=row):
            with np.load(folder / row["file"]) as file:
                return SynergyGraph(file["S"].astype(float))

        for limit in limits:
            for solver in solvers:
                yield row["name"], solver, limit, _solving(graph, solver, limit)
            if "auto" in solvers:
                call = _solving(graph, "auto", limit, certificate=True)
                yield row["name"], "certificate", limit, call


def _solving(graph, solver, limit, **demands):
    """Return a call whose graph is made outside of the time that is measured."""

    def prepared():
        made = graph()
        made.edges  # noqa: B018 (what a graph remembers belongs to its making)
        return lambda: solve(made, solver, time_limit=limit, **demands)

    return prepared


TEAMS = {
    "at most 4": lambda n: {"max_size": 4},
    "at most 8": lambda n: {"max_size": 8},
    "3 to 5": lambda n: {"min_size": 3, "max_size": 5, "n_groups": n // 4},
    "at most 15": lambda n: {"max_size": 15},
    "at most n / 3": lambda n: {"max_size": n // 3},
    "4 teams": lambda n: {"n_groups": 4},
    "roles": lambda n: {"max_size": 6, "at_least_one_of": [range(n // 3), range(n // 3, n)]},
    "loads": lambda n: {"weights": [1 + i % 7 for i in range(n)], "max_weight": 20},
}


def team_calls(limits, solvers, only, quick):
    """Give (what is solved, by whom, limit, call) for graphs with demands on coalitions."""
    for n in (60,) if quick else (60, 100, 150, 200, 300):
        for name, demands_of in TEAMS.items():
            what = f"{n}, {name}"
            if not any(text in what for text in only):
                continue
            demands = demands_of(n)
            for limit in limits:
                for solver in solvers:
                    more = {"formulation": "full"} if solver in BACK_ENDS else {}
                    call = _solving(
                        lambda n=n: random_graph(n, seed=n), solver, limit, **demands, **more
                    )
                    yield what, solver, limit, call


def question_calls(limits, only, quick):
    """Give (what is asked, by whom, limit, call) for the other calls that take a time limit."""
    for limit in limits:
        for what, make, question in _questions(limit, quick):
            if any(text in what for text in only):
                yield what, "auto", limit, _asking(make, question)


def _asking(make, question):
    """Return a call about something that is made outside of the time that is measured."""

    def prepared():
        made = make()
        return lambda: question(made)

    return prepared


def _questions(limit, quick):
    """Give (what is asked, what makes the thing it is about, the question)."""
    for n in (50,) if quick else (50, 120, 300):

        def noise(n=n):
            return random_graph(n, seed=n)

        def solved(n=n):
            graph = random_graph(n, seed=n)
            return graph, solve(graph, time_limit=1.0)

        chain = [(k, k + 1) for k in range(4, n - 1)]
        links = {"must_link": [(0, 1), (2, 3)], "cannot_link": chain}
        for what, demands in {
            "n_best": {"n_best": 20},
            "n_best teams": {"n_best": 5, "max_size": 4},
            "all_optimal": {"all_optimal": True},
            "canonical": {"canonical": True},
            "links": links,
        }.items():
            yield f"{what}, {n}", noise, lambda g, d=demands: solve(g, time_limit=limit, **d)
        yield (
            f"what_if, {n}",
            noise,
            lambda g: what_if(g, together=[(0, 1, 2)], time_limit=limit),
        )
        yield f"later proof, {n}", noise, lambda g: solve(g, time_limit=limit / 2).certificate
        yield (
            f"later proof of teams, {n}",
            noise,
            lambda g: solve(g, max_size=12, time_limit=limit / 2).certificate,
        )
        yield f"explain, {n}", solved, lambda pair: explain(*pair, 0, time_limit=limit)
        yield f"fragile, {n}", solved, lambda pair: fragile(*pair, time_limit=limit)
    for n in (25,) if quick else (20, 40, 62):
        for what, demands in {
            "overlapping": {},
            "overlapping, 3": {"memberships": 3, "meetings": None},
            "overlapping, small": {"max_size": 4},
        }.items():
            yield (
                f"{what}, {n}",
                lambda n=n: random_graph(n, seed=n),
                lambda g, d=demands: solve_overlapping(g, time_limit=limit, **d),
            )
    for n in (18,) if quick else (18, 20, 22, 25):
        for what, demands in {"game": {}, "game, 5 blocks": {"n_groups": 5}}.items():
            if n <= 20 or not demands:
                yield (
                    f"{what}, {n}",
                    lambda n=n: TableGame(np.random.default_rng(0).normal(size=2**n)),
                    lambda g, d=demands: solve_game(g, time_limit=limit, **d),
                )


def measured(looks, prepared, limit):
    """Return wall and CPU seconds, those beyond the limit, the longest blind time and its end."""
    call = prepared()
    looks.begin()
    began, wall, cpu = clock(), time.perf_counter(), cpu_seconds()
    ending = ""
    try:
        call()
    except CoalitionError as error:
        ending = f"{type(error).__name__}: {error}"[:50]
    took = clock() - began
    looks.look()
    return (
        time.perf_counter() - wall,
        cpu_seconds() - cpu,
        took - limit,
        looks.longest,
        ending or looks.where,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["graphs", "teams", "questions"])
    parser.add_argument("--limits", type=float, nargs="+", default=[2.0, 5.0, 20.0])
    parser.add_argument("--only", nargs="*", default=[""], help="parts of names")
    parser.add_argument("--solvers", nargs="*", help="names; all that are here otherwise")
    parser.add_argument("--cpu", action="store_true", help="measure by CPU time")
    parser.add_argument("--quick", action="store_true", help="a call of each kind")
    parser.add_argument("--instances", type=Path, default=SHARED)
    asked = parser.parse_args()
    solvers = asked.solvers
    if solvers is None:
        backs = () if asked.cpu else tuple(b for b in BACK_ENDS if available()[b] is True)
        solvers = (*OURS, *backs)
    for _ in warm_up():
        pass
    if asked.cpu:
        time.monotonic = time.process_time
    rows = []
    if "graphs" in asked.parts:
        rows += instance_calls(asked.instances, asked.limits, solvers, asked.only, asked.quick)
    if "teams" in asked.parts:
        rows += team_calls(asked.limits, solvers, asked.only, asked.quick)
    if "questions" in asked.parts:
        rows += question_calls(asked.limits, asked.only, asked.quick)
    print(f"{len(rows)} calls, at most {sum(row[2] for row in rows) / 60:.0f} minutes")
    print(f"{'what':22} {'solver':12} {'limit':>5} {'wall':>7} {'CPU':>7} {'over':>7} {'blind':>6}")
    looks = Looks()
    looks.watch()
    n_late, latest, blindest, done = 0, -np.inf, 0.0, set()
    for what, solver, limit, prepared in sorted(rows, key=lambda row: row[2]):
        if (what, solver) in done:
            continue
        wall, cpu, over, blind, where = measured(looks, prepared, limit)
        if over < -limit / 2:
            done.add((what, solver))
        late = over > max(LATE, LATE_SHARE * limit)
        n_late, latest, blindest = n_late + late, max(latest, over), max(blindest, blind)
        print(
            f"{what:22} {solver:12} {limit:5g} {wall:7.2f} {cpu:7.2f} {over:7.2f} {blind:6.2f}"
            f"  {'LATE ' if late else ''}{where}",
            flush=True,
        )
    print(
        f"{len(rows)} calls, {len(done)} of them done in half of a limit: {n_late} late, the latest"
        f" by {latest:.2f} s; the longest time between two looks at the clock {blindest:.2f} s"
    )


if __name__ == "__main__":
    main()
