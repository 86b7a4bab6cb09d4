"""No option does nothing: each changes config.toml, and what the table says it changes.

Every option is tried in two tiny runs that differ in it alone. Runs that several options are
compared with are made once.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")

from safetensors.torch import save_file  # noqa: E402

from coalitions.errors import InvalidInputError  # noqa: E402
from learners.algorithm import ALGORITHMS  # noqa: E402
from learners.models import build_model  # noqa: E402
from learners.runs.run import run  # noqa: E402
from learners.settings.config import RunConfig  # noqa: E402
from learners.settings.options import OBSERVABLES, options_of  # noqa: E402
from tests.cli.federation.test_run import typed  # noqa: E402, F401 (a fixture)

TINY = {
    "clients": 4,
    "rounds": 2,
    "local_epochs": 1,
    "train_size": 20,
    "batch_size": 5,
    "workers": 1,
}

PRIVATE = {"clip": 0.1, "noise": 1.0}
TABLE = {"dataset": "table.csv", "target": "y", "client_column": "who"}
PICTURES = {"dataset": "mnist", "data_dir": "here", "model": "lenet-64"}

SCHEMA = {
    "target": "y",
    "task": "classification",
    "classes": ["0", "1"],
    "columns": [{"name": "a", "kind": "number"}],
}

SETTINGS = {
    "algorithm": ("local", {}),
    "aggregation": ("median", {}),
    "norm_limit": (1.0, {}),
    "rounds": (3, {}),
    "participation": (0.5, {}),
    "attendance": ("fixed", {"participation": 0.5}),
    "dataset": ("digits-domains", {}),
    "target": ("z", TABLE),
    "client_column": ("where", TABLE),
    "group_column": ("region", TABLE),
    "schema": ("schema.json", TABLE),
    "share_statistics": (True, TABLE),
    "data_sha256": None,  # see tests/cli/federation/test_own_data.py
    "data_dir": ("there", PICTURES),
    "clients": (5, {}),
    "new_clients": (1, {}),
    "partition": ("iid", {}),
    "train_size": (30, {}),
    "train_sizes": ((20, 30, 20, 25), {}),
    "test_size": (9, {}),
    "test_sizes": ((9, 8, 7, 6), {}),
    "validation_share": (0.5, {}),
    "evaluate_on": ("validation", {}),
    "task": ("regression", {}),
    "metric": (("log-loss",), {}),
    "poison": (("noise:1",), {}),
    "model": ("mlp", PICTURES),
    "weights": ("start.safetensors", {}),
    "weights_sha256": None,  # see tests/learners/runs/test_weights.py
    "loss": ("huber", {"task": "regression"}),
    "local_epochs": (2, {}),
    "patience": (1, {"local_epochs": 8}),
    "keep": ("best", {"rounds": 4, "lr": 0.6}),
    "batch_size": (7, {}),
    "optimizer": ("adam", {}),
    "lr": (0.06, {}),
    "schedule": ("cosine", {}),
    "warmup": (1, {}),
    "momentum": (0.5, {}),
    "weight_decay": (0.1, {}),
    "max_gradient_norm": (0.5, {}),
    "augment": ("flip,crop", {}),
    "noise": (0.5, PRIVATE),
    "clip": (0.2, PRIVATE),
    "epsilon": (5.0, {"clip": 0.1, "epsilon": 50.0}),
    "delta": (1e-3, PRIVATE),
    "dp": ("records", PRIVATE),
    "seed": (1, {}),
    "device": None,  # see test_device_and_engine
    "compute": ("stacked", {}),
    "engine": None,
    "workers": (2, {}),
    "evaluate_every": (2, {}),
    "checkpoint_every": (2, {}),
    "plugins": None,  # see test_plugins
}
"""Each setting, the value it is changed to, and what else both runs have."""

FOLLOW = {
    "algorithm": {"options"},
    "dataset": {"partition", "model"},
    "schema": {"model"},
    "weights": {"weights_sha256"},
}
"""Settings that are decided by another one if they are left open."""

OPTIONS = {
    ("apfl", "alpha"): 0.9,
    ("cffl", "gain"): "log-loss",
    ("cffl", "solver"): "greedy",
    ("cffl", "time_limit"): 1e-9,
    ("cffl", "overlap"): 2,
    ("ditto", "lam"): 3.0,
    ("ditto", "personal_epochs"): 2,
    ("fedacs", "p"): 0.9,
    ("fedacs", "threshold"): -2.0,
    ("fedamp", "lam"): 1.0,
    ("fedamp", "sigma"): 1.0,
    ("fedamp", "alpha"): 0.5,
    ("fedamp", "self_weight"): 0.9,
    ("fedavg-ft", "fine_tune_epochs"): 2,
    ("fedc2i", "gamma"): 0.0,
    ("fedem", "k"): 2,
    ("fedfomo", "k"): 1,
    ("fedfomo", "explore"): 1.0,
    ("fedfomo", "explore_decay"): 1.0,
    ("fedproto", "lam"): 0.0,
    ("fedprox", "mu"): 1.0,
    ("fedrep", "head_epochs"): 2,
    ("fedrep", "body_epochs"): 2,
    ("fedrod", "gamma"): 0.0,
    ("fedrod", "width"): 3,
    ("ifca", "k"): 2,
    ("per-fedavg", "alpha"): 0.01,
    ("per-fedavg", "difference_step"): 1.0,
    ("pfedhn", "server_lr"): 0.05,
    ("pfedhn", "server_momentum"): 0.0,
    ("pfedhn", "embedding"): 3,
    ("pfedhn", "width"): 5,
    ("pfedhn", "hidden_layers"): 1,
    ("pfedme", "lam"): 10.0,
    ("pfedme", "inner_steps"): 1,
    ("pfedme", "eta"): 0.01,
    ("pfedme", "personal_lr"): 0.01,
    ("pfedme", "beta"): 0.5,
    ("pfedsv", "k"): 1,
    ("pfedsv", "explore"): 1.0,
    ("pfedsv", "alpha"): 0.1,
    ("pfedsv", "method"): "permutation",
    ("pfedsv", "permutations"): 1,
    ("pfedsv", "utility"): "log-loss",
}
"""Options that are numbers or names, and the value they are changed to; others try all choices."""

WITH = {
    ("cffl", "time_limit"): ({"clients": 8}, {"synergy": "cos", "solver": "highs"}),
    ("cffl", "overlap"): ({"clients": 6, "rounds": 2, "partition": "ring:2"}, {"synergy": "cos"}),
    ("cffl", "cos_mode"): (PICTURES | {"model": "cffl-cnn-dropout"}, {"synergy": "cos"}),
    ("cffl", "ties"): ({"clients": 6, "seed": 3}, {}),
    ("fedacs", "among"): ({"participation": 0.5, "rounds": 3}, {}),
    ("domain", "separate_poisoned"): ({"poison": ("noise:1",), "partition": "iid"}, {}),
    ("fedfomo", "explore"): ({"rounds": 4, "partition": "iid"}, {"k": 1, "explore": 0.0}),
    ("fedfomo", "explore_decay"): ({"rounds": 4, "partition": "iid"}, {"k": 1, "explore": 1.0}),
    ("fedrep", "cut"): (PICTURES, {}),
    ("pfedhn", "server_lr"): ({}, {"width": 5}),
    ("pfedhn", "server_momentum"): ({}, {"width": 5}),
    ("pfedhn", "turns"): ({}, {"width": 5}),
    ("pfedhn", "embedding"): ({}, {"width": 5}),
    ("pfedhn", "hidden_layers"): ({}, {"width": 5}),
    ("pfedsv", "order"): ({"rounds": 4, "partition": "iid"}, {"k": 1}),
    ("pfedsv", "order", "scan"): (
        {"clients": 8, "participation": 0.5, "rounds": 2, "partition": "iid"},
        {"k": 1},
    ),
    ("pfedsv", "noise_own"): (PRIVATE, {}),
    ("pfedsv", "explore"): ({"rounds": 3}, {}),
    ("pfedsv", "dynamic"): ({"rounds": 3}, {}),
    ("pfedsv", "permutations"): ({}, {"method": "permutation"}),
}
"""What else both runs need for an option to show: settings of the run, options of the method."""


def lines(folder, name):
    path = folder / name
    return [json.loads(line) for line in path.read_text().splitlines()]


def metric(key):
    return lambda folder: [line[key] for line in lines(folder, "metrics.jsonl")]


def of_result(key):
    return lambda folder: json.loads((folder / "result.json").read_text())[key]


def scores(folder):
    return [
        {key: value for key, value in line.items() if "test_" in key or key == "metrics"}
        for line in lines(folder, "metrics.jsonl")
    ]


SEEN = {
    "models": lambda folder: [file.read_bytes() for file in sorted(folder.glob("models/*"))],
    "data": lambda folder: (folder / "clients.json").read_text(),
    "scores": scores,
    "rounds": lambda folder: len(lines(folder, "metrics.jsonl")),
    "participants": metric("participants"),
    "evaluations": lambda folder: [bool(line) for line in scores(folder)],
    "traffic": of_result("communication"),
    "relevance": lambda folder: np.load(folder / "relevance.npy").tolist(),
    "structure": lambda folder: lines(folder, "structures.jsonl"),
    "solver": metric("structure_solver"),
    "proof": metric("structure_optimal"),
    "epsilon": of_result("epsilon"),
    "place": lambda folder: json.loads((folder / "environment.json").read_text()),
    "checkpoints": lambda folder: (folder / "checkpoints.seen").read_text(),
}
"""How each observable is read from a run's folder."""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two folders with a small "mnist" each."""
    folders = {}
    for name, seed in (("here", 0), ("there", 1)):
        rng = np.random.default_rng(seed)
        folders[name] = tmp_path_factory.mktemp(name)
        images = {}
        for part, n in (("train", 400), ("test", 100)):
            images[f"x_{part}"] = rng.integers(0, 256, (n, 28, 28), dtype=np.uint8)
            images[f"y_{part}"] = rng.integers(0, 10, n)
        np.savez(folders[name] / "mnist.npz", **images)
    rng = np.random.default_rng(0)
    rows = ["who,where,region,a,b,y,z"]
    for k in range(160):
        a, b = rng.normal(k % 4, size=2)
        who = f"h{k % 4},s{k % 5 % 4},r{k % 2}"
        rows.append(f"{who},{a:.3f},{b:.3f},{int(a > b)},{int(a + b > 2)}")
    for name, text in (("table.csv", "\n".join(rows)), ("schema.json", json.dumps(SCHEMA))):
        folders[name] = tmp_path_factory.getbasetemp() / name
        folders[name].write_text(text)
    network = build_model("mlp", shape=(1, 8, 8), n_classes=10, seed=5)
    folders["start.safetensors"] = tmp_path_factory.getbasetemp() / "start.safetensors"
    save_file(network.state_dict(), folders["start.safetensors"])
    return folders


