"""How much of a long test is run, and in which parts."""

from __future__ import annotations

import os


def scaled(count: int) -> int:
    """Return `count` times the environment's COALITIONS_SOAK (1 unless told), at least one."""
    return max(1, round(count * float(os.environ.get("COALITIONS_SOAK", "1"))))


def parts(count: int, size: int) -> list[range]:
    """Return the seeds 0 … count − 1, scaled, in ranges of at most `size`: each is one test."""
    whole = scaled(count)
    return [range(first, min(whole, first + size)) for first in range(0, whole, size)]


def named(seeds: range) -> str:
    """Return the name by which a part is picked: pytest -k 0-500."""
    return f"{seeds.start}-{seeds.stop}"
