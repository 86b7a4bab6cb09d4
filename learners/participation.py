"""Who takes part in which round: known from the seed, before anything is trained."""

from __future__ import annotations

import torch

from learners.config import RunConfig
from learners.seeding import stream


def present_in(config: RunConfig, round: int) -> tuple[int, ...]:
    """Return the clients that take part in a round, in order."""
    drawn = torch.randperm(
        config.clients, generator=stream(config.seed, "server", round, "participation")
    )
    return tuple(sorted(drawn[: config.participants].tolist()))


def rounds_of(config: RunConfig) -> list[int]:
    """Return in how many rounds of the run each client takes part."""
    counts = [0] * config.clients
    for t in range(1, config.rounds + 1):
        for client in present_in(config, t):
            counts[client] += 1
    return counts
