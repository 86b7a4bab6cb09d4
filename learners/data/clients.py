"""The data of a federation: a data set split over clients, with domains and held-out data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError, shown, with_keywords
from learners.data.client_data import ONLY, ClientData, FederatedData, Input, Split, classes
from learners.data.dataset import DATASETS, Images, ImageSet, Shape, Source, Table, TableSet
from learners.data.files import data_folder
from learners.data.partitions import Counts, shares_of
from learners.data.poisoning import Labels, Pixels, Poison, poison_of
from learners.data.splits import Hand, Indices, deal
from learners.settings.config import RunConfig
from learners.settings.seeding import generator, stream

# ----------------------------------------------------------------------------------------
# Domains: which client lives in which.


def domain_of_clients(domains: Sequence[str], n_clients: int, layout: str = "") -> list[str]:
    """Return the domain of every client: blocks of equal size, or as `layout` says.

    Parameters
    ----------
    layout
        ``NAME=CLIENTS,…`` in the order of the clients; a domain may come more than once.

    Examples
    --------
    >>> domain_of_clients(["a", "b"], 5)
    ['a', 'a', 'a', 'b', 'b']
    >>> domain_of_clients(["a", "b"], 4, "b=1,a=2,b=1")
    ['b', 'a', 'a', 'b']
    """
    if not layout:
        blocks = np.array_split(np.arange(n_clients), len(domains))
        return [name for name, block in zip(domains, blocks, strict=True) for _ in block]
    assigned: list[str] = []
    for part in layout.split(","):
        match = re.fullmatch(r"(.+)=([0-9]+)", part)
        if match is None or match[1] not in domains:
            raise InvalidInputError(
                f"domains:NAME=CLIENTS,… takes the names {', '.join(domains)}, not {part!r}"
            )
        assigned += [match[1]] * int(match[2])
    if len(assigned) != n_clients:
        raise InvalidInputError(
            f"domains:{layout} places {len(assigned)} clients, but there are {n_clients}"
        )
    return assigned


# ----------------------------------------------------------------------------------------
# Scores to choose options by: on training samples held out for it, so that test data stay unseen.
#
# The validation data that some methods measure models on are theirs: a method would be judged on
# what it has chosen by. So a further part is held out, of the same share for every method.

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


# ----------------------------------------------------------------------------------------
# Federated data: what every client trains on, validates on and is tested on.


@with_keywords()
def federated_data(
    dataset: str,
    *,
    clients: int,
    partition: str,
    seed: int,
    train_size: int | Sequence[int] | None = None,
    test_size: int | Sequence[int] | None = None,
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
        ``auto`` for the one usual with the data set. Where there are domains, every client lives
        in one, and the partition acts inside each; ``domains`` is then iid inside, and
        ``domains:NAME=CLIENTS,…`` says who lives where.
    train_size
        Training images per client (or a number for each), *including* those for validation; if
        not given, what is usual with the data set, see ``coalitions datasets``, mostly all.
    test_size
        Test images per client (or a number for each); if not given, a quarter of `train_size`
        (that is, 80 % to 20 %), or the client's part of all test images.
    validation_share
        Part of the training images set aside for validation.
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
    source = DATASETS[dataset]()
    if partition == "auto":
        partition = source.partition
    if train_size is None:
        train_size = source.train_size
        test_size = source.test_size if test_size is None else test_size
    domains = source.load(data_folder(data_dir))
    if len({(images.n_classes, images.shape) for images in domains.values()}) != 1:
        raise InvalidInputError(
            f"all domains of {dataset} must have the same classes and one shape; ImageSet takes "
            "the shape to bring the pictures to"
        )
    images_there = sum(len(images.train) for images in domains.values())
    if clients > images_there:  # said before anything is as long as the number of clients
        raise InvalidInputError(
            f"{shown(clients)} clients are too many: {dataset} has {images_there} training images"
        )
    name, _, layout = partition.partition(":")
    if name == "domains" and len(domains) == 1:
        raise InvalidInputError(
            f"the partition domains needs a data set that has some, such as digits-domains, and "
            f"{dataset} has none"
        )
    sizes = _per_client(train_size, clients, "train")
    test_sizes = _per_client(test_size, clients, "test")
    domain_of = domain_of_clients(tuple(domains), clients, layout if name == "domains" else "")
    first = next(iter(domains.values()))
    targets = first.targets if isinstance(first, TableSet) else classes(first.n_classes)
    poisons = poison_of(poison, n_clients=clients, n_classes=first.n_classes, kind=targets.kind)
    if isinstance(first, TableSet) and any(each.kind == "noise" for each in poisons.values()):
        raise InvalidInputError(f"the poison noise is for pictures, and {dataset} is a table")
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
            train_size=None if sizes is None else sizes[members],
            test_size=None if test_sizes is None else test_sizes[members],
            names=[f"client {i}" + f" ({domain})" * bool(domain) for i in members],
        )
        for i, hand in zip(members, hands, strict=True):
            rng = generator(seed, "poison", i)
            everyone[i] = _client(images, hand, domain, poisons.get(i), rng)
    return FederatedData(
        name=dataset,
        clients=tuple(everyone[i] for i in range(clients)),
        inputs={ONLY: Input(first.shape, first.codes if isinstance(first, TableSet) else ())},
        targets=targets,
    )


def _per_client(size: int | Sequence[int] | None, clients: int, what: str) -> Counts | None:
    if size is None:
        return None
    sizes = np.asarray(size, dtype=np.int64)
    if sizes.ndim and sizes.shape != (clients,):
        raise InvalidInputError(f"{clients} clients need {clients} {what} sizes, not {len(sizes)}")
    return np.broadcast_to(sizes, clients)


def _client(
    source: Source, hand: Hand, domain: str, poison: Poison | None, rng: np.random.Generator
) -> ClientData:
    values, truth = _arrays(source, source.train, hand.train)
    if poison is not None:
        values, truth = poison.corrupt(values, truth, source.n_classes, rng)
    return ClientData(
        train=_split(values, truth),
        validation=_split(*_arrays(source, source.train, hand.validation)),
        test=_split(*_arrays(source, source.test, hand.test)),
        domain=domain,
        poisoned=poison is not None,
    )


def _arrays(source: Source, pool: Images | Table, chosen: Indices) -> tuple[Pixels, NDArray[Any]]:
    """Return the samples of some indices as a client gets them, and their targets."""
    if isinstance(source, ImageSet):
        assert isinstance(pool, Images)
        return _normalised(pool[chosen], source.shape)
    assert isinstance(pool, Table)
    some = pool[chosen]
    return some.values, some.truth


def _normalised(images: Images, shape: Shape) -> tuple[Pixels, Labels]:
    """Return float32[N, C, H, W] of `shape` from −1 (black) to 1 (white), and the labels."""
    if not len(images):
        return np.zeros((0, *shape), np.float32), images.labels
    # Bytes are cheaper to turn around than floats.
    pixels = torch.from_numpy(np.ascontiguousarray(images.pixels.transpose(0, 3, 1, 2))).float()
    if images.shape[1:] != shape[1:]:
        pixels = torch.nn.functional.interpolate(
            pixels, size=shape[1:], mode="bilinear", align_corners=False, antialias=True
        )
    pixels = pixels.div_(127.5).sub_(1).expand(-1, shape[0], *shape[1:]).contiguous()
    return pixels.numpy(), images.labels


def _split(values: Pixels, truth: NDArray[Any]) -> Split:
    return Split(torch.from_numpy(values), torch.from_numpy(truth))
