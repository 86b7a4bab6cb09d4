"""`coalitions run`, `resume`, `algorithms` and `compare` as a user types them."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest

from tests.cli.test_json import SCHEMAS
from tests.cli.typed import check_refused
from tests.cli.typed import typed as coalitions

SHORT = ("--rounds", 2, "--clients", 3, "--train-size", 30, "--workers", 1)


@pytest.fixture
def typed(tmp_path, monkeypatch):
    """Type commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return coalitions


def test_run_resume_and_repeat(tmp_path):
    result = coalitions("run", *SHORT, "--algorithm", "fedprox", "--set", "mu=0.5",
                        "--out", "runs/one", "--json", cwd=tmp_path)  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""  # quiet when it is not a terminal
    document = json.loads(result.stdout)
    assert set(document) >= {
        "algorithm",
        "dataset",
        "clients",
        "rounds",
        "mean_test_accuracy",
        "per_client_test_accuracy",
        "worst_client_accuracy",
        "communication",
        "epsilon",
        "seconds",
        "out",
    }
    assert document["communication"]["up"] == document["communication"]["down"] > 0
    assert len(document["per_client_test_accuracy"]) == document["clients"] == 3
    assert "mu = 0.5" in (tmp_path / "runs/one/config.toml").read_text()

    (tmp_path / "runs/one/result.json").unlink()
    resumed = json.loads(coalitions("resume", "runs/one", "--json", cwd=tmp_path).stdout)
    repeated = coalitions("run", "runs/one/config.toml", "--out", "runs/two", "--json",
                          cwd=tmp_path)  # fmt: skip
    repeated = json.loads(repeated.stdout)
    for again in (resumed, repeated):
        assert again["per_client_test_accuracy"] == document["per_client_test_accuracy"]
        assert again["communication"] == document["communication"]


@pytest.mark.parametrize("given", [("csv", "tensorboard"), ("csv,tensorboard",)])
def test_logs_come_with_commas_or_in_several_flags(given, tmp_path, typed):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    flags = [part for name in given for part in ("--log", name)]
    assert typed("run", *SHORT, *flags, "--out", "runs/one").returncode == 0
    assert (tmp_path / "runs/one/metrics.csv").is_file()
    assert (tmp_path / "runs/one/tensorboard").is_dir()


def test_a_setting_is_no_option_of_a_method(typed):
    """fedfomo's `explore` was called `epsilon` once, as the privacy of a run is."""
    refused = typed("run", *SHORT, "--algorithm", "fedfomo", "--set", "epsilon=0.5")
    check_refused(refused, "--set epsilon", "--epsilon")


def test_options_of_a_file_without_a_method_are_those_of_the_typed_one(tmp_path, typed):
    (tmp_path / "mine.toml").write_text("[options]\nmu = 0.5\n")
    told = typed("run", "mine.toml", *SHORT, "--algorithm", "fedprox", "--dry-run")
    assert "\nmu = 0.5\n" in told.stdout


def test_without_out_a_free_folder_is_found_and_a_summary_printed(tmp_path, typed):
    result = typed("run", *SHORT, "--algorithm", "local")
    assert result.returncode == 0, result.stderr
    assert "mean test accuracy" in result.stdout
    assert (tmp_path / "runs/local-digits-1/result.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--algorithm", "fedavgg"), "did you mean 'fedavg'"),
        (("--set", "mu"), "--set takes OPTION=VALUE"),
        (("--clients", "0"), "clients must be 1 or more"),
        (("nothing.toml",), "cannot read nothing.toml"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(arguments, sentence, tmp_path, typed):
    result = typed("run", *arguments)
    check_refused(result, sentence)
    assert not (tmp_path / "runs").exists()


def test_algorithms_are_listed_with_their_options(typed):
    document = json.loads(typed("algorithms", "--json").stdout)
    assert set(document) >= {"local", "fedavg", "fedavg-ft", "fedprox", "domain"}
    assert document["fedprox"]["options"] == {"mu": 0.01}
    assert all(about["summary"] for about in document.values())
    listed = typed("algorithms").stdout
    assert "mu=0.01" in listed
    line = next(line for line in listed.splitlines() if line.startswith("fedprox "))
    assert line.split()[1] == "Federated"  # what a method is comes before its options


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("pfedsv", "--validation-share", "0"), "pfedsv measures models on validation data"),
        (("fedfomo", "--validation-share", "0"), "fedfomo measures models on validation data"),
        (("cffl", "--validation-share", "0"), "cffl measures models on validation data"),
        (("fedamp", "--set", "alpha=100"), "alpha of fedamp must be at most"),
        (("fedrep", "--model", "mlp", "--set", "cut=dense"), "no body to share"),
    ],
)
def test_what_a_method_cannot_do_is_said_before_anything_is_written(
    flags, sentence, tmp_path, typed
):
    result = typed("run", *SHORT, "--out", "runs/one", "--algorithm", *flags)
    check_refused(result, sentence)
    assert not any(tmp_path.iterdir())


