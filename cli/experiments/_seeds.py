"""The seeds of many runs, as one types them."""

from __future__ import annotations

from coalitions.errors import InvalidInputError


def seeds_of(text: str) -> list[int]:
    """Return the seeds in a text such as ``0,1,2``, each once."""
    try:
        seeds = [int(seed) for seed in text.split(",")]
    except ValueError:
        seeds = [-1]
    if min(seeds) < 0:
        raise InvalidInputError(f"--seeds takes whole numbers from 0, as in 0,1,2; it got {text!r}")
    if len(set(seeds)) < len(seeds):
        raise InvalidInputError(
            f"--seeds {text}: a seed that comes twice gives the same run twice, which is no"
            " repetition"
        )
    return seeds
