"""One stream of random numbers for every (seed, who, when, what for)."""

from __future__ import annotations

import hashlib

import torch


def stream(seed: int, *purpose: str | int) -> torch.Generator:
    """Return a generator that depends on nothing but the seed and the purpose.

    Whoever draws first, and in which process, changes nothing for the others.

    Examples
    --------
    >>> one, same = stream(0, "client", 3, "train"), stream(0, "client", 3, "train")
    >>> bool(torch.equal(torch.rand(2, generator=one), torch.rand(2, generator=same)))
    True
    """
    return torch.Generator().manual_seed(seed_of(seed, *purpose))


def seed_of(seed: int, *purpose: str | int) -> int:
    """Return a whole number below 2**63 that stands for the seed and the purpose."""
    text = "/".join(map(str, (seed, *purpose)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1
