"""Who takes part in which round: known from the seed, before anything is trained."""

from __future__ import annotations

import torch

from coalitions.errors import InvalidInputError
from learners.settings.config import RunConfig
from learners.settings.seeding import stream

MOST_DRAWN = 20_000
"""Rounds that are drawn in advance: about a second."""


def present_in(config: RunConfig, round: int) -> tuple[int, ...]:
    """Return the clients that take part in a round, in order."""
    drawn = torch.randperm(
        config.members, generator=stream(config.seed, "server", round, "participation")
    )
    return tuple(sorted(drawn[: config.participants].tolist()))


def rounds_of(config: RunConfig) -> list[int]:
    """Return in how many rounds of the run each client takes part."""
    if config.participants == config.members:
        return [config.rounds] * config.members
    if config.rounds > MOST_DRAWN:
        raise InvalidInputError(
            f"epsilon with participation below 1 takes at most {MOST_DRAWN:,} rounds, not"
            f" {config.rounds:,}: who is in which is drawn one by one; give noise, or fewer rounds"
        )
    counts = [0] * config.members
    for t in range(1, config.rounds + 1):
        for client in present_in(config, t):
            counts[client] += 1
    return counts
