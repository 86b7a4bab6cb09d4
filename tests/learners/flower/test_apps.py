"""Apps for projects that exist: their data in the forms that they have it, their settings."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from flwr.app import Context, RecordDict
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from coalitions.errors import CoalitionError, InvalidInputError
from learners.data.client_data import Targets, classes
from learners.flower import client_app, server_app
from learners.flower.node import as_federated, called_for
from learners.flower.server import _patience, _settings
from learners.runs.prepare import checked_for_nodes
from learners.settings.config import RunConfig
from tests.learners.flower.nodes import QUICK, Nodes

pytestmark = pytest.mark.usefixtures("waiting_clock")

X = np.arange(40, dtype=np.float64).reshape(10, 4)
Y = np.arange(10) % 3
CONFIG = RunConfig()


class Tables(torch.utils.data.Dataset):
    """Examples as tables, as the hub of data sets has them."""

    def __len__(self):
        return len(Y)

    def __getitem__(self, i):
        return {"img": torch.tensor(X[i]), "label": int(Y[i])}


def net():
    return nn.Sequential(nn.Flatten(), nn.Linear(4, 3))


@pytest.mark.parametrize(
    "given",
    [
        (X, Y),
        (torch.tensor(X), torch.tensor(Y)),
        TensorDataset(torch.tensor(X), torch.tensor(Y)),
        DataLoader(TensorDataset(torch.tensor(X), torch.tensor(Y)), 3, shuffle=True),
        Tables(),
        DataLoader(Tables(), 4),
    ],
    ids=["arrays", "tensors", "data set", "loader", "tables", "loader of tables"],
)
def test_all_forms_of_the_same_data_are_the_same_data(given):
    client = as_federated((given, given), CONFIG, classes(3)).clients[0]
    reference = as_federated(((X, Y), (X, Y)), CONFIG, classes(3)).clients[0]
    assert (len(client.train), len(client.validation), len(client.test)) == (8, 2, 10)
    for part in ("train", "validation", "test"):
        ours, theirs = getattr(client, part), getattr(reference, part)
        assert torch.equal(ours.inputs, theirs.inputs)
        assert torch.equal(ours.targets, theirs.targets)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((X, Y[:-1]), "10 inputs and 9 labels"),
        ((X, Y - 1), "whole numbers from 0 on"),
        ((X, Y / 2), "whole numbers from 0 on"),
        ((X * np.nan, Y), "not finite"),
        ((X, Y + 5), "label 7, and the network tells 3 classes apart"),
        (7, "it must be a data loader, a data set, or a pair"),
    ],
)
def test_data_that_cannot_be_is_refused_in_a_sentence(given, words):
    with pytest.raises(InvalidInputError, match=words):
        as_federated((given, (X, Y)), CONFIG, classes(3))


def test_a_data_frame_is_refused_since_a_node_cannot_encode_it_alone():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(X.reshape(len(X), -1))
    for given in (frame.assign(label=Y), (frame, Y)):
        with pytest.raises(InvalidInputError, match="the training data has a data frame"):
            as_federated((given, (X, Y)), CONFIG, classes(3))


def test_numbers_are_learnt_at_nodes_as_classes_are(tmp_path):
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(60, 4)).astype(np.float32)
    truth = inputs @ np.array([1.0, -2.0, 0.5, 0.0])

    def load(partition_id):
        here = slice(20 * partition_id, 20 * partition_id + 20)
        return (inputs[here], truth[here]), (inputs, truth)

    def line():
        return nn.Linear(4, 1)

    results = []
    settings = {"rounds": 4, "local_epochs": 5, "lr": 0.05, "task": "regression"}
    server = server_app("fedavg", line, on_result=results.append, patience=QUICK, **settings)
    grid = Nodes(client_app(load, line, folder=tmp_path), 3)
    server(grid, Context(7, 1, {}, RecordDict(), {"clients": 3}))
    assert results[0].metrics["metrics"]["rmse"]["mean"] < 0.3
    assert results[0].mean_test_accuracy is None


LOADED = []


def load_part(partition_id):
    """Return a node's rows, and note that they were asked for."""
    LOADED.append(partition_id)
    rng = np.random.default_rng(partition_id)
    x = rng.normal(size=(20, 4))
    return (x, x[:, :3].argmax(1)), (x, x[:, :3].argmax(1))


def test_an_app_is_pickled_for_each_message_as_flower_s_simulation_does(tmp_path):
    cloudpickle = pytest.importorskip("ray.cloudpickle")

    def results_of(folder, through):
        app = through(client_app(load_part, net, folder=folder))
        got = []
        settings = {"rounds": 2, "local_epochs": 1, "clients": 3}
        server = server_app("pfedsv", net, on_result=got.append, patience=QUICK, **settings)
        server(Nodes(app, 3), Context(7, 1, {}, RecordDict(), {}))
        return got[0]

    def pickled(app):
        content = cloudpickle.dumps(app)
        return lambda message, context: cloudpickle.loads(content)(message, context)

    LOADED.clear()
    theirs = results_of(tmp_path / "pickled", pickled)
    assert sorted(LOADED) == [0, 1, 2]  # the data is kept, though the app is another each time
    ours = results_of(tmp_path / "whole", lambda app: app)
    assert ours.metrics["per_client_test_accuracy"] == theirs.metrics["per_client_test_accuracy"]
    for client in range(3):
        one, other = (each.model(client).state_dict() for each in (ours, theirs))
        assert all(torch.equal(one[key], other[key]) for key in one)


