r"""Interaction indices: what an index is, the built-in ones, and how they weigh coalitions.

The joint contribution of S to R, :math:`\Delta_S v(R) = \sum_{L \subseteq S} (-1)^{|S|-|L|}
v(R \cup L)`, is what the members of S add together beyond what they add apart. Let every other
player join by the toss of a coin of bias p, and call the mean :math:`D_p(S)`. All indices here are

.. math:: I(S) = \sum_{S \subseteq T,\,|T| \le k} a_{|T|-|S|} \int D_p(T)\,\mu_{|T|}(dp),

a measure of the bias for each size, and for some a sum over larger coalitions up to the order k.
So a new index states its measure, and the rest follows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, factorial, prod
from typing import ClassVar, NamedTuple

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.game import BoolMatrix, FloatMatrix, FloatVector, IntMatrix, IntVector
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


INDICES: Registry[type[Index]] = Registry(
    "interaction index", "coalitions.values.interaction_indices"
)

OTHER_NAMES = {"shapley": "SII", "banzhaf": "BII", "Möbius": "Moebius", "Co-Möbius": "Co-Moebius"}
"""What some indices are called besides."""


# ----------------------------------------------------------------------------------------
# The built-in indices


@INDICES.register("SII")
class ShapleyInteraction(Index):
    """All sizes of the others are equally likely [Grabisch1999]_."""

    def measure(self, size: int, n_players: int) -> Measure:
        """Return the uniform distribution."""
        return density([1.0], n_players - size)


@INDICES.register("BII")
class BanzhafInteraction(Index):
    """All coalitions of the others are equally likely [Grabisch1999]_."""

    def measure(self, size: int, n_players: int) -> Measure:
        """Return a fair coin."""
        return fixed(0.5)


@INDICES.register("STII")
class ShapleyTaylorInteraction(Index):
    r"""Joint contributions to nobody, and the rest among coalitions of k [Sundararajan2020]_.

    Below the order k it is the Möbius transform; at the order every larger coalition's dividend is
    shared out equally among its subsets of k players. The density is :math:`k (1-p)^{k-1}`.
    """

    efficient = True

    def measure(self, size: int, n_players: int) -> Measure:
        """Return nobody below the order, and small coalitions rather than large ones at it."""
        if size < self.order:
            return fixed(0.0)
        k = self.order
        falling = [k * (-1.0) ** i * comb(k - 1, i) for i in range(k)]
        return density(falling, n_players - size)


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


@INDICES.register("FBII")
class FaithfulBanzhafInteraction(Index):
    r"""Coefficients of the polynomial of degree k that is nearest to v over all S [Tsai2023]_.

    .. math:: I(S) = \sum_{S \subseteq T,\,|T| \le k} (-\tfrac12)^{|T|-|S|}\,\mathrm{BII}(T)

    since :math:`\sum_T \mathrm{BII}(T) \prod_{i \in T} (x_i - \tfrac12)` is that polynomial
    [Hammer1992]_. The index of the empty coalition is its constant.
    """

    least = 0

    def measure(self, size: int, n_players: int) -> Measure:
        """Return a fair coin."""
        return fixed(0.5)

    def share(self, more: int) -> float:
        """Return what multiplying out leaves to a smaller product."""
        return (-0.5) ** more


@INDICES.register("k-SII")
class EfficientShapleyInteraction(Index):
    r"""Shapley interactions whose sum up to the order k is v(N) − v(∅) [Bordt2023]_.

    .. math:: I(S) = \sum_{S \subseteq T,\,|T| \le k} B_{|T|-|S|}\,\mathrm{SII}(T)

    with Bernoulli's numbers, :math:`B_1 = -\tfrac12`. Of order 1 it is the Shapley value.
    """

    efficient = True

    def measure(self, size: int, n_players: int) -> Measure:
        """Return the uniform distribution."""
        return density([1.0], n_players - size)

    def share(self, more: int) -> float:
        """Return Bernoulli's number."""
        from scipy.special import bernoulli

        return float(bernoulli(more)[more])


