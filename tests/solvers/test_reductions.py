"""Every reduction: the best answer on what `apply` makes is, after `invert`, the best answer."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from coalitions import CoalitionStructure, InfeasibleError, SynergyGraph, partition_labels
from solvers import Answer, solve, verify
from solvers.demands import Contraction, Demands
from solvers.optimality import rounded_up
from solvers.reductions import Components, Conditioned, Scale
from tests.strategies import synergy_graphs

TOLERANCE = Fraction(1, 10**9)
"""What `Solution.optimal` allows, relative to all that can be gained."""


def worth(graph: SynergyGraph, labels: np.ndarray) -> Fraction:
    i, j, weight = graph.edges
    return sum(map(Fraction, weight[labels[i] == labels[j]].tolist()), Fraction(0))


def best(
    graph: SynergyGraph, allowed: Callable[[np.ndarray], bool] = lambda _: True
) -> tuple[Fraction, Answer]:
    """Return the exact optimum and the answer of a perfect solver."""
    structures = [labels for labels in partition_labels(graph.n_players) if allowed(labels)]
    labels = max(structures, key=lambda labels: worth(graph, labels))
    value = worth(graph, labels)
    return value, Answer(labels.astype(np.int64), rounded_up(value))


def assert_right(graph: SynergyGraph, answer: Answer, optimum: Fraction) -> None:
    """Check structure, value and bound, to the precision that a proof has."""
    precision = TOLERANCE * Fraction(graph.positive_weight)
    assert answer.labels.shape == (graph.n_players,)
    assert abs(worth(graph, answer.labels) - optimum) <= precision
    assert -precision <= Fraction(answer.bound) - optimum <= precision


def pickled(reduction):
    """Return what comes back from a pickle: `invert` must not need more."""
    return pickle.loads(pickle.dumps(reduction))


@st.composite
def graphs_with_links(draw):
    graph = draw(synergy_graphs(max_players=6))
    pairs = list(combinations(range(graph.n_players), 2))
    links = st.lists(st.sampled_from(pairs), max_size=3) if pairs else st.just([])
    return graph, draw(links), draw(links)


@given(graphs_with_links())
def test_contraction(case):
    graph, together, apart = case
    demands = Demands.of(graph, must_link=together, cannot_link=apart)
    try:
        nodes = Contraction.apply(graph, demands)
    except InfeasibleError:
        assert set(together) & set(apart) or len(together) > 1
        return

    def meets(labels):
        return all(labels[a] == labels[b] for a, b in together) and not any(
            labels[a] == labels[b] for a, b in apart
        )

    optimum, _ = best(graph, meets)
    _, found = best(nodes.graph)
    answer = pickled(nodes).invert(found)
    assert meets(answer.labels)
    # What players that must be together are worth is no gain, but it is rounded like the rest.
    precision = TOLERANCE * Fraction(float(np.abs(graph.edges.weight).sum()))
    assert abs(worth(graph, answer.labels) - optimum) <= precision
    assert abs(Fraction(answer.bound) - optimum) <= precision
    back = nodes.contract(answer.labels)
    assert CoalitionStructure.from_labels(back) == CoalitionStructure.from_labels(found.labels)


@given(synergy_graphs(max_players=7))
def test_components(graph):
    for same in (graph, SynergyGraph.from_edges(graph.n_players, *graph.edges)):
        parts = Components.apply(same)
        answers = [best(part)[1] for part in parts.graphs]
        assert_right(graph, pickled(parts).invert(answers), best(graph)[0])


@given(
    synergy_graphs(min_players=2, max_players=6, scales=(1.0, 2.0**-900, 2.0**900)),
    st.data(),
)
def test_conditioning(graph, data):
    weight = graph.edges.weight
    assume((weight > 0).any())
    never = data.draw(st.lists(st.booleans(), min_size=len(weight), max_size=len(weight)))
    hopeless = np.array(never) & (weight <= 0)
    factor = data.draw(st.sampled_from((-1e3, -1e16)))
    graph = graph.with_weights(np.where(hopeless, factor * weight.max(), weight))
    ready = Conditioned.apply(graph)
    assert 2.0**-401 < ready.graph.edges.weight.max() < 2.0**401
    _, found = best(ready.graph)
    assert_right(graph, pickled(ready).invert(found), best(graph)[0])
    # An answer that joins hopeless pairs comes back without them, and worth no less.
    joined = Answer(np.zeros(graph.n_players, np.int64), np.inf)
    parted = ready.invert(joined).labels
    assert not ready.joins_hopeless(parted)
    assert worth(graph, parted) >= worth(graph, joined.labels)


@given(
    st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=1, max_size=6),
    st.sampled_from((0, 450, 900, -900)),
)
def test_scale(weights, exponent):
    weight = np.ldexp(np.array(weights), exponent)
    assume(float(np.abs(weight).max()) > 0.0)
    scale = Scale.of(float(np.abs(weight).max()))
    total = sum(map(Fraction, scale.apply(weight).tolist()), Fraction(0))
    answer = Answer(np.zeros(2, np.int64), rounded_up(total))
    bound = Fraction(pickled(scale).invert(answer).bound)
    exact = sum(map(Fraction, weight.tolist()), Fraction(0))
    assert exact <= bound <= exact + TOLERANCE * Fraction(float(np.abs(weight).max()))


@given(graphs_with_links())
def test_a_certificate_goes_back_through_all_of_them(case):
    graph, together, apart = case
    links = {"must_link": together, "cannot_link": apart}
    try:
        solution = solve(graph, certificate=True, **links)
    except InfeasibleError:
        return
    kept = pickled(solution)
    assert verify(graph, kept.structure, kept.certificate, **links).optimal
