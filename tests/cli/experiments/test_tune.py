"""`coalitions tune` as a user types it, and `compare` with what it found."""

from __future__ import annotations

import json
import tomllib

import jsonschema
import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")

from tests.cli.experiments.test_compare import checked
from tests.cli.federation.test_run import SHORT, typed  # noqa: F401 (a fixture)
from tests.cli.test_json import SCHEMAS

SEARCH = ("tune", "--trials", "3", "--seed", "7", *SHORT)
TUNE = (*SEARCH, "--algorithms", "fedprox,local")


def found(result):
    """Return the document of a search, which is as docs/schemas.json says."""
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    jsonschema.validate(document, {"$ref": "#/$defs/tune", "$defs": SCHEMAS["$defs"]})
    return document


@pytest.mark.slow
def test_what_is_found_is_what_compare_takes_and_it_says_who_was_not_tuned(tmp_path, typed):  # noqa: F811
    first = found(typed(*TUNE, "--out", "kept", "--json"))
    for name in ("fedprox", "local"):
        own = first["algorithms"][name]
        assert [each["trial"] for each in own["tried"]] == [0, 1, 2]
        assert own["tried"][0]["values"] == {}  # the method as it is
        assert own["best"]["score"] == max(each["score"] for each in own["tried"])
    assert set(first["algorithms"]["fedprox"]["tried"][1]["values"]) == {"lr", "mu"}
    file = tmp_path / "kept" / "tuned.toml"
    settings = tomllib.loads(file.read_text())
    assert settings["tuned"]["fedprox"] == first["algorithms"]["fedprox"]["best"]["values"]

    # The test data were not looked at: a part of the training data was.
    config = (tmp_path / "kept" / "local-trial0-rounds2-seed7" / "config.toml").read_text()
    assert 'evaluate_on = "validation"' in config

    # The same command reads what is there, also with several at a time.
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("kept/*/result.json")}
    assert len(times) == 6
    assert found(typed(*TUNE, "--out", "kept", "--json", "--jobs", "2")) == first
    assert {p: p.stat().st_mtime_ns for p in tmp_path.glob("kept/*/result.json")} == times

    document = checked(typed("compare", file, "--algorithms", "fedprox,local,fedavg", "--seed",
                             "0", "--json"))  # fmt: skip
    assert document["not_tuned"] == ["fedavg"]
    assert document["settings"]["clients"] == 3
    told = document["algorithms"]["fedprox"]["own"]
    assert told == {key: str(value) for key, value in settings["tuned"]["fedprox"].items()}
    shown = typed("compare", file, "--variant", "raw: fedprox mu=1", "--seed", "0", "--quiet")
    assert "Not tuned, while others were: raw." in " ".join(shown.stdout.split())

    refused = typed("compare", file, "--seeds", "6,7")
    assert refused.returncode == 2
    assert "seed 7 is one that the options were tuned on" in refused.stderr


def test_the_file_is_printed_where_nothing_is_kept(typed):  # noqa: F811
    result = typed(*SEARCH, "--algorithms", "local", "--strategy", "halving", "--space",
                   "lr=0.1,0.2")  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert tomllib.loads(result.stdout)["tuning"]["strategy"] == "halving"
    assert "local: lr 0.1, 0.2" in result.stderr
    # Three trials of a round, then the best of them for both rounds.
    assert "Each method: 3 trials, 5 rounds of training in all." in result.stderr


