"""`coalitions compare`: goes on where it was killed, refuses what does not fit, prints for all."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")

from cli.experiments._progress import spoken_time, time_left
from learners import ALGORITHMS
from learners.experiments.comparison_tables import FORMATS, fitting
from learners.experiments.variants import Variant, planned_runs
from tests.cli.federation.test_run import SHORT, coalitions, typed  # noqa: F401 (a fixture)
from tests.cli.test_json import SCHEMAS
from tests.cli.typed import COMMAND, in_a_process

TWO = ("compare", "--algorithms", "local,fedavg", "--seeds", "0,1", *SHORT)
MORTAL = '''
import os, signal
from dataclasses import dataclass
from pathlib import Path
from learners import ALGORITHMS, Algorithm

@ALGORITHMS.register("mortal")
@dataclass(frozen=True)
class Mortal(Algorithm):
    """Federated averaging that is killed in round 3 of seed 1 as long as a file is there."""

    def round(self, federation, state, t):
        if t == 3 and federation.config.seed == 1 and Path("deadly").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return super().round(federation, state, t)
'''


def checked(result):
    """Return the document of a comparison, which is as docs/schemas.json says."""
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    jsonschema.validate(document, {"$ref": "#/$defs/compare", "$defs": SCHEMAS["$defs"]})
    return document


def figures(document):
    """Everything of a comparison but the time it took and where it is kept."""
    rows = json.loads(json.dumps(document["algorithms"]))
    for row in rows.values():
        del row["seconds"]
        for run in row["runs"]:
            del run["seconds"], run["out"]
    return rows


def test_verbose_says_a_line_per_run_and_one_per_round(tmp_path):
    said = coalitions(*TWO, "--verbose", "--out", tmp_path / "runs").stderr.splitlines()
    begins = [line.split()[0] for line in said if " on digits: " in line]
    assert sorted(begins) == ["fedavg", "fedavg", "local", "local"]
    rounds = [line.split("  ")[0] for line in said if line.startswith("round")]
    assert rounds == 4 * ["round 1/2", "round 2/2"]
    result = coalitions(*TWO, "--quiet", "--verbose")
    assert result.returncode == 2
    assert "--quiet and --verbose contradict each other" in result.stderr


def test_killed_in_a_run_the_same_command_goes_on(tmp_path, typed, monkeypatch):  # noqa: F811
    # The plug-in's method is for this test only. A look-up first: copied before it, the table would
    # hold the built-in methods during this test, and none after it.
    assert "fedavg" in ALGORITHMS
    monkeypatch.setattr(ALGORITHMS, "_entries", dict(ALGORITHMS._entries))
    (tmp_path / "mortality.py").write_text(MORTAL)
    deadly = tmp_path / "deadly"
    deadly.touch()
    command = ("compare", "--plugin", "mortality", "--algorithms", "local,mortal", "--seeds", "0,1",
               *SHORT, "--rounds", "4")  # fmt: skip
    killed = in_a_process(*command, "--out", "kept", cwd=tmp_path)
    assert killed.returncode == -9
    kept = tmp_path / "kept"
    finished = {path: path.stat().st_mtime_ns for path in kept.glob("*/result.json")}
    assert {path.parent.name for path in finished} == {"local-seed0", "mortal-seed0", "local-seed1"}
    rounds = (kept / "mortal-seed1" / "metrics.jsonl").read_text()
    assert len(rounds.splitlines()) == 2

    deadly.unlink()
    document = checked(typed(*command, "--out", "kept", "--json"))
    # What was done stays as it is, down to the seconds of the rounds before the kill.
    assert finished.items() <= {p: p.stat().st_mtime_ns for p in kept.glob("*/result.json")}.items()
    assert (kept / "mortal-seed1" / "metrics.jsonl").read_text().startswith(rounds)
    # Neither the interruption nor --out changes a figure.
    assert figures(document) == figures(checked(typed(*command, "--json")))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """What TWO leaves in --out, made once for all tests."""
    out = tmp_path_factory.mktemp("comparison") / "kept"
    shared = {"rounds": 2, "clients": 3, "train_size": 30, "workers": 1}
    rows = [Variant("local", "local"), Variant("fedavg", "fedavg")]
    for planned in planned_runs(shared, rows, [0, 1], out):
        assert planned.stage == "new"
        planned.result()
    return out


@pytest.fixture
def kept(tmp_path, finished):
    """A copy of it for one test."""
    return shutil.copytree(finished, tmp_path / "kept")


def test_other_settings_are_refused_by_name_and_replaced_by_force(kept, typed):  # noqa: F811
    before = {path: path.read_bytes() for path in kept.rglob("*") if path.is_file()}
    refused = typed(*TWO, "--out", "kept", "--lr", "0.5")
    assert refused.returncode == 2
    assert "local-seed0 was made with lr 0.05, not 0.5;" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert {path: path.read_bytes() for path in kept.rglob("*") if path.is_file()} == before

    other = typed(*TWO, "--out", "kept", "--lr", "0.5", "--force", "--json")
    assert other.returncode == 0, other.stderr
    assert "lr = 0.5" in (kept / "fedavg-seed1" / "config.toml").read_text()
    # With the settings that are there now, --force has nothing to replace.
    times = {path: path.stat().st_mtime_ns for path in kept.glob("*/result.json")}
    assert typed(*TWO, "--out", "kept", "--lr", "0.5", "--force").returncode == 0
    assert {path: path.stat().st_mtime_ns for path in kept.glob("*/result.json")} == times


def test_a_methods_own_option_is_a_setting_too(kept, typed):  # noqa: F811
    first = ("compare", "--algorithms", "fedprox", "--seed", "0", *SHORT, "--out", "kept")
    assert typed(*first).returncode == 0
    refused = typed(*first, "--set", "mu=1")
    assert refused.returncode == 2
    assert "made with option mu 0.01, not 1.0;" in refused.stderr


def test_more_methods_seeds_and_workers_go_on_with_what_is_there(kept, typed):  # noqa: F811
    times = {path: path.stat().st_mtime_ns for path in kept.glob("*/result.json")}
    wider = typed("compare", "--algorithms", "fedavg,local,ditto", "--seeds", "1,2", *SHORT,
                  "--workers", "2", "--out", "kept")  # fmt: skip
    assert wider.returncode == 0, wider.stderr
    assert "2 of 6 runs are finished" in wider.stderr
    assert times.items() <= {p: p.stat().st_mtime_ns for p in kept.glob("*/result.json")}.items()


def test_what_a_kill_leaves_before_the_settings_are_written_is_no_obstacle(kept, typed):  # noqa: F811
    begun = kept / "ditto-seed0"
    begun.mkdir()
    (begun / ".config.toml.x1y2_3z4").touch()
    result = typed("compare", "--algorithms", "ditto", "--seed", "0", *SHORT, "--out", "kept")
    assert result.returncode == 0, result.stderr
    (kept / "apfl-seed0").mkdir()
    (kept / "apfl-seed0" / "thesis.tex").write_text("irreplaceable")
    refused = typed("compare", "--algorithms", "apfl", "--seed", "0", *SHORT, "--out", "kept",
                    "--force")  # fmt: skip
    assert refused.returncode == 2
    assert "is not the folder of a run" in refused.stderr
    assert (kept / "apfl-seed0" / "thesis.tex").read_text() == "irreplaceable"


def test_a_damaged_run_is_said_to_be(kept, typed):  # noqa: F811
    (kept / "local-seed1" / "metrics.jsonl").write_text("")
    result = typed(*TWO, "--out", "kept")
    assert result.returncode == 2
    assert "local-seed1/metrics.jsonl is damaged" in result.stderr


def test_kept_runs_have_all_their_evaluations(kept):
    lines = (kept / "fedavg-seed0" / "metrics.jsonl").read_text().splitlines()
    assert all("mean_test_accuracy" in json.loads(line) for line in lines)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--seeds", "0,x"), "--seeds must be a number of seeds, as in 3, or a list"),
        (("--seeds", "-1"), "--seeds must be a number of seeds"),
        (("--seeds", "1,1"), "a seed twice"),
        (("--seeds", "0"), "For the one seed 0, give --seed 0"),
        (("--seeds", "1,2", "--seed", "0"), "--seeds and --seed both say which seeds"),
        (("--baseline", "fedavgg"), "did you mean 'fedavg'"),
        (("--baseline", "ditto"), "there are: local, fedavg"),
        (("--as", "latx"), "did you mean 'latex'"),
        (("--output", "table.doc"), "its ending says no format"),
        (("--output", "nowhere/table.tex"), "there is no folder nowhere"),
        (("--output", "."), "is a folder"),
        (("--json", "--as", "csv"), "give one"),
        (("--algorithms", "local,fedavgg"), "did you mean 'fedavg'"),
        (("--noise", "1", "--clip", "1", "--algorithms", "fedavg,ifca"), "ifca cannot be private"),
    ],
)  # fmt: skip
def test_bad_input_is_said_before_the_first_run(arguments, sentence, tmp_path, typed):  # noqa: F811
    result = typed("compare", *SHORT, "--out", "kept", *arguments)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not any(tmp_path.iterdir())


# -- what it prints --------------------------------------------------------------------------------


def document_of(n_methods=3, n_seeds=3, private=False):
    """A comparison nobody ran: figures that are easy to recognise."""
    names = ["fed_avg&co", "local", *(f"method-{k}" for k in range(2, n_methods))]
    rows = {}
    for number, name in enumerate(names):
        accuracy = 0.9 - number / 100
        rows[name] = {
            "algorithm": name,
            "own": {"mu": "0.5"} if number == 1 else {},
            "mean": accuracy,
            "worst": 0.5 + number / 100,
            "by_domain": {},
            "mean_test_accuracy": accuracy,
            "sd": 0.01 if n_seeds > 1 else None,
            "per_seed": [accuracy] * n_seeds,
            "rank": number + 1.0,
            "difference": {
                "mean": -number / 100,
                "low": -number / 100 - 0.02 if n_seeds > 1 else None,
                "high": -number / 100 + 0.02 if n_seeds > 1 else None,
            },
            "clients": {"better": number, "equal": 1, "worse": 2},
            "model": "global",
            "other_models": {"global": 0.5} if number == 1 else {},
            "worst_client_accuracy": 0.5 + number / 100,
            "communication": {"up": 1_500_000, "down": 2_500_000},
            "private": private,
            "epsilon": None,
            "seconds": 12.5,
            "runs": [
                {
                    "seed": seed,
                    "score": accuracy,
                    "mean_test_accuracy": accuracy,
                    "worst_client_accuracy": 0.5,
                    "per_client_test_accuracy": [accuracy, None],
                    "rank": number + 1.0,
                    "difference": -number / 100,
                    "communication": {"up": 1_500_000, "down": 2_500_000},
                    "epsilon": None,
                    "seconds": 12.5,
                    "out": None,
                }
                for seed in range(n_seeds)
            ],
        }
    return {
        "settings": {"dataset": "digits", "clients": 2, "partition": "iid", "rounds": 4},
        "seeds": list(range(n_seeds)),
        "baseline": names[0],
        "baseline_chosen": False,
        "best": names[:1],
        "not_settled": names[1:] if n_seeds == 1 else names[1:2],
        "confidence": 0.95,
        "metric": "accuracy",
        "lower_is_better": False,
        "algorithms": rows,
        "swept": [],
        "not_tuned": [],
    }


def test_the_made_up_document_is_like_a_real_one():
    jsonschema.validate(document_of(), {"$ref": "#/$defs/compare", "$defs": SCHEMAS["$defs"]})


def test_latex_is_a_booktabs_table_with_the_best_in_bold():
    text = FORMATS["latex"](document_of(private=True))
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    columns = re.fullmatch(r"\\begin\{tabular\}\{(l+r+)\}", lines[0])[1]
    assert lines[1:4:2] == [r"\toprule", r"\midrule"]
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    body = [lines[2], *lines[4:-2]]
    assert all(line.endswith(r" \\") for line in body)
    cells = [re.split(r"(?<!\\)&", line) for line in body]
    assert {len(row) for row in cells} == {len(columns)}
    assert cells[1][0].strip() == r"fed\_avg\&co"
    assert r"\textbf{0.9000 $\pm$ 0.0100}" in cells[1][1]
    assert r"\textbf" not in cells[2][1]
    assert "$-$0.0100 $\\pm$ 0.0200" in cells[2][3]
    assert r"$\infty$" in text
    # Whatever is not escaped is ASCII: pdflatex without packages for letters sets it.
    assert "".join(lines).isascii()
    for letter in "_#%":
        assert not re.search(rf"(?<!\\){letter}", "".join(lines))


def test_markdown_has_as_many_cells_in_every_line_and_the_best_in_bold():
    text = FORMATS["markdown"](document_of())
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1
    assert "**0.9000 ± 0.0100**" in table[2]
    assert "**0.5200**" in table[4]  # the best of the worst clients is another method's
    assert "Student's t over 3 seeds" in text


def test_csv_has_a_line_per_run_that_pandas_groups_as_we_do():
    pandas = pytest.importorskip("pandas")
    document = document_of(private=True)
    text = FORMATS["csv"](document)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["algorithm"], row["seed"]) for row in rows[:4]] == [
        ("fed_avg&co", "0"), ("fed_avg&co", "1"), ("fed_avg&co", "2"), ("local", "0"),
    ]  # fmt: skip
    frame = pandas.read_csv(io.StringIO(text))
    means = frame.groupby("algorithm", sort=False)["mean_test_accuracy"].mean()
    assert means.to_dict() == pytest.approx(
        {name: row["mean_test_accuracy"] for name, row in document["algorithms"].items()}
    )
    assert (frame["epsilon"] == float("inf")).all()
    assert frame["difference_low"].tolist()[3] == pytest.approx(-0.03)


def test_one_seed_says_that_there_is_no_interval():
    text = FORMATS["table"](document_of(n_seeds=1))
    assert "one seed gives no interval" in text
    assert "±" not in text


def test_the_best_is_called_so_only_where_the_seeds_settle_it():
    text = FORMATS["markdown"](document_of())
    assert "Best on average: fed_avg&co; not settled against local: 0 is in the 95% inter" in text
    assert "from fed_avg&co ± half of its 95% interval" in text
    one = FORMATS["markdown"](document_of(n_seeds=1))
    assert "not settled against local, method-2: one seed is too few." in one
    settled = FORMATS["markdown"](document_of() | {"not_settled": []})
    assert "Best: fed_avg&co, and this is settled: 0 is outside the 95% interval" in settled


def test_a_report_keeps_the_baseline_that_was_chosen(kept, typed):  # noqa: F811
    for row in ("fedavg", "local"):
        assert typed(*TWO, "--out", "kept", "--baseline", row).returncode == 0
        assert typed("report", "kept", "--output", "page.html").returncode == 0
        text = (kept.parent / "page.html").read_text()
        assert f"paired difference from {row}, the baseline that was chosen, ± half of its" in text
    assert typed(*TWO, "--out", "kept").returncode == 0
    typed("report", "kept", "--output", "page.html")
    assert "the best by these seeds" in (kept.parent / "page.html").read_text()
    (kept / "comparison.json").write_text("[]")
    assert 'expected an object with "baseline"' in typed("report", "kept").stderr


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 200])
def test_columns_are_dropped_from_the_right_until_the_rest_fits(width):
    document = document_of()
    kept, dropped = fitting(document, width)
    assert kept[0].key == "score"
    assert [column.key for column in kept + dropped][1:4] == ["rank", "difference", "worst"]
    assert bool(dropped) == (width < 110)


def test_a_terminal_of_60_columns(kept, typed, monkeypatch):  # noqa: F811
    monkeypatch.setenv("COLUMNS", "60")
    result = typed(*TWO, "--out", "kept", "--baseline", "local")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[0].split() == ["algorithm", "accuracy", "rank", "vs", "local", "worst"]
    assert "No room here for: s, up, down" in " ".join(lines)


@pytest.mark.slow
def test_a_pipe_gets_the_whole_table_and_may_close_early(kept, typed, monkeypatch):  # noqa: F811
    monkeypatch.delenv("COLUMNS", raising=False)
    whole = typed(*TWO, "--out", "kept")
    assert "clients +/=/-" in whole.stdout.splitlines()[0]
    script = f"{COMMAND} {' '.join(map(str, TWO))} --out {kept} --as csv -q | head -c 1"
    closed = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script], capture_output=True, text=True
    )
    assert closed.stdout == "a"
    assert closed.stderr == ""


def test_a_file_is_written_in_the_format_of_its_ending_beside_what_is_printed(kept, typed):  # noqa: F811
    result = typed(*TWO, "--out", "kept", "--output", "table.tex", "--json")
    assert json.loads(result.stdout)["seeds"] == [0, 1]
    assert r"\toprule" in Path("table.tex").read_text()
    result = typed(*TWO, "--out", "kept", "--output", "table.txt", "--as", "csv")
    assert result.stdout.startswith("algorithm  ")
    assert Path("table.txt").read_text().startswith("algorithm,seed,")
    assert typed(*TWO, "--out", "kept", "--as", "markdown").stdout.startswith("| algorithm |")


@pytest.mark.slow
def test_the_best_is_bold_on_a_terminal_and_progress_has_the_time_left(tmp_path):
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, *map(str, TWO)], stdout=follower, stderr=follower, cwd=tmp_path,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(leader)
    assert process.wait() == 0
    text = shown.decode()
    assert "The runs are not kept" in text
    assert "4/4 fedavg, seed 1, round 2/2" in text
    assert re.search(r"\d s left", text)
    assert re.search(r"\x1b\[1m *0\.\d{4} ± 0\.\d{4}\x1b\[0m", text)


def test_without_a_terminal_progress_is_a_line_for_each_run_and_some_between(tmp_path, typed):  # noqa: F811
    said = typed(*TWO, "--out", tmp_path / "runs").stderr.splitlines()
    assert said[0] == "4 runs begin"
    assert [line for line in said if "of 4 runs done" in line][-1].startswith("4 of 4")


def test_quiet_says_nothing_but_the_result(kept, typed):  # noqa: F811
    result = typed(*TWO, "--out", "kept", "--quiet")
    assert result.stderr == ""
    assert result.stdout.startswith("algorithm")


def test_time_left_by_hand():
    assert time_left({}, ["a", "b"], [("a", 0.0, 1.0)]) is None
    # Half of the first run took 5 s: 5 s for the rest, 10 s for each of two unknown runs.
    assert time_left({}, ["b", "a"], [("a", 0.5, 5.0)]) == pytest.approx(25)
    # b is known to take 2 s, c is as slow as the mean of a and b.
    assert time_left({"a": [10.0], "b": [2.0]}, ["b", "c"], [("a", 0.0, 0.0)]) == pytest.approx(18)
    assert spoken_time(42.4) == "42 s"
    assert spoken_time(600) == "10 min"
    assert spoken_time(7800) == "2 h 10 min"
