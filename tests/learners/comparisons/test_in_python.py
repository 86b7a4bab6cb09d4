"""`compare` and `tune` in Python: the figures of the command line, resumable, on a user's data."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import torch

from coalitions.errors import InvalidInputError
from learners import compare, tune
from tests.cli.federation.test_run import SHORT, typed  # noqa: F401 (a fixture)

SETTINGS = {"rounds": 2, "clients": 3, "train_size": 30, "workers": 1}


def without_time(document):
    """Return a comparison's plain values without seconds and folders."""
    plain = json.loads(json.dumps(document))
    for row in plain["algorithms"].values():
        del row["seconds"]
        for run in row["runs"]:
            del run["seconds"], run["out"]
    return plain


class StopError(Exception):
    """Raised in the middle of many runs."""


class StopAfter:
    """Watches runs, and stops them when some have ended."""

    def __init__(self, runs):
        self.runs = runs

    def begin(self, cell):
        if not self.runs:
            raise StopError

    def round(self, cell, number, metrics):
        pass

    def end(self, cell, result):
        self.runs -= 1


@pytest.fixture(scope="module")
def comparison():
    """A comparison with a variant and a sweep, that some tests only read."""
    return compare(
        SETTINGS, algorithms=["local", "fedavg"], seeds=2, baseline="local",
        variants={"strong": {"algorithm": "fedprox", "mu": 1.0, "lr": 0.1}},
        sweep={"fedprox.mu": [0.01, 0.5]},
    )  # fmt: skip


def test_the_figures_are_those_of_the_command_line(comparison, typed):  # noqa: F811
    told = typed("compare", "--algorithms", "local,fedavg", "--seeds", "0,1", *SHORT, "--baseline",
                 "local", "--variant", "strong: fedprox mu=1.0 lr=0.1", "--sweep",
                 "fedprox.mu=0.01,0.5", "--json", "--quiet")  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert without_time(json.loads(told.stdout)) == without_time(comparison.to_dict())


def test_an_interrupted_comparison_continues_and_finished_runs_are_read(tmp_path):
    rows = {"algorithms": ["local", "fedavg"], "seeds": 2}
    with pytest.raises(StopError):
        compare(SETTINGS, tmp_path, **rows, watch=StopAfter(1))
    (first,) = tmp_path.glob("*/result.json")
    before = first.stat().st_mtime_ns
    went_on = compare(SETTINGS, tmp_path, **rows, jobs=2)
    assert first.stat().st_mtime_ns == before
    assert len(list(tmp_path.glob("*/result.json"))) == 4
    assert without_time(went_on.to_dict()) == without_time(compare(SETTINGS, **rows).to_dict())
    with pytest.raises(InvalidInputError, match="lr"):
        compare(SETTINGS | {"lr": 0.5}, tmp_path, **rows)


def test_a_comparison_is_a_table_a_figure_and_a_frame(comparison, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    assert comparison.differences["local"].mean == 0
    frame = comparison.to_frame().set_index("name")
    assert frame["mean"].to_dict() == comparison.named
    assert frame["difference"]["strong"] == comparison.differences["strong"].mean
    assert len(comparison.to_frame(runs=True)) == 2 * len(frame)
    comparison.plot(tmp_path / "swept.svg")
    assert "fedprox" in (tmp_path / "swept.svg").read_text()
    assert str(comparison).startswith("algorithm")
    assert json.loads(comparison.to_json())["seeds"] == [0, 1]
    again = pickle.loads(pickle.dumps(comparison))
    assert again.to_dict() == comparison.to_dict()
    assert list(again.results) == list(comparison.results)


def people(seed, noise=0.0):
    """Return the data of three clients: numbers and two classes, or noise as test data."""
    rng = np.random.default_rng(seed)
    clients = {}
    for name in ("north", "south", "west"):
        x = rng.normal(size=(60, 4)).astype(np.float32)
        y = (x[:, 0] > 0).astype(np.int64)
        junk = (noise * rng.normal(size=(20, 4))).astype(np.float32)
        clients[name] = ((x[:40], y[:40]), (x[40:] + junk, y[40:] if not noise else 1 - y[40:]))
    return clients


def network():
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))


OWN = {"rounds": 2, "workers": 1, "lr": 0.1}


