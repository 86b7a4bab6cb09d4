"""One stream of random numbers for every (seed, purpose), so that no choice disturbs another.

Data are drawn from numpy streams, training from torch streams. The two name their streams by
different hashes: results that were published under a seed stay what they are.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from coalitions.errors import InvalidInputError, shown

if TYPE_CHECKING:
    import torch

MOST_SEEDS = 1000
"""A number of seeds above this is rather the number of one seed."""


def seeds_of(
    given: int | str | Sequence[int],
    first: int = 0,
    *,
    called: str = "seeds",
    alone: str = "seeds=[{}]",
) -> list[int]:
    """Return seeds: a number tells how many, a list tells which.

    Parameters
    ----------
    given
        A whole number, a list, or a text: ``3``, ``0,1,2``, ``10-14`` or ``0,10-14``.
    first
        Where the seeds begin if a number is given.
    called
        What the argument is called in messages.
    alone
        How one asks for a single seed, with braces for its number.

    Examples
    --------
    >>> seeds_of(3), seeds_of("3", first=1000), seeds_of([3])
    ([0, 1, 2], [1000, 1001, 1002], [3])
    >>> seeds_of("0,10-12")
    [0, 10, 11, 12]
    """
    if isinstance(given, str):
        seeds = _read_seeds(given.strip())
    elif isinstance(given, int | np.integer) and not isinstance(given, bool):
        seeds = int(given)
    else:
        seeds = _listed_seeds(given)
    if seeds is None:
        raise InvalidInputError(
            f"{called} must be a number of seeds, as in 3, or a list of whole numbers from 0, as in"
            f" 0,1,2 or 10-14; it got {shown(given)}"
        )
    if isinstance(seeds, int):
        if not 1 <= seeds <= MOST_SEEDS:
            raise InvalidInputError(
                f"{called} {seeds} asks for {seeds or 'no'} seeds; it can be 1 to {MOST_SEEDS}. For"
                f" the one seed {seeds}, give {alone.format(seeds)}"
            )
        return list(range(first, first + seeds))
    if len(seeds) > MOST_SEEDS:
        raise InvalidInputError(f"{called} can be {MOST_SEEDS} seeds at most, not {len(seeds)}")
    if len(set(seeds)) < len(seeds):
        raise InvalidInputError(
            f"{called} has a seed twice: that is the same run twice, and no repetition"
        )
    return seeds


def _read_seeds(text: str) -> int | list[int] | None:
    """Return how many seeds a text asks for, or which; None if it is neither."""
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,18})\s*(?:(?:-|\.\.)\s*([0-9]{1,18})\s*)?", part)
        if match is None:
            return None
        low, high = int(match[1]), int(match[2] or match[1])
        if low > high:
            return None
        seeds += range(low, min(high, low + MOST_SEEDS) + 1)
    return seeds


def _listed_seeds(given: object) -> list[int] | None:
    if not isinstance(given, Sequence | range | np.ndarray) or not len(given):
        return None
    if not all(isinstance(each, int | np.integer) and each >= 0 for each in given):
        return None
    return [int(each) for each in given]


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
