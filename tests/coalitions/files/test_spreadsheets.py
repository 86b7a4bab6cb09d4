"""What people export: spreadsheets of all kinds are read right, or refused with the right sentence.

Every export here is made as the program named makes it: separators, quotes, line ends, encoding.
"""

from __future__ import annotations

import csv
import datetime
import io
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from coalitions import InputWarning, InvalidInputError, MissingDependencyError, SynergyGraph
from coalitions.files.cells import ambiguous, decimal_mark, number
from coalitions.formatting import composed

NAMES = ["Änne", "Bob", "Cléo", "Dan"]
MATRIX = np.array(
    [[0, 31.7, -2.5, 0.25], [31.7, 0, 1250, -4], [-2.5, 1250, 0, 12], [0.25, -4, 12, 0]]
)
FRAME = pd.DataFrame(MATRIX, NAMES, NAMES)
PAIRS = [(NAMES[a], NAMES[b], MATRIX[a, b]) for a in range(4) for b in range(a + 1, 4)]


def german(number):
    """Return a number as a German spreadsheet shows it, thousands set apart."""
    return f"{number:,.10g}".replace(",", " ").replace(".", ",").replace(" ", ".")


def sheet(separator, write=str, *, corner="", diagonal="0", end="\r\n"):
    """Return a matrix with names on both sides, as a spreadsheet exports it."""
    lines = [separator.join([corner, *NAMES])]
    for a, name in enumerate(NAMES):
        cells = [diagonal if a == b else write(MATRIX[a, b]) for b in range(4)]
        lines.append(separator.join([name, *cells]))
    return end.join(lines) + end


def pair_list(separator, header=None, write=str):
    rows = [separator.join([a, b, write(w)]) for a, b, w in PAIRS]
    return "\n".join([*([separator.join(header)] if header else []), *rows]) + "\n"


def quoted(number):
    return f'"{number:,}"'


UPPER = FRAME.where(np.triu(np.ones((4, 4)), 1) > 0)
GAP = FRAME.mask((FRAME == -4) | (FRAME == 12))