def test_a_learning_rate_at_which_training_does_not_stay_finite_is_not_chosen(typed):  # noqa: F811
    command = (*SEARCH, "--algorithms", "fedavg", "--json", "--quiet")
    document = found(typed(*command, "--space", "lr=10000"))
    assert [each["score"] for each in document["algorithms"]["fedavg"]["tried"]][1:] == 2 * [None]
    assert document["algorithms"]["fedavg"]["best"]["trial"] == 0
    together = found(typed(*command, "--space", "lr=10000", "--jobs", "3"))
    assert together == document
    nothing = typed(*command, "--lr", "10000", "--space", "lr=10000")
    assert nothing.returncode == 2
    assert "training stayed finite in no trial" in nothing.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--algorithms", "fedprox,fedprox"), "fedprox comes twice"),
        (("--algorithms", "fedproxx"), "did you mean 'fedprox'"),
        (("--set", "mu=0.5", "--space", "mu=0.1..1"), "mu of fedprox is both set and searched"),
        (("--set", "nu=0.5"), "none of the methods has an option 'nu'"),
        (("--seeds", "0"), "--seeds and --seed both say which seeds"),
        (("--trials", "1"), "1 is not in the range"),
        (("--strategy", "grid"), "--strategy is random or halving, not 'grid'"),
        (("--space", "mu"), "--space takes [ALGORITHM.]OPTION=LOW..HIGH"),
        (("--space", "ditto.lam=1..2"), "ditto is none of the algorithms"),
        (("--space", "fedprox.nu=1..2"), "fedprox has no option 'nu'"),
        (("--space", "nu=1..2"), "none of the methods has an option 'nu'"),
        (("--space", "fedprox.mu=2..1"), "the first end must be the smaller one"),
        (("--space", "fedprox.mu=-1..1"), "mu must be 0 or more, not -1.0"),
        (("--space", "fedprox.mu=1..x"), "mu in --space must be a number, not 'x'"),
        (("--space", "model=a..b"), "model is no number"),
        (("--space", "lr=1,2", "--space", "lr=3,4"), "the space of lr is given twice"),
        (("--output", "no/tuned.toml"), "there is no folder no"),
    ],
)  # fmt: skip
def test_bad_searches_are_said_in_one_sentence(arguments, sentence, typed):  # noqa: F811
    result = typed(*TUNE, "--quiet", *arguments)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_flag_that_would_not_reach_a_tuned_method_is_refused(tmp_path, typed):  # noqa: F811
    (tmp_path / "tuned.toml").write_text("[tuned.fedprox]\nlr = 0.1\nmu = 0.5\n")
    for flag in (("--lr", "0.2"), ("--set", "mu=1")):
        refused = typed("compare", "tuned.toml", "--algorithms", "fedprox,fedavg", *flag, *SHORT)
        assert refused.returncode == 2
        assert "would not reach fedprox, for which" in refused.stderr
    (tmp_path / "tuned.toml").write_text("tuned = 3\n")
    assert "tables [tuned.METHOD]" in typed("compare", "tuned.toml").stderr


FILE = """
algorithm = "fedprox"
rounds = 1
clients = 2
train_size = 30
workers = 1
evaluate_every = 5
lr = 0.02

[options]
mu = 0.5
"""


def test_nothing_of_a_file_is_dropped(tmp_path, typed):  # noqa: F811
    """Its method is tuned with its options, on its seed; what is set is not searched."""
    (tmp_path / "mine.toml").write_text("seed = 7\n" + FILE)
    command = ("tune", "mine.toml", "--trials", "2", "--out", "kept")
    document = found(typed(*command, "--json"))
    assert document["seeds"] == [7]
    assert set(document["algorithms"]["fedprox"]["space"]) == {"lr"}
    for trial in (0, 1):
        kept = tmp_path / "kept" / f"fedprox-trial{trial}-rounds1-seed7" / "config.toml"
        assert tomllib.loads(kept.read_text())["options"] == {"mu": 0.5}
    tuned = tomllib.loads((tmp_path / "kept" / "tuned.toml").read_text())
    assert tuned["tuned"]["fedprox"]["mu"] == 0.5
    shared = tomllib.loads(FILE)
    del shared["algorithm"], shared["options"]
    assert {key: tuned.get(key) for key in shared} == shared
    # What is set goes before the file; what is searched is drawn.
    typed(*command, "--set", "mu=0.25", "--out", "set")
    assert "mu = 0.25" in (tmp_path / "set" / "tuned.toml").read_text()
    searched = found(typed(*command, "--space", "mu=1..2", "--out", "searched", "--json"))
    first, second = searched["algorithms"]["fedprox"]["tried"]
    assert first["values"] == {}
    assert 1 <= second["values"]["mu"] <= 2
    kept = tmp_path / "searched" / "fedprox-trial0-rounds1-seed7" / "config.toml"
    assert tomllib.loads(kept.read_text())["options"] == {"mu": 0.5}


def test_seeds_to_tune_on_are_counted_from_1000(tmp_path, typed):  # noqa: F811
    (tmp_path / "mine.toml").write_text(
        'algorithms = ["local"]\nseeds = 1\nrounds = 1\nclients = 2\ntrain_size = 30\nworkers = 1\n'
    )
    command = ("tune", "mine.toml", "--trials", "2", "--json")
    assert found(typed(*command))["seeds"] == [1000]
    assert found(typed(*command, "--seeds", "2"))["seeds"] == [1000, 1001]


@pytest.mark.parametrize("key", ['baseline = "local"', "[tuned.local]", "[variants.a]"])
def test_what_a_command_cannot_use_of_a_file_is_refused(key, tmp_path, typed):  # noqa: F811
    (tmp_path / "mine.toml").write_text(f"{key}\n")
    for command in ("tune", "run"):
        refused = typed(command, "mine.toml")
        assert refused.returncode == 2
        assert "is not for this command, but for `coalitions compare`" in refused.stderr
        assert len(refused.stderr.splitlines()) == 1


def test_no_method_to_tune_is_said(typed):  # noqa: F811
    nothing = ("--algorithms", ","), "--algorithms is given without a name"
    for given, sentence in (((), "--algorithms names at least one method"), nothing):
        refused = typed(*SEARCH, *given)
        assert refused.returncode == 2
        assert sentence in refused.stderr
