"""From shares to images: every client's indices for training, validation and testing."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError
from learners.data.dataset import Source
from learners.data.partitions import Counts, Shares, whole_numbers

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Hand:
    """The images dealt to one client, as indices into an image set's two pools."""

    train: Indices
    validation: Indices
    test: Indices


def deal(
    images: Source,
    shares: Shares,
    *,
    rng: np.random.Generator,
    validation_share: float = 0.2,
    train_size: Counts | None = None,
    test_size: Counts | None = None,
    names: Sequence[str] | None = None,
) -> list[Hand]:
    """Return one hand per row of `shares`; no image is dealt twice.

    Parameters
    ----------
    shares
        float64[clients, classes], see `learners.data.partitions`.
    validation_share
        Part of a client's training images that is set aside for validation, label by label.
    train_size
        Training images of each client, *including* those set aside; without it all are dealt.
    test_size
        Test images of each client; without it a quarter of `train_size` (80 % for training, 20 %
        for testing) or what there is, or, without that either, the client's part of the test pool.
    names
        What to call the clients in messages.
    """
    if not 0 <= validation_share < 1:
        raise InvalidInputError(
            f"the validation share is from 0 up to, not including, 1, not {validation_share}"
        )
    if train_size is not None and train_size.min() < 1:
        raise InvalidInputError(f"the train size is at least 1, not {train_size.min()}")
    if test_size is not None and test_size.min() < 1:
        raise InvalidInputError(f"the test size is at least 1, not {test_size.min()}")
    names = names or [f"client {i}" for i in range(len(shares))]
    supply = np.bincount(images.train.labels, minlength=images.n_classes)
    supply_test = np.bincount(images.test.labels, minlength=images.n_classes)
    train = _training_counts(shares, supply, train_size, names, rng)
    _at_least(train, 2 if validation_share else 1, "training", names)
    if test_size is not None:
        sizes = test_size
    elif train_size is not None:
        sizes = np.maximum(1, np.rint(train_size / 4).astype(np.int64))
    else:
        pool = supply_test[train.any(axis=0)].sum()
        sizes = np.maximum(1, whole_numbers(train.sum(axis=1) * (pool / train.sum()), pool))
    test = allocate(sizes, train.astype(np.float64), supply_test, rng)
    if not test.any(axis=1).all():  # too few for all: one for everybody, then the rest
        first = allocate(np.minimum(sizes, 1), train.astype(np.float64), supply_test, rng)
        left = supply_test - first.sum(axis=0)
        test = first + allocate(sizes - first.sum(axis=1), train.astype(np.float64), left, rng)
    if test_size is not None:
        _enough(test, sizes, "test", names, train.astype(np.float64), supply_test)
    _at_least(test, 1, "test", names)
    hands = []
    for learning, testing in zip(
        _draw(images.train.labels, train, rng), _draw(images.test.labels, test, rng), strict=True
    ):
        aside = set_aside(images.train.labels[learning], validation_share, rng)
        hands.append(
            Hand(
                train=rng.permutation(learning[~aside]),
                validation=rng.permutation(learning[aside]),
                test=rng.permutation(testing),
            )
        )
    return hands


def allocate(
    sizes: Counts, proportions: Shares, supply: Counts, rng: np.random.Generator
) -> Counts:
    """Return whole numbers of images [clients, classes] near `sizes` · `proportions`.

    Row i adds up to ``sizes[i]`` and column c to no more than ``supply[c]``. Where a class runs
    out, its seekers get equal parts of what they sought and go on with their other classes, in
    proportion; a client never gets a class of which its proportion is 0. If the rows
    cannot all be filled, as many images as possible are given out (a maximum flow).
    """
    counts = np.zeros(proportions.shape, dtype=np.int64)
    ties = rng.permutation(len(sizes))
    while True:
        left = supply - counts.sum(axis=0)
        weights = np.where(left > 0, proportions, 0)
        totals = weights.sum(axis=1, keepdims=True)
        missing = np.where(totals[:, 0] > 0, sizes - counts.sum(axis=1), 0)
        if not missing.any():
            break
        ideal = weights / np.where(totals > 0, totals, 1) * missing[:, None]
        sought = np.stack(
            [whole_numbers(row, total) for row, total in zip(ideal, missing, strict=True)]
        )
        for c in np.flatnonzero(sought.sum(axis=0) > left):
            sought[:, c] = whole_numbers(
                sought[:, c] * (left[c] / sought[:, c].sum()), left[c], ties
            )
        counts += sought
    if (counts.sum(axis=1) < sizes).any():
        counts += _swaps_that_fill(sizes, proportions > 0, supply, counts)
    return counts


