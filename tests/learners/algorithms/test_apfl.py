import pytest
import torch

from learners.algorithms.apfl import train_mixture
from tests.learners import literal


@pytest.mark.parametrize("adapt", ["round", "step", "never"])
def test_one_step_of_both_models_and_of_the_mixture(adapt):
    one = literal.client("apfl", adapt=adapt)
    w, v, alpha = literal.other_model(), literal.other_model(8), 0.3
    one.memory.update(personal=v, alpha=alpha)
    reply = train_mixture.run(one, {"model": w})
    images, labels = literal.batch(one)
    mixed = literal.gradient(alpha * v + (1 - alpha) * w, images, labels)
    w1 = w - literal.LR * literal.gradient(w, images, labels)
    v1 = v - literal.LR * alpha * mixed
    alpha1 = alpha - literal.LR * float((v - w) @ mixed) if adapt != "never" else alpha
    assert 0 < alpha1 < 1
    assert adapt == "never" or alpha1 != alpha
    torch.testing.assert_close(reply["model"], w1)
    torch.testing.assert_close(one.memory["personal"], v1)
    assert one.memory["alpha"] == pytest.approx(alpha1, rel=1e-5)
    torch.testing.assert_close(one.memory["model"], alpha1 * v1 + (1 - alpha1) * w1)


def test_alpha_learns_once_a_round_or_at_every_step():
    seen = {}
    for adapt in ("round", "step"):
        one = literal.client("apfl", adapt=adapt, batch_size=5)
        one.memory.update(personal=literal.other_model(8), alpha=0.5)
        seen[adapt] = train_mixture.run(one, {"model": literal.other_model()})["alpha"]
    assert seen["round"] != seen["step"]


def test_alpha_stays_between_0_and_1():
    one = literal.client("apfl")
    one.memory.update(personal=literal.other_model(8) * 100, alpha=0.5)
    assert train_mixture.run(one, {"model": literal.other_model()})["alpha"] in (0.0, 1.0)


def test_with_alpha_1_it_is_training_alone_bit_for_bit():
    alone = literal.personal_models("local", sizes=(20, 9, 31))
    own = literal.personal_models("apfl", sizes=(20, 9, 31), alpha=1.0, adapt="never")
    assert all(map(torch.equal, own, alone))


def test_with_alpha_0_it_is_federated_averaging_bit_for_bit():
    _, plain = literal.play("fedavg")
    federation, shared = literal.play("apfl", alpha=0.0, adapt="never")
    assert torch.equal(shared[-1].state["model"], plain[-1].state["model"])
    for memory in federation.memories().values():
        assert torch.equal(memory["personal"], federation.initial_model)


def test_both_models_are_reported_and_alpha_is_shown():
    _, rounds = literal.play("apfl")
    assert rounds[-1].metrics["model"] == "personal"
    assert "global_mean_test_accuracy" in rounds[-1].metrics
    assert 0 <= rounds[-1].metrics["mean_alpha"] <= 1
