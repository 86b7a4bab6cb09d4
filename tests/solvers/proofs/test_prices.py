"""Prices that close a branch: ours are accepted, others refused, or true all the same."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from coalitions import InvalidInputError, SynergyGraph
from coalitions.game import IntMatrix
from solvers import Certificate, solve, verify
from solvers.branch_and_cut.partition_problem import PartitionIncumbent, PartitionProblem
from solvers.branch_and_cut.russian_dolls import ConflictColumns
from solvers.proofs._coalitions import check_prices
from solvers.proofs.teams import Fork, GroupPrices, Leaf
from tests.cli.games.test_solve import coalitions
from tests.solvers.branch_and_cut.test_branch_and_cut import all_labels
from tests.solvers.branch_and_cut.test_columns import with_conflicts


def best_of(problem: PartitionProblem) -> int:
    """Return what the best structure of a problem is worth, by looking at all of them."""
    found = []
    for labels in all_labels(problem.n_groups):
        together = np.array(labels)[:, None] == labels
        if not (together & problem.apart).any():
            found.append(int(problem.weights[together].sum()) // 2)
    return problem.inside + max(found)


def decided(rng: np.random.Generator, weights: IntMatrix) -> PartitionProblem:
    """Return a problem with some nodes together and some groups apart, as a dual leaves it."""
    n = len(weights)
    merge = np.unique(np.where(rng.random(n) < 0.3, rng.integers(0, n, n), np.arange(n)))
    merge = np.searchsorted(merge, rng.choice(merge, n))
    merge = np.unique(merge, return_inverse=True)[1]
    merged = PartitionProblem.undecided(weights).merged(merge)
    assert merged is not None
    first, second = np.nonzero(np.triu(rng.random((merged.n_groups,) * 2) < 0.2, 1))
    return merged.separated(first, second)


def priced(seed: int) -> tuple[IntMatrix, PartitionProblem, GroupPrices, int]:
    """Return weights, what is known of a structure, prices, and the bound they prove."""
    rng = np.random.default_rng(seed)
    weights = with_conflicts(rng, int(rng.integers(4, 9)), 0.4)
    problem = decided(rng, weights) if seed % 2 else PartitionProblem.undecided(weights)
    columns = ConflictColumns(problem, PartitionIncumbent(weights, None, 0))
    columns.search(allowed=lambda value: value, check=lambda: None, seed=0)
    assert columns.proof is not None
    assert columns.bound is not None
    return weights, problem, columns.proof, columns.bound


def check(weights: IntMatrix, problem: PartitionProblem, prices: GroupPrices, bound: int) -> None:
    one, two = np.nonzero(np.triu(weights, 1))
    apart = problem.representatives[np.argwhere(np.triu(problem.apart, 1))].reshape(-1, 2)
    known = problem.groups
    check_prices(prices, known, apart, one, two, weights[one, two], bound, "part 0")


def lowered(case: Leaf | Fork, by: int) -> Leaf | Fork:
    return case if isinstance(case, Fork) else replace(case, prices=case.prices - by)


@pytest.mark.parametrize("seed", range(20))
def test_they_prove_the_best_value_and_nothing_below(seed):
    weights, problem, prices, bound = priced(seed)
    best = best_of(problem)
    assert bound >= best
    check(weights, problem, prices, bound)
    with pytest.raises(InvalidInputError, match="the prices of a leaf add up to more"):
        check(weights, problem, prices, bound - 1)
    # Less than the best structure is worth is paid in every case: some coalition is not paid for.
    short = tuple(lowered(case, (bound - best + 1) << max(0, prices.bits)) for case in prices.tree)
    with pytest.raises(InvalidInputError, match="a coalition is worth more than it pays"):
        check(weights, problem, replace(prices, tree=short), bound)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_changed_they_are_refused_or_right(seed):
    weights, problem, prices, bound = priced(seed)
    best = best_of(problem)
    rng = np.random.default_rng(seed)
    refused = 0
    for _ in range(15):
        tree = list(prices.tree)
        place = int(rng.integers(len(tree)))
        case = tree[place]
        if isinstance(case, Leaf):
            other = case.prices.copy()
            other[rng.integers(len(other))] -= rng.integers(1, 60) << max(0, prices.bits)
            tree[place] = replace(case, prices=other)
        else:
            tree[place] = tree[case.together if rng.random() < 0.5 else case.apart]
        claim = bound - int(rng.integers(0, 40))
        changed = replace(prices, tree=tuple(tree))
        try:
            check(weights, problem, changed, claim)
        except InvalidInputError:
            refused += 1
        else:
            assert claim >= best
    assert refused


def test_groups_must_be_all_nodes_and_no_more_than_is_known():
    weights, problem, prices, bound = priced(0)
    first, second, *rest = prices.groups
    with pytest.raises(InvalidInputError, match="need not be together"):
        check(weights, problem, replace(prices, groups=((*first, *second), *rest)), bound)
    with pytest.raises(InvalidInputError, match="not all nodes, each once"):
        check(weights, problem, replace(prices, groups=(first, *rest)), bound)
    with pytest.raises(InvalidInputError, match="not all nodes, each once"):
        check(weights, problem, replace(prices, groups=(first, first, *rest)), bound)
    with pytest.raises(InvalidInputError, match="not all nodes, each once"):
        check(weights, problem, replace(prices, groups=((), first, second, *rest)), bound)


def test_what_is_known_apart_must_be_known_to_the_verifier():
    """A bound that holds only for structures that keep a pair apart is none for the others."""
    weights = np.array([[0, 5, 0], [5, 0, 4], [0, 4, 0]])
    problem = PartitionProblem.undecided(weights).separated(np.array([0]), np.array([1]))
    columns = ConflictColumns(problem, PartitionIncumbent(weights, None, 0))
    columns.search(allowed=lambda value: value, check=lambda: None, seed=0)
    assert columns.bound == 4
    check(weights, problem, columns.proof, 4)
    with pytest.raises(InvalidInputError, match="a coalition is worth more than it pays"):
        check(weights, PartitionProblem.undecided(weights), columns.proof, 4)


@pytest.fixture(scope="module")
def graph() -> SynergyGraph:
    return SynergyGraph(with_conflicts(np.random.default_rng(0), 26, 0.2).astype(float))


@pytest.fixture(scope="module")
def proven(graph):
    return solve(graph, certificate=True)


def test_a_certificate_of_columns_is_accepted_and_others_are_not(graph, proven):
    document = json.loads(json.dumps(proven.certificate.to_json()))
    assert document["version"] == 3
    assert verify(graph, proven.structure, Certificate.from_json(document)).optimal
    (part,) = document["parts"]
    tree = part["tree"][0]["prices"]["tree"]

    def refuse(complaint):
        with pytest.raises(InvalidInputError, match=complaint):
            verify(graph, proven.structure, Certificate.from_json(document))

    part["bound"] -= 1
    refuse("refused")
    part["bound"] += 1
    leaf = tree.pop()
    refuse("a fork has not its two cases" if tree else "it has no tree")
    tree.append(leaf)
    for case in tree:
        if "prices" in case:
            case["prices"][0] -= 1 << part["tree"][0]["prices"]["bits"]
    refuse("a coalition is worth more than it pays")
    del part["tree"][0]["prices"]
    refuse("leaves branch 0 open")
    part["tree"][0]["prices"] = [1]
    refuse("damaged")


def test_the_command_line_writes_it_and_checks_it(graph, tmp_path):
    table = "\n".join(",".join(f"{weight:g}" for weight in row) for row in graph.matrix)
    (tmp_path / "graph.csv").write_text(table + "\n")
    matrix, solution, proof = (tmp_path / name for name in ("graph.csv", "s.json", "c.json"))
    solved = coalitions("solve", matrix, "--output", solution, "--certificate", proof)
    assert solved.returncode == 0, solved.stderr
    document = json.loads(proof.read_text())
    assert document["version"] == 3
    checked = coalitions("verify", matrix, solution, "--certificate", proof)
    assert checked.returncode == 0, checked.stderr
    assert "optimal" in checked.stdout
    document["parts"][0]["bound"] -= 1
    proof.write_text(json.dumps(document))
    refused = coalitions("verify", matrix, solution, "--certificate", proof)
    assert refused.returncode != 0
    assert "the certificate is refused" in refused.stderr
    assert "Traceback" not in refused.stderr
