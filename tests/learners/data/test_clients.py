"""Federated data as the federation gets it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from coalitions.errors import InvalidInputError, UnknownNameError
from learners.data.clients import FederatedData, Split, domain_of_clients, federated_data
from learners.data.dataset import DATASETS, DataSet, Images, ImageSet
from learners.data.files import data_folder


def fingerprints(split: Split) -> set[bytes]:
    return {image.numpy().tobytes() for image in split.inputs}


def equal(one: FederatedData, other: FederatedData) -> bool:
    return all(
        torch.equal(getattr(getattr(a, part), field), getattr(getattr(b, part), field))
        for a, b in zip(one.clients, other.clients, strict=True)
        for part in ("train", "validation", "test")
        for field in ("inputs", "targets")
    )


def test_tensors_are_as_promised():
    data = federated_data("digits", clients=10, partition="pathological:2", seed=0)
    assert (data.name, data.n_classes, data.shape) == ("digits", 10, (1, 8, 8))
    for client in data.clients:
        assert (client.domain, client.poisoned) == ("", False)
        for split in (client.train, client.validation, client.test):
            assert split.inputs.dtype == torch.float32
            assert split.targets.dtype == torch.int64
            assert split.inputs.shape == (len(split), 1, 8, 8)
            assert split.inputs.is_contiguous()
            assert split.inputs.min() == -1
            assert split.inputs.max() == 1


def test_no_test_image_is_in_any_training_set():
    data = federated_data("digits", clients=10, partition="dirichlet:0.5", seed=0)
    testing = set().union(*(fingerprints(c.test) for c in data.clients))
    learning = set().union(
        *(fingerprints(c.train) | fingerprints(c.validation) for c in data.clients)
    )
    assert not testing & learning


@pytest.mark.parametrize("partition", ["iid", "pathological:2", "dirichlet:0.1", "quantity:1"])
def test_the_seed_decides_everything(partition):
    def made(seed: int) -> FederatedData:
        return federated_data("digits", clients=7, partition=partition, seed=seed)

    torch.manual_seed(1)
    before = torch.get_rng_state()
    assert equal(made(5), made(5))
    assert torch.equal(torch.get_rng_state(), before)
    one, other = made(5), made(6)
    assert not torch.equal(one.clients[0].train.inputs[:5], other.clients[0].train.inputs[:5])


def test_golden_split_is_the_same_on_every_machine():
    data = federated_data("digits", clients=4, partition="dirichlet:0.3", seed=11)
    assert [len(c.train) for c in data.clients] == [249, 207, 278, 412]
    assert data.clients[0].train.targets[:12].tolist() == [3, 6, 5, 1, 6, 7, 6, 6, 0, 5, 3, 6]


def test_a_client_keeps_its_domain_data_when_another_domain_gets_more_clients():
    few = federated_data("digits-domains", clients=3, partition="domains:plain=2,noisy=1", seed=0)
    more = federated_data(
        "digits-domains", clients=5, partition="domains:plain=2,noisy=1,striped=2", seed=0
    )
    for a, b in zip(few.clients, more.clients[:3], strict=True):
        assert torch.equal(a.train.inputs, b.train.inputs)


def test_domains_come_in_equal_blocks_whatever_the_partition_inside():
    for partition in ("auto", "domains", "pathological:2"):
        data = federated_data("digits-domains", clients=10, partition=partition, seed=0)
        assert [c.domain for c in data.clients] == [
            name for name in ("plain", "inverted", "rotated", "noisy", "striped") for _ in "ab"
        ]
    assert all(len(c.train.targets.unique()) == 2 for c in data.clients)


def test_domains_show_the_same_digits_differently():
    sets = DATASETS["digits-domains"]().load(None)
    plain = sets["plain"].train.pixels[..., 0]
    np.testing.assert_array_equal(sets["inverted"].train.pixels[..., 0], 255 - plain)
    np.testing.assert_array_equal(
        sets["rotated"].train.pixels[:, ::-1, :, 0].transpose(0, 2, 1), plain
    )
    assert (sets["noisy"].train.pixels[..., 0] >= plain).all()
    striped = sets["striped"].train.pixels[..., 0].astype(int)
    blank = plain == 0
    assert set(np.unique(striped[blank])) == {0, 255}
    for images in sets.values():
        np.testing.assert_array_equal(images.train.labels, sets["plain"].train.labels)


def test_train_size_can_differ_between_clients():
    data = federated_data(
        "digits", clients=3, partition="iid", seed=0, train_size=[10, 100, 50], test_size=20
    )
    assert [len(c.train) + len(c.validation) for c in data.clients] == [10, 100, 50]
    assert [len(c.test) for c in data.clients] == [20, 20, 20]
    with pytest.raises(InvalidInputError, match="3 clients need 3 train sizes, not 2"):
        federated_data("digits", clients=3, partition="iid", seed=0, train_size=[1, 2])


def test_test_size_can_differ_between_clients():
    """A domain with few pictures is tested on all it has, and the others on all of theirs."""
    settings = {"clients": 3, "partition": "domains", "seed": 0, "train_size": 60}
    data = federated_data("digits-domains", **settings, test_size=[120, 7, 30])
    assert [len(c.test) for c in data.clients] == [120, 7, 30]
    same = federated_data("digits-domains", **settings, test_size=30)
    for ours, theirs in zip(data.clients, same.clients, strict=True):
        assert (ours.train.inputs == theirs.train.inputs).all()
    with pytest.raises(InvalidInputError, match="3 clients need 3 test sizes, not 2"):
        federated_data("digits", clients=3, partition="iid", seed=0, test_size=[1, 2])
    with pytest.raises(InvalidInputError, match="at least 1, not 0"):
        federated_data("digits", clients=3, partition="iid", seed=0, test_size=[1, 2, 0])


def test_layouts_of_domains():
    assert domain_of_clients(["a", "b", "c"], 4) == ["a", "a", "b", "c"]
    assert domain_of_clients(["a", "b", "c"], 2) == ["a", "b"]
    with pytest.raises(InvalidInputError, match="takes the names a, b"):
        domain_of_clients(["a", "b"], 2, "a=1,z=1")
    with pytest.raises(InvalidInputError, match="places 3 clients, but there are 2"):
        domain_of_clients(["a", "b"], 2, "a=1,b=2")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dataset": "digit"}, "did you mean 'digit"),
        ({"clients": 0}, "at least one client"),
        ({"clients": 900}, "too many"),
        ({"partition": "domains"}, "digits has none"),
        ({"partition": "pathological:11"}, "from 1 to 10"),
        ({"train_size": 500}, "143 for each"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_demands_get_one_sentence(arguments, message):
    demand = {"dataset": "digits", "clients": 10, "partition": "iid", "seed": 0} | arguments
    dataset = demand.pop("dataset")
    with pytest.raises(InvalidInputError, match=message) as caught:
        federated_data(dataset, **demand)
    assert "\n" not in str(caught.value)


def test_the_data_folder_is_the_named_one_or_the_environments(tmp_path):
    assert data_folder(tmp_path, {"COALITIONS_DATA": "/elsewhere"}) == tmp_path
    assert data_folder(None, {"COALITIONS_DATA": str(tmp_path)}) == tmp_path
    assert data_folder(None, {}) is None
    with pytest.raises(InvalidInputError, match="no folder"):
        data_folder(tmp_path / "missing", {})


class Crosses(DataSet):
    """Bright and dark squares, 4×4 grey; what a user could add."""

    def load(self, folder):
        pool = Images(
            np.repeat(np.array([0, 255], np.uint8), 30)[:, None, None] * np.ones((4, 4), np.uint8),
            np.repeat([0, 1], 30),
        )
        return {"": ImageSet(pool, pool, 2, shape=(3, 8, 6))}


def test_own_data_sets_are_resized_and_coloured(monkeypatch):
    monkeypatch.setitem(DATASETS._entries, "crosses", Crosses)
    data = federated_data("crosses", clients=2, partition="iid", seed=0)
    assert data.shape == (3, 8, 6)
    train = data.clients[0].train
    assert train.inputs.shape == (len(train), 3, 8, 6)
    np.testing.assert_allclose(
        train.inputs.mean(dim=(1, 2, 3)), 2 * train.targets.numpy() - 1, atol=1e-6
    )


def test_without_validation_the_split_is_empty_but_has_the_shape(monkeypatch):
    monkeypatch.setitem(DATASETS._entries, "crosses", Crosses)
    data = federated_data("crosses", clients=2, partition="iid", seed=0, validation_share=0)
    for client in data.clients:
        assert client.validation.inputs.shape == (0, 3, 8, 6)
        assert client.validation.targets.shape == (0,)
        assert len(client.train) == 30


def test_an_unknown_data_set_is_an_unknown_name():
    with pytest.raises(UnknownNameError):
        DATASETS["imagenet"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Images(np.zeros((3, 4, 4)), np.zeros(3, int)),
        lambda: Images(np.zeros((3, 4), np.uint8), np.zeros(3, int)),
        lambda: Images(np.zeros((3, 4, 4), np.uint8), np.zeros(2, int)),
        lambda: Images(np.zeros((3, 4, 4), np.uint8), np.array([0, 1, -1])),
        lambda: Images(np.zeros((3, 4, 4), np.uint8), np.zeros(3)),
    ],
)
def test_images_are_checked_where_they_enter(make):
    with pytest.raises(InvalidInputError):
        make()