@pytest.fixture(scope="module")
def tried(tmp_path_factory, files):
    """A function from settings to the folder of a run with them; the same run is made once."""
    folders = {}

    def folder_of(settings):
        key = json.dumps(settings, sort_keys=True)
        if key not in folders:
            folder = tmp_path_factory.mktemp("runs") / "run"
            seen = []

            def after(round):
                seen.append(sorted(file.name for file in folder.glob("checkpoints/*.json")))

            named = {
                key: str(files[settings[key]])
                for key in ("data_dir", "dataset", "schema", "weights")
                if settings.get(key) in files
            }
            settings = settings | named
            run(settings, folder, on_round=after)
            (folder / "checkpoints.seen").write_text(repr(seen))
            folders[key] = folder
        return folders[key]

    return folder_of


def config(folder):
    return tomllib.loads((folder / "config.toml").read_text())


def differing(one, other):
    return {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}


def test_everything_in_the_table_is_tried():
    settings = [each.name for each in options_of(RunConfig)]
    assert list(SETTINGS) == settings
    chosen = {
        (name, each.name)
        for name in ALGORITHMS
        if ALGORITHMS[name].__module__.startswith("learners.algorithms.")
        for each in options_of(ALGORITHMS[name])
        if each.choices is None and each.hint is not bool
    }
    assert set(OPTIONS) == chosen
    assert set(SEEN) | {"names"} == set(OBSERVABLES)


