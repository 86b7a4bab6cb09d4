"""The state of a random generator inside kernels, from seeds."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

RandomState: TypeAlias = NDArray[np.uint64]


def random_state(*seed: int) -> RandomState:
    """Return the state of a generator; equal seeds give equal streams, others unrelated ones."""
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64).astype(np.uint64)
    return state | np.uint64(1)  # zero is the one state xorshift cannot leave
