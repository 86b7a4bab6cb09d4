"""Solvers that take sizes against the exact optimum: all kinds of weights, links and sizes.

Where sizes force pairs together the best value may be a sum of losses. It must be found, and called
optimal, as surely as a gain.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from coalitions import InfeasibleError, InvalidInputError, SynergyGraph
from solvers import Solution, available, solve, verify
from solvers.backends.brute_force import BruteForce
from tests.reliability.exact import exact_value, partitions
from tests.reliability.graphs import KINDS, _links
from tests.reliability.soak import named, parts, tally

TOLERANCE = Fraction(1, 10**9)

COUNTED = "sizes against the exact optimum"

BACK_ENDS = [name for name in ("highs", "cbc", "cp-sat") if available()[name] is True]


def _spread(rng: np.random.Generator, m: int) -> np.ndarray:
    return rng.normal(-0.5, 1.0, m) * 10.0 ** rng.uniform(-9, 8, m)


def _scaled(scale: float, shift: float):
    return lambda rng, m: scale * rng.normal(shift, 1.0, m)


SIZED_KINDS = KINDS | {
    "17 decades": _spread,
    "17 decades, negative": lambda rng, m: -np.abs(_spread(rng, m)),
    "negative tenths": lambda rng, m: rng.integers(-20, 0, m) / 10,
    "negative and equal": lambda rng, m: np.full(m, -rng.choice([0.1, 0.3, 1.0, 2.0**-30])),
    "floats x 1e-300": _scaled(1e-300, -1.0),
    "floats x 1e300": _scaled(1e300, -1.0),
    "denormals": lambda rng, m: rng.integers(-9, 3, m) * 5e-324,
}


@dataclass(frozen=True)
class Sized:
    """A graph with links and sizes; perhaps no structure meets them."""

    seed: int
    kind: str
    graph: SynergyGraph
    demands: dict[str, Any]


def sized(seed: int) -> Sized:
    """Return the graph of a seed; kinds take turns."""
    rng = np.random.default_rng([20240608, seed])
    kind = tuple(SIZED_KINDS)[seed % len(SIZED_KINDS)]
    n = int(rng.integers(3, 8))
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n, 1)] = SIZED_KINDS[kind](rng, n * (n - 1) // 2)
    demands: dict[str, Any] = {}
    if rng.random() < 0.5:
        demands |= dict(zip(("must_link", "cannot_link"), _links(rng, n), strict=True))
    names = rng.permutation(["n_groups", "min_size", "max_size"])[: rng.integers(1, 4)]
    for name in names.tolist():
        demands[name] = int(rng.integers(1, n + 1 if name != "min_size" else n // 2 + 1))
    return Sized(seed, kind, SynergyGraph(matrix + matrix.T), demands)


def structures(n: int, demands: dict[str, Any]) -> np.ndarray:
    """Return the labels of all structures that meet demands."""
    labels = partitions(n)
    counts = (labels[:, :, None] == np.arange(n)).sum(axis=1)
    allowed = np.ones(len(labels), bool)
    if "n_groups" in demands:
        allowed &= (counts > 0).sum(axis=1) == demands["n_groups"]
    if "min_size" in demands:
        allowed &= ((counts == 0) | (counts >= demands["min_size"])).all(axis=1)
    if "max_size" in demands:
        allowed &= (counts <= demands["max_size"]).all(axis=1)
    for a, b in demands.get("must_link", ()):
        allowed &= labels[:, a] == labels[:, b]
    for a, b in demands.get("cannot_link", ()):
        allowed &= labels[:, a] != labels[:, b]
    return labels[allowed]


def best_value(subject: Sized) -> Fraction | None:
    """Return the exact optimum, or None if no structure meets the demands."""
    labels = structures(subject.graph.n_players, subject.demands)
    if not len(labels):
        return None
    i, j, weight = subject.graph.edges
    exact = [Fraction(w) for w in weight.tolist()]
    unit = Fraction(1, max((w.denominator for w in exact), default=1))
    whole = np.array([int(w / unit) for w in exact], object)
    together = (labels[:, i] == labels[:, j]).astype(object)
    return max(together @ whole) * unit if len(exact) else Fraction(0)


def at_stake(subject: Sized, solution: Solution) -> Fraction:
    """Return all gains, and the losses of a structure beyond those that links alone force."""
    labels, (i, j, weight) = solution.structure.labels, subject.graph.edges
    group = np.arange(len(labels))
    for a, b in subject.demands.get("must_link", ()):
        group[group == group[a]] = group[b]
    counted = ((weight > 0) | (labels[i] == labels[j])) & (group[i] != group[j])
    return sum((abs(Fraction(w)) for w in weight[counted].tolist()), Fraction(0))


def failures(subject: Sized, solver: str) -> list[str]:
    """Return what does not hold for one solver on one graph."""
    optimum = best_value(subject)
    options = {"formulation": "full"} if solver in BACK_ENDS else {}
    about = f"seed {subject.seed} ({subject.kind}), {solver}"
    try:
        solution = solve(subject.graph, solver, **subject.demands, **options)
    except InfeasibleError:
        return [] if optimum is None else [f"{about}: called infeasible"]
    except Exception as error:  # whatever ends a solve is what we look for
        return [f"{about}: {error!r}"]
    if optimum is None:
        return [f"{about}: no structure meets the demands, but {solution.structure} is said to"]
    worth, said = exact_value(subject.graph, solution.structure), []
    labels = solution.structure.labels
    if not (structures(len(labels), subject.demands) == labels).all(axis=1).any():
        said.append("a demand is broken")
    if solution.value != float(worth):
        said.append("the value is not that of the structure")
    if optimum - worth > TOLERANCE * at_stake(subject, solution):
        said.append("not the best")
    # Players that must be together are one node, whose weights are rounded once.
    if solver == "brute-force" and not subject.demands.get("must_link") and worth != optimum:
        said.append("not exactly the best")
    if not solution.optimal:
        said.append("not proven")
    if solution.bound < float(optimum):
        said.append("the bound is below the optimum")
    if solver == "branch-and-price":
        said += doubts(subject, solution, optimum)
    numbers = f"value {solution.value!r}, bound {solution.bound!r}, optimum {float(optimum)!r}"
    return [f"{about}: {what}: {numbers}" for what in said]


def doubts(subject: Sized, solution: Solution, optimum: Fraction) -> list[str]:
    """Return what does not hold for the certificate of a solution."""
    try:
        found = verify(subject.graph, solution.structure, solution.certificate, **subject.demands)
    except InvalidInputError as error:
        return [str(error)]
    if found.bound < float(optimum):
        return ["the verified bound is below the optimum"]
    return [] if found.optimal else [f"the certificate proves only {found.bound!r}"]


def answers(seeds, solvers):
    """Give each solver chosen for a seed, and what is wrong with its answer."""
    for seed in seeds:
        subject = sized(seed)
        for solver in solvers(seed):
            yield solver, failures(subject, solver)


def test_sizes_on_graphs_of_all_kinds(record_property):
    # Enumeration takes every graph; the back-ends take turns, one for every second.
    def solvers(seed: int) -> list[str]:
        turn = [BACK_ENDS[seed // 2 % len(BACK_ENDS)]] if BACK_ENDS and seed % 2 else []
        return ["brute-force", "branch-and-price", *turn]

    tally(answers(range(4 * len(SIZED_KINDS)), solvers), COUNTED, record_property)


EXACT = ("brute-force", "branch-and-price", *BACK_ENDS)


def single(weights: dict[tuple[int, int], float], **demands: Any) -> Sized:
    """Return a graph of three or more players, given by its pairs."""
    n = max(max(pair) for pair in weights) + 1
    matrix = np.zeros((n, n))
    for (a, b), weight in weights.items():
        matrix[a, b] = matrix[b, a] = weight
    return Sized(-1, "by hand", SynergyGraph(matrix), demands)


@pytest.mark.parametrize("solver", EXACT)
def test_nothing_to_gain_and_nothing_lost_is_optimal(solver):
    subject = single({(0, 1): -1.2, (0, 2): -0.2, (1, 2): -2.3}, max_size=1)
    assert failures(subject, solver) == []
    solution = solve(
        subject.graph,
        solver,
        max_size=1,
        **({"formulation": "full"} if solver in BACK_ENDS else {}),
    )
    assert (solution.value, solution.bound, solution.losses) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("solver", EXACT)
def test_a_forced_loss_whose_sum_is_rounded_is_no_contradiction(solver):
    weights = {
        (0, 1): -0.9193807227959369,
        (0, 2): -0.4275350782285921,
        (1, 2): -0.0747651201348098,
    }
    assert failures(single(weights, must_link=((0, 2),), n_groups=1), solver) == []


def test_a_case_with_one_structure_that_prices_cannot_close_does_not_run_for_ever(monkeypatch):
    monkeypatch.setattr(time, "monotonic", time.process_time)  # the machine may be busy
    # Weights over 17 decades: prices are coarser than weights, so the last case stays open.
    subject = sized(232)
    solution = solve(subject.graph, "branch-and-price", time_limit=30, **subject.demands)
    assert solution.optimal
    assert solution.seconds < 20
    assert failures(subject, "branch-and-price") == []


@pytest.mark.parametrize("solver", EXACT)
def test_a_small_loss_is_told_from_a_smaller_one_beside_large_ones(solver):
    # Two of four players must meet. Only the first two pairs are cheap, and they differ by 1e-10.
    dear = {(0, 2): -4e7, (0, 3): -3e7, (1, 2): -9e6, (1, 3): -3.5e6}
    subject = single({(0, 1): -2.2985e-7, (2, 3): -2.2981e-7, **dear}, n_groups=3)
    assert failures(subject, solver) == []
    assert best_value(subject) == Fraction(-2.2981e-7)


def test_enumeration_tells_sums_apart_that_are_one_number_on_a_grid():
    # 1e-7 more or less is nothing beside 1e10 that every structure of these sizes loses.
    weights = {(0, 1): -1e10, (0, 2): -1e10 - 2e-6, (1, 2): -1e10 + 2e-6}
    solution = solve(single(weights).graph, "brute-force", n_groups=2)
    assert solution.structure.coalitions == ((0,), (1, 2))
    assert solution.optimal


def test_a_loss_that_could_be_avoided_does_not_hide_behind_its_own_size():
    # Whoever joins the pair of −1e12 has more at stake; the bound still gives it away.
    class Careless(BruteForce):
        def search(self, graph, **asked):
            return replace(super().search(graph, **asked), labels=np.array([0, 0, 1, 2]))

    weights = {(0, 1): -1e12, (0, 2): -3.0, (1, 2): -2.0, (2, 3): -5.0, (0, 3): -4.0}
    solution = solve(single(weights).graph, Careless(), n_groups=3)
    assert solution.losses == 1e12
    assert not solution.optimal


def test_a_second_search_starts_from_what_the_first_found():
    # Without it, a back-end whose time is over would have no structure of these sizes at all.
    starts = []

    class Recording(BruteForce):
        def search(self, graph, *, limits, warm_start=None, sizes=None):
            starts.append(warm_start)
            return super().search(graph, limits=limits, sizes=sizes)

    weights = {(0, 1): -1e9, (0, 2): -1.0, (1, 2): -1.0}
    assert solve(single(weights).graph, Recording(), n_groups=1).value == -1000000002.0
    assert starts[0] is None
    assert starts[1].tolist() == [0, 0, 0]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seeds", parts(3400, 340), ids=named)
def test_sizes_on_thousands_of_graphs(seeds, record_property):
    tally(answers(seeds, lambda _: EXACT), COUNTED, record_property)
