"""Certificate: a proof of a bound that anybody can check in exact integer arithmetic."""

from __future__ import annotations


class Certificate:
    """A proof that no structure of a graph is worth more than a bound."""
