import math

import numpy as np
import pytest
import torch
from torch import nn

from coalitions.enumeration import all_coalitions
from coalitions.errors import InvalidInputError
from coalitions.game import Game
from learners.client.client import Samples
from learners.client.model_games import ModelGame, score_models
from learners.client.tasks import shapley
from learners.client.training import score_model
from learners.data.client_data import Split, Targets
from learners.measures.goal import goal_of
from learners.models import build_model
from learners.rows.parameters import Layout
from learners.rows.workspace import Workspace
from tests.learners import toy


@pytest.fixture
def setting():
    client = toy.client()
    stream = torch.Generator().manual_seed(5)
    rows = client.site.initial + torch.randn(4, len(client.site.initial), generator=stream)
    return client, rows


@pytest.mark.parametrize("metric", ["accuracy", "loss"])
def test_a_coalition_is_worth_what_the_average_of_its_models_is(setting, metric):
    client, rows = setting
    data = client.data.validation
    game = ModelGame(client.workspace, rows, data, n_classes=3, metric=metric)
    assert isinstance(game, Game)
    coalitions = all_coalitions(4)
    module, layout = toy.network().eval(), client.workspace.layout
    images, labels = data.take(torch.arange(len(data)))
    expected = []
    for members in coalitions:
        if not members.any():
            expected.append(0.0)
            continue
        layout.unpack(rows[torch.from_numpy(members)].mean(0), module)
        with torch.no_grad():
            scores = module(images)
        expected.append(
            float((scores.argmax(1) == labels).float().mean())
            if metric == "accuracy"
            else math.log(3) - float(nn.functional.cross_entropy(scores, labels))
        )
    values = game(coalitions)
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)
    assert len(set(values)) > 2


def test_repeated_coalitions_are_tested_once_and_answered_in_order(setting, monkeypatch):
    client, rows = setting
    game = ModelGame(client.workspace, rows, client.data.validation, n_classes=3)
    once = game([[1, 0, 0, 0], [0, 1, 1, 0]])
    calls = []
    load = client.workspace.load
    monkeypatch.setattr(client.workspace, "load", lambda row: (calls.append(1), load(row)))
    many = game([[0, 1, 1, 0], [1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]])
    assert many.tolist() == [once[1], once[0], once[1], 0.0]
    assert len(calls) == 2


def test_no_data_no_game(setting):
    client, rows = setting
    empty = toy.Split(torch.empty(0, *toy.SHAPE), torch.empty(0, dtype=torch.int64))
    with pytest.raises(InvalidInputError, match="validation_share"):
        ModelGame(
            client.workspace,
            rows,
            type(client.data.train)(empty, torch.device("cpu")),
            n_classes=3,
        )


def test_shapley_values_share_out_the_value_of_all_models(setting):
    client, rows = setting
    client.memory["model"] = rows[0]
    reply = shapley.run(client, {"models": rows[1:], "method": "exact"})
    game = ModelGame(client.workspace, rows, client.data.validation, n_classes=3)
    assert reply["values"].shape == (4,)
    assert reply["values"].sum() == pytest.approx(float(game(np.ones(4, bool))[0]))


@pytest.mark.parametrize("name", ["lenet-5", "cnn", "mlp"])
def test_many_models_score_as_each_of_them_alone(name):
    shape = (3, 12, 12)
    module = build_model(name, shape=shape, n_classes=5, seed=0)
    layout = Layout.of(module)
    workspace = Workspace(module, layout, torch.device("cpu"))
    stream = torch.Generator().manual_seed(1)
    start = workspace.saved()
    n = 7 if name == "cnn" else 40
    rows = start + 0.1 * torch.rand(n, len(start), generator=stream)
    images = torch.randn(230, *shape, generator=stream)
    labels = torch.randint(0, 5, (230,), generator=stream)
    data = Samples(toy.Split(images, labels), torch.device("cpu"))
    for row, score in zip(rows, score_models(workspace, rows, data), strict=True):
        alone = score_model(workspace, row, data)
        assert (score.correct, score.n) == (alone.correct, alone.n)
        assert score.loss == pytest.approx(alone.loss, rel=1e-5)


def test_averages_that_do_not_fit_are_formed_in_parts(setting, monkeypatch):
    client, rows = setting
    game = ModelGame(client.workspace, rows, client.data.validation, n_classes=3)
    whole = game(all_coalitions(4))
    monkeypatch.setattr("learners.client.model_games.AVERAGES_AT_ONCE", 4 * rows.shape[1])
    assert game(all_coalitions(4)).tolist() == whole.tolist()


def test_an_error_is_worth_what_it_is_less_than_that_of_guessing():
    module = nn.Linear(2, 1)
    layout = Layout.of(module)
    goal = goal_of(Targets("regression", 1))
    workspace = Workspace(module, layout, torch.device("cpu"), goal)
    stream = torch.Generator().manual_seed(2)
    rows, x = torch.randn(3, 3, generator=stream), torch.randn(9, 2, generator=stream)
    truth, known = torch.randn(9, generator=stream), torch.tensor([0.5, 1.5])
    data = Samples(Split(x, truth), torch.device("cpu"))
    coalitions = all_coalitions(3)
    for metric, error in (
        ("rmse", lambda e: (e**2).mean() ** 0.5),
        ("loss", lambda e: (e**2).mean()),
    ):
        game = ModelGame(workspace, rows, data, metric=metric, known=known)
        guessing = error(1.0 - truth.double().numpy())
        for members, value in zip(coalitions, game(coalitions), strict=True):
            if not members.any():
                assert value == 0
                continue
            layout.unpack(rows[torch.from_numpy(members)].mean(0), module)
            given = module(x).detach()[:, 0].double().numpy()
            assert value == pytest.approx(guessing - error(given - truth.numpy()), rel=1e-5)


def test_a_coalition_is_worth_nothing_where_the_metric_is_not_defined():
    module = nn.Linear(2, 2)
    goal = goal_of(Targets("classification", 2))
    workspace = Workspace(module, Layout.of(module), torch.device("cpu"), goal)
    data = Samples(Split(torch.ones(4, 2), torch.ones(4, dtype=torch.int64)), torch.device("cpu"))
    game = ModelGame(workspace, torch.randn(2, 6), data, metric="auroc")
    assert game(all_coalitions(2)).tolist() == [0, 0, 0, 0]
