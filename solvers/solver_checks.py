"""What every solver promises, as checks: of ours in the tests, of plug-ins by `check-plugin`."""

from __future__ import annotations

import time

import numpy as np

from coalitions.graph import SynergyGraph
from coalitions.registry import Checks
from coalitions.structure import CoalitionStructure
from coalitions.structures.partitions import partition_labels
from solvers._solve import solve
from solvers.solution import Solution
from solvers.solver import SOLVERS

GRAPHS = 8
"""How many small graphs a solver is tried on."""

SECONDS = 15.0
"""What a solver may take that was given half a second: loading and building are not the search."""

MUST, CANNOT = [(0, 3), (3, 5)], [(0, 1), (2, 4)]
"""Players that are together, and apart, in a graph of seven."""


def solver_checks(name: str) -> Checks:
    """Give what is checked of the solver that is registered by this name."""
    yield "says what it is", lambda: _described(name)
    yield "value, optimum and bound are in order", lambda: _in_order(name)
    yield "a relabelled graph has the same optimum", lambda: _relabelled(name)
    yield "the same seed gives the same answer", lambda: _repeats(name)
    yield "a start is never made worse", lambda: _keeps_start(name)
    yield "players are together and apart as demanded", lambda: _keeps_links(name)
    yield "a time limit is kept", lambda: _stops(name)


def fault(graph: SynergyGraph, found: Solution, optimum: float, exact: bool) -> str | None:
    """Return what is wrong with a solution of a graph whose optimum is known; None if nothing is.

    Parameters
    ----------
    graph
        What was solved.
    found
        The solution.
    optimum
        The value of the best structure.
    exact
        Whether the solver says that it proves optimality.
    """
    slack = 1e-9 * float(np.abs(graph.edges.weight).sum())
    if found.structure.n_players != graph.n_players:
        return f"its structure has {found.structure.n_players} players, not {graph.n_players}"
    if found.value != graph.value(found.structure):
        return f"its value is {found.value}, and the graph gives {graph.value(found.structure)}"
    if found.value > optimum + slack:
        return f"its value is {found.value}, above the optimum {optimum}"
    if found.bound < optimum - slack:
        return f"its bound is {found.bound}, and there is a structure worth {optimum}"
    if exact and (not found.optimal or found.value < optimum - slack):
        return (
            f"it is called exact (exact = False says that it is not), found {found.value} with the"
            f" bound {found.bound}, and the optimum is {optimum}"
        )
    return None


def _graph(seed: int, n: int) -> SynergyGraph:
    upper = np.triu(np.random.default_rng(seed).integers(-9, 10, (n, n)).astype(float), 1)
    return SynergyGraph(upper + upper.T)


def _described(name: str) -> str | None:
    if not (SOLVERS[name].__doc__ or "").strip():
        return "it has no docstring, which `coalitions solvers` shows"
    return None


def _in_order(name: str) -> str | None:
    for seed in range(GRAPHS):
        graph = _graph(seed, 4 + seed % 4)
        optimum = solve(graph, "brute-force").value
        found = fault(graph, solve(graph, name), optimum, SOLVERS[name].exact)
        if found is not None:
            return f"on a graph of {graph.n_players} players {found}"
    return None


def _relabelled(name: str) -> str | None:
    graph = _graph(19, 7)
    order = np.random.default_rng(19).permutation(7)
    moved = SynergyGraph(graph.matrix[np.ix_(order, order)])
    one, other = solve(graph, name).value, solve(moved, name).value
    if SOLVERS[name].exact and one != other:
        return f"a graph is worth {one}, and {other} with its players in another order"
    return None


def _repeats(name: str) -> str | None:
    first, second = (solve(_graph(20, 9), name, seed=3) for _ in range(2))
    if (first.structure, first.bound) != (second.structure, second.bound):
        return "two calls with seed 3 gave different structures or bounds"
    return None


def _keeps_start(name: str) -> str | None:
    graph = _graph(21, 9)
    best = solve(graph, "brute-force")
    found = solve(graph, name, warm_start=best.structure)
    if found.value < best.value:
        return f"it was given a structure worth {best.value}, and answered with {found.value}"
    return None


def _keeps_links(name: str) -> str | None:
    for seed in range(22, 27):
        graph = _graph(seed, 7)
        found = solve(graph, name, must_link=MUST, cannot_link=CANNOT)
        if not _linked(found.structure.labels):
            return f"{MUST} had to be together and {CANNOT} apart, and they are not"
        structures = map(CoalitionStructure.from_labels, filter(_linked, partition_labels(7)))
        wrong = fault(graph, found, max(map(graph.value, structures)), SOLVERS[name].exact)
        if wrong is not None:
            return f"with {MUST} together and {CANNOT} apart {wrong}"
    return None


def _linked(labels: np.ndarray[tuple[int, ...], np.dtype[np.integer]]) -> bool:
    together = all(labels[a] == labels[b] for a, b in MUST)
    return together and all(labels[a] != labels[b] for a, b in CANNOT)


def _stops(name: str) -> str | None:
    if name == "brute-force":  # it takes at most 12 players, which is over at once
        return None
    upper = np.triu(np.random.default_rng(23).normal(size=(40, 40)), 1)
    graph = SynergyGraph(upper + upper.T)
    best = solve(graph, "local-search").value
    solve(graph, name, time_limit=0.2)  # compiles what is not compiled yet
    begun = time.process_time()
    found = solve(graph, name, time_limit=0.5)
    took = time.process_time() - begun
    if took > SECONDS:
        return f"with a limit of 0.5 s it took {took:.0f} s; look at limits.seconds_left"
    # Stopped before the search began, it may have no bound at all: that is no proof.
    at_once = solve(graph, name, time_limit=1e-3)
    if at_once.optimal:
        return "it says that it proved a graph of 40 players in a millisecond"
    if not found.bound >= found.value >= 0:
        return f"its value is {found.value}, and its bound {found.bound}"
    for answer in (found, at_once):
        wrong = fault(graph, answer, max(best, found.value, at_once.value), exact=False)
        if wrong is not None:
            return wrong
    return None
