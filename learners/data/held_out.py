"""Scores to choose options by: on training samples held out for it, so that test data stay unseen.

The validation data that some methods measure models on are theirs: a method would be judged on what
it has chosen by. So a further part is held out, of the same share for every method.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch

from coalitions.errors import InvalidInputError
from learners.data.contents import FederatedData, Split
from learners.settings.config import RunConfig
from learners.settings.seeding import stream

SHARE = 0.2
"""Part of a client's training samples that is held out; the rest is split as in any run."""


def share_with_held_out(config: RunConfig) -> float:
    """Return the share that is neither trained on: held out, or a method's validation data."""
    return SHARE + (1 - SHARE) * config.validation_share


def scored_on_held_out(data: FederatedData, config: RunConfig) -> FederatedData:
    """Return the data with a part of each client's validation data in the place of its test data.

    Parameters
    ----------
    data
        Dealt out with a `validation_share` of `share_with_held_out`.
    config
        The run.
    """
    part = SHARE / share_with_held_out(config)
    clients = []
    for number, client in enumerate(data.clients):
        aside = client.validation
        n = round(part * len(aside))
        if not n:
            raise InvalidInputError(
                f"client {number} has too few training samples to hold a fifth out and score models"
                " on them; give a larger train_size"
            )
        order = torch.randperm(len(aside), generator=stream(config.seed, "held out", number))
        held, rest = _taken(aside, order[:n]), _taken(aside, order[n:])
        clients.append(replace(client, test=held, validation=rest))
    return replace(data, clients=tuple(clients))


def _taken(split: Split, chosen: torch.Tensor) -> Split:
    """Return some samples of a split."""
    inputs = split.inputs
    if isinstance(inputs, Mapping):
        return Split({name: each[chosen] for name, each in inputs.items()}, split.targets[chosen])
    return Split(inputs[chosen], split.targets[chosen])
