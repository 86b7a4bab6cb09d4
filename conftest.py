"""For all tests: what an example registers is gone after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


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
