"""Second opinions on the command line: lists, wishes, explanations."""

from __future__ import annotations

import json
import unicodedata

import pytest

from tests.cli.games.test_solve import EXAMPLE
from tests.cli.test_json import document
from tests.cli.typed import check_refused
from tests.cli.typed import typed as coalitions

TEAM = """\
,ann,bob,cleo
ann,0,3,2
bob,3,0,-4
cleo,2,-4,0
"""


@pytest.fixture
def team(tmp_path):
    path = tmp_path / "team.csv"
    path.write_text(TEAM)
    return path


def test_a_list_of_the_best(team, tmp_path):
    out = tmp_path / "solution.json"
    found = document("solve", team, "--n-best", 3, "--output", out)
    assert found["coalitions"] == [["ann", "bob"], ["cleo"]]
    assert [other["value"] for other in found["others"]] == [2.0, 1.0]
    assert found["others"][0]["coalitions"] == [["ann", "cleo"], ["bob"]]
    assert all(other["optimal"] for other in found["others"])
    assert json.loads(out.read_text())["others"] == found["others"]
    # A file with a list is a solution as any other.
    assert document("stability", team, out)["coalitions"] == found["coalitions"]

    shown = coalitions("solve", team, "--n-best", 3).stdout
    assert "less than the best" in shown
    assert "ann, cleo | bob" in shown


def test_all_optimal_says_if_there_is_no_other(team):
    assert "no other structure is optimal" in coalitions("solve", team, "--all-optimal").stdout


def test_a_list_that_ends_early_says_so(tmp_path):
    path = tmp_path / "zeros.csv"
    path.write_text(",a,b,c\na,0,0,0\nb,0,0,0\nc,0,0,0\n")
    result = coalitions("solve", path, "--all-optimal", "--n-best", 2, "--json")
    assert "ends after 2 optimal structures" in json.loads(result.stdout)["others_note"]
    assert "ends after 2 optimal structures" in result.stderr


def test_the_canonical_one_of_several(tmp_path):
    path = tmp_path / "ties.csv"
    path.write_text(",a,b,c\na,0,2,2\nb,2,0,-5\nc,2,-5,0\n")
    start = tmp_path / "start.json"
    start.write_text('{"coalitions": [["a", "c"], ["b"]]}')
    found = document("solve", path, "--canonical", "--warm-start", start)
    assert found["coalitions"] == [["a", "b"], ["c"]]


TIES = ",a,b,c\na,0,2,2\nb,2,0,-5\nc,2,-5,0\n"


def test_structures_that_are_equally_good_are_said_to_be(tmp_path):
    path, out = tmp_path / "ties.csv", tmp_path / "solution.json"
    path.write_text(TIES)
    for flags, line in (
        (["--all-optimal"], "\n2 structures are equally good"),
        (["--n-best", 3], "\n2 structures are equally good"),
        (["--n-best", 2], "\nat least 2 structures are equally good"),
    ):
        shown = coalitions("solve", path, *flags, "--output", out).stdout
        assert "exactly as good  yes     a, c | b" in shown
        assert line in shown
    said = coalitions("explain", path, out, "a").stdout
    assert "is exactly as good: `solve` with --all-optimal lists all that are." in said
    assert "rose by more than 0" not in said
    assert "fell by more than 0" not in said


def test_a_wish(team):
    found = document("what-if", team, "--together", "ann,cleo")
    assert (found["cost"], found["value"], found["base_value"]) == (1.0, 2.0, 3.0)
    assert found["coalitions"] == [["ann", "cleo"], ["bob"]]
    shown = coalitions("what-if", team, "--apart", "ann,bob,cleo").stdout
    assert "the wish costs 3 (proven)" in shown
    assert "with it, 0: ann | bob | cleo" in shown


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((), "there is no wish"),
        (("--together", "ann"), "two or more different players"),
        (("--apart", "ann,dan"), "no player 'dan'"),
    ],
)
def test_a_wish_that_is_none(team, flags, sentence):
    result = coalitions("what-if", team, *flags)
    check_refused(result, sentence)


def test_names_as_macos_writes_them(tmp_path):
    path, out = tmp_path / "team.csv", tmp_path / "solution.json"
    path.write_text(",Jörg,Änne,Bob\nJörg,0,3,2\nÄnne,3,0,-4\nBob,2,-4,0\n")
    wish = unicodedata.normalize("NFD", "Jörg,Änne")
    assert document("what-if", path, "--together", wish)["cost"] == 0.0
    one, other = wish.split(",")
    flags = ("--weights", f"{one}=1", "--weights", f"{other}=1", "--weights", "Bob=1")
    found = document("solve", path, "--must-link", wish, *flags, "--max-weight", 2)
    assert found["coalitions"] == [["Jörg", "Änne"], ["Bob"]]
    out.write_text(json.dumps({"coalitions": [[one, other], ["Bob"]]}), encoding="utf-8")
    assert document("explain", path, out, one)["player"] == "Jörg"


