"""`coalitions value table.csv --target y`: columns, rows and sources in one command."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from cli.app import app, main
from cli.data_files import imputer
from tests.cli.typed import in_a_process

pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install .[sklearn]")


@pytest.fixture
def table(tmp_path, rng):
    """Sixty patients: ill depends on age alone, and the labels of one hospital are wrong."""
    age = rng.normal(size=60).round(3)
    site = np.array(["ulm", "bonn", "kiel"])[np.arange(60) % 3]
    ill = (age > 0) ^ (site == "kiel")
    colour = rng.choice(["red", "blue"], 60)
    rows = zip(age, colour, site, np.where(ill, "yes", "no"), (10 * age).round(2), strict=True)
    path = tmp_path / "patients.csv"
    lines = ["age;colour;hospital;ill;cost", *(";".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def asked(monkeypatch, capsys):
    """Run the command in this process."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["coalitions", "value", *map(str, words)])
        monkeypatch.setattr(app, "registered_commands", [])  # main adds them each time
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        return SimpleNamespace(code=end.value.code, out=printed.out, err=printed.err)

    return run


@pytest.fixture
def answer(asked):
    def run(*words):
        result = asked(*words, "--json")
        assert result.code == 0, result.err
        return json.loads(result.out)

    return run


def test_the_column_that_matters_is_found(table, answer):
    found = answer(table, "--target", "cost")
    assert (found["concept"], found["metric"], found["train"], found["test"]) == (
        "shapley", "r2", 45, 15,
    )  # fmt: skip
    assert max(found["values"], key=found["values"].get) == "age"
    assert set(found["values"]) == {"age", "colour", "hospital", "ill"}


def test_the_hospital_with_wrong_labels_is_worth_least(table, answer):
    found = answer(table, "--target", "ill", "--units", "hospital", "--model", "tree")
    assert found["metric"] == "accuracy"
    assert min(found["values"], key=found["values"].get) == "kiel"


def test_points_are_named_by_their_lines(table, answer):
    found = answer(table, "--target", "ill", "--units", "points", "--budget", "60",
                   "--model", "tree", "--concept", "banzhaf")  # fmt: skip
    assert len(found["values"]) == 45
    assert set(map(int, found["values"])) <= set(range(2, 62))


def test_the_table_says_what_the_values_are(table, asked):
    result = asked(table, "--target", "cost")
    assert result.code == 0
    assert "values are shares of r2 on 15 test rows, after learning from 45" in result.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--target", "il"], "did you mean 'ill'"),
        (["--target", "ill", "--units", "town"], "has no column 'town'"),
        (["--target", "ill", "--model", "oak"], "there is no model named 'oak'"),
        (["--model", "tree"], "give --target"),
        (["--target", "ill", "--symmetrise", "mean"], "are for synergy graphs"),
        (["--target", "ill", "--missing", "avg"], "it is mean, median, a number, or drop"),
        (["--target", "ill", "--plot", "v.gif"], "a picture is a .png, .svg, .pdf or .html file"),
        (["--target", "ill", "--plot", "no/v.png"], "there is no folder no"),
        (["--concept", "interactions", "--plot", "v.html"], "drawn as a network"),
        (["--missing", "mean"], "in a synergy graph a blank pair is worth a number"),
    ],
)
def test_wrong_words_are_a_sentence(table, asked, words, said):
    result = asked(table, *words)
    assert result.code == 2
    assert said in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,y\n", "expected a header and rows"),
        ("a,a,y\n1,2,3\n", "two columns have the name 'a'"),
        ("a,y\n1,2\n1\n", "line 3 has 1 cells"),
        ("a,y\n1,2\n,3\n2,4\n", "line 3, column a is blank; fill in what is missing, or say"),
        ("a,b,y\n1,,2\n,1,3\n2,2,4\n", "line 3, column a is blank, and 1 other cell too;"),
        ("a,y\n1,5\n2,5\n3,5\n", "is the same everywhere"),
        ("y\n1\n2\n3\n", "no column left"),
        ("a,y\n1,no\n2,\n", "line 3, column y is blank, and cannot be made up; fill it in, or"),
        ("a,y\n1,1\n2,2\n", "too few to learn from"),
    ],
)
def test_tables_that_cannot_be_used_are_a_sentence(tmp_path, asked, text, said):
    path = tmp_path / "t.csv"
    path.write_text(text)
    result = asked(path, "--target", "y")
    assert result.code == 2
    assert said in result.err
    assert result.err.count("\n") == 1


