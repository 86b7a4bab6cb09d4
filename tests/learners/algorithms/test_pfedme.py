import pytest
import torch

from coalitions.errors import InvalidInputError
from learners.algorithms.pfedme import PFedMe, train_envelope
from tests.learners import literal


def test_two_batches_of_the_inner_and_outer_steps():
    one = literal.client(
        "pfedme", lam=4.0, inner_steps=3, eta=0.05, personal_lr=0.02, batch_size=10
    )
    start = literal.other_model()
    reply = train_envelope.run(one, {"model": start})
    w, theta = start.clone(), start.clone()
    for number in range(2):
        images, labels = literal.batch(one, number=number)
        for _ in range(3):
            slope = literal.gradient(theta, images, labels) + 4.0 * (theta - w)
            theta = theta - 0.02 * slope
        w = w - 0.05 * 4.0 * (w - theta)
    torch.testing.assert_close(one.memory["model"], theta)
    torch.testing.assert_close(reply["model"], w)


def test_the_server_moves_by_beta_towards_the_plain_mean():
    federation, (only,) = literal.play("pfedme", sizes=(20, 9), rounds=1, beta=0.25)
    sent = {"model": federation.initial_model}
    federation.round = 1
    replies = federation.ask(train_envelope, {0: sent, 1: sent})
    mean = (replies[0]["model"] + replies[1]["model"]) / 2  # sizes 20 and 9 count alike
    expected = 0.75 * federation.initial_model + 0.25 * mean
    torch.testing.assert_close(only.state["model"], expected)


def test_without_an_envelope_the_global_model_does_not_move():
    one = literal.client("pfedme", lam=0.0)
    w = literal.other_model()
    reply = train_envelope.run(one, {"model": w})
    assert torch.equal(reply["model"], w)
    assert not torch.equal(one.memory["model"], w)


def test_a_stiff_envelope_holds_personal_models_at_the_global_one():
    apart = []
    for lam in (1.0, 100.0, 10_000.0):
        one = literal.client("pfedme", lam=lam, inner_steps=20, eta=0.5 / lam)
        reply = train_envelope.run(one, {"model": literal.other_model()})
        apart.append(float((one.memory["model"] - reply["model"]).norm()))
    assert apart[2] < 1e-3 < apart[1] < apart[0]


def test_lambda_reaches_the_personal_model():
    trained = []
    for lam in (1.0, 8.0):
        one = literal.client("pfedme", lam=lam, personal_lr=0.02, eta=0.05)
        train_envelope.run(one, {"model": literal.other_model()})
        trained.append(one.memory["model"])
    assert float((trained[0] - trained[1]).norm()) > 1e-3


def test_both_models_are_reported_and_bad_options_refused():
    _, rounds = literal.play("pfedme")
    assert rounds[-1].metrics["model"] == "personal"
    assert "global_mean_test_accuracy" in rounds[-1].metrics
    with pytest.raises(InvalidInputError, match="all the way"):
        PFedMe(lam=15.0, eta=0.1)
