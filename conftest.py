"""For all tests: what an example registers is gone after it, Ctrl-C is heard, no core is wasted.

Two test processes on two cores: threads of BLAS that wait for each other took two fifths of the
CPU-seconds of `tests/coalitions/surrogates`, and collecting the garbage of 8000 tests two of the
ten seconds in which they are found. `tests/coalitions/test_threads.py` has threads of its own.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator

import pytest

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before numpy is loaded, here and in children


def pytest_configure() -> None:
    """Hear Ctrl-C: a shell that starts tests in the background has it ignored, in children too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage while tests are found, and never look at the tests again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


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