def test_a_german_export_has_the_values_of_the_same_table_with_points(tmp_path, answer, asked):
    rng = np.random.default_rng(0)
    rows = [(f"Köln {k % 3}", *rng.normal(size=2).round(2), "ja" if k % 2 else "nein")
            for k in range(24)]  # fmt: skip
    lines = ["Ort;Größe;Wert;Ergebnis", *(";".join(map(str, row)) for row in rows)]
    plain, german = tmp_path / "plain.csv", tmp_path / "german.csv"
    plain.write_text("\n".join(lines).replace(";", ","), "utf-8")
    german.write_bytes("\r\n".join(lines).replace(".", ",").encode("cp1252"))
    words = ("--target", "Ergebnis", "--units", "Ort")
    assert answer(german, *words)["values"] == answer(plain, *words)["values"]
    said = asked(german, *words).err
    assert "read with Windows text" in said
    assert "semicolons and decimal commas" in said


def test_a_spreadsheet_has_the_values_of_the_same_table_as_text(table, tmp_path, answer, asked):
    openpyxl = pytest.importorskip(
        "openpyxl", reason="openpyxl is not installed: pip install .[tables]"
    )
    book = openpyxl.Workbook()
    book.create_sheet("empty")
    header, *rows = (line.split(";") for line in table.read_text().splitlines())
    book.active.append(header)
    for age, colour, site, ill, cost in rows:
        book.active.append([float(age), colour, site, ill, float(cost)])
    book.save(tmp_path / "patients.xlsx")
    words = ("--target", "ill", "--units", "hospital")
    assert answer(tmp_path / "patients.xlsx", *words)["values"] == answer(table, *words)["values"]
    assert "sheet 'Sheet', one of 2" in asked(tmp_path / "patients.xlsx", *words).err


def test_a_parquet_file_has_the_values_of_the_same_table_as_text(table, tmp_path, answer, asked):
    missing = "pyarrow is not installed: pip install .[tables]"
    pyarrow = pytest.importorskip("pyarrow", reason=missing)
    parquet = pytest.importorskip("pyarrow.parquet", reason=missing)
    header, *rows = (line.split(";") for line in table.read_text().splitlines())
    columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
    for name in ("age", "cost"):
        columns[name] = [float(cell) for cell in columns[name]]
    parquet.write_table(pyarrow.table(columns), tmp_path / "patients.parquet")
    words = ("--target", "ill", "--units", "hospital")
    forgot = asked(tmp_path / "patients.parquet").err
    assert "patients.parquet: is a table of data: give --target, a column of it" in forgot
    found = answer(tmp_path / "patients.parquet", *words)
    assert found["values"] == answer(table, *words)["values"]


def test_other_spreadsheets_are_to_be_saved_as_one_that_is_read(tmp_path, asked):
    path = tmp_path / "Daten.ods"
    path.write_bytes(b"PK")
    said = asked(path, "--target", "y").err
    assert "Daten.ods: is not read; save the sheet as .xlsx or .csv" in said


# -- sources ---------------------------------------------------------------------------------------


def test_the_order_of_sources_does_not_depend_on_the_seed(tmp_path, answer):
    rows = [f"{k % 7},ward {k % 3 + 8},{'yes' if k % 2 else 'no'}" for k in range(24)]
    rows.append("3,ward 1,yes")  # of some seeds, a test row: it has nothing to learn from
    path = tmp_path / "wards.csv"
    path.write_text("\n".join(["x,ward,ill", *rows]))
    for seed in range(6):
        found = answer(path, "--target", "ill", "--units", "ward", "--seed", seed)["values"]
        assert list(found) == ["ward 1", "ward 8", "ward 9", "ward 10"]


# -- blanks ----------------------------------------------------------------------------------------


@pytest.fixture
def hollow(table, tmp_path):
    """The same table with two blank ages and a blank colour, in three rows."""
    lines = table.read_text().splitlines()
    for line, column, blank in ((3, 0, ""), (7, 0, "NA"), (9, 1, "-")):
        cells = lines[line].split(";")
        cells[column] = blank
        lines[line] = ";".join(cells)
    path = tmp_path / "hollow.csv"
    path.write_text("\n".join(lines))
    return path