@INDICES.register("CHII")
class ChainingInteraction(Index):
    r"""Joint contributions in random orders, once the last of S has come [Marichal1999]_.

    The density is :math:`s p^{s-1}`: that of the largest of s uniform numbers.
    """

    def measure(self, size: int, n_players: int) -> Measure:
        """Return the distribution of when the last one comes."""
        return density([0.0] * (size - 1) + [float(size)], n_players - size)


@INDICES.register("Moebius")
class Dividend(Index):
    """Joint contributions to nobody: Harsanyi's dividends [Harsanyi1963]_."""

    def measure(self, size: int, n_players: int) -> Measure:
        """Return a coin that never lets anybody join."""
        return fixed(0.0)


@INDICES.register("Co-Moebius")
class CoDividend(Index):
    """Joint contributions to everybody else: what is lost if S leaves [Grabisch1999]_."""

    def measure(self, size: int, n_players: int) -> Measure:
        """Return a coin that lets everybody join."""
        return fixed(1.0)


# ----------------------------------------------------------------------------------------
# Semivalues as indices of single players, and an index of pairs alone


@dataclass(frozen=True, eq=False)
class Semivalue(Index):
    """The semivalue of a distribution of sizes; what the coin is like is not known.

    Attributes
    ----------
    by_number
        How likely a player meets k others [n].
    """

    by_number: FloatVector

    has_measure: ClassVar[bool] = False

    def measure(self, size: int, n_players: int) -> Measure:
        """Refuse: not every distribution is one of tossed coins."""
        raise InvalidInputError("a distribution of sizes has no measure of a coin")

    def masses(self, n_players: int) -> dict[int, FloatVector]:
        """Return the distribution itself."""
        del n_players
        return {1: self.by_number}