EXPORTS = {
    # name: (ending, content, encoding, part of what is told; None: nothing to tell)
    "Excel, English": ("csv", sheet(","), "utf-8-sig", None),
    "Excel, German": ("csv", sheet(";", german), "cp1252", "semicolons, decimal commas"),
    "Excel, German, UTF-8": ("csv", sheet(";", german), "utf-8-sig", "4 players, semicolons, dec"),
    "Excel, French, thin spaces": (
        "csv",
        sheet(";", lambda x: f"{x:,}".replace(",", "\u202f").replace(".", ",")),
        "utf-8",
        "semicolons, decimal commas",
    ),
    "Excel, Swiss": ("csv", sheet(";", lambda x: f"{x:,}".replace(",", "'")), "cp1252", "semic"),
    "Excel, thousands in quotes": ("csv", sheet(",", quoted), "utf-8", None),
    "Excel, Unicode text": ("tsv", sheet("\t", german), "utf-16", "UTF-16, decimal commas"),
    "Excel, Unicode text named csv": ("csv", sheet("\t"), "utf-16", "UTF-16, tabs"),
    "UTF-16 without a mark": ("csv", sheet(","), "utf-16-le", "UTF-16"),
    "Excel, Macintosh line ends": ("csv", sheet(",", end="\r"), "utf-8", None),
    "Excel, sep= line": ("csv", "sep=;\r\n" + sheet(";", german), "utf-8", "semicolons"),
    "LibreOffice, blank diagonal": ("csv", sheet(",", diagonal=""), "utf-8", "a blank diagonal"),
    "LibreOffice, all in quotes": (
        "csv",
        "".join(
            ",".join(f'"{cell}"' for cell in line.split(";")) + "\n"
            for line in sheet(";", lambda x: str(x).replace(".", ","), end="\n").splitlines()
        ),
        "utf-8",
        "decimal commas",
    ),
    "Google Sheets, German": (
        "csv",
        sheet(",", lambda x: f'"{german(x)}"' if "," in german(x) else german(x)),
        "utf-8",
        "decimal commas",
    ),
    "Google Sheets, a title and empty margins": (
        "csv",
        "Synergien 2024,,,,,,\n,,,,,,\n"
        + "".join(f",{line},,\n" for line in sheet(",", end="\n").splitlines())
        + ",,,,,,\n,,,,,,\n",
        "utf-8",
        "without 1 title line",
    ),
    "Numbers": ("csv", "Tabelle 1\n" + sheet(";", german, end="\n"), "utf-8", "1 title line"),
    "trailing empty columns and rows": (
        "csv",
        "".join(f"{line},,,\n" for line in sheet(",", end="\n").splitlines()) + ",,,,,,,\n" * 3,
        "utf-8",
        None,
    ),
    "pandas": ("csv", FRAME.to_csv(), "utf-8", None),
    "pandas, sep and decimal": ("csv", FRAME.to_csv(sep=";", decimal=","), "utf-8", "decimal comm"),
    "pandas without index": ("csv", FRAME.to_csv(index=False), "utf-8", "names in the header only"),
    "pandas without names of rows": (
        "csv",
        FRAME.reset_index(drop=True).to_csv(),
        "utf-8",
        "names in the header only",
    ),
    "pandas, upper triangle": ("csv", UPPER.to_csv(), "utf-8", "one triangle for both"),
    "pandas, lower triangle": (
        "csv",
        UPPER.T.to_csv(sep="\t"),
        "utf-8",
        "tabs, a blank diagonal, o",
    ),
    "R write.csv": (
        "csv",
        sheet(",").replace("Bob", '"Bob"').replace("0.25", "0.25"),
        "utf-8",
        None,
    ),
    "R write.csv2": ("csv", sheet(";", lambda x: str(x).replace(".", ",")), "utf-8", "semicolons"),
    "R write.table": (
        "tsv",
        sheet("\t", end="\n").removeprefix("\t"),
        "utf-8",
        None,
    ),
    "R with NA on the diagonal": ("csv", sheet(",", diagonal="NA"), "utf-8", "a blank diagonal"),
    "names in the first column only": (
        "csv",
        sheet(",", end="\n").split("\n", 1)[1],
        "utf-8",
        "names in the first column only",
    ),
    "a minus sign of typographers": (
        "csv",
        sheet(",", lambda x: str(x).replace("-", "−")),
        "utf-8",
        None,
    ),
    "percent": ("csv", sheet(",", lambda x: f"{x * 100:.10g} %"), "utf-8", "12% as 0.12"),
    "percent, German": (
        "csv",
        sheet(";", lambda x: f"{x * 100:.10g}%".replace(".", ",")),
        "cp1252",
        "12% as 0.12",
    ),
    "bars": ("csv", sheet("|"), "utf-8", "bars"),
    "pairs": ("csv", pair_list(","), "utf-8", "6 pairs"),
    "pairs with a header": (
        "csv",
        pair_list(",", ["from", "to", "weight"]),
        "utf-8",
        "6 pairs (from to weight), pairs that are not listed as 0",
    ),
    "pairs, German": (
        "csv",
        pair_list(";", ["Von", "Nach", "Gewicht"], german),
        "cp1252",
        "semicolons, decimal commas, 6 pairs (Von Nach Gewicht)",
    ),
    "pairs with tabs": ("tsv", pair_list("\t", ["Person 1", "Person 2", "Score"]), "utf-8", "6 pa"),
    "pairs under any header": (
        "csv",
        pair_list(",", ["Chef", "Team", "Punktzahl"]),
        "utf-8",
        "6 p",
    ),
    "pairs, pandas with index": (
        "csv",
        pd.DataFrame(PAIRS, columns=["source", "target", "w"]).to_csv(),
        "utf-8",
        "6 pairs (source target w)",
    ),
    "pairs, a melted matrix": (
        "csv",
        FRAME.stack().reset_index().set_axis(["a", "b", "synergy"], axis=1).to_csv(index=False),
        "utf-8",
        "16 pairs",
    ),
    "pairs among other columns": (
        "csv",
        pd.DataFrame(PAIRS, columns=["von", "nach", "Wert"]).assign(Notiz="").to_csv(index=False),
        "utf-8",
        "6 pairs (von nach Wert)",
    ),
}


