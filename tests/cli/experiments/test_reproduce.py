"""`coalitions reproduce`, as a user types it."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")

from tests.cli.typed import typed


def test_the_list_has_every_table_with_its_title():
    listed = typed("reproduce", "--list")
    assert listed.returncode == 0, listed.stderr
    lines = listed.stdout.splitlines()
    assert any(line.startswith("fedc2i-table1 ") and "Digit-5" in line for line in lines)
    document = json.loads(typed("reproduce", "--list", "--json").stdout)
    assert document["pfedsv-table1"]["source"].startswith("Table I")
    assert document["pfedsv-fig9"]["runs"] == {"smoke": 0, "small": 0, "paper": 0}
    assert typed("reproduce").stdout == listed.stdout


def test_a_figure_that_is_counted_ends_with_verdicts(tmp_path):
    out = tmp_path / "out"
    printed = typed("reproduce", "pfedsv-fig8", "--scale", "smoke", "--seeds", "3", "--out", out)
    assert printed.returncode == 0, printed.stderr
    assert "holds           pFedSV (D+C) is above FedAMP (traffic)" in printed.stdout
    assert "does not hold   the classifier has 49.57%" in printed.stdout
    table = (out / "pfedsv-fig8" / "table.md").read_text()
    assert "`coalitions reproduce pfedsv-fig8 --scale smoke --seeds 3`" in table
    assert "pfedsv-fig8" in (out / "README.md").read_text()


def test_a_smoke_test_says_on_the_screen_that_its_figures_mean_nothing(tmp_path):
    printed = typed("reproduce", "pfedsv-fig2", "--scale", "smoke", "--out", tmp_path)
    assert printed.returncode == 0, printed.stderr
    assert "the figures mean nothing" in printed.stdout


def test_a_dry_run_tells_the_cost_and_writes_nothing(tmp_path):
    out = tmp_path / "out"
    told = typed("reproduce", "pfedsv-fig2", "--scale", "smoke", "--dry-run", "--out", out)
    assert told.returncode == 0
    assert "pfedsv-fig2: 2 runs, about" in told.stdout
    assert not out.exists()


def test_several_experiments_have_a_line_for_all_of_them(tmp_path):
    arguments = ("pfedsv-fig2", "pfedsv-fig11", "--scale", "smoke", "--dry-run", "--out", tmp_path)
    lines = typed("reproduce", *arguments).stdout.splitlines()
    assert lines[1] == "pfedsv-fig11: 1 picture to recover"
    assert lines[2].startswith("in all: 2 runs, about ")
    assert not typed("reproduce", *arguments, "--quiet").stderr


def test_pictures_are_counted_as_they_get_done(tmp_path):
    arguments = ("pfedsv-fig11", "--scale", "smoke", "--seeds", "2", "--out", tmp_path)
    told = typed("reproduce", *arguments, "--verbose").stderr
    assert "pfedsv-fig11: 2 pictures to recover\n1 of 2 done, " in told
    assert "2 of 2 done, 0 s left" in told


def test_results_as_json(tmp_path):
    printed = typed("reproduce", "pfedsv-fig9", "--scale", "smoke", "--json", "--out", tmp_path)
    document = json.loads(printed.stdout)
    assert document["name"] == "pfedsv-fig9"
    assert document["claims"][-1]["verdict"] == "holds"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fedc2i-tabel1",), "did you mean 'fedc2i-table1'?"),
        (("pfedsv-fig8", "--scale", "huge"), "--scale is 'huge'; it can be: smoke, small, paper"),
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    printed = typed("reproduce", *arguments)
    assert printed.returncode == 2
    assert said in printed.stderr
    assert not list(tmp_path.iterdir())


def contents(folder):
    """Return the tables of all experiments in a folder, by path."""
    names = ("table.csv", "table.md", "claims.json", "experiment.json", "README.md")
    paths = [path for name in names for path in folder.rglob(name) if "runs" not in path.parts]
    return {path.relative_to(folder): path.read_bytes() for path in paths}


def done_for_good(folder):
    """Return what may never be written again: all of finished runs, pictures, checkpointed rounds.

    A round's line says how long it took, so one that is computed again has another line.
    """
    whole, begun = {}, {}
    for run in folder.glob("runs/*/*"):
        if (run / "result.json").is_file():
            whole |= {path: path.stat().st_mtime_ns for path in files(run)}
        elif done := [int(each.stem[6:]) for each in run.glob("checkpoints/round-*.json")]:
            lines = (run / "metrics.jsonl").read_bytes().splitlines(keepends=True)
            assert all(b'"seconds":' in line for line in lines[: max(done)])
            begun[run / "metrics.jsonl"] = b"".join(lines[: max(done)])
    whole |= {path: path.stat().st_mtime_ns for path in folder.glob("*/pictures/*/seed*.npy")}
    return whole, begun


def n_finished(folder):
    return len(list(folder.glob("runs/*/*/result.json")))


def in_the_middle(folder):
    """Return the runs that have a checkpoint, and no result yet."""
    begun = {path.parents[1] for path in folder.glob("runs/*/*/checkpoints/round-*.json")}
    return [run for run in begun if not (run / "result.json").is_file()]


def files(run):
    return [path for path in run.rglob("*") if path.is_file() and path.name != ".lock"]


def assert_nothing_was_done_again(folder, before):
    whole, begun = before
    assert {path: path.stat().st_mtime_ns for path in whole} == whole
    for run in {path.parent for path in whole if path.name == "result.json"}:
        assert set(files(run)) <= set(whole)
    for path, lines in begun.items():
        assert path.read_bytes().startswith(lines)


DYING = """
import os, sys
from cli.app import main
from learners.runs.folder import RunFolder

