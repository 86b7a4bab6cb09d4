"""Tables of records: what a header and rows may look like."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

from coalitions import InvalidInputError
from coalitions.files.records import read_records


@pytest.fixture
def read(tmp_path):
    def read(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_records(path)

    return read


def values(table):
    return {name: column.tolist() for name, column in table.columns.items()}


@pytest.mark.parametrize(
    ("content", "notes"),
    [
        ("who,x,y\na,1.5,1\nb,2,0\n", ()),
        ("who;x;y\na;1,5;1\nb;2;0\n", ("semicolons", "decimal commas")),
        ("sep=;\r\nwho;x;y\r\na;1,5;1\r\nb;2;0\r\n", ("semicolons", "decimal commas")),
        ("who\tx\ty\na\t1.5\t1\nb\t2\t0\n", ("tabs",)),
        ("who|x|y\ra|1.5|1\rb|2|0\r", ("bars",)),
        ("\ufeffwho,x,y\na,1.5,1\n\nb,2,0\n", ()),
        ("who,x,y\na,1.5,1\nb,2,0\n".encode("utf-16"), ("UTF-16",)),
        (",who,x,y\n0,a,1.5,1\n1,b,2,0\n", ()),
        ("who,x,y,\na,1.5,1,\nb,2,0,\n", ()),
    ],
)
def test_one_table_written_in_many_ways_is_read_the_same(read, content, notes):
    table = read(content)
    assert values(table) == {"who": ["a", "b"], "x": [1.5, 2.0], "y": [1.0, 0.0]}
    assert table.notes == notes


def test_texts_stay_as_they_are_and_blank_numbers_are_nan(read):
    table = read('who,x\n"Smith; Ann",NA\nBob,3\n')
    assert table.columns["who"].tolist() == ["Smith; Ann", "Bob"]
    assert np.isnan(table.columns["x"][0])
    assert table.lines.tolist() == [2, 3]


def test_windows_text_is_read_with_a_hint(read):
    table = read("wo,x\nKöln,1\n".encode("cp1252"))
    assert table.columns["wo"][0] == "Köln"
    assert "cp1252" in table.notes[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "expected a header and rows below it"),
        ("a,b\n", "expected a header and rows below it"),
        ("a,a\n1,2\n", "two columns have the name 'a'"),
        ("a,,b\n1,2,3\n", "column 2 has no name"),
        ("a,b\n1,2\n1,2,3\n", "line 3 has 3 cells, the header 2"),
        ("a;b;c\n1,5;2.5;x\n", "'a' has numbers with a decimal comma"),
        (b"a,b\n\x81\x8d,1\n", "is not UTF-8 text"),
        (b"PK\x03\x04rest", "is an archive"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence(read, content, message):
    with pytest.raises(InvalidInputError, match=message) as error:
        read(content)
    assert "table.csv" in str(error.value)


# -- .xlsx -----------------------------------------------------------------------------------------


@pytest.fixture
def sheet(tmp_path):
    openpyxl = pytest.importorskip(
        "openpyxl", reason="openpyxl is not installed: pip install .[tables]"
    )

    def records(*rows):
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.save(tmp_path / "table.xlsx")
        return read_records(tmp_path / "table.xlsx")

    return records


def test_a_spreadsheet_has_numbers_words_dates_and_blanks(sheet):
    rows = [
        ["who", 2024, "day", "last"],
        ["a", 1.5, datetime.datetime(2024, 3, 9), None],
        [7, None, datetime.datetime(2024, 3, 9, 12, 30), 2],
    ]
    found = sheet(*rows)
    assert list(found.columns) == ["who", "2024", "day", "last"]
    assert found.columns["who"].tolist() == ["a", "7"]
    assert found.columns["day"].tolist() == ["2024-03-09", "2024-03-09 12:30:00"]
    assert np.isnan(found.columns["last"]).tolist() == [True, False]
    assert found.lines.tolist() == [2, 3]


def test_numbered_rows_of_a_spreadsheet_are_no_column(sheet):
    assert list(sheet([None, "x", "y"], [0, 5, 6], [1, 7, 8]).columns) == ["x", "y"]


def test_a_formula_without_its_value_is_no_blank(sheet):
    with pytest.raises(InvalidInputError, match="line 2, column 2 is a formula whose value is not"):
        sheet(["x", "y"], [1, "=A2+1"], [2, 3])


def test_a_row_of_a_spreadsheet_that_is_broader_than_its_header_is_told(sheet):
    with pytest.raises(InvalidInputError, match="line 3 has 3 cells, the header 2"):
        sheet(["x", "y"], [1, 2], [1, 2, 3])


def test_other_spreadsheets_are_to_be_saved_as_one_that_is_read(tmp_path):
    (tmp_path / "t.ods").write_bytes(b"PK")
    with pytest.raises(InvalidInputError, match=r"t.ods: is not read; save the sheet as .xlsx or"):
        read_records(tmp_path / "t.ods")
