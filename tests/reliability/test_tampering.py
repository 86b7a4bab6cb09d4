"""No tampered certificate convinces the verifier of a bound below the optimum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from unittest.mock import patch

import numpy as np
import pytest

from coalitions import SynergyGraph
from solvers import solve
from solvers.branch_and_cut import branching as tree
from tests.reliability.graphs import KINDS, case
from tests.reliability.reference import exact_optimum, exact_value
from tests.reliability.soak import named, parts
from tests.reliability.tampering import FALSE, ODD, Outcome, Subject, tampered


def small(seeds: Iterable[int]) -> Iterator[Subject]:
    """Yield our own proofs for graphs of all kinds, without demands and with them."""
    for seed in seeds:
        drawn = case(seed)
        for links in ({}, drawn.links):
            yield solved(
                f"seed {seed}{' with links' if links else ''}",
                drawn.graph,
                links,
                exact_optimum(drawn.graph, **links),
            )


def branching(seeds: Iterable[int]) -> Iterator[Subject]:
    """Yield proofs with trees: cuts of two sides would close these graphs at the root."""
    for seed in seeds:
        with patch.object(tree, "MOST_FOR_PARTITIONS", 0):
            yield middling(f"branching {seed}", seed)


def two_sided(seeds: Iterable[int]) -> Iterator[Subject]:
    """Yield proofs by cuts that have several nodes on both sides."""
    for seed in seeds:
        yield middling(f"two-sided {seed}", seed)


def middling(name, seed) -> Subject:
    """Return the proof of a graph that is too hard for triangles and cuts of one centre."""
    rng = np.random.default_rng([26, seed])
    upper = np.triu(np.rint(100 * rng.normal(0.05, 0.5, (24, 24))), 1)
    links = {"must_link": ((0, 1),), "cannot_link": ((2, 3),)} if seed % 2 else {}
    return solved(name, SynergyGraph(upper + upper.T), links)


def solved(name, graph, links, optimum=None) -> Subject:
    solution = solve(graph, "branch-and-cut", certify=True, **links)
    # Where no reference can be had: what is really there is not above the optimum.
    optimum = exact_value(graph, solution.structure) if optimum is None else optimum
    document = solution.certificate.to_json()
    return Subject(name, graph, solution.structure, links, document, optimum)


def attacked(subjects: Iterable[Subject], times: int, record_property) -> Counter[str]:
    """Tamper with all proofs; hand over the counts and fail if the verifier was fooled."""
    counts: dict[str, Counter[str]] = {}
    bad: list[Outcome] = []
    for number, subject in enumerate(subjects):
        for time in range(times):
            for outcome in tampered(subject, np.random.default_rng([number, time])):
                row = counts.setdefault(outcome.tampering, Counter(refused=0))
                row["still right"] += outcome.result == "still right"
                row["fooled"] += outcome.bad
                row[outcome.result] += outcome.result != "still right"
                bad += [outcome] * outcome.bad
    record_property("counts: tampered certificates", {k: dict(v) for k, v in counts.items()})
    shown = "\n".join(f"{b.tampering}: {b.result}: {b.detail}" for b in bad[:20])
    assert not bad, f"{len(bad)} of {sum(c.total() for c in counts.values())}, of which:\n{shown}"
    return Counter({name: row["refused"] for name, row in counts.items()})


def test_tampered_proofs_of_small_graphs(record_property):
    refused = attacked(small(range(len(KINDS))), 1, record_property)
    # The attack is real: it reaches every tampering that needs neither a tree nor two sides.
    others = {"tree_changed", "sides_changed"}
    assert all(refused[each.__name__] for each in (*FALSE, *ODD) if each.__name__ not in others)


def test_tampered_proofs_with_trees(record_property):
    refused = attacked(branching(range(2)), 2, record_property)
    assert refused["tree_changed"]


def test_tampered_proofs_with_cuts_of_two_sides(record_property):
    refused = attacked(two_sided(range(2)), 2, record_property)
    assert refused["sides_changed"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seeds", parts(5000, 500), ids=named)
def test_tampered_proofs_of_thousands_of_graphs(seeds, record_property):
    attacked(small(seeds), 1, record_property)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_tamperings_of_proofs_with_trees(record_property):
    (seeds,) = parts(40, 40)
    attacked(branching(seeds), 10, record_property)
    attacked(two_sided(seeds), 10, record_property)
