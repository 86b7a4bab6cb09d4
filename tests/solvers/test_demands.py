"""What people say about sizes, counts, loads and roles, and what is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from coalitions import (
    CoalitionStructure,
    InfeasibleError,
    InvalidInputError,
    SynergyGraph,
    partition_labels,
)
from solvers import Answer, Certificate, Limits, available, solve, verify
from solvers.demands import Contraction, Demands, Sizes
from solvers.search import _with_sizes

NAMES = ["ann", "bob", "cleo", "dan", "eve"]
ONE, TWO = np.triu_indices(5, 1)
GRAPH = SynergyGraph.from_edges(5, ONE, TWO, (5.0 * ONE + TWO) % 7 - 2, labels=NAMES)


def sizes_of(**demands: Any) -> Sizes:
    read = Demands.of(GRAPH, **demands)
    sizes = read.on_nodes(Contraction.apply(GRAPH, read))
    assert sizes is not None
    return sizes


def test_nothing_demanded_is_nothing() -> None:
    assert Demands.of(GRAPH).on_nodes(Contraction.apply(GRAPH)) is None


def test_every_figure_follows_from_what_was_said() -> None:
    sizes = sizes_of(max_size=2)
    assert (sizes.min_size, sizes.max_size, sizes.fewest, sizes.most) == (1, 2, 3, 5)
    sizes = sizes_of(n_groups=(1, 2), min_size=2)
    assert (sizes.min_size, sizes.max_size, sizes.fewest, sizes.most) == (2, 5, 1, 2)


class Unsearched(tuple[str, ...]):
    """Names that nobody goes through once for each player."""

    def index(self, *_: object) -> int:
        raise AssertionError("that takes as many steps as players, for each of them")

    __contains__ = index  # type: ignore[assignment]


@dataclass
class Whose:
    labels: Sequence[str]


def test_many_players_are_found_by_name_without_a_search_for_each() -> None:
    whose = Whose(Unsearched(NAMES))
    loads = {name: load for load, name in enumerate(NAMES)}
    assert Demands.of(whose, weights=loads, max_weight=9).loads == (0, 1, 2, 3, 4)
    assert Demands.of(whose, at_least_one_of=[["bob", "eve"]]).roles == ((1, 4),)


def test_loads_are_added_as_they_are_written() -> None:
    sizes = sizes_of(weights=[0.1, 0.1, 0.1, 0.2, 0.3], max_weight=0.3)
    assert sizes.loads.tolist() == [1, 1, 1, 2, 3]
    assert (sizes.max_load, sizes.fewest) == (3, 3)
    assert sizes.met_by(np.array([0, 0, 0, 1, 2]))
    assert not sizes.met_by(np.array([0, 0, 0, 0, 2]))


def test_a_role_limits_the_number_of_coalitions() -> None:
    sizes = sizes_of(at_least_one_of=[["ann", 1]])
    assert (sizes.roles, sizes.most) == (((0, 1),), 2)
    assert sizes.met_by(np.array([0, 1, 0, 1, 1]))
    assert not sizes.met_by(np.array([0, 0, 0, 1, 1]))


def test_who_must_be_together_counts_as_one_node() -> None:
    weights = {"ann": 1, "bob": 2, "cleo": 3, "dan": 4, "eve": 5}
    sizes = sizes_of(
        must_link=[(0, 2)],
        cannot_link=[(1, 2)],
        weights=weights,
        max_weight=9,
        at_least_one_of=[["cleo", "eve"]],
    )
    assert sizes.players.tolist() == [2, 1, 1, 1]
    assert sizes.loads.tolist() == [4, 2, 4, 5]
    assert (sizes.roles, sizes.apart) == (((0, 3),), ((1, 0),))


@pytest.mark.parametrize(
    ("demands", "sentence"),
    [
        ({"n_groups": 0}, "n_groups is 0"),
        ({"n_groups": (3, 2)}, "the least and the largest"),
        ({"n_groups": (1, 2, 3)}, "the least and the largest"),
        ({"max_size": 2.5}, "max_size is 2.5"),
        ({"min_size": 0}, "min_size is 0"),
        ({"weights": [1] * 5}, "weights is given alone; max_weight is needed"),
        ({"max_weight": 3}, "max_weight is given alone; weights is needed"),
        ({"weights": [1] * 4, "max_weight": 3}, "4 numbers; there are 5 players"),
        ({"weights": [1, 1, -1, 1, 1], "max_weight": 3}, "the weight of 'cleo' is -1"),
        ({"weights": [1, 1, float("nan"), 1, 1], "max_weight": 3}, "the weight of 'cleo' is nan"),
        ({"weights": [1] * 5, "max_weight": float("inf")}, "max_weight is inf"),
        ({"weights": {"ann": 1}, "max_weight": 3}, "weights has none for 'bob'"),
        ({"weights": {"zoe": 1}, "max_weight": 3}, "weights names 'zoe', who is not a player"),
        ({"at_least_one_of": ["ann"]}, "not the single name 'ann'"),
        ({"at_least_one_of": [[]]}, "an empty set"),
        ({"at_least_one_of": [["zoe"]]}, "at_least_one_of names 'zoe'"),
        ({"at_least_one_of": [[9]]}, "at_least_one_of names player 9"),
        ({"at_least_one_of": [[True]]}, "at_least_one_of names True, who is not a player"),
    ],
)
def test_what_makes_no_sense_is_said(demands: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInputError, match=sentence):
        solve(GRAPH, **demands)


@pytest.mark.parametrize(
    ("demands", "sentence"),
    [
        ({"weights": [1, 9, 1, 1, 1], "max_weight": 8}, "the weight of bob is above"),
        ({"weights": [3] * 5, "max_weight": 5, "max_size": 5, "n_groups": 2}, "make 3 to 5"),
        ({"at_least_one_of": [["ann"]], "max_size": 4}, "only 1 can have one of ann"),
        ({"weights": [3] * 5, "max_weight": 5, "min_size": 2}, "max_weight asks for at least 3"),
    ],
)
def test_what_cannot_be_met_is_said(demands: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InfeasibleError, match=sentence):
        solve(GRAPH, **demands)


@pytest.mark.parametrize("solver", ["brute-force", "highs", "cbc", "cp-sat"])
def test_loads_and_roles_shape_the_answer(solver: str) -> None:
    options = {} if solver == "brute-force" else {"formulation": "full"}
    demands: dict[str, Any] = {
        "weights": [2, 1, 1, 2, 1],
        "max_weight": 4,
        "at_least_one_of": [["ann", "dan"]],
        "n_groups": (1, 2),
    }
    solution = solve(GRAPH, solver, **demands, **options)
    assert solution.optimal
    assert solution.value == solve(GRAPH, "brute-force", **demands).value
    assert sizes_of(**demands).met_by(solution.structure.labels)


def test_a_solution_remembers_what_was_demanded_and_verify_repeats_it() -> None:
    demands = {"max_size": 2, "weights": np.ones(5), "max_weight": 2.0}
    found = solve(GRAPH, certificate=True, **demands)
    assert found.sizes == {**demands, "weights": [1.0] * 5}
    assert verify(GRAPH, found.structure, found.certificate, **found.sizes).optimal
    assert solve(GRAPH).sizes == {}
    best, *others = solve(GRAPH, n_best=2, max_size=3, at_least_one_of=[["ann", "bob"]]).others
    assert best.sizes == {"max_size": 3, "at_least_one_of": (("ann", "bob"),)}
    assert not others


@pytest.mark.parametrize("bounds", [(7.0, 9.0), (9.0, 7.0), (8.0, 8.0)])
def test_of_two_searches_the_lower_bound_comes_with_its_own_certificate(
    bounds: tuple[float, float],
) -> None:
    """Sizes force a hopeless pair together, so that it is searched twice."""
    graph = SynergyGraph([[0, 4, 1], [4, 0, -9999], [1, -9999, 0]])
    proofs = [Certificate(3, ()), Certificate(3, ())]
    calls = iter(zip(bounds, proofs, strict=True))

    def call(*_: object) -> Answer:
        bound, proof = next(calls)
        return Answer(np.zeros(3, np.int64), bound, prove=lambda: proof)

    sizes = Sizes(np.ones(3, np.int64), 3, 3, 1, 1)
    answer = _with_sizes(Contraction.apply(graph), call, Limits(deadline=0.0), None, sizes)
    assert next(calls, None) is None
    assert answer.bound == min(bounds)
    assert answer.certificate is proofs[0 if bounds[0] < bounds[1] else 1]


def fits(loads: list[float], most: float) -> bool:
    """Tell whether all players may be in one coalition, which all of them want."""
    n = len(loads)
    together = SynergyGraph(np.ones((n, n)) - np.eye(n))
    solution = solve(together, weights=loads, max_weight=most, certificate=True)
    checked = verify(together, solution.structure, solution.certificate, **solution.sizes)
    assert solution.optimal
    assert checked.optimal
    if len(solution.structure) > 1:
        with pytest.raises(InvalidInputError, match="weighs"):
            verify(together, [range(n)], solution.certificate, **solution.sizes)
    return len(solution.structure) == 1


def test_loads_of_sixteen_digits_count_as_they_are_written_but_for_roundings() -> None:
    assert fits([1 / 3] * 3, 1.0)
    assert fits([0.1 + 0.2, 0.3], 0.6)  # 0.30000000000000004
    assert fits([1.1] * 3, 1.1 + 1.1 + 1.1)
    assert fits([1e-300, 1.0, 2.0], 3.0)
    assert not fits([1 / 3, 1 / 3, 1 / 3 + 1e-11], 1.0)
    assert not fits([1e300, 1e300], 1.5e300)
    assert fits([0.0, 0.0], 0.0)
    # Whole numbers and decimals of a usual length are exact.
    assert not fits([10**10, 10**10 + 1], 2 * 10**10)
    assert fits([10**10, 10**10 - 1], 2 * 10**10)
    assert not fits([0.1, 0.1, 0.1000000001], 0.3)


@pytest.mark.parametrize("name", ["branch-and-price", "brute-force", "highs", "cp-sat"])
def test_the_best_teams_with_odd_loads(name: str) -> None:
    if isinstance(available()[name], str):
        pytest.skip(f"{name} is not installed")
    options = {"formulation": "full"} if name in ("highs", "cp-sat") else {}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        upper = np.triu(rng.normal(0.5, 1, (6, 6)), 1)
        graph, loads = SynergyGraph(upper + upper.T), rng.random(6)
        solution = solve(graph, name, weights=list(loads), max_weight=1.5, **options)
        assert solution.optimal
        best = max(
            graph.value(structure)
            for labels in partition_labels(6)
            for structure in [CoalitionStructure.from_labels(labels)]
            if max(np.bincount(structure.labels, loads)) <= 1.5
        )
        assert solution.value == best
