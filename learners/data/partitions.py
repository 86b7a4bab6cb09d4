"""How samples are divided among clients: each client's share of each class."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError
from coalitions.registry import Registry

# ----------------------------------------------------------------------------------------
# Rounding shares to whole numbers.


def whole_numbers(
    amounts: NDArray[np.float64], total: int, ties: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return whole numbers near `amounts` that add up to `total`; what is 0 stays 0.

    Parameters
    ----------
    amounts
        Non-negative; their sum is `total`, but for rounding errors.
    ties
        Distinct numbers; of equal remainders the one with the smaller number is rounded up.
        Without it, the earlier.

    Examples
    --------
    >>> whole_numbers(np.array([1.5, 0.0, 2.2, 0.3]), 4)
    array([2, 0, 2, 0])
    """
    whole = np.floor(amounts + 1e-9).astype(np.int64)
    rest = np.round(amounts - whole, 9)  # last bits differ between machines, the answer must not
    order = np.lexsort((np.arange(len(amounts)) if ties is None else ties, -rest))
    order = order[amounts[order] > 0]
    whole[order[: max(0, int(total) - int(whole.sum()))]] += 1
    return whole


# ----------------------------------------------------------------------------------------
# Who holds which share of every class.
#
# A partition of :math:`N` images over :math:`n` clients and :math:`C` classes is a matrix
# :math:`q \in [0, 1]^{n \times C}`: client :math:`i` gets the share :math:`q_{ic}` of class
# :math:`c`, and :math:`\sum_i q_{ic}` is 1, or 0 if nobody holds the class. The training pool and
# the test pool are dealt out by the same matrix, so a client is tested on its own distribution.

Shares = NDArray[np.float64]
Counts = NDArray[np.int64]
Partition = Callable[[Counts, int, str, np.random.Generator], Shares]
"""(images per class, number of clients, text after the colon, random stream) -> shares."""

PARTITIONS = Registry[Partition]("partition", "learners.data.partitions")

AIM_FOR = 10  # images; a client of a skewed partition gets no fewer, if there are enough


def shares_of(
    partition: str, counts: Counts, *, n_clients: int, rng: np.random.Generator
) -> Shares:
    """Return the shares float64[clients, classes] of a partition such as ``"dirichlet:0.1"``.

    Parameters
    ----------
    partition
        A name of `PARTITIONS`, with its parameter after a colon.
    counts
        Number of training images of each class.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> shares_of("ring:2", np.array([9, 9, 9]), n_clients=3, rng=rng)
    array([[0.5, 0.5, 0. ],
           [0. , 0.5, 0.5],
           [0.5, 0. , 0.5]])
    """
    name, _, parameter = partition.partition(":")
    return PARTITIONS[name](counts, n_clients, parameter, rng)


@PARTITIONS.register("iid")
def iid(counts: Counts, n_clients: int, parameter: str, rng: np.random.Generator) -> Shares:
    """Every client holds the same share of every class."""
    if parameter:
        raise InvalidInputError(f"the partition is just iid, without {parameter!r} after it")
    return np.full((n_clients, len(counts)), 1 / n_clients)


@PARTITIONS.register("domains")
def domains(counts: Counts, n_clients: int, parameter: str, rng: np.random.Generator) -> Shares:
    """Every client lives in one domain, where all hold the same share of every class.

    The parameter says who lives where, see `learners.data.clients`.
    """
    return iid(counts, n_clients, "", rng)