@pytest.mark.parametrize("name", [name for name, case in SETTINGS.items() if case])
def test_a_setting_changes_what_it_says(name, tried):
    (row,) = (each for each in options_of(RunConfig) if each.name == name)
    value, context = SETTINGS[name]
    shared = TINY | context
    if name == "train_sizes":
        del shared["train_size"]  # which it stands for
    before, after = tried(shared), tried(shared | {name: value})
    assert name in differing(config(before), config(after))
    assert differing(config(before), config(after)) <= {name} | FOLLOW.get(name, set())
    assert row.help
    assert SEEN[row.changes](before) != SEEN[row.changes](after)


def rows_of_algorithms():
    for name in ALGORITHMS:
        if ALGORITHMS[name].__module__.startswith("learners.algorithms."):
            for row in options_of(ALGORITHMS[name]):
                values = row.choices or ((not row.default,) if row.hint is bool else ())
                values = [each for each in values if each != row.default]
                for value in values or [OPTIONS[name, row.name]]:
                    yield pytest.param(name, row, value, id=f"{name}-{row.name}-{value}")


@pytest.mark.parametrize(("algorithm", "row", "value"), list(rows_of_algorithms()))
def test_an_option_changes_what_it_says(algorithm, row, value, tried):
    shared = WITH.get((algorithm, row.name), ({}, {}))
    context, options = WITH.get((algorithm, row.name, value), shared)
    needed = {key: wanted[0] for key, wanted in row.document()["needs"].items()}
    options = {key: each for key, each in needed.items() if each is not None} | options
    settings = TINY | context | {"algorithm": algorithm}
    before = tried(settings | {"options": options})
    after = tried(settings | {"options": options | {row.name: value}})
    assert differing(config(before), config(after)) == {"options"}
    assert differing(config(before)["options"], config(after)["options"]) == {row.name}
    assert row.help
    assert SEEN[row.changes](before) != SEEN[row.changes](after)


