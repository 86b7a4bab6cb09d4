"""Update rules written down once more with plain modules, to hold the methods against."""

from __future__ import annotations

import torch
from torch import nn

from learners.client.training import batches
from learners.rows.parameters import Layout
from learners.settings.config import RunConfig
from tests.learners import toy

LAYOUT = Layout.of(toy.network())
LR = 0.1


def settings(**more) -> RunConfig:
    """One client, whole batches, one pass: a round is one step."""
    base = {"clients": 1, "rounds": 2, "local_epochs": 1, "batch_size": 50, "lr": LR, "workers": 1}
    return RunConfig(**(base | more))


def client(algorithm: str, index: int = 0, sizes=(20,), **more):
    """Return a client of the toy federation with a method's options."""
    config_names = {"local_epochs", "batch_size", "lr", "clients"}
    config = {name: more.pop(name) for name in config_names & more.keys()}
    made = settings(algorithm=algorithm, options=more, clients=len(sizes), **config)
    one = toy.client(made, sizes=sizes)
    one.index = index
    return one


def other_model(seed: int = 7) -> torch.Tensor:
    """Return a model different from the initial one."""
    return LAYOUT.pack(toy.network(seed))


def batch(one, purpose: str = "train", number: int = 0):
    """Return the images and labels of a client's batch."""
    chosen = list(batches(one, len(one.data.train), purpose))[number]
    return one.data.train.take(chosen)


def gradient(row: torch.Tensor, images: torch.Tensor, labels: torch.Tensor, loss=None):
    """Return the gradient of the mean cross-entropy (or of `loss(module)`) at a model."""
    module = LAYOUT.unpack(row, toy.network())
    value = loss(module) if loss else nn.functional.cross_entropy(module(images), labels)
    value.backward()
    return torch.cat([p.grad.reshape(-1) for p in module.parameters()])


def play(algorithm: str, sizes=(20, 20, 20), rounds: int = 3, **more):
    """Return the federation and what each round left behind; batches of 6, two passes."""
    config_names = {"participation", "seed", "aggregation", "optimizer", "local_epochs"}
    config = {name: more.pop(name) for name in config_names & more.keys()}
    made = settings(
        algorithm=algorithm,
        options=more,
        clients=len(sizes),
        rounds=rounds,
        **({"batch_size": 6, "local_epochs": 2} | config),
    )
    federation = toy.federation(made, sizes)
    return federation, list(federation.rounds())


def personal_models(algorithm: str, **more):
    """Return the model every client keeps at the end."""
    federation, _ = play(algorithm, **more)
    memories = federation.memories()
    return [memories[c]["model"] for c in sorted(memories)]
