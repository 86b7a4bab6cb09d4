r"""What an interaction index is: how likely the others join, for coalitions of each size.

The joint contribution of S to R, :math:`\Delta_S v(R) = \sum_{L \subseteq S} (-1)^{|S|-|L|}
v(R \cup L)`, is what the members of S add together beyond what they add apart. Let everybody else
join by the toss of a coin of bias p, and call the mean :math:`D_p(S)`. All indices here are

.. math:: I(S) = \sum_{S \subseteq T,\,|T| \le k} a_{|T|-|S|} \int D_p(T)\,\mu_{|T|}(dp),

a measure of the bias for each size, and for some a sum over larger coalitions up to the order k.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import ClassVar, NamedTuple

import numpy as np

from coalitions.game import FloatVector
from coalitions.registry import Registry


class Measure(NamedTuple):
    """A measure of biases in [0, 1], as points and their weights, which may be negative."""

    points: FloatVector
    weights: FloatVector


def fixed(bias: float) -> Measure:
    """Return the measure of a coin whose bias is known."""
    return Measure(np.array([bias]), np.ones(1))


def density(coefficients: Sequence[float], degree: int) -> Measure:
    r"""Return the measure :math:`\sum_i c_i p^i\,dp`, exact for polynomials of this degree.

    Gauss' rule with q points integrates degrees up to 2q − 1 without error.
    """
    nodes, weights = np.polynomial.legendre.leggauss((degree + len(coefficients)) // 2 + 1)
    points = (nodes + 1) / 2
    return Measure(points, weights / 2 * np.polynomial.polynomial.polyval(points, coefficients))


@dataclass(frozen=True)
class Index(ABC):
    """An interaction index of all coalitions of up to `order` players.

    Attributes
    ----------
    order
        The size of the largest coalitions; some indices of smaller ones depend on it.
    """

    order: int

    least: ClassVar[int] = 1
    """The size of the smallest coalitions; 0 for an index with a value for nobody."""

    has_measure: ClassVar[bool] = True
    """Whether there is a measure; else `masses` is all that is known."""

    efficient: ClassVar[bool] = False
    """Whether the indices of all coalitions but the empty one sum to v(N) − v(∅)."""

    @abstractmethod
    def measure(self, size: int, n_players: int) -> Measure:
        """Return the measure for coalitions of a size, exact for all games of n players."""

    def share(self, more: int) -> float:
        """Return how much a coalition of so many more players counts besides."""
        return 1.0 if more == 0 else 0.0

    def sizes(self) -> range:
        """Return the sizes that have an index."""
        return range(self.least, self.order + 1)

    def masses(self, n_players: int) -> dict[int, FloatVector]:
        r"""Return the weight of all R of r others together, for each size [n − size + 1].

        :math:`I(S) = \sum_r P_r \binom{n-s}{r}^{-1} \sum_{|R|=r} \Delta_S v(R)`. The weights of
        coalitions with i more players are the i-th difference of theirs:
        :math:`P_r = \sum_i a_i \binom{n-s}{i} \sum_l (-1)^{i-l} \binom{i}{l} P^{(s+i)}_{r-l}`.
        """
        plain = {
            size: binomial_mixture(self.measure(size, n_players), n_players - size)
            for size in self.sizes()
        }
        total = {}
        for size in self.sizes():
            total[size] = np.zeros(n_players - size + 1)
            for more in range(self.order - size + 1):
                step = self.share(more)
                if step:
                    change = np.array(
                        [(-1.0) ** (more - at) * comb(more, at) for at in range(more + 1)]
                    )
                    ways = comb(n_players - size, more)
                    total[size] += step * ways * np.convolve(plain[size + more], change)
        return total


def binomial_mixture(measure: Measure, n_others: int) -> FloatVector:
    """Return the weight of each number of others who join."""
    from scipy.special import gammaln, xlogy

    r = np.arange(n_others + 1)
    ways = gammaln(n_others + 1) - gammaln(r + 1) - gammaln(n_others - r + 1)
    p = measure.points[:, None]
    logs = ways + xlogy(r, p) + xlogy(n_others - r, 1 - p)
    mixture: FloatVector = np.einsum("a,ar->r", measure.weights, np.exp(logs))
    return mixture


INDICES: Registry[type[Index]] = Registry("interaction index", "coalitions.indices")

OTHER_NAMES = {"shapley": "SII", "banzhaf": "BII", "Möbius": "Moebius", "Co-Möbius": "Co-Moebius"}
"""What some indices are called besides."""