def written(folder, ending, content, encoding="utf-8"):
    path = folder / f"export.{ending}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return path


def read(path, **wishes):
    told = []
    graph = SynergyGraph.read(path, tell=told.append, **wishes)
    assert all("\n" not in line and line.startswith(f"{path}: read as ") for line in told)
    assert len(told) <= 1
    return graph, told[0] if told else None


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_is_read_right(tmp_path, name):
    ending, content, encoding, expected = EXPORTS[name]
    graph, told = read(written(tmp_path, ending, content, encoding))
    assert graph.labels == tuple(NAMES)
    assert graph.matrix.tolist() == MATRIX.tolist()
    if expected is None:
        assert told is None
    else:
        assert expected in told


def test_there_are_thirty_of_them():
    assert len(EXPORTS) >= 30


NUMBERS = "".join(",".join(map(str, row)) + "\n" for row in MATRIX)
SAVED = io.StringIO()
np.savetxt(SAVED, MATRIX)


@pytest.mark.parametrize("content", [NUMBERS, NUMBERS.replace(",", ";"), SAVED.getvalue()])
def test_bare_numbers_have_no_names(tmp_path, content):
    graph, told = read(written(tmp_path, "csv", content))
    assert graph.labels == ("0", "1", "2", "3")
    assert graph.matrix.tolist() == MATRIX.tolist()
    assert (told is None) == (content is NUMBERS)


def test_players_may_be_numbers(tmp_path):
    rows = [(1, 2, 0.5), (1, 3, -1.0), (2, 3, 2.0), (3, 4, 1.0)]
    text = "".join(",".join(map(str, row)) + "\n" for row in rows)
    for content in (text, "i,j,value\n" + text, "chef,koch,note\n" + text):
        graph, _ = read(written(tmp_path, "csv", content))
        assert graph.labels == ("1", "2", "3", "4")
        assert graph.edges.weight.tolist() == [0.5, -1, 2, 1]
    three = "from,to,weight\n" + "".join(",".join(map(str, row)) + "\n" for row in rows[:3])
    assert read(written(tmp_path, "csv", three))[0].edges.weight.tolist() == [0.5, -1, 2]
    matrix = "0,1,2\n1,0,3\n2,3,0\n"
    assert read(written(tmp_path, "csv", matrix))[0].n_players == 3
    named = "a,b,w\n" + matrix
    assert read(written(tmp_path, "csv", named))[0].labels == ("a", "b", "w")


def test_numbers_in_the_header_are_names_if_they_count(tmp_path):
    graph, told = read(written(tmp_path, "csv", "1,2,3\n0,1,2\n1,0,3\n2,3,0\n"))
    assert graph.labels == ("1", "2", "3")
    assert "names in the header only" in told
    graph, _ = read(written(tmp_path, "csv", ",a,b,sum\na,0,1,5\nb,1,0,2\nsum,5,2,0\n"))
    assert graph.labels == ("a", "b", "sum")


def test_somebody_may_be_called_na(tmp_path):
    graph, _ = read(written(tmp_path, "csv", "Na,Bob,3\nBob,None,1\n"))
    assert graph.labels == ("Na", "Bob", "None")
    graph, _ = read(written(tmp_path, "csv", ",Bob,Na\nBob,0,2\nNa,2,0\n"))
    assert graph.labels == ("Bob", "Na")


def test_counted_players_with_a_blank_diagonal_keep_their_numbers(tmp_path):
    graph, _ = read(written(tmp_path, "csv", ",1,2\n1,,5\n2,5,\n"))
    assert graph.labels == ("1", "2")
    graph, _ = read(written(tmp_path, "csv", ",7,2\n7,,5\n2,5,\n"))
    assert graph.labels == ("0", "1", "2")
    assert graph.matrix[0].tolist() == [0, 7, 2]