def _training_counts(
    shares: Shares,
    supply: Counts,
    train_size: Counts | None,
    names: Sequence[str],
    rng: np.random.Generator,
) -> Counts:
    if train_size is None:
        counts = np.zeros(shares.shape, dtype=np.int64)
        order = rng.permutation(len(shares))
        for c in range(len(supply)):
            # Of equal remainders, those are rounded up that lost most by rounding so far.
            gained = counts[:, :c].sum(axis=1) - shares[:, :c] @ supply[:c]
            ties = np.empty_like(order)
            ties[np.lexsort((order, np.round(gained, 6)))] = np.arange(len(order))
            total = supply[c] if shares[:, c].any() else 0
            counts[:, c] = whole_numbers(shares[:, c] * supply[c], total, ties)
        return counts
    counts = allocate(train_size, shares * supply, supply, rng)
    _enough(counts, train_size, "training", names, shares * supply, supply)
    return counts


def _enough(
    counts: Counts,
    sizes: Counts,
    what: str,
    names: Sequence[str],
    proportions: Shares,
    supply: Counts,
) -> None:
    found = counts.sum(axis=1)
    worst = int((found - sizes).argmin())
    if found[worst] < sizes[worst]:
        raise InvalidInputError(
            f"{names[worst]} would get {found[worst]} {what} images instead of {sizes[worst]}: the "
            f"data set has too few of the labels that its {len(found)} clients hold; "
            f"{_largest_size(proportions, supply)} for each can be had"
        )


def _largest_size(proportions: Shares, supply: Counts) -> int:
    """Return how many images every client can have, if all have equally many."""

    def possible(size: int) -> bool:
        sizes = np.full(len(proportions), size)
        got = allocate(sizes, proportions, supply, np.random.default_rng(0))
        return bool((got.sum(axis=1) == size).all())

    return bisect.bisect_left(
        range(1, supply.sum() // len(proportions) + 1), True, key=lambda size: not possible(size)
    )


def _at_least(counts: Counts, least: int, what: str, names: Sequence[str]) -> None:
    found = counts.sum(axis=1)
    worst = int(found.argmin())
    if found[worst] < least:
        raise InvalidInputError(
            f"{names[worst]} would get {found[worst]} {what} images and needs at least {least}: "
            f"{len(found)} clients are too many for this data set and partition"
        )


def _swaps_that_fill(
    sizes: Counts, allowed: NDArray[np.bool_], supply: Counts, counts: Counts
) -> Counts:
    """Return the changes of `counts` that fill as many rows as can be filled.

    A client without enough images of its labels may take one from a client that has another label
    to go on with, and so on: augmenting paths of a maximum flow.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    n_clients, n_classes = counts.shape
    source, sink = n_clients + n_classes, n_clients + n_classes + 1
    capacity = np.zeros((sink + 1, sink + 1), dtype=np.int32)
    capacity[source, :n_clients] = sizes - counts.sum(axis=1)
    capacity[:n_clients, n_clients:source] = np.where(allowed, sizes.sum(), 0)
    capacity[n_clients:source, :n_clients] = counts.T
    capacity[n_clients:source, sink] = supply - counts.sum(axis=0)
    flow = maximum_flow(csr_array(capacity), source, sink).flow.toarray()
    return flow[:n_clients, n_clients:source].astype(np.int64)


def _draw(labels: NDArray[np.int64], counts: Counts, rng: np.random.Generator) -> list[Indices]:
    """Return each client's indices: ``counts[i, c]`` of class c, at random, none twice."""
    order = rng.permutation(len(labels))
    by_class = order[np.argsort(labels[order], kind="stable")]
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=counts.shape[1]))])
    pieces: list[list[Indices]] = [[] for _ in counts]
    for c in range(counts.shape[1]):
        cuts = starts[c] + np.concatenate([[0], np.cumsum(counts[:, c])])
        for i in np.flatnonzero(counts[:, c]):
            pieces[i].append(by_class[cuts[i] : cuts[i + 1]])
    return [np.concatenate(p) if p else np.empty(0, dtype=np.int64) for p in pieces]


def set_aside(labels: NDArray[Any], share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return a mask of about `share` of the positions, spread evenly over the sorted labels."""
    aside = np.zeros(len(labels), dtype=bool)
    if share:
        n = min(max(1, round(share * len(labels))), len(labels) - 1)
        places = ((np.arange(n) + rng.random()) * (len(labels) / n)).astype(np.int64)
        aside[np.argsort(labels, kind="stable")[places]] = True
    return aside
