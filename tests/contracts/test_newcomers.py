"""Clients that are held out of training: what every method has for them."""

from __future__ import annotations

import json

import pytest
import torch

from coalitions import InvalidInputError
from learners.algorithm import ALGORITHMS, Algorithm, build_algorithm
from learners.client.client import Client
from learners.client.training import fit
from learners.rows.parameters import Layout
from learners.runs.prepare import prepare
from learners.runs.result import load_model
from learners.runs.run import resume, run, welcomed
from learners.server.local_engine import one_thread
from learners.settings.config import RunConfig
from tests.learners import toy

SMALL = {
    "clients": 4,
    "new_clients": 1,
    "rounds": 2,
    "local_epochs": 1,
    "train_size": 20,
    "workers": 1,
}


def row(module):
    return Layout.of(module).pack(module)


@pytest.mark.parametrize("name", ALGORITHMS.names())
def test_every_method_has_something_for_a_newcomer(name):
    options = {"width": 5} if name == "pfedhn" else {}  # its default is slow
    result = run(SMALL | {"algorithm": name, "options": options})
    assert len(result.per_client_test_accuracy) == 3
    assert all(3 not in line["participants"] for line in result.history)
    said = result.new_clients
    assert said["clients"] == [3]
    assert said["per_client_test_accuracy"] == [said["mean_test_accuracy"]]
    assert 0 <= said["mean_test_accuracy"] <= 1
    assert said["metrics"]["accuracy"]["mean"] == said["mean_test_accuracy"]
    assert said["how"].endswith(".")
    model = row(result.model(3))
    assert torch.isfinite(model).all()
    # It learnt something: what everybody began with is not what it has.
    assert not torch.equal(model, prepare(result.config).site.initial)


def test_the_global_model_is_trained_for_the_local_epochs():
    config = RunConfig.of(SMALL | {"algorithm": "fedavg", "lr": 0.1})
    federation = toy.federation(config)
    *_, last = federation.rounds()
    document, messages = welcomed(federation, last.state)
    assert document["how"] == "Train the global model for the local epochs."
    assert messages == {3: {}}
    newcomer = Client(toy.site(config), 3, config.rounds + 1)
    with one_thread():  # as the engine does: more threads add up in another order
        expected = fit(newcomer, last.state["model"]).model
    assert torch.equal(federation.memories()[3]["model"], expected)


def test_members_are_as_if_newcomers_were_not_there():
    """Whatever a newcomer is asked, and members with it, changes nothing that members have."""
    for name in ("cffl", "pfedsv"):
        config = RunConfig.of(SMALL | {"algorithm": name})
        federation = toy.federation(config)
        *_, last = federation.rounds()
        before = {c: dict(federation.memories()[c]) for c in federation.clients}
        welcomed(federation, last.state)
        after = {c: federation.memories()[c] for c in federation.clients}
        for c, memory in before.items():
            assert memory.keys() == after[c].keys()
            assert all(memory[key] is after[c][key] for key in memory)


def test_it_takes_the_cluster_of_the_lowest_loss():
    federation = toy.federation(RunConfig.of(SMALL | {"algorithm": "ifca", "options": {"k": 2}}))
    *_, last = federation.rounds()
    _, messages = welcomed(federation, last.state)
    newcomer = Client(toy.site(federation.config), 3, 3)
    models = last.state["models"]
    losses = []
    for model in models:
        newcomer.workspace.load(model)
        newcomer.workspace.module.eval()
        images, labels = newcomer.data.train.take(torch.arange(20))
        outputs = newcomer.workspace.module(images).detach()
        losses.append(float(torch.nn.functional.cross_entropy(outputs, labels)))
    chosen = build_algorithm("ifca", {"k": 2}).model(newcomer, messages[3])
    assert torch.equal(chosen, models[losses.index(min(losses))])


@pytest.mark.parametrize(
    ("name", "options"),
    [("cffl", {"synergy": "cos", "cos_on": "validation"}), ("pfedsv", {})],
    ids=["cffl", "pfedsv"],
)
def test_a_newcomer_finds_those_that_are_like_it(name, options):
    groups = "/".join(["1,3,8,9"] * 2 + ["0,2,5,6"] * 2 + ["1,3,8,9"])
    settings = SMALL | {"clients": 5, "partition": f"labels:{groups}", "train_size": 40}
    result = run(settings | {"algorithm": name, "options": options, "rounds": 3})
    newcomer, like, unlike = (row(result.model(c)) for c in (4, 0, 2))
    assert float((newcomer - like).norm()) < 0.8 * float((newcomer - unlike).norm())


def test_a_folder_tells_of_newcomers_and_is_resumed_to_the_same(tmp_path):
    settings = SMALL | {"algorithm": "pfedsv"}
    whole = run(settings, tmp_path / "whole")
    said = json.loads((tmp_path / "whole" / "result.json").read_text())["new_clients"]
    assert said == whole.new_clients
    assert said["names"] == ["client 3"]
    assert resume(tmp_path / "whole").new_clients == whole.new_clients
    # As if it was killed when the last round was done.
    (tmp_path / "whole" / "result.json").unlink()
    model = row(load_model(tmp_path / "whole", 3))
    again = resume(tmp_path / "whole")
    assert again.new_clients == whole.new_clients
    assert torch.equal(row(again.model(3)), model)


def test_a_run_without_newcomers_says_nothing_of_them():
    assert "new_clients" not in run(SMALL | {"new_clients": 0}).to_dict()


class Silent(Algorithm):
    def start(self, federation):
        return {"nothing": 0}


def test_what_cannot_be_is_said_before_anything_is_trained():
    with pytest.raises(InvalidInputError, match="new_clients is 4 of 4 clients; 1 or more must be"):
        run(SMALL | {"new_clients": 4})
    with pytest.raises(InvalidInputError, match="new_clients and noise, clip or epsilon do not go"):
        run(SMALL | {"clip": 1.0, "noise": 1.0})
    with pytest.raises(InvalidInputError, match="cffl has nothing for new clients if coalitions"):
        run(SMALL | {"algorithm": "cffl", "options": {"overlap": 2, "synergy": "cos"}})
    with pytest.raises(InvalidInputError, match="this method has no model for new clients"):
        list(toy.federation(RunConfig.of(SMALL), algorithm=Silent()).rounds())