@PARTITIONS.register("pathological")
def pathological(
    counts: Counts, n_clients: int, parameter: str, rng: np.random.Generator
) -> Shares:
    """Every client holds K labels at random; a label is shared evenly by its owners [McMahan2017]_.

    Labels have equally many owners, give or take one, so all are held by someone as soon as
    clients · K reaches the number of classes.
    """
    n_classes = len(counts)
    k = _labels_per_client("pathological", parameter, n_classes)
    copies = np.full(n_classes, n_clients * k // n_classes)
    copies[rng.permutation(n_classes)[: n_clients * k % n_classes]] += 1
    owned = np.zeros((n_clients, n_classes), dtype=bool)
    for remaining, client in zip(range(n_clients, 0, -1), rng.permutation(n_clients), strict=True):
        # A label with as many copies left as clients must go to each of them. There are never more
        # than K such labels, because all copies left are K · remaining: so the deal cannot fail.
        keys = rng.random(n_classes) ** (1 / np.maximum(copies, 1))  # K draws, weighted by copies
        keys[copies == remaining] = 2
        keys[copies == 0] = -1
        chosen = np.argsort(-keys, kind="stable")[:k]
        owned[client, chosen] = True
        copies[chosen] -= 1
    return _evenly(owned)


@PARTITIONS.register("ring")
def ring(counts: Counts, n_clients: int, parameter: str, rng: np.random.Generator) -> Shares:
    """Client i holds the labels i … i+K−1 modulo the number of classes."""
    n_classes = len(counts)
    k = _labels_per_client("ring", parameter, n_classes)
    owned = np.zeros((n_clients, n_classes), dtype=bool)
    owned[
        np.arange(n_clients)[:, None], (np.arange(n_clients)[:, None] + np.arange(k)) % n_classes
    ] = True
    return _evenly(owned)


@PARTITIONS.register("distinct")
def distinct(counts: Counts, n_clients: int, parameter: str, rng: np.random.Generator) -> Shares:
    """Random sets of K labels, no two alike; all share labels with equally many others [Wu2024]_.

    Labels stand on a circle in random order, and each client holds an arc of it; where clients
    outnumber labels, the next lot takes every second label, and so on.
    """
    n_classes = len(counts)
    k = _labels_per_client("distinct", parameter, n_classes)
    apart = max(1, min(n_classes // n_clients, k // 2))  # from one client's first label to the next
    circle = rng.permutation(n_classes)[: min(n_classes, n_clients * apart)]
    starts = np.arange(n_clients) * apart
    strides = 1 + starts // len(circle)
    places = (starts[:, None] + strides[:, None] * np.arange(k)) % len(circle)
    owned = np.zeros((n_clients, n_classes), dtype=bool)
    owned[rng.permutation(n_clients)[:, None], circle[places]] = True
    relevant = (owned.astype(np.int64) @ owned.T > 0).sum(axis=1)
    alike = len(np.unique(owned, axis=0)) < n_clients
    if alike or len(set(relevant.tolist())) > 1 or (owned.sum(axis=1) < k).any():
        raise InvalidInputError(
            f"{n_clients} clients cannot hold {k} of {n_classes} labels each so that no two are"
            f" alike and all share labels with equally many others; choose {n_classes} clients, a"
            f" multiple of it, or pathological:{k}"
        )
    return _evenly(owned)


@PARTITIONS.register("labels")
def labels(counts: Counts, n_clients: int, parameter: str, rng: np.random.Generator) -> Shares:
    """Every client holds the labels named for it, as in labels:0,1/1,2/2,3 for three clients."""
    try:
        held = [[int(label) for label in each.split(",")] for each in parameter.split("/")]
    except ValueError:
        held = []
    if len(held) != n_clients or not all(0 <= c < len(counts) for each in held for c in each):
        raise InvalidInputError(
            f"labels: needs a list of labels from 0 to {len(counts) - 1} for each of the"
            f" {n_clients} clients, as in labels:0,1/1,2, not {parameter!r}"
        )
    owned = np.zeros((n_clients, len(counts)), dtype=bool)
    for client, each in enumerate(held):
        owned[client, each] = True
    return _evenly(owned)


@PARTITIONS.register("dirichlet")
def dirichlet(counts: Counts, n_clients: int, parameter: str, rng: np.random.Generator) -> Shares:
    r"""Every class is shared out by a draw from a Dirichlet distribution [Yurochkin2019]_.

    .. math:: (q_{1c}, \dots, q_{nc}) \sim \operatorname{Dir}(\alpha, \dots, \alpha)

    A client that would end with fewer than 10 images (or half an even share, if that is less)
    takes more of the label it has most of, from whoever holds most of it.
    """
    alpha = _positive("dirichlet", parameter, "0.1")
    drawn = rng.dirichlet(np.full(n_clients, alpha), len(counts))
    images = [whole_numbers(q * n, n) for q, n in zip(drawn, counts, strict=True)]
    shares = _lift_the_smallest(np.stack(images, axis=1)) / np.maximum(counts, 1)
    # A share is never exactly zero: with a fixed train size, a client whose labels run out goes on
    # with any other.
    return np.maximum(shares, 1e-9)


@PARTITIONS.register("quantity")
def quantity(counts: Counts, n_clients: int, parameter: str, rng: np.random.Generator) -> Shares:
    r"""Every client holds all labels, but clients differ in size.

    .. math:: q_{\cdot c} = (q_1, \dots, q_n) \sim \operatorname{Dir}(\alpha, \dots, \alpha)

    All are moved towards the even split, just enough for the smallest to hold 10 images (or half
    an even share, if that is less).
    """
    alpha = _positive("quantity", parameter, "0.5")
    sizes = rng.dirichlet(np.full(n_clients, alpha))
    # Every class is rounded by itself, which may cost a small client an image of each.
    least = min((AIM_FOR + len(counts)) / max(1, counts.sum()), 1 / (2 * n_clients))
    even = 1 / n_clients
    if sizes.min() < least:
        sizes += (even - sizes) * (least - sizes.min()) / (even - sizes.min())
    return np.repeat(sizes[:, None], len(counts), axis=1)


def _labels_per_client(name: str, parameter: str, n_classes: int) -> int:
    if not parameter.isascii() or not parameter.isdigit() or not 1 <= int(parameter) <= n_classes:
        raise InvalidInputError(
            f"{name}:K needs a number of labels per client from 1 to {n_classes}, "
            f"as in {name}:{min(2, n_classes)}, not {parameter!r}"
        )
    return int(parameter)


def _positive(name: str, parameter: str, example: str) -> float:
    try:
        alpha = float(parameter)
    except ValueError:
        alpha = math.nan
    if not 0 < alpha < math.inf:
        raise InvalidInputError(
            f"{name}:ALPHA needs a positive number, as in {name}:{example}, not {parameter!r}"
        )
    return alpha


def _evenly(owned: NDArray[np.bool_]) -> Shares:
    """Return equal shares for all owners of a class."""
    shares: Shares = owned / np.maximum(owned.sum(axis=0), 1)
    return shares


def _lift_the_smallest(images: Counts) -> Counts:
    """Return images [clients, classes] moved so that no client has fewer than the least number."""
    images = images.copy()
    total = images.sum(axis=1)
    least = min(AIM_FOR, int(total.sum()) // (2 * len(images)))
    for client in np.flatnonzero(total < least):
        for label in np.argsort(-images[client], kind="stable"):
            while total[client] < least:
                spare = np.minimum(images[:, label], total - least)
                donor = int(spare.argmax())
                if spare[donor] <= 0:
                    break  # nobody can give more of this label: go on with the next
                moved = min(least - total[client], spare[donor])
                images[donor, label] -= moved
                images[client, label] += moved
                total[donor] -= moved
                total[client] += moved
    return images