def test_data_and_a_network_of_a_user_are_compared_and_gone_on_with(tmp_path):
    own = {"data": people(0), "model": network, "algorithms": ["local", "fedavg"], "seeds": 2}
    memory = compare(OWN, **own)
    with pytest.raises(StopError):
        compare(OWN, tmp_path, **own, watch=StopAfter(3))
    assert compare(OWN, tmp_path, **own).named == memory.named
    assert pickle.loads(pickle.dumps(memory)).named == memory.named
    with pytest.raises(InvalidInputError, match="dataset"):
        compare(OWN, tmp_path, **(own | {"data": people(1)}))


def test_a_table_whose_test_rows_a_seed_draws_is_compared(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    x = rng.normal(size=240)
    table = pandas.DataFrame({"site": np.tile(["a", "b"], 120), "x": x, "ill": x > 0})
    own = {"data": table, "target": "ill", "client_column": "site", "seeds": 2}
    kept = compare(OWN, tmp_path, **own)
    assert compare(OWN, tmp_path, **own).named == kept.named
    tuned = tune(OWN, algorithms=["fedavg"], trials=2, seeds=1, data=table, target="ill",
                 client_column="site")  # fmt: skip
    assert tuned.best["fedavg"].score is not None


def test_tuning_finds_what_the_command_line_finds(typed, tmp_path):  # noqa: F811
    told = typed("tune", "--algorithms", "fedprox", "--trials", "3", "--strategy", "halving",
                 "--seed", "7", *SHORT, "--json", "--quiet")  # fmt: skip
    assert told.returncode == 0, told.stderr
    asked = {"algorithms": ["fedprox"], "trials": 3, "strategy": "halving", "seeds": [7]}
    tuned = tune(SETTINGS, **asked)
    assert tuned.to_dict() | {"output": None} == json.loads(told.stdout)
    with pytest.raises(StopError):
        tune(SETTINGS, tmp_path / "kept", **asked, watch=StopAfter(2))
    assert tune(SETTINGS, tmp_path / "kept", **asked).to_dict() == tuned.to_dict()

    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    assert tuned.to_frame()["best"].sum() == 1
    tuned.plot(tmp_path / "tuned.png")
    assert pickle.loads(pickle.dumps(tuned)).settings == tuned.settings
    fair = compare(SETTINGS, algorithms=["fedprox", "local"], tuned=tuned, seeds=1)
    assert fair.to_dict()["not_tuned"] == ["local"]
    assert fair.to_dict()["algorithms"]["fedprox"]["own"] == {
        key: str(value) for key, value in tuned.settings["fedprox"].items()
    }
    with pytest.raises(InvalidInputError, match="tuned on"):
        compare(SETTINGS, tuned=tuned, seeds=[7])


def test_tuning_does_not_look_at_the_test_data_of_a_user():
    asked = {"algorithms": ["fedavg"], "trials": 3, "seeds": 1, "space": {"lr": "0.01..0.5"}}
    fair = tune(OWN, data=people(0), model=lambda: network(), **asked)
    assert pickle.loads(pickle.dumps(fair)).settings == fair.settings
    misled = tune(OWN, data=people(0, noise=9.0), model=lambda: network(), **asked)
    assert fair.to_dict() == misled.to_dict()


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"algorithms": ["fedavgg"]}, "did you mean 'fedavg'"),
        ({"baseline": "ditto"}, "there are: local, fedavg"),
        ({"seeds": 0}, "seeds 0 asks for no seeds"),
        ({"sweep": {"fedprox.mu": []}}, "a sweep names an option and its values"),
        ({"sweep": {"fedprox.mu": [1, 1]}}, "a value comes twice"),
        ({"variants": {"x": {"mu": 1}}}, "needs its method"),
        ({"by": "auroc"}, "the runs have no metric 'auroc'"),
        ({"jobs": -1}, "jobs must be 0 or more"),
    ],
)
def test_bad_input_is_said_before_the_first_run(asked, sentence, tmp_path):
    with pytest.raises(InvalidInputError, match=sentence):
        compare(SETTINGS, tmp_path / "kept", **asked)
    assert not list(tmp_path.glob("kept/*/metrics.jsonl"))
