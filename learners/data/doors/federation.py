"""From a user's arrays to a federation: named tensors, and some of them set aside."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from learners.data.contents import ONLY, ClientData, FederatedData, Input, Split, Targets
from learners.data.doors.outcome import Arrays, Outcome
from learners.data.tables.splitting import drawn
from learners.settings.seeding import generator


def federation(name: str, outcome: Outcome, *, seed: int, validation_share: float) -> FederatedData:
    """Return the federation of what came in through a door."""
    everyone = list(outcome.clients.items())
    (first, _), _ = everyone[0][1]
    inputs = {key: Input(x.shape[1:], outcome.codes.get(key, ())) for key, x in first.items()}
    if len(inputs) == 1:
        inputs = {ONLY: next(iter(inputs.values()))}
    n_outputs = len(outcome.classes) if outcome.task == "classification" else 1
    targets = Targets(outcome.task, n_outputs, outcome.classes)  # type: ignore[arg-type]
    clients = []
    for client, (train, test) in everyone:
        labels = train[1] if outcome.task == "classification" else None
        aside = round(validation_share * len(train[1]))
        rng = generator(seed, "validation", client)
        left, chosen = drawn(labels, len(train[1]), aside, rng)
        clients.append(
            ClientData(
                train=_split(train, left),
                validation=_split(train, chosen),
                test=_split(test, np.arange(len(test[1]))),
                name=client,
            )
        )
    return FederatedData(name, tuple(clients), inputs, targets, outcome.told)


def _split(arrays: Arrays, some: NDArray[np.int64]) -> Split:
    inputs, targets = arrays
    tensors = {name: torch.from_numpy(array[some]) for name, array in inputs.items()}
    only = next(iter(tensors.values())) if len(tensors) == 1 else tensors
    return Split(only, torch.from_numpy(targets[some]))
