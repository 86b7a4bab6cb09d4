"""How much of a long test is run, and in which parts."""

from __future__ import annotations

import os
from collections import Counter


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


def tally(answers, about, record_property) -> None:
    """Count the answers of each solver and those with a fault; raise if there is any.

    Parameters
    ----------
    answers
        A solver's name and the faults of one of its answers, again and again.
    about
        What the table of counts is called.
    record_property
        Pytest's fixture, which hands the counts over.
    """
    counts: dict[str, Counter[str]] = {}
    found: list[str] = []
    for solver, wrong in answers:
        counts.setdefault(solver, Counter()).update(solves=1, failures=bool(wrong))
        found += wrong
    record_property(f"counts: {about}", {solver: dict(count) for solver, count in counts.items()})
    shown = "\n".join(found[:20])
    assert not found, f"{len(found)} failures, of which:\n{shown}"
