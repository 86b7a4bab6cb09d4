"""The certificate of a search: its record, as the verifier reads it."""

from __future__ import annotations

from fractions import Fraction

from solvers.branch_and_price.record import Record
from solvers.proofs.certificate import Certificate
from solvers.proofs.teams import TeamsProof


def certificate_of(record: Record, n_nodes: int, unit: Fraction) -> Certificate:
    """Return a certificate for nodes, each a player, whose integer weights count in `unit`."""
    nodes = tuple((node,) for node in range(n_nodes))
    proof = TeamsProof(nodes, unit, record.bits, record.bound, record.tree)
    return Certificate(n_nodes, (), teams=proof)