def test_unknown_pairs_are_refused_or_what_one_says(tmp_path):
    path = written(tmp_path, "csv", GAP.to_csv())
    with pytest.raises(
        InvalidInputError,
        match=r"of 'Bob' and 'Dan' \(line 3, column 5 is blank\), nor of 1 more pair; .*missing=0",
    ):
        SynergyGraph.read(path)
    graph, told = read(path, missing=0)
    assert "2 blank pairs as 0" in told
    assert graph.matrix[1, 3] == graph.matrix[2, 3] == 0
    assert graph.matrix[0, 1] == 31.7
    assert read(path, missing=-1.5)[0].matrix[3, 1] == -1.5
    half = GAP.copy()
    half.iloc[3, 1] = -4
    graph, told = read(written(tmp_path, "csv", half.to_csv()), missing=0)
    assert graph.matrix[1, 3] == -4
    assert "1 blank cell as mirrored" in told or "one triangle for both" in told
    pairs = pair_list(",").replace("-4.0", "")
    with pytest.raises(InvalidInputError, match="the pair 'Bob'–'Dan' has no number"):
        SynergyGraph.read(written(tmp_path, "csv", pairs))
    assert "1 blank pair as 0" in read(written(tmp_path, "csv", pairs), missing=0)[1]


WORDS = st.text(
    st.characters(categories=["L", "N", "P", "Zs", "S"], exclude_characters='"'),
    min_size=1,
    max_size=8,
).map(str.strip)


@settings(max_examples=80, deadline=None)
@given(
    names=st.lists(WORDS.filter(bool), min_size=1, max_size=5, unique=True),
    separator=st.sampled_from(",;\t"),
    mark=st.sampled_from(".,"),
    diagonal=st.sampled_from(["", "0", "NA"]),
    seed=st.integers(0, 10**6),
    corner=st.sampled_from(["", "Team"]),
)
@example(names=[":", "0."], separator=",", mark=",", diagonal="", seed=15, corner="")
def test_a_table_is_read_as_it_was_meant_or_refused(
    tmp_path_factory, names, separator, mark, diagonal, seed, corner
):
    """Whatever players are called: never other players or other numbers."""
    # Without a corner and a diagonal, players called 5 and 7 are a matrix without names.
    assume(corner or diagonal == "0" or any(number(name) is None for name in names))
    n = len(names)
    # One player whose name has a separator in it: two tables are written alike.
    assume(n > 1 or "|" not in names[0])
    rng = np.random.default_rng(seed)
    matrix = np.triu(np.round(rng.normal(0, 30, (n, n)), int(rng.integers(0, 4))), 1)
    matrix = matrix + matrix.T + 0.0
    text = io.StringIO()
    table = csv.writer(text, delimiter=separator)
    table.writerow([corner, *names])
    for a, name in enumerate(names):
        cells = [
            diagonal if a == b else f"{matrix[a, b]:.10g}".replace(".", mark) for b in range(n)
        ]
        table.writerow([name, *cells])
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    try:
        graph, _ = read(path)
    except InvalidInputError:
        return
    assert graph.labels == tuple(map(composed, names))
    assert graph.matrix.tolist() == matrix.tolist()


