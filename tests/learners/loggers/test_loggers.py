"""Callbacks hear what happens; logs hold every round once, also of a run that was interrupted."""

from __future__ import annotations

import csv
import io
import json
import sys

import pytest

from coalitions.errors import InvalidInputError, MissingDependencyError
from learners import Callback, resume, run
from learners.loggers import CsvLogger, loggers_of, logs_in, scalars

CONFIG = {"clients": 2, "rounds": 4, "train_size": 20, "workers": 1, "evaluate_every": 2}


class Heard(Callback):
    """Remembers what it hears."""

    def __init__(self, fails_in=0):
        self.log = []
        self.fails_in = fails_in

    def on_begin(self, config, out, history):
        self.log.append(("begin", config.algorithm, out, len(history)))

    def on_round(self, round):
        self.log.append(round.number)
        if round.number == self.fails_in:
            raise KeyboardInterrupt

    def on_end(self, result):
        self.log.append(("end", result.mean_test_accuracy))


def test_several_callbacks_hear_the_beginning_each_round_and_the_end(tmp_path):
    first, second = Heard(), Heard(fails_in=3)
    with pytest.raises(KeyboardInterrupt):
        run(CONFIG, tmp_path / "a", callbacks=[first, second])
    assert first.log == second.log == [("begin", "fedavg", tmp_path / "a", 0), 1, 2, 3]
    again = Heard()
    result = resume(tmp_path / "a", callbacks=[again])
    assert again.log == [
        ("begin", "fedavg", tmp_path / "a", 3), 4, ("end", result.mean_test_accuracy),
    ]  # fmt: skip
    assert Heard().log == []
    finished = Heard()
    resume(tmp_path / "a", callbacks=[finished])
    assert finished.log == []


def lines_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def table_of(folder):
    return list(csv.DictReader(io.StringIO((folder / "metrics.csv").read_text())))


def test_csv_has_every_round_once_after_an_interruption_and_columns_of_all(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(CONFIG, tmp_path / "a", callbacks=[CsvLogger(), Heard(fails_in=1)])
    (only,) = table_of(tmp_path / "a")
    assert "accuracy" not in only  # the first round has no test
    resume(tmp_path / "a", callbacks=loggers_of(logs_in(tmp_path / "a")))
    table, lines = table_of(tmp_path / "a"), lines_of(tmp_path / "a")
    assert [int(row["round"]) for row in table] == [1, 2, 3, 4]
    for row, line in zip(table, lines, strict=True):
        assert float(row["train_loss"]) == line["train_loss"]
        assert row["accuracy"] == ("" if line["round"] % 2 else str(line["mean_test_accuracy"]))


def test_tensorboard_reads_every_round_once_after_an_interruption(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with pytest.raises(KeyboardInterrupt):
        run({**CONFIG, "checkpoint_every": 3}, tmp_path / "a",
            callbacks=[*loggers_of(["tensorboard"]), Heard(fails_in=2)])  # fmt: skip
    # No checkpoint is there: both rounds are done again.
    assert logs_in(tmp_path / "a") == ["tensorboard"]
    resume(tmp_path / "a", callbacks=loggers_of(["tensorboard"]))
    events = EventAccumulator(str(tmp_path / "a" / "tensorboard"))
    events.Reload()
    found = {event.step: event.value for event in events.Scalars("train_loss")}
    lines = lines_of(tmp_path / "a")
    assert found == {line["round"]: pytest.approx(line["train_loss"]) for line in lines}
    assert len(events.Scalars("train_loss")) == 4
    assert [event.step for event in events.Scalars("accuracy")] == [2, 4]


def test_a_package_that_is_not_there_is_said_before_anything_is_trained(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingDependencyError, match="pip install tensorboard"):
        loggers_of(["csv", "tensorboard"])


def test_what_cannot_be_logged_is_said():
    with pytest.raises(InvalidInputError, match="did you mean 'csv'"):
        loggers_of(["cvs"])
    with pytest.raises(InvalidInputError, match="a CSV log needs a file"):
        run(CONFIG, callbacks=[CsvLogger()])


def test_numbers_of_a_round_are_those_that_are_numbers():
    result = run({**CONFIG, "rounds": 1})
    numbers = scalars(result.metrics)
    assert numbers["accuracy"] == numbers["mean_test_accuracy"] == result.mean_test_accuracy
    assert "epsilon" not in numbers
    assert all(isinstance(value, float) for value in numbers.values())
