"""Cells: the same results for any number of jobs, and after a kill at any moment."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

import pytest
import torch

from coalitions.errors import CoalitionError, InvalidInputError
from learners.experiments.resumable_runs import Cell, planned_cell, run_cells
from learners.runs.run import completed

SHORT = {"rounds": 30, "clients": 2, "train_size": 20, "workers": 1}


def cells_in(out, **settings):
    configs = {
        name: completed({**SHORT, **settings, "algorithm": name}) for name in ("fedavg", "local")
    }
    return [planned_cell(name, config, out / name) for name, config in configs.items()]


class Told:
    """Remembers what it is told."""

    def __init__(self):
        self.log = []

    def begin(self, cell):
        self.log.append((cell.name, "begin"))

    def round(self, cell, number, metrics):
        assert metrics["round"] == number
        self.log.append((cell.name, number))

    def end(self, cell, result):
        self.log.append((cell.name, "end"))


def without_time(result):
    return [{k: v for k, v in line.items() if k != "seconds"} for line in result.history]


def test_a_kill_leaves_cells_that_go_on_as_if_nothing_had_been(tmp_path):
    def work():
        torch.set_num_threads(1)  # those of this process are not in a forked one
        run_cells(cells_in(tmp_path / "a"), jobs=2)

    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    files = [tmp_path / "a" / name / "metrics.jsonl" for name in ("fedavg", "local")]
    until = time.monotonic() + 200
    while not all(file.exists() and file.read_bytes().count(b"\n") >= 2 for file in files):
        assert child.is_alive()
        assert time.monotonic() < until
        time.sleep(0.005)
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    until = time.monotonic() + 60
    while any((tmp_path / "a" / name / ".lock").exists() and held(tmp_path / "a" / name)
              for name in ("fedavg", "local")):  # fmt: skip
        assert time.monotonic() < until, "the cells' processes outlive the one that started them"
        time.sleep(0.01)

    planned = cells_in(tmp_path / "a")
    told = Told()
    found = run_cells(planned, jobs=2, watch=told)
    fresh = run_cells(cells_in(tmp_path / "b"))
    assert [without_time(each) for each in found] == [without_time(each) for each in fresh]
    for cell in planned:
        rounds = [number for name, number in told.log if name == cell.name]
        if cell.stage == "begun":  # what has a checkpoint is not done again
            assert rounds[0] == "begin"
            assert rounds[1] >= 2
        assert rounds[-1] == "end"


def held(folder):
    """Tell whether another process holds a run's folder."""
    import fcntl

    with (folder / ".lock").open("wb") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def test_results_come_in_the_order_of_the_cells_without_folders_too():
    config = completed({**SHORT, "rounds": 1})
    cells = [Cell(f"lr {lr}", completed({**SHORT, "rounds": r, "lr": lr}))
             for lr, r in ((0.01, 6), (0.1, 1), (0.05, 1))]  # fmt: skip
    told = Told()
    found = run_cells(cells, jobs=3, watch=told)
    assert [result.config.lr for result in found] == [0.01, 0.1, 0.05]
    assert (
        found[2].metrics["mean_test_accuracy"]
        == run_cells([Cell("a", config)])[0].metrics["mean_test_accuracy"]
    )
    assert [name for name, what in told.log if what == "end"].count("lr 0.01") == 1


def test_what_goes_wrong_in_a_cell_is_said_with_its_name(tmp_path):
    cells = cells_in(tmp_path, rounds=1)
    (tmp_path / "local").write_text("in the way")
    with pytest.raises(InvalidInputError, match=r"^local, seed 0: .*local is a file"):
        run_cells(cells, jobs=2)


def test_a_cell_whose_process_dies_is_named(tmp_path, monkeypatch):
    def dies(*_args, **_named):
        os._exit(3)

    monkeypatch.setattr("learners.experiments.resumable_runs.begin", dies)
    with pytest.raises(CoalitionError, match=r"seed 0: its process ended without a result .*3"):
        run_cells(cells_in(tmp_path, rounds=1), jobs=2)
