r"""Record: what a search by branch-and-price leaves behind, so that its bound can be checked.

All numbers are whole. Weights are those of `integer_weights`, and prices count in units that are
:math:`2^{-\text{bits}}` of them. The root of the tree is ``tree[0]``; a fork splits its case:
structures that have a pair of nodes together, and those that have it apart. A leaf proves its case.

A leaf has a price :math:`\pi_i` for each node, a price :math:`\mu` for each coalition, and prices
:math:`\sigma_T \ge 0` for some triples of nodes, with

.. math:: 2^{\text{bits}}\, v(C) \le
   \sum_{i \in C} \pi_i + \mu + \sum_{T : |C \cap T| \ge 2} \sigma_T

for every coalition C that is allowed there: it meets the demands, it has both or none of each pair
together on the way to the leaf, and not both of any pair apart. A structure has every node once,
k coalitions with fewest ≤ k ≤ most, and at most one coalition with two nodes of a triple or more.
Added up, none that belongs to the leaf is worth more than

.. math:: 2^{-\text{bits}} \Bigl( \sum_i \pi_i
   + \max(\text{most} \cdot \mu, \text{fewest} \cdot \mu) + \sum_T \sigma_T \Bigr),

and since values are whole, not more than that rounded down: at most ``bound`` in every leaf.
Where weights are large, bits are negative: a price counts several units of weights then.
If no structure meets the demands, the bound is below minus the sum of all losses.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from solvers.proofs.certificate import Certificate
from solvers.proofs.teams import Fork, Leaf, TeamsProof


@dataclass(frozen=True)
class Record:
    """A tree of cases and the bound it proves.

    Attributes
    ----------
    bits
        Prices are in units of 2^−bits of an integer weight; may be negative.
    bound
        No structure is worth more, in integer weights.
    tree
        Forks and leaves; the first is the root.
    """

    bits: int
    bound: int
    tree: tuple[Leaf | Fork, ...]

    def certificate(self, n_nodes: int, unit: Fraction) -> Certificate:
        """Return a certificate for nodes, each a player, whose integer weights count in `unit`."""
        nodes = tuple((node,) for node in range(n_nodes))
        proof = TeamsProof(nodes, unit, self.bits, self.bound, self.tree)
        return Certificate(n_nodes, (), teams=proof)
