"""`coalitions value` and `coalitions stability`: what they print and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.typed import check_refused, typed

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "data" / "three_domains.csv"


@pytest.fixture
def coalitions():
    """Run a command in this process, which saves two seconds a time."""
    return typed


@pytest.fixture
def document(coalitions):
    """Run a command with --json and return what it prints."""

    def run(*arguments):
        result = coalitions(*arguments, "--json")
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""
        return json.loads(result.stdout)

    return run


@pytest.fixture
def files(tmp_path):
    (tmp_path / "graph.csv").write_text(",a,b,c\na,0,2,-1\nb,2,0,0.5\nc,-1,0.5,0\n")
    majority = {"values": [0, 0, 0, 1, 0, 1, 1, 1], "labels": ["x", "y", "z"]}
    (tmp_path / "majority.json").write_text(json.dumps(majority))
    (tmp_path / "path.edges").write_text("y x 1\nz y 1\n")
    (tmp_path / "union.json").write_text('{"coalitions": [["y", "x"], ["z"]]}')
    (tmp_path / "grand.json").write_text('{"coalitions": [["a", "b", "c"]]}')
    (tmp_path / "pair.json").write_text('{"coalitions": [["a", "b"], ["c"]]}')
    (tmp_path / "poor.json").write_text('{"values": [0, 1, 1, 1]}')
    return tmp_path


def test_shares_of_a_majority(document, files):
    majority = files / "majority.json"
    found = document("value", majority, "--concept", "banzhaf")
    assert found["values"] == pytest.approx({"x": 0.5, "y": 0.5, "z": 0.5})
    assert found["method"] == "exact"
    found = document("value", majority, "--concept", "nucleolus")
    assert found["values"] == pytest.approx({"x": 1 / 3, "y": 1 / 3, "z": 1 / 3})
    assert found["verified"] is True
    assert found["stages"][0]["excess"] == pytest.approx(1 / 3)
    found = document("value", majority, "--concept", "least-core")
    assert found["epsilon"] == pytest.approx(1 / 3)
    assert found["core_is_empty"] is True
    found = document("value", majority, "--concept", "beta-shapley", "--alpha", 1, "--beta", 1)
    assert found["values"] == pytest.approx({"x": 1 / 3, "y": 1 / 3, "z": 1 / 3})


def test_values_that_need_a_second_file(document, files):
    majority = files / "majority.json"
    links, union = files / "path.edges", files / "union.json"
    found = document("value", majority, "--concept", "myerson", "--links", links)
    assert found["values"] == pytest.approx({"x": 1 / 6, "y": 4 / 6, "z": 1 / 6})
    found = document("value", majority, "--concept", "owen", "--structure", union)
    assert found["values"] == pytest.approx({"x": 0.5, "y": 0.5, "z": 0})
    found = document("value", majority, "--concept", "payoffs", "--structure", union)
    assert found["values"] == pytest.approx({"x": 0.5, "y": 0.5, "z": 0})
    assert found["coalitions"] == [["x", "y"], ["z"]]


def test_interactions_of_any_order_and_index(document, files):
    asked = ("value", files / "majority.json", "--concept", "interactions")
    found = document(*asked, "--index", "STII", "--order", "2")
    assert (found["index"], found["order"], found["evaluations"]) == ("STII", 2, 8)
    by_names = {tuple(each["coalition"]): each["value"] for each in found["interactions"]}
    assert by_names["x",] == 0.0
    assert by_names["x", "y"] == pytest.approx(1 / 3)  # 3 (x y) − 2 (x y z), shared by three pairs
    assert document(*asked, "--order", "3")["interactions"][-1]["value"] == -2.0
    assert document(*asked)["index"] == "k-SII"


def test_interactions_are_printed_and_bad_ones_refused(coalitions, files):
    asked = ("value", files / "majority.json", "--concept", "interactions")
    printed = coalitions(*asked, "--index", "BII")
    assert printed.returncode == 0
    assert "BII" in printed.stdout
    assert "x – y" in printed.stdout
    for extra, sentence in (
        (("--index", "SIII"), "did you mean 'SII'?"),
        (("--order", "4"), "the order is 4; there are only 3 players"),
        (("--order", "0"), "the order"),
        (("--method", "chains"), "there is no method named 'chains' for interactions"),
    ):
        refused = coalitions(*asked, *extra)
        check_refused(refused, sentence)
    refused = coalitions("value", files / "majority.json", "--order", "2")
    assert "shapley does not take --order" in refused.stderr


@pytest.mark.parametrize("index", ["shapley-interaction", "banzhaf-interaction"])
def test_interactions_of_a_graph_are_its_synergies(document, files, index):
    found = document("value", files / "graph.csv", "--concept", index)
    pairs = {tuple(pair["coalition"]): pair["value"] for pair in found["interactions"]}
    assert pairs == {("a", "b"): 2, ("a", "c"): -1, ("b", "c"): 0.5}


def test_sampling_keeps_the_budget_and_the_seed(document):
    arguments = ("value", EXAMPLE, "--concept", "banzhaf", "--method", "msr", "--budget", 100)
    one, two = document(*arguments), document(*arguments)
    assert one == two != document(*arguments, "--seed", 1)
    assert one["evaluations"] <= 100
    assert max(one["stderr"].values()) > 0


@pytest.mark.parametrize("concept", ["banzhaf", "prenucleolus", "least-core"])
def test_people_get_a_table(coalitions, files, concept):
    result = coalitions("value", files / "graph.csv", "--concept", concept)
    assert result.returncode == 0, result.stderr
    assert [line.split()[0] for line in result.stdout.splitlines()[1:4]] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["graph.csv", "--concept", "guess"], 2, "there is no concept named 'guess'"),
        (["graph.csv", "--concept", "nucleolus", "--budget", "9"], 2, "does not take --budget"),
        (["majority.json", "--concept", "owen"], 2, "needs --structure"),
        (["majority.json", "--concept", "myerson"], 2, "needs --links"),
        (["graph.csv", "--concept", "myerson", "--links", "path.edges"], 2, "players of the game"),
        (["graph.csv", "--concept", "payoffs", "--structure", "union.json"], 2, "no player 'y'"),
        (["majority.json", "--concept", "core"], 1, "proven by 0.5 × {x, y}"),
        (["poor.json", "--concept", "nucleolus"], 1, "there is no imputation"),
        (["nowhere.csv"], 2, "there is no such file"),
    ],
)
def test_mistakes_get_one_sentence(coalitions, files, arguments, code, sentence):
    arguments = [files / word if "." in word else word for word in arguments]
    result = coalitions("value", *arguments)
    assert result.returncode == code
    assert result.stdout == ""
    assert sentence in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_an_optimal_structure_is_nash_stable(coalitions, document, tmp_path):
    solution = tmp_path / "solution.json"
    solved = coalitions("solve", EXAMPLE, "--solver", "cp-sat", "--output", solution, "--quiet")
    assert solved.returncode == 0, solved.stderr
    found = document("stability", EXAMPLE, solution)
    for notion in ("nash", "individual", "contractual-nash", "contractual-individual"):
        assert found["notions"][notion] == {"stable": True, "deviation": None}
    value = json.loads(solution.read_text())["value"]
    assert sum(found["payoffs"].values()) == pytest.approx(value)


def test_the_deviation_is_named(document, files):
    found = document("stability", files / "graph.csv", files / "grand.json")
    assert found["notions"]["nash"]["deviation"] == {
        "movers": ["c"],
        "coalition": ["c"],
        "before": [-0.25],
        "after": [0.0],
    }
    assert found["notions"]["contractual-nash"]["stable"] is True
    found = document(
        "stability", files / "majority.json", files / "union.json", "--notion", "transferable-core"
    )
    assert list(found["notions"]) == ["transferable-core"]
    assert found["notions"]["transferable-core"]["deviation"]["movers"] in (["x", "z"], ["y", "z"])


@pytest.mark.parametrize("given", [("core", "nash"), ("core,nash",)])
def test_notions_come_with_commas_or_in_several_flags(given, document, files):
    flags = [part for name in given for part in ("--notion", name)]
    found = document("stability", files / "graph.csv", files / "grand.json", *flags)
    assert list(found["notions"]) == ["core", "nash"]


def test_people_read_who_leaves(coalitions, files):
    result = coalitions("stability", files / "graph.csv", files / "grand.json")
    assert result.returncode == 0
    assert "c leaves alone: -0.25 → 0" in result.stdout
    assert "a, b form a coalition: 1.75 → 2" in result.stdout


@pytest.mark.parametrize(
    ("structure", "notion", "sentence"),
    [
        ("nowhere.json", "nash", "nowhere.json"),
        ("union.json", "nash", "there is no player 'y'"),
        ("grand.json", "nahs", "did you mean 'nash'"),
    ],
)
def test_mistakes_about_stability_get_one_sentence(coalitions, files, structure, notion, sentence):
    result = coalitions("stability", files / "graph.csv", files / structure, "--notion", notion)
    check_refused(result, sentence)


def test_a_misspelt_concept_is_recognised(coalitions):
    result = coalitions("value", EXAMPLE, "--concept", "banzaf")
    check_refused(result, "did you mean 'banzhaf'? there are: ")


def test_stability_says_which_demands_of_the_file_it_does_not_ask(coalitions, document, tmp_path):
    graph, out = tmp_path / "team.csv", tmp_path / "teams.json"
    graph.write_text(",a,b,c\na,0,1,1\nb,1,0,1\nc,1,1,0\n")
    coalitions("solve", graph, "--output", out)
    assert "Not demanded" not in coalitions("stability", graph, out).stdout
    flags = ("--max-size", 2, "--cannot-link", "a,c", "--output", out)
    coalitions("solve", graph, *flags)
    shown = coalitions("stability", graph, out)
    assert shown.returncode == 0
    words = "structures with at most 2 players each that keep a and c apart"
    assert f"Not demanded here: {words}, as {out} records it." in shown.stdout
    assert document("stability", graph, out)["not_demanded"] == words
