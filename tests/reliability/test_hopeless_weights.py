"""Whoever writes −1e16 for "never", or counts in units of 1e-300, gets the best structure."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from coalitions import InfeasibleError, InvalidInputError, SynergyGraph
from solvers import SOLVERS, Certificate, solve, verify
from solvers.reductions import Conditioned
from tests.contracts.test_solvers import RUNNABLE, every_solver
from tests.reliability.exact import assert_honest, exact_optimum

NEVER = [[0, 3, -1e16], [3, 0, 2], [-1e16, 2, 0]]
SIZED = [name for name in RUNNABLE if name in ("brute-force", "highs", "cbc", "cp-sat")]


def random_graph(rng, n, magnitude=1.0, never=None, odd=False):
    weight = rng.normal(-0.2, 1, (n, n)) if odd else rng.integers(-3, 4, (n, n)).astype(float)
    weight = weight * magnitude
    if never is not None:
        weight[rng.random((n, n)) < 0.2] = -never
    upper = np.triu(weight, 1)
    return SynergyGraph(upper + upper.T)


def random_links(rng, n, turn):
    a, b, c, d = (int(player) for player in rng.permutation(n)[:4])
    must = [(a, b)] if turn % 3 == 1 else []
    cannot = [(c, d)] if turn % 3 else []
    return {"must_link": must, "cannot_link": cannot}


@every_solver
def test_never_as_minus_1e16_leaves_the_best_structure(name):
    solution = solve(NEVER, name)
    assert solution.structure.coalitions == ((0, 1), (2,))
    assert (solution.value, solution.bound) == (3.0, 3.0)


@every_solver
@pytest.mark.parametrize("never", [1e3, 1e9, 1e11, 1e12, 1e14, 1e16, 1e300])
def test_no_never_is_too_large(name, never, rng):
    for turn in range(4):
        graph = random_graph(rng, 7, never=never, odd=turn % 2 == 1)
        links = random_links(rng, 7, turn)
        solution = solve(graph, name, **links)
        assert_honest(graph, solution, exact_optimum(graph, **links), exact=SOLVERS[name].exact)


@every_solver
@pytest.mark.parametrize("magnitude", [1e-300, 1e-11, 1e-9, 1e9, 1e300, 5e-324])
def test_no_unit_is_too_small_or_too_large(name, magnitude, rng):
    for turn in range(4):
        graph = random_graph(rng, 6, magnitude, odd=turn % 2 == 1 and magnitude > 5e-324)
        links = random_links(rng, 6, turn)
        solution = solve(graph, name, **links)
        assert_honest(graph, solution, exact_optimum(graph, **links), exact=SOLVERS[name].exact)


@every_solver
def test_magnitudes_may_be_mixed(name, rng):
    for _ in range(6):
        upper = np.triu(rng.normal(-0.3, 1, (6, 6)) * 10.0 ** rng.uniform(-12, 12, (6, 6)), 1)
        graph = SynergyGraph(upper + upper.T)
        solution = solve(graph, name)
        assert_honest(graph, solution, exact_optimum(graph), exact=SOLVERS[name].exact)


@every_solver
def test_weights_of_1e308_are_solved_or_refused_in_a_sentence(name):
    huge = [[0, 1e308, -1e308], [1e308, 0, 5e307], [-1e308, 5e307, 0]]
    solution = solve(huge, name)
    assert solution.structure.coalitions == ((0, 1), (2,))
    assert solution.value == 1e308
    with pytest.raises(InvalidInputError, match="add up to more than a float can be"):
        solve(1e308 * (np.ones((4, 4)) - np.eye(4)), name)


@pytest.mark.parametrize("never", [1e9, 1e16, 1e300])
def test_proofs_of_graphs_with_never_are_accepted(never, rng):
    for turn in range(8):
        graph = random_graph(rng, 8, never=never, odd=turn % 2 == 1)
        solution = solve(graph, "branch-and-cut", certify=True)
        assert verify(graph, solution.structure, solution.certificate).optimal


def test_a_proof_survives_units_near_the_ends_of_the_floats(rng):
    for magnitude in (1e-300, 1e300, 5e-324):
        graph = random_graph(rng, 8, magnitude)
        solution = solve(graph, "branch-and-cut", certify=True)
        back = Certificate.from_json(solution.certificate.to_json())
        checked = verify(graph, solution.structure, back)
        assert checked.optimal
        assert checked.bound >= solution.value


@every_solver
def test_a_debt_inside_a_demanded_coalition_neither_hides_nor_feigns_a_gap(name, rng):
    # Players 0 and 1 must be together at -1e16: beside it, 3 and 4 are one float.
    for _ in range(5):
        upper = np.triu(rng.integers(-3, 4, (7, 7)).astype(float), 1)
        upper[0, 1] = -1e16
        graph = SynergyGraph(upper + upper.T)
        solution = solve(graph, name, must_link=[(0, 1)])
        optimum = exact_optimum(graph, must_link=[(0, 1)])
        assert_honest(graph, solution, optimum, exact=SOLVERS[name].exact)


def test_a_structure_one_below_the_best_is_not_optimal_beside_a_debt_of_1e16():
    class Lazy(SOLVERS["brute-force"]):
        def search(self, graph, *, limits, warm_start=None, sizes=None):
            from solvers import Answer

            return Answer(np.arange(graph.n_players), bound=1.0)

    matrix = np.zeros((5, 5))
    for a, b, weight in ((0, 1, -1e16), (2, 3, 1.0), (3, 4, 1.0), (2, 4, -1.0)):
        matrix[a, b] = matrix[b, a] = weight
    solution = solve(matrix, Lazy(), must_link=[(0, 1)])
    assert solution.value == -1e16
    assert solution.bound > solution.value
    assert not solution.optimal
    assert solve(matrix, "brute-force", must_link=[(0, 1)]).optimal


def test_a_large_bond_that_is_demanded_does_not_make_the_rest_careless():
    matrix = np.array([[0, 1e16, 0, 0], [1e16, 0, 0, 0], [0, 0, 0, 5.0], [0, 0, 5.0, 0]])
    solution = solve(matrix, "greedy", must_link=[(0, 1)])
    assert solution.positive_weight == 5.0


@pytest.mark.parametrize("name", SIZED)
@pytest.mark.parametrize("never", [1e3, 1e9, 1e16])
def test_sizes_and_never_give_the_best_structure_or_no_claim(name, never, rng):
    options = {} if name == "brute-force" else {"formulation": "full"}
    for turn in range(5):
        graph = random_graph(rng, 6, never=never, odd=turn % 2 == 1)
        groups = 2 + turn % 3

        def allowed(labels, groups=groups):
            return max(labels) + 1 == groups

        solution = solve(graph, name, n_groups=groups, **options)
        assert len(solution.structure) == groups
        optimum = exact_optimum(graph, allowed=allowed)
        assert_honest(graph, solution, optimum, exact=False)
        if optimum > -never / 2:  # nobody is forced into a hopeless pair
            assert solution.optimal


@pytest.mark.parametrize("name", SIZED)
def test_a_forbidden_pair_stays_apart_where_sizes_would_join_it(name):
    options = {} if name == "brute-force" else {"formulation": "full"}
    everybody = np.ones((3, 3)) - np.eye(3)
    pairs = list(itertools.combinations(range(3), 2))
    with pytest.raises(InfeasibleError):
        solve(everybody, name, n_groups=2, cannot_link=pairs, **options)
    solution = solve(everybody, name, n_groups=2, cannot_link=pairs[:1], **options)
    assert solution.value == 1.0
    assert solution.structure.labels[0] != solution.structure.labels[1]


def test_raised_weights_change_no_best_structure_and_stay_whole_numbers(rng):
    for never, odd in itertools.product((1e3, 1e16), (False, True)):
        for _ in range(5):
            graph = random_graph(rng, 7, never=never, odd=odd)
            ready = Conditioned.apply(graph)
            assert exact_optimum(ready.graph) == exact_optimum(graph)
            assert (ready.graph.edges.weight >= graph.edges.weight).all()
            assert np.abs(ready.graph.edges.weight).max() < 100
            if not odd:
                assert (ready.graph.edges.weight % 1 == 0).all()


def test_decimals_stay_decimals():
    graph = SynergyGraph([[0, 0.1, -1e9], [0.1, 0, 0.2], [-1e9, 0.2, 0]])
    # P of the ends is 0.1 and 0.2, the largest weight 0.2: -0.3, or a tenth less by a rounding.
    assert Conditioned.apply(graph).graph.matrix[0, 2] in (-0.3, -0.4)
    solution = solve(graph, "branch-and-cut", certify=True)
    assert solution.certificate.parts[0].unit == Fraction(1, 10)


def test_graphs_without_hopeless_weights_are_handed_over_as_they_are(rng):
    graph = random_graph(rng, 8, odd=True)
    assert Conditioned.apply(SynergyGraph(np.abs(graph.matrix))).scale.exponent == 0
    plain = SynergyGraph([[0, 2, -1], [2, 0, 1], [-1, 1, 0]])
    assert Conditioned.apply(plain).graph is plain


def test_whoever_gains_by_leaving_leaves_what_a_solver_joined():
    class Joiner(SOLVERS["brute-force"]):
        def search(self, graph, *, limits, warm_start=None, sizes=None):
            from solvers import Answer

            return Answer(np.zeros(graph.n_players, np.int64), bound=np.inf)

    solution = solve(NEVER, Joiner())
    assert solution.value == 2.0 or solution.value == 3.0
    assert solution.bound == 5.0
    assert not solution.optimal
