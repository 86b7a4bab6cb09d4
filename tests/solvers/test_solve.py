from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csgraph

from coalitions import (
    CoalitionStructure,
    InfeasibleError,
    InvalidInputError,
    MissingDependencyError,
    NoSolutionError,
    SynergyGraph,
    UnknownNameError,
)
from solvers import Answer, Certificate, Solution, Solver, available, solve, verify
from solvers.backends.brute_force import BruteForce
from solvers.branch_and_cut.branch_and_cut import BranchAndCut
from solvers.reductions import components
from solvers.solver import is_ctrl_c
from tests.reliability.exact import all_labels
from tests.strategies import synergy_graphs

PAIR = [[0.0, 1.0], [1.0, 0.0]]


@given(graph=synergy_graphs())
def test_brute_force_is_the_best_of_all_partitions(graph):
    values = [
        graph.value(CoalitionStructure.from_labels(labels))
        for labels in all_labels(graph.n_players)
    ]
    assert solve(graph, "brute-force").value == pytest.approx(max(values), rel=1e-12)


def test_gap_and_optimal_follow_from_value_and_bound():
    def solution(value, bound, gains=10.0):
        return Solution(CoalitionStructure([[0]]), value, bound, gains, 0.0, "test")

    assert solution(4.0, 5.0).gap == 0.2
    assert solution(0.0, 0.0).gap == 0.0
    assert solution(5.0, 5.0 + 9e-9).optimal
    assert not solution(5.0, 5.0 + 2e-8).optimal
    # No absolute floor: where little can be gained, little may be missed.
    assert not solution(0.0, 1e-9, gains=1e-9).optimal
    assert solution(0.0, 1e-18, gains=1e-9).optimal
    assert solution(0.0, 0.0, gains=0.0).optimal
    assert not solution(0.0, 5e-324, gains=0.0).optimal


def test_a_solver_that_claims_too_small_a_bound_is_found_out():
    class Liar(BruteForce):
        def search(self, graph, *, limits, warm_start=None, sizes=None):
            return Answer(np.zeros(graph.n_players, np.int64), bound=0.0)

    with pytest.raises(NoSolutionError, match=r"Liar claims the bound 0\.0, but its structure"):
        solve([[0, 2, -1], [2, 0, 1], [-1, 1, 0]], Liar())