REFUSED = {
    "thousands or decimals, quoted": (',a,b\na,0,"1,234"\nb,"1,234",0\n', "may be 1.234 or 1234"),
    "thousands or decimals, German": (";a;b\na;;1.234\nb;1.234;\n", "'1.234' may be 1.234 or 1234"),
    "both marks": (";a;b\na;0;3,5\nb;2.5;0\n", "'2.5' is not a number with a decimal comma"),
    "an error": (",a,b\na,0,#DIV/0!\nb,1,0\n", "'#DIV/0!' is a spreadsheet's error, not a number"),
    "a word": (",a,b\na,0,gut\nb,1,0\n", "line 2, column 3: 'gut' is not a number"),
    "a word in a margin": (",,\n,,a,b\n,a,0,x\n,b,1,0\n", "line 3, column 4: 'x' is not a number"),
    "a currency": (",a,b\na,0,5 €\nb,5 €,0\n", "'5 €' is not a number"),
    "a row too few": (",a,b,c\na,0,1,2\nb,1,0,3\n", "header names 3 players and there are 2 rows"),
    "other names": (",a,b\na,0,1\nc,1,0\n", "line 3 is named 'c', but column 3 is 'b'"),
    "another order": (",a,b\nb,0,1\na,1,0\n", "in one order, or in neither"),
    "a name twice": (",a,a\na,0,1\na,1,0\n", "the label 'a' is used twice"),
    "not symmetric": (";a;b\na;0;1,5\nb;2;0\n", "'a'–'b' is 1.5 but 'b'–'a' is 2; choose symm"),
    "a pair twice": ("von;nach;wert\na;b;1\na;b;1\n", "the pair 'a'–'b' is listed twice"),
    "a pair both ways": ("von;nach;wert\na;b;1\nb;a;2\n", "is 1 and, the other way round, 2"),
    "no name": ("from,to,weight\na,b,1\n,b,1\n", "line 3 has no name for a player"),
    "one triangle without names": (",1,2\n,,3\n,,\n", "must be square"),
    "the other triangle": (",,\n1,,\n2,3,\n", "empty lines that may be players"),
    "a row of sums": (
        ",a,b,c,Summe\na,0,1,2,3\nb,1,0,3,4\nc,2,3,0,5\nSumme,3,4,5,12\n",
        "the last player, 'Summe', is the sum of the others; leave out its row and its column",
    ),
    "a row too many": (
        "0,1.5,2\n1,5,3\n5,3,6\n3,6,0\n",
        "line 1 has 3 numbers and there are 4 rows",
    ),
    "nothing": ("\r\n;;;\r\n", "is empty"),
    "too large": (";a;b\na;0;1e999\nb;1e999;0\n", "is inf; every cell must be a finite number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_told_is_refused_in_a_sentence(tmp_path, name):
    text, sentence = REFUSED[name]
    path = written(tmp_path, "csv", text)
    with pytest.raises(InvalidInputError) as caught:
        SynergyGraph.read(path)
    assert sentence in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_correlation_matrix_from_r_is_read_and_its_diagonal_left_out(tmp_path):
    text = sheet(",", lambda x: str(x / 2000), diagonal="1")
    with pytest.warns(InputWarning, match="the diagonal is ignored: 'Änne' has 1 with itself"):
        graph, _ = read(written(tmp_path, "csv", text))
    np.testing.assert_allclose(graph.matrix, MATRIX / 2000)


def test_a_spreadsheet_under_another_name_is_told(tmp_path):
    with pytest.raises(InvalidInputError, match=r"is an archive, perhaps .* name it \.xlsx"):
        SynergyGraph.read(written(tmp_path, "csv", b"PK\x03\x04abc"))
    old = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    for ending in ("csv", "xlsx"):
        with pytest.raises(InvalidInputError, match=r"save it as \.xlsx or \.csv"):
            SynergyGraph.read(written(tmp_path, ending, old))


# -- .xlsx -----------------------------------------------------------------------------------------


@pytest.fixture
def book():
    openpyxl = pytest.importorskip(
        "openpyxl", reason="openpyxl is not installed: pip install .[tables]"
    )
    return openpyxl.Workbook()


def fill(sheet, rows):
    for row in rows:
        sheet.append(row)


def rows_of(matrix):
    named = zip(NAMES, matrix.tolist(), strict=True)
    return [[None, *NAMES], *([name, *row] for name, row in named)]


def test_a_matrix_in_a_spreadsheet(book, tmp_path):
    fill(book.active, rows_of(MATRIX))
    book.save(tmp_path / "m.xlsx")
    graph, told = read(tmp_path / "m.xlsx")
    assert graph.labels == tuple(NAMES)
    assert graph.matrix.tolist() == MATRIX.tolist()
    assert told is None


def test_a_matrix_somewhere_in_a_spreadsheet(book, tmp_path):
    notes = book.active
    notes.title = "leer"
    sheet = book.create_sheet("Synergien")
    sheet["B2"] = "Wer mit wem?"
    for a, row in enumerate(rows_of(MATRIX)):
        for b, value in enumerate(row):
            sheet.cell(a + 4, b + 3, None if a == b else value)
    sheet["D6"].number_format = "0.00%"
    sheet["F20"] = " "
    book.save(tmp_path / "m.xlsx")
    graph, told = read(tmp_path / "m.xlsx")
    assert graph.labels == tuple(NAMES)
    assert graph.matrix.tolist() == MATRIX.tolist()
    assert "sheet 'Synergien', one of 2, without 1 title line, a blank diagonal" in told


def test_a_complaint_about_one_of_several_sheets_names_the_sheet(book, tmp_path):
    book.active.title = "Notizen"
    book.active["A1"] = "siehe nebenan"
    fill(book.create_sheet("Matrix"), rows_of(MATRIX))
    book.save(tmp_path / "m.xlsx")
    with pytest.raises(InvalidInputError, match="in the sheet 'Notizen', the first of 2"):
        read(tmp_path / "m.xlsx")


def test_pairs_and_numbers_as_text_in_a_spreadsheet(book, tmp_path):
    fill(book.active, [["von", "nach", "Gewicht"], *PAIRS])
    book.save(tmp_path / "p.xlsx")
    graph, told = read(tmp_path / "p.xlsx")
    assert graph.matrix.tolist() == MATRIX.tolist()
    assert "6 pairs (von nach Gewicht)" in told
    book.active["C2"] = "31,7"  # a number that Excel holds for text
    book.save(tmp_path / "p.xlsx")
    graph, told = read(tmp_path / "p.xlsx")
    assert graph.matrix.tolist() == MATRIX.tolist()
    assert "decimal commas" in told


def test_a_formula_without_its_value_is_told(book, tmp_path):
    fill(book.active, rows_of(MATRIX))
    book.active["C2"] = "=1+1"
    book.active["B3"] = "=C2"
    book.save(tmp_path / "f.xlsx")
    with pytest.raises(InvalidInputError, match="line 2, column 3 is a formula whose value is not"):
        SynergyGraph.read(tmp_path / "f.xlsx")


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [("=NA(", "=NA("), ("x", "line 2, column 3: 'x' is not a number"), (True, "'True' is not a n")],
)
def test_a_cell_that_is_no_number_is_told(book, tmp_path, cell, sentence):
    fill(book.active, rows_of(MATRIX))
    book.active["C2"].value = cell
    if cell == "=NA(":
        book.active["C2"].data_type = "s"
    book.save(tmp_path / "c.xlsx")
    with pytest.raises(InvalidInputError) as caught:
        SynergyGraph.read(tmp_path / "c.xlsx")
    assert sentence in str(caught.value)


def test_a_date_is_no_number(book, tmp_path):
    fill(book.active, rows_of(MATRIX))
    book.active["C2"] = datetime.datetime(2024, 3, 2)
    book.save(tmp_path / "d.xlsx")
    with pytest.raises(InvalidInputError, match=r"'2024-03-02 \(a date\)' is not a number"):
        SynergyGraph.read(tmp_path / "d.xlsx")


def test_an_empty_spreadsheet_and_a_broken_one_get_a_sentence(book, tmp_path):
    book.save(tmp_path / "e.xlsx")
    with pytest.raises(InvalidInputError, match="has no sheet with anything in it"):
        SynergyGraph.read(tmp_path / "e.xlsx")
    content = (tmp_path / "e.xlsx").read_bytes()
    for damaged in (content[:-40], b"text", b"", content[:100]):
        with pytest.raises(InvalidInputError, match=r"is no \.xlsx file, or a damaged one"):
            SynergyGraph.read(written(tmp_path, "xlsx", damaged))


def changed(path, member, change):
    """Rewrite one member of an archive."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts[member] = change(parts[member])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


SHEET = "xl/worksheets/sheet1.xml"


def test_strangers_files_take_neither_time_nor_memory(book, tmp_path):
    path = tmp_path / "x.xlsx"
    fill(book.active, rows_of(MATRIX))
    book.save(path)
    changed(path, SHEET, lambda xml: xml.replace(b'ref="A1:E5"', b'ref="A1:XFD1048576"'))
    assert SynergyGraph.read(path).matrix.tolist() == MATRIX.tolist()
    changed(path, SHEET, lambda xml: xml.replace(b'<row r="5"', b'<row r="999999999999"'))
    with pytest.raises(InvalidInputError, match="more than 10000 empty lines between others"):
        SynergyGraph.read(path)
    book.save(path)
    entity = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]>'
    changed(path, SHEET, lambda xml: entity + xml[xml.index(b"<worksheet") :])
    with pytest.raises(InvalidInputError, match="declares an XML document type"):
        SynergyGraph.read(path)
    book.save(path)
    changed(path, "xl/styles.xml", lambda xml: xml + b" " * (200 << 20))
    with pytest.raises(InvalidInputError, match=r"would unpack from .* bytes; save it as \.csv"):
        SynergyGraph.read(path)


def test_without_openpyxl_one_sentence_has_the_command(tmp_path, monkeypatch):
    path = tmp_path / "x.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingDependencyError, match=r"openpyxl.*pip install '\.\[tabl"):
        SynergyGraph.read(path)


def test_damaged_spreadsheets_end_in_a_sentence(book, tmp_path):
    """Bytes of the archive, and of the sheet inside it, changed at random."""
    path = tmp_path / "x.xlsx"
    fill(book.active, rows_of(MATRIX))
    book.save(path)
    content = path.read_bytes()
    rng = np.random.default_rng(8)
    outcomes = set()
    for trial in range(150):
        damaged = bytearray(content)
        for place in rng.integers(0, len(content), 1 + trial % 5):
            damaged[place] = rng.integers(256)
        outcomes.add(ending_of(damaged, tmp_path))
    for _ in range(100):
        path.write_bytes(content)
        place, byte = int(rng.integers(0, 900)), bytes([rng.integers(32, 127)])
        changed(path, SHEET, lambda xml, k=place, b=byte: xml[:k] + b + xml[k + 1 :])
        outcomes.add(ending_of(path.read_bytes(), tmp_path))
    assert outcomes == {"read", "refused"}


def ending_of(content, folder):
    try:
        SynergyGraph.read(written(folder, "xlsx", bytes(content)))
    except InvalidInputError as error:
        return "refused" if "\n" not in str(error) else "several lines"
    except InputWarning:
        return "read"
    return "read"


@pytest.mark.parametrize("mark", [".", ","])
def test_what_is_written_for_people_is_read_back(mark):
    rng = np.random.default_rng(5)
    for value in np.round(rng.normal(0, 10.0 ** rng.integers(-3, 7, 500)), 4):
        plain = repr(float(value))
        if "e" in plain:
            continue
        whole, _, digits = plain.partition(".")
        grouped = f"{int(whole):,}" if abs(value) >= 1 else whole
        grouped = grouped.replace(",", "." if mark == "," else ",")
        for text in (plain.replace(".", mark), grouped + mark + digits):
            assert number(text, mark) == value
            assert decimal_mark(text) in (mark, None)
            assert decimal_mark(text) == mark or ambiguous(text)
    assert number("12,5 %", ",") == 0.125
    assert number("-12.3%") == -0.123
    assert number("1_000") is None
    assert number("%") is None
    assert number("1e5", mark) == 1e5
    assert number("1,2,3", ",") is None


def test_a_cell_far_from_the_table_is_no_harm(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra tables")
    book = openpyxl.Workbook()
    for row in ([None, *NAMES], *([n, *r] for n, r in zip(NAMES, MATRIX.tolist(), strict=True))):
        book.active.append(row)
    book.active["XFD2"] = " "
    book.save(tmp_path / "far.xlsx")
    assert SynergyGraph.read(tmp_path / "far.xlsx").labels == tuple(NAMES)
