"""Rows of `compare` by name: variants, sweeps, cells in parallel, as a user types them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import tomllib

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")

from learners.experiments.comparison_figure import sweep_curves
from tests.cli.experiments.test_compare import checked, figures
from tests.cli.federation.test_run import SHORT, typed  # noqa: F401 (a fixture)
from tests.cli.typed import COMMAND

COS = ("--variant", "cos: cffl synergy=cos", "--variant", "ica: cffl lr=0.1")
FILE = """
rounds = 2
clients = 3
train_size = 30
workers = 1

[variants.weak]
algorithm = "fedprox"
mu = 0.001

[variants.strong]
algorithm = "fedprox"
mu = 1.0
lr = 0.02
"""


def test_two_variants_of_one_method_stand_in_one_table_and_go_on(tmp_path, typed):  # noqa: F811
    command = ("compare", *COS, "--seed", "0", *SHORT, "--out", "kept", "--json")
    document = checked(typed(*command))
    assert list(document["algorithms"]) == ["cos", "ica"]
    assert document["algorithms"]["cos"]["algorithm"] == "cffl"
    assert document["algorithms"]["ica"]["own"] == {"lr": "0.1"}
    kept = tmp_path / "kept"
    assert sorted(path.name for path in kept.glob("*-seed0")) == ["cos-seed0", "ica-seed0"]
    assert 'synergy = "cos"' in (kept / "cos-seed0" / "config.toml").read_text()
    assert "lr = 0.1" in (kept / "ica-seed0" / "config.toml").read_text()
    times = {path: path.stat().st_mtime_ns for path in kept.glob("*/result.json")}
    again = typed(*command)
    assert "2 of 2 runs are finished" in again.stderr
    assert checked(again) == document
    assert {path: path.stat().st_mtime_ns for path in kept.glob("*/result.json")} == times


def test_variants_of_a_file_stand_after_the_methods(tmp_path, typed):  # noqa: F811
    (tmp_path / "rows.toml").write_text(FILE)
    result = typed("compare", "rows.toml", "--algorithms", "fedavg", "--seed", "0",
                   "--variant", "mine: fedprox mu=0.5", "--set", "strong.batch-size=5",
                   "--baseline", "weak", "--out", "kept", "--as", "csv")  # fmt: skip
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == ["fedavg", "weak", "strong", "mine"]
    assert lines[0].endswith("method,metric,score,own_mu,own_lr,own_batch_size")
    assert lines[3].endswith(",1.0,0.02,5")
    assert "batch_size = 5" in (tmp_path / "kept" / "strong-seed0" / "config.toml").read_text()


def test_runs_can_be_compared_by_their_loss_of_which_the_lowest_is_best(typed):  # noqa: F811
    command = ("compare", "--variant", "slow: fedavg lr=0.0001", "--variant", "fast: fedavg lr=0.1",
               "--seed", "0", *SHORT, "--by", "loss")  # fmt: skip
    document = checked(typed(*command, "--json"))
    means = {name: row["mean"] for name, row in document["algorithms"].items()}
    assert means["fast"] < means["slow"]
    assert document["best"] == ["fast"]
    assert document["algorithms"]["slow"]["rank"] == 2
    assert document["algorithms"]["slow"]["difference"]["mean"] > 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--algorithms", "fedavg,local,fedavg"), "fedavg comes twice"),
        (("--algorithms", "fedprox", "--set", "mu=1", "--set", "mu=2"), "--set mu is given twice"),
        ((*COS, *COS), "cos comes twice"),
        (("--variant", "a: fedprox mu=1 mu=2"), "mu of a is given twice"),
        (("--variant", "a: fedprox mu=1", "--set", "a.mu=2"), "mu of a is given twice"),
        (("--variant", "cffl synergy=cos"), "--variant takes NAME: ALGORITHM"),
        (("--variant", "a: "), "--variant takes NAME: ALGORITHM"),
        (("--variant", "a: cffl 'synergy=cos"), "--variant takes NAME: ALGORITHM"),
        (("--variant", "a: cfl synergy=cos"), "did you mean 'cffl'"),
        (("--variant", "a: cffl synerg=cos"), "did you mean 'synergy'"),
        (("--variant", "a: cffl synergy=sin"), "a: option of cffl 'synergy' is 'sin'"),
        (("--variant", "a: cffl lr=-1"), "a: lr must be a positive number, not -1.0"),
        (("--variant", "a: cffl seed=3"), "seed is the same for all rows"),
        (("--variant", "../a: cffl"), "a variant cannot be called '../a'"),
        (("--variant", "fedavg: cffl"), "that is another method"),
        (("--algorithms", "fedavg", "--by", "auroc"), "the runs have no metric 'auroc'"),
        (("--algorithms", ","), "--algorithms is given without a name"),
        (("--sweep", "fedprox.mu"), "--sweep takes NAME.OPTION=VALUE"),
        (("--sweep", "fedprox.mu=1,1"), "a value comes twice"),
        (("--sweep", "fedprox.mu=1", "--sweep", "fedprox.mu=2"), "--sweep of mu is given twice"),
        (("--sweep", "fedproxx.mu=1,2"), "did you mean 'fedprox'"),
        (("--sweep", "fedprox.mu=1,2", "--set", "fedprox.mu=3"), "mu of fedprox is given twice"),
        (("--sweep", "fedprox.mu=1,-2"), "mu of fedprox must be 0 or more, not -2.0"),
        (("--sweep", "lr=0.1,1", "--sweep", "fedavg.lr=0.1,1"), "lr of fedavg.lr=0.1 is given"),
        (("--plot", "k.svg"), "--plot draws the metric against what --sweep varies"),
        (("--sweep", "lr=0.1,1", "--plot", "k.doc"), "end its name in .svg"),
        (("--sweep", "lr=0.1,1", "--plot", "no/k.svg"), "there is no folder no"),
        (("--jobs", "-1"), "-1 is not in the range"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_row_is_said_in_one_sentence(arguments, sentence, tmp_path, typed):  # noqa: F811
    result = typed("compare", "--seed", "0", *SHORT, *arguments, "--quiet")
    assert result.returncode == 2
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_metric_that_no_run_would_have_is_refused_before_the_first(tmp_path, typed):  # noqa: F811
    asked = ("compare", "--algorithms", "fedavg", "--seed", "0", *SHORT, "--by", "auroc")
    result = typed(*asked, "--out", tmp_path / "runs")
    assert result.returncode == 2
    assert "add --metric auroc" in result.stderr
    assert not (tmp_path / "runs").exists()


def test_a_repeated_option_of_one_run_is_refused_too(typed):  # noqa: F811
    result = typed("run", *SHORT, "--algorithm", "fedprox", "--set", "mu=1", "--set", "mu=2")
    assert result.returncode == 2
    assert "--set mu is given twice" in result.stderr


def test_a_table_without_its_method_is_named(tmp_path, typed):  # noqa: F811
    (tmp_path / "rows.toml").write_text("[variants.weak]\nmu = 1.0\n")
    result = typed("compare", "rows.toml")
    assert result.returncode == 2
    assert "[variants.weak] needs its method" in result.stderr
    (tmp_path / "rows.toml").write_text("variants = 3\n")
    assert "variants are tables [variants.NAME]" in typed("compare", "rows.toml").stderr


def test_a_grid_has_a_row_for_every_combination_whatever_the_number_of_jobs(typed, tmp_path):  # noqa: F811
    command = ("compare", "--sweep", "fedprox.mu=0.01,1", "--sweep", "lr=0.02,0.1", "--seed",
               "0", "--algorithms", "fedavg,fedprox", *SHORT, "--json")  # fmt: skip
    alone = checked(typed(*command))
    assert list(alone["algorithms"]) == [
        "fedavg.lr=0.02", "fedavg.lr=0.1",
        "fedprox.mu=0.01,lr=0.02", "fedprox.mu=0.01,lr=0.1",
        "fedprox.mu=1,lr=0.02", "fedprox.mu=1,lr=0.1",
    ]  # fmt: skip
    together = checked(typed(*command, "--jobs", "2", "--out", "kept", "--plot", "grid.svg"))
    assert figures(together) == figures(alone)
    assert together["swept"][1] == {
        "row": "fedprox", "option": "mu", "values": ["0.01", "1"],
        "cells": [["fedprox.mu=0.01,lr=0.02", "fedprox.mu=0.01,lr=0.1"],
                  ["fedprox.mu=1,lr=0.02", "fedprox.mu=1,lr=0.1"]],
    }  # fmt: skip
    assert (tmp_path / "kept" / "fedprox.mu=1,lr=0.1-seed0" / "result.json").is_file()
    picture = (tmp_path / "grid.svg").read_text()
    assert "<svg" in picture
    curves = sweep_curves(together, "mu")
    assert [curve.name for curve in curves] == [
        "fedprox lr=0.02", "fedprox lr=0.1", "fedavg.lr=0.02", "fedavg.lr=0.1",
    ]  # fmt: skip
    rows = together["algorithms"]
    assert list(curves[1].x) == [0.01, 1.0]
    assert curves[1].y[1] == rows["fedprox.mu=1,lr=0.1"]["mean"]
    assert list(curves[2].y) == 2 * [rows["fedavg.lr=0.02"]["mean"]]  # a level line


def begun(command, folder, lines):
    """Start a command in a session of its own; return it when every cell has so many rounds."""
    process = subprocess.Popen(
        [COMMAND, *map(str, command)], cwd=folder, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    rounds = [folder / "kept" / f"fedprox.mu={mu}-seed0" / "metrics.jsonl" for mu in ("0.01", "1")]
    until = time.monotonic() + 200
    while not all(
        file.exists() and len(file.read_bytes().splitlines()) >= lines for file in rounds
    ):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < until
        time.sleep(0.02)
    return process


@pytest.mark.slow
def test_a_grid_goes_on_after_ctrl_c_and_after_a_kill(tmp_path, typed):  # noqa: F811
    shared = ("compare", "--sweep", "fedprox.mu=0.01,1", "--seed", "0", *SHORT, "--rounds", "30",
              "--clients", "2")  # fmt: skip
    command = (*shared, "--jobs", "2", "--out", "kept")
    interrupted = begun(command, tmp_path, 3)
    os.killpg(interrupted.pid, signal.SIGINT)  # as a terminal does: to every process
    _, said = interrupted.communicate(timeout=120)
    assert interrupted.returncode == 130
    assert "Repeat the command to continue." in said

    kept = [file.read_text() for file in sorted(tmp_path.glob("kept/*/metrics.jsonl"))]
    killed = begun(command, tmp_path, max(text.count("\n") for text in kept) + 3)
    killed.kill()  # its processes end with it, and let go of their folders
    killed.communicate(timeout=120)
    for before, file in zip(kept, sorted(tmp_path.glob("kept/*/metrics.jsonl")), strict=True):
        sound = "".join(before.splitlines(True)[:-1])  # the last round may have had no checkpoint
        assert file.read_text().startswith(sound)

    went_on = checked(typed(*command, "--json"))
    assert figures(went_on) == figures(checked(typed(*shared, "--json")))


OF_ONE_RUN = """
algorithm = "fedprox"
seed = 7
rounds = 1
clients = 2
train_size = 30
workers = 1

