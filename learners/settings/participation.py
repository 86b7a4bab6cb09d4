"""Who takes part in which round: known from the seed, before anything is trained."""

from __future__ import annotations

import math

import torch

from coalitions.errors import InvalidInputError
from learners.settings.config import RunConfig
from learners.settings.schedules import attendance
from learners.settings.seeding import stream

MOST_DRAWN = 20_000
"""Rounds that are drawn in advance: about a second."""


def check_members(config: RunConfig) -> None:
    """Refuse to hold everyone out of training; how many there are may follow from the data."""
    if config.new_clients >= config.clients:
        raise InvalidInputError(
            f"new_clients is {config.new_clients} of {config.clients} clients; 1 or more must be"
            " left to train"
        )


def present_in(config: RunConfig, round: int) -> tuple[int, ...]:
    """Return the clients that take part in a round, in order; it may be nobody."""
    kind, number = attendance(config.attendance)
    if kind == "diurnal":
        return _awake(config, int(number), round)
    round = 1 if kind == "fixed" else round
    drawn = torch.randperm(
        config.members, generator=stream(config.seed, "server", round, "participation")
    )
    return tuple(sorted(drawn[: config.participants].tolist()))


def _awake(config: RunConfig, period: int, round: int) -> tuple[int, ...]:
    """Return who is there in a round: a share of each period, from a round that is its own."""
    drawn = torch.randint(
        period, (config.members,), generator=stream(config.seed, "server", 0, "time zones")
    )
    there = max(1, math.floor(config.participation * period))
    return tuple(c for c, at in enumerate(drawn.tolist()) if (round - at) % period < there)


def missing_in(config: RunConfig, round: int) -> frozenset[int]:
    r"""Return whose replies do not arrive in a round, if asked: they are lost, or come too late.

    A client needs :math:`\exp(z_c / 2 + z_{ct} / 4)` of a unit of time for a round, with z drawn
    from a standard normal distribution for the client, and for each of its rounds: some are slow
    always, everyone is sometimes, and half of the clients need less than 1.
    """
    kind, number = attendance(config.attendance)
    if kind not in ("dropout", "deadline"):
        return frozenset()
    luck = stream(config.seed, "server", round, "arrival")
    if kind == "dropout":
        lost = torch.rand(config.members, generator=luck, dtype=torch.float64) < number
        return frozenset(lost.nonzero().flatten().tolist())
    speeds = stream(config.seed, "server", 0, "speeds")
    slowness, today = (torch.randn(config.members, generator=each) for each in (speeds, luck))
    late = (slowness / 2 + today / 4).exp() > number
    return frozenset(late.nonzero().flatten().tolist())


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
