"""Two results beside each other: what differs, and how far they agree on the order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.game import FloatVector
from coalitions.sampling.estimator import Estimate


@dataclass(frozen=True)
class RankCorrelation:
    r"""Kendall's rank correlation of two results, and what it can be at least and at most.

    .. math:: \tau = \frac{2}{n(n-1)} \sum_{i<j}
              \operatorname{sign}(\phi_i - \phi_j)\,\operatorname{sign}(\psi_i - \psi_j)

    A pair of players counts +1 if both results put it in the same order, −1 if not, and 0 for a
    tie. For the ends a pair whose order one of the results has not settled may count either way.
    Settled means that the intervals of the two players lie apart, all intervals together holding
    with the confidence `level`. So the true correlation lies between the ends with that
    confidence, if the standard errors are right; usually well inside.

    Attributes
    ----------
    value
        The correlation of the estimates themselves.
    low, high
        The ends.
    level
        The confidence.
    """

    value: float
    low: float
    high: float
    level: float


def difference(one: Estimate, other: Estimate) -> Estimate:
    """Return the first minus the second; see `Estimate.difference`."""
    other = _matched(one, other)
    variance, other_variance = one.stderr**2, other.stderr**2
    stderr = np.sqrt(variance + other_variance)
    # Welch and Satterthwaite, player by player; the least serves all.
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = variance**2 / one.degrees_of_freedom + other_variance**2 / other.degrees_of_freedom
        freedom = np.where(parts > 0, stderr**4 / parts, np.inf)
    return Estimate(
        values=one.values - other.values,
        stderr=stderr,
        evaluations=one.evaluations + other.evaluations,
        method="difference",
        reason=f"{one.method} minus {other.method}, their errors taken as independent",
        degrees_of_freedom=float(freedom.min()),
        labels=one.labels,
        base=None if one.base is None or other.base is None else one.base - other.base,
    )


def rank_correlation(one: Estimate, other: Estimate, level: float) -> RankCorrelation:
    """Return the correlation and its ends; see `RankCorrelation`."""
    other = _matched(one, other)
    n = len(one.values)
    if one.values.ndim != 1 or n < 2:
        raise InvalidInputError("a rank correlation needs the values of two players or more")
    if not 0 < level < 1:
        raise InvalidInputError(f"the level is {level}; it must lie between 0 and 1")
    each = 1 - (1 - level) / (2 * n)  # Bonferroni: 2 n intervals
    ends = [*one.interval(each), *other.interval(each)]
    value = low = high = 0.0
    for k in range(n - 1):  # row by row: all pairs at once would be n² numbers
        agree = _signs(one.values, k) * _signs(other.values, k)
        value += float(agree.sum())
        first, second = _settled(ends[0], ends[1], k), _settled(ends[2], ends[3], k)
        sure = ~np.isnan(first) & ~np.isnan(second)
        known = float((first[sure] * second[sure]).sum())
        # A tie that is certain in one of them counts 0 whatever the other says.
        open_ = ~sure & ~((first == 0) | (second == 0))
        unsure = int(np.count_nonzero(open_))
        low += known - unsure
        high += known + unsure
    pairs = n * (n - 1) / 2
    return RankCorrelation(value / pairs, low / pairs, high / pairs, level)


def _signs(values: FloatVector, player: int) -> FloatVector:
    signs: FloatVector = np.sign(values[player] - values[player + 1 :])
    return signs


def _settled(low: FloatVector, high: FloatVector, player: int) -> FloatVector:
    """Return the order of a player and each later one: 1, −1, 0 for a tie, NaN if it is open."""
    later_low, later_high = low[player + 1 :], high[player + 1 :]
    tie = (low[player] == high[player]) & (later_low == later_high) & (later_low == low[player])
    order: FloatVector = np.select(
        [low[player] > later_high, high[player] < later_low, tie], [1.0, -1.0, 0.0], np.nan
    )
    return order


def _matched(one: Estimate, other: Estimate) -> Estimate:
    """Return the other estimate with its players in the order of the first."""
    if not isinstance(other, Estimate):
        raise InvalidInputError(f"a {type(other).__name__} cannot be compared with an estimate")
    if set(one.names) != set(other.names) or one.values.shape != other.values.shape:
        raise InvalidInputError(
            f"the results are about different players: {len(one.names)} and {len(other.names)},"
            f" {len(set(one.names) & set(other.names))} of them the same; compare results of the"
            " same players"
        )
    place = {name: player for player, name in enumerate(other.names)}
    order = [place[name] for name in one.names]
    if one.values.ndim == 2:
        square = np.ix_(order, order)
        return replace(other, values=other.values[square], stderr=other.stderr[square])
    return replace(other, values=other.values[order], stderr=other.stderr[order])
