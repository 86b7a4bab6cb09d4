"""A solution in a file is what the ending of its name says, whole, and safe to open."""

from __future__ import annotations

import csv
import json
import sys

import pytest

from coalitions import InvalidInputError, MissingDependencyError, SynergyGraph
from solvers import Solution, solve, solve_game
from tests.cli.typed import typed

NAMES = ["Ümit", "=1+1", "Smith, A", "<b>|*x*"]
GRAPH = SynergyGraph([[0, 2, -1, 3], [2, 0, 1, -5], [-1, 1, 0, -2], [3, -5, -2, 0]], labels=NAMES)
BEST = {"Ümit": 1, "<b>|*x*": 1, "=1+1": 2, "Smith, A": 2}


@pytest.fixture
def solution():
    return solve(GRAPH)


def test_json_comes_back_with_all_that_was_demanded(tmp_path):
    demands = {"n_groups": (2, 3), "weights": [1, 2, 3, 1.5], "max_weight": 7}
    roles = [("Ümit", 1)]
    first = solve(GRAPH, cannot_link=[(0, 3)], at_least_one_of=roles, n_best=2, **demands)
    first.save(tmp_path / "s.json")
    again = Solution.read(tmp_path / "s.json", GRAPH)
    assert again.structure == first.structure
    assert (again.value, again.bound, again.optimal) == (first.value, first.bound, True)
    assert again.cannot_link == ((0, 3),)
    assert dict(again.sizes) == {
        "n_groups": [2, 3],
        "weights": dict(zip(NAMES, [1, 2, 3, 1.5], strict=True)),
        "max_weight": 7.0,
        "at_least_one_of": (("Ümit", "=1+1"),),
    }
    document = json.loads((tmp_path / "s.json").read_text())
    assert [each["value"] for each in document["others"]] == [first.others[0].value]
    again.save(tmp_path / "again.json")
    told = json.loads((tmp_path / "again.json").read_text())
    assert told == {key: value for key, value in document.items() if key != "others"}


def test_a_file_of_another_graph_is_refused(solution, tmp_path):
    solution.save(tmp_path / "s.json")
    other = SynergyGraph(2 * GRAPH.matrix, labels=NAMES)
    with pytest.raises(InvalidInputError, match="so it is the solution of another"):
        Solution.read(tmp_path / "s.json", other)
    with pytest.raises(InvalidInputError, match="there is no player"):
        Solution.read(tmp_path / "s.json", SynergyGraph(GRAPH.matrix))


def test_csv_has_a_row_for_each_player_in_the_encoding_that_excel_reads(solution, tmp_path):
    solution.save(tmp_path / "s.csv")
    content = (tmp_path / "s.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbf")
    with (tmp_path / "s.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["player"].removeprefix("'"): int(row["coalition"]) for row in rows} == BEST
    assert not any(row["player"].startswith("=") for row in rows)


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@sum", "\t=1", " =1"])
def test_no_name_becomes_a_formula(name, tmp_path):
    openpyxl = pytest.importorskip(
        "openpyxl", reason="openpyxl is not installed: pip install .[tables]"
    )
    pair = solve(SynergyGraph([[0, 1], [1, 0]], labels=[name, "Ann"]))
    pair.save(tmp_path / "s.csv")
    with (tmp_path / "s.csv").open(encoding="utf-8-sig", newline="") as file:
        assert {row["player"][0] for row in csv.DictReader(file)} == {"'", "A"}
    pair.save(tmp_path / "s.xlsx")
    cells = openpyxl.load_workbook(tmp_path / "s.xlsx")["players"]["A"]
    assert {cell.data_type for cell in cells} == {"s"}


def test_a_workbook_has_players_coalitions_and_what_is_proven(tmp_path):
    openpyxl = pytest.importorskip(
        "openpyxl", reason="openpyxl is not installed: pip install .[tables]"
    )
    solve(GRAPH, n_best=2).save(tmp_path / "s.xlsx")
    book = openpyxl.load_workbook(tmp_path / "s.xlsx")
    _, *players = book["players"].iter_rows(values_only=True)
    assert {name: number for name, number, _ in players} == BEST
    _, *coalitions = book["coalitions"].iter_rows(values_only=True)
    assert [(row[0], row[1], row[3]) for row in coalitions] == [(1, 2, 3), (2, 2, 1)]
    _, *structures = book["structures"].iter_rows(values_only=True)
    assert structures == [(1, 4, 4, "yes"), (2, 3, 3, "yes")]


@pytest.mark.parametrize("ending", ["md", "HTML"])
def test_tables_for_people_show_names_as_they_are(ending, solution, tmp_path):
    solution.save(tmp_path / f"s.{ending}")
    text = (tmp_path / f"s.{ending}").read_text(encoding="utf-8")
    assert "Value 4: no structure is worth more" in text
    assert "<b>" not in text
    assert ("\\<b\\>\\|\\*x\\*" if ending == "md" else "&lt;b&gt;|*x*") in text


def test_a_solution_of_a_game_goes_by_numbers(tmp_path):
    solve_game(GRAPH.game()).save(tmp_path / "s.csv")
    text = (tmp_path / "s.csv").read_text(encoding="utf-8-sig")
    assert text.splitlines()[0] == "player,coalition"


def test_a_file_that_cannot_be_written_leaves_the_old_one(solution, tmp_path, monkeypatch):
    path = tmp_path / "s.csv"
    path.write_text("old")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(5, "broken")))
    with pytest.raises(Exception, match=r"broken|s\.csv"):
        solution.save(path)
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["s.csv"]


@pytest.mark.parametrize("name", ["teams.doc", "teams", "teams.xls", "teams.json.txt"])
def test_another_ending_is_refused_before_the_search(name, solution, tmp_path):
    with pytest.raises(InvalidInputError, match="end the name in"):
        solution.save(tmp_path / name)
    refused = typed("solve", "nowhere.csv", "--output", name, cwd=tmp_path)
    assert refused.returncode == 2
    assert "end the name in .json, .csv, .xlsx, .md or .html" in refused.stderr
    assert not any(tmp_path.iterdir())


def test_a_workbook_without_openpyxl_is_refused_before_the_search(solution, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingDependencyError, match="openpyxl"):
        solution.save(tmp_path / "teams.xlsx")
    refused = typed("solve", "nowhere.csv", "--output", "teams.xlsx", cwd=tmp_path)
    assert refused.returncode == 2
    assert "this needs openpyxl, which is not installed" in refused.stderr
    assert not any(tmp_path.iterdir())


def test_the_command_writes_the_same_file(solution, tmp_path):
    GRAPH.write(tmp_path / "g.json")
    solution.save(tmp_path / "python.csv")
    assert typed("solve", "g.json", "--output", "typed.csv", cwd=tmp_path).returncode == 0
    assert (tmp_path / "typed.csv").read_bytes() == (tmp_path / "python.csv").read_bytes()
