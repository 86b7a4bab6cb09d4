"""How a server makes one model of many."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from torch import Tensor

from coalitions.registry import Registry
from learners.parameters import weighted_mean

Aggregation: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Maps rows [n, P] and their weights [n] to one row."""

AGGREGATIONS: Registry[Aggregation] = Registry("aggregation", "learners.aggregation")


@AGGREGATIONS.register("mean")
def mean(rows: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted mean."""
    return weighted_mean(rows, weights)
