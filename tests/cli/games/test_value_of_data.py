"""`coalitions value table.csv --target y`: columns, rows and sources in one command."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from cli.app import app, main

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
        (["--target", "ill", "--missing", "0"], "are for synergy graphs"),
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
        ("a,y\n1,2\n,3\n2,4\n", "column a has a blank cell in row 3"),
        ("a,y\n1,5\n2,5\n3,5\n", "is the same everywhere"),
        ("y\n1\n2\n3\n", "no column left"),
        ("a,y\n1,no\n2,\n", "has blank cells"),
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


def test_a_spreadsheet_of_data_is_to_be_saved_as_csv(tmp_path, asked):
    path = tmp_path / "Daten.xlsx"
    path.write_bytes(b"PK")
    assert (
        "Daten.xlsx: a table of data is text; save the sheet as .csv"
        in asked(path, "--target", "y").err
    )
