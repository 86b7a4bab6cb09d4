"""What every federated method must do, whoever wrote it."""

from __future__ import annotations

import json
import math

import pytest
import torch

from learners.algorithm import ALGORITHMS, build_algorithm
from learners.runs.folder import RunFolder
from learners.runs.run import resume, run
from learners.settings.config import RunConfig
from tests.learners import toy

NAMES = ALGORITHMS.names()
SMALL = {"rounds": 3, "local_epochs": 1, "train_size": 20, "workers": 1}


def finite(value) -> bool:
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(finite, value))
    if isinstance(value, torch.Tensor):
        return bool(torch.isfinite(value).all())
    return not isinstance(value, float) or math.isfinite(value)


def lines(result):
    """A run's metrics without its times."""
    return [
        {key: value for key, value in line.items() if not key.endswith("seconds")}
        for line in result.history
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("clients", [1, 2, 5])
def test_any_number_of_clients(name, clients):
    result = run(SMALL | {"algorithm": name, "clients": clients, "partition": "iid"})
    assert len(result.history) == 3
    for line in result.history:
        assert finite(line)
        assert len(line["per_client_test_accuracy"]) == clients
        assert 0 <= line["worst_client_accuracy"] <= line["mean_test_accuracy"] <= 1
        assert len(line["up_per_client"]) == len(line["down_per_client"]) == clients
        assert sum(line["up_per_client"]) == line["up"]
        assert sum(line["down_per_client"]) == line["down"]
        assert not line["refused"]
    total = result.communication
    assert total["up"] <= total["bytes_up"]
    assert total["down"] <= total["bytes_down"]
    for client in range(clients):
        assert finite([p.detach() for p in result.model(client).parameters()])


@pytest.mark.parametrize("name", NAMES)
def test_partial_participation_is_deterministic_and_the_same_for_workers(name):
    config = SMALL | {"algorithm": name, "clients": 5, "participation": 0.4}
    first = run(config)
    assert all(len(line["participants"]) == 2 for line in first.history)
    assert lines(run(config)) == lines(first)
    assert lines(run(config | {"workers": 2})) == lines(first)
    assert lines(run(config | {"seed": 1})) != lines(first)


@pytest.mark.parametrize("name", NAMES)
def test_only_clients_that_take_part_send_models(name):
    result = run(SMALL | {"algorithm": name, "clients": 5, "participation": 0.4})
    for line in result.history:
        absent = set(range(5)) - set(line["participants"])
        assert all(line["up_per_client"][c] == 0 for c in absent)


@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_stopped_goes_on_as_if_it_had_not(name, tmp_path):
    config = SMALL | {"algorithm": name, "clients": 4, "participation": 0.6}
    whole = run(config, tmp_path / "whole")

    class Stop(Exception):  # noqa: N818
        pass

    def stop(round):
        if round.number == 2:
            raise Stop

    with pytest.raises(Stop):
        run(config, tmp_path / "stopped", on_round=stop)
    resumed = resume(tmp_path / "stopped")
    assert lines(resumed) == lines(whole)
    assert resumed.communication == whole.communication
    for one, other in zip(
        sorted((tmp_path / "whole" / "models").iterdir()),
        sorted((tmp_path / "stopped" / "models").iterdir()),
        strict=True,
    ):
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_the_folder_repeats_the_run_and_json_is_strict(name, tmp_path):
    first = run(SMALL | {"algorithm": name, "clients": 2, "rounds": 2}, tmp_path / "one")
    config = RunFolder.open(tmp_path / "one").config()
    assert config.options == {
        option: value
        for option, value in build_algorithm(name, {}).options().items()
        if value is not None
    }
    assert lines(run(config)) == lines(first)
    for line in (tmp_path / "one" / "metrics.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)


@pytest.mark.parametrize("name", NAMES)
def test_a_network_with_batch_norm_and_clients_of_any_size(name):
    config = RunConfig(
        algorithm=name, clients=3, rounds=2, local_epochs=1, batch_size=6, lr=0.05, workers=1
    )
    federation = toy.federation(config, (1, 13, 40), module=toy.network(batch_norm=True))
    for round in federation.rounds():
        assert finite(dict(round.state))
        assert finite(round.metrics)


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_it_is(name):
    assert (ALGORITHMS[name].__doc__ or "").strip()
    assert not (ALGORITHMS[name].__doc__ or "").startswith(f"{ALGORITHMS[name].__name__}(")
