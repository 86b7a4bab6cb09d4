"""Proofs for teams made without our solver: prices by a linear program over all coalitions.

For a handful of players all coalitions that demands allow can be listed. The linear program over
them gives prices; rounded up, and a little more, they are a proof. Where it is not tight, two
players are together in one case and apart in the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import linprog

from coalitions import CoalitionStructure, SynergyGraph
from solvers import Certificate
from solvers.proofs.proof_demands import TeamDemands
from solvers.proofs.teams import Fork, Leaf, TeamsProof
from tests.reliability.exact import partitions

BITS = 20

Links = list[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Question:
    """Whole synergies between players, and demands on teams of them; n_groups is a range."""

    matrix: np.ndarray
    demands: dict[str, Any]
    links: dict[str, Links]

    @property
    def graph(self) -> SynergyGraph:
        return SynergyGraph(self.matrix.astype(float))

    @property
    def team_demands(self) -> TeamDemands:
        return TeamDemands.of(self.graph, **self.demands)

    def allows(self, coalition: Sequence[int]) -> bool:
        """Tell whether one coalition keeps to the demands."""
        some, asked = set(coalition), self.demands
        return (
            asked.get("min_size", 1) <= len(some) <= asked.get("max_size", len(self.matrix))
            and sum(asked.get("weights", [0] * 99)[i] for i in some) <= asked.get("max_weight", 0)
            and all(some & set(role) for role in asked.get("at_least_one_of", ()))
            and all((a in some) == (b in some) for a, b in self.links["must_link"])
            and not any(a in some and b in some for a, b in self.links["cannot_link"])
        )

    def worth(self, coalition: Sequence[int]) -> int:
        return sum(int(self.matrix[a, b]) for a, b in itertools.combinations(coalition, 2))

    def best(self) -> tuple[int, CoalitionStructure] | None:
        """Return the optimum by looking at all partitions; None if none meets the demands."""
        n = len(self.matrix)
        every = [[i for i in range(n) if mask >> i & 1] for mask in range(1 << n)]
        allowed = np.array([not some or self.allows(some) for some in every])
        worth = np.array([self.worth(some) for some in every])
        labels = partitions(n)
        count = labels.max(axis=1) + 1
        fewest, most = self.demands.get("n_groups", (1, n))
        good, values = (fewest <= count) & (count <= most), np.zeros(len(labels), np.int64)
        for block in range(n):
            mask = (labels == block) @ (1 << np.arange(n))
            good &= allowed[mask]
            values += worth[mask]
        if not good.any():
            return None
        found = np.flatnonzero(good)[np.argmax(values[good])]
        return int(values[found]), CoalitionStructure.from_labels(labels[found])


def question(rng: np.random.Generator, n: int) -> Question:
    """Return a question of a random kind; it may have no answer."""
    matrix = np.triu(rng.integers(-9, 10, (n, n)), 1)
    demands: dict[str, Any] = {}
    kinds = rng.random(5) < 0.4
    if kinds[0]:
        least = int(rng.integers(1, n + 1))
        demands["n_groups"] = (least, int(rng.integers(least, n + 1)))
    if kinds[1]:
        demands["min_size"] = int(rng.integers(1, n // 2 + 1))
    if kinds[2] or not kinds.any():
        demands["max_size"] = int(rng.integers(max(1, demands.get("min_size", 1)), n + 1))
    if kinds[3]:
        demands["weights"] = rng.integers(0, 5, n).tolist()
        demands["max_weight"] = int(rng.integers(4, 10))
    if kinds[4]:
        demands["at_least_one_of"] = [
            sorted(rng.choice(n, int(rng.integers(n // 2, n)), replace=False).tolist())
            for _ in range(rng.integers(1, 3))
        ]
    links: dict[str, Links] = {"must_link": [], "cannot_link": []}
    for name in links:
        if rng.random() < 0.4:
            links[name] = [tuple(rng.choice(n, 2, replace=False).tolist())]
    return Question(matrix + matrix.T, demands, links)


def proof_of(asked: Question, optimum: int, forks: int = 0) -> Certificate:
    """Return a certificate that nothing is worth more than `optimum`, which must be so.

    It has at least `forks` forks on the way to each leaf, needed or not, if there are pairs left.
    """
    n = len(asked.matrix)
    node_of = np.arange(n)
    for a, b in asked.links["must_link"]:
        node_of[node_of == node_of[b]] = node_of[a]
    nodes = [tuple(np.flatnonzero(node_of == k).tolist()) for k in np.unique(node_of)]
    inside = sum(map(asked.worth, nodes))
    every = [
        some
        for size in range(1, len(nodes) + 1)
        for some in itertools.combinations(range(len(nodes)), size)
        if asked.allows([player for k in some for player in nodes[k]])
    ]
    values = {
        some: asked.worth([player for k in some for player in nodes[k]])
        - sum(asked.worth(nodes[k]) for k in some)
        for some in every
    }
    demands = asked.team_demands
    tree: list[Leaf | Fork | None] = [None]
    waiting: list[tuple[int, Links, Links]] = [(0, [], [])]
    while waiting:
        entry, together, apart = waiting.pop()
        allowed = [
            some
            for some in every
            if all((a in some) == (b in some) for a, b in together)
            and not any(a in some and b in some for a, b in apart)
        ]
        decided = set(together) | set(apart)
        leaf, levels = _leaf(allowed, values, len(nodes), demands)
        total = int(leaf.prices.sum()) + int(leaf.triple_prices.sum())
        total += max(k * leaf.count_price for k in (demands.fewest, demands.most))
        undecided = len(nodes) * (len(nodes) - 1) // 2 - len(decided)
        if total >> BITS <= optimum - inside and len(decided) >= min(forks, undecided):
            tree[entry] = leaf
            continue
        doubt = {
            pair: abs(0.5 - sum(x for x, c in zip(levels, allowed, strict=True) if {*pair} <= {*c}))
            for pair in itertools.combinations(range(len(nodes)), 2)
            if pair not in decided
        }
        pair = min(doubt, key=lambda pair: (doubt[pair], pair))
        tree[entry] = Fork(pair, len(tree), len(tree) + 1)
        tree += [None, None]
        waiting += [
            (len(tree) - 2, [*together, pair], apart),
            (len(tree) - 1, together, [*apart, pair]),
        ]
    # Each fork stands before its cases, as they were appended after it.
    proof = TeamsProof(tuple(nodes), Fraction(1), BITS, optimum - inside, tuple(tree))
    return Certificate(
        n,
        (),
        tuple(asked.links["must_link"]),
        tuple(asked.links["cannot_link"]),
        teams=proof,
        demands=demands,
    )


def _leaf(
    allowed: list[tuple[int, ...]],
    values: dict[tuple[int, ...], int],
    n: int,
    demands: TeamDemands,
) -> tuple[Leaf, list[float]]:
    """Return whole prices that pay for all coalitions, and the levels of the linear program."""
    triples = list(itertools.combinations(range(n), 3))
    dear = 4.0 * sum(map(abs, values.values())) + 10.0
    # Beside each coalition, columns that let a node be missing or the number be wrong.
    m = len(allowed)
    once = np.zeros((n, m + 2 * n + 2))
    rows = np.zeros((2 + len(triples), m + 2 * n + 2))
    for k, some in enumerate(allowed):
        once[list(some), k] = 1.0
        rows[:2, k] = 1.0, -1.0
        rows[2:, k] = [len({*triple} & {*some}) >= 2 for triple in triples]
    once[:, m : m + n], once[:, m + n : m + 2 * n] = np.eye(n), -np.eye(n)
    rows[0, -2] = rows[1, -1] = -1.0
    answer = linprog(
        np.concatenate(([-float(values[some]) for some in allowed], np.full(2 * n + 2, dear))),
        A_ub=rows,
        b_ub=[demands.most, -demands.fewest, *[1] * len(triples)],
        A_eq=once,
        b_eq=np.ones(n),
        method="highs",
    )
    assert answer.success
    prices = [-round(price * 2**BITS) for price in answer.eqlin.marginals]
    over, under, *others = answer.ineqlin.marginals
    count_price = round((under - over) * 2**BITS)
    paying = {
        triple: paid
        for triple, price in zip(triples, others, strict=True)
        if (paid := -round(price * 2**BITS)) > 0
    }
    for some in allowed:  # what rounding took is paid by the first node
        paid = sum(price for triple, price in paying.items() if len({*triple} & {*some}) >= 2)
        short = (values[some] << BITS) - sum(prices[k] for k in some) - count_price - paid
        prices[some[0]] += max(0, short)
    leaf = Leaf(
        np.array(prices),
        count_price,
        np.array(list(paying), np.int64).reshape(-1, 3),
        np.array(list(paying.values()), np.int64),
    )
    return leaf, answer.x[:m].tolist()
