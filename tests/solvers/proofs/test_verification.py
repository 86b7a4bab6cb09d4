"""Certificates: they survive a file, they convince, and tampering is found out."""

from __future__ import annotations

import copy
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from coalitions import CoalitionStructure, InvalidInputError, SynergyGraph
from solvers import SOLVERS, Certificate, Limits, solve, verify
from solvers.proofs.certificate import Branch, Part


def noisy(n: int, seed: int, mean: float = 0.05) -> np.ndarray:
    rng = np.random.default_rng(seed)
    upper = np.triu(np.rint(100 * rng.normal(mean, 0.5, (n, n))), 1)
    return upper + upper.T


@pytest.fixture(scope="module")
def solved() -> tuple[SynergyGraph, CoalitionStructure, dict[str, Any]]:
    """A graph that needs pegging, cuts and branching, with its solution."""
    for seed in range(50):
        graph = SynergyGraph(noisy(26, seed))
        answer = SOLVERS["branch-and-cut"]().search(graph, limits=Limits())
        document = answer.certificate.to_json()
        part = document["parts"][0]
        if len(part["tree"]) > 1 and part["cuts"]:
            return graph, CoalitionStructure.from_labels(answer.labels), document
    raise AssertionError("no graph among fifty needed branching")


def test_certificate_survives_a_file(solved, tmp_path):
    graph, structure, document = solved
    Certificate.from_json(document).write(tmp_path / "proof.json")
    assert [p.name for p in tmp_path.iterdir()] == ["proof.json"]
    again = Certificate.read(tmp_path / "proof.json")
    assert again.to_json() == document
    checked = verify(graph, structure, again)
    assert checked.optimal
    assert checked.bound == checked.value == graph.value(structure)


def test_without_certificate_only_the_value_is_checked(solved):
    graph, structure, _ = solved
    checked = verify(graph, structure)
    assert (checked.value, checked.bound, checked.optimal) == (graph.value(structure), None, None)


def part(document: dict[str, Any]) -> dict[str, Any]:
    return document["parts"][0]


def leaf(document: dict[str, Any]) -> dict[str, Any]:
    return next(b for b in part(document)["tree"] if "pair" not in b and b["stages"])


def inner(document: dict[str, Any]) -> dict[str, Any]:
    return next(b for b in part(document)["tree"] if "pair" in b)


def lower_bound(d: dict[str, Any]) -> None:
    part(d)["bound"] -= 1


def no_multipliers(d: dict[str, Any]) -> None:
    for branch in part(d)["tree"]:
        branch["stages"] = []


def weaker_multipliers(d: dict[str, Any]) -> None:
    for branch in part(d)["tree"]:
        for stage in branch["stages"]:
            stage["values"] = [y // 2 for y in stage["values"]]


def negative_multiplier(d: dict[str, Any]) -> None:
    leaf(d)["stages"][0]["values"][0] = -5


def lost_case(d: dict[str, Any]) -> None:
    branch = inner(d)
    branch["apart"] = branch["together"]


def open_leaf(d: dict[str, Any]) -> None:
    leaf(d)["stages"] = []


def circular_tree(d: dict[str, Any]) -> None:
    inner(d)["together"] = 0


def false_inequality(d: dict[str, Any]) -> None:
    part(d)["triangles"][0] = [0, 1, 1]


def false_cut(d: dict[str, Any]) -> None:
    part(d)["cuts"][0][1] = part(d)["cuts"][0][0]


def false_merger(d: dict[str, Any]) -> None:
    part(d)["merges"].insert(0, [0, 1])


def strange_player(d: dict[str, Any]) -> None:
    part(d)["nodes"][0] = [99]


def player_twice(d: dict[str, Any]) -> None:
    part(d)["nodes"][0] = part(d)["nodes"][1]


def lost_player(d: dict[str, Any]) -> None:
    d["parts"] = []


def coarse_unit(d: dict[str, Any]) -> None:
    part(d)["unit"] = [1000, 1]


def negative_unit(d: dict[str, Any]) -> None:
    part(d)["unit"] = [-1, 1]


def row_out_of_range(d: dict[str, Any]) -> None:
    leaf(d)["stages"][0]["rows"][0] = 10**9


def forced_link(d: dict[str, Any]) -> None:
    d["cannot_link"] = [[0, 1]]
    d["must_link"] = [[0, 1]]


@pytest.mark.parametrize(
    "tamper",
    [
        lower_bound,
        no_multipliers,
        weaker_multipliers,
        negative_multiplier,
        lost_case,
        open_leaf,
        circular_tree,
        false_inequality,
        false_cut,
        false_merger,
        strange_player,
        player_twice,
        lost_player,
        coarse_unit,
        negative_unit,
        row_out_of_range,
        forced_link,
    ],
)
def test_tampered_certificate_is_refused(solved, tamper: Callable[[dict[str, Any]], None]):
    graph, structure, document = solved
    forged = copy.deepcopy(document)
    tamper(forged)
    with pytest.raises(InvalidInputError, match="certificate is refused"):
        verify(graph, structure, Certificate.from_json(forged))


def test_tampered_structure_is_refused(solved):
    graph, structure, document = solved
    blocks = [list(block) for block in structure.coalitions]
    largest = max(blocks, key=len)
    blocks.append([largest.pop()])
    with pytest.raises(InvalidInputError, match="made for a structure worth more"):
        verify(graph, CoalitionStructure(blocks), Certificate.from_json(document))


def test_certificate_of_another_graph_is_refused(solved):
    graph, structure, document = solved
    better = graph.matrix.copy()
    pairs = np.argwhere(np.triu(structure.labels[:, None] != structure.labels[None, :], 1))
    for i, j in pairs:
        better[i, j] = better[j, i] = better[i, j] + 50
    with pytest.raises(InvalidInputError, match="certificate is refused"):
        verify(SynergyGraph(better), structure, Certificate.from_json(document))


@pytest.mark.parametrize("number", range(40))
def test_every_change_of_one_number_is_harmless_or_refused(solved, number):
    # A forged proof may still be a proof; it must never prove less than the truth.
    graph, structure, document = solved
    rng = np.random.default_rng(number)
    forged = copy.deepcopy(document)
    places: list[tuple[Any, Any]] = []

    def collect(thing: Any) -> None:
        for key, value in thing.items() if isinstance(thing, dict) else enumerate(thing):
            if isinstance(value, int):
                places.append((thing, key))
            elif isinstance(value, dict | list):
                collect(value)

    collect(forged["parts"])
    container, key = places[rng.integers(len(places))]
    container[key] += int(rng.choice([-1, 1, 7, -1000, 1000]))
    try:
        checked = verify(graph, structure, Certificate.from_json(forged))
    except InvalidInputError:
        return
    assert checked.bound >= graph.value(structure)


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"format": "something else"},
        {"format": "coalition-certificate", "version": 99},
        {"format": "coalition-certificate", "version": 1},
        {"format": "coalition-certificate", "version": 1, "players": "3", "parts": []},
        {
            "format": "coalition-certificate",
            "version": 1,
            "players": 3,
            "parts": [{"nodes": 3}],
            "must_link": [],
            "cannot_link": [],
        },
    ],
)
def test_what_is_no_certificate_is_refused(document):
    with pytest.raises(InvalidInputError):
        Certificate.from_json(document)


