"""`coalitions reproduce`, as a user types it."""

from __future__ import annotations

import json
import random
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


def test_a_dry_run_tells_the_cost_and_writes_nothing(tmp_path):
    out = tmp_path / "out"
    told = typed("reproduce", "pfedsv-fig2", "--scale", "smoke", "--dry-run", "--out", out)
    assert told.returncode == 0
    assert "pfedsv-fig2: 2 runs, about" in told.stderr
    assert not out.exists()


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


def finished(folder):
    """Return when each finished run was written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("runs/*/*/result.json")}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed")
def test_all_experiments_killed_again_and_again_end_with_the_same_tables(tmp_path):
    command = [Path(sys.executable).with_name("coalitions"), "reproduce", "--all", "-q"]
    command += ["--scale", "smoke", "--jobs", "2", "--out"]
    started = time.monotonic()
    subprocess.run([*command, tmp_path / "whole"], check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - started
    rng, folder, kills, known = random.Random(0), tmp_path / "killed", 0, {}
    while True:
        process = subprocess.Popen([*command, folder], stdout=subprocess.DEVNULL)
        try:
            code = process.wait(rng.uniform(0.05, 0.3) * seconds if kills < 8 else None)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
        else:
            assert code == 0
            break
        now = finished(folder)
        assert known.items() <= now.items()  # nothing that was there is written again
        known = now
    assert kills >= 4
    assert known.items() <= finished(folder).items()
    assert contents(folder) == contents(tmp_path / "whole")