@pytest.mark.parametrize("name", ["local_epochs", "batch_size", "optimizer", "lr", "momentum"])
@pytest.mark.parametrize("algorithm", [
    name for name in ALGORITHMS if ALGORITHMS[name].__module__.startswith("learners.algorithms.")
])  # fmt: skip
def test_every_algorithm_listens_to_the_settings_of_training(algorithm, name, tried):
    value, _ = SETTINGS[name]
    options = {"width": 5} if algorithm == "pfedhn" else {}  # its default is slow
    settings = TINY | {"rounds": 1, "algorithm": algorithm, "options": options}
    before, after = tried(settings), tried(settings | {name: value})
    assert SEEN["models"](before) != SEEN["models"](after)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_flag_is_the_setting(name, typed, monkeypatch):  # noqa: F811
    """What is typed as a flag is what a run is asked; a file says the same with other words."""
    asked = []

    def forecast(config):
        asked.append(config)
        raise InvalidInputError("enough")

    monkeypatch.setattr("learners.runs.forecast.forecast", forecast)
    value, context = SETTINGS[name] or ("cpu" if name == "device" else "json", {})
    if name == "plugins":
        value = ("json",)  # any module that can be imported
    if name in ("data_dir", "schema", "weights"):
        value = str(Path.cwd() / value)
    settings = {key: each for key, each in context.items() if key != "data_dir"} | {name: value}
    if name in ("train_sizes", "test_sizes"):
        settings["clients"] = len(value)
    if settings.get("dataset") == "table.csv":
        settings["dataset"] = str(Path.cwd() / "table.csv")
    flags = []
    for key, each in settings.items():
        if key in ("train_sizes", "test_sizes"):
            each = ",".join(map(str, each))
        if each is True:
            flags.append(f"--{key.replace('_', '-')}")
            continue
        for one in each if isinstance(each, tuple) else (each,):
            flags += ["--plugin" if key == "plugins" else f"--{key.replace('_', '-')}", one]
    assert "enough" in typed("run", "--dry-run", *flags).stderr
    Path("file.toml").write_text(RunConfig.of(settings).toml())
    assert "enough" in typed("run", "file.toml", "--dry-run").stderr
    assert asked == [RunConfig.of(settings)] * 2


def test_device_and_engine(tried):
    place = SEEN["place"](tried(TINY))
    assert (place["device"], place["engine"]) == ("cpu", "local") or torch.cuda.is_available()
    if not torch.cuda.is_available():
        with pytest.raises(InvalidInputError, match="device cuda: torch finds no GPU here"):
            run(TINY | {"device": "cuda"})
    with pytest.raises(
        InvalidInputError, match="no engine named 'pigeons'; there are: flower, local"
    ):
        run(TINY | {"engine": "pigeons"})


def test_plugins(tmp_path, monkeypatch):
    (tmp_path / "my_method.py").write_text(
        "from dataclasses import dataclass\n"
        "from learners.algorithm import ALGORITHMS, Algorithm\n"
        "@ALGORITHMS.register('mine')\n"
        "@dataclass(frozen=True)\n"
        "class Mine(Algorithm):\n"
        "    strength: float = 0.5\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert "mine" not in ALGORITHMS  # a look-up, so that the copy holds the methods that are there
    monkeypatch.setattr(ALGORITHMS, "_entries", dict(ALGORITHMS._entries))
    settings = TINY | {"algorithm": "mine", "rounds": 1}
    with pytest.raises(InvalidInputError, match="no algorithm named 'mine'"):
        run(settings)
    result = run(settings | {"plugins": ["my_method"]}, tmp_path / "run")
    assert config(tmp_path / "run")["plugins"] == ["my_method"]
    assert result.config.options == {"strength": 0.5}