[options]
mu = 0.5
"""


def own_settings(folder):
    return tomllib.loads((folder / "config.toml").read_text())


def test_a_file_of_one_run_keeps_its_method_its_options_and_its_seed(tmp_path, typed):  # noqa: F811
    (tmp_path / "one.toml").write_text(OF_ONE_RUN)
    document = checked(typed("compare", "one.toml", "--out", "kept", "--json"))
    assert list(document["algorithms"]) == ["fedprox"]
    assert document["seeds"] == [7]
    assert own_settings(tmp_path / "kept" / "fedprox-seed7")["options"] == {"mu": 0.5}


def test_options_of_a_file_hold_for_all_rows_of_their_method(tmp_path, typed):  # noqa: F811
    (tmp_path / "one.toml").write_text(OF_ONE_RUN)
    typed("compare", "one.toml", "--algorithms", "fedprox,pfedme", "--variant", "a: fedprox lr=0.1",
          "--variant", "b: fedprox mu=2", "--seed", "3", "--out", "kept")  # fmt: skip
    mu = {name: own_settings(tmp_path / "kept" / f"{name}-seed3")["options"].get("mu")
          for name in ("fedprox", "pfedme", "a", "b")}  # fmt: skip
    assert mu == {"fedprox": 0.5, "pfedme": None, "a": 0.5, "b": 2.0}
    typed("compare", "one.toml", "--sweep", "mu=0.1,1", "--out", "swept")
    assert own_settings(tmp_path / "swept" / "fedprox.mu=0.1-seed7")["options"] == {"mu": 0.1}


def test_rows_seeds_and_baseline_can_stand_in_a_file(tmp_path, typed):  # noqa: F811
    lines = OF_ONE_RUN.replace("seed = 7", 'seeds = 2\nbaseline = "local"\nalgorithms = ["local",'
                               ' "fedprox"]')  # fmt: skip
    (tmp_path / "many.toml").write_text(lines)
    document = checked(typed("compare", "many.toml", "--json"))
    assert list(document["algorithms"]) == ["local", "fedprox"]
    assert document["seeds"] == [0, 1]
    assert document["baseline"] == "local"


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ('algorithm = "fedprox"\nalgorithms = ["local"]\n', "which is none of algorithms"),
        ("seed = 3\nseeds = [1, 2]\n", "seeds and seed both say which seeds"),
        ("[options]\nmu = 0.5\n", "[options] are those of a method; name it"),
        ("seeds = 0\n", "seeds 0 asks for no seeds"),
        ("algorithms = 3\n", "algorithms must be a list of methods"),
        ("baseline = 3\n", "baseline in a file"),
        ('baseline = "ditto"\n', "ditto"),
        ("sweeps = 3\n", "there is no setting 'sweeps'"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(lines, sentence, tmp_path, typed):  # noqa: F811
    (tmp_path / "odd.toml").write_text(lines)
    refused = typed("compare", "odd.toml")
    assert refused.returncode == 2
    assert sentence in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_swept_setting_means_the_same_in_every_row(tmp_path, typed):  # noqa: F811
    """`epsilon` was an option of fedfomo, too."""
    asked = ("compare", "--algorithms", "fedavg,fedfomo", "--sweep", "epsilon=40,90", "--seed", "0")
    typed(*asked, *SHORT, "--out", "kept")
    for name in ("fedavg", "fedfomo"):
        kept = own_settings(tmp_path / "kept" / f"{name}.epsilon=40-seed0")
        assert kept["epsilon"] == 40.0


@pytest.mark.parametrize("given", [("local", "fedavg"), ("local,fedavg",), ("local,", "fedavg")])
def test_methods_come_with_commas_or_in_several_flags(given, typed):  # noqa: F811
    flags = [part for name in given for part in ("--algorithms", name)]
    document = checked(typed("compare", *flags, "--seed", "0", *SHORT, "--json"))
    assert list(document["algorithms"]) == ["local", "fedavg"]


@pytest.mark.parametrize(
    ("given", "seeds"),
    [(("--seeds", "2"), [0, 1]), (("--seeds", "5-6"), [5, 6]), (("--seed", "4"), [4])],
)
def test_a_number_of_seeds_and_a_list_of_them_differ(given, seeds, typed):  # noqa: F811
    document = checked(typed("compare", "--algorithms", "local", *given, *SHORT, "--json"))
    assert document["seeds"] == seeds
