"""Every registered solver keeps what solvers promise; on drawn graphs, too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings

from coalitions import SynergyGraph
from solvers import SOLVERS, available, solve
from solvers.solver_checks import fault, solver_checks
from tests.strategies import synergy_graphs

RUNNABLE = [name for name, state in available().items() if state is True]
ILP = [name for name in RUNNABLE if hasattr(SOLVERS[name], "maximize")]

every_solver = pytest.mark.parametrize("name", RUNNABLE)


@pytest.mark.parametrize(
    ("name", "promise"),
    [(name, promise) for name in RUNNABLE for promise, _ in solver_checks(name)],
)
def test_a_promise_is_kept(name, promise):
    assert dict(solver_checks(name))[promise]() is None


# Every exact solver on the same 200 graphs, against brute force and so against each other.
@settings(max_examples=60)
@given(graph=synergy_graphs(max_players=9))
@example(graph=SynergyGraph([[0.0]]))
@example(graph=SynergyGraph(np.zeros((5, 5))))
@example(graph=SynergyGraph(np.ones((5, 5)) - np.eye(5)))
@example(graph=SynergyGraph(np.eye(5) - np.ones((5, 5))))
def test_back_ends_agree_with_brute_force(graph):
    optimum = solve(graph, "brute-force")
    assert optimum.optimal
    for name in ILP:
        assert fault(graph, solve(graph, name), optimum.value, exact=True) is None


@settings(max_examples=25)
@given(graph=synergy_graphs(max_players=6))
def test_the_full_formulation_agrees(graph):
    optimum = solve(graph, "brute-force").value
    for name in ILP:
        assert fault(graph, solve(graph, name, formulation="full"), optimum, exact=True) is None


@every_solver
@settings(max_examples=40)
@given(graph=synergy_graphs(max_players=8))
def test_value_optimum_bound(name, graph):
    optimum = solve(graph, "brute-force").value
    assert fault(graph, solve(graph, name), optimum, SOLVERS[name].exact) is None