def test_each_run_adds_a_line_to_the_audit_also_one_that_failed(tmp_path):
    audit = tmp_path / "state" / "runs.jsonl"
    told = {"audit": str(audit), "started-by": "ann", "clients": 3, "rounds": 1}
    server = server_app("fedavg", net, patience=QUICK, local_epochs=1)
    grid = Nodes(client_app(load_part, net, folder=tmp_path / "nodes"), 3)
    server(grid, Context(7, 1, {}, RecordDict(), told))
    grid.gone = set(grid.contexts)
    with pytest.raises(CoalitionError):
        server(grid, Context(8, 1, {}, RecordDict(), told))
    with pytest.raises(InvalidInputError):
        server(grid, Context(9, 1, {}, RecordDict(), told | {"rounds": 0}))
    finished, alone, wrong = (json.loads(line) for line in audit.read_text().splitlines())
    assert finished["result"] == "finished"
    assert (finished["run"], finished["started_by"]) == ("7", "ann")
    assert (finished["algorithm"], finished["app"]) == ("fedavg", "")  # no app was sent here
    assert finished["nodes"] == sorted(map(str, grid.contexts))
    assert (finished["rounds"], finished["clients"], finished["left_out"]) == (1, 3, [])
    assert finished["began"] <= finished["ended"]
    assert alone["result"].startswith("failed: ")
    assert "rounds must be 1 or more" in wrong["result"]


def test_nodes_of_one_app_share_no_memory(tmp_path, monkeypatch):
    """In a simulation all nodes have one app: each must remember its own model, not the first's."""
    settings = {"rounds": 2, "local_epochs": 1, "clients": 3}
    monkeypatch.setenv("COALITIONS_NODES", str(tmp_path / "named"))
    for folder in (tmp_path / "given", None):
        grid = Nodes(client_app(load_part, net, folder=folder), 3)
        server = server_app("local", net, patience=QUICK, **settings)
        server(grid, Context(7, 1, {}, RecordDict(), {}))
        place = folder or tmp_path / "named"
        assert sorted(path.name for path in place.iterdir()) == ["0", "1", "2"]
        newest = [max(path.rglob("*.safetensors")).read_bytes() for path in place.iterdir()]
        assert len(set(newest)) == 3


@pytest.mark.parametrize(
    ("task", "truth", "words"),
    [
        ("regression", np.zeros((10, 2)), "2 numbers to learn for each sample"),
        ("regression", np.full(10, np.inf), "targets that are not finite"),
        ("multi-label", np.full((10, 1), 0.5), "zeros and ones"),
    ],
)
def test_targets_that_do_not_fit_a_task_are_refused(task, truth, words):
    with pytest.raises(InvalidInputError, match=words):
        as_federated(((X, truth), (X, truth)), CONFIG, Targets(task, 1))


def test_a_method_for_classes_is_refused_where_numbers_are_learnt():
    with pytest.raises(InvalidInputError, match="fedproto is for classification"):
        checked_for_nodes(RunConfig(algorithm="fedproto", task="regression"), net)


def test_a_project_s_function_is_called_with_what_it_asks_for():
    node, run = {"partition-id": 2, "num-partitions": 5}, {"batch-size": 32, "other": 1}
    context = Context(1, 2, node, RecordDict(), run)

    def load(partition_id, num_partitions, batch_size, seed=7):
        return (partition_id, num_partitions), (batch_size, seed)

    assert called_for(load, context) == ((2, 5), (32, 7))
    with pytest.raises(InvalidInputError, match="has a parameter folder, and neither"):
        called_for(lambda folder: None, context)
    with pytest.raises(InvalidInputError, match=r"must return \(train, test\)"):
        called_for(lambda: 1, context)


def test_settings_come_from_run_config_under_both_names():
    told = {"num_server_rounds": 7, "learning_rate": 0.3, "batch_size": 5, "options.mu": 0.5}
    theirs = {"fraction_evaluate": 0.5, "plugins": "os", "data_dir": "/etc"}
    assert _settings(told | theirs) == {
        "rounds": 7, "lr": 0.3, "batch_size": 5, "options": {"mu": 0.5},
    }  # fmt: skip


@pytest.mark.parametrize("value", [0, -1.0, "soon", True, float("nan")])
def test_a_wait_that_is_none_is_refused(value):
    with pytest.raises(InvalidInputError, match="wait-for-answer is"):
        _patience({"wait_for_answer": value})


def test_what_a_server_cannot_do_is_refused_at_once():
    with pytest.raises(InvalidInputError, match="server_app needs the model"):
        server_app("fedavg")
    with pytest.raises(InvalidInputError, match="give noise and clip"):
        checked_for_nodes(RunConfig(epsilon=3.0, dp="records"), net)
    with pytest.raises(InvalidInputError, match="weights are for networks that a run makes"):
        checked_for_nodes(RunConfig(weights="start.safetensors"), net)
    with pytest.raises(InvalidInputError, match="nodes learn classes, labels or numbers"):
        checked_for_nodes(RunConfig(task="next-token"), net)
    with pytest.raises(InvalidInputError, match="new_clients is 10 of 10 clients"):
        checked_for_nodes(RunConfig(new_clients=10), net)
    with pytest.raises(InvalidInputError, match=r"must make a torch.nn.Module, not int"):
        checked_for_nodes(RunConfig(), lambda: 3)


def test_learners_imports_flower_only_when_asked():
    program = (
        "import sys, learners, learners.runs.run, learners.flower;"
        "from learners.server.engine import ENGINES;"
        "assert ENGINES.names() == ['flower', 'local'];"
        "assert not {'flwr', 'ray'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