def test_unreadable_files_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="cannot read"):
        Certificate.read(tmp_path / "missing.json")
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(InvalidInputError, match="not valid JSON"):
        Certificate.read(tmp_path / "broken.json")


def five_cycle(
    stages: list[dict[str, Any]],
) -> tuple[SynergyGraph, CoalitionStructure, Certificate]:
    """Five players in a ring: neighbours gain 1, others lose 1, so two pairs are best."""
    matrix = -np.ones((5, 5)) + np.eye(5)
    for i in range(5):
        matrix[i, (i + 1) % 5] = matrix[(i + 1) % 5, i] = 1.0
    document = {
        "format": "coalition-certificate",
        "version": 1,
        "players": 5,
        "must_link": [],
        "cannot_link": [],
        "parts": [
            {
                "nodes": [[0], [1], [2], [3], [4]],
                "unit": [1, 1],
                "value": 2,
                "bound": 2,
                "merges": [],
                "triangles": [[i, (i + 1) % 5, (i - 1) % 5] for i in range(5)],
                "cuts": [],
                "tree": [{"stages": stages}],
            }
        ],
    }
    structure = CoalitionStructure([[0, 1], [2, 3], [4]])
    return SynergyGraph(matrix), structure, Certificate.from_json(document)


def test_hand_made_certificate_of_a_ring():
    # One half on each triangle of neighbours gives 5/2, so no whole number above 2 is possible.
    half = {"bits": 1, "rows": [0, 1, 2, 3, 4], "values": [1] * 5}
    checked = verify(*five_cycle([half]))
    assert (checked.value, checked.bound, checked.optimal) == (2.0, 2.0, True)


@pytest.mark.parametrize(
    "stages",
    [
        [],
        [{"bits": 1, "rows": [0, 1], "values": [1, 1]}],
        # In int64 these sums would wrap around to something small.
        [{"bits": 0, "rows": [0, 1, 2, 3, 4] * 4, "values": [2**61] * 20}],
        [{"bits": 64, "rows": [0], "values": [1]}],
    ],
)
def test_weak_multipliers_of_a_ring_prove_nothing(stages):
    with pytest.raises(InvalidInputError, match="leaves branch 0 open"):
        verify(*five_cycle(stages))


def test_components_and_demands_are_part_of_the_proof(rng):
    for seed in range(8):
        matrix = noisy(12, seed, -0.2)
        pairs = rng.permutation(12)[:6].reshape(3, 2).tolist()
        solution = solve(
            matrix, solver="branch-and-cut", must_link=pairs[:1], cannot_link=pairs[1:]
        )
        graph = SynergyGraph(matrix)
        checked = verify(
            graph,
            solution.structure,
            solution.certificate,
            must_link=pairs[:1],
            cannot_link=pairs[1:],
        )
        assert checked.optimal
        assert checked.bound == pytest.approx(solution.bound)
        reference = solve(matrix, solver="brute-force", must_link=pairs[:1], cannot_link=pairs[1:])
        assert solution.value == pytest.approx(reference.value)


def test_a_proof_for_a_demand_does_not_prove_more():
    # With 0 and 1 forbidden to meet, 3 is best; without the demand 5 is.
    matrix = [[0, 5, 0], [5, 0, 3], [0, 3, 0]]
    demanded = solve(matrix, solver="branch-and-cut", cannot_link=[(0, 1)])
    document = demanded.certificate.to_json()
    graph = SynergyGraph(matrix)
    checked = verify(graph, demanded.structure, demanded.certificate, cannot_link=[(0, 1)])
    assert checked.bound == 3.0
    document["cannot_link"] = []
    with pytest.raises(InvalidInputError, match="certificate is refused"):
        verify(graph, demanded.structure, Certificate.from_json(document))


def test_placed_moves_nodes_to_their_players():
    certificate = Certificate(2, (Part(((0,), (1,)), Fraction(1), 0, 0, tree=(Branch(),)),))
    assert certificate.placed([[4, 3], [1]], 6).parts[0].nodes == ((3, 4), (1,))
