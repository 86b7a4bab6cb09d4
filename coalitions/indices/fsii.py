"""The faithful Shapley interaction index."""

from __future__ import annotations

from math import factorial, prod

from coalitions.joint.index import INDICES, Index, Measure, density


@INDICES.register("FSII")
class FaithfulShapleyInteraction(Index):
    r"""Coefficients of the polynomial of degree k that fits v best as Shapley weighs [Tsai2023]_.

    The fit has the weights of KernelSHAP and no error at ∅ and N. In dividends m

    .. math:: I(S) = \sum_{T \supseteq S} c(|T|-|S|)\,m(T),\quad c(j) = (-1)^{k-s}
        \frac{s (s+1) \cdots (s+k-1)}{(k-s)!}
        \frac{(j-1) \cdots (j-k+s)}{(j+s) \cdots (j+s+k-1)}.

    Partial fractions :math:`a_i / (j+s+i)` of c make the density :math:`\sum_i a_i p^{s+i-1}`; at
    the order it is that of a Beta(k, k) distribution.
    """

    efficient = True

    def measure(self, size: int, n_players: int) -> Measure:
        """Return the density of the partial fractions."""
        k, s = self.order, size
        scale = (-1.0) ** (k - s) * prod(range(s, s + k)) / factorial(k - s)
        coefficients = [0.0] * (s - 1)
        for i in range(k):
            above = prod(-(s + i) - step for step in range(1, k - s + 1))
            below = prod(other - i for other in range(k) if other != i)
            coefficients.append(scale * above / below)
        return density(coefficients, n_players - size)
