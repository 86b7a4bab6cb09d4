"""Thousands of solves and hundreds of runs in one process: memory and open files stay flat."""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from solvers import available, solve, verify
from tests.reliability.graphs import case
from tests.reliability.soak import scaled

MEBIBYTE = 2**20

linux = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="memory and files are counted in /proc"
)

OWN = [
    ("auto", {}),
    ("branch-and-cut", {"certify": True}),
    ("local-search", {}),
    ("greedy", {}),
]
OTHERS = [(name, {}) for name, state in available().items() if state is True and name != "cbc"]


def resident() -> int:
    """Return the memory of this process in bytes, after what is free was given back."""
    gc.collect()
    # Freed memory stays with the allocator: how much is an accident, not a leak.
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def flat(work: Callable[[int], None], warm_up: int, count: int, allowed: int) -> dict[str, int]:
    """Do the work again and again; fail if memory or open files grow after the warm-up."""
    for number in range(warm_up):
        work(number)
    memory, files = resident(), open_files()
    for number in range(warm_up, warm_up + count):
        work(number)
    grown, more = resident() - memory, open_files() - files
    assert more <= 0, f"{more} more open files after {count} times"
    assert grown <= allowed, f"{grown / MEBIBYTE:.1f} MiB more memory after {count} times"
    return {"times": count, "KiB at the start": memory // 1024, "KiB more": grown // 1024}


def solve_once(number: int) -> None:
    subject = case(number % 500)
    solver, options = (OWN + OTHERS)[number % len(OWN + OTHERS)]
    if solver == "brute-force" and subject.graph.n_players > 9:
        solver = "auto"
    links = subject.links if number // 500 % 2 else {}
    solution = solve(subject.graph, solver, **options, **links)
    if solution.certificate is not None:
        verify(subject.graph, solution.structure, solution.certificate, **links)


def run_once(folder: Path) -> Callable[[int], None]:
    from learners import run

    algorithms = ("fedavg", "pfedsv", "cffl", "ifca", "ditto", "fedc2i")

    def once(number: int) -> None:
        # Every other run writes its folder: that is where files are opened.
        out = folder / "run" if number // len(algorithms) % 2 else None
        config = {
            "algorithm": algorithms[number % len(algorithms)],
            "clients": 3,
            "rounds": 2,
            "local_epochs": 1,
            "train_size": 30,
            "workers": 1,
            "seed": number,
        }
        assert 0 <= run(config, out).mean_test_accuracy <= 1
        if out is not None:
            shutil.rmtree(out)

    return once


@pytest.fixture(scope="module")
def kernels() -> None:
    """Load the kernels of a long search, which most small graphs do without: some 60 MiB, once."""
    upper = np.triu(np.random.default_rng(0).normal(0.05, 0.5, (24, 24)), 1)
    solve(upper + upper.T, "branch-and-cut", certify=True, time_limit=20)


@linux
@pytest.mark.usefixtures("kernels")
def test_a_hundred_solves_keep_nothing(record_property):
    record_property("counts: soak", {"solves": flat(solve_once, 60, 100, 8 * MEBIBYTE)})


@linux
@pytest.mark.usefixtures("kernels")
def test_some_runs_keep_nothing(tmp_path, record_property):
    pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
    counts = flat(run_once(tmp_path), 12, 6, 16 * MEBIBYTE)
    record_property("counts: soak", {"runs": counts})


@linux
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("kernels")
def test_two_thousand_solves_keep_nothing(record_property):
    counts = flat(solve_once, 200, scaled(2000), 16 * MEBIBYTE)
    record_property("counts: soak", {"solves": counts})


@linux
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("kernels")
def test_two_hundred_runs_keep_nothing(tmp_path, record_property):
    pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
    counts = flat(run_once(tmp_path), 36, scaled(200), 32 * MEBIBYTE)
    record_property("counts: soak", {"runs": counts})
