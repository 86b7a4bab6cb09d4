"""A server whose clock moves only while it waits."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest


@dataclass
class WaitingClock:
    """Takes the place of `time`: what nodes compute takes no time, however busy the machine is."""

    now: float = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        time.sleep(seconds)  # replies come in threads of their own
        self.now += seconds


@pytest.fixture
def waiting_clock(monkeypatch):
    """Let the server of nodes that are looked at in this process wait by a clock of its own."""
    clock = WaitingClock()
    monkeypatch.setattr("learners.flower.grid_engine.time", clock)
    monkeypatch.setattr("learners.flower.server.time", clock)
