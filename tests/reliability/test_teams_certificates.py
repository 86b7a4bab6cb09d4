"""Certificates for teams: proofs are accepted, and what claims too little is refused."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from coalitions import CoalitionStructure, InvalidInputError, SynergyGraph
from solvers import Certificate, solve, verify
from solvers.proofs import _coalitions
from solvers.proofs.proof_demands import TeamDemands
from solvers.proofs.teams import Fork, Leaf, TeamsProof
from tests.reliability.team_proofs import BITS, Question, proof_of, question


def answered(seed: int) -> tuple[Question, int, CoalitionStructure]:
    """Return a question that has an answer, and the best one."""
    rng = np.random.default_rng([20261117, seed])
    while True:
        asked = question(rng, int(rng.integers(4, 8)))
        best = asked.best()
        if best is not None:
            return asked, *best


def checked(asked: Question, structure: CoalitionStructure, proof: Certificate | None) -> Any:
    return verify(asked.graph, structure, proof, **asked.links, **asked.demands)


@pytest.mark.parametrize("seed", range(25))
def test_proofs_by_somebody_else_are_accepted(seed):
    asked, optimum, structure = answered(seed)
    proof = proof_of(asked, optimum, forks=seed % 3)
    read = Certificate.from_json(json.loads(json.dumps(proof.to_json())))
    found = checked(asked, structure, read)
    assert (found.value, found.bound, found.optimal) == (optimum, optimum, True)


# --- false proofs: each claims that less than the optimum is possible ------------------------


def with_proof(certificate: Certificate, **changes: Any) -> Certificate:
    assert certificate.teams is not None
    return replace(certificate, teams=replace(certificate.teams, **changes))


def with_leaves(certificate: Certificate, change: Callable[[Leaf], Leaf], less: int) -> Certificate:
    tree = tuple(
        change(case) if isinstance(case, Leaf) else case for case in certificate.teams.tree
    )
    return with_proof(certificate, tree=tree, bound=certificate.teams.bound - less)


def bound_lowered(rng, asked, structure, proof):
    return asked, structure, with_proof(proof, bound=proof.teams.bound - int(rng.integers(1, 5)))


def price_lowered(rng, asked, structure, proof):
    node = int(rng.integers(len(proof.teams.nodes)))

    def lower(leaf):
        prices = leaf.prices.copy()
        prices[node] -= 1 << BITS
        return replace(leaf, prices=prices)

    return asked, structure, with_leaves(proof, lower, 1)


def count_price_lowered(rng, asked, structure, proof):
    def lower(leaf):
        return replace(leaf, count_price=leaf.count_price - (2 << BITS))

    return asked, structure, with_leaves(proof, lower, 2)


def triple_price_below_zero(rng, asked, structure, proof):
    if len(proof.teams.nodes) < 3:
        return bound_lowered(rng, asked, structure, proof)

    def lower(leaf):
        triples = np.concatenate((leaf.triples, [[0, 1, 2]]))
        prices = np.concatenate((leaf.triple_prices, [-1 << BITS]))
        return replace(leaf, triples=triples, triple_prices=prices)

    return asked, structure, with_leaves(proof, lower, 1)


def triple_counted_for_nothing(rng, asked, structure, proof):
    # Two nodes and one of them again: a coalition of the two would always pay.
    if len(proof.teams.nodes) < 2:
        return bound_lowered(rng, asked, structure, proof)

    def lower(leaf):
        prices = leaf.prices.copy()
        prices[:2] -= 1 << BITS
        triples = np.concatenate((leaf.triples, [[0, 1, 1]]))
        return replace(
            leaf,
            prices=prices,
            triples=triples,
            triple_prices=np.concatenate((leaf.triple_prices, [1 << BITS])),
        )

    return asked, structure, with_leaves(proof, lower, 1)


def side_of(fork: Fork, structure: CoalitionStructure, proof: Certificate) -> bool:
    """Tell whether the structure has the pair of a fork together."""
    one, two = (proof.teams.nodes[node][0] for node in fork.pair)
    return bool(structure.labels[one] == structure.labels[two])


def best_case_dropped(rng, asked, structure, proof):
    # The case in which the optimum lies is left out; the other's bound is below it, or is lowered.
    root = proof.teams.tree[0]
    if not isinstance(root, Fork):
        return bound_lowered(rng, asked, structure, proof)
    kept = root.apart if side_of(root, structure, proof) else root.together
    tree, place = [proof.teams.tree[kept]], {}
    queue = [0]
    while queue:
        at = queue.pop()
        case = tree[at]
        if isinstance(case, Fork):
            place = (len(tree), len(tree) + 1)
            tree += [proof.teams.tree[case.together], proof.teams.tree[case.apart]]
            tree[at] = Fork(case.pair, *place)
            queue += place
    return asked, structure, with_proof(proof, tree=tuple(tree), bound=proof.teams.bound - 1)


def case_left_out(rng, asked, structure, proof):
    # A fork whose two cases are the same one.
    root = proof.teams.tree[0]
    if not isinstance(root, Fork):
        return bound_lowered(rng, asked, structure, proof)
    one = root.apart if side_of(root, structure, proof) else root.together
    tree = (Fork(root.pair, one, one), *proof.teams.tree[1:])
    return asked, structure, with_proof(proof, tree=tree, bound=proof.teams.bound - 1)


def pair_altered(rng, asked, structure, proof):
    n = len(proof.teams.nodes)
    if n < 3 or not isinstance(proof.teams.tree[0], Fork):
        return bound_lowered(rng, asked, structure, proof)
    tree = tuple(
        replace(case, pair=tuple(rng.choice(n, 2, replace=False).tolist()))
        if isinstance(case, Fork)
        else case
        for case in proof.teams.tree
    )
    return asked, structure, with_proof(proof, tree=tree, bound=proof.teams.bound - 1)


def other_graph(rng, asked, structure, proof):
    # Two players who are together anyway gain one more, so one more is possible.
    pairs = [block[:2] for block in structure if len(block) > 1]
    if not pairs:
        return bound_lowered(rng, asked, structure, proof)
    matrix = asked.matrix.copy()
    a, b = pairs[int(rng.integers(len(pairs)))]
    if any({*pair} == {a, b} for pair in asked.links["must_link"]):
        return bound_lowered(rng, asked, structure, proof)
    matrix[a, b] += 1
    matrix[b, a] += 1
    return dataclasses.replace(asked, matrix=matrix), structure, proof


STRICTER = ("n_groups", "max_size", "min_size", "at_least_one_of", "cannot_link", "must_link")


def demand_added(rng, asked, structure, proof):
    # The proof of a stricter question, passed off as one of this question.
    n = len(asked.matrix)
    for name in rng.permutation(STRICTER).tolist():
        harder = dataclasses.replace(asked, demands=dict(asked.demands), links=dict(asked.links))
        count = len(structure)
        if name == "n_groups":
            least, most = asked.demands.get("n_groups", (1, n))
            harder.demands[name] = (least, count - 1) if least < count else (count + 1, most)
        elif name == "max_size":
            harder.demands[name] = max(map(len, structure)) - 1
        elif name == "min_size":
            harder.demands[name] = min(map(len, structure)) + 1
        elif name == "at_least_one_of":
            role = sorted(rng.choice(n, max(1, n // 2), replace=False).tolist())
            harder.demands[name] = [*asked.demands.get(name, ()), role]
        else:
            pair = tuple(rng.choice(n, 2, replace=False).tolist())
            harder.links[name] = [*asked.links[name], pair]
        try:
            best = harder.best()
            if best is None or best[0] >= asked.best()[0]:
                continue
            stricter = proof_of(harder, best[0])
        except (ValueError, InvalidInputError):  # a demand that cannot be
            continue
        if rng.random() < 0.5:  # it says what it is for
            return asked, structure, stricter
        return (  # it says that it is for what is asked
            asked,
            structure,
            replace(
                stricter,
                must_link=proof.must_link,
                cannot_link=proof.cannot_link,
                demands=proof.demands,
            ),
        )
    return bound_lowered(rng, asked, structure, proof)


FALSE = [
    bound_lowered,
    price_lowered,
    count_price_lowered,
    triple_price_below_zero,
    triple_counted_for_nothing,
    best_case_dropped,
    case_left_out,
    pair_altered,
    other_graph,
    demand_added,
]


def refused(seed: int, spoil: Callable[..., Any]) -> None:
    rng = np.random.default_rng([7, seed])
    asked, optimum, structure = answered(seed)
    proof = proof_of(asked, optimum, forks=1 + seed % 2)
    asked, structure, false = spoil(rng, asked, structure, proof)
    read = Certificate.from_json(json.loads(json.dumps(false.to_json())))
    best = asked.best()
    with pytest.raises(InvalidInputError, match="the certificate is refused"):
        checked(asked, structure, read)
    # What was refused was false indeed: more is possible than it claims.
    unit, inside = read.teams.unit, sum(map(asked.worth, read.teams.nodes))
    assert unit * read.teams.bound + inside < best[0]


@pytest.mark.parametrize("spoil", FALSE, ids=lambda spoil: spoil.__name__)
@pytest.mark.parametrize("seed", range(3))
def test_a_false_proof_is_refused(seed, spoil):
    refused(seed, spoil)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("spoil", FALSE, ids=lambda spoil: spoil.__name__)
@pytest.mark.parametrize("seed", range(100, 125))
def test_false_proofs_are_refused_by_the_hundred(seed, spoil):
    refused(seed, spoil)


# --- files from strangers --------------------------------------------------------------------


PAIR = SynergyGraph([[0.0, 5.0], [5.0, 0.0]], ["ann", "bob"])
TOGETHER = CoalitionStructure([[0, 1]])


def document(**changes: Any) -> dict[str, Any]:
    leaf = {"prices": [3, 2], "count_price": 0, "triples": [], "triple_prices": []}
    teams = {"nodes": [[0], [1]], "unit": [1, 1], "bits": 0, "bound": 5, "tree": [leaf]}
    demands = {"n_groups": [1, 2], "min_size": 1, "max_size": 2, "at_least_one_of": []}
    inner = {name: changes.pop(name) for name in list(changes) if name in teams}
    for name in list(changes):
        if name in leaf:
            leaf[name] = changes.pop(name)
    head = {"format": "coalition-certificate", "version": 2, "players": 2}
    links = {"must_link": [], "cannot_link": []}
    return {**head, **links, "demands": demands | changes, "teams": teams | inner}


def test_the_smallest_proof_is_accepted():
    found = verify(PAIR, TOGETHER, Certificate.from_json(document()))
    assert (found.bound, found.optimal) == (5.0, True)


def test_prices_may_be_coarser_than_weights_which_are_rounded_up_then():
    # Five is two units of four and not one; twice four is what they prove.
    coarse = {"bits": -2, "prices": [1, 1], "bound": 8}
    assert verify(PAIR, TOGETHER, Certificate.from_json(document(**coarse))).bound == 5.0
    with pytest.raises(InvalidInputError, match="add up to more than its bound"):
        verify(PAIR, TOGETHER, Certificate.from_json(document(**coarse | {"bound": 7})))
    with pytest.raises(InvalidInputError, match="worth more than it pays"):
        verify(PAIR, TOGETHER, Certificate.from_json(document(**coarse | {"prices": [1, 0]})))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bits": -61}, "bits finer"),
        ({"bits": 10**9}, "bits finer"),
        ({"bound": 4}, "add up to more than its bound"),
        ({"prices": [3, 1]}, "worth more than it pays"),
        ({"prices": [3]}, "a price for each node"),
        ({"prices": [1 << 61, -1 << 61]}, "too large"),
        ({"prices": [1 << 70, 0]}, "more than 62 bits"),
        ({"prices": [3.0, 2]}, "whole numbers"),
        ({"count_price": 1 << 80}, "too large"),
        ({"nodes": [[0, 1]]}, "its nodes are not the players"),
        ({"nodes": [[0], [0]]}, "its nodes are not the players"),
        ({"unit": [0, 1]}, "the unit"),
        ({"unit": [1, 0]}, "no fraction"),
        ({"unit": [1, 10**300]}, "so fine that weights do not fit"),
        ({"tree": []}, "no tree"),
        ({"tree": [{"pair": [0, 1], "together": 0, "apart": 0}]}, "has not its two cases"),
        ({"tree": [{"pair": [0, 0], "together": 1, "apart": 2}]}, "on no pair"),
        ({"triples": [[0, 1, 9]], "triple_prices": [1]}, "three different nodes"),
        ({"triples": [[0, 1, 1]], "triple_prices": [1]}, "three different nodes"),
        ({"triples": [[0, 1, 1]], "triple_prices": []}, "as many triple_prices"),
        ({"min_size": 0}, "a number from 1"),
        ({"max_size": 1 << 80}, "a number from 1"),
        ({"max_size": 1}, "1 players each, which is not demanded"),
        ({"n_groups": [1, 1]}, "1 coalitions, which is not demanded"),
        ({"at_least_one_of": [[5]]}, "names a player that is not there"),
        ({"at_least_one_of": [[0]]}, "one of ann in each, which is not demanded"),
        ({"weights": [1], "max_weight": 2}, "a weight for each player"),
        ({"weights": [1, "x"], "max_weight": 2}, "not negative"),
        ({"weights": [1, 1], "max_weight": 2}, "other weights"),
    ],
)
def test_what_a_stranger_sends_is_refused_in_a_sentence(changes, words):
    with pytest.raises(InvalidInputError, match=words):
        verify(PAIR, TOGETHER, Certificate.from_json(document(**changes)))


def test_a_proof_that_asks_for_days_is_refused_in_time(monkeypatch):
    # Everybody gains with everybody, only the last can lead a coalition, and only the last pays:
    # no set of the others is paid for, and none is a coalition.
    monkeypatch.setattr(_coalitions, "MOST_CELLS", 10_000_000)
    n = 40
    graph = SynergyGraph(np.ones((n, n)) - np.eye(n))
    prices = np.zeros(n, np.int64)
    prices[-1] = n * n
    leaf = Leaf(prices, 0, np.empty((0, 3), np.int64), np.empty(0, np.int64))
    proof = TeamsProof(tuple((k,) for k in range(n)), Fraction(1), 0, n * n, (leaf,))
    demands = TeamDemands.of(graph, at_least_one_of=[[n - 1]])
    certificate = Certificate(n, (), teams=proof, demands=demands)
    with pytest.raises(InvalidInputError, match="too long to check"):
        verify(graph, CoalitionStructure([range(n)]), certificate, at_least_one_of=[[n - 1]])


def test_structures_that_break_demands_are_refused_without_a_proof():
    graph = SynergyGraph(np.ones((4, 4)) - np.eye(4), ["ann", "bob", "cleo", "dan"])
    halves = CoalitionStructure([[0, 1], [2, 3]])
    assert verify(graph, halves, max_size=2, n_groups=(1, 2)).value == 2.0
    for demands, words in [
        ({"max_size": 1}, "the coalition of ann has 2 players, but 1 must be"),
        ({"n_groups": 3}, "it has 2 coalitions, but 3 must be"),
        ({"weights": {"ann": 2, "bob": 1, "cleo": 1, "dan": 0.5}, "max_weight": 2}, "weighs 3"),
        ({"at_least_one_of": [["ann", "bob"]]}, "the coalition of cleo has none of ann, bob"),
    ]:
        with pytest.raises(InvalidInputError, match=words):
            verify(graph, halves, **demands)


# --- our own proofs --------------------------------------------------------------------------


DEMANDS = [
    {"max_size": 4},
    {"min_size": 3, "max_size": 5, "n_groups": 4},
    {"n_groups": (5, 6)},
    {"max_size": 5, "weights": [1 + k % 3 for k in range(16)], "max_weight": 8},
    {"max_size": 6, "at_least_one_of": [[0, 3, 5, 8], [1, 2, 5, 9]]},
    {"max_size": 5, "must_link": [(0, 1), (1, 2)], "cannot_link": [(2, 3), (4, 5)]},
]


@pytest.mark.parametrize("scale", [1.0, 1 / 3, 1e-300, 1e300], ids=str)
@pytest.mark.parametrize("demands", DEMANDS, ids=lambda demands: "-".join(demands))
def test_what_solve_proves_is_verified(demands, scale):
    upper = np.triu(np.random.default_rng(16).normal(0.1, 1.0, (16, 16)).round(2), 1) * scale
    graph = SynergyGraph(upper + upper.T)
    solution = solve(graph, certificate=True, **demands)
    proof = Certificate.from_json(json.loads(json.dumps(solution.certificate.to_json())))
    found = verify(graph, solution.structure, proof, **demands)
    assert solution.optimal
    assert found.optimal
    assert found.bound == pytest.approx(solution.bound, rel=1e-9)
    with pytest.raises(InvalidInputError, match="the certificate is refused"):
        verify(
            graph, solution.structure, with_proof(proof, bound=proof.teams.bound // 2), **demands
        )


def test_a_pair_that_is_never_to_be_together_does_not_spoil_the_proof():
    upper = np.triu(np.random.default_rng(3).normal(0.1, 1.0, (12, 12)).round(2), 1)
    upper[0, 1], upper[2, 5] = -1e16, -1e9
    graph = SynergyGraph(upper + upper.T)
    solution = solve(graph, certificate=True, max_size=4)
    assert verify(graph, solution.structure, solution.certificate, max_size=4).optimal


def test_a_proof_is_checked_in_less_time_than_it_took_to_find():
    upper = np.triu(np.random.default_rng(60).normal(0.1, 1.0, (60, 60)).round(2), 1)
    graph = SynergyGraph(upper + upper.T)
    solve(graph, certificate=True, max_size=4)  # kernels are compiled
    began = time.process_time()
    solution = solve(graph, certificate=True, max_size=4)
    solved = time.process_time()
    assert verify(graph, solution.structure, solution.certificate, max_size=4).optimal
    assert time.process_time() - solved < max(solved - began, 0.5)


# --- single numbers changed ------------------------------------------------------------------


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths to everything in a document."""
    inside = document.items() if isinstance(document, dict) else enumerate(document)
    found = []
    for key, entry in inside:
        found.append((*path, key))
        if isinstance(entry, dict | list):
            found += places(entry, (*path, key))
    return found


