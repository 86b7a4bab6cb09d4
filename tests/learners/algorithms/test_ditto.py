import pytest
import torch

from coalitions.errors import InvalidInputError
from learners.algorithms.ditto import Ditto, train_both
from tests.learners import literal


def test_one_step_of_both_models():
    one = literal.client("ditto", lam=0.7)
    w, v = literal.other_model(), literal.other_model(8)
    one.memory["model"] = v
    reply = train_both.run(one, {"model": w})
    images, labels = literal.batch(one)
    slope = literal.gradient(v, images, labels) + 0.7 * (v - w)
    torch.testing.assert_close(one.memory["model"], v - literal.LR * slope)
    torch.testing.assert_close(reply["model"], w - literal.LR * literal.gradient(w, images, labels))


def test_without_the_tie_personal_models_are_local_ones_bit_for_bit():
    alone = literal.personal_models("local", sizes=(20, 9, 31))
    untied = literal.personal_models("ditto", lam=0.0, sizes=(20, 9, 31))
    assert all(map(torch.equal, untied, alone))


def test_its_global_model_is_that_of_federated_averaging_bit_for_bit():
    _, plain = literal.play("fedavg", sizes=(20, 9, 31))
    _, ditto = literal.play("ditto", sizes=(20, 9, 31), lam=3.0)
    assert torch.equal(ditto[-1].state["model"], plain[-1].state["model"])


def test_the_tie_pulls_personal_models_to_the_global_one():
    apart = []
    for lam in (0.0, 0.5, 5.0):
        federation, rounds = literal.play("ditto", lam=lam)
        w = rounds[-2].state["model"]  # what the last round was tied to
        apart.append(float((federation.memories()[0]["model"] - w).norm()))
    assert apart[2] < 0.5 * apart[1] < 0.5 * apart[0]


def test_both_models_are_reported_the_personal_one_first():
    _, rounds = literal.play("ditto")
    assert rounds[-1].metrics["model"] == "personal"
    assert "global_mean_test_accuracy" in rounds[-1].metrics


def test_a_negative_tie_is_refused():
    with pytest.raises(InvalidInputError, match="lam of ditto"):
        Ditto(lam=-1.0)
