"""One stream of random numbers for every (seed, purpose), so that no choice disturbs another.

Data are drawn from numpy streams, training from torch streams. The two name their streams by
different hashes: results that were published under a seed stay what they are.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING

import numpy as np

from coalitions.errors import InvalidInputError

if TYPE_CHECKING:
    import torch


def generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """Return the numpy stream of `purpose` under `seed`.

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


def stream(seed: int, *purpose: str | int) -> torch.Generator:
    """Return the torch stream of `purpose` under `seed`.

    Whoever draws first, and in which process, changes nothing for the others.

    Examples
    --------
    >>> import torch
    >>> one, same = stream(0, "client", 3, "train"), stream(0, "client", 3, "train")
    >>> bool(torch.equal(torch.rand(2, generator=one), torch.rand(2, generator=same)))
    True
    """
    import torch

    return torch.Generator().manual_seed(seed_of(seed, *purpose))


def seed_of(seed: int, *purpose: str | int) -> int:
    """Return a whole number below 2**63 that stands for the seed and the purpose."""
    text = "/".join(map(str, (seed, *purpose)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1
