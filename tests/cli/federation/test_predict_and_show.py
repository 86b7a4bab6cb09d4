"""`coalitions predict` and `coalitions show`: what a run left, used again."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")

from learners import load_model  # noqa: E402
from learners.data.own.paths import own_data  # noqa: E402
from learners.settings.config import RunConfig  # noqa: E402
from tests.cli.games.test_solve import EXAMPLE  # noqa: E402
from tests.cli.typed import check_refused, typed  # noqa: E402


@pytest.fixture(scope="module", params=["readmitted", "cost"])
def trained(request, tmp_path_factory):
    """A run on a table, its client "north", and that client's rows without their target."""
    folder = tmp_path_factory.mktemp("trained")
    rng = np.random.default_rng(0)
    rows = [
        {
            "who": ("north", "south")[k % 2],
            "ward": ("burns", "heart", "lung")[k % 3],
            "age": int(rng.integers(20, 90)),
            "readmitted": ("no", "yes")[int(rng.integers(2))],
            "cost": round(float(rng.normal(5000, 800)), 2),
        }
        for k in range(60)
    ]
    target = request.param
    other = {"readmitted": "cost", "cost": "readmitted"}[target]
    for name, kept, left_out in (
        ("all.csv", rows, {other}),
        ("north.csv", [row for row in rows if row["who"] == "north"], {"who", target, other}),
    ):
        columns = [column for column in rows[0] if column not in left_out]
        with open(folder / name, "w", newline="") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(kept)
    done = typed(
        *("run", "--dataset", folder / "all.csv", "--target", target, "--client-column", "who"),
        *("--rounds", 2, "--out", folder / "run"),
    )
    assert done.returncode == 0, done.stderr
    return folder, target


def test_new_rows_are_encoded_as_those_of_training(trained):
    folder, target = trained
    done = typed("predict", folder / "run", folder / "north.csv", "--client", "north", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["client"], found["target"]) == ("north", target)
    assert found["lines"] == list(range(2, 32))
    client = own_data(RunConfig.read(folder / "run" / "config.toml")).clients[0]
    with torch.no_grad():
        outputs = load_model(folder / "run", 0)(**client.test.inputs).double()
    if target == "readmitted":
        expected = outputs.softmax(dim=1)[:, 1].tolist()
        theirs = [row["yes"] for row in found["probabilities"]]
        for row, said in zip(found["probabilities"], found["predictions"], strict=True):
            assert said == max(row, key=row.get)
            assert sum(row.values()) == pytest.approx(1)
    else:
        assert found["probabilities"] is None
        assert 3000 < np.mean(found["predictions"]) < 7000  # in the unit of the column
        with open(folder / "all.csv") as file:
            costs = [float(row["cost"]) for row in csv.DictReader(file) if row["who"] == "north"]
        scaled = np.concatenate(
            [client.train.targets, client.validation.targets, client.test.targets]
        )
        unit, centre = np.polyfit(np.sort(scaled.ravel()), np.sort(costs), 1)
        expected = (outputs.ravel() * unit + centre).tolist()
        theirs = found["predictions"]
    for each in expected:  # the test rows are among the client's rows
        assert np.abs(np.array(theirs) - each).min() < 1e-3 * max(1.0, abs(each))


def test_predictions_are_written_as_the_ending_says(trained, tmp_path):
    folder, target = trained
    for ending in ("csv", "json"):
        line = (folder / "run", folder / "north.csv", "--client", "1")
        done = typed("predict", *line, "--output", tmp_path / f"p.{ending}")
        assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "p.json").read_text())
    rows = list(csv.DictReader((tmp_path / "p.csv").read_text().splitlines()))
    assert document["client"] == "south"
    assert [row[target] for row in rows] == list(map(str, document["predictions"]))


@pytest.mark.parametrize(
    ("client", "file", "named"),
    [("nord", "north.csv", "north"), ("9", "north.csv", "south"), ("north", "no.csv", "no.csv"),
     ("north", "wrong.csv", "age")],
)  # fmt: skip
def test_a_mistake_names_what_is_wrong(trained, client, file, named):
    folder, _ = trained
    (folder / "wrong.csv").write_text("a,b\n1,2\n")
    done = typed("predict", folder / "run", folder / file, "--client", client)
    check_refused(done, named)


def test_what_was_printed_is_shown_again(tmp_path):
    out = tmp_path / "s.json"
    demands = ("--max-size", 6, "--cannot-link", "mnist-1,svhn-1")
    solved = typed("solve", EXAMPLE, *demands, "--output", out)
    assert typed("show", out).stdout == solved.stdout
    runs = ("--algorithms", "local,fedavg", "--seeds", 2, "--clients", 2, "--rounds", 1)
    compared = typed("compare", *runs, "--train-size", 20, "--out", tmp_path / "two", "--quiet")
    assert compared.returncode == 0, compared.stderr
    assert typed("show", tmp_path / "two").stdout == compared.stdout
    run = typed("show", tmp_path / "two" / "fedavg-seed0")
    assert "fedavg" in run.stdout.splitlines()[0]
    (tmp_path / "two" / "fedavg-seed0" / "result.json").unlink()
    unfinished = typed("show", tmp_path / "two" / "fedavg-seed0")
    check_refused(unfinished, "coalitions resume")


@pytest.mark.parametrize("key", ["coalitions", "bound", "optimal", "synergies_inside", "must_link"])
def test_a_damaged_solution_is_not_shown(key, tmp_path):
    out = tmp_path / "s.json"
    typed("solve", EXAMPLE, "--must-link", "mnist-1,mnist-2", "--output", out)
    document = json.loads(out.read_text())
    if key in ("bound", "optimal"):
        del document[key]
    else:
        document[key] = [["nobody", "nowhere", 3]]
    out.write_text(json.dumps(document))
    done = typed("show", out)
    check_refused(done)
