"""Kills, full disks, damaged files and meeting processes: a run ends right, or says why not."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pytest

import cli.federation.run  # noqa: F401 (the processes to come have it already)
import learners
from coalitions import CoalitionError, InvalidInputError, SynergyGraph
from coalitions.errors import DamagedFileWarning, StorageError
from learners import load_model, resume
from learners.server.local_engine import one_thread
from tests.reliability.crashes import Command, command, flags, outcome, small_disk, used

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked, and killed")

COMMAND = Path(sys.executable).with_name("coalitions")
METHODS = ["local", "fedavg", "pfedsv", "cffl", "fedc2i", "fedacs", "ditto", "fedfomo", "ifca"]


@pytest.fixture(autouse=True)
def one_thread_before_forking():
    with one_thread():
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the folder of an undisturbed run of a method, and how long it took."""
    known = {}

    def folder(algorithm):
        if algorithm not in known:
            learners.run(  # loads and compiles for all processes to come
                {"algorithm": algorithm, "clients": 3, "train_size": 30, "rounds": 1, "workers": 1}
            )
            path = tmp_path_factory.mktemp("whole") / algorithm
            ended = command("run", *flags(algorithm), "--out", path)
            assert ended.code == 0, ended.stderr
            known[algorithm] = path, ended.seconds
        return known[algorithm]

    return folder


def copied(folder, target):
    shutil.copytree(folder, target)
    return target


def unfinished(folder, target):
    """Return a copy of a run as it is when killed after its last checkpoint."""
    copied(folder, target)
    shutil.rmtree(target / "models")
    for name in ("result.json", "SHA256SUMS", "SHA256SUMS.timed"):
        (target / name).unlink(missing_ok=True)
    return target


# Kills


def killed_and_finished(folder, algorithm, rng, seconds, workers=1):
    """Run, kill, resume, kill … and let it end after three kills; return how many there were."""
    typed = ["run", *flags(algorithm, workers=workers), "--out", folder]
    for kills in range(4):
        # The first kill hits for certain; a time may come when the run is already over.
        by_operation = kills == 0 or (kills < 3 and rng.random() < 0.5)
        process = Command(*typed, dies_at=rng.randint(1, 40) if by_operation else 0)
        if kills < 3 and not by_operation:
            time.sleep(rng.uniform(0, 0.8 * seconds))
            process.kill()
        ended = process.end()
        if ended.code == 0:
            return kills
        assert ended.code == -9, ended.stderr
        if (folder / "config.toml").is_file():
            typed = ["resume", folder]
    raise AssertionError("it was not killed, and did not end")


@pytest.mark.parametrize("algorithm", ["fedavg", "pfedsv", "cffl"])
def test_a_run_killed_at_random_moments_ends_as_if_nothing_had_happened(algorithm, tmp_path, whole):
    undisturbed, seconds = whole(algorithm)
    rng = random.Random(f"kills of {algorithm}")
    kills = [
        killed_and_finished(tmp_path / str(number), algorithm, rng, seconds) for number in range(2)
    ]
    assert sum(kills) >= 2
    for number in range(2):
        assert outcome(tmp_path / str(number)) == outcome(undisturbed)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("algorithm", METHODS)
def test_a_hundred_kills_over_nine_methods(algorithm, tmp_path, whole):
    undisturbed, seconds = whole(algorithm)
    rng = random.Random(f"a hundred kills, {algorithm}")
    kills = number = 0
    while kills < 12:
        folder = tmp_path / str(number)
        kills += killed_and_finished(folder, algorithm, rng, seconds, workers=1 + number % 2)
        assert outcome(folder) == outcome(undisturbed), (number, kills)
        number += 1
    print(f"{algorithm}: {kills} kills in {number} runs, all identical")  # noqa: T201


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_comparison_killed_again_and_again(tmp_path):
    shared = [*flags("x")[2:], "--algorithms", "local,pfedsv", "--seeds", "0,1"]
    ended = command("compare", *shared, "--out", tmp_path / "whole")
    assert ended.code == 0, ended.stderr
    rng = random.Random("kills of compare")
    kills = 0
    for number in range(6):
        out = tmp_path / str(number)
        for _ in range(3):
            ended = command("compare", *shared, "--out", out, dies_at=rng.randint(1, 120))
            if ended.code == 0:
                break
            assert ended.code == -9, ended.stderr
            kills += 1
        ended = command("compare", *shared, "--out", out)
        assert ended.code == 0, ended.stderr
        for run in sorted((tmp_path / "whole").iterdir()):
            assert outcome(out / run.name) == outcome(run)
    print(f"compare: {kills} kills, all identical")  # noqa: T201
    assert kills >= 10