def test_rows_with_blanks_can_be_left_out(hollow, table, tmp_path, asked, answer):
    found = answer(hollow, "--target", "ill", "--missing", "drop")
    assert (found["train"] + found["test"], found["left_out"]) == (57, 3)
    said = asked(hollow, "--target", "ill", "--missing", "drop").err
    assert "3 of 60 rows left out, which have blank cells" in said
    lines = table.read_text().splitlines()
    kept = tmp_path / "kept.csv"
    kept.write_text("\n".join(line for k, line in enumerate(lines) if k not in (3, 7, 9)))
    assert answer(kept, "--target", "ill")["values"] == found["values"]


@pytest.mark.parametrize(("rule", "by"), [("mean", "the mean of the training rows"), ("0", "0")])
def test_blanks_can_be_filled_in(hollow, asked, answer, rule, by):
    found = answer(hollow, "--target", "ill", "--missing", rule, "--units", "hospital")
    assert (found["train"], found["test"], found["filled"]) == (45, 15, 3)
    said = asked(hollow, "--target", "ill", "--missing", rule, "--units", "hospital").err
    assert f"2 blank numbers filled in by {by}, 1 blank word taken as one more word" in said


def test_what_is_filled_in_is_learnt_from_training_rows_alone():
    filling = imputer("mean").fit(np.array([[1.0], [3.0], [np.nan]]))
    assert filling.transform([[np.nan], [100.0]]).tolist() == [[2.0], [100.0]]
    assert imputer(7.0).fit([[np.nan]]).transform([[np.nan]]).tolist() == [[7.0]]


def test_a_column_that_is_blank_everywhere_is_left_out(tmp_path, asked):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b,y", *(f"{k},,{k % 2}" for k in range(9))]))
    result = asked(path, "--target", "y")
    assert result.code == 0
    assert "column b left out, which is blank everywhere" in result.err
    assert asked(path, "--target", "y", "--quiet").err == ""


def test_dates_are_days_not_words(tmp_path, answer):
    path = tmp_path / "t.csv"
    days = [f"2024-{1 + k % 12:02}-{1 + k % 28:02}" for k in range(40)]
    path.write_text("\n".join(["day,y", *(f"{day},{k}.5" for k, day in enumerate(days))]))
    assert set(answer(path, "--target", "y")["values"]) == {"day"}


# -- pictures and plug-ins -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bars.svg", ["--units", "hospital"]),
        ("bars.html", ["--units", "points", "--budget", "60", "--model", "tree"]),
        ("shares.png", ["--concept", "prenucleolus"]),
        ("network.svg", ["--concept", "shapley-interaction"]),
        ("all.svg", ["--concept", "interactions"]),
    ],
)
def test_values_are_drawn(table, tmp_path, asked, name, words):
    pytest.importorskip(
        "plotly" if name.endswith("html") else "matplotlib",
        reason="pictures are not installed: pip install .[report]",
    )
    result = asked(table, "--target", "ill", *words, "--plot", tmp_path / name)
    assert result.code == 0, result.err
    content = (tmp_path / name).read_bytes()
    start = {"svg": b"<?xml", "html": b"<!doctype html>", "png": b"\x89PNG"}
    assert content.startswith(start[name.rpartition(".")[2]])
    if name == "bars.html":
        assert b"95 % intervals" in content
        assert b'"ticktext"' in content


def test_a_model_and_an_estimator_of_a_plug_in(table, tmp_path):
    (tmp_path / "mine.py").write_text(
        """
from dataclasses import dataclass

import numpy as np

from coalitions import DATA_MODELS, ESTIMATORS
from coalitions.values.estimators.permutation import Permutation


class Majority:
    def fit(self, X, y):
        self.answer = max(set(y.tolist()), key=y.tolist().count)

    def predict(self, X):
        return np.repeat(self.answer, len(X))


@DATA_MODELS.register("majority")
def majority(classes):
    return Majority()


DATA_MODELS.register("nothing")(lambda classes: object())


@ESTIMATORS.register("mine")
@dataclass(frozen=True)
class Mine(Permutation):
    pass
"""
    )
    words = ["value", table, "--target", "ill", "--units", "hospital", "--budget", "20"]
    plugged = ["--plugin", "mine", "--model", "majority", "--method", "mine", "--json"]
    result = in_a_process(*words, *plugged, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["method"] == "mine"
    odd = in_a_process(*words, "--plugin", "mine", "--model", "nothing", cwd=tmp_path)
    assert "the model is a object, which has no fit" in odd.stderr
    refused = in_a_process(*words, "--model", "majority", cwd=tmp_path)
    assert "there is no model named 'majority'" in refused.stderr
