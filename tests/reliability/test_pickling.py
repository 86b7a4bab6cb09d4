"""Results and graphs go to other processes and back, and graphs stay read-only."""

from __future__ import annotations

import copy
import inspect
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from coalitions import CoalitionStructure, Estimates, SynergyGraph, feature_games, shapley
from solvers import (
    SOLVERS,
    Answer,
    Solver,
    explain,
    solve,
    solve_game,
    solve_overlapping,
    verify,
    what_if,
)
from tests.contracts.test_solvers import every_solver

LABELS = [f"p{number}" for number in range(9)]
DEMANDS = {
    "none": {},
    "links": {"must_link": [("p0", "p1")], "cannot_link": [("p2", "p3")]},
    "sizes": {"max_size": 3},
    "everything": {
        "must_link": [(0, 1)],
        "n_groups": (3, 4),
        "weights": dict.fromkeys(LABELS, 0.5),
        "max_weight": 2.5,
        "at_least_one_of": [range(6)],
    },
    "one node": {"max_size": 9, "must_link": [(0, other) for other in range(1, 9)]},
}


@pytest.fixture
def graph(rng):
    upper = np.triu(rng.normal(0, 1, (9, 9)), 1)
    return SynergyGraph(upper + upper.T, LABELS)


def copies(thing):
    return [pickle.loads(pickle.dumps(thing)), copy.copy(thing), copy.deepcopy(thing)]


def same(one, other):
    """Assert that two solutions say the same, certificates included."""
    assert (one.named, one.value, one.bound, one.optimal, one.sizes) == (
        other.named,
        other.value,
        other.bound,
        other.optimal,
        other.sizes,
    )
    first, second = one.certificate, other.certificate
    assert (first is None) == (second is None)
    if first is not None:
        assert first.to_json() == second.to_json()


def asked_of(name):
    """Return the demands that a solver takes, with the options they need."""
    if SOLVERS[name]().takes_sizes:
        return list(DEMANDS.values())
    plain = [DEMANDS["none"], DEMANDS["links"]]
    if "formulation" in inspect.signature(SOLVERS[name]).parameters:
        plain.append(DEMANDS["sizes"] | {"formulation": "full"})
    return plain


@every_solver
def test_solutions_of_every_solver(graph, name):
    for asked in asked_of(name):
        solution = solve(graph, name, **asked)
        for each in copies(solution):
            same(each, solution)
        assert pickle.loads(pickle.dumps(solution)).named == solution.named  # proof and all


def test_a_certificate_that_is_made_in_a_copy_proves_the_original(graph):
    solution = solve(graph, max_size=3)
    there = pickle.loads(pickle.dumps(solution))
    checked = verify(graph, solution.structure, there.certificate, max_size=3)
    assert checked.optimal


def test_lists_opinions_and_other_results(graph):
    ranked = solve(graph, n_best=3, max_size=3)
    for each in copies(ranked):
        assert [one.named for one in each.others] == [one.named for one in ranked.others]
        assert [one.optimal for one in each.others] == [True, True]
    wish = what_if(graph, together=[("p0", "p8")], max_size=4)
    for each in copies(wish):
        assert (each.cost, each.optimal) == (wish.cost, wish.optimal)
        same(each.solution, wish.solution)
    why = explain(graph, ranked, "p0")
    for each in copies(why):
        assert (each.text, each.loss, each.fragile) == (why.text, why.loss, why.fragile)
    overlapping = solve_overlapping(graph.subgraph(range(6)))
    for each in copies(overlapping):
        assert (each.coalitions, each.value, each.optimal) == (
            overlapping.coalitions,
            overlapping.value,
            True,
        )
    game = graph.subgraph(range(6)).game()
    for each in copies(solve_game(game, max_size=2)):
        same(each, solve_game(game, max_size=2))
    games = feature_games(lambda rows: rows.prod(axis=1), [[2, 3], [4, 5]], [1, 1])
    rows = Estimates([shapley(one) for one in games])
    for each in copies(rows):
        assert np.array_equal(each.values, rows.values)
        assert each.labels == rows.labels
    for each in copies(shapley(game)):
        assert np.array_equal(each.values, shapley(game).values)


def test_other_processes_send_back_solutions(graph):
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        (found,) = pool.map(partial(solve, max_size=3), [graph])
    same(found, solve(graph, max_size=3))


def test_joblib_sends_back_solutions(graph):
    joblib = pytest.importorskip("joblib")
    asked = [joblib.delayed(solve)(graph, max_size=size) for size in (2, 3)]
    for size, found in zip((2, 3), joblib.Parallel(n_jobs=2)(asked), strict=True):
        same(found, solve(graph, max_size=size))


def test_a_plug_in_whose_proof_cannot_be_sent_says_so_in_a_sentence(graph):
    class Odd(Solver):
        exact = False
        takes_sizes = True

        def search(self, graph, *, limits, warm_start=None, sizes=None):
            labels = np.arange(graph.n_players)
            return Answer(labels, bound=1e9, prove=lambda: None)

    for asked in ({}, {"max_size": 3}):
        solution = solve(graph, Odd(), **asked)
        with pytest.raises(pickle.PicklingError, match="solution of Odd cannot be pickled"):
            pickle.dumps(solution)
        assert copy.deepcopy(solution).certificate is None
        assert pickle.loads(pickle.dumps(replace(solution, prove=None))).value == solution.value


@pytest.mark.parametrize("sparse", [False, True])
def test_a_graph_stays_read_only(graph, sparse):
    if sparse:
        graph = SynergyGraph.from_edges(9, *graph.edges, labels=LABELS)
    _ = graph.edges, graph.matrix
    for each in copies(graph):
        assert each.labels == graph.labels
        assert each.value([LABELS]) == graph.value([LABELS])
        for array in (each.matrix, *each.edges):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 9
    for each in copies(CoalitionStructure([[0, 2], [1]])):
        assert each == CoalitionStructure([[0, 2], [1]])
