"""Federated averaging with a proximal term."""

from __future__ import annotations

from dataclasses import dataclass

from coalitions.errors import InvalidInputError
from learners.algorithm import ALGORITHMS, Algorithm


@ALGORITHMS.register("fedprox")
@dataclass(frozen=True)
class FedProx(Algorithm):
    r"""Federated averaging whose clients stay near the global model [Li2020]_.

    Eq. (2) there:

    .. math:: h_i(w; w^t) = F_i(w) + \tfrac{\mu}{2} \lVert w - w^t \rVert^2

    Clients do the epochs they are asked for: stragglers with less work are not simulated.

    Parameters
    ----------
    mu
        Weight of the proximal term; 0 is federated averaging.
    """

    mu: float = 0.01

    def __post_init__(self) -> None:
        if not self.mu >= 0:
            raise InvalidInputError(f"mu of fedprox must be 0 or more, not {self.mu}")

    @property
    def proximal(self) -> float:
        """μ."""
        return self.mu