def test_what_a_kill_leaves_before_the_settings_are_written_is_no_obstacle(tmp_path, whole):
    undisturbed, _ = whole("fedavg")
    for force in ([], ["--force"]):
        folder = tmp_path / f"run{len(force)}"
        folder.mkdir()
        (folder / ".config.toml.ab1_cd2e").write_text("clients")
        (folder / ".lock").touch()
        ended = command("run", *flags("fedavg"), "--out", folder, *force)
        assert ended.code == 0, ended.stderr
        assert outcome(folder) == outcome(undisturbed)


def test_files_that_a_kill_left_half_written_are_swept(tmp_path, whole):
    undisturbed, _ = whole("fedavg")
    folder = unfinished(undisturbed, tmp_path / "run")
    (folder / "models").mkdir()
    leftovers = [
        folder / "models" / ".client-0001.safetensors.q_2x9abc",
        folder / "checkpoints" / ".round-000004.json.00000000",
        folder / ".result.json.zzzzzzzz",
    ]
    for path in leftovers:
        path.write_bytes(b"half")
    (folder / ".notes").write_text("mine")
    resume(folder)
    assert not any(path.exists() for path in leftovers)
    assert (folder / ".notes").read_text() == "mine"


# Full disks


@pytest.mark.parametrize("limit", [100, 3_000, 100_000, 224_000])
def test_a_file_that_may_not_grow_is_named_and_the_run_goes_on_later(limit, tmp_path, whole):
    undisturbed, _ = whole("pfedsv")
    folder = tmp_path / "run"
    ended = command("run", *flags("pfedsv"), "--out", folder, largest_file=limit)
    assert ended.code == 1
    assert ended.in_one_sentence, ended.stderr
    assert str(folder) in ended.stderr
    assert "ulimit -f" in ended.stderr
    goes_on = ["resume", folder]
    if not (folder / "config.toml").is_file():
        goes_on = ["run", *flags("pfedsv"), "--out", folder]
    else:
        assert f"coalitions resume {folder}" in ended.stderr
    ended = command(*goes_on)
    assert ended.code == 0, ended.stderr
    assert outcome(folder) == outcome(undisturbed)


def filled(place, algorithm, undisturbed, size, inodes=0):
    """Run on a disk that is too small, make it larger and resume; return what was said."""
    with small_disk(place, size, inodes) as remount:
        folder = place / "run"
        ended = command("run", *flags(algorithm), "--out", folder)
        if ended.code == 0:
            return None
        assert ended.code == 1, (ended.code, ended.stderr)
        assert ended.in_one_sentence, ended.stderr
        assert str(place) in ended.stderr
        assert "make room" in ended.stderr
        left = [path for path in folder.rglob(".*") if path.is_file()]
        assert not left, left
        remount("size=64m,nr_inodes=10000")
        begun = (folder / "config.toml").is_file()
        ended_well = command(
            *(["resume", folder] if begun else ["run", *flags(algorithm), "--out", folder])
        )
        assert ended_well.code == 0, ended_well.stderr
        assert outcome(folder) == outcome(undisturbed)
        return ended.stderr


@pytest.mark.parametrize("share", [0.002, 0.3, 0.6, 0.9])
def test_a_run_on_a_full_disk_says_so_and_goes_on_when_there_is_room(share, tmp_path, whole):
    undisturbed, _ = whole("pfedsv")
    size = int(share * used(undisturbed))
    assert filled(tmp_path / "disk", "pfedsv", undisturbed, size) is not None


def test_the_room_for_an_array_is_asked_for_before_the_first_round_writes_it(tmp_path):
    with small_disk(tmp_path / "disk", "1m"):
        many = flags("pfedsv", clients=8, rounds=10_000, train_size=80)
        ended = command("run", *many, "--out", tmp_path / "disk" / "run")
    assert ended.code == 1
    assert ended.in_one_sentence, ended.stderr
    assert "relevance.npy cannot be written: it needs 5.12 MB, and the disk has" in ended.stderr


def test_a_disk_that_has_become_read_only_is_named_and_the_run_goes_on_later(tmp_path, whole):
    undisturbed, _ = whole("fedavg")
    with small_disk(tmp_path / "disk", "64m") as remount:
        folder = unfinished(undisturbed, tmp_path / "disk" / "run")
        remount("ro")
        ended = command("resume", folder)
        assert ended.code == 1
        assert ended.in_one_sentence, ended.stderr
        assert "the disk is read-only" in ended.stderr
        remount("rw")
        assert command("resume", folder).code == 0
        assert outcome(folder) == outcome(undisturbed)


