"""A client that ends with the model of its best round."""

import numpy as np
import pytest
import torch

from coalitions.errors import InvalidInputError
from learners import load_model
from learners.algorithm import ALGORITHMS
from learners.runs.forecast import forecast
from learners.runs.run import resume, run

RNG = np.random.default_rng(0)


def noise(n):
    """Classes that nothing tells: who trains longer knows more by heart, and is wrong elsewhere."""
    return RNG.normal(size=(n, 8)).astype(np.float32), RNG.integers(0, 2, n)


DATA = {name: (noise(30), noise(20)) for name in ("north", "south", "west")}
SMALL = {"rounds": 4, "local_epochs": 2, "lr": 0.3, "workers": 1, "model": "tabular"}
BEST = SMALL | {"keep": "best"}


def of_the_method(line):
    """Return what training alone decides."""
    return {key: line[key] for key in ("train_loss", "up", "down", "participants")}


@pytest.mark.parametrize("name", ALGORITHMS.names())
def test_each_client_has_the_figures_of_its_own_best_round(name):
    options = {"width": 4, "embedding": 2} if name == "pfedhn" else {}
    method = {"algorithm": name, "options": options, "participation": 0.67, "seed": 1}
    last, best = (run(each | method, data=DATA, metrics=["log-loss"]) for each in (SMALL, BEST))
    assert list(map(of_the_method, last.history)) == list(map(of_the_method, best.history))
    kept = best.metrics["per_client_kept_round"]
    scores = [line["metrics"]["log-loss"]["per_client"] for line in last.history]
    assert best.metrics["metrics"]["log-loss"]["per_client"] == [
        scores[number - 1][client] for client, number in enumerate(kept)
    ]
    assert "per_client_kept_round" not in last.metrics


def test_the_best_round_is_that_of_the_lowest_validation_loss_and_has_its_model(tmp_path):
    settings = {"algorithm": "local", "optimizer": "adam", "lr": 0.02}
    best = run(BEST | settings, tmp_path / "best", data=DATA)
    kept = best.metrics["per_client_kept_round"]
    assert best.to_dict()["per_client_kept_round"] == kept
    assert min(kept) < SMALL["rounds"]  # there was something to keep
    shorter = [run(SMALL | settings | {"rounds": t}, data=DATA) for t in range(1, 5)]
    for client, number in enumerate(kept):
        found = load_model(tmp_path / "best", client).state_dict()
        meant = shorter[number - 1].model(client).state_dict()
        assert all(torch.equal(found[name], meant[name]) for name in meant)
    early = kept.index(min(kept))
    rows = [next(each.model(early).parameters()) for each in (best, shorter[-1])]
    assert not torch.equal(*rows)  # the last one is another


class _StopError(Exception):
    pass


def test_a_run_that_was_stopped_keeps_what_an_undisturbed_one_keeps(tmp_path):
    method = {"algorithm": "fedrep", "participation": 0.67}
    whole = run(BEST | method, tmp_path / "whole", data=DATA)
    shared = run(BEST | method | {"workers": 2}, data=DATA)

    def stop(round):
        if round.number == 3:
            raise _StopError

    with pytest.raises(_StopError):
        run(BEST | method, tmp_path / "stopped", data=DATA, on_round=stop)
    resumed = resume(tmp_path / "stopped", data=DATA)
    again = resume(tmp_path / "stopped", data=DATA)  # a finished one is read
    timeless = [
        [{k: v for k, v in line.items() if not k.endswith("seconds")} for line in each.history]
        for each in (whole, resumed, shared, again)
    ]
    assert timeless[0] == timeless[1] == timeless[2] == timeless[3]
    one, other = (
        [path.read_bytes() for path in sorted((tmp_path / each / "models").iterdir())]
        for each in ("whole", "stopped")
    )
    assert one == other


def test_all_clients_at_once_keep_the_same_rounds():
    alone, stacked = (
        run(BEST | {"algorithm": "fedavg-ft", "compute": how}, data=DATA)
        for how in ("sequential", "stacked")
    )
    rounds = [each.metrics["per_client_kept_round"] for each in (alone, stacked)]
    assert rounds[0] == rounds[1]


def test_newcomers_get_what_the_last_round_left():
    plain, best = (run(each | {"new_clients": 1}, data=DATA) for each in (SMALL, BEST))
    assert plain.new_clients == best.new_clients
    assert len(best.metrics["per_client_kept_round"]) == 2


def test_without_validation_data_it_is_refused_and_it_can_be_forecast():
    with pytest.raises(InvalidInputError, match="keep best measures models on validation data"):
        run(BEST | {"validation_share": 0.0}, data=DATA)
    often, rarely = (
        forecast(BEST | {"rounds": 40, "evaluate_every": every}, data=DATA) for every in (1, 40)
    )
    assert often.traffic == rarely.traffic