@pytest.mark.parametrize("wish", ["Jörg and Änne", "Jörg; Änne", "Jörg&Änne"])
def test_names_that_are_not_separated_by_commas(wish, tmp_path):
    path = tmp_path / "team.csv"
    path.write_text(",Jörg,Änne\nJörg,0,3\nÄnne,3,0\n")
    result = coalitions("what-if", path, "--together", wish)
    assert f"no player '{wish}'; names are separated by commas: Jörg,Änne" in result.stderr
    assert "did you mean 'Jörg'?" in coalitions("what-if", path, "--apart", "jorg,Änne").stderr


def test_a_quiet_wish_does_not_say_how_the_file_was_read(tmp_path):
    path = tmp_path / "team.csv"
    path.write_text(";a;b\na;;1,5\nb;1,5;\n")
    assert "decimal commas" in coalitions("what-if", path, "--apart", "a,b").stderr
    quiet = coalitions("what-if", path, "--apart", "a,b", "-q")
    assert quiet.returncode == 0
    assert quiet.stderr == ""


def test_an_explanation(team, tmp_path):
    out = tmp_path / "solution.json"
    coalitions("solve", team, "--output", out)
    found = document("explain", team, out, "ann")
    assert (found["inside"], found["share"], found["loss"]) == (3.0, 1.5, 1.0)
    assert found["best_alternative"] == ["cleo"]
    assert found["fragile"][0]["margin"] == 1.0
    shown = coalitions("explain", team, out, "ann", "--fragile", 2).stdout
    assert "best other place for ann is with cleo: the structure would lose 1." in shown
    assert "may change by" in shown
    everybody = document("explain", team, out)
    assert [pair["margin"] for pair in everybody["fragile"]] == [1.0, 1.0, 2.0]
    assert document("explain", team, out, "bob", "--fragile", 0)["fragile"] == []


def test_an_explanation_keeps_to_what_the_file_records(team, tmp_path):
    out = tmp_path / "solution.json"
    coalitions("solve", team, "--must-link", "ann,bob", "--max-size", 2, "--output", out)
    found = document("explain", team, out, "ann")
    assert found["best_alternative"] is None
    assert found["loss"] is None


def test_a_player_who_is_not_there(tmp_path):
    out = tmp_path / "solution.json"
    coalitions("solve", EXAMPLE, "--output", out)
    result = coalitions("explain", EXAMPLE, out, "mnist-9")
    check_refused(result, "no player 'mnist-9'; did you mean")


def test_names_with_commas_stand_in_quotes_wherever_several_are_listed(tmp_path):
    path, out = tmp_path / "staff.csv", tmp_path / "solution.json"
    path.write_text(
        ',"Smith, Ann",Bob,"Lee, Cy"\n"Smith, Ann",0,3,-1\nBob,3,0,-2\n"Lee, Cy",-1,-2,0\n'
    )
    wish = '"Lee, Cy",Bob'  # as it is printed, so it is typed
    shown = coalitions("solve", path, "--n-best", 2, "--cannot-link", wish, "--output", out).stdout
    assert '1  "Smith, Ann", Bob ' in shown
    assert '2  "Lee, Cy" ' in shown
    assert 'structures that keep "Lee, Cy" and Bob apart' in shown
    assert json.loads(out.read_text())["coalitions"] == [["Smith, Ann", "Bob"], ["Lee, Cy"]]
    assert '"Smith, Ann", Bob | "Lee, Cy"' in coalitions("what-if", path, "--together", wish).stdout
    said = coalitions("explain", path, out, "Bob").stdout
    assert 'Bob is with "Smith, Ann"; together' in said


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--max-size", 2, "--together", "ann,bob,cleo"),
         "the wish (--together) makes a group of 3 players, but --max-size is 2"),
        (("--max-size", 2, "--must-link", "ann,bob", "--together", "ann,cleo"),
         "--must-link with the wish (--together) makes a group of 3 players"),
        (("--must-link", "ann,bob", "--apart", "ann,bob"),
         "must not be together by the wish (--apart), but --must-link puts them together"),
    ],
)  # fmt: skip
def test_a_wish_that_cannot_be_granted_is_named_as_it_was_typed(flags, sentence, team):
    refused = coalitions("what-if", team, *flags)
    assert refused.returncode == 1
    assert sentence in refused.stderr
