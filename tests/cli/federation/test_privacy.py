"""Privacy as a user types it: what is told about ε, what is refused, what an attack leaves."""

from __future__ import annotations

import json

import jsonschema
import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")

from learners.privacy.accountant import Usage, epsilon
from tests.cli.test_json import SCHEMAS
from tests.cli.typed import typed as coalitions

SHORT = ("--clients", 3, "--rounds", 2, "--local-epochs", 1, "--train-size", 30, "--workers", 1)


@pytest.fixture
def typed(tmp_path, monkeypatch):
    """Type commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return coalitions


def lines_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_epsilon_is_in_every_round_the_result_and_what_is_printed(tmp_path):
    out = tmp_path / "run"
    private = ("--noise", 2, "--clip", 0.5, "--delta", 1e-4)
    done = coalitions("run", *SHORT, *private, "--json", "--out", out)
    assert done.returncode == 0, done.stderr
    expected = [epsilon(2.0, Usage(1.0, uploads), 1e-4) for uploads in (1, 2)]
    assert [line["epsilon"] for line in lines_of(out)] == pytest.approx(expected)
    result = json.loads(done.stdout)
    assert result["epsilon"] == pytest.approx(expected[-1])
    assert json.loads((out / "result.json").read_text())["privacy"] == result["privacy"]
    assert result["privacy"]["mode"] == "updates"
    assert (result["privacy"]["noise"], result["privacy"]["clip"]) == (2.0, 0.5)
    assert result["privacy"]["delta"] == 1e-4


def test_a_target_with_dp_records_is_kept_and_told(typed, tmp_path):
    result = typed("run", *SHORT, "--epsilon", 5, "--dp", "records", "--out", "run")
    assert result.returncode == 0, result.stderr
    spent = [line["epsilon"] for line in lines_of(tmp_path / "run")]
    assert spent[0] < spent[1] <= 5.0
    assert spent[1] > 4.99
    assert f"ε = {spent[1]:.4g} at δ = 1e-05" in result.stdout
    assert "each training image by itself" in result.stdout


def test_without_noise_epsilon_is_infinite(typed, tmp_path):
    result = typed("run", *SHORT, "--noise", 0, "--clip", 1, "--out", "run")
    assert result.returncode == 0, result.stderr
    assert "ε = ∞" in result.stdout
    assert [line["epsilon"] for line in lines_of(tmp_path / "run")] == [None, None]


REFUSED = {
    "noise without clip": (["--noise", 1], "without clip protects nothing"),
    "two ways to say how much": (["--noise", 1, "--clip", 1, "--epsilon", 2], "give one"),
    "nothing to do in records": (["--dp", "records"], "needs noise and clip, or epsilon"),
    "a delta for nothing": (["--delta", 1e-3], "delta has no effect"),
    "negative noise": (["--noise", -1, "--clip", 1], "noise"),
    "no such mode": (["--dp", "rows", "--noise", 1, "--clip", 1], "records"),
    "gains of cffl": (["--algorithm", "cffl", "--noise", 1, "--clip", 1], "'gains' without noise"),
    "gradients of cffl": (
        ["--algorithm", "cffl", "--set", "synergy=cos", "--epsilon", 3],
        "'gradients' without noise",
    ),
    "prototypes": (["--algorithm", "fedproto", "--epsilon", 3], "'classes' without noise"),
    "clusters": (["--algorithm", "ifca", "--noise", 1, "--clip", 1], "'cluster' without noise"),
    "influence": (["--algorithm", "fedc2i", "--epsilon", 3], "'influence' without noise"),
    "the oracle": (["--algorithm", "domain", "--epsilon", 3], "'labels' without noise"),
    "told neighbours": (
        ["--algorithm", "pfedsv", "--set", "told=true", "--epsilon", 3],
        "'labels' without noise",
    ),
    "training of its own": (
        ["--algorithm", "apfl", "--epsilon", 3, "--dp", "records"],
        "trains in a way of its own",
    ),
    "batch norm in DP-SGD": (
        ["--model", "resnet-34", "--epsilon", 3, "--dp", "records"],
        "batch norm",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_would_make_epsilon_false_is_refused_in_one_sentence(what, typed, tmp_path):
    arguments, words = REFUSED[what]
    result = typed("run", *SHORT, *arguments, "--out", "run")
    assert result.returncode == 2
    assert words in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_an_attack_leaves_its_picture_and_figures_with_the_run(typed, tmp_path):
    made = typed("run", *SHORT, "--model", "mlp", "--out", "run", "--quiet")
    assert made.returncode == 0, made.stderr
    result = typed("attack", "run", "--pictures", 1, "--steps", 5, "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    jsonschema.validate(document, {"$ref": "#/$defs/attack", "$defs": SCHEMAS["$defs"]})
    assert json.loads((tmp_path / "run" / "inversion.json").read_text()) == document
    assert (tmp_path / "run" / "inversion.png").read_bytes()[:4] == b"\x89PNG"
    assert min(document["psnr"]) > 20  # a dense first layer gives the picture away
    assert max(document["noised_psnr"]) < 12
    assert "picture 0:" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("elsewhere",), "there is no folder"),
        (("run", "--method", "magic"), "there is no attack 'magic'"),
        (("run", "--client", 9), "there is no client 9"),
    ],
)
def test_attacks_on_nothing_are_refused(arguments, words, typed, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.toml").write_text('clients = 3\ntrain_size = 20\nmodel = "mlp"\n')
    result = typed("attack", *arguments)
    assert result.returncode == 2
    assert words in " ".join(result.stderr.split())
    assert not list(tmp_path.glob("run/inversion*"))
