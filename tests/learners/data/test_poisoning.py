"""Poison changes what it says and nothing else."""

from __future__ import annotations

import pytest
import torch

from coalitions.errors import InvalidInputError
from learners.data.clients import FederatedData, federated_data
from learners.data.poisoning import poison_of


def ten_clients(*poison: str) -> FederatedData:
    return federated_data("digits", clients=10, partition="iid", seed=3, poison=poison)


CLEAN = ten_clients()


def same(one, other) -> bool:
    return torch.equal(one.inputs, other.inputs) and torch.equal(one.targets, other.targets)


@pytest.mark.parametrize("poison", ["wrong-labels:2,5", "swap-1-7:2,5", "noise:2,5"])
def test_only_the_training_data_of_the_chosen_clients_changes(poison):
    data = ten_clients(poison)
    for number, (clean, client) in enumerate(zip(CLEAN.clients, data.clients, strict=True)):
        assert client.poisoned == (number in (2, 5))
        assert same(clean.train, client.train) != client.poisoned
        assert same(clean.validation, client.validation)
        assert same(clean.test, client.test)


def test_every_wrong_label_is_wrong_and_all_wrong_ones_occur():
    poisoned = ten_clients("wrong-labels:4").clients[4].train
    clean = CLEAN.clients[4].train
    assert (poisoned.targets != clean.targets).all()
    assert poisoned.targets.unique().tolist() == list(range(10))
    assert ((poisoned.targets - clean.targets) % 10).unique().tolist() == list(range(1, 10))
    assert torch.equal(poisoned.inputs, clean.inputs)


def test_swap_exchanges_two_labels_and_keeps_the_others():
    poisoned = ten_clients("swap-1-7:0").clients[0].train
    clean = CLEAN.clients[0].train
    swap = {1: 7, 7: 1}
    assert poisoned.targets.tolist() == [swap.get(label, label) for label in clean.targets.tolist()]
    assert torch.equal(poisoned.inputs, clean.inputs)


def test_noise_changes_pictures_within_their_range():
    poisoned = ten_clients("noise:1").clients[1].train
    clean = CLEAN.clients[1].train
    assert torch.equal(poisoned.targets, clean.targets)
    assert poisoned.inputs.min() >= -1
    assert poisoned.inputs.max() <= 1
    middle = clean.inputs.abs() < 0.2  # where clipping hides little of a noise of 1
    assert 0.5 < (poisoned.inputs - clean.inputs)[middle].std() < 1


def test_no_two_clients_get_the_same_noise():
    one, other = (
        (ten_clients("noise:1,2").clients[i].train.inputs - CLEAN.clients[i].train.inputs)[:20]
        for i in (1, 2)
    )
    inside = (one.abs() > 0) & (other.abs() > 0)
    assert (one[inside] != other[inside]).float().mean() > 0.99


def test_kinds_can_be_mixed_and_order_does_not_matter():
    one = ten_clients("noise:1", "swap-1-7:2")
    other = ten_clients("swap-1-7:2", "noise:1")
    assert all(same(a.train, b.train) for a, b in zip(one.clients, other.clients, strict=True))


@pytest.mark.parametrize(
    "poison",
    [
        ["sugar:1"],
        ["noise"],
        ["noise:"],
        ["noise:a"],
        ["noise:1,,2"],
        ["noise:-1"],
        ["noise:10"],
        ["swap-1-1:0"],
        ["swap-1-10:0"],
        ["swap-1:0"],
        ["noise:1", "wrong-labels:1"],
    ],
)
def test_wrong_poison_gets_one_sentence(poison):
    with pytest.raises(InvalidInputError) as caught:
        poison_of(poison, n_clients=10, n_classes=10)
    assert "\n" not in str(caught.value)
