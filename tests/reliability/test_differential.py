"""Every solver against the exact optimum on graphs of all kinds, without demands and with them.

An exact method finds the optimum and says so; no bound is below it; a heuristic never claims more
than is so; the verifier accepts each of our own certificates.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from coalitions import InvalidInputError, SynergyGraph
from solvers import solve
from tests.reliability import differential
from tests.reliability.differential import METHODS, Failure, Tally, check, check_all
from tests.reliability.graphs import KINDS, Case
from tests.reliability.reference import exact_optimum
from tests.reliability.soak import named, parts

OWN = ("certify", "branch-and-cut")


def concluded(tally: Tally, record_property) -> None:
    """Hand over the counts, and fail with the first failures."""
    record_property("counts: solvers against the exact optimum", tally.counts())
    shown = "\n".join(map(str, tally.failures[:20]))
    assert not tally.failures, f"{len(tally.failures)} failures, of which:\n{shown}"


@pytest.mark.no_cover  # the same lines hundreds of times
def test_graphs_of_all_kinds(record_property):
    others = itertools.cycle(name for name in METHODS if name not in OWN)
    tally = Tally()
    # Ours take every graph; the others take turns, one for each graph.
    check_all(range(3 * len(KINDS)), lambda _: [METHODS[n] for n in (*OWN, next(others))], tally)
    concluded(tally, record_property)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seeds", parts(5000, 500), ids=named)
def test_thousands_of_graphs_of_all_kinds(seeds, record_property):
    tally = Tally()
    check_all(seeds, lambda _: METHODS.values(), tally)
    concluded(tally, record_property)


def single(kind: str, matrix, must_link=(), cannot_link=()) -> Case:
    matrix = np.array(matrix, float)
    upper = np.triu(matrix, 1)
    return Case(-1, kind, SynergyGraph(upper + upper.T), must_link, cannot_link)


@pytest.mark.parametrize("name", METHODS)
def test_never_written_as_a_huge_number(name):
    for exponent in (3, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 100, 300):
        never = -(10.0**exponent)
        subject = single(f"never {never:g}", [[0, 3, never], [3, 0, 2], [never, 2, 0]])
        assert exact_optimum(subject.graph) == 3
        assert failures(subject, name) == []


@pytest.mark.parametrize("name", METHODS)
def test_odd_floats_with_a_negative_mean(name):
    for seed in (13, *range(20)):
        matrix = np.random.default_rng(seed).normal(-1, 1, (6, 6))
        assert failures(single(f"normal(-1, 1) of seed {seed}", matrix), name) == []


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-150, 1e150, 1e300, 1e307])
def test_weights_at_the_edges_of_floats(name, scale):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        whole, floats = rng.integers(-9, 10, (6, 6)), rng.normal(-0.3, 1, (6, 6))
        for kind, matrix in (("whole numbers", whole), ("floats", floats)):
            subject = single(f"{kind} x {scale:g}, seed {seed}", scale * matrix)
            try:
                solve(subject.graph, METHODS[name].solver)
            except InvalidInputError:
                continue  # a sentence is an answer, too
            assert failures(subject, name) == []


def failures(subject: Case, name: str) -> list[str]:
    optimum = exact_optimum(subject.graph, **subject.links)
    linked = bool(subject.must_link or subject.cannot_link)
    return list(map(str, check(subject, METHODS[name], linked, optimum)))


def test_a_wrong_answer_would_be_seen(monkeypatch):
    # The check itself can fail: a solver that never joins anybody is caught.
    def lazy(graph, solver, **demands):
        return solve(SynergyGraph(-np.abs(graph.matrix)), solver, **demands)

    monkeypatch.setattr(differential, "solve", lazy)
    subject = single("three friends", 1 - np.eye(3))
    found: list[Failure] = check(subject, METHODS["auto"], False, exact_optimum(subject.graph))
    assert [failure.failure for failure in found] == [
        "called optimal, is not",
        "bound below the optimum",
    ]
