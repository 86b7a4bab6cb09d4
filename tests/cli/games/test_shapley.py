"""`coalitions shapley`, run as users run it."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from coalitions import SynergyGraph
from tests.cli.typed import check_refused, typed


def run(*arguments, text=""):
    environment = {**os.environ, "COLUMNS": "120"}
    return typed("shapley", *arguments, stdin=text, env=environment)


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "graph.json"
    matrix = np.array([[0, 2, -1], [2, 0, 0.5], [-1, 0.5, 0]])
    SynergyGraph(matrix, labels=["ann", "bob", "cleo"]).write(path)
    return path


def test_json_of_a_graph(graph):
    done = run(graph, "--json")
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert document["values"] == {"ann": 0.5, "bob": 1.25, "cleo": -0.25}
    assert document["stderr"] == {"ann": 0, "bob": 0, "cleo": 0}
    assert document["method"] == "exact"
    assert document["evaluations"] == 0


def test_a_table_on_standard_input(tmp_path):
    table = json.dumps({"values": [0, 0, 0, 1, 0, 1, 0, 1], "labels": ["l", "r", "s"]})
    done = run("-", "--format", "json", "--method", "exact", "--json", text=table)
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout)["values"]
    assert values == pytest.approx({"l": 2 / 3, "r": 1 / 6, "s": 1 / 6})


def test_bars_have_intervals_when_values_are_sampled(graph):
    exact = run(graph)
    assert "█" in exact.stdout
    assert "├" not in exact.stdout
    sampled = run(graph, "--method", "permutation", "--budget", 6)
    assert sampled.returncode == 0, sampled.stderr
    assert "├" in sampled.stdout
    assert "you asked for it" in sampled.stdout


def test_seeds_repeat(graph):
    one, same, other = (
        run(graph, "--method", "permutation", "--budget", 6, "--seed", s, "--json").stdout
        for s in (1, 1, 5)
    )
    assert one == same != other


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--method", "exakt"], "did you mean 'exact'"),
        (["--method", "permutation", "--budget", "2"], "needs at least 6 evaluations"),
        (["--budget", "0"], "the budget is 0"),
        (["--target-error", "-1"], "a number of at least 0"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(graph, arguments, sentence):
    done = run(graph, *arguments)
    check_refused(done, sentence)


def test_a_table_of_the_wrong_length(tmp_path):
    path = tmp_path / "table.json"
    path.write_text('{"values": [1, 2, 3]}')
    done = run(path)
    check_refused(done, "2^n")
