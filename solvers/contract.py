"""What every solver promises, as checks that a plug-in can be held against."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from coalitions.graph import SynergyGraph
from solvers._solve import solve
from solvers.solution import Solution
from solvers.solver import SOLVERS

GRAPHS = 8
"""How many small graphs a solver is tried on."""

SECONDS = 15.0
"""What a solver may take that was given half a second: loading and building are not the search."""


def solver_checks(name: str) -> Iterator[tuple[str, Callable[[], str | None]]]:
    """Give what is checked of a registered solver, each with a function that finds the fault.

    Parameters
    ----------
    name
        The name it is registered by.

    Returns
    -------
    Pairs of a promise and a function, which returns None if it is kept, and a sentence if not.
    """
    yield "says what it is", lambda: _described(name)
    yield "value, optimum and bound are in order", lambda: _in_order(name)
    yield "the same seed gives the same answer", lambda: _repeats(name)
    yield "a start is never made worse", lambda: _keeps_start(name)
    yield "players are together and apart as demanded", lambda: _keeps_links(name)
    yield "a time limit is kept", lambda: _stops(name)


def _graph(seed: int, n: int) -> SynergyGraph:
    upper = np.triu(np.random.default_rng(seed).integers(-9, 10, (n, n)).astype(float), 1)
    return SynergyGraph(upper + upper.T)


def _described(name: str) -> str | None:
    if not (SOLVERS[name].__doc__ or "").strip():
        return "it has no docstring, which `coalitions solvers` shows"
    return None


def _fault(graph: SynergyGraph, found: Solution, optimum: float, exact: bool) -> str | None:
    slack = 1e-9 * float(np.abs(graph.edges.weight).sum())
    if found.bound < optimum - slack:
        return f"its bound is {found.bound}, and there is a structure worth {optimum}"
    if exact and (not found.optimal or found.value < optimum - slack):
        return (
            f"it is called exact (exact = False says that it is not), found {found.value} with the"
            f" bound {found.bound}, and the optimum is {optimum}"
        )
    return None


def _in_order(name: str) -> str | None:
    for seed in range(GRAPHS):
        graph = _graph(seed, 4 + seed % 4)
        optimum = solve(graph, "brute-force").value
        fault = _fault(graph, solve(graph, name), optimum, SOLVERS[name].exact)
        if fault is not None:
            return f"on a graph of {graph.n_players} players {fault}"
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
    graph = _graph(22, 7)
    found = solve(graph, name, must_link=[(0, 3)], cannot_link=[(0, 1)]).structure.labels
    if found[0] != found[3] or found[0] == found[1]:
        return "0 and 3 had to be together and 0 and 1 apart, and they are not"
    return None


def _stops(name: str) -> str | None:
    if name == "brute-force":  # it takes at most 12 players, which is over at once
        return None
    upper = np.triu(np.random.default_rng(23).normal(size=(40, 40)), 1)
    graph = SynergyGraph(upper + upper.T)
    begun = time.process_time()
    found = solve(graph, name, time_limit=0.5)
    took = time.process_time() - begun
    if took > SECONDS:
        return f"with a limit of 0.5 s it took {took:.0f} s; look at limits.seconds_left"
    return _fault(graph, found, solve(graph, "greedy").value, exact=False)
