import pytest
import torch
from torch import nn

from learners.algorithms.fedrod import train_two_heads
from learners.representation import represented
from tests.learners import literal, toy

_, HEAD = literal.LAYOUT.parts("head")


@pytest.mark.parametrize("gamma", [1.0, 0.5])
def test_one_step_of_both_heads(gamma):
    one = literal.client("fedrod", gamma=gamma)
    w, psi = literal.other_model(), 0.3 * literal.other_model(8)[HEAD]
    one.memory["personal_head"] = psi
    reply = train_two_heads.run(one, {"model": w})
    images, labels = literal.batch(one)
    counts = torch.bincount(one.data.train.labels, minlength=3).double()

    def balanced(module):
        weighed = counts**gamma * module(images).double().exp()
        return -(weighed[torch.arange(len(labels)), labels] / weighed.sum(1)).log().mean()

    slope = literal.gradient(w, images, labels, balanced)
    torch.testing.assert_close(reply["model"], w - literal.LR * slope, rtol=1e-4, atol=1e-6)

    module = literal.LAYOUT.unpack(w, toy.network())
    with torch.no_grad():
        vectors, generic = represented(module, images)
    head = psi.clone().requires_grad_(True)
    scores = generic + vectors @ head[:54].view(3, 18).T + head[54:]
    nn.functional.cross_entropy(scores, labels).backward()
    torch.testing.assert_close(one.memory["personal_head"], psi - literal.LR * head.grad)


def test_the_personal_predictor_adds_both_heads_scores():
    one = literal.client("fedrod")
    w, psi = literal.other_model(), literal.other_model(8)[HEAD]
    one.memory["personal_head"] = psi
    row = one.algorithm.model(one, {"model": w, "both_heads": True})
    images, _ = literal.batch(one)
    vectors, generic = represented(literal.LAYOUT.unpack(w, toy.network()), images)
    both = literal.LAYOUT.unpack(row, toy.network())(images)
    torch.testing.assert_close(both, generic + vectors @ psi[:54].view(3, 18).T + psi[54:])
    assert one.algorithm.model(one, {"model": w}) is w


def test_with_gamma_0_the_generic_model_is_federated_averaging_bit_for_bit():
    # So nothing of the personal head's loss reaches the body or the generic head.
    _, plain = literal.play("fedavg", sizes=(20, 9, 31))
    federation, generic = literal.play("fedrod", sizes=(20, 9, 31), gamma=0.0)
    assert torch.equal(generic[-1].state["model"], plain[-1].state["model"])
    assert all(m["personal_head"].abs().max() > 0 for m in federation.memories().values())


def test_balancing_changes_the_generic_model_where_classes_are_unequal():
    one = literal.client("fedrod")
    assert len(set(torch.bincount(one.data.train.labels).tolist())) > 1
    sent = {"model": literal.other_model()}
    plain = train_two_heads.run(literal.client("fedrod", gamma=0.0), sent)["model"]
    assert float((train_two_heads.run(one, sent)["model"] - plain).norm()) > 1e-3


def test_a_class_the_client_has_not_is_out_of_its_softmax():
    one = literal.client("fedrod")
    labels = one.data.train.labels
    labels[labels == 2] = 1
    w = literal.other_model()
    trained = train_two_heads.run(one, {"model": w})["model"]
    assert torch.isfinite(trained).all()
    head = literal.LAYOUT.views(trained)["4.weight"], literal.LAYOUT.views(w)["4.weight"]
    assert torch.equal(head[0][2], head[1][2])  # its generic weights are left to those who have it
    assert not torch.equal(head[0][1], head[1][1])


def test_both_models_are_reported():
    _, rounds = literal.play("fedrod")
    assert rounds[-1].metrics["model"] == "personal"
    assert "global_mean_test_accuracy" in rounds[-1].metrics