@dataclass(frozen=True)
class BetaSemivalue(Index):
    """The Beta-Shapley value: the coin's bias has a Beta distribution [Kwon2022]_.

    Attributes
    ----------
    alpha, beta
        As in `coalitions.beta_shapley`.
    """

    alpha: float
    beta: float

    def measure(self, size: int, n_players: int) -> Measure:
        """Return Gauss' rule for the Beta(β, α) density of the bias."""
        from scipy.special import roots_jacobi

        nodes, weights = roots_jacobi(n_players // 2 + 1, self.alpha - 1, self.beta - 1)
        return Measure((nodes + 1) / 2, np.asarray(weights / weights.sum()))


@dataclass(frozen=True)
class PairsOnly(Index):
    """What another index, whose sizes do not depend on each other, says of pairs.

    Attributes
    ----------
    whole
        The other index.
    """

    whole: Index

    least: ClassVar[int] = 2

    def measure(self, size: int, n_players: int) -> Measure:
        """Return the measure of the other index."""
        return self.whole.measure(size, n_players)


# ----------------------------------------------------------------------------------------
# All coalitions of a few players, listed size by size

MOST_COALITIONS = 1_000_000
"""Most coalitions that have an index at a time."""

Parts = dict[int, FloatVector]
"""A number for each coalition, size by size, in the order of `coalitions_of_size`."""


def coalitions_of_size(n_players: int, size: int) -> IntMatrix:
    """Return all coalitions of a size in lexicographic order, one a row [C(n, size), size]."""
    flat = [player for coalition in combinations(range(n_players), size) for player in coalition]
    return np.array(flat, np.int64).reshape(comb(n_players, size), size)


def check_number(index: Index, n_players: int) -> None:
    """Refuse an order at which there are too many coalitions."""
    count = sum(comb(n_players, size) for size in index.sizes())
    if count > MOST_COALITIONS:
        raise InvalidInputError(
            f"{n_players} players have {count} coalitions of up to {index.order}, more than"
            f" {MOST_COALITIONS}; ask for a lower order"
        )


def rank_of(coalitions: IntMatrix, n_players: int) -> IntVector:
    r"""Return the places of coalitions, each in ascending order, in the list of their size.

    Before :math:`c_1 < \dots < c_s` come all that differ from it first by a smaller player:
    the rank is :math:`\binom ns - 1 - \sum_i \binom{n - 1 - c_i}{s - i + 1}`.
    """
    size = coalitions.shape[1]
    rank = np.full(len(coalitions), comb(n_players, size) - 1, np.int64)
    for place in range(size):
        ways = np.array([comb(n_players - 1 - c, size - place) for c in range(n_players)])
        rank -= ways[coalitions[:, place]]
    return rank


def gathered(index: Index, plain: Parts, n_players: int) -> Parts:
    """Return an index from its integrals: each coalition's own, and its share of larger ones'."""
    total = {size: index.share(0) * plain[size] for size in index.sizes()}
    for size in index.sizes():
        for more in range(1, index.order - size + 1):
            share = index.share(more)
            if share == 0.0:
                continue
            larger = coalitions_of_size(n_players, size + more)
            for chosen in combinations(range(size + more), size):
                places = rank_of(larger[:, list(chosen)], n_players)
                sums = np.bincount(places, plain[size + more], minlength=len(total[size]))
                total[size] = total[size] + share * sums
    return total


def concatenated(parts: Parts) -> FloatVector:
    """Return the numbers of all sizes one after the other."""
    return np.concatenate([parts[size] for size in sorted(parts)])


# ----------------------------------------------------------------------------------------
# An index as a weighted sum over coalitions
#
# .. math:: I(S) = \sum_U (-1)^{|S|-l}\,p_{|U|-l}\,v(U), \quad l = |U \cap S|,\;
#           p_r = P_r \binom{n-s}{r}^{-1}.

CHUNK = 4_000_000
"""Numbers in memory at a time."""


def coefficients(masses: FloatVector, size: int, n_players: int) -> FloatMatrix:
    """Return the weight of all U of u players together if l of S are in it [size + 1, n + 1].

    It is that of a single U times the number of coalitions of its size, so that it stays in
    range; a mean over coalitions of the size times this is their sum.
    """
    table = np.zeros((size + 1, n_players + 1))
    for inside in range(size + 1):
        for others in range(n_players - size + 1):
            u = others + inside
            ratio = comb(n_players, u) / comb(n_players - size, others)
            table[inside, u] = (-1.0) ** (size - inside) * masses[others] * ratio
    return table


def counting_sizes(index: Index, n_players: int) -> list[int]:
    """Return the sizes of coalitions whose values the index depends on."""
    sizes: set[int] = set()
    for size, masses in index.masses(n_players).items():
        for others in np.flatnonzero(masses):
            sizes.update(range(int(others), int(others) + size + 1))
    return sorted(sizes)


def blocks_of_weights(
    table: FloatMatrix, coalitions: IntMatrix, rows: BoolMatrix
) -> Iterator[tuple[slice, FloatMatrix]]:
    """Yield the weights of the rows [rows, some] for one part of the coalitions after another."""
    sizes = rows.sum(axis=1)
    step = max(1, CHUNK // max(1, len(rows)))
    columns = np.ascontiguousarray(rows.T.astype(np.int8))
    for start in range(0, len(coalitions), step):
        part = slice(start, start + step)
        inside = np.zeros((len(rows), len(coalitions[part])), np.int8)
        for place in range(coalitions.shape[1]):
            inside += columns[coalitions[part, place]].T
        yield part, table[inside, sizes[:, None]]


def weighted_sums(
    masses: FloatVector, coalitions: IntMatrix, rows: BoolMatrix, values: FloatVector
) -> FloatVector:
    """Return the sums over the rows: the index itself, if these are all that count."""
    n, size = rows.shape[1], coalitions.shape[1]
    table = coefficients(masses, size, n)
    # Of so many coalitions a few make no difference: 1e300 is as good as the number itself.
    existing = np.array([min(comb(n, u), 10**300) for u in range(n + 1)], float)
    shares = values / existing[rows.sum(axis=1)]
    total = np.empty(len(coalitions))
    for part, weights in blocks_of_weights(table, coalitions, rows):
        total[part] = shares @ weights
    return total
