import numpy as np
import pytest
import torch
from torch import nn

from learners.algorithms.fedproto import train_prototypes
from learners.rows.workspace import class_means, represented
from tests.learners import literal, toy

PROTOTYPES = torch.randn(2, 18, generator=torch.Generator().manual_seed(3))
GLOBAL = {"prototypes": PROTOTYPES, "classes": [0, 2]}  # nobody had class 1 yet

DISTANCES = {
    "mse": lambda apart: apart.square().mean(),
    "l2": lambda apart: apart.square().sum().sqrt(),
    "l1": lambda apart: apart.abs().sum(),
}


@pytest.mark.parametrize("distance", DISTANCES)
def test_one_step_near_the_prototypes(distance):
    one = literal.client("fedproto", lam=0.8, distance=distance)
    one.memory["model"] = v = literal.other_model()
    train_prototypes.run(one, GLOBAL)
    images, labels = literal.batch(one)

    def loss(module):
        vectors, scores = represented(module, images)
        total = nn.functional.cross_entropy(scores, labels)
        for c, prototype in ((0, PROTOTYPES[0]), (2, PROTOTYPES[1])):
            total = total + 0.8 * DISTANCES[distance](vectors[labels == c].mean(0) - prototype)
        return total

    slope = literal.gradient(v, images, labels, loss)
    torch.testing.assert_close(one.memory["model"], v - literal.LR * slope, rtol=1e-4, atol=1e-6)


def test_what_is_sent_are_the_means_of_the_trained_models_representations():
    one = literal.client("fedproto")
    reply = train_prototypes.run(one, {})
    module = literal.LAYOUT.unpack(one.memory["model"], toy.network())
    images, labels = one.data.train.take(torch.arange(20))
    with torch.no_grad():
        vectors, _ = represented(module, images)
    assert reply["classes"].tolist() == [0, 1, 2]
    assert reply["counts"].tolist() == torch.bincount(labels).tolist()
    for c in range(3):
        torch.testing.assert_close(reply["prototypes"][c], vectors[labels == c].mean(0))


def test_the_server_averages_by_the_number_of_images_of_the_class(monkeypatch):
    federation, _ = literal.play("fedproto", sizes=(20, 20), rounds=1)
    one, two = torch.ones(1, 4), torch.tensor([[3.0, 3, 3, 3], [5, 5, 5, 5]])
    replies = {
        0: {"prototypes": one, "classes": np.array([1]), "counts": np.array([30])},
        1: {"prototypes": two, "classes": np.array([1, 2]), "counts": np.array([10, 7])},
    }
    monkeypatch.setattr(federation, "ask", lambda *_: replies)
    before = {"classes": [0, 1], "prototypes": torch.full((2, 4), 9.0)}
    after = federation.algorithm.round(federation, before, 2)
    assert after["classes"] == [0, 1, 2]
    # Class 0: nobody had it, so it stays. Class 1: (30·1 + 10·3) / 40. Class 2: one client.
    assert after["prototypes"][:, 0].tolist() == [9.0, 1.5, 5.0]


def test_a_picture_gets_the_class_of_the_nearest_prototype():
    one = literal.client("fedproto")
    images, _ = literal.batch(one)
    one.workspace.load(one.own_model)
    scores = one.algorithm.scores(one, GLOBAL, images)
    vectors, plain = represented(one.workspace.module, images)
    apart = torch.stack([(vectors - p).norm(dim=1) for p in PROTOTYPES], dim=1)
    assert torch.equal(scores.argmax(1), torch.tensor([0, 2])[apart.argmin(1)])
    assert bool((scores[:, 1] < scores[:, [0, 2]].amin(1)).all())
    assert torch.equal(one.algorithm.scores(one, {}, images), plain)


def test_without_the_term_models_are_local_ones_bit_for_bit():
    alone = literal.personal_models("local", sizes=(20, 9, 31))
    assert all(
        map(torch.equal, literal.personal_models("fedproto", sizes=(20, 9, 31), lam=0.0), alone)
    )
    tied = literal.personal_models("fedproto", sizes=(20, 9, 31), lam=1.0)
    assert float((tied[0] - alone[0]).norm()) > 1e-3


def test_no_weights_travel():
    _, rounds = literal.play("fedproto", sizes=(20, 20))
    assert rounds[0].metrics["down"] == 0
    assert rounds[1].metrics["up"] == rounds[1].metrics["down"] == 2 * 3 * 18
    assert rounds[-1].metrics["model"] == "personal"
    assert "classifier_mean_test_accuracy" in rounds[-1].metrics


def test_class_means_of_one_class():
    classes, means, counts = class_means(torch.tensor([[2.0], [4.0]]), torch.tensor([5, 5]))
    assert (classes.tolist(), means.tolist(), counts.tolist()) == ([5], [[3.0]], [2])