def test_output_that_does_not_fit_is_a_sentence_too():
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [COMMAND, "solvers"], stdout=full, stderr=subprocess.PIPE, text=True, env=buffered
        )
    assert ended.returncode == 1
    assert ended.stderr == (
        "coalitions: the output cannot be written: the disk is full; make room\n"
    )


def test_a_graph_that_does_not_fit_on_the_disk_is_a_sentence_and_leaves_nothing(tmp_path):
    graph = SynergyGraph(np.ones((200, 200)) - np.eye(200))
    with small_disk(tmp_path / "disk", 65536):
        for ending in ("npy", "csv", "json"):
            path = tmp_path / "disk" / f"graph.{ending}"
            with pytest.raises(StorageError, match=rf"graph\.{ending} cannot be written: .*room"):
                graph.write(path)
            assert not list((tmp_path / "disk").iterdir())


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    SynergyGraph(np.zeros((2, 2))).write(pipe)
    assert pipe.is_fifo()
    assert b"labels" in os.read(reader, 10_000)
    os.close(reader)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("algorithm", ["pfedsv", "cffl"])
def test_twenty_full_disks(algorithm, tmp_path, whole):
    undisturbed, _ = whole(algorithm)
    needed = used(undisturbed)
    said = [
        filled(tmp_path / f"size {number}", algorithm, undisturbed, size)
        for number, size in enumerate(np.linspace(4096, needed, 16, dtype=int).tolist())
    ]
    said += [
        filled(tmp_path / f"inodes {number}", algorithm, undisturbed, "64m", number)
        for number in (3, 5, 6, 8, 9, 10, 12, 14)
    ]
    full = [each for each in said if each is not None]
    print(f"{algorithm}: {len(full)} full disks, all resumed and identical")  # noqa: T201
    assert len(full) >= 20


# Damage


def truncated(content):
    return content[: len(content) // 2]


def emptied(content):
    return b""


def flipped(content):
    """Return the content with one bit in the middle changed: a digit becomes another one."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def not_utf8(content):
    middle = len(content) // 2
    return content[:middle] + b"\xff\xfe" + content[middle + 2 :]


def without_its_last_line(content):
    return b"".join(content.splitlines(True)[:-1])


DAMAGES = [truncated, emptied, flipped, not_utf8, without_its_last_line, None]


def damaged_copies(folder, target):
    """Yield each file of a folder with each damage, and the folder with it."""
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    for name in names:
        for damage in DAMAGES:
            copied(folder, target)
            path = target / name
            if damage is None:
                path.unlink()
            else:
                path.write_bytes(damage(path.read_bytes()))
            kind = "removed" if damage is None else damage.__name__
            yield f"{name} {kind}", target
            shutil.rmtree(target)


def said(work):
    """Return what a refusal says in one sentence; None if there was none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedFileWarning)
        try:
            work()
        except CoalitionError as error:
            return " ".join(str(error).splitlines())
    return None


def test_each_damaged_file_of_an_unfinished_run_is_named_or_does_no_harm(tmp_path, whole):
    undisturbed, _ = whole("pfedsv")
    folder = unfinished(undisturbed, tmp_path / "unfinished")
    refused = {}
    for what, damaged in damaged_copies(folder, tmp_path / "damaged"):
        told = said(lambda folder=damaged: resume(folder))
        if told is None:
            assert outcome(damaged) == outcome(undisturbed), what
        else:
            assert str(damaged) in told, what
            refused[what] = told
    assert set(name.split()[0] for name in refused) <= {
        "config.toml",
        "metrics.jsonl",
        "relevance.npy",
    }


def test_each_damaged_file_of_a_finished_run_is_named_or_does_no_harm(tmp_path, whole):
    undisturbed, _ = whole("pfedsv")
    expected = json.loads((undisturbed / "result.json").read_text())
    weights = [list(load_model(undisturbed, client).parameters()) for client in range(3)]
    harmless = set()
    for what, folder in damaged_copies(undisturbed, tmp_path / "damaged"):

        def read(folder=folder, what=what):
            document = resume(folder).to_dict()
            for key in expected.keys() - {"seconds", "out"}:
                assert document[key] == expected[key], what

        def predict(folder=folder, what=what):
            for client, own in enumerate(weights):
                loaded = load_model(folder, client).parameters()
                assert all((a == b).all() for a, b in zip(loaded, own, strict=True)), what

        if said(read) is None and said(predict) is None:
            harmless.add(what)
    held = ("metrics.jsonl", "result.json", "models/")
    assert {what for what in harmless if what.startswith(held)} <= {"result.json removed"}


