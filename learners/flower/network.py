"""What can be told of a network of a user's own without its data."""

from __future__ import annotations

from coalitions.errors import InvalidInputError
from learners.rows.parameters import Layout


def n_outputs(layout: Layout) -> int:
    """Return how many numbers a network gives: the length of its last linear layer."""
    head = layout.classifiers.get("head")
    if head is None:
        raise InvalidInputError("the network has no linear layer, which would tell its outputs")
    return layout.shapes[next(iter(head))][0]
