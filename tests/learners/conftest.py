"""One thread for what tests compute themselves, as the engine does: sums in the same order."""

from __future__ import annotations

import pytest

from learners.server.local_engine import one_thread


@pytest.fixture(autouse=True)
def same_order_of_sums():
    with one_thread():
        yield
