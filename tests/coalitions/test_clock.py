"""The clock that does not count what kernels take to compile."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from coalitions import SynergyGraph
from coalitions import runtime as clock_module
from coalitions.runtime import clock, making_ready, ready_seconds, when_long
from solvers import Answer, Limits, Solver, solve


class Hands:
    """A clock that moves only when it is told to; a busy machine does not matter."""

    def __init__(self):
        self.at = time.monotonic()

    def __call__(self):
        return self.at

    def forward(self, seconds):
        self.at += seconds


@pytest.fixture
def hands(monkeypatch):
    """Return the clock of this process, which stands still."""
    moved = Hands()
    monkeypatch.setattr(time, "monotonic", moved)
    return moved


def test_the_clock_stands_still_while_kernels_are_made_ready(hands):
    began, waited = clock(), ready_seconds()
    with making_ready(), making_ready(compiling=True):  # an inner one is not counted twice
        hands.forward(30.0)
    assert ready_seconds() - waited == pytest.approx(30.0)
    assert clock() == pytest.approx(began)
    hands.forward(2.0)
    assert clock() - began == pytest.approx(2.0)


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
    words = Words()
    when_long(words.tell)
    yield words
    when_long(None)


class Words:
    """What was told so far, and how to wait for it."""

    def __init__(self):
        self.told = []
        self._first = threading.Event()

    def tell(self):
        self.told.append("compiling")
        self._first.set()

    def are_awaited(self):
        """Wait until something is told, as long as it takes on a busy machine."""
        return self._first.wait(60.0)


def test_compiling_inside_of_making_ready_is_told(said):
    with making_ready():
        time.sleep(0.2)
        assert said.told == []  # nothing is compiled so far
        with making_ready(compiling=True):
            assert said.are_awaited()
    assert said.told == ["compiling"]


NEEDS_KERNELS = """
import time
time.monotonic = time.process_time  # the machine may be busy
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
            time.monotonic.forward(300.0)
        assert not limits.expired
        assert limits.seconds_left == pytest.approx(0.2)
        return Answer(np.zeros(graph.n_players, np.int64), 10.0)


@pytest.mark.usefixtures("hands")
def test_a_time_limit_starts_when_kernels_are_ready_and_stats_say_how_long_that_took():
    graph = SynergyGraph([[0, 3, -1], [3, 0, 2], [-1, 2, 0]])
    solution = solve(graph, WithKernels(), time_limit=0.2)
    assert solution.seconds < 0.2
    assert solution.stats["compile_seconds"] == pytest.approx(300.0)
    assert "compile_seconds" not in solve(graph, "brute-force").stats


def test_who_waits_long_is_told_once(said):
    for _ in range(2):
        with making_ready(compiling=True):
            assert said.are_awaited()
    assert said.told == ["compiling"]


def test_who_waits_for_a_moment_is_told_nothing(said, monkeypatch):
    monkeypatch.setattr(clock_module, "PATIENCE", 30.0)
    for _ in range(2):
        with making_ready(compiling=True):
            time.sleep(0.01)
    assert said.told == []


def test_short_compilations_add_up(said, hands, monkeypatch):
    monkeypatch.setattr(clock_module, "PATIENCE", 100.0)
    for _ in range(3):
        with making_ready(compiling=True):
            hands.forward(40.0)
    assert said.told == []  # the last of them began before the patience was over
    with making_ready(compiling=True):
        assert said.are_awaited()
    assert said.told == ["compiling"]
