"""`coalitions report --watch`, logs and Ctrl-C, as a user meets them."""

from __future__ import annotations

import csv
import multiprocessing
import time

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
pytest.importorskip("plotly", reason="plotly is not installed: pip install .[report]")

from cli.report import writing as watching
from cli.terminal.progress import RoundProgress
from learners import run
from tests.cli.federation.test_run import SHORT, typed  # noqa: F401 (a fixture)


def watched_run(out, shown):
    """Run six rounds; wait after each until the page shows the round before."""
    import torch

    def wait_for_the_page(round):
        until = time.monotonic() + 120.0
        while shown.value < round.number - 1 and time.monotonic() < until:
            time.sleep(0.01)

    torch.set_num_threads(1)  # those of the process that forked this one are not here
    config = {"rounds": 6, "clients": 2, "train_size": 20, "workers": 1}
    run(config, out, on_round=wait_for_the_page)


def test_a_page_follows_a_run_and_stops_reloading_when_it_is_finished(tmp_path, typed, monkeypatch):  # noqa: F811
    pages = []

    def recorded(folders, target, refresh=0):
        found = watching_write(folders, target, refresh)
        shown.value = len(found[1][0].history)
        if refresh:  # not the last page
            pages.append((len(found[1][0].history), target.read_text()[:1000]))
        return found

    watching_write = watching.write_page
    monkeypatch.setattr(watching, "write_page", recorded)
    (tmp_path / "run").mkdir()
    forked = multiprocessing.get_context("fork")
    shown = forked.Value("i", 0)
    child = forked.Process(target=watched_run, args=(tmp_path / "run", shown))
    child.start()
    result = typed("report", "run", "--watch", "--every", "0.1")
    child.join()
    assert result.returncode == 0, result.stderr
    assert "reloads every 0.1 s; Ctrl-C stops." in result.stderr
    rounds = [number for number, _ in pages]
    assert rounds == sorted(rounds)
    assert len(set(rounds)) > 1  # it was seen going on
    assert all('<meta http-equiv="refresh" content="1">' in text for _, text in pages)
    last = (tmp_path / "run" / "report.html").read_text()
    assert 'http-equiv="refresh"' not in last
    assert "Going on" not in last


def test_ctrl_c_leaves_a_page_that_stays(tmp_path, typed, monkeypatch):  # noqa: F811
    with pytest.raises(ZeroDivisionError):
        run({"rounds": 3, "clients": 2, "train_size": 20, "workers": 1}, tmp_path / "run",
            on_round=lambda round: round.number < 2 or 1 / 0)  # fmt: skip

    def interrupted(_seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(watching.time, "sleep", interrupted)
    result = typed("report", "run", "--watch")
    assert result.returncode == 130
    assert 'http-equiv="refresh"' not in (tmp_path / "run" / "report.html").read_text()


def test_bad_watches_are_said(tmp_path, typed):  # noqa: F811
    assert "is no folder of a run" in typed("report", "nowhere", "--watch").stderr
    assert "--every has no effect without --watch" in typed("report", ".", "--every", "1").stderr


def test_ctrl_c_in_a_run_says_what_is_kept_and_resume_begins_there(tmp_path, typed, monkeypatch):  # noqa: F811
    seen = []

    def update(self, round):
        seen.append(round.number)
        if seen == [1, 2]:
            raise KeyboardInterrupt

    monkeypatch.setattr(RoundProgress, "update", update)
    command = ("run", *SHORT, "--rounds", "4", "--log", "csv", "--out", "one")
    stopped = typed(*command)
    assert stopped.returncode == 130
    assert (
        "Round 2 of 4 is saved; `coalitions resume one` continues with round 3." in stopped.stderr
    )
    resumed = typed("resume", "one")
    assert resumed.returncode == 0, resumed.stderr
    assert seen == [1, 2, 3, 4]
    rows = list(csv.DictReader((tmp_path / "one" / "metrics.csv").read_text().splitlines()))
    assert [row["round"] for row in rows] == ["1", "2", "3", "4"]  # the log went on unasked

    seen[:] = []
    monkeypatch.setattr(
        RoundProgress, "update", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    early = typed(*command, "--out", "two", "--checkpoint-every", "3")
    assert "No round is kept yet; `coalitions resume two` begins again." in early.stderr


def test_the_bar_of_a_resumed_run_begins_where_it_goes_on():
    from learners.settings.config import RunConfig

    progress = RoundProgress(RunConfig(rounds=10))
    bar = pytest.importorskip("rich.progress").Progress(disable=True)
    progress._bar = bar
    metrics = {"train_loss": None, "refused": {}, "quarantined": {}}
    with progress:
        progress.show(7, metrics)
        (task,) = bar.tasks
        assert task.completed == 7
        assert task.total == 10
        progress.show(8, metrics)
        # Two rounds were seen since: the time left is for two rounds, not for what was done before.
        assert sum(sample.completed for sample in task._progress) == 2


def test_logs_that_do_not_exist_are_refused_before_the_run(tmp_path, typed):  # noqa: F811
    refused = typed("run", *SHORT, "--log", "cvs", "--out", "one")
    assert refused.returncode == 2
    assert "did you mean 'csv'" in refused.stderr
    assert not (tmp_path / "one").exists()
