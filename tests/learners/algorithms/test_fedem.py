import numpy as np
import pytest
import torch
from torch import nn

from learners.algorithms.fedem import mixed, train_components
from tests.learners import literal, toy

ROWS = torch.stack([literal.other_model(), literal.other_model(8)])


def losses(row, images, labels):
    module = literal.LAYOUT.unpack(row, toy.network())
    with torch.no_grad():
        return nn.functional.cross_entropy(module(images), labels, reduction="none").double()


def responsibilities(images, labels, weights):
    chances = torch.stack(
        [w * (-losses(row, images, labels)).exp() for w, row in zip(weights, ROWS, strict=True)]
    )
    return (chances / chances.sum(0)).T


def test_one_e_step_and_one_m_step():
    one = literal.client("fedem", k=2)
    one.memory["weights"] = np.array([0.3, 0.7])
    reply = train_components.run(one, {"models": ROWS})
    q = responsibilities(*one.data.train.take(torch.arange(20)), (0.3, 0.7))
    np.testing.assert_allclose(one.memory["weights"], q.mean(0), rtol=1e-5)
    images, labels = literal.batch(one)
    share = responsibilities(images, labels, (0.3, 0.7))
    assert float(share.std(0).min()) > 0.05  # images differ in whose they are
    for m in range(2):

        def weighted(module, m=m):
            each = nn.functional.cross_entropy(module(images), labels, reduction="none")
            return (share[:, m] * each).mean()

        slope = literal.gradient(ROWS[m], images, labels, weighted)
        torch.testing.assert_close(
            reply["models"][m], ROWS[m] - literal.LR * slope, rtol=1e-4, atol=1e-6
        )


def test_predictions_are_mixtures_of_probabilities():
    one = literal.client("fedem", k=2)
    one.memory["weights"] = np.array([0.25, 0.75])
    images, _ = literal.batch(one)
    one.workspace.module.eval()
    with torch.no_grad():
        scores = one.algorithm.scores(one, {"models": ROWS}, images)
        chances = [
            torch.softmax(literal.LAYOUT.unpack(row, toy.network())(images), 1) for row in ROWS
        ]
    torch.testing.assert_close(scores.exp(), 0.25 * chances[0] + 0.75 * chances[1])
    assert torch.equal(one.algorithm.model(one, {"models": ROWS}), ROWS[1])


def test_one_component_is_federated_averaging_bit_for_bit():
    _, plain = literal.play("fedavg", sizes=(20, 9, 31))
    _, single = literal.play("fedem", sizes=(20, 9, 31), k=1)
    assert torch.equal(single[-1].state["models"][0], plain[-1].state["model"])
    assert single[-1].metrics["mean_test_accuracy"] == plain[-1].metrics["mean_test_accuracy"]


def test_the_weights_of_the_mixture_change_what_components_learn():
    trained = []
    for weights in ((0.5, 0.5), (0.05, 0.95)):
        one = literal.client("fedem", k=2)
        one.memory["weights"] = np.array(weights)
        trained.append(train_components.run(one, {"models": ROWS})["models"])
    assert float((trained[0] - trained[1]).norm()) > 1e-3


def test_clients_find_their_own_component():
    # Two kinds of clients that contradict each other: one model cannot serve both.
    federation, _ = literal.play("fedem", sizes=(40,) * 4, rounds=1, k=2)
    site = federation._engine._site
    for c in (1, 3):
        labels = site.data[c].train.targets
        labels.copy_((labels + 1) % 3)
    rounds = list(federation.rounds())
    for _ in range(15):
        rounds = list(federation.rounds(rounds[-1].state))
    weights = np.array([federation.memories()[c]["weights"] for c in range(4)])
    best = weights.argmax(1)
    assert best[0] == best[2] != best[1] == best[3]
    assert weights.max(1).min() > 0.8


def test_who_was_never_asked_fits_its_weights_before_it_predicts():
    one = literal.client("fedem", k=2)
    found = one.algorithm.weights(one, ROWS)
    # The maximum of the likelihood over the mixtures, found by trying them all.
    images, labels = one.data.train.take(torch.arange(20))
    chances = torch.stack([(-losses(row, images, labels)).exp() for row in ROWS])
    tried = torch.linspace(0, 1, 2001, dtype=torch.float64)
    fits = torch.stack([(p * chances[0] + (1 - p) * chances[1]).log().sum() for p in tried])
    assert found[0] == pytest.approx(float(tried[int(fits.argmax())]), abs=2e-3)
    assert found.sum() == pytest.approx(1)
    assert abs(found[0] - 0.5) > 0.01
    assert "weights" not in one.memory  # watching a client teaches it nothing


def test_absent_clients_are_tested_with_weights_of_their_own():
    federation, rounds = literal.play("fedem", sizes=(40,) * 4, rounds=1, k=2, participation=0.5)
    asked = set(federation.memories())
    assert len(asked) == 2
    missing = next(c for c in range(4) if c not in asked)
    host = toy.client(federation.config, sizes=(40,) * 4)
    host.index = missing
    weights = host.algorithm.weights(host, rounds[-1].state["models"])
    assert abs(weights[0] - 0.5) > 1e-3


def test_a_mixture_is_the_mean_of_probabilities_or_of_numbers():
    stream = torch.Generator().manual_seed(0)
    outputs, pi = list(torch.randn(2, 5, 3, generator=stream)), np.array([0.3, 0.7])
    for kind, chances in {
        "classification": lambda x: x.softmax(1),
        "next-token": lambda x: x.softmax(1),
        "multi-label": torch.sigmoid,
        "regression": lambda x: x,
    }.items():
        expected = 0.3 * chances(outputs[0]) + 0.7 * chances(outputs[1])
        torch.testing.assert_close(chances(mixed(outputs, pi, kind)), expected, msg=kind)
