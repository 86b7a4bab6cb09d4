"""Certificates from strangers: any file is checked in bounded time and memory, or refused."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cli.games.verify import verify_command
from coalitions import CoalitionStructure, InvalidInputError, SynergyGraph
from solvers import Certificate, solve, verify
from solvers.proofs.certificate import Part
from tests.cli.typed import typed as coalitions

Document = dict[str, Any]


def symmetric(upper: np.ndarray) -> np.ndarray:
    upper = np.triu(upper, 1)
    return upper + upper.T


def whole(n_players: int, *parts: Document, **more: Any) -> Document:
    head = {"format": "coalition-certificate", "version": 1, "players": n_players}
    return {**head, "must_link": [], "cannot_link": [], "parts": list(parts), **more}


def part(n: int, **more: Any) -> Document:
    empty: Document = {"merges": [], "triangles": [], "cuts": [], "tree": [{"stages": []}]}
    return {"nodes": [[k] for k in range(n)], "unit": [1, 1], "value": 0, "bound": 0} | empty | more


PAIR = SynergyGraph([[0.0, 5.0], [5.0, 0.0]], ["ann", "bob"])
TOGETHER = CoalitionStructure([[0, 1]])
PROOF = whole(2, part(2, value=5, bound=5))


def test_the_smallest_proof_is_accepted():
    checked = verify(PAIR, TOGETHER, Certificate.from_json(PROOF))
    assert (checked.value, checked.bound, checked.optimal) == (5.0, 5.0, True)


def test_a_bound_that_says_nothing_is_no_more_than_all_gains():
    checked = verify(PAIR, TOGETHER, Certificate.from_json(whole(2, part(2, bound=10**400))))
    assert (checked.bound, checked.optimal) == (5.0, True)


# --- own proofs ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_no_margin_is_added_to_proofs_of_odd_floats(seed):
    graph = SynergyGraph(symmetric(np.random.default_rng(seed).normal(-1.5, 1, (12, 12))))
    solution = solve(graph, "branch-and-cut", certify=True)
    checked = verify(graph, solution.structure, solution.certificate)
    assert checked.optimal
    assert checked.bound <= solution.bound * (1 + 1e-15)


@pytest.mark.parametrize("never", [-1e6, -1e11, -1e16, -1e300])
def test_a_hopeless_weight_does_not_blur_the_bound(never, tmp_path):
    # ann–bob 3, bob–cleo 2, ann–cleo never: 3 is best, and triangle bob shows it.
    graph = SynergyGraph([[0, 3, never], [3, 0, 2], [never, 2, 0]])
    stage = {"bits": 0, "rows": [0], "values": [2]}
    proof = whole(3, part(3, value=3, bound=3, triangles=[[1, 0, 2]], tree=[{"stages": [stage]}]))
    structure = CoalitionStructure([[0, 1], [2]])
    checked = verify(graph, structure, Certificate.from_json(proof))
    assert (checked.value, checked.bound, checked.optimal) == (3.0, 3.0, True)
    graph.write(tmp_path / "g.csv")
    (tmp_path / "c.json").write_text(json.dumps(proof))
    solution = {"coalitions": [["0", "1"], ["2"]], "value": 3, "bound": 3}
    (tmp_path / "s.json").write_text(json.dumps(solution))
    verify_command(str(tmp_path / "g.csv"), tmp_path / "s.json", tmp_path / "c.json")
    for key, wrong in (("bound", 2.9999999), ("value", 3.0000001)):
        (tmp_path / "s.json").write_text(json.dumps({**solution, key: wrong}))
        with pytest.raises(InvalidInputError, match=f"claims the {key}"):
            verify_command(str(tmp_path / "g.csv"), tmp_path / "s.json", tmp_path / "c.json")


def test_small_weights_are_compared_as_strictly_as_large_ones(tmp_path):
    SynergyGraph([[0, 1e-11], [1e-11, 0]]).write(tmp_path / "g.csv")
    for value, right in ((1e-11, True), (0.9e-11, False), (0.5, False)):
        (tmp_path / "s.json").write_text(json.dumps({"coalitions": [["0", "1"]], "value": value}))
        if right:
            verify_command(str(tmp_path / "g.csv"), tmp_path / "s.json")
        else:
            with pytest.raises(InvalidInputError, match="claims the value"):
                verify_command(str(tmp_path / "g.csv"), tmp_path / "s.json")


def separated(n: int) -> SynergyGraph:
    """Return a graph of n / 3 domains of three players each."""
    domain = np.arange(n) // 3
    size = np.random.default_rng(1).uniform(0.5, 1, (n, n))
    return SynergyGraph(symmetric(np.where(domain[:, None] == domain, size, -size)))


def test_six_hundred_players_in_two_hundred_parts_are_verified_at_once():
    graph = separated(600)
    solution = solve(graph, "branch-and-cut", certify=True)
    certificate = solution.certificate
    assert len(certificate.parts) == 200
    started = time.process_time()
    assert verify(graph, solution.structure, certificate).optimal
    assert time.process_time() - started < 1.0  # 0.1 s on quiet cores; it was 4.5 s


def test_the_verifier_loads_nothing_of_the_solver():
    code = (
        "import solvers.proofs.verification, sys\n"
        "print(*(m for m in sys.modules if 'solvers' in m))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(found.stdout.split()) - {"solvers", "solvers.proofs", "solvers.optimality"}
    assert all(module.startswith("solvers.proofs.") for module in loaded)


# --- time and memory -------------------------------------------------------------------------


def random_graph(n: int) -> SynergyGraph:
    return SynergyGraph(symmetric(np.random.default_rng(0).integers(-9, 10, (n, n)).astype(float)))


def alone_in(n: int) -> CoalitionStructure:
    return CoalitionStructure.singletons(n)


def split(i: int, j: int, together: int, apart: int) -> Document:
    return {"stages": [], "pair": [i, j], "together": together, "apart": apart}


def test_a_tree_whose_cases_are_shared_is_refused():
    # Each of 40 branches leads to the next by both cases: a walk would take 2^40 steps.
    tree = [split(k, k + 1, k + 1, k + 1) for k in range(40)] + [{"stages": []}]
    document = whole(60, part(60, tree=tree))
    with pytest.raises(InvalidInputError, match="a branch that two others lead to"):
        verify(random_graph(60), alone_in(60), Certificate.from_json(document))


@pytest.mark.parametrize(
    ("tree", "complaint"),
    [
        ([], "has no tree"),
        ([{"stages": []}, {"stages": []}], "a branch that no other leads to"),
        ([split(0, 1, 1, 0), {"stages": []}], "without its two cases"),
        ([split(0, 1, 1, 3), {"stages": []}, {"stages": []}], "without its two cases"),
        ([split(0, 1, 1, 1), {"stages": []}], "that two others lead to"),
        ([split(0, 0, 1, 2), {"stages": []}, {"stages": []}], "branches on no pair"),
        ([split(0, 9, 1, 2), {"stages": []}, {"stages": []}], "branches on no pair"),
    ],
)
def test_what_is_no_tree_is_refused(tree, complaint):
    certificate = Certificate.from_json(whole(3, part(3, tree=tree)))
    with pytest.raises(InvalidInputError, match=complaint):
        verify(random_graph(3), alone_in(3), certificate)


def test_a_long_chain_of_branches_is_given_up_in_time_and_memory():
    # 2 MB: 15 000 branches on a pair that is together already, each a look at 19 900 pairs. One
    # case is impossible, the other leads on.
    n, depth = 200, 15_000
    chain = [split(0, 1, 2 * k + 1, 2 * k + 2) for k in range(depth)]
    tree = [chain[0]]
    for branch in [*chain[1:], {"stages": []}]:
        tree += [branch, {"stages": []}]
    certificate = Certificate.from_json(whole(n, part(n, tree=tree)))
    graph = random_graph(n)
    verify(graph, alone_in(n))  # edges are listed once
    started = time.process_time()
    with pytest.raises(
        InvalidInputError, match="asks for more work than a proof of its size needs"
    ):
        verify(graph, alone_in(n), certificate)
    assert time.process_time() - started < 10  # 1 s on quiet cores
    tracemalloc.start()
    shorter = Certificate.from_json(
        whole(n, part(n, tree=[*tree[:1001], {"stages": []}, {"stages": []}]))
    )
    with pytest.raises(InvalidInputError, match="leaves branch 1001 open"):
        verify(graph, alone_in(n), shorter)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6  # a copy of what is apart for every open branch would be 40 MB


def test_one_long_cut_does_not_make_all_cuts_long():
    # 0.4 MB that were once a matrix of 4 GB.
    cuts = [[0, 1]] * 50_000 + [list(range(10_000))]
    document = whole(2, part(2, cuts=cuts))
    tracemalloc.start()
    with pytest.raises(InvalidInputError, match="a cut has not 2 to 16 nodes"):
        Certificate.from_json(document)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6


def test_a_wide_cut_made_in_python_is_refused_too():
    graph = random_graph(30)
    nodes = tuple((k,) for k in range(30))
    wide = Part(nodes, Fraction(1), 0, 0, cuts=np.arange(30).reshape(1, 30))
    with pytest.raises(InvalidInputError, match="a cut of more than 16 nodes"):
        verify(graph, alone_in(30), Certificate(30, (wide,)))


# --- wrong numbers and wrong types -----------------------------------------------------------


def change(path: str, value: Any) -> Callable[[Document], None]:
    def apply(document: Document) -> None:
        *parents, last = [int(key) if key.isdigit() else key for key in path.split(".")]
        place: Any = document
        for key in parents:
            place = place[key]
        place[last] = value

    return apply


HUGE = 10**400
STAGE = {"bits": 0, "rows": [], "values": []}
WRONG = {
    "link out of range": change("must_link", [[0, 7]]),
    "negative link": change("cannot_link", [[-1, 0]]),
    "link of one": change("must_link", [[0]]),
    "link to oneself": change("must_link", [[1, 1]]),
    "huge link": change("cannot_link", [[0, HUGE]]),
    "links of words": change("must_link", [["ann", "bob"]]),
    "links as a number": change("must_link", 3),
    "huge number of players": change("players", HUGE),
    "true players": change("players", True),
    "huge value": change("parts.0.value", HUGE),
    "huge negative bound": change("parts.0.bound", -HUGE),
    "fractional bound": change("parts.0.bound", 5.0),
    "bound of words": change("parts.0.bound", "5"),
    "no bound": change("parts.0.bound", None),
    "huge unit": change("parts.0.unit", [HUGE, 1]),
    "tiny unit": change("parts.0.unit", [1, HUGE]),
    "unit of nothing": change("parts.0.unit", [0, 1]),
    "unit by zero": change("parts.0.unit", [1, 0]),
    "unit of three": change("parts.0.unit", [1, 1, 1]),
    "huge node": change("parts.0.nodes", [[0], [HUGE]]),
    "empty node": change("parts.0.nodes", [[0, 1], []]),
    "node twice": change("parts.0.nodes", [[0], [0]]),
    "two nodes in one": change("parts.0.nodes", [[0, 1]]),
    "nodes as an object": change("parts.0.nodes", {"0": 0}),
    "huge triangle": change("parts.0.triangles", [[0, 1, HUGE]]),
    "long triangle": change("parts.0.triangles", [[0, 1, 1, 0]]),
    "triangle of words": change("parts.0.triangles", [["0", "1", "2"]]),
    "triangle out of range": change("parts.0.triangles", [[0, 1, 2]]),
    "huge cut": change("parts.0.cuts", [[0, HUGE]]),
    "negative cut": change("parts.0.cuts", [[0, -1]]),
    "cut of one": change("parts.0.cuts", [[0]]),
    "cut as a word": change("parts.0.cuts", ["01"]),
    "merger out of range": change("parts.0.merges", [[0, HUGE]]),
    "merger with oneself": change("parts.0.merges", [[0, 0]]),
    "merger twice": change("parts.0.merges", [[0, 1], [0, 1]]),
    "tree as a number": change("parts.0.tree", 1),
    "branch as a list": change("parts.0.tree", [[]]),
    "branch without stages": change("parts.0.tree", [{}]),
    "pair without cases": change("parts.0.tree", [{"stages": [], "pair": [0, 1]}]),
    "huge case": change("parts.0.tree", [split(0, 1, 1, HUGE)]),
    "stage as a number": change("parts.0.tree.0.stages", [1]),
    "huge bits": change("parts.0.tree.0.stages", [{**STAGE, "bits": HUGE}]),
    "negative bits": change("parts.0.tree.0.stages", [{**STAGE, "bits": -1}]),
    "huge row": change("parts.0.tree.0.stages", [{**STAGE, "rows": [HUGE], "values": [1]}]),
    "row out of range": change("parts.0.tree.0.stages", [{**STAGE, "rows": [0], "values": [1]}]),
    "huge multiplier": change("parts.0.tree.0.stages", [{**STAGE, "rows": [0], "values": [HUGE]}]),
    "more rows than values": change("parts.0.tree.0.stages", [{**STAGE, "rows": [0]}]),
    "not a number": change("parts.0.tree.0.stages", [{**STAGE, "values": [float("nan")]}]),
    "a part as a number": change("parts", [1]),
    "parts as text": change("parts", "parts"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_numbers_and_types_get_one_sentence(wrong):
    document = copy.deepcopy(PROOF)
    WRONG[wrong](document)
    with pytest.raises(InvalidInputError) as error:
        verify(PAIR, TOGETHER, Certificate.from_json(document))
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        (json.dumps(PROOF).replace('"bound": 5', '"bound": ' + "9" * 5000), "4300 digits"),
        ("{", "not valid JSON"),
        ("\x00", "not valid JSON"),
    ],
)
def test_files_that_are_no_json_get_one_sentence(tmp_path, text, complaint):
    PAIR.write(tmp_path / "g.csv")
    solution = {"coalitions": [["ann", "bob"]], "value": 5, "bound": 5}
    (tmp_path / "s.json").write_text(json.dumps(solution))
    (tmp_path / "odd.json").write_text(text)
    with pytest.raises(InvalidInputError, match=complaint):
        verify_command(str(tmp_path / "g.csv"), tmp_path / "s.json", tmp_path / "odd.json")
    with pytest.raises(InvalidInputError, match=complaint):
        verify_command(str(tmp_path / "g.csv"), tmp_path / "odd.json")
    with pytest.raises(InvalidInputError, match="cannot read"):
        Certificate.read(tmp_path)


@pytest.mark.parametrize("key", ["value", "bound"])
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "true", "null", '"5"'])
def test_a_solution_must_claim_finite_numbers(tmp_path, key, number):
    PAIR.write(tmp_path / "g.csv")
    (tmp_path / "c.json").write_text(json.dumps(PROOF))
    (tmp_path / "s.json").write_text(f'{{"coalitions": [["ann", "bob"]], "{key}": {number}}}')
    with pytest.raises(InvalidInputError, match=f'"{key}" is .*; it must be a finite number'):
        verify_command(str(tmp_path / "g.csv"), tmp_path / "s.json", tmp_path / "c.json")


def test_the_command_line_says_one_sentence_and_ends_with_2(tmp_path):
    PAIR.write(tmp_path / "g.csv")
    (tmp_path / "c.json").write_text(json.dumps({**PROOF, "must_link": [[0, 7]]}))
    text = f'{{"coalitions": [["ann", "bob"]], "value": {10**400}}}'
    (tmp_path / "huge.json").write_text(text)
    (tmp_path / "s.json").write_text('{"coalitions": [["ann", "bob"]]}')
    for arguments, sentence in (
        (("huge.json",), "it must be a finite number"),
        (("s.json", "--certificate", "c.json"), "must_link names a player that is not there"),
    ):
        result = coalitions("verify", "g.csv", *arguments, cwd=tmp_path)
        assert result.returncode == 2, result.stderr
        assert result.stdout == ""
        assert len(result.stderr.strip().splitlines()) == 1
        assert sentence in result.stderr


def test_weights_beyond_the_floats_are_refused_in_a_sentence():
    graph = SynergyGraph(symmetric(np.full((4, 4), 1.5e308)))
    with pytest.raises(InvalidInputError, match="float"):
        verify(graph, CoalitionStructure([[0, 1, 2, 3]]))


# --- soundness -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_no_change_of_a_proof_with_demands_proves_too_little(seed):
    rng = np.random.default_rng(seed)
    graph = SynergyGraph(symmetric(rng.integers(-9, 10, (7, 7)) / 10))
    order = rng.permutation(7).tolist()
    demands = {"must_link": [order[:2]], "cannot_link": [order[2:4]]}
    solution = solve(graph, "branch-and-cut", certify=True, **demands)
    best = solve(graph, "brute-force", **demands).value
    honest = solution.certificate.to_json()
    assert verify(graph, solution.structure, solution.certificate, **demands).optimal
    places: list[tuple[Any, Any]] = []

    def collect(thing: Any) -> None:
        for key, value in thing.items() if isinstance(thing, dict) else enumerate(thing):
            if isinstance(value, int):
                places.append((thing, key))
            elif isinstance(value, dict | list):
                collect(value)

    for _ in range(40):
        forged = copy.deepcopy(honest)
        places.clear()
        collect(forged)
        for _ in range(int(rng.integers(1, 4))):
            container, key = places[rng.integers(len(places))]
            container[key] += int(rng.choice([-1, 1, 2, -7, 1000]))
        try:
            checked = verify(graph, solution.structure, Certificate.from_json(forged), **demands)
        except InvalidInputError:
            continue
        assert checked.bound >= best - 1e-12
