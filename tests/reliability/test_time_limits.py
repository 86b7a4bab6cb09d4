"""Time limits and Ctrl-C: every solver ends when it is told to, with the best it has."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from coalitions import CoalitionStructure, SynergyGraph
from solvers import available, solve

BACKENDS = [name for name in ("cbc", "cp-sat", "highs") if available()[name] is True]
OURS = ["greedy", "local-search", "branch-and-cut", "auto"]


def dense(n: int) -> SynergyGraph:
    """Return a graph of noise: nothing can be proven, and models are as large as they get."""
    upper = np.triu(np.random.default_rng(0).normal(0, 1, (n, n)), 1)
    return SynergyGraph(upper + upper.T)


def planted(n: int) -> SynergyGraph:
    """Return a graph of groups of twenty, with noise."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, max(2, n // 20), n)
    upper = np.where(group[:, None] == group, 1.0, -1.0) + rng.normal(0, 0.7, (n, n))
    upper = np.triu(np.round(upper, 2), 1)
    return SynergyGraph(upper + upper.T)


def sparse(n: int) -> SynergyGraph:
    """Return a graph of ten random edges a player."""
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, n, (2, 10 * n))
    keys = np.unique((i * n + j)[i < j])
    return SynergyGraph.from_edges(n, keys // n, keys % n, rng.normal(0.1, 1, len(keys)))


def spent() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    """Compile what is needed: the first time on a machine is not what is measured."""
    for solver in OURS:
        for graph in (dense(60), sparse(400)):
            solve(graph, solver, time_limit=0.2)


@pytest.mark.parametrize("solver", BACKENDS)
@pytest.mark.parametrize("n", [40, 100, 150])
def test_a_back_end_keeps_its_time_limit_and_is_no_worse_than_greedy(solver, n):
    graph = dense(n)
    began = time.monotonic()
    solution = solve(graph, solver, time_limit=1)
    # 1 + 1 s on a machine of our own, doubled for one that is shared; it was 4 to 68 s.
    assert time.monotonic() - began < 4
    assert solve(graph, "greedy").value <= solution.value <= solution.bound
    assert solution.bound <= graph.positive_weight


@pytest.mark.parametrize("solver", BACKENDS)
def test_a_model_that_cannot_be_built_in_time_is_not_built(solver):
    solution = solve(dense(250), solver, time_limit=1)
    assert solution.stats["model"] == "too large for the time limit"
    assert 0 < solution.value < solution.bound


@pytest.mark.parametrize("solver", BACKENDS)
def test_a_warm_start_is_never_lost(solver):
    graph = planted(100)
    best = solve(graph, "local-search", time_limit=1)
    assert best.value > solve(graph, "greedy").value - 1e-9
    again = solve(graph, solver, time_limit=0.3, warm_start=best.structure)
    assert again.value >= best.value - 1e-9


@pytest.mark.parametrize("solver", BACKENDS)
def test_a_warm_start_of_the_sizes_asked_for_is_kept(solver):
    graph, halves = dense(60), CoalitionStructure([range(30), range(30, 60)])
    solution = solve(
        graph, solver, formulation="full", n_groups=2, time_limit=0.2, warm_start=halves
    )
    assert len(solution.structure) == 2
    assert graph.value(halves) <= solution.value <= solution.bound


def interrupted(path, solver: str, after: float) -> tuple[int, float, str]:
    """Send Ctrl-C's signal to `coalitions solve`; return its exit code, its delay, its output."""
    starter = "import sys; from cli.app import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", starter, "solve", str(path), "--solver", solver],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        time.sleep(after)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=15)[0]
        return process.returncode, time.monotonic() - sent, output
    finally:
        process.kill()


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("solver", [*BACKENDS, "branch-and-cut"])
@pytest.mark.parametrize("n", [60, 100])
def test_ctrl_c_ends_a_solver_with_the_best_so_far(tmp_path, solver, n):
    path = tmp_path / "graph.npy"
    dense(n).write(path)
    code, delay, output = interrupted(path, solver, 5.0)
    assert code == 130, output
    assert "synergy inside" in output
    assert "not proven" in output
    assert delay < 5, "it was for ever with HiGHS"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("make", [dense, planted, sparse], ids=lambda make: make.__name__)
@pytest.mark.parametrize("n", [200, 1000, 3000, 5000])
def test_every_solver_keeps_its_time_limit_up_to_5000_players(make, n, capsys):
    graph = make(n)
    floor = solve(graph, "greedy", time_limit=2).value
    table = []
    for solver in [*OURS, *BACKENDS]:
        began, before = time.monotonic(), spent()
        solution = solve(graph, solver, time_limit=2)
        wall, cpu = time.monotonic() - began, spent() - before
        table.append((solver, wall, cpu, solution))
    with capsys.disabled():
        for solver, wall, cpu, solution in table:
            print(  # noqa: T201 (the table is what the slow part is for)
                f"\n{make.__name__:8} {n:5} {solver:15} wall {wall:5.2f} cpu {cpu:5.2f}"
                f" value {solution.value:12.2f} bound {solution.bound:12.2f}"
                f" load {os.getloadavg()[0]:.1f}",
                end="",
            )
    for solver, wall, cpu, solution in table:
        # On a machine that others use as well, only the CPU time is ours.
        assert min(wall, cpu) <= 3.0, solver
        assert solution.value >= 0.98 * floor, solver
        assert solution.bound >= solution.value, solver
