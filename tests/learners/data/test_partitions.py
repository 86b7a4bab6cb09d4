"""Who holds which share of every class."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalitions.errors import InvalidInputError, UnknownNameError
from learners.data.partitions import PARTITIONS, shares_of, whole_numbers
from learners.settings.seeding import generator

counts_per_class = st.lists(st.integers(1, 400), min_size=2, max_size=12).map(np.array)
n_clients = st.integers(1, 40)
seeds = st.integers(0, 2**32)


def owners(shares: np.ndarray) -> np.ndarray:
    return (shares > 1e-6).sum(axis=0)


@given(counts_per_class, n_clients, seeds, st.sampled_from(["iid", "dirichlet", "quantity"]))
def test_everything_is_given_away_and_nothing_twice(counts, n, seed, name):
    partition = name if name == "iid" else f"{name}:0.3"
    shares = shares_of(partition, counts, n_clients=n, rng=generator(seed))
    assert shares.shape == (n, len(counts))
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=0), 1, atol=1e-6)


@given(counts_per_class, n_clients, seeds, st.data())
def test_pathological_gives_k_labels_each_and_owners_evenly(counts, n, seed, data):
    k = data.draw(st.integers(1, len(counts)))
    shares = shares_of(f"pathological:{k}", counts, n_clients=n, rng=generator(seed))
    assert ((shares > 0).sum(axis=1) == k).all()
    held = owners(shares)
    assert held.max() - held.min() <= 1  # so all labels are held as soon as n · k reaches them
    for label in np.flatnonzero(held):
        np.testing.assert_allclose(shares[shares[:, label] > 0, label], 1 / held[label])


def test_pathological_pairs_depend_on_the_seed_and_not_on_the_client_number():
    counts = np.full(10, 100)
    hands = np.stack(
        [
            shares_of("pathological:2", counts, n_clients=10, rng=generator(seed)) > 0
            for seed in range(300)
        ]
    )
    # Every client holds every label equally often: 2 in 10, sd of the mean 0.023.
    np.testing.assert_allclose(hands.mean(axis=0), 0.2, atol=0.1)


@given(counts_per_class, n_clients, st.data())
def test_ring_gives_the_next_k_labels(counts, n, data):
    k = data.draw(st.integers(1, len(counts)))
    shares = shares_of(f"ring:{k}", counts, n_clients=n, rng=generator(0))
    for client in range(n):
        expected = {(client + step) % len(counts) for step in range(k)}
        assert set(np.flatnonzero(shares[client])) == expected


def test_ring_of_two_leaves_each_client_two_relevant_neighbours():
    shares = shares_of("ring:2", np.full(10, 50), n_clients=10, rng=generator(0)) > 0
    overlap = shares.astype(int) @ shares.T.astype(int)
    np.fill_diagonal(overlap, 0)
    assert ((overlap > 0).sum(axis=1) == 2).all()


@given(
    st.lists(st.integers(50, 400), min_size=2, max_size=12).map(np.array),
    n_clients,
    seeds,
    st.sampled_from(["0.001", "0.1", "5", "1e6"]),
)
def test_dirichlet_leaves_nobody_with_less_than_the_minimum(counts, n, seed, alpha):
    shares = shares_of(f"dirichlet:{alpha}", counts, n_clients=n, rng=generator(seed))
    images = np.rint(shares * counts)
    np.testing.assert_allclose(shares * counts, images, atol=1e-6)  # whole images
    assert (images.sum(axis=0) == counts).all()
    assert images.sum(axis=1).min() >= min(10, counts.sum() // (2 * n))


def test_dirichlet_has_the_moments_of_the_distribution():
    alpha, n = 0.5, 5
    counts = np.full(400, 10_000)
    shares = shares_of(f"dirichlet:{alpha}", counts, n_clients=n, rng=generator(1))
    np.testing.assert_allclose(shares.mean(axis=1), 1 / n, atol=0.04)
    # Var q = (1/n)(1 − 1/n) / (n α + 1)
    variance = (1 / n) * (1 - 1 / n) / (n * alpha + 1)
    np.testing.assert_allclose(shares.var(), variance, rtol=0.1)


def test_smaller_alpha_means_fewer_labels_per_client():
    def labels(alpha: str) -> float:
        shares = shares_of(f"dirichlet:{alpha}", np.full(10, 1000), n_clients=20, rng=generator(3))
        p = shares / shares.sum(axis=1, keepdims=True)
        return float(np.exp(-(p * np.log(p + 1e-12)).sum(axis=1)).mean())  # effective number

    assert labels("0.1") < 5 < labels("1") < 8 < labels("100") <= 10.0001


@given(st.integers(1, 30), seeds)
def test_quantity_skews_sizes_and_not_labels(n, seed):
    counts = np.full(10, 300)
    shares = shares_of("quantity:0.2", counts, n_clients=n, rng=generator(seed))
    assert (shares == shares[:, :1]).all()
    assert (shares * counts).sum(axis=1).min() >= 9.99
    if n >= 5:
        sizes = (shares * counts).sum(axis=1)
        assert sizes.max() > 2 * sizes.min()


@pytest.mark.parametrize(
    "partition",
    [
        "pathological:11",
        "pathological:0",
        "pathological",
        "pathological:two",
        "ring:-1",
        "ring:²",
        "dirichlet",
        "dirichlet:0",
        "dirichlet:nan",
        "dirichlet:inf",
        "quantity:-1",
        "iid:2",
    ],
)
def test_a_wrong_parameter_gets_one_sentence(partition):
    with pytest.raises(InvalidInputError) as caught:
        shares_of(partition, np.full(10, 9), n_clients=3, rng=generator(0))
    assert "\n" not in str(caught.value)
    assert partition.partition(":")[0] in str(caught.value)


def test_an_unknown_partition_names_the_known_ones():
    with pytest.raises(UnknownNameError, match="did you mean 'dirichlet'"):
        shares_of("dirichlett:1", np.full(10, 9), n_clients=3, rng=generator(0))
    assert {"iid", "pathological", "ring", "dirichlet", "quantity", "domains"} <= set(PARTITIONS)


@given(st.lists(st.floats(0, 50), min_size=1, max_size=20), seeds)
def test_whole_numbers_keep_the_total_and_stay_within_one(amounts, seed):
    amounts = np.array(amounts)
    total = int(amounts.sum())
    if amounts.sum() > 0:
        amounts = amounts * (total / amounts.sum())
    ties = np.random.default_rng(seed).permutation(len(amounts))
    whole = whole_numbers(amounts, total, ties)
    assert whole.sum() == total
    assert (np.abs(whole - amounts) < 1 + 1e-6).all()
    assert (whole[amounts == 0] == 0).all()


def test_streams_of_different_purposes_differ_and_repeat():
    assert generator(0, "a").integers(2**40) == generator(0, "a").integers(2**40)
    drawn = {
        int(generator(*key).integers(2**60))
        for key in [(0, "a"), (0, "b"), (1, "a"), (0, "a", 1), (0, "a", 2)]
    }
    assert len(drawn) == 5
    with pytest.raises(InvalidInputError, match="seed"):
        generator(-1)


@pytest.mark.parametrize(
    ("n", "classes", "k", "relevant"),
    [(10, 10, 2, 2), (20, 10, 2, 6), (40, 10, 2, 14), (10, 10, 3, 4), (10, 100, 20, 2)],
)
@pytest.mark.parametrize("seed", range(5))
def test_distinct_has_no_twins_and_as_many_relevant_others_for_all(n, classes, k, relevant, seed):
    shares = shares_of(f"distinct:{k}", np.full(classes, 90), n_clients=n, rng=generator(seed))
    owned = shares > 0
    assert (owned.sum(axis=1) == k).all()
    assert len(np.unique(owned, axis=0)) == n
    assert (((owned.astype(int) @ owned.T) > 0).sum(axis=1) == relevant + 1).all()
    np.testing.assert_allclose(shares.sum(axis=0), 1)


def test_distinct_is_random_and_says_where_it_cannot_be():
    first, second = (
        shares_of("distinct:2", np.full(10, 90), n_clients=10, rng=generator(seed))
        for seed in (0, 1)
    )
    assert (first != second).any()
    for n in (12, 100):
        with pytest.raises(InvalidInputError, match="no two are alike"):
            shares_of("distinct:2", np.full(10, 90), n_clients=n, rng=generator(0))


def test_labels_can_be_named_client_by_client():
    shares = shares_of("labels:0,1/1/3,0", np.full(4, 9), n_clients=3, rng=generator(0))
    np.testing.assert_allclose(shares, [[0.5, 0.5, 0, 0], [0, 0.5, 0, 0], [0.5, 0, 0, 1]])
    for wrong in ("", "0,1", "0/1/4", "0/1/x", "0/1/-1"):
        with pytest.raises(InvalidInputError, match="labels: needs a list"):
            shares_of(f"labels:{wrong}", np.full(4, 9), n_clients=3, rng=generator(0))
