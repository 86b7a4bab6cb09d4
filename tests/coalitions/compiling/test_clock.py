"""The clock that does not count what kernels take to compile."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from coalitions import SynergyGraph
from coalitions import runtime as clock_module
from coalitions.runtime import clock, making_ready, ready_seconds, when_long
from solvers import solve
from solvers.solver import Answer, Limits, Solver


def test_the_clock_stands_still_while_kernels_are_made_ready():
    began, waited = clock(), ready_seconds()
    with making_ready(), making_ready(compiling=True):  # an inner one is not counted twice
        time.sleep(0.1)
    assert ready_seconds() - waited == pytest.approx(0.1, abs=0.05)
    assert clock() - began < 0.05


def test_numba_at_work_is_noticed():
    from coalitions.compiling import njit

    @njit
    def new(x):
        return x + 1

    waited = ready_seconds()
    assert new(1) == 2
    compiling = ready_seconds() - waited
    assert compiling > 0.0
    assert new(2) == 3
    assert ready_seconds() - waited == compiling


@pytest.fixture
def said(monkeypatch):
    """Return what somebody who waits is told, where a tenth of a second is long."""
    monkeypatch.setattr(clock_module, "PATIENCE", 0.1)
    monkeypatch.setattr(clock_module, "_compiled", 0.0)
    words = []
    when_long(lambda: words.append("compiling"))
    yield words
    when_long(None)


def test_compiling_inside_of_making_ready_is_told(said):
    with making_ready():
        time.sleep(0.2)
        assert said == []  # nothing is compiled so far
        with making_ready(compiling=True):
            time.sleep(0.2)
    assert said == ["compiling"]


NEEDS_KERNELS = """
import time
import numpy as np
import coalitions.runtime as clock
import solvers.heuristics.greedy  # all but the kernels

began = time.monotonic()
import solvers.heuristics._greedy_kernels
imported = time.monotonic() - began
assert clock.ready_seconds() > 0.5 * imported, (clock.ready_seconds(), imported)

waited, began = clock.ready_seconds(), time.monotonic()
from coalitions.compiling import copy_into
copy_into(np.zeros(3), np.ones(3))
took = time.monotonic() - began
assert 0.5 * took < clock.ready_seconds() - waited <= took, (clock.ready_seconds() - waited, took)
"""


def test_what_is_imported_and_loaded_from_the_cache_counts_as_waiting(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for _ in ("compiled", "loaded"):
        subprocess.run([sys.executable, "-c", NEEDS_KERNELS], check=True, env=environment)


@dataclass(frozen=True)
class WithKernels(Solver):
    """A method whose kernels take a while to compile, and which then looks at its limits."""

    exact: ClassVar[bool] = False

    def search(self, graph, *, limits: Limits, warm_start=None, sizes=None) -> Answer:
        with making_ready(compiling=True):
            time.sleep(0.3)
        assert not limits.expired
        assert 0.0 < limits.seconds_left <= 0.2
        return Answer(np.zeros(graph.n_players, np.int64), 10.0)


def test_a_time_limit_starts_when_kernels_are_ready_and_stats_say_how_long_that_took():
    graph = SynergyGraph([[0, 3, -1], [3, 0, 2], [-1, 2, 0]])
    solution = solve(graph, WithKernels(), time_limit=0.2)
    assert solution.seconds < 0.2
    assert solution.stats["compile_seconds"] >= 0.3
    assert "compile_seconds" not in solve(graph, "brute-force").stats


@pytest.mark.parametrize(("seconds", "told"), [(0.2, 1), (0.01, 0)])
def test_who_waits_long_is_told_once(said, seconds, told):
    for _ in range(2):
        with making_ready(compiling=True):
            time.sleep(seconds)
    assert len(said) == told


def test_short_compilations_add_up(said):
    for _ in range(6):
        with making_ready(compiling=True):
            time.sleep(0.04)
    assert said == ["compiling"]
