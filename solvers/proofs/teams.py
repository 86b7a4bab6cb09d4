r"""TeamsProof: prices that pay for every coalition that demands allow, case by case.

The root of the tree is its first entry. A fork splits its case: structures that have a pair of
nodes together, and those that have it apart. A leaf proves its case by whole numbers: prices
:math:`\pi_i` of nodes, :math:`\mu` of a coalition and :math:`\sigma_T \ge 0` of triples with

.. math:: 2^{\text{bits}}\, v(C) \le
   \sum_{i \in C} \pi_i + \mu + \sum_{T : |C \cap T| \ge 2} \sigma_T

for every coalition C that the demands and the case allow. A structure has every node once, from
``fewest`` to ``most`` coalitions, and at most one with two nodes of a triple. So none is worth more
than :math:`2^{-\text{bits}} (\sum \pi + \sum \sigma + k \mu)` for the worse of both numbers k.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from coalitions.game import IntMatrix, IntVector
from solvers.proofs.proof_demands import damaged, entry, fraction, list_of, vector, whole, wholes

MOST_BITS = 60
"""Most bits by which prices may be finer, or coarser, than weights."""


@dataclass(frozen=True, eq=False)
class Leaf:
    """Prices that prove the bound where all pairs on the way hold.

    Attributes
    ----------
    prices
        What each node pays [n]; of any sign.
    count_price
        What each coalition pays; of any sign.
    triples
        Triples of different nodes [m, 3].
    triple_prices
        What a coalition pays that has two or three nodes of a triple [m]; not negative.
    """

    prices: IntVector
    count_price: int
    triples: IntMatrix
    triple_prices: IntVector


@dataclass(frozen=True)
class Fork:
    """A pair of nodes, and the numbers of the two cases: together and apart."""

    pair: tuple[int, int]
    together: int
    apart: int


@dataclass(frozen=True, eq=False)
class TeamsProof:
    """A tree of cases and the bound it proves.

    Attributes
    ----------
    nodes
        The players behind each node: all of them, those who must be together in one.
    unit
        The value of one integer weight.
    bits
        Prices are in units of 2^−bits of an integer weight; where that is coarser, weights are
        rounded up.
    bound
        No structure is worth more, in integer weights, beside what is inside nodes.
    tree
        Forks and leaves, the root first, each fork before its cases.
    """

    nodes: tuple[tuple[int, ...], ...]
    unit: Fraction
    bits: int
    bound: int
    tree: tuple[Leaf | Fork, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the proof as plain lists and numbers."""
        return {
            "nodes": [list(node) for node in self.nodes],
            "unit": [self.unit.numerator, self.unit.denominator],
            "bits": self.bits,
            "bound": self.bound,
            "tree": [_entry_to_json(case) for case in self.tree],
        }

    @classmethod
    def from_json(cls, document: Any) -> TeamsProof:  # noqa: ANN401 (whatever a file holds)
        """Return the proof that plain lists and numbers describe.

        Raises
        ------
        InvalidInputError
            They describe none.
        """
        return cls(
            nodes=tuple(wholes(node, "nodes") for node in list_of(document, "nodes")),
            unit=fraction(entry(document, "unit"), "unit"),
            bits=whole(entry(document, "bits"), "bits"),
            bound=whole(entry(document, "bound"), "bound"),
            tree=tuple(_entry_from_json(case) for case in list_of(document, "tree")),
        )


@dataclass(frozen=True, eq=False)
class GroupPrices:
    """Prices that pay for every coalition of groups of nodes without a conflict, case by case.

    Attributes
    ----------
    groups
        The nodes of each group: all nodes, each once. The prices and pairs below are of groups.
    bits
        Prices are in units of 2^−bits of an integer weight.
    tree
        Forks and leaves, the root first, each fork before its cases.
    """

    groups: tuple[tuple[int, ...], ...]
    bits: int
    tree: tuple[Leaf | Fork, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the prices as plain lists and numbers."""
        return {
            "groups": [list(group) for group in self.groups],
            "bits": self.bits,
            "tree": [_entry_to_json(case) for case in self.tree],
        }

    @classmethod
    def from_json(cls, document: Any) -> GroupPrices:  # noqa: ANN401
        """Return the prices that plain lists and numbers describe.

        Raises
        ------
        InvalidInputError
            They describe none.
        """
        return cls(
            groups=tuple(wholes(group, "groups") for group in list_of(document, "groups")),
            bits=whole(entry(document, "bits"), "bits"),
            tree=tuple(_entry_from_json(case) for case in list_of(document, "tree")),
        )


def one_node_proof() -> TeamsProof:
    """Return the proof where all players must be together: nothing is to be gained."""
    none = np.empty(0, np.int64)
    leaf = Leaf(np.zeros(1, np.int64), 0, none.reshape(0, 3), none)
    return TeamsProof(((0,),), Fraction(1), 0, 0, (leaf,))


def _entry_to_json(case: Leaf | Fork) -> dict[str, Any]:
    if isinstance(case, Fork):
        return {"pair": list(case.pair), "together": case.together, "apart": case.apart}
    return {
        "prices": case.prices.tolist(),
        "count_price": case.count_price,
        "triples": case.triples.tolist(),
        "triple_prices": case.triple_prices.tolist(),
    }


def _entry_from_json(document: Any) -> Leaf | Fork:  # noqa: ANN401
    if isinstance(document, dict) and "pair" in document:
        i, j = wholes(document["pair"], "pair", 2)
        together, apart = (whole(entry(document, name), name) for name in ("together", "apart"))
        return Fork((i, j), together, apart)
    triples = [wholes(row, "triples", 3) for row in list_of(document, "triples")]
    prices = vector(entry(document, "triple_prices"), "triple_prices")
    if len(prices) != len(triples):
        raise damaged("there are not as many triple_prices as triples")
    corners = vector([node for row in triples for node in row], "triples")
    return Leaf(
        vector(entry(document, "prices"), "prices"),
        whole(entry(document, "count_price"), "count_price"),
        corners.reshape(-1, 3),
        prices,
    )