def test_a_report_on_damaged_files_is_a_page_or_a_sentence(tmp_path, whole):
    from cli.report.methods import read_runs

    undisturbed, _ = whole("pfedsv")
    for start in (undisturbed, unfinished(undisturbed, tmp_path / "unfinished")):
        for _, folder in damaged_copies(start, tmp_path / "damaged"):
            said(lambda folder=folder: read_runs([folder]))
    (tmp_path / "unfinished" / "relevance.npy").write_bytes(b"")
    ended = command("report", tmp_path / "unfinished")
    assert ended.code == 2
    assert ended.in_one_sentence
    assert "relevance.npy" in ended.stderr


def test_a_damaged_newest_checkpoint_is_told_and_the_one_before_taken(tmp_path, whole):
    undisturbed, _ = whole("pfedsv")
    folder = unfinished(undisturbed, tmp_path / "run")
    (folder / "checkpoints" / "round-000004.json").write_bytes(b"\xff\xfe\x00")
    ended = command("resume", folder)
    assert ended.code == 0
    assert "round-000004.json is damaged" in ended.stderr
    assert "goes on from the checkpoint of round 3" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert outcome(folder) == outcome(undisturbed)


def test_lost_lines_of_metrics_are_written_again(tmp_path, whole):
    undisturbed, _ = whole("pfedsv")
    folder = unfinished(undisturbed, tmp_path / "run")
    path = folder / "metrics.jsonl"
    path.write_bytes(without_its_last_line(path.read_bytes()))
    with pytest.warns(DamagedFileWarning, match="bytes of it are lost"):
        resume(folder)
    assert outcome(folder) == outcome(undisturbed)


# Settings


@pytest.mark.parametrize(
    ("line", "edited"),
    [("seed = 0", "seed = 1"), ("lr = 0.05", "lr = 0.1"), ("rounds = 4", "rounds = 6")],
)
@pytest.mark.parametrize("finished", [True, False])
def test_edited_settings_are_refused(line, edited, finished, tmp_path, whole):
    undisturbed, _ = whole("fedavg")
    folder = (copied if finished else unfinished)(undisturbed, tmp_path / "run")
    path = folder / "config.toml"
    text = path.read_text()
    assert line in text
    path.write_text(text.replace(line, edited))
    before = outcome(folder)
    key, _, value = edited.partition(" = ")
    with pytest.raises(InvalidInputError, match=f"{key} {value}, but the run began with"):
        resume(folder)
    assert outcome(folder) == before


def test_settings_that_change_no_figure_may_be_edited(tmp_path, whole):
    undisturbed, _ = whole("fedavg")
    folder = unfinished(undisturbed, tmp_path / "run")
    path = folder / "config.toml"
    for line, edited in (
        ("workers = 1", "workers = 2"),
        ("checkpoint_every = 1", "checkpoint_every = 3"),
    ):
        assert line in path.read_text()
        path.write_text(path.read_text().replace(line, edited))
    shutil.rmtree(folder / "checkpoints")  # all rounds again, with two workers
    resume(folder)
    ours, theirs = outcome(folder), outcome(undisturbed)
    assert ours["models/client-0000.safetensors"] == theirs["models/client-0000.safetensors"]
    assert ours["metrics.jsonl"] == theirs["metrics.jsonl"]


# Two processes


def test_of_two_runs_that_begin_at_once_in_one_folder_one_is_refused(tmp_path):
    for number in range(3):
        folder = tmp_path / str(number)
        both = {
            seed: Command("run", *flags("fedavg", seed=seed), "--out", folder) for seed in (1, 2)
        }
        ended = {seed: process.end() for seed, process in both.items()}
        assert sorted(each.code for each in ended.values()) == [0, 2]
        (winner,) = (seed for seed, each in ended.items() if each.code == 0)
        (loser,) = (each for each in ended.values() if each.code == 2)
        assert loser.in_one_sentence, loser.stderr
        assert tomllib.loads((folder / "config.toml").read_text())["seed"] == winner
        assert json.loads((folder / "result.json").read_text())["seed"] == winner


def test_of_two_that_resume_at_once_one_is_refused_or_reads_the_result(tmp_path, whole):
    undisturbed, _ = whole("pfedsv")
    for number in range(3):
        folder = unfinished(undisturbed, tmp_path / str(number))
        shutil.rmtree(folder / "checkpoints")
        ended = [process.end() for process in [Command("resume", folder) for _ in range(2)]]
        assert min(each.code for each in ended) == 0
        for each in ended:
            assert each.code == 0 or ("at work" in each.stderr and each.in_one_sentence)
        assert outcome(folder) == outcome(undisturbed)