def changed(rng: np.random.Generator, document: Any) -> Any:
    """Return a copy of a document with one thing in it changed, doubled or gone."""
    document = json.loads(json.dumps(document))
    every = places(document)
    *way, last = every[int(rng.integers(len(every)))]
    holder = document
    for key in way:
        holder = holder[key]
    entry = holder[last]
    kind = int(rng.integers(8))
    if kind == 0:
        del holder[last]
    elif isinstance(entry, int) and kind < 6:
        step = int(rng.choice([1, -1, 1 << BITS, -1 << BITS, 1 << 62, -entry, 10**30]))
        holder[last] = entry + step
    elif isinstance(entry, list) and kind < 5:
        holder[last] = entry + entry if kind < 3 else entry[::-1]
    else:
        holder[last] = [None, "x", 1.5, [], {}, True][int(rng.integers(6))]
    return document


def refused_or_true(seed: int, times: int) -> int:
    """Change a proof in single places; return how many of the changed ones were refused."""
    rng = np.random.default_rng([11, seed])
    asked, optimum, structure = answered(seed)
    document = proof_of(asked, optimum, forks=seed % 3).to_json()
    refusals = 0
    for _ in range(times):
        other = changed(rng, document)
        try:
            found = checked(asked, structure, Certificate.from_json(other))
        except InvalidInputError:
            refusals += 1
            continue
        assert found.bound is not None
        assert found.bound >= optimum, (seed, other)
    return refusals


@pytest.mark.parametrize("seed", range(6))
def test_a_proof_with_one_thing_changed_is_refused_or_right(seed):
    assert refused_or_true(seed, 60) > 20


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(6, 46))
def test_thousands_of_proofs_with_one_thing_changed_are_refused_or_right(seed):
    assert refused_or_true(seed, 200) > 60
