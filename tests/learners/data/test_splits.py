"""From shares to images."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coalitions.errors import InvalidInputError
from learners.data.dataset import Images, ImageSet
from learners.data.partitions import shares_of
from learners.data.splits import allocate, deal
from learners.settings.seeding import generator


def numbered(n_train: int, n_test: int, n_classes: int) -> ImageSet:
    def pool(n: int) -> Images:
        return Images(np.zeros((n, 2, 2), np.uint8), np.arange(n) % n_classes)

    return ImageSet(pool(n_train), pool(n_test), n_classes)


partitions = st.sampled_from(
    ["iid", "pathological:1", "pathological:2", "ring:3", "dirichlet:0.1", "quantity:0.5"]
)


@given(st.integers(1, 12), partitions, st.integers(0, 99), st.floats(0, 0.9))
def test_no_image_is_dealt_twice_and_all_of_held_labels_are_dealt(n, partition, seed, share):
    images = numbered(400, 200, 5)
    counts = np.bincount(images.train.labels)
    shares = shares_of(partition, counts, n_clients=n, rng=generator(seed))
    hands = deal(images, shares, rng=generator(seed, "deal"), validation_share=share)
    learning = np.concatenate([np.concatenate([h.train, h.validation]) for h in hands])
    testing = np.concatenate([h.test for h in hands])
    assert len(set(learning)) == len(learning) == counts[shares.any(axis=0)].sum()
    assert len(set(testing)) == len(testing)
    for hand in hands:
        assert len(hand.train)
        assert len(hand.test)
        assert (len(hand.validation) > 0) == (share > 0)
        own = set(images.train.labels[np.concatenate([hand.train, hand.validation])])
        assert set(images.test.labels[hand.test]) <= own
        expected = share * (len(hand.train) + len(hand.validation))
        assert len(hand.validation) == pytest.approx(expected, abs=1)


@given(st.integers(1, 8), partitions, st.integers(0, 99), st.integers(4, 40))
def test_train_size_is_met_and_a_quarter_comes_on_top_for_testing(n, partition, seed, size):
    images = numbered(400, 200, 5)
    shares = shares_of(partition, np.full(5, 80), n_clients=n, rng=generator(seed))
    hands = deal(images, shares, rng=generator(seed), train_size=np.full(n, size))
    for hand in hands:
        assert len(hand.train) + len(hand.validation) == size
        assert len(hand.validation) == max(1, round(0.2 * size))
        assert len(hand.test) == max(1, round(size / 4))


def test_cffls_250_images_are_160_to_train_40_to_validate_50_to_test():
    images = numbered(1000, 400, 10)
    (hand,) = deal(images, np.full((1, 10), 1.0), rng=generator(0), train_size=np.array([200]))
    assert (len(hand.train), len(hand.validation), len(hand.test)) == (160, 40, 50)


def test_validation_and_test_have_the_labels_of_the_training_data():
    images = numbered(2000, 1000, 10)
    shares = shares_of("dirichlet:0.3", np.full(10, 200), n_clients=5, rng=generator(4))
    for hand in deal(images, shares, rng=generator(0)):
        own = np.concatenate([hand.train, hand.validation])
        p = np.bincount(images.train.labels[own], minlength=10) / len(own)
        for labels in (images.train.labels[hand.validation], images.test.labels[hand.test]):
            q = np.bincount(labels, minlength=10) / len(labels)
            assert np.abs(q - p).max() <= 1.5 / len(labels)


@st.composite
def demands(draw):
    n, c = draw(st.integers(1, 4)), draw(st.integers(1, 4))

    def table(entry):
        row = st.lists(entry, min_size=c, max_size=c)
        return draw(st.lists(row, min_size=n, max_size=n))

    support, weights = table(st.booleans()), table(st.floats(0.01, 9))
    sizes = draw(st.lists(st.integers(0, 6), min_size=n, max_size=n))
    supply = draw(st.lists(st.integers(0, 8), min_size=c, max_size=c))
    return np.array(sizes), np.where(support, weights, 0.0), np.array(supply)


def test_a_client_with_other_labels_gives_way_to_one_without():
    only_zero, both = [1.0, 0.0], [0.5, 0.5]
    counts = allocate(np.array([4, 4]), np.array([only_zero, both]), np.array([4, 4]), generator(0))
    assert counts.tolist() == [[4, 0], [0, 4]]


@settings(max_examples=80)
@given(demands(), st.integers(0, 5))
def test_allocation_gives_out_as_much_as_is_possible(demand, seed):
    sizes, proportions, supply = demand
    counts = allocate(sizes, proportions, supply, generator(seed))
    assert (counts >= 0).all()
    assert (counts[proportions == 0] == 0).all()
    assert (counts.sum(axis=0) <= supply).all()
    assert (counts.sum(axis=1) <= sizes).all()
    # Maximum flow = minimum cut, over all sets of clients on the source's side.
    cuts = []
    for inside in itertools.product([False, True], repeat=len(sizes)):
        reached = (proportions[list(inside)] > 0).any(axis=0)
        cuts.append(sizes[~np.array(inside)].sum() + supply[reached].sum())
    assert counts.sum() == min(cuts)


@given(demands())
def test_allocation_is_the_rounded_demand_where_nothing_is_short(demand):
    sizes, proportions, _ = demand
    assume((proportions.sum(axis=1) > 0).all())
    counts = allocate(sizes, proportions, np.full(proportions.shape[1], 100), generator(0))
    ideal = proportions / proportions.sum(axis=1, keepdims=True) * sizes[:, None]
    assert (np.abs(counts - ideal) < 1 + 1e-6).all()
    assert (counts.sum(axis=1) == sizes).all()


def test_a_size_that_cannot_be_had_names_the_largest_that_can():
    images = numbered(400, 200, 5)
    shares = shares_of("ring:1", np.full(5, 80), n_clients=10, rng=generator(0))
    with pytest.raises(InvalidInputError, match="40 for each can be had"):
        deal(images, shares, rng=generator(0), train_size=np.full(10, 41))
    hands = deal(images, shares, rng=generator(0), train_size=np.full(10, 40))
    assert len(hands[9].train) == 32


@given(st.integers(1, 200))
def test_everybody_is_tested_as_long_as_there_are_images(n):
    images = numbered(1000, 200, 10)
    shares = shares_of("iid", np.full(10, 100), n_clients=n, rng=generator(0))
    hands = deal(images, shares, rng=generator(1))
    assert min(len(hand.test) for hand in hands) >= 1
    assert sum(len(hand.test) for hand in hands) >= 190
    sizes = [len(hand.train) + len(hand.validation) for hand in hands]
    assert max(sizes) - min(sizes) <= 1


def test_clients_without_images_get_one_sentence():
    images = numbered(20, 20, 5)
    shares = shares_of("iid", np.full(5, 4), n_clients=15, rng=generator(0))
    with pytest.raises(InvalidInputError, match="15 clients are too many"):
        deal(images, shares, rng=generator(0))
    few_tests = numbered(400, 5, 5)
    shares = shares_of("iid", np.full(5, 80), n_clients=9, rng=generator(0))
    with pytest.raises(InvalidInputError, match="0 test images"):
        deal(few_tests, shares, rng=generator(0))


@pytest.mark.parametrize(
    "wrong",
    [
        {"validation_share": 1.0},
        {"validation_share": -0.1},
        {"train_size": np.array([0])},
        {"test_size": np.array([0])},
        {"test_size": np.array([999])},
    ],
)
def test_wrong_sizes_get_one_sentence(wrong):
    with pytest.raises(InvalidInputError):
        deal(numbered(40, 20, 2), np.full((1, 2), 1.0), rng=generator(0), **wrong)
