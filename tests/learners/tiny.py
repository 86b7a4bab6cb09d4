"""Clients with points in the plane and networks of at most ten parameters: sums done by hand."""

from __future__ import annotations

import torch
from torch import nn

from learners.algorithm import build_algorithm
from learners.client.client import Client, Site
from learners.data.client_data import ClientData, FederatedData, Split, classes, of_pictures
from learners.rows.parameters import Layout
from learners.rows.workspace import Workspace
from learners.server.federation import Federation
from learners.server.local_engine import local_engine
from learners.settings.config import RunConfig


def points(n: int, seed: int, n_classes: int = 2) -> Split:
    """Return noisy points whose class is told by their direction."""
    stream = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, n_classes, (n,), generator=stream)
    angle = 2 * torch.pi * labels / n_classes
    at = torch.stack([angle.cos(), angle.sin()], 1) + 0.8 * torch.randn(n, 2, generator=stream)
    return Split(at[:, None, None, :], labels)


def linear(n_classes: int = 2) -> nn.Module:
    """Return a linear classifier: 6 parameters for two classes, 9 for three."""
    return nn.Sequential(nn.Flatten(), nn.Linear(2, n_classes))


def two_layers() -> nn.Module:
    """Return features of 4 parameters and a classifier of 6."""
    return nn.Sequential(nn.Flatten(), nn.Linear(2, 2, bias=False), nn.Tanh(), nn.Linear(2, 2))


def site(algorithm: str, *, clients: int = 3, module=None, n_classes=2, data=None, **settings):
    """Return the clients' side, each client with 12 points to train on and 10 to validate on."""
    options = settings.pop("options", {})
    config = RunConfig(
        algorithm=algorithm,
        clients=clients,
        options=options,
        workers=1,
        **({"local_epochs": 1, "batch_size": 4, "lr": 0.2} | settings),
    )
    module = linear(n_classes) if module is None else module
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        for parameter in module.parameters():
            nn.init.normal_(parameter, std=0.5)
    data = data or [
        ClientData(
            *(points(n, 100 * c + part, n_classes) for part, n in enumerate((12, 10, 10))),
            domain="",
            poisoned=False,
        )
        for c in range(clients)
    ]
    return Site(
        config,
        build_algorithm(algorithm, options),
        Workspace(module, Layout.of(module), torch.device("cpu")),
        FederatedData("tiny", tuple(data), of_pictures((1, 1, 2)), classes(n_classes)),
    )


def federation(algorithm: str, **settings) -> Federation:
    here = site(algorithm, **settings)
    return Federation(
        here.config, here.algorithm, local_engine(here, 1), here.workspace.layout, here.initial
    )


def client(algorithm: str, index: int = 0, **settings) -> Client:
    return Client(site(algorithm, **settings), index, 1)


def rows(n: int, like: torch.Tensor, seed: int = 0) -> torch.Tensor:
    """Return random models."""
    return torch.randn(n, len(like), generator=torch.Generator().manual_seed(seed))


def predictions(module: nn.Module, row: torch.Tensor, data) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a model's logits, by plain torch, and the labels."""
    layout = Layout.of(module)
    images, labels = data.take(torch.arange(len(data)))
    with torch.no_grad():
        return layout.unpack(row, module)(images), labels


def accuracy(module: nn.Module, row: torch.Tensor, data) -> float:
    logits, labels = predictions(module, row, data)
    return float((logits.argmax(1) == labels).double().mean())


def loss(module: nn.Module, row: torch.Tensor, data) -> float:
    logits, labels = predictions(module, row, data)
    return float(nn.functional.cross_entropy(logits, labels))


class Listener:
    """Everything asked and answered between a server and its clients, in order."""

    def __init__(self, federation: Federation, monkeypatch) -> None:
        self.calls: list[tuple[str, dict, dict]] = []
        ask = federation.ask

        def heard(task, messages, *, measuring=False):
            replies = ask(task, messages, measuring=measuring)
            if not measuring:
                self.calls.append((task.name, dict(messages), replies))
            return replies

        monkeypatch.setattr(federation, "ask", heard)

    def of(self, name: str) -> list[tuple[dict, dict]]:
        return [(messages, replies) for task, messages, replies in self.calls if task == name]