save, saved = RunFolder.save, []

def save_or_die(folder, checkpoint):
    save(folder, checkpoint)
    saved.append(checkpoint)
    if len(saved) == 7:
        os.kill(os.getpid(), 9)

RunFolder.save = save_or_die
main()
"""
"""The command, killed when its fourth run has done the first of two rounds."""


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed")
def test_what_was_done_before_a_kill_is_not_done_again(tmp_path):
    command = ["reproduce", "pfedsv-fig2", "pfedsv-fig7", "--scale", "smoke", "--seeds", "2", "-q"]
    folder = tmp_path / "killed"
    died = subprocess.run([sys.executable, "-c", DYING, *command, "--out", folder], check=False)
    assert died.returncode == -signal.SIGKILL
    before = done_for_good(folder)
    assert sum(path.name == "result.json" for path in before[0]) == 3
    (rounds,) = before[1].values()
    assert rounds.count(b"\n") == 1
    assert not (folder / "README.md").exists()
    for out in (folder, tmp_path / "whole"):
        assert typed(*command, "--out", out).returncode == 0
    assert_nothing_was_done_again(folder, before)
    assert contents(folder) == contents(tmp_path / "whole")
    assert len(contents(folder)) == 2 * 4 + 1


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed")
def test_all_experiments_killed_again_and_again_end_with_the_same_tables(tmp_path):
    command = [Path(sys.executable).with_name("coalitions"), "reproduce", "--all", "-q"]
    command += ["--scale", "smoke", "--jobs", "2", "--out"]
    subprocess.run([*command, tmp_path / "whole"], check=True, stdout=subprocess.DEVNULL)
    rng, folder, kills = random.Random(0), tmp_path / "killed", 0
    before = done_for_good(folder)
    while True:
        process = subprocess.Popen([*command, folder], stdout=subprocess.DEVNULL)
        aim = n_finished(folder) + rng.randint(1, n_finished(tmp_path / "whole") // 4)
        while process.poll() is None and (n_finished(folder) < aim or not in_the_middle(folder)):
            time.sleep(0.002)
        if process.poll() is not None:
            assert process.returncode == 0
            break
        process.kill()
        process.wait()
        kills += 1
        assert_nothing_was_done_again(folder, before)
        before = done_for_good(folder)
    assert kills >= 4
    assert_nothing_was_done_again(folder, before)
    assert contents(folder) == contents(tmp_path / "whole")
