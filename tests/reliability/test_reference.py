"""The reference itself: against every partition, written out, in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from coalitions import CoalitionStructure, SynergyGraph
from tests.reliability.graphs import KINDS, case
from tests.reliability.reference import exact_optimum, exact_value, meets


def partitions(n, labels=()):
    if len(labels) == n:
        yield CoalitionStructure.from_labels(labels)
        return
    for block in range(max(labels, default=-1) + 2):
        yield from partitions(n, (*labels, block))


SMALL = [k for k in map(case, range(4 * len(KINDS))) if k.graph.n_players <= 6]


def test_the_dynamic_program_finds_what_enumeration_finds():
    assert len({k.kind for k in SMALL}) > 20
    for subject in SMALL:
        for links in ({}, subject.links):
            values = [
                exact_value(subject.graph, structure)
                for structure in partitions(subject.graph.n_players)
                if meets(structure, **links)
            ]
            assert exact_optimum(subject.graph, **links) == max(values)


def test_nothing_is_rounded():
    graph = SynergyGraph([[0, 3, -1e16], [3, 0, 2 + 2**-50], [-1e16, 2 + 2**-50, 0]])
    assert exact_optimum(graph) == 3
    together = exact_optimum(graph, must_link=[(0, 2)])
    assert together == -(10**16) + 5 + Fraction(1, 2**50)


def test_demands_that_contradict_each_other_are_noticed():
    with pytest.raises(AssertionError, match="no structure"):
        exact_optimum(SynergyGraph(np.zeros((3, 3))), [(0, 1), (1, 2)], [(0, 2)])


def test_every_kind_of_graph_comes_with_demands_that_can_be_met():
    for seed in range(len(KINDS)):
        first, again = case(seed), case(seed)
        assert np.array_equal(first.graph.matrix, again.graph.matrix)
        assert first.must_link or first.cannot_link
        exact_optimum(first.graph, **first.links)
