"""Small federations of every kind of data, to hold every method against."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from learners.data.client_data import FederatedData
from learners.data.own.federation_of import federation_of


def _table(seed: int, n: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, 3))
    codes = rng.integers(0, 4, (n, 2))
    codes[0] = 3  # so that all codes are there
    return {"numbers": numbers, "codes": codes}, numbers[:, 0] + (codes[:, 0] - 1.5)


def _classes(seed: int, n: int):
    inputs, score = _table(seed, n)
    return inputs, (score > np.median(score)).astype(np.int64)


def _labels(seed: int, n: int):
    inputs, score = _table(seed, n)
    return inputs, np.stack([score > 0, inputs["numbers"][:, 1] > 0], axis=1)


def _tokens(seed: int, n: int):
    rng = np.random.default_rng(seed)
    rows = (rng.integers(0, 5, (n, 1)) + np.arange(7)) % 5  # counting modulo five
    return rows[:, :-1], rows[:, 1:]


def _series(seed: int, n: int):
    rng = np.random.default_rng(seed)
    kinds = np.arange(n) % 2
    times = np.arange(6)[None] + rng.random((n, 1)) * 6
    return np.sin(times * (1 + kinds[:, None]))[..., None].astype(np.float32), kinds


def _pictures(seed: int, n: int):
    rng = np.random.default_rng(seed)
    kinds = np.arange(n) % 3
    pictures = rng.normal(size=(n, 1, 6, 6)).astype(np.float32)
    pictures[np.arange(n), 0, kinds] += 2
    return pictures, kinds


SAMPLES = {
    "tabular classification": (_classes, "classification"),
    "tabular multi-label": (_labels, "multi-label"),
    "tabular regression": (_table, "regression"),
    "sequence classification": (_series, "classification"),
    "next token": (_tokens, "next-token"),
    "pictures": (_pictures, "classification"),
}
"""What clients have, by the name of the task."""


def federation(task: str, clients: int = 3) -> FederatedData:
    """Return a federation of a task, with clients of several sizes."""
    make, kind = SAMPLES[task]
    parts = {f"site {c}": (make(2 * c, 12 + 2 * c), make(2 * c + 1, 8)) for c in range(clients)}
    return federation_of(task, parts, task=kind)


class Plain(nn.Module):
    """A module that knows nothing of this project, for one input of real numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.Tanh())
        self.last = nn.Linear(8, 3)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        return self.last(self.body(pictures))
