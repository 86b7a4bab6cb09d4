"""`run`, `datasets`, `compare` and `resume` with a table or folder of one's own."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")

from cli.report.contents import sections_of  # noqa: E402
from cli.report.methods import methods_of, read_runs  # noqa: E402
from tests.cli.federation.test_run import typed  # noqa: E402, F401 (a fixture)
from tests.cli.typed import check_refused  # noqa: E402

QUICK = ("--rounds", "2", "--local-epochs", "1", "--workers", "1")
PATIENTS = ("--target", "died", "--client-column", "hospital")


@pytest.fixture
def patients(tmp_path):
    """A table of three hospitals, German style."""
    rng = np.random.default_rng(0)
    lines = ["hospital;age;ward;died"]
    for hospital in ("Nord", "Süd", "Ost"):
        for k in range(30):
            age = rng.normal(60, 9)
            died = "ja" if rng.random() < 1 / (1 + np.exp((60 - age) / 4)) else "nein"
            lines.append(f"{hospital};{age:.1f};{'abc'[k % 3]};{died}".replace(".", ","))
    path = tmp_path / "patients.csv"
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("command", [("datasets",), ("run", "--dataset")])
def test_a_sheet_is_refused_with_what_would_do(command, typed, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    (tmp_path / "patients.ods").write_bytes(b"PK")
    result = typed(*command, "patients.ods", *PATIENTS)
    check_refused(result, ".ods", ".xlsx")


def test_a_spreadsheet_is_dealt_like_the_same_table_as_text(typed, patients, tmp_path):  # noqa: F811
    openpyxl = pytest.importorskip(
        "openpyxl", reason="openpyxl is not installed: pip install .[tables]"
    )
    book = openpyxl.Workbook()
    sheet = book.create_sheet("Patienten")
    header, *rows = (line.split(";") for line in patients.read_text().splitlines())
    sheet.append(header)
    for hospital, age, ward, died in rows:
        sheet.append([hospital, float(age.replace(",", ".")), ward, died])
    book.save(tmp_path / "patients.xlsx")
    dealt = []
    for name in ("patients.csv", "patients.xlsx"):
        result = typed("datasets", tmp_path / name, *PATIENTS, "--json")
        assert result.returncode == 0, result.stderr
        dealt.append(json.loads(result.stdout))
    assert dealt[0]["clients"] == dealt[1]["clients"]
    assert dealt[0]["schema"] == dealt[1]["schema"]
    assert "sheet 'Patienten', one of 2" in dealt[1]["told"]


def test_a_table_is_trained_on_and_its_config_repeats_the_run(typed, patients, tmp_path):  # noqa: F811
    out, again = tmp_path / "one", tmp_path / "two"
    asked = ("run", "--dataset", patients, *PATIENTS, "--metric", "auroc,accuracy", *QUICK)
    first = typed(*asked, "--out", out)
    assert first.returncode == 0, first.stderr
    assert "90 rows of 3 clients, predicting died in 2 classes, from 1 number" in first.stderr
    assert "read with semicolons and decimal commas" in first.stderr
    assert "Nord " in first.stdout.split("auroc of each")[1]
    assert first.stdout.index("mean test auroc") < first.stdout.index("mean test accuracy")
    assert "accuracy of each" in first.stdout
    assert json.loads((out / "classes.json").read_text()) == ["ja", "nein"]
    charts = sections_of(methods_of(read_runs([out])[0]))[0].charts
    assert charts[0].title == "Mean test auroc"
    assert next(each for each in charts if each.name == "split").rows == ["ja", "nein"]
    result = json.loads((out / "result.json").read_text())
    assert result["client_names"] == ["Nord", "Ost", "Süd"]
    assert len(result["metrics"]["auroc"]["per_client"]) == 3
    assert [each["name"] for each in json.loads((out / "clients.json").read_text())] == [
        "Nord",
        "Ost",
        "Süd",
    ]
    config = tomllib.loads((out / "config.toml").read_text())
    assert (config["clients"], config["partition"], config["model"]) == (3, "natural", "tabular")
    assert typed("run", out / "config.toml", "--out", again).returncode == 0
    models = [
        [file.read_bytes() for file in sorted((folder / "models").iterdir())]
        for folder in (out, again)
    ]
    assert models[0] == models[1]


def test_changed_data_are_refused_when_a_run_goes_on(typed, patients, tmp_path):  # noqa: F811
    out = tmp_path / "run"
    assert typed("run", "--dataset", patients, *PATIENTS, *QUICK, "--out", out).returncode == 0
    (out / "result.json").unlink()
    (out / "SHA256SUMS").unlink()
    patients.write_text(patients.read_text().replace("Nord", "West"))
    result = typed("resume", out)
    check_refused(result, "patients.csv", "changed")
    result = typed("run", out / "config.toml", "--dataset", patients, "--out", tmp_path / "new")
    assert result.returncode == 0, result.stderr


def test_methods_are_compared_on_a_table(typed, patients):  # noqa: F811
    asked = ("--dataset", patients, *PATIENTS, *QUICK, "--seeds", "0,1", "--json")
    result = typed("compare", "--algorithms", "local,fedavg", *asked)
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["settings"]["clients"] == 3
    assert set(document["algorithms"]) == {"local", "fedavg"}
    assert result.stderr.count("90 rows of 3 clients") == 1  # how it was read, once for all runs
    assert "90 rows" not in typed("compare", "--algorithms", "local,fedavg", *asked, "-q").stderr


def test_a_dry_run_of_a_table_prints_what_its_run_has(typed, patients, tmp_path):  # noqa: F811
    asked = ("--dataset", patients, *PATIENTS, *QUICK, "--algorithm", "cffl", "--metric", "auroc")
    told = typed("run", *asked, "--dry-run")
    assert told.returncode == 0, told.stderr
    assert "90 rows of 3 clients" in told.stderr
    assert "# traffic: exactly" in told.stdout
    assert not (tmp_path / "runs").exists()
    (tmp_path / "asked.toml").write_text(told.stdout)
    assert typed("run", tmp_path / "asked.toml", "--out", tmp_path / "run").returncode == 0
    configured = (tmp_path / "run" / "config.toml").read_text()
    assert tomllib.loads(configured) == tomllib.loads(told.stdout)


def test_a_hospital_of_one_class_trains_and_is_named_where_auroc_has_no_value(
    typed,  # noqa: F811
    patients,
    tmp_path,
):
    lines = patients.read_text().splitlines()
    lines = [line.replace(";ja", ";nein") if line.startswith("Ost") else line for line in lines]
    patients.write_text("\n".join(lines))
    asked = ("run", "--dataset", patients, *PATIENTS, *QUICK)
    done = typed(*asked, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "; a client has one class only in the training data: 'Ost' (nein)" in done.stderr
    assert done.stderr.count("one class only") == 1
    quiet = typed(*asked, "--quiet", "--out", tmp_path / "quiet")
    assert (quiet.returncode, quiet.stderr) == (0, "")
    refused = typed(*asked, "--metric", "auroc", "--out", tmp_path / "not")
    assert refused.returncode == 2
    assert "auroc is not defined on the test data of client 'Ost'" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert not (tmp_path / "not").exists()


def test_what_would_be_dealt_is_shown(typed, patients):  # noqa: F811
    shown = typed("datasets", patients, *PATIENTS)
    assert shown.returncode == 0, shown.stderr
    assert "Süd" in shown.stdout
    assert "a, b, c" in shown.stdout
    assert "90 rows of 3 clients" in shown.stderr
    document = json.loads(typed("datasets", patients, *PATIENTS, "--json").stdout)
    assert document["schema"]["classes"] == ["ja", "nein"]
    assert [each["train"] + each["validation"] for each in document["clients"]] == [24] * 3
    document = json.loads(
        typed("datasets", patients, "--target", "age", *PATIENTS[2:], "--json").stdout
    )
    assert document["task"] == "regression"


def test_a_schema_that_datasets_prints_can_be_given_to_run(typed, patients, tmp_path):  # noqa: F811
    document = json.loads(typed("datasets", patients, *PATIENTS, "--json").stdout)
    (tmp_path / "schema.json").write_text(json.dumps(document["schema"]))
    asked = ("run", "--dataset", patients, *PATIENTS, *QUICK, "--json")
    plain = json.loads(typed(*asked, "--out", tmp_path / "a").stdout)
    agreed = typed(*asked, "--schema", tmp_path / "schema.json", "--out", tmp_path / "b")
    assert agreed.returncode == 0, agreed.stderr
    assert json.loads(agreed.stdout)["mean_test_loss"] == plain["mean_test_loss"]


def test_a_folder_of_arrays_is_trained_on(typed, tmp_path):  # noqa: F811
    rng = np.random.default_rng(0)
    for client in ("left", "right"):
        (tmp_path / "sites" / client).mkdir(parents=True)
        for part in ("train", "test"):
            x = rng.normal(size=(20, 3))
            np.savez(tmp_path / "sites" / client / f"{part}.npz", x=x, y=x.sum(axis=1))
    asked = ("run", "--dataset", f"{tmp_path / 'sites'}/", *QUICK, "--json")
    told = json.loads(typed(*asked, "--dry-run").stdout)
    assert told["config"]["clients"] == 2
    result = typed(*asked, "--out", tmp_path / "run")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["task"] == "regression"
    assert document["client_names"] == ["left", "right"]
    assert document["mean_test_accuracy"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target", "died"), "name the column with the client's name (--client-column COLUMN)"),
        (("--client-column", "hospital"), "name the column to predict (--target COLUMN)"),
        (("--target", "dide", "--client-column", "hospital"), "did you mean 'died'?"),
        ((*PATIENTS, "--clients", "7"), "has 3 clients, not 7"),
        ((*PATIENTS, "--clients", "10"), "has 3 clients, not 10"),
        ((*PATIENTS, "--partition", "iid"), "so there is no partition iid"),
        ((*PATIENTS, "--clients", "2", "--test-sizes", "3,4"), "test-sizes has no effect on data"),
        ((*PATIENTS, "--task", "next-token"), "classification or regression, not next-token"),
        ((*PATIENTS, "--metric", "rmse"), "the metric rmse is not for classification"),
        ((*PATIENTS, "--schema", "none.json"), "none.json: there is no such file"),
        ((*PATIENTS, "--poison", "noise:1"), "poison is for data sets by name"),
    ],
)
def test_bad_questions_get_one_sentence_and_leave_nothing(
    typed,  # noqa: F811
    patients,
    tmp_path,
    arguments,
    message,
):
    result = typed("run", "--dataset", patients, *arguments, "--out", tmp_path / "run")
    check_refused(result, message)
    assert not (tmp_path / "run").exists()


def test_a_target_without_a_table_has_no_effect_and_that_is_said(typed):  # noqa: F811
    result = typed("run", "--target", "died", "--dry-run")
    check_refused(result, "target", "dataset")
