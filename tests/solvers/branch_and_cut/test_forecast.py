"""What is hopeless is known early, and local search has the time then; what is not, is proven."""

from __future__ import annotations

import time

import numpy as np
import pytest

from coalitions import SynergyGraph
from solvers import solve
from solvers.branch_and_cut.branch_and_cut import Forecast, is_hopeless
from solvers.branch_and_cut.branching import SMOOTH
from solvers.branch_and_cut.lagrangian_dual import MOST_TRIANGLES
from solvers.branch_and_cut.partition_problem import PartitionProblem


def noise(n, seed=0):
    upper = np.triu(np.random.default_rng(seed).integers(-100, 101, (n, n)), 1)
    return upper + upper.T


def planted(n, groups, noisy, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, n)
    upper = np.where(group[:, None] == group, 100, -100) + rng.normal(0, noisy, (n, n))
    upper = np.triu(np.rint(upper).astype(np.int64), 1)
    return upper + upper.T


def forecast(weights):
    problem = PartitionProblem.undecided(weights)
    return Forecast.of(problem, smoothing=SMOOTH, most_rows=MOST_TRIANGLES, seed=0)


def test_random_weights_are_told_from_hidden_groups_before_the_first_step():
    assert forecast(noise(300)).search_first(1e9)
    assert not forecast(planted(300, 15, 70)).search_first(2.0)
    assert not forecast(noise(100)).search_first(1.0), "a look is cheap: no need to guess"


def test_the_first_look_is_left_out_where_it_takes_too_much_of_the_time():
    large = forecast(planted(1200, 60, 70))
    assert large.search_first(2.0)
    assert not large.search_first(60.0)


def test_a_forecast_of_no_triple_and_of_no_weight():
    assert forecast(np.zeros((1, 1), np.int64)).conflicts == 0.0
    assert forecast(np.zeros((3, 3), np.int64)).conflicts == 0.0


def test_hope_shrinks_with_every_look():
    assert is_hopeless(1, 310, 100)
    assert not is_hopeless(1, 290, 100)
    assert is_hopeless(2, 290, 100)
    assert not is_hopeless(9, 149, 100)
    assert is_hopeless(9, 151, 100)


@pytest.mark.parametrize("n", [220, 450])
def test_on_random_graphs_the_default_is_as_good_as_local_search(n, monkeypatch):
    graph = SynergyGraph(noise(n).astype(float))
    for solver in ("auto", "local-search"):
        solve(graph, solver, time_limit=0.3)  # compiles what is not compiled yet
    monkeypatch.setattr(time, "monotonic", time.process_time)  # the machine may be busy
    default = solve(graph, time_limit=1.0)
    search = solve(graph, "local-search", time_limit=1.0)
    assert default.value >= 0.997 * search.value, "it was several percent below"
    assert default.value <= default.bound <= graph.positive_weight


def test_on_few_edges_the_default_is_as_good_as_local_search(monkeypatch):
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, 400, (2, 4000))
    pair = np.unique((i * 400 + j)[i < j])
    graph = SynergyGraph.from_edges(400, pair // 400, pair % 400, rng.normal(0.1, 1, len(pair)))
    for solver in ("auto", "local-search"):
        solve(graph, solver, time_limit=0.3)
    monkeypatch.setattr(time, "monotonic", time.process_time)
    search = solve(graph, "local-search", time_limit=1.0)
    assert solve(graph, time_limit=1.0).value >= 0.997 * search.value, "it was 1.5 % below"


def test_what_is_not_hopeless_is_still_proven_in_a_short_time(monkeypatch):
    graph = SynergyGraph(planted(300, 15, 70).astype(float))
    solve(graph, time_limit=0.3)
    monkeypatch.setattr(time, "monotonic", time.process_time)
    assert solve(graph, time_limit=1.0).optimal


def test_a_certificate_never_claims_a_bound_that_it_does_not_prove(monkeypatch):
    graph = SynergyGraph(noise(200).astype(float))
    monkeypatch.setattr(time, "monotonic", time.process_time)
    solution = solve(graph, time_limit=1.5, certificate=True)
    assert solution.certificate is not None
    unit = solution.certificate.parts[0].unit
    assert float(unit * solution.certificate.parts[0].bound) == pytest.approx(solution.bound)
