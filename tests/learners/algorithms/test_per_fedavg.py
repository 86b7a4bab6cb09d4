import pytest
import torch
from torch import nn

from learners.algorithms.per_fedavg import train_meta
from tests.learners import literal, toy


def meta_gradient(one, w, alpha):
    """Return D, D', D″ and the first-order meta-gradient of the first step."""
    inner, outer, curvature = (literal.batch(one, p) for p in ("inner", "train", "hessian"))
    ahead = w - alpha * literal.gradient(w, *inner)
    return literal.gradient(ahead, *outer), curvature


def test_one_first_order_step():
    one = literal.client("per-fedavg", alpha=0.2, batch_size=20)
    w = literal.other_model()
    g, _ = meta_gradient(one, w, 0.2)
    reply = train_meta.run(one, {"model": w})
    torch.testing.assert_close(reply["model"], w - literal.LR * g)


def test_one_hessian_free_step_against_the_hessian():
    one = literal.client("per-fedavg", alpha=0.2, variant="hf", difference_step=1e-3)
    w = literal.other_model()
    g, (images, labels) = meta_gradient(one, w, 0.2)
    layout, module = literal.LAYOUT, toy.network()

    def loss(row):
        scores = torch.func.functional_call(module, layout.views(row), (images,))
        return nn.functional.cross_entropy(scores, labels)

    _, curved = torch.autograd.functional.hvp(loss, w, g)
    assert float(curved.norm()) > 0.05 * float(g.norm())  # the term is there to be tested
    reply = train_meta.run(one, {"model": w})
    torch.testing.assert_close(
        reply["model"], w - literal.LR * (g - 0.2 * curved), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("variant", ["fo", "hf"])
def test_without_a_step_ahead_it_is_federated_averaging_bit_for_bit(variant):
    _, plain = literal.play("fedavg")
    _, meta = literal.play("per-fedavg", alpha=0.0, variant=variant)
    assert torch.equal(meta[-1].state["model"], plain[-1].state["model"])


def test_the_step_ahead_and_the_hessian_change_the_model():
    w, trained = literal.other_model(), []
    for options in ({"alpha": 0.0}, {"alpha": 0.2}, {"alpha": 0.2, "variant": "hf"}):
        one = literal.client("per-fedavg", **options)
        trained.append(train_meta.run(one, {"model": w})["model"])
    assert float((trained[0] - trained[1]).norm()) > 1e-3
    assert float((trained[1] - trained[2]).norm()) > 1e-3


def test_the_personal_model_is_one_step_over_all_data_from_the_global_one():
    one = literal.client("per-fedavg", alpha=0.3)
    w = literal.other_model()
    images, labels = one.data.train.take(torch.arange(20))
    expected = w - 0.3 * literal.gradient(w, images, labels)
    torch.testing.assert_close(one.algorithm.model(one, {"model": w, "adapt": True}), expected)
    assert one.algorithm.model(one, {"model": w}) is w


def test_both_models_are_reported():
    _, rounds = literal.play("per-fedavg")
    assert rounds[-1].metrics["model"] == "personal"
    assert "global_mean_test_accuracy" in rounds[-1].metrics
