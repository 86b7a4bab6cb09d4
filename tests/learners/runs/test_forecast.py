"""What is told before a run, held against the run."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from coalitions.errors import InvalidInputError
from learners.algorithm import ALGORITHMS
from learners.reproduction.experiments.pfedsv_counts import ABSENT, ModelSize, predicted_traffic
from learners.runs import forecast as module
from learners.runs.forecast import forecast
from learners.runs.run import run
from learners.settings.config import RunConfig
from tests.contracts import tasks

SMALL = {"clients": 5, "rounds": 4, "local_epochs": 1, "train_size": 20, "workers": 1}
BOUNDED = {"fedproto", "pfedsv"}


@pytest.mark.parametrize("name", ALGORITHMS.names())
def test_traffic_is_that_of_the_ledger(name):
    options = {"width": 5} if name == "pfedhn" else {}
    config = SMALL | {"algorithm": name, "participation": 0.6, "options": options}
    told, sent = forecast(config), run(config).communication
    assert told.exact == (name not in BOUNDED)
    if told.exact:
        assert vars(told.traffic) == sent
    else:
        assert 0 < sent["up"] <= told.traffic.up
        assert 0 < sent["down"] <= told.traffic.down
        assert told.document()["traffic"]["bytes_up"] is None


@pytest.mark.parametrize(
    ("algorithm", "options", "settings"),
    [
        ("pfedsv", {"dynamic": False, "k": 2}, {}),
        ("pfedsv", {"dynamic": False, "k": 2, "shared_extractor": True}, {}),
        ("cffl", {"synergy": "cos"}, {}),
        ("ifca", {"averaging": "gradient"}, {}),
        ("fedrep", {"cut": "none"}, {"rounds": 1}),
        ("fedavg", {}, {"rounds": 1}),
        ("fedavg", {}, {"clip": 0.1, "noise": 1.0}),
        ("fedfomo", {"k": 1}, {"clip": 0.1, "epsilon": 9.0}),
        ("fedavg", {}, {"rounds": 1, "epsilon": 8.0}),
        ("fedavg", {}, {"rounds": 1, "epsilon": 8.0, "dp": "records"}),
        ("fedavg", {}, {"partition": "dirichlet:0.5", "train_size": None}),
    ],
)
def test_options_privacy_and_unequal_clients_do_not_disturb_it(algorithm, options, settings):
    config = SMALL | settings | {"algorithm": algorithm, "options": options}
    told = forecast(config)
    assert told.exact
    assert vars(told.traffic) == run(config).communication


def test_it_says_what_the_prediction_from_sizes_says():
    told = forecast(SMALL | {"algorithm": "fedfomo", "options": {"k": 2}, "participation": 0.6})
    trace = np.full((4, 5), ABSENT)
    trace[:, :3] = 2  # three take part, whoever they are, and get two models each
    up, down = predicted_traffic("fedfomo", ModelSize(0, 55210), trace)
    assert (told.traffic.up, told.traffic.down) == (up.sum(), down.sum())


def test_the_configuration_is_complete():
    told = forecast(SMALL)
    assert told.config.model == "mlp"
    assert told.config.partition == "pathological:2"
    assert told.config == run(SMALL).config


def test_memory_is_what_was_measured_and_what_only_one_client_did():
    model = 55210 * 4
    alone = forecast(SMALL).memory
    assert alone["rehearsal"] > 50e6  # torch alone is more
    assert alone["clients"] == 4 * model  # replies; fedavg's clients keep nothing
    assert alone["workers"] == 0
    keeping = forecast(SMALL | {"algorithm": "ditto", "workers": 2}).memory
    assert keeping["clients"] == 2 * 4 * model
    assert keeping["workers"] > 2 * 4 * model


def test_a_stacked_run_is_told_from_a_stack(monkeypatch):
    sizes = []
    train = module.Stacking.train
    monkeypatch.setattr(
        module.Stacking, "train", lambda self, fits: sizes.append(len(fits)) or train(self, fits)
    )
    monkeypatch.setattr(module, "MOST_STACKED", 3)
    config = SMALL | {"algorithm": "ditto", "compute": "stacked"}
    told = forecast(config)
    assert set(sizes) == {3}
    assert told.seconds > 0
    # Two clients are missing in the stack: two rows each for their parameters at the least.
    assert told.memory["stack"] > 2 * 2 * 55210 * 4
    assert told.document()["memory"]["bytes"] == sum(told.memory.values())
    assert vars(told.traffic) == run(config).communication
    assert "stack" not in forecast(SMALL | {"compute": "sequential"}).memory


def test_longer_runs_and_more_workers(monkeypatch):
    """With a clock that counts one second for each look at it, sums can be checked."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(module.time, "process_time", lambda: next(ticks))
    config = SMALL | {"partition": "iid"}

    def seconds(**settings):
        return forecast(config | settings).seconds

    short, long = seconds(rounds=10), seconds(rounds=20)
    assert long - short == pytest.approx(10 * (seconds(rounds=11) - short))
    rarely = seconds(rounds=10, evaluate_every=10)
    assert short - rarely == pytest.approx(9 * 5)  # nine tests of five clients, a second each
    assert seconds(rounds=10, workers=2) < short


def test_large_clients_are_shortened_and_multiplied(monkeypatch):
    seen = []
    answer = module.answer

    def watched(site, task, client, *others):
        seen.append((task.name, len(site.data[client].train)))
        return answer(site, task, client, *others)

    monkeypatch.setattr(module, "answer", watched)
    told = forecast({"clients": 2, "rounds": 3, "batch_size": 2, "workers": 1})
    assert {n for name, n in seen if name != "describe"} == {2 * module.MOST_BATCHES}
    assert told.seconds > 0


OWN = {"rounds": 3, "local_epochs": 1, "workers": 1}


@pytest.mark.parametrize("name", ["cffl", "fedc2i", "pfedsv"])
@pytest.mark.parametrize("task", ["tabular regression", "next token"])
def test_data_of_ones_own_are_rehearsed(name, task):
    data = tasks.federation(task)
    settings = OWN | {"algorithm": name, "new_clients": 1}
    told, done = forecast(settings, data=data), run(settings, data=data)
    assert told.config == done.config
    assert told.exact == (name not in BOUNDED)
    assert done.communication["up"] <= told.traffic.up
    assert done.communication["down"] <= told.traffic.down
    assert not told.exact or vars(told.traffic) == done.communication


def test_a_network_a_loss_and_a_metric_of_ones_own_are_rehearsed():
    def half(targets, outputs):
        return 0.5

    def loss(outputs, targets):
        return torch.nn.functional.cross_entropy(outputs, targets)

    own = {"model": tasks.Plain, "loss": loss, "metrics": [half]}
    data = tasks.federation("pictures")
    told = forecast(OWN, data=data, **own)
    assert told.config == run(OWN, data=data, **own).config
    assert told.traffic.up == 3 * 3 * (36 * 8 + 8 + 8 * 3 + 3)  # rounds, clients, parameters
    with pytest.raises(InvalidInputError, match="give the same again, as data="):
        forecast(told.config)


def test_what_the_run_would_refuse_is_refused():
    with pytest.raises(InvalidInputError, match="no algorithm named 'fedavgg'"):
        forecast(RunConfig(algorithm="fedavgg"))
    with pytest.raises(InvalidInputError, match="no body to share: mlp"):
        forecast(SMALL | {"algorithm": "fedrep", "options": {"cut": "dense"}})
