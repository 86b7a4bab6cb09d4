import json
import os
import signal
import sys
from multiprocessing import get_context

import numpy as np
import pytest
import torch
from torch import nn

import learners
from coalitions.errors import DamagedFileError, DamagedFileWarning, InvalidInputError
from coalitions.structure import CoalitionStructure
from learners import load_model, resume, run
from learners.client.client import Samples
from learners.data.clients import federated_data
from learners.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from learners.runs.folder import RunFolder
from learners.runs.reading import read_run
from learners.server.federation import Federation, Round

SMALL = {
    "clients": 3,
    "rounds": 3,
    "local_epochs": 1,
    "train_size": 30,
    "workers": 1,
    "participation": 0.7,
}


def without_times(document):
    return {key: value for key, value in document.items() if key not in ("seconds", "out")}


def outcome(folder):
    """Everything a finished run's folder says, except how long it took."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    models = [(file.name, file.read_bytes()) for file in sorted((folder / "models").iterdir())]
    result = json.loads((folder / "result.json").read_text())
    structures = folder / "structures.jsonl"
    return (
        [without_times(line) for line in lines],
        without_times(result),
        models,
        structures.read_text() if structures.exists() else "",
    )


def test_a_runs_folder_is_complete(tmp_path):
    result = run(SMALL, tmp_path / "one")
    names = {path.name for path in (tmp_path / "one").iterdir()}
    assert names == {
        "config.toml",
        "clients.json",
        "environment.json",
        "metrics.jsonl",
        "result.json",
        "SHA256SUMS",
        "SHA256SUMS.timed",
        "checkpoints",
        "models",
    }
    document = json.loads((tmp_path / "one" / "result.json").read_text())
    assert document["communication"]["up"] == 2 * 3 * 55210  # 2 of 3 clients, 3 rounds
    assert document["epsilon"] is None
    assert document["mean_test_accuracy"] == result.mean_test_accuracy
    assert len(list((tmp_path / "one" / "checkpoints").iterdir())) == 4
    again = run(RunFolder.open(tmp_path / "one").config(), tmp_path / "two")
    assert outcome(tmp_path / "one") == outcome(tmp_path / "two")
    assert without_times(again.to_dict()) == without_times(result.to_dict())


def test_with_and_without_a_folder_numbers_and_models_agree(tmp_path):
    config = SMALL | {"algorithm": "local"}
    kept, written = run(config), run(config, tmp_path / "run")
    assert without_times(kept.to_dict()) == without_times(written.to_dict())
    for client in range(3):
        for ours, theirs in zip(
            kept.model(client).parameters(), written.model(client).parameters(), strict=True
        ):
            assert torch.equal(ours, theirs)


def test_a_loaded_model_predicts_as_well_as_the_result_says(tmp_path):
    result = run(SMALL | {"algorithm": "fedavg-ft", "rounds": 2}, tmp_path / "run")
    data = federated_data(
        "digits", clients=3, partition="pathological:2", seed=0, train_size=30
    ).clients
    for client in range(3):
        images = Samples(data[client].test, torch.device("cpu"))
        module = load_model(tmp_path / "run", client)
        correct = sum(int((module(x).argmax(1) == y).sum()) for x, y in images.chunks(50))
        assert correct / len(images) == result.per_client_test_accuracy[client]
    with pytest.raises(InvalidInputError, match="it has clients 0 … 2"):
        load_model(tmp_path / "run", 3)


def test_an_existing_folder_is_not_overwritten_without_force(tmp_path):
    run(SMALL, tmp_path / "run")
    with pytest.raises(InvalidInputError, match="--force"):
        run(SMALL, tmp_path / "run")
    run(SMALL | {"rounds": 1}, tmp_path / "run", force=True)
    assert len(RunFolder.open(tmp_path / "run").history()) == 1
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work")
    with pytest.raises(InvalidInputError, match="not a run's folder"):
        run(SMALL, precious, force=True)
    assert (precious / "thesis.txt").exists()


def killed(folder, config, place, count):
    """Run in another process, which kills itself at the `count`-th time it reaches `place`."""
    reached = 0

    def dying(original, *, before):
        def call(*arguments, **more):
            nonlocal reached
            reached += 1
            if before and reached == count:
                os.kill(os.getpid(), signal.SIGKILL)
            answer = original(*arguments, **more)
            if reached == count:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return call

    where, name, before = {
        "in the middle of a round": (Federation, "ask", True),
        "before the metrics": (RunFolder, "write_round", True),
        "after the metrics": (RunFolder, "save", True),
        "after the checkpoint": (RunFolder, "save", False),
        "between the checkpoint's two files": (
            sys.modules["learners.runs.checkpoint"],
            "_digest",
            True,
        ),
        "before the models": (RunFolder, "write_models", True),
        "before the result": (RunFolder, "write_result", True),
    }[place]

    def life():
        setattr(where, name, dying(getattr(where, name), before=before))
        run(config, folder)

    process = get_context("fork").Process(target=life)
    process.start()
    process.join()
    return process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("algorithm", ["fedavg", "local", "domain"])
def test_a_run_killed_anywhere_and_resumed_ends_as_if_nothing_had_happened(algorithm, tmp_path):
    config = SMALL | {"algorithm": algorithm}
    run(config, tmp_path / "whole")
    expected = outcome(tmp_path / "whole")
    counts = {
        "in the middle of a round": range(1, 9),
        "before the metrics": (1, 2, 3),
        "after the metrics": (1, 2, 3),
        "after the checkpoint": (1, 2, 3),
        "between the checkpoint's two files": (2,),
        "before the models": (1,),
        "before the result": (1,),
    }
    for place, whens in counts.items():
        # One method goes through every moment, the others through the middle of each kind.
        for count in whens if algorithm == "local" else whens[len(whens) // 2 :][:1]:
            folder = tmp_path / f"{place} {count}"
            assert killed(folder, config, place, count)
            resume(folder)
            assert outcome(folder) == expected, (place, count)


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is locked on Windows")
def test_two_processes_do_not_work_on_one_run(tmp_path):
    folder = tmp_path / "run"
    reports, goes_on = get_context("fork").Event(), get_context("fork").Event()

    def after_round(_):
        reports.set()
        goes_on.wait(60)

    process = get_context("fork").Process(
        target=run, args=(SMALL, folder), kwargs={"on_round": after_round}
    )
    process.start()
    assert reports.wait(60)
    lines = (folder / "metrics.jsonl").read_bytes()
    for attempt in (lambda: resume(folder), lambda: run(SMALL, folder, force=True)):
        with pytest.raises(InvalidInputError, match="another process is at work on the run"):
            attempt()
    assert (folder / "metrics.jsonl").read_bytes() == lines
    goes_on.set()
    process.join()
    assert process.exitcode == 0
    run(SMALL, tmp_path / "undisturbed")
    assert outcome(folder) == outcome(tmp_path / "undisturbed")


def test_a_finished_run_is_not_run_again(tmp_path):
    first = run(SMALL, tmp_path / "run")
    before = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    again = resume(tmp_path / "run")
    assert again.to_dict() == first.to_dict()
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == before


def test_a_run_that_is_repeated_has_the_same_checksums_and_every_change_is_noticed(tmp_path):
    for name in ("one", "two"):
        run(SMALL | {"algorithm": "cffl"}, tmp_path / name)
    one, two = (tmp_path / name for name in ("one", "two"))
    assert (one / "SHA256SUMS").read_bytes() == (two / "SHA256SUMS").read_bytes()
    assert "models/" in (one / "SHA256SUMS").read_text()
    for name in (
        "metrics.jsonl",
        "result.json",
        "structures.jsonl",
    ):  # they say how long the run took
        before = (one / name).read_bytes()
        (one / name).write_bytes(before.replace(b"0", b"1"))
        with pytest.raises(DamagedFileError, match=f"{name} is damaged: its checksum"):
            read_run(one)
        (one / name).write_bytes(before)
    assert read_run(one).result is not None


def test_a_run_that_began_when_options_had_other_names_goes_on(tmp_path):
    fomo = {"algorithm": "fedfomo", "options": {"k": 1, "explore": 0.5, "explore_decay": 0.1}}
    run(SMALL | fomo, tmp_path / "run")
    expected = outcome(tmp_path / "run")
    (tmp_path / "run" / "result.json").unlink()
    path = tmp_path / "run" / "config.toml"
    path.write_text(path.read_text().replace("\nexplore", "\nepsilon"))
    assert "\nepsilon_decay = 0.1\n" in path.read_text()
    resume(tmp_path / "run")
    assert outcome(tmp_path / "run") == expected


@pytest.mark.parametrize("suffix", ["json", "safetensors"])
def test_a_damaged_checkpoint_gives_way_to_the_one_before(tmp_path, suffix):
    run(SMALL, tmp_path / "run")
    expected = outcome(tmp_path / "run")
    (tmp_path / "run" / "result.json").unlink()
    older, newest = sorted((tmp_path / "run" / "checkpoints").glob(f"*.{suffix}"))
    content = bytearray(newest.read_bytes())
    content[-20] ^= 1
    newest.write_bytes(content)
    with pytest.warns(DamagedFileWarning, match="damaged.*round 2 instead"):
        resume(tmp_path / "run")
    assert outcome(tmp_path / "run") == expected
    (tmp_path / "run" / "result.json").unlink()
    for file in (older, newest):
        file.write_bytes(content)
    with pytest.raises(DamagedFileError, match="--force"):
        resume(tmp_path / "run")


def test_a_folder_without_a_run_cannot_be_resumed(tmp_path):
    with pytest.raises(InvalidInputError, match=r"no config\.toml"):
        resume(tmp_path)


def test_a_checkpoint_comes_back_the_same(tmp_path):
    state = {
        "model": torch.arange(3.0),
        "matrix": np.eye(2),
        "counts": np.array(3),
        "empty": np.zeros((0, 2)),
        "k": [1, 2],
        "name": "ö",
        "none": None,
    }
    memories = {4: {"model": torch.ones(2, 2), "alpha": 0.1}}
    save_checkpoint(tmp_path / "c", Checkpoint(7, state, memories, np.ones((1, 1, 4), int), 1.5))
    back = load_checkpoint(tmp_path / "c" / "round-000007.json", torch.device("cpu"))
    assert (back.round, back.seconds) == (7, 1.5)
    assert list(back.state) == list(state)
    for name, value in state.items():
        assert type(back.state[name]) is type(value)
        assert np.array_equal(back.state[name], value)
    assert torch.equal(back.memories[4]["model"], torch.ones(2, 2))
    assert back.memories[4]["alpha"] == 0.1


@pytest.mark.parametrize("value", [{1, 2}, (1, 2), {3: "x"}, float("nan"), object()])
def test_what_would_not_come_back_the_same_is_refused(tmp_path, value):
    with pytest.raises(InvalidInputError, match="come back the same"):
        save_checkpoint(tmp_path / "c", Checkpoint(1, {"x": value}, {}, np.zeros((1, 1, 4)), 0.0))


def test_records_become_files_of_one_format(tmp_path):
    with RunFolder.create(tmp_path / "run", learners.RunConfig(rounds=3)) as folder:
        for t in (1, 2):
            structure = CoalitionStructure([[0, 1], [2]] if t == 1 else [[0], [1], [2]])
            records = {"relevance": np.full((2, 2), t), "structure": structure}
            folder.write_round(Round(t, {}, {"round": t}, records), 3)
    relevance = np.load(tmp_path / "run" / "relevance.npy")
    assert relevance.shape == (3, 2, 2)
    assert (relevance[1] == 2).all()
    assert np.isnan(relevance[2]).all()
    lines = (tmp_path / "run" / "structures.jsonl").read_text().splitlines()
    assert json.loads(lines[0]) == {"round": 1, "coalitions": [[0, 1], [2]]}


def test_evaluation_can_be_rarer_and_the_last_round_has_it(tmp_path):
    result = run(SMALL | {"evaluate_every": 2, "checkpoint_every": 2}, tmp_path / "run")
    assert ["mean_test_accuracy" in line for line in result.history] == [False, True, True]
    every = run(SMALL)
    assert result.metrics["per_client_test_accuracy"] == every.per_client_test_accuracy


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"algorithm": "fedavgg"}, "did you mean 'fedavg"),
        ({"dataset": "digit"}, "did you mean 'digits'"),
        ({"model": "lenet5"}, "did you mean 'lenet-5'"),
        ({"engine": "flowers"}, "there is no engine named 'flowers'"),
        ({"algorithm": "fedprox", "options": {"mu": "lots"}}, "must be a number, not 'lots'"),
        ({"partition": "pathologic:2"}, "pathologic"),
        ({"aggregation": "meen"}, "did you mean 'mean'"),
        ({"plugins": ["no_such_module"]}, "plugin 'no_such_module' cannot be imported"),
        ({"data_dir": "/no/such/folder"}, "/no/such/folder"),
    ],
)
def test_unknown_names_are_said_before_anything_is_written(wrong, sentence, tmp_path):
    with pytest.raises(InvalidInputError, match=sentence):
        run(SMALL | wrong, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_own_data_network_and_algorithm_from_outside(tmp_path, monkeypatch):
    (tmp_path / "my_learning.py").write_text(
        """
