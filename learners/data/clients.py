"""Federated data: what every client trains on, validates on and is tested on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from coalitions.errors import InvalidInputError
from learners.data.dataset import DATASETS, Images, ImageSet
from learners.data.domains import domain_of_clients, pooled
from learners.data.partitions import shares_of
from learners.data.poisoning import Poison, poison_of
from learners.data.seeding import generator
from learners.data.splits import Hand, deal


@dataclass(frozen=True, eq=False)
class Split:
    """Images float32[N, C, H, W] from −1 to 1 and labels int64[N], on the CPU."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class ClientData:
    """One client's data; `domain` is ``""`` where there are no domains."""

    train: Split
    validation: Split
    test: Split
    domain: str
    poisoned: bool


@dataclass(frozen=True, eq=False)
class FederatedData:
    """All clients' data; `shape` is (channels, height, width)."""

    name: str
    clients: tuple[ClientData, ...]
    n_classes: int
    shape: tuple[int, int, int]


def federated_data(
    dataset: str,
    *,
    clients: int,
    partition: str,
    seed: int,
    train_size: int | None = None,
    test_size: int | None = None,
    validation_share: float = 0.2,
    poison: Sequence[str] = (),
    data_dir: Path | None = None,
) -> FederatedData:
    """Return a data set dealt out to `clients`, the same for the same arguments everywhere.

    Parameters
    ----------
    dataset
        A name of `learners.data.dataset.DATASETS`.
    partition
        ``iid``, ``pathological:K``, ``ring:K``, ``dirichlet:ALPHA``, ``quantity:ALPHA``, or
        ``domains`` for a data set that has them.
    train_size, test_size
        Images per client, see `learners.data.splits.deal`: 20 % of `train_size` become the
        validation data, and a quarter of it comes on top as test data.
    poison
        See `learners.data.poisoning.poison_of`.
    data_dir
        Where the files are; ``$COALITIONS_DATA`` if not given.

    Examples
    --------
    >>> data = federated_data("digits", clients=10, partition="pathological:2", seed=0)
    >>> len(data.clients), data.n_classes, data.shape
    (10, 10, (1, 8, 8))
    """
    if clients < 1:
        raise InvalidInputError(f"a federation has at least one client, not {clients}")
    domains = DATASETS[dataset]().load(data_folder(data_dir))
    name, _, layout = partition.partition(":")
    if name == "domains":
        domain_of = domain_of_clients(dataset, tuple(domains), clients, layout)
        partition = "iid"
    else:
        domains, domain_of = {"": pooled(domains)}, [""] * clients
    first = next(iter(domains.values()))
    poisons = poison_of(poison, n_clients=clients, n_classes=first.n_classes)
    everyone: dict[int, ClientData] = {}
    for domain, images in domains.items():
        members = [i for i in range(clients) if domain_of[i] == domain]
        if not members:
            continue
        shares = shares_of(
            partition,
            np.bincount(images.train.labels, minlength=images.n_classes),
            n_clients=len(members),
            rng=generator(seed, "partition", domain),
        )
        hands = deal(
            images,
            shares,
            rng=generator(seed, "deal", domain),
            validation_share=validation_share,
            train_size=train_size,
            test_size=test_size,
            names=[f"client {i}" + f" ({domain})" * bool(domain) for i in members],
        )
        for i, hand in zip(members, hands, strict=True):
            rng = generator(seed, "poison", i)
            everyone[i] = _client(images, hand, domain, poisons.get(i), rng)
    return FederatedData(
        name=dataset,
        clients=tuple(everyone[i] for i in range(clients)),
        n_classes=first.n_classes,
        shape=first.train.shape,
    )


def data_folder(data_dir: Path | None, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the folder with data files: as given, else ``$COALITIONS_DATA``, else None."""
    if data_dir is None:
        named = environment.get("COALITIONS_DATA")
        return Path(named) if named else None
    if not data_dir.is_dir():
        raise InvalidInputError(f"there is no folder {data_dir} with data")
    return data_dir


def _client(
    images: ImageSet, hand: Hand, domain: str, poison: Poison | None, rng: np.random.Generator
) -> ClientData:
    pixels, labels = _normalised(images.train[hand.train])
    if poison is not None:
        pixels, labels = poison.corrupt(pixels, labels, images.n_classes, rng)
    return ClientData(
        train=_split(pixels, labels),
        validation=_split(*_normalised(images.train[hand.validation])),
        test=_split(*_normalised(images.test[hand.test])),
        domain=domain,
        poisoned=poison is not None,
    )


def _normalised(images: Images) -> tuple[np.ndarray, np.ndarray]:
    """Return float32[N, C, H, W] from −1 (black) to 1 (white), and the labels."""
    pixels = images.pixels.transpose(0, 3, 1, 2).astype(np.float32)
    return np.ascontiguousarray(pixels) / np.float32(127.5) - np.float32(1), images.labels


def _split(pixels: np.ndarray, labels: np.ndarray) -> Split:
    return Split(torch.from_numpy(pixels), torch.from_numpy(labels))
