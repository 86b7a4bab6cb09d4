"""FedC²I, equation by equation: features of four parameters, a classifier of six."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from coalitions.errors import InvalidInputError
from learners.algorithm import build_algorithm
from learners.algorithms.fedc2i import (
    Classifiers,
    class_losses,
    classifier_part,
    leave_one_out,
    losses_of,
    mix,
    output_losses,
    weights_of_losses,
    with_one,
    without_each,
)
from learners.client.model_games import Outputs, entering
from learners.client.training import batches
from learners.measures.losses import CROSS_ENTROPY
from learners.models import build_model
from learners.rows.parameters import Layout
from learners.rows.workspace import Workspace
from tests.learners import tiny

THETA, WEIGHT, BIAS = slice(0, 4), slice(4, 8), slice(8, 10)


def batch_loss(row, images, labels):
    module = tiny.two_layers()
    Layout.of(module).unpack(row, module)
    with torch.no_grad():
        return float(nn.functional.cross_entropy(module(images), labels))


def literal(models, m, images, labels, gamma):
    """λ, Λ, θ̄ and φ̄ of client m as printed: every model is built and passed through."""
    n, classes = len(models), 2
    # φ_{i,c} are entries 4 + 2c, 5 + 2c (weights) and 8 + c (bias) of a row.
    phi = {c: [4 + 2 * c, 5 + 2 * c, 8 + c] for c in range(classes)}
    alone, L = [], np.zeros((n, classes))
    for i in range(n):
        rest = [j for j in range(n) if j != i]
        model = models[m].clone()
        model[THETA] = sum(models[j][THETA] for j in rest) / (n - 1)  # Eq. (4)
        alone.append(batch_loss(model, images, labels))
        for c in range(classes):
            model = models[m].clone()
            model[phi[c]] = sum(models[j][phi[c]] for j in rest) / (n - 1)  # Eq. (7)
            L[i, c] = batch_loss(model, images, labels)
    lam = [x**gamma / sum(y**gamma for y in alone) for x in alone]  # Eq. (5)
    Lam = L**gamma / (L**gamma).sum(axis=0)  # Eqs. (8) and (9)
    mixed = torch.zeros(10)
    mixed[THETA] = sum(lam[i] * models[i][THETA] for i in range(n))  # Eq. (6)
    for c in range(classes):
        mixed[phi[c]] = sum(float(Lam[i, c]) * models[i][phi[c]] for i in range(n))  # Eq. (10)
    return np.array(alone), L, np.array(lam), Lam, mixed


def setting(n=4, **options):
    client = tiny.client("fedc2i", module=tiny.two_layers(), options=options)
    models = tiny.rows(n, client.site.initial)
    client.memory["model"] = models[0]
    return client, models, *client.data.train.take(chosen_of(client))


def chosen_of(client):
    (chosen,) = batches(client, len(client.data.train), "influence", steps=1)
    return chosen


def representation(workspace, model, images):
    workspace.load(model)
    part = classifier_part(workspace.layout)
    with torch.no_grad():
        vectors = entering(workspace.module, part, lambda: workspace.module(images))
    return with_one(vectors, workspace.layout)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 5.0])
def test_equations_4_to_10_literally(gamma):
    client, models, images, labels = setting(gamma=gamma)
    alone, L, lam, Lam, mixed = literal(models, 0, images, labels, gamma)
    workspace = client.workspace
    batch = client.data.train.some(chosen_of(client))
    outputs = Outputs(client, without_each(workspace.layout, models), batch).alone()
    np.testing.assert_allclose(losses_of(outputs, labels), alone, rtol=1e-5)
    vectors = representation(workspace, models[0], images)
    found = class_losses(vectors, labels, Classifiers.of(workspace, models).vectors)
    np.testing.assert_allclose(found, L, rtol=1e-5)
    np.testing.assert_allclose(weights_of_losses(found, gamma), Lam, rtol=1e-4)
    reply = mix.run(client, {"models": models[1:], "samples": np.ones(4)})
    np.testing.assert_allclose(reply["influence"], lam, rtol=1e-4)
    torch.testing.assert_close(client.memory["model"], mixed, rtol=1e-4, atol=1e-5)
    assert np.ptp(lam) > 0.01


def test_equation_10_as_printed_would_change_nothing():
    client, models, images, labels = setting()
    *_, Lam, _ = literal(models, 0, images, labels, 5.0)
    for c in range(2):  # Σ_i Λ^{i,c} φ_{m,c} = φ_{m,c}, because Λ's columns sum to one
        assert Lam[:, c].sum() == pytest.approx(1.0)
    mix.run(client, {"models": models[1:], "samples": np.ones(4)})
    assert not torch.allclose(client.memory["model"][WEIGHT], models[0][WEIGHT])


def test_leave_one_out_by_hand():
    rows = torch.tensor([[1.0, 10.0], [2.0, 20.0], [6.0, 60.0]])
    expected = torch.tensor([[4.0, 40.0], [3.5, 35.0], [1.5, 15.0]])
    torch.testing.assert_close(leave_one_out(rows), expected)


def test_weights_of_losses_by_hand():
    losses = torch.tensor([1.0, 2.0, 1.0])
    assert weights_of_losses(losses, 2.0).tolist() == pytest.approx([1 / 6, 4 / 6, 1 / 6])
    assert weights_of_losses(losses, 0.0).tolist() == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("gamma", [0.0, 5.0, 50.0])
@pytest.mark.parametrize("losses", [[0.0, 0.0], [0.0, 1e4], [1e-30, 1e-20], [3.0, 3.0]])
def test_no_loss_and_no_gamma_break_the_weights(gamma, losses):
    weights = weights_of_losses(torch.tensor(losses), gamma)
    assert torch.isfinite(weights).all()
    assert float(weights.sum()) == pytest.approx(1.0)


def test_gamma_zero_is_the_plain_mean_of_all():
    client, models, *_ = setting(gamma=0.0)
    reply = mix.run(client, {"models": models[1:], "samples": np.ones(4)})
    np.testing.assert_allclose(reply["influence"], 0.25)
    torch.testing.assert_close(client.memory["model"], models.mean(0))


def test_gamma_fifty_is_finite_and_nearly_picks_one():
    client, models, *_ = setting(gamma=50.0)
    reply = mix.run(client, {"models": models[1:], "samples": np.ones(4)})
    assert torch.isfinite(client.memory["model"]).all()
    assert reply["influence"].max() > 0.9


def test_variants_of_table_3():
    sizes = np.array([1.0, 2.0, 3.0, 4.0])
    shares = torch.tensor([0.1, 0.2, 0.3, 0.4])
    _, models, images, labels = setting()
    *_, mixed = literal(models, 0, images, labels, 5.0)
    mean = (shares[:, None] * models).sum(0)
    expected = {
        ("full", "mean"): (mixed, mixed),
        ("client", "mean"): (mixed, mean),
        ("client", "local"): (mixed, models[0]),
        ("class-local", "mean"): (models[0], mixed),
        ("class-global", "mean"): (mean, mixed),
    }
    for (variant, classifier), (features, rest) in expected.items():
        client, *_ = setting(variant=variant, client_classifier=classifier)
        reply = mix.run(client, {"models": models[1:], "samples": sizes})
        found = client.memory["model"]
        torch.testing.assert_close(found[THETA], features[THETA], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(found[4:], rest[4:], rtol=1e-4, atol=1e-5)
        assert reply["influence"].sum() == pytest.approx(1.0)


def test_the_network_is_passed_once_per_client_and_once_for_all_classes(monkeypatch):
    client, models, *_ = setting()
    passes = []
    monkeypatch.setattr(
        client.workspace.module,
        "forward",
        lambda x, forward=client.workspace.module.forward: (passes.append(len(x)), forward(x))[1],
    )
    mix.run(client, {"models": models[1:], "samples": np.ones(4)})
    assert len(passes) == 4 + 1  # M leave-one-out features, and not M·C classifiers
    assert set(passes) == {client.config.batch_size}


def test_class_losses_on_a_real_network_equal_forward_passes():
    module = build_model("lenet-5", shape=(1, 28, 28), n_classes=10, seed=0)
    workspace = Workspace(module, Layout.of(module), torch.device("cpu"))
    start = workspace.saved()
    stream = torch.Generator().manual_seed(0)
    models = start + 0.05 * torch.randn(3, len(start), generator=stream)
    images = torch.randn(8, 1, 28, 28, generator=stream)
    labels = torch.randint(0, 10, (8,), generator=stream)
    vectors = representation(workspace, models[0], images)
    found = class_losses(vectors, labels, Classifiers.of(workspace, models).vectors)
    columns = workspace.layout.columns
    for i, c in [(0, 0), (1, int(labels[0])), (2, 7)]:
        others = [j for j in range(3) if j != i]
        row = models[0].clone()
        for name, width in (("head.weight", 84), ("head.bias", 1)):
            begin = columns[name].start + c * width
            row[begin : begin + width] = models[others, begin : begin + width].mean(0)
        workspace.load(row)
        with torch.no_grad():
            expected = nn.functional.cross_entropy(workspace.module(images), labels)
        assert float(found[i, c]) == pytest.approx(float(expected), rel=1e-4)


def test_a_classifier_without_bias_works_as_well():
    module = nn.Sequential(nn.Flatten(), nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2, bias=False))
    federation = tiny.federation("fedc2i", clients=3, rounds=2, module=module)
    for done in federation.rounds():
        assert torch.isfinite(done.state["models"]).all()


def test_a_round_mixes_last_uploads_then_trains(monkeypatch):
    federation = tiny.federation(
        "fedc2i", clients=3, rounds=3, module=tiny.two_layers(), optimizer="adam", lr=0.01
    )
    heard = tiny.Listener(federation, monkeypatch)
    uploads = federation.initial_model.repeat(3, 1)
    for t, done in enumerate(federation.rounds()):
        messages, replies = heard.of("fedc2i-mix")[t]
        here = federation._engine._site
        for m, message in messages.items():
            others = [i for i in range(3) if i != m]
            torch.testing.assert_close(message["models"], uploads[others])
            client = tiny.Client(here, m, t + 1)
            (chosen,) = batches(client, 12, "influence", steps=1)
            order = [m, *others]
            *_, lam, _, _ = literal(uploads[order], 0, *here.data[m].train.take(chosen), 5.0)
            np.testing.assert_allclose(replies[m]["influence"], lam, rtol=1e-3)
            np.testing.assert_allclose(done.records["relevance"][m, order], lam, rtol=1e-3)
        uploads = torch.stack([heard.of("train")[t][1][m]["model"] for m in range(3)])
        torch.testing.assert_close(done.state["models"], uploads)
        assert torch.equal(federation.memories()[0]["model"], uploads[0])
    assert done.metrics["down_per_client"] == [2 * 10] * 3


def test_identical_models_have_equal_influence():
    federation = tiny.federation("fedc2i", clients=4, rounds=1, module=tiny.two_layers())
    (done,) = federation.rounds()
    np.testing.assert_allclose(done.records["relevance"], 0.25, rtol=1e-5)


@pytest.mark.parametrize("settings", [{"clients": 1}, {"clients": 4, "participation": 0.25}])
def test_a_client_that_is_alone_trains_its_own_model(settings):
    federation = tiny.federation("fedc2i", rounds=3, module=tiny.two_layers(), **settings)
    alone = tiny.federation("local", rounds=3, module=tiny.two_layers(), **settings)
    for done, other in zip(federation.rounds(), alone.rounds(), strict=True):
        assert done.metrics["participants"] == other.metrics["participants"]
        for c, memory in alone.memories().items():
            assert torch.equal(federation.memories()[c]["model"], memory["model"])
        assert math.isfinite(done.metrics["mean_test_accuracy"])


def test_absent_clients_influence_nobody():
    federation = tiny.federation(
        "fedc2i", clients=5, rounds=3, participation=0.6, module=tiny.two_layers()
    )
    for done in federation.rounds():
        present = done.metrics["participants"]
        relevance = done.records["relevance"]
        absent = [c for c in range(5) if c not in present]
        assert not relevance[absent].any()
        assert not relevance[:, absent].any()
        np.testing.assert_allclose(relevance[present].sum(axis=1), 1.0)


@pytest.mark.parametrize("gamma", [-1.0, math.inf, math.nan])
def test_gamma_out_of_range_is_refused(gamma):
    with pytest.raises(InvalidInputError, match="gamma of fedc2i"):
        build_algorithm("fedc2i", {"gamma": gamma})


def test_a_network_without_a_classifier_is_refused_in_a_sentence():
    module = nn.Sequential(nn.Conv2d(1, 2, (1, 2)), nn.Flatten())
    with pytest.raises(InvalidInputError, match="linear layer"):
        tiny.federation("fedc2i", clients=2, rounds=1, module=module)


def test_losses_of_any_outputs_are_those_of_classes_if_the_loss_is_theirs():
    stream = torch.Generator().manual_seed(0)
    vectors, classifiers = (
        torch.randn(5, 4, generator=stream),
        torch.randn(3, 6, 4, generator=stream),
    )
    labels = torch.tensor([0, 5, 2, 2, 1])
    torch.testing.assert_close(
        output_losses(vectors, labels, classifiers, CROSS_ENTROPY),
        class_losses(vectors, labels, classifiers),
    )
