"""For all tests: what an example registers is gone after it, and Ctrl-C is heard."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


def pytest_configure() -> None:
    """Hear Ctrl-C: a shell that starts tests in the background has it ignored, in children too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _examples_register_nothing_for_others(request: pytest.FixtureRequest) -> Iterator[None]:
    if not isinstance(request.node, pytest.DoctestItem) or "learners" not in request.path.parts:
        yield
        return
    from learners.algorithm import ALGORITHMS

    before = dict(ALGORITHMS._entries)
    yield
    for name in ALGORITHMS._entries.keys() - before.keys():
        if not ALGORITHMS[name].__module__.startswith("learners.algorithms."):
            del ALGORITHMS._entries[name]
