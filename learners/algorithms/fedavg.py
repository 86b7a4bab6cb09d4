"""Federated averaging."""

from __future__ import annotations

from dataclasses import dataclass

from learners.algorithm import ALGORITHMS, Algorithm


@ALGORITHMS.register("fedavg")
@dataclass(frozen=True)
class FedAvg(Algorithm):
    """Federated averaging: one global model, the mean of what clients train [McMahan2017]_."""
