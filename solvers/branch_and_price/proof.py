"""The certificate of a search: its record, as the verifier reads it."""

from __future__ import annotations

from fractions import Fraction

from solvers.branch_and_price import record as kept
from solvers.proofs.certificate import Certificate
from solvers.proofs.teams import Fork, Leaf, TeamsProof


def certificate_of(record: kept.Record, n_nodes: int, unit: Fraction) -> Certificate:
    """Return a certificate for nodes, each a player, whose integer weights count in `unit`."""
    tree = tuple(
        Fork(case.pair, case.together, case.apart)
        if isinstance(case, kept.Fork)
        else Leaf(case.prices, case.count_price, case.triples, case.triple_prices)
        for case in record.tree
    )
    nodes = tuple((node,) for node in range(n_nodes))
    return Certificate(n_nodes, (), teams=TeamsProof(nodes, unit, record.bits, record.bound, tree))