def test_a_solver_object_is_as_good_as_a_name():
    assert solve(PAIR, BruteForce()).value == 1.0
    with pytest.raises(InvalidInputError, match="go with a solver's name"):
        solve(PAIR, BruteForce(), formulation="full")
    assert isinstance(BruteForce(), Solver)


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"solver": "hihgs"}, UnknownNameError, "did you mean 'highs'"),
        ({"time_limit": -1}, InvalidInputError, "time_limit is -1; it must be a positive"),
        ({"time_limit": float("nan")}, InvalidInputError, "must be a positive"),
        ({"gap": 1.0}, InvalidInputError, "gap is 1.0"),
        ({"threads": 0}, InvalidInputError, "threads is 0"),
        ({"solver": "highs", "formulation": "half"}, InvalidInputError, "rp-star or full"),
        ({"solver": "highs", "colour": 1}, InvalidInputError, "'colour'; it takes formulation"),
        ({"solver": "brute-force", "x": 1}, TypeError, "brute-force has no argument 'x'"),
        (
            {"warm_start": CoalitionStructure([[0]])},
            InvalidInputError,
            "the structure has 1 players, the graph 2",
        ),
        ({"must_link": [(0, 2)]}, InvalidInputError, "must_link names player 2"),
        ({"must_link": [(0, 0)]}, InvalidInputError, "two or more different players"),
        ({"min_size": 0}, InvalidInputError, "min_size is 0"),
        ({"min_size": 3}, InfeasibleError, "only 2 players"),
        ({"min_size": 2, "max_size": 1}, InfeasibleError, "larger than max_size"),
        ({"n_groups": 3}, InfeasibleError, "make 1 to 2 coalitions, but n_groups is 3"),
        ({"must_link": [(0, 1)], "cannot_link": [(1, 0)]}, InfeasibleError, "drop one of the two"),
        ({"must_link": [(0, 1)], "max_size": 1}, InfeasibleError, "makes a group of 2 players"),
        ({"solver": "highs", "n_groups": 2}, InvalidInputError, "cannot honour sizes, counts"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        solve(PAIR, **arguments)


def test_a_solver_that_is_not_installed_says_so():
    if available()["gurobi"] is True:
        pytest.skip("gurobipy is installed here")
    with pytest.raises(MissingDependencyError, match="gurobipy is not installed"):
        solve(PAIR, "gurobi")


@settings(max_examples=30)
@given(
    graph=synergy_graphs(min_players=2, max_players=6, scales=(1.0,)),
    n_groups=st.none() | st.integers(1, 4),
    min_size=st.none() | st.integers(1, 3),
    max_size=st.none() | st.integers(1, 4),
    must_link=st.lists(st.sampled_from(list(itertools.combinations(range(2), 2))), max_size=1),
)
def test_sizes_are_kept_and_the_best_such_structure_is_found(
    graph, n_groups, min_size, max_size, must_link
):
    demands = {"n_groups": n_groups, "min_size": min_size, "max_size": max_size}
    allowed = []
    for labels in all_labels(graph.n_players):
        structure = CoalitionStructure.from_labels(labels)
        sizes = [len(block) for block in structure]
        if (
            (n_groups is None or len(structure) == n_groups)
            and (min_size is None or min(sizes) >= min_size)
            and (max_size is None or max(sizes) <= max_size)
            and all(labels[a] == labels[b] for a, b in must_link)
        ):
            allowed.append(graph.value(structure))
    ways = [("brute-force", {})] + [
        (name, {"formulation": "full"}) for name in ("highs", "cbc", "cp-sat")
    ]
    for name, options in ways:
        if not allowed:
            with pytest.raises(InfeasibleError):
                solve(graph, name, must_link=must_link, **demands, **options)
            continue
        if all(demand is None for demand in demands.values()) and name != "brute-force":
            options = {}
        solution = solve(graph, name, must_link=must_link, **demands, **options)
        assert solution.value == pytest.approx(max(allowed), abs=1e-9)
        assert solution.optimal


def test_a_model_that_will_not_fit_is_refused_before_it_is_built():
    n = 400
    graph = SynergyGraph(
        np.ones((n, n)) - np.eye(n) - 1.5 * np.tri(n, k=-200) - 1.5 * np.tri(n, k=-200).T
    )
    with pytest.raises(InvalidInputError, match=r"rows .* use the solver branch-and-cut"):
        solve(graph, "highs", formulation="full")


def test_progress_of_components_adds_up():
    seen = []

    class Chatty(BruteForce):
        def search(self, graph, *, limits, warm_start=None, sizes=None):
            from solvers.solver import SearchProgress

            answer = super().search(graph, limits=limits)
            limits.report(SearchProgress(value=1.0, bound=answer.bound, seconds=0.0))
            return answer

    block = np.array([[0, 2, 1], [2, 0, -1], [1, -1, 0]], float)
    matrix = np.kron(np.eye(2), block)
    solve(SynergyGraph(matrix), Chatty(), progress=seen.append)
    assert [step.value for step in seen] == [1.0, 3.0]  # the first piece ended at 2
    assert [step.bound for step in seen] == [2.0 + 3.0, 2.0 + 2.0]


@settings(max_examples=60)
@given(data=st.data())
def test_certificates_survive_links_components_and_scaling(data):
    graph = data.draw(synergy_graphs(min_players=3, max_players=8))
    pairs = st.sampled_from(list(itertools.combinations(range(graph.n_players), 2)))
    must = data.draw(st.lists(pairs, max_size=2))
    cannot = data.draw(st.lists(pairs, max_size=2))
    try:
        solution = solve(graph, "branch-and-cut", must_link=must, cannot_link=cannot)
    except InfeasibleError:
        return
    assert solution.certificate is not None
    back = Certificate.from_json(json.loads(json.dumps(solution.certificate.to_json())))
    demands = {"must_link": must, "cannot_link": cannot}
    checked = verify(graph, solution.structure, back, **demands)
    assert checked.optimal
    assert checked.value == solution.value
    reference = solve(graph, "brute-force", must_link=must, cannot_link=cannot)
    slack = 1e-9 * np.abs(graph.edges.weight).sum()
    assert checked.bound >= reference.value - slack
    alone = CoalitionStructure.singletons(graph.n_players)
    if must or graph.value(solution.structure) > 1e-8 * max(1.0, np.abs(graph.matrix).sum()):
        with pytest.raises(InvalidInputError, match="refused"):
            verify(graph, alone, back, **demands)


def test_only_branch_and_cut_gives_a_certificate():
    assert solve(PAIR, "highs").certificate is None
    alone = solve([[0.0, -1.0], [-1.0, 0.0]], "branch-and-cut")
    assert verify(
        SynergyGraph([[0.0, -1.0], [-1.0, 0.0]]), alone.structure, alone.certificate
    ).optimal


def test_ctrl_c_stops_all_components_and_keeps_the_best_so_far():
    rng = np.random.default_rng(0)
    blocks = [np.triu(rng.normal(size=(12, 12)), 1) for _ in range(3)]
    matrix = np.zeros((36, 36))
    for k, block in enumerate(blocks):
        matrix[12 * k : 12 * k + 12, 12 * k : 12 * k + 12] = block + block.T
    calls = []

    class Interrupted(BruteForce):
        def search(self, graph, *, limits, warm_start=None, sizes=None):
            calls.append(limits.expired)
            limits.interrupted.set()
            return super().search(graph, limits=limits)

    solution = solve(SynergyGraph(matrix), Interrupted())
    assert solution.stats["interrupted"] is True
    assert calls[0] is False
    assert all(calls[1:])


@given(data=st.data())
def test_components_are_those_of_scipy(data):
    n = data.draw(st.integers(1, 12))
    ends = st.integers(0, n - 1)
    links = data.draw(st.lists(st.tuples(ends, ends), max_size=15))
    i, j = np.array(links, np.int64).reshape(-1, 2).T
    adjacency = sparse.coo_array((np.ones(len(i)), (i, j)), shape=(n, n))
    labels = csgraph.connected_components(adjacency, directed=False)[1]
    assert np.array_equal(components(n, i, j), labels)


def test_components_of_a_long_path():
    order = np.random.default_rng(0).permutation(5000)
    assert not components(5000, order[:-1], order[1:]).any()


def test_ctrl_c_inside_a_compiled_function_is_known_as_such():
    wrapped = SystemError("a compiled function returned a result with an exception set")
    assert not is_ctrl_c(wrapped)
    wrapped.__cause__ = KeyboardInterrupt()
    assert is_ctrl_c(wrapped)
    assert is_ctrl_c(KeyboardInterrupt())


def test_a_demanded_certificate_is_made_on_the_way():
    rng = np.random.default_rng(4)
    upper = np.triu(rng.integers(-9, 10, (20, 20)), 1).astype(float)
    graph = SynergyGraph(upper + upper.T)
    assert solve(graph).stats["steps"] == 0  # a short cut, which leaves nothing to check
    solution = solve(graph, certificate=True)
    assert solution.stats["steps"] > 0
    assert verify(graph, solution.structure, solution.certificate).optimal


class NeverAsked(BruteForce):
    def search(self, graph, *, limits, warm_start=None, sizes=None):
        pytest.fail("the search began")


@pytest.mark.parametrize(
    ("solver", "demands", "sentence"),
    [
        (NeverAsked(), {}, "NeverAsked gives no certificate; use branch-and-cut"),
        ("greedy", {}, "greedy gives no certificate; use branch-and-cut"),
        (NeverAsked(), {"max_size": 2}, "NeverAsked gives no certificate for sizes"),
        ("highs", {"n_groups": 2}, "highs gives no certificate for sizes"),
        ("branch-and-cut", {"min_size": 2}, "certificate for sizes, .* use branch-and-price"),
    ],
)
def test_who_gives_no_certificate_is_refused_before_the_search(solver, demands, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        solve([[0, 2, -1], [2, 0, 1], [-1, 1, 0]], solver, certificate=True, **demands)


def test_auto_chooses_who_certifies_on_the_graph_that_is_solved(monkeypatch):
    monkeypatch.setattr("solvers.search.EXACT_LIMIT", 3)
    graph = SynergyGraph([[0, 2, -1, 1], [2, 0, 1, -1], [-1, 1, 0, 1], [1, -1, 1, 0]])
    with pytest.raises(InvalidInputError, match="auto takes local-search for so many players"):
        solve(graph, certificate=True)
    one_node_less = {"must_link": [(0, 1)]}
    solution = solve(graph, certificate=True, **one_node_less)
    assert solution.solver == "branch-and-cut"
    assert verify(graph, solution.structure, solution.certificate, **one_node_less).optimal


@pytest.mark.parametrize("certificate", [False, True])
def test_a_component_without_negative_edges_is_searched_only_for_its_proof(certificate):
    asked = []

    class Counting(BranchAndCut):
        def search(self, graph, *, limits, warm_start=None, sizes=None):
            asked.append(graph.n_players)
            return super().search(graph, limits=limits, warm_start=warm_start)

    matrix = np.zeros((5, 5))
    matrix[:2, :2] = [[0, 1], [1, 0]]
    matrix[2:, 2:] = [[0, 2, -1], [2, 0, 1], [-1, 1, 0]]
    solution = solve(matrix, Counting(), certificate=certificate)
    assert asked == [3]
    assert verify(SynergyGraph(matrix), solution.structure, solution.certificate).optimal
    assert asked == [3, 2]


def test_the_smallest_graphs_say_why_nothing_is_possible():
    apart = [(0, 1), (0, 2), (1, 2)]
    with pytest.raises(InfeasibleError, match="3 players must all be apart"):
        solve(np.ones((4, 4)) - np.eye(4), cannot_link=apart, n_groups=2)


@pytest.mark.parametrize("solver", ["cbc", "cp-sat", "highs"])
def test_a_back_end_that_proves_there_is_nothing_says_so(solver, monkeypatch):
    # Three players who must be apart from each other do not fit two coalitions. The heuristic it
    # begins with would notice, too.
    monkeypatch.setattr("solvers.heuristics.sized_search.first_structure", lambda sizes, **_: None)
    apart = [(0, 1), (0, 2), (1, 2)]
    graph = np.ones((4, 4)) - np.eye(4)
    with pytest.raises(InfeasibleError, match="no structure meets the demands"):
        solve(graph, solver, formulation="full", cannot_link=apart, n_groups=2)
