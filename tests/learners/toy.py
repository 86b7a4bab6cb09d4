"""A federation small enough to compute by hand: random pictures, a network of a few parameters."""

from __future__ import annotations

import torch
from torch import nn

from learners.algorithm import Algorithm, build_algorithm
from learners.client.client import Client, Site
from learners.data.client_data import ClientData, FederatedData, Split, classes, of_pictures
from learners.rows.parameters import Layout
from learners.rows.workspace import Workspace
from learners.server.federation import Federation
from learners.server.local_engine import local_engine
from learners.settings.config import RunConfig

N_CLASSES = 3
SHAPE = (1, 8, 8)


def split(n: int, seed: int) -> Split:
    stream = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, N_CLASSES, (n,), generator=stream)
    images = torch.randn((n, *SHAPE), generator=stream)
    images[torch.arange(n), 0, labels] += 2.0  # a bright row tells the class
    return Split(images, labels)


def data(sizes: tuple[int, ...], poisoned: tuple[int, ...] = ()) -> FederatedData:
    clients = tuple(
        ClientData(
            split(n, 10 * i),
            split(8, 10 * i + 1),
            split(12, 10 * i + 2),
            domain="ab"[i % 2],
            poisoned=i in poisoned,
        )
        for i, n in enumerate(sizes)
    )
    return FederatedData("toy", clients, of_pictures(SHAPE), classes(N_CLASSES))


def network(seed: int = 0, *, batch_norm: bool = False, dropout: float = 0.0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(1, 2, 3),
            *([nn.BatchNorm2d(2)] if batch_norm else []),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Flatten(),
            *([nn.Dropout(dropout)] if dropout else []),
            nn.Linear(18, N_CLASSES),
        )


def site(
    config: RunConfig,
    sizes: tuple[int, ...] | None = None,
    *,
    module: nn.Module | None = None,
    algorithm: Algorithm | None = None,
    poisoned: tuple[int, ...] = (),
) -> Site:
    module = network() if module is None else module
    algorithm = algorithm or build_algorithm(config.algorithm, config.options)
    sizes = sizes or (20,) * config.clients
    return Site(
        config,
        algorithm,
        Workspace(module, Layout.of(module), torch.device("cpu")),
        data(sizes, poisoned),
    )


def client(config: RunConfig | None = None, **more) -> Client:
    config = config or RunConfig(clients=1, local_epochs=2, batch_size=6, lr=0.1)
    return Client(site(config, **more), 0, 1)


def federation(config: RunConfig, sizes: tuple[int, ...] | None = None, **more) -> Federation:
    here = site(config, sizes, **more)
    engine = local_engine(here, config.workers)
    return Federation(config, here.algorithm, engine, here.workspace.layout, here.initial)
