"""Demands on teams, as a user types them: taken, recorded, said in words, checked again."""

from __future__ import annotations

import json
import os

import pytest

from cli.games._demands import DemandFlags
from cli.games.verify import verify_command
from coalitions import InvalidInputError
from tests.cli.typed import typed as coalitions

NAMES = ("ann", "bob", "cleo", "dan")
PAIRS = "ann,bob,3\nann,cleo,-1\nbob,cleo,2\nann,dan,1\nbob,dan,-2\ncleo,dan,4\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [("15", 15), ("3-6", [3, 6]), ("3:6", [3, 6]), (" 3 - 6 ", [3, 6]), ("3–6", [3, 6])],
)
def test_a_count_is_a_number_or_a_range(text, count):
    assert DemandFlags(n_groups=text).sizes(NAMES) == {"n_groups": count}


@pytest.mark.parametrize("text", ["x", "3-", "-3", "3-6-9", "1.5", "", "9" * 40])
def test_what_is_no_count_is_refused(text):
    with pytest.raises(InvalidInputError, match="takes a number or a range"):
        DemandFlags(n_groups=text).sizes(NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "name,weight\nann,1\nbob,2\ncleo,1.5\ndan,0\n",
        "ann,1\nbob,2\ncleo,1.5\ndan,0",
        "\ufeffwho;load\r\nann;1\r\nbob;2\r\ncleo;1,5\r\ndan;0\r\n",
        "ann\t1\nbob\t2\n\ncleo\t1.5\ndan\t0\n",
        "ann;1,0\nbob;2,0\ncleo;1,5\ndan;0\n",
        "ann\t1,0\nbob\t2,0\ncleo\t1,5\ndan\t0\n",
    ],
)
def test_a_file_of_weights_is_read(text, tmp_path):
    path = tmp_path / "loads.csv"
    path.write_text(text, encoding="utf-8")
    asked = DemandFlags(weights=[str(path)], max_weight=3.0).sizes(NAMES)
    assert asked["weights"] == {"ann": 1.0, "bob": 2.0, "cleo": 1.5, "dan": 0.0}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ann,1\nzoe,2\n", "there is no player 'zoe'"),
        ("ann,1\nbob,2\ncleo,x\n", "line 3: the weight of cleo is 'x'"),
        ("ann,1\nbob,2\nbob,2\n", "line 3: bob has two weights"),
        ("ann,1,2\n", "line 1: must be name,weight"),
        ("ann,1\n", "none for bob; every player needs one"),
        ("", "none for ann; every player needs one"),
    ],
)
def test_a_damaged_file_of_weights_gets_a_sentence(text, words, tmp_path):
    path = tmp_path / "loads.csv"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=words):
        DemandFlags(weights=[str(path)], max_weight=3.0).sizes(NAMES)


def test_weights_may_be_given_by_name():
    flags = DemandFlags(weights=["ann=1", "bob=2", "cleo=1", "dan=1"], max_weight=3.0)
    assert flags.sizes(NAMES)["weights"]["bob"] == 2.0
    with pytest.raises(InvalidInputError, match="nowhere cannot be read"):
        DemandFlags(weights=["nowhere"], max_weight=3.0).sizes(NAMES)


@pytest.mark.parametrize("text", ["2-3", "2..3", " 2 .. 3 ", "2:3"])
def test_a_range_of_coalitions_is_written_as_ranges_are_elsewhere(text):
    assert DemandFlags(n_groups=text).sizes(NAMES)["n_groups"] == [2, 3]


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("teams")
    (folder / "g.csv").write_text(PAIRS)
    (folder / "w.csv").write_text("ann,1\nbob,2\ncleo,1.5\ndan,1\n")
    demands = ["--n-groups", "2-3", "--weights", folder / "w.csv", "--max-weight", 3]
    demands += ["--at-least-one-of", "ann,dan"]
    result = coalitions(
        "solve", folder / "g.csv", *demands,
        "--output", folder / "s.json", "--certificate", folder / "c.json",
    )  # fmt: skip
    return folder, result, demands


def check(folder, solution, **flags):
    verify_command(
        graph_file=str(folder / "g.csv"),
        solution_file=folder / solution,
        certificate=folder / "c.json",
        **flags,
    )


AMONG = "structures of 2 to 3 coalitions with a weight of at most 3 each, one of ann, dan in each"


def test_demands_are_said_recorded_and_verified(solved):
    folder, result, demands = solved
    assert result.returncode == 0, result.stderr
    assert f"optimal among {AMONG}" in result.stdout
    document = json.loads((folder / "s.json").read_text())
    assert document["n_groups"] == [2, 3]
    assert document["weights"] == {"ann": 1.0, "bob": 2.0, "cleo": 1.5, "dan": 1.0}
    assert document["max_weight"] == 3.0
    assert document["at_least_one_of"] == [["ann", "dan"]]
    for flags in ([], demands):
        checked = coalitions(
            "verify", folder / "g.csv", folder / "s.json",
            "--certificate", folder / "c.json", *flags,
        )  # fmt: skip
        assert checked.returncode == 0, checked.stderr
        assert f"optimal among {AMONG}" in checked.stdout


def test_other_demands_than_those_of_the_file_are_refused(solved):
    folder, _, _ = solved
    with pytest.raises(InvalidInputError, match="do not demand the same"):
        check(folder, "s.json", n_groups="2")


@pytest.mark.parametrize(
    ("key", "entry", "words"),
    [
        ("n_groups", [1, 3], "2 to 3 coalitions, which is not demanded"),
        ("max_weight", 4, "other weights, which is not demanded"),
        ("at_least_one_of", [], "one of ann, dan in each, which is not demanded"),
        ("max_size", 3, "1 to 4 players each, which is not demanded"),
    ],
)
def test_a_proof_for_other_demands_than_the_file_records_is_refused(solved, key, entry, words):
    folder, _, _ = solved
    document = json.loads((folder / "s.json").read_text())
    (folder / "odd.json").write_text(json.dumps({**document, key: entry}))
    with pytest.raises(InvalidInputError, match=words):
        check(folder, "odd.json")


def test_what_nobody_can_meet_ends_with_a_sentence(tmp_path):
    (tmp_path / "g.csv").write_text(PAIRS)
    result = coalitions("solve", tmp_path / "g.csv", "--max-size", 2, "--at-least-one-of", "ann")
    assert result.returncode == 1
    assert "but only 1 can have one of ann" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", ["solve", "verify", "what-if"])
def test_every_command_with_demands_has_the_same_flags(command):
    shown = coalitions(command, "--help", env={**os.environ, "COLUMNS": "200"}).stdout
    assert shown.count("A,B,…") >= 3  # not A,B: three names are welcome
    for sentence in (
        "Players that must be together, two or more; may be repeated.",
        "Players that must all be apart, two or more; may be repeated.",
        "Most players in a coalition.",
    ):
        assert sentence in shown


def test_a_name_with_a_comma_stands_in_quotes_wherever_names_are_typed():
    names = ["Smith, Ann", "Bob"]
    flags = DemandFlags(must_link=['"Smith, Ann",Bob'], at_least_one_of=['"Smith, Ann",Bob'])
    assert flags.links(names)["must_link"] == [(0, 1)]
    assert flags.sizes(names) == {"at_least_one_of": [names]}
