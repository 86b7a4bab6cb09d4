import pytest
import torch
from torch import nn

from learners.algorithms.fedrod import train_two_heads
from learners.rows.workspace import represented
from tests.learners import literal, toy

_, HEAD = literal.LAYOUT.parts("head")


@pytest.mark.parametrize("gamma", [1.0, 0.5])
def test_one_step_of_both_heads(gamma):
    one = literal.client("fedrod", gamma=gamma)
    w, psi = literal.other_model(), 0.3 * literal.other_model(8)[HEAD]
    one.memory["personal_head"] = psi
    reply = train_two_heads.run(one, {"model": w})
    images, labels = literal.batch(one)
    counts = torch.bincount(one.data.train.targets, minlength=3).double()

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
    assert len(set(torch.bincount(one.data.train.targets).tolist())) > 1
    sent = {"model": literal.other_model()}
    plain = train_two_heads.run(literal.client("fedrod", gamma=0.0), sent)["model"]
    assert float((train_two_heads.run(one, sent)["model"] - plain).norm()) > 1e-3


def test_a_class_the_client_has_not_is_out_of_its_softmax():
    one = literal.client("fedrod")
    labels = one.data.train.targets
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


def hypernetwork(one, seed=3):
    """Return a hypernetwork that writes something, and what it writes for a client, by hand."""
    stream = torch.Generator().manual_seed(seed)
    first, second = torch.randn(4, 3, generator=stream), torch.randn(57, 4, generator=stream)
    biases = torch.randn(4, generator=stream), 0.1 * torch.randn(57, generator=stream)
    flat = torch.cat([first.reshape(-1), biases[0], second.reshape(-1), biases[1]])
    shares = torch.bincount(one.data.train.targets, minlength=3) / len(one.data.train)

    def write(nu):
        a, b, c, d = nu.split([12, 4, 228, 57])
        return c.view(57, 4) @ (a.view(4, 3) @ shares + b).relu() + d

    return flat, write


def test_one_step_of_a_hypernetwork():
    one = literal.client("fedrod", head="hypernetwork", width=4)
    w, (nu, write) = literal.other_model(), hypernetwork(one)
    reply = train_two_heads.run(one, {"model": w, "hypernetwork": nu})
    images, labels = literal.batch(one)
    with torch.no_grad():
        vectors, generic = represented(literal.LAYOUT.unpack(w, toy.network()), images)
    free = nu.clone().requires_grad_(True)
    psi = write(free)
    scores = generic + vectors @ psi[:54].view(3, 18).T + psi[54:]
    nn.functional.cross_entropy(scores, labels).backward()
    assert float(free.grad.norm()) > 1e-3
    torch.testing.assert_close(reply["hypernetwork"], nu - literal.LR * free.grad)
    assert "personal_head" not in one.memory
    # The generic half does not know how the personal head comes about.
    alone = train_two_heads.run(literal.client("fedrod"), {"model": w})
    assert torch.equal(reply["model"], alone["model"])


def test_a_hypernetwork_writes_a_head_also_for_who_was_never_asked():
    one = literal.client("fedrod", head="hypernetwork", width=4)
    w, (nu, write) = literal.other_model(), hypernetwork(one)
    row = one.algorithm.model(one, {"model": w, "hypernetwork": nu, "both_heads": True})
    torch.testing.assert_close(row[HEAD], w[HEAD] + write(nu))


def test_with_gamma_0_and_a_hypernetwork_the_generic_model_is_federated_averaging_too():
    _, plain = literal.play("fedavg", sizes=(20, 9, 31))
    federation, rounds = literal.play("fedrod", sizes=(20, 9, 31), gamma=0.0, head="hypernetwork")
    assert torch.equal(rounds[-1].state["model"], plain[-1].state["model"])
    start = federation.algorithm.start(federation)["hypernetwork"]
    assert not torch.equal(rounds[-1].state["hypernetwork"], start)
    # Models and hypernetworks travel: 57 columns of 16 + 1 numbers, and 16 of 3 + 1.
    size = literal.LAYOUT.size + 57 * 17 + 16 * 4
    assert rounds[0].metrics["up"] == rounds[0].metrics["down"] == 3 * size


def test_at_first_a_hypernetwork_writes_nothing():
    federation, _ = literal.play("fedrod", rounds=1, head="hypernetwork")
    state = federation.algorithm.start(federation)
    one = literal.client("fedrod", head="hypernetwork")
    row = one.algorithm.model(one, {**state, "both_heads": True})
    assert torch.equal(row, state["model"])
