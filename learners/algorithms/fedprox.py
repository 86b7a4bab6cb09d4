"""Federated averaging with a proximal term."""

from __future__ import annotations

from dataclasses import dataclass

from learners.algorithm import ALGORITHMS, Algorithm
from learners.settings.options import option


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
        Strength of the pull towards the global model (μ in the paper); 0 is federated averaging.
    """

    mu: float = option(0.01, least=0, changes="models")

    @property
    def proximal(self) -> float:
        """μ."""
        return self.mu