def test_compare_prints_one_row_per_method(tmp_path, typed):
    arguments = ("compare", "--algorithms", "local,fedprox,fedavg", "--seeds", "0,1", *SHORT)
    result = typed(*arguments, "--set", "mu=0", "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    rows = document["algorithms"]
    assert list(rows) == ["local", "fedprox", "fedavg"]
    assert rows["fedprox"]["per_seed"] == rows["fedavg"]["per_seed"] != rows["local"]["per_seed"]
    assert rows["local"]["communication"] == {"up": 0, "down": 0}
    one, other = rows["fedavg"]["per_seed"]
    assert rows["fedavg"]["sd"] == pytest.approx(abs(one - other) / 2**0.5)
    assert not any(tmp_path.iterdir())


def test_compare_shows_both_models_of_a_method_that_has_two(typed):
    arguments = ("compare", "--algorithms", "ditto,fedavg", "--seed", "0", *SHORT)
    document = json.loads(typed(*arguments, "--json").stdout)
    ditto, fedavg = document["algorithms"]["ditto"], document["algorithms"]["fedavg"]
    assert (ditto["model"], fedavg["model"]) == ("personal", "global")
    assert ditto["other_models"] == {"global": fedavg["mean_test_accuracy"]}
    assert fedavg["other_models"] == {}
    assert f"global {fedavg['mean_test_accuracy']:.4f}" in typed(*arguments).stdout


def test_compare_says_before_the_first_run_who_has_no_use_for_a_setting(typed):
    result = typed("compare", "--algorithms", "fedavg,fedamp", "--aggregation", "krum:0.1")
    assert result.returncode == 2
    assert "fedamp does not average models" in result.stderr


def test_compare_refuses_options_nobody_has(tmp_path, typed):
    result = typed("compare", "--set", "nu=1")
    check_refused(result, "'nu'")


def test_a_dry_run_tells_and_writes_nothing(tmp_path):
    arguments = ("run", *SHORT, "--algorithm", "fedprox", "--set", "mu=0.5", "--out", "runs/one")
    dry = coalitions(*arguments, "--dry-run", cwd=tmp_path)
    assert dry.returncode == 0, dry.stderr
    assert dry.stderr == ""
    assert not any(tmp_path.iterdir())
    told = json.loads(coalitions(*arguments, "--dry-run", "--json", cwd=tmp_path).stdout)
    assert not any(tmp_path.iterdir())
    schema = {"$ref": "#/$defs/run --dry-run", "$defs": SCHEMAS["$defs"]}
    jsonschema.validate(told, schema)

    real = json.loads(coalitions(*arguments, "--json", cwd=tmp_path).stdout)
    sent = {key: told["traffic"][key] for key in ("up", "down", "bytes_up", "bytes_down")}
    assert sent == real["communication"]
    written = (tmp_path / "runs/one/config.toml").read_text()
    assert dry.stdout.startswith(written)
    assert tomllib.loads(dry.stdout) == tomllib.loads(written)  # the estimates are comments
    assert [line.split(":")[0] for line in dry.stdout[len(written) :].split("\n") if line] == [
        "# time",
        "# memory",
        "# traffic",
    ]
    assert f"exactly {sent['up']:,} parameters up" in dry.stdout


def test_a_dry_run_refuses_what_the_run_would(tmp_path, typed):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    result = typed("run", *SHORT, "--dry-run", "--out", "full")
    check_refused(result, "full")
    result = typed("run", *SHORT, "--dry-run", "--algorithm", "cffl", "--noise", 1, "--clip", 1)
    check_refused(result, "cffl", "private")


def test_verbose_says_a_line_per_round_and_quiet_nothing(tmp_path, typed):
    result = typed("run", *SHORT, "--algorithm", "cffl", "--verbose", "--out", "a", "--json")
    assert result.returncode == 0, result.stderr
    first, *rounds = result.stderr.splitlines()
    assert "cffl on digits: 3 clients, 2 rounds, seed 0; python" in first
    assert "torch " in first
    assert [line.split("  ")[0] for line in rounds] == ["round 1/2", "round 2/2"]
    lines = [json.loads(line) for line in (tmp_path / "a/metrics.jsonl").read_text().splitlines()]
    for said, line in zip(rounds, lines, strict=True):
        assert f"accuracy {line['mean_test_accuracy']:.4f}" in said
        assert " ".join(f"{each:.3f}" for each in line["per_client_test_accuracy"]) in said
        assert f"{line['up']:,} up" in said
        assert f"({line['structure_solver']}, optimal," in said
        assert said.endswith(f"{line['seconds']:.3f} s")
    json.loads(result.stdout)

    (tmp_path / "a/result.json").unlink()
    assert typed("resume", "a", "--quiet").stderr == ""
    result = typed("run", *SHORT, "--quiet", "--verbose")
    check_refused(result, "--quiet", "--verbose")


def test_clients_that_are_left_out_are_named_and_nobody_moves_up(tmp_path, typed):
    arguments = ("run", "--algorithm", "local", "--lr", "1e4", "--rounds", 4, "--workers", 1)
    result = typed(*arguments, "--out", "a")
    assert result.returncode == 0, result.stderr
    lines = [json.loads(line) for line in (tmp_path / "a/metrics.jsonl").read_text().splitlines()]
    refused = sorted({client for line in lines for client in line["refused"]}, key=int)
    assert refused
    for client in refused:
        assert f"round 1: client {client} is left out: train_loss is not finite" in result.stderr
        assert f"client {client} in " in result.stdout
    for client in lines[-1]["quarantined"]:
        assert f"client {client} is not asked any more" in result.stderr
        assert f"client {client} in 3 of 4 rounds (train_loss is not finite), not asked from" in (
            result.stdout
        )
    document = json.loads((tmp_path / "a/result.json").read_text())
    assert [str(each["client"]) for each in document["left_out"]] == refused
    schema = {"$ref": "#/$defs/run", "$defs": SCHEMAS["$defs"]}
    jsonschema.validate(document, schema)
    assert typed("resume", "a").stdout.count("in 3 of 4 rounds") == len(lines[-1]["quarantined"])
    assert typed(*arguments, "--out", "b", "--quiet").stderr == ""


def test_a_client_without_a_model_has_a_dash_where_its_accuracy_would_be(monkeypatch, typed):
    from tests.reliability.hostile import hostile

    hostile(monkeypatch, {1: lambda reply: {}}, watching=True)
    printed = typed("run", *SHORT).stdout
    (line,) = (line for line in printed.splitlines() if line.startswith("each client"))
    first, second, third = line.removeprefix("each client").split()
    assert second == "-"
    assert float(first) >= 0
    assert float(third) >= 0
    assert "(it did not register: samples is missing), not asked from round 1 on" in printed


def test_what_newcomers_got_is_told(typed):
    flags = ["--clients", 3, "--new-clients", 1, "--rounds", 1, "--train-size", 12]
    said = typed("run", *flags, "--workers", 1, "--out", "later").stdout
    assert re.search(r"new clients +test accuracy: client 2 [01]\.\d{3}\n", said)
    assert re.search(r"they got +Train the global model for the local epochs\.", said)
    schema = SCHEMAS["$defs"]["run"]["properties"]["new_clients"]
    jsonschema.validate(json.loads(Path("later/result.json").read_text())["new_clients"], schema)
