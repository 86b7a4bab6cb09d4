"""One stream of random numbers per purpose, so that no choice disturbs another."""

from __future__ import annotations

import zlib

import numpy as np

from coalitions.errors import InvalidInputError


def generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """Return the random stream of `purpose` under `seed`.

    Streams of different purposes are independent, and a stream depends on nothing but its
    arguments: asking for poison, say, leaves the partition as it was.

    Examples
    --------
    >>> one, same = generator(0, "partition"), generator(0, "partition")
    >>> int(one.integers(2**40)) == int(same.integers(2**40))
    True
    """
    if seed < 0:
        raise InvalidInputError(f"a seed is 0 or a positive whole number, and {seed} is not")
    words = [zlib.crc32(part.encode()) if isinstance(part, str) else part for part in purpose]
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))
