"""FedACS, equation by equation, on linear models of six parameters."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from coalitions.errors import InvalidInputError
from learners.algorithm import build_algorithm
from learners.algorithms.fedacs import attention, threshold
from tests.learners import tiny


def literal_similarity(rows):
    """s_ij = <w_i, w_j> / (‖w_i‖ ‖w_j‖)."""
    rows = [row.double() for row in rows]
    return np.array(
        [[float(a @ b / (a.norm() * b.norm())) if a is not b else 1.0 for b in rows] for a in rows]
    )


def literal_equation_4(rows, s, delta):
    mixed = []
    for i in range(len(rows)):
        numerator, denominator = torch.zeros_like(rows[0]), 0.0
        for j in range(len(rows)):
            if (s[i, j] > delta or i == j) and s[i, j] > 0:
                numerator = numerator + s[i, j] * rows[j]
                denominator += s[i, j]
        mixed.append(numerator / denominator)
    return mixed


@pytest.mark.parametrize("options", [{}, {"p": 0.8}, {"p": 0.0}, {"threshold": -math.inf}])
def test_equations_4_and_5_mix_what_is_similar_and_train_from_there(monkeypatch, options):
    federation = tiny.federation("fedacs", clients=4, rounds=3, lr=1.0, options=options)
    heard = tiny.Listener(federation, monkeypatch)
    models = [federation.initial_model] * 4
    for done in federation.rounds():
        s = literal_similarity(models)
        # The p-quantile of all 16 entries: between the two nearest, as far as p says.
        entries = sorted(s.flatten())
        at = options.get("p", 0.5) * (len(entries) - 1)
        low = math.floor(at)
        high = min(low + 1, 15)
        delta = options.get("threshold", entries[low] + (at - low) * (entries[high] - entries[low]))
        expected = literal_equation_4(models, s, delta)
        messages, replies = heard.of("train")[-1]
        for i in range(4):
            torch.testing.assert_close(messages[i]["model"], expected[i], atol=1e-5, rtol=1e-5)
        np.testing.assert_allclose(done.records["relevance"], s, atol=1e-6)
        models = [replies[i]["model"] for i in range(4)]
        torch.testing.assert_close(done.state["models"], torch.stack(models))
    assert done.metrics["model"] == "personal"


def test_the_threshold_by_hand():
    s = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.3], [0.1, 0.3, 1.0]])
    # Sorted: .1 .1 .3 .3 .9 .9 1 1 1; the middle is .9, the quarter .3.
    assert threshold(s, 0.5) == pytest.approx(0.9)
    assert threshold(s, 0.25) == pytest.approx(0.3)
    assert threshold(s, 1.0) == 1.0


def test_equation_4_by_hand():
    s = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, -0.4], [0.2, -0.4, 1.0]])
    np.testing.assert_allclose(
        attention(s, 0.3), [[1 / 1.5, 0.5 / 1.5, 0], [0.5 / 1.5, 1 / 1.5, 0], [0, 0, 1]]
    )
    np.testing.assert_allclose(  # a cosine below zero is selected, and weighs nothing
        attention(s, -math.inf),
        [[1 / 1.7, 0.5 / 1.7, 0.2 / 1.7], [0.5 / 1.5, 1 / 1.5, 0], [0.2 / 1.2, 0, 1 / 1.2]],
    )


def test_equation_3_with_step_one_and_normalised_scores_is_equation_4():
    rows = tiny.rows(4, torch.zeros(6)).abs().double()  # positive cosines
    s = literal_similarity(rows)
    normalised = torch.from_numpy(s / s.sum(axis=1, keepdims=True))
    gradient = rows - normalised @ rows  # of Eq. (2), as the paper gives it
    step = rows - 1.0 * gradient
    torch.testing.assert_close(torch.from_numpy(attention(s, -math.inf)) @ rows, step)


@pytest.mark.parametrize("delta", [1.0, 2.0, math.inf])
def test_nobody_above_the_threshold_leaves_everyone_alone(delta):
    np.testing.assert_array_equal(attention(np.ones((3, 3)), delta), np.eye(3))


@given(arrays.arrays(np.float64, (4, 4), elements=st.floats(-1, 1)), st.floats(-1, 1))
def test_weights_are_shares(matrix, delta):
    matrix = (matrix + matrix.T) / 2
    np.fill_diagonal(matrix, 1.0)
    weights = attention(matrix, delta)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert (np.diag(weights) > 0).all()


def test_identical_models_of_the_first_round_stay_what_they_are(monkeypatch):
    federation = tiny.federation("fedacs", clients=3, rounds=1)
    heard = tiny.Listener(federation, monkeypatch)
    (done,) = federation.rounds()
    for message in heard.of("train")[0][0].values():
        torch.testing.assert_close(message["model"], federation.initial_model)
    assert done.metrics["delta"] == pytest.approx(1.0)


def test_a_model_of_zeros_resembles_nobody_but_itself(monkeypatch):
    federation = tiny.federation("fedacs", clients=3, rounds=1)
    heard = tiny.Listener(federation, monkeypatch)
    models = tiny.rows(3, federation.initial_model).abs()
    models[1] = 0.0
    monkeypatch.setattr(type(federation.algorithm), "start", lambda *_: {"models": models})
    (done,) = federation.rounds()
    assert done.records["relevance"][1].tolist() == [0.0, 1.0, 0.0]
    assert torch.equal(heard.of("train")[0][0][1]["model"], torch.zeros(6))
    assert torch.isfinite(done.state["models"]).all()


def test_absent_clients_keep_their_model_and_are_nobodys_collaborators(monkeypatch):
    federation = tiny.federation("fedacs", clients=5, rounds=5, participation=0.4)
    heard = tiny.Listener(federation, monkeypatch)
    models = federation.initial_model.repeat(5, 1)
    for done in federation.rounds():
        present = list(done.metrics["participants"])
        absent = [c for c in range(5) if c not in present]
        assert torch.equal(done.state["models"][absent], models[absent])
        assert not done.records["relevance"][absent].any()
        assert not done.records["relevance"][:, absent].any()
        messages, _ = heard.of("train")[-1]
        s = literal_similarity([models[c] for c in present])
        expected = literal_equation_4([models[c] for c in present], s, done.metrics["delta"])
        for c, row in zip(present, expected, strict=True):
            torch.testing.assert_close(messages[c]["model"], row, atol=1e-5, rtol=1e-5)
        models = done.state["models"]


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_one_client_trains_alone(p):
    federation = tiny.federation("fedacs", clients=1, rounds=3, options={"p": p})
    alone = tiny.federation("local", clients=1, rounds=3)
    for done, other in zip(federation.rounds(), alone.rounds(), strict=True):
        assert torch.equal(done.state["models"][0], alone.memories()[0]["model"])
        assert done.metrics["mean_test_accuracy"] == other.metrics["mean_test_accuracy"]


@pytest.mark.parametrize("options", [{"p": 1.5}, {"p": -0.1}, {"threshold": math.nan}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(InvalidInputError, match="fedacs must be"):
        build_algorithm("fedacs", options)


def test_updates_from_the_common_start_tell_more_apart_than_whole_models(monkeypatch):
    spread = {}
    for similarity in ("weights", "updates"):
        federation = tiny.federation(
            "fedacs", clients=4, rounds=2, options={"similarity": similarity}
        )
        heard = tiny.Listener(federation, monkeypatch)
        done = list(federation.rounds())
        rows = [heard.of("train")[0][1][i]["model"] for i in range(4)]
        if similarity == "updates":
            rows = [row - federation.initial_model for row in rows]
        np.testing.assert_allclose(
            done[1].records["relevance"], literal_similarity(rows), atol=1e-5
        )
        spread[similarity] = np.ptp(done[1].records["relevance"])
    assert spread["updates"] > spread["weights"]


def test_stored_models_of_absent_clients_can_be_mixed_in(monkeypatch):
    shared = {"clients": 6, "rounds": 3, "participation": 0.5}
    federation = tiny.federation(
        "fedacs", **shared, options={"among": "all", "threshold": -math.inf}
    )
    heard = tiny.Listener(federation, monkeypatch)
    stored = torch.stack([federation.initial_model] * 6)
    for _ in federation.rounds():
        messages, replies = heard.of("train")[-1]
        weights = np.maximum(literal_similarity(stored), 0)
        for c, message in messages.items():
            mixed = torch.from_numpy(weights[c] / weights[c].sum()).float() @ stored
            torch.testing.assert_close(message["model"], mixed, atol=1e-5, rtol=1e-5)
        for c, reply in replies.items():
            stored[c] = reply["model"]
