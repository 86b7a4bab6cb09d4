import itertools
import math

import numpy as np
import pytest
import torch

from coalitions.errors import InvalidInputError
from learners.algorithms.fedamp import FedAMP, train_near_cloud
from tests.learners import literal


def test_attention_by_hand():
    rows = torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])  # squared distances 25, 1, 18
    xi = FedAMP(sigma=10.0, alpha=2.0).weights(rows, 3)
    expected = 0.2 * np.exp(-np.array([[0, 25, 1], [25, 0, 18], [1, 18, 0]]) / 10)
    np.fill_diagonal(expected, 0)
    np.fill_diagonal(expected, 1 - expected.sum(1))
    np.testing.assert_allclose(xi.numpy(), expected, rtol=1e-5)


def test_heuristic_attention_by_hand():
    rows = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 5.0]])
    xi = FedAMP(attention="cosine", sigma=2.0, self_weight=0.4).weights(rows, 3)
    near, far = math.exp(2.0), 1.0
    first = [0.4, 0.6 * near / (near + far), 0.6 * far / (near + far)]
    np.testing.assert_allclose(xi[0].numpy(), first, rtol=1e-5)
    np.testing.assert_allclose(xi[2].numpy(), [0.3, 0.3, 0.4], rtol=1e-5)


def test_cloud_models_are_what_clients_get():
    federation, _ = literal.play("fedamp", sizes=(20, 20), rounds=1, sigma=4.0, alpha=1.0)
    a, b = literal.other_model(), literal.other_model(8)
    seen = {}

    def ask(task, messages):
        seen.update(messages)
        return {c: {"model": message["model"]} for c, message in messages.items()}

    federation.ask = ask
    federation.algorithm.round(federation, {"models": torch.stack([a, b])}, 2)
    xi = math.exp(-float((a - b).square().sum()) / 4.0) / 4.0
    torch.testing.assert_close(seen[0]["model"], (1 - xi) * a + xi * b)
    torch.testing.assert_close(seen[1]["model"], xi * a + (1 - xi) * b)


@pytest.mark.parametrize("start_from", ["own", "cloud"])
def test_two_steps_and_the_proximal_term_reaches_the_gradient(start_from):
    one = literal.client("fedamp", lam=0.6, alpha=0.5, start_from=start_from, local_epochs=2)
    own, cloud = literal.other_model(), literal.other_model(8)
    one.memory["model"] = own
    reply = train_near_cloud.run(one, {"model": cloud})
    w = own if start_from == "own" else cloud
    for number in range(2):
        slope = literal.gradient(w, *literal.batch(one, number=number))
        w = w - literal.LR * (slope + 0.6 / 0.5 * (w - cloud))
    torch.testing.assert_close(reply["model"], w)
    free = literal.client("fedamp", lam=0.0, start_from=start_from, local_epochs=2)
    free.memory["model"] = own
    apart = reply["model"] - train_near_cloud.run(free, {"model": cloud})["model"]
    assert float(apart.norm()) > 1e-3


def test_without_the_pull_it_is_training_alone_bit_for_bit():
    alone = literal.personal_models("local", sizes=(20, 9, 31))
    free = literal.personal_models("fedamp", sizes=(20, 9, 31), lam=0.0, start_from="own")
    assert all(map(torch.equal, free, alone))


def test_equal_attention_to_all_is_what_clients_of_federated_averaging_do():
    _, averaged = literal.play("fedavg")
    _, rounds = literal.play("fedamp", attention="cosine", sigma=0.0, lam=0.0)
    torch.testing.assert_close(
        rounds[-1].state["models"].mean(0), averaged[-1].state["model"], rtol=1e-4, atol=1e-6
    )


def test_rows_add_to_one_whoever_is_present():
    rows = torch.randn(6, 50, generator=torch.Generator().manual_seed(0))
    for method in (FedAMP(), FedAMP(attention="cosine"), FedAMP(attention="cosine", sigma=100.0)):
        for m in (1, 2, 6):
            xi = method.weights(rows[:m], 6)
            torch.testing.assert_close(xi.sum(1), torch.ones(m))
            assert bool((xi >= 0).all())


def test_absent_clients_keep_their_models():
    _, rounds = literal.play("fedamp", sizes=(20,) * 4, participation=0.5)
    for before, after in itertools.pairwise(rounds):
        for c in set(range(4)) - set(after.metrics["participants"]):
            assert torch.equal(after.state["models"][c], before.state["models"][c])


def test_a_step_that_could_make_the_own_weight_negative_is_refused():
    with pytest.raises(InvalidInputError, match="at most sigma/2 = 5"):
        literal.play("fedamp", alpha=6.0)
