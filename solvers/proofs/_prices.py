r"""Prices that close a branch of a part: its groups are few, and many of them in conflict.

The branch knows nodes to be together, and groups of them to be apart. The proof has groups of its
own, each inside one of the branch's: it compares more structures, so what it proves holds there.
With :math:`P_i` what group i can gain from those it is not known to be apart from, a pair with
:math:`w_{ij} \le -\min(P_i, P_j)` is in *conflict*: in a structure that has them together one of
the two loses nothing by being alone. So some best structure has them apart, and only coalitions
without a conflict must be paid for.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from coalitions.game import BoolMatrix, IntVector
from solvers.proofs._coalitions import Rules, check_teams
from solvers.proofs._weights import Whole
from solvers.proofs.reading import refuse_unless
from solvers.proofs.teams import GroupPrices, TeamsProof

MOST_GROUPS = 200
"""Most groups that prices may be for: ours are for 80 at most."""


def check_prices(
    prices: GroupPrices,
    known: IntVector,
    apart: IntVector,
    one: IntVector,
    two: IntVector,
    weights: Whole,
    bound: int,
    name: str,
) -> None:
    """Refuse prices unless no structure of a branch is worth more than a bound.

    Parameters
    ----------
    prices
        The proof.
    known
        Nodes that are together in the branch have the same number [n].
    apart
        Pairs of nodes that are apart there, and all that are together with them [k, 2].
    one, two, weights
        Pairs of nodes with a weight, each once, and their whole numbers.
    bound
        What is claimed.
    name
        What the part is called in a complaint.

    Raises
    ------
    InvalidInputError
        The proof does not show it.
    """
    group = _groups(prices, known, name)
    m = len(prices.groups)
    a, b = group[one], group[two]
    matrix = np.zeros((m, m), weights.dtype)
    np.add.at(matrix, (a, b), weights)
    inside = int(matrix.diagonal().sum())
    np.fill_diagonal(matrix, 0)
    matrix = matrix + matrix.T
    forbidden = _conflicts(matrix, _apart(prices, known, apart))
    first, second = np.nonzero(np.triu(~forbidden, 1))
    rules = Rules(
        fewest=1,
        most=m,
        players=np.ones(m, np.int64),
        min_size=1,
        max_size=m,
        loads=np.zeros(m, np.int64),
        max_load=0,
        holds=np.zeros((m, 0), np.bool_),
        apart=forbidden,
    )
    proof = TeamsProof(prices.groups, Fraction(1), prices.bits, bound - inside, prices.tree)
    check_teams(proof, first, second, matrix[first, second], rules)


def _groups(prices: GroupPrices, known: IntVector, name: str) -> IntVector:
    """Return the group of each node, if every node is in one and none goes too far."""
    refuse_unless(
        len(prices.groups) <= MOST_GROUPS, f"{name} has prices of more than {MOST_GROUPS} groups"
    )
    nodes = [node for members in prices.groups for node in members]
    refuse_unless(
        all(prices.groups) and sorted(nodes) == list(range(len(known))),
        f"{name} has prices of groups that are not all nodes, each once",
    )
    group = np.empty(len(known), np.int64)
    for number, members in enumerate(prices.groups):
        group[list(members)] = number
        refuse_unless(
            len(set(known[list(members)].tolist())) == 1,
            f"{name} has a price of nodes that need not be together",
        )
    return group


def _apart(prices: GroupPrices, known: IntVector, apart: IntVector) -> BoolMatrix:
    """Return which groups are known to be apart [m, m]."""
    names, numbers = np.unique(known, return_inverse=True)
    between = np.zeros((len(names), len(names)), np.bool_)
    between[numbers[apart[:, 0]], numbers[apart[:, 1]]] = True
    of = numbers[[members[0] for members in prices.groups]]
    found: BoolMatrix = (between | between.T)[np.ix_(of, of)]
    return found


def _conflicts(matrix: Whole, apart: BoolMatrix) -> BoolMatrix:
    """Return the pairs that some best structure has apart, of those that keep to `apart`."""
    m = len(matrix)
    found = apart | np.eye(m, dtype=np.bool_)
    while True:
        gains = np.where(found, 0, np.maximum(matrix, 0)).sum(axis=1)
        least = np.minimum(gains[:, None], gains)
        more = (matrix <= -least).astype(np.bool_) & ~found
        if not more.any():
            np.fill_diagonal(found, False)
            return found
        # With these apart there is less to gain, so that others may follow.
        found |= more