from dataclasses import dataclass
import numpy as np
from torch import nn
from learners.algorithm import ALGORITHMS, Algorithm
from learners.data.dataset import DATASETS, DataSet, Images, ImageSet
from learners.models import MODELS

@ALGORITHMS.register("my-method")
@dataclass(frozen=True)
class MyMethod(Algorithm):
    "Pull the weights to zero."
    strength: float = 0.1
    def objective(self, loss, params, received):
        return loss + self.strength * sum(p.square().sum() for p in params.values())

@DATASETS.register("my-data")
class MyData(DataSet):
    "Stripes."
    def load(self, folder):
        def images(n):
            labels = np.arange(n) % 2
            pixels = np.where(labels, 200, 20)[:, None, None] * np.ones((1, 6, 6))
            return Images(pixels.astype(np.uint8), labels)
        return {"": ImageSet(images(80), images(40), 2)}

@MODELS.register("my-network")
def my_network(shape, n_classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(36, n_classes))
"""
    )
    monkeypatch.syspath_prepend(tmp_path)
    config = {
        "plugins": ["my_learning"],
        "algorithm": "my-method",
        "dataset": "my-data",
        "model": "my-network",
        "options": {"strength": 0.01},
        "clients": 2,
        "partition": "iid",
        "rounds": 3,
        "workers": 1,
    }
    result = run(config, tmp_path / "run")
    assert result.mean_test_accuracy == 1.0
    assert isinstance(load_model(tmp_path / "run", 1), nn.Sequential)
    from learners.algorithm import ALGORITHMS
    from learners.data.dataset import DATASETS
    from learners.models import MODELS

    del ALGORITHMS._entries["my-method"], DATASETS._entries["my-data"]
    del MODELS._entries["my-network"]


@pytest.mark.slow
def test_on_digits_training_alone_is_good_and_the_one_global_model_clearly_worse():
    last_only = {"evaluate_every": 20}
    alone = run({"algorithm": "local", **last_only})
    together = run({"algorithm": "fedavg", **last_only})
    assert alone.mean_test_accuracy > 0.95
    assert together.mean_test_accuracy < alone.mean_test_accuracy - 0.05
