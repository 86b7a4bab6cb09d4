"""Tests beside the paired interval: several rivals, counts, printed means, other statistics.

None of them draws from a global random state; the bootstrap has its own seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError
from learners.comparisons.paired import CONFIDENCE, Difference, seed_difference

RESAMPLES = 10_000
"""Resamples of a bootstrap: a share of 2.5 % is then known to ± 0.3 points."""


def paired_p_value(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """Return the two-sided p of Student's paired test; None where pairs are too few.

    It is at most α where `learners.comparisons.paired.seed_difference` at confidence 1 − α leaves
    zero out.

    Examples
    --------
    >>> round(paired_p_value([3.0, 5.0, 7.0], [2.0, 3.0, 4.0]), 4)
    0.0742
    """
    if seed_difference(ours, theirs).low is None:
        return None
    gaps = np.subtract(ours, theirs, dtype=np.float64)
    error = float(gaps.std(ddof=1)) / math.sqrt(len(gaps))
    mean = float(gaps.mean())
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    from scipy.special import stdtr

    return 2 * float(stdtr(len(gaps) - 1, -abs(mean) / error))


def holm(p_values: Sequence[float]) -> list[float]:
    r"""Return Holm's adjusted p-values, in the order given.

    With :math:`p_{(1)} \le \dots \le p_{(k)}`,

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min(1, (k - j + 1)\, p_{(j)})

    The chance that any true null has an adjusted p of at most α is at most α.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for done, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - done) * p_values[i]))
        adjusted[i] = highest
    return adjusted


def binomial_interval(
    successes: int, trials: int, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Return the exact (Clopper-Pearson) interval of a share.

    Examples
    --------
    >>> [round(limit, 3) for limit in binomial_interval(5, 5)]
    [0.478, 1.0]
    """
    if not 0 <= successes <= trials or trials < 1:
        raise InvalidInputError(
            f"a share needs at least one trial and at most as many successes: {successes} of"
            f" {trials}"
        )
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = float(betaincinv(successes, trials - successes + 1, tail)) if successes else 0.0
    if successes == trials:
        return low, 1.0
    return low, float(betaincinv(successes + 1, trials - successes, 1 - tail))


def welch_p_value(
    mean: float, sd: float, n: int, other_mean: float, other_sd: float, other_n: int
) -> float | None:
    """Return the two-sided p of Welch's test between two printed means; None without any spread.

    Examples
    --------
    >>> round(welch_p_value(98.01, 0.83, 5, 96.11, 0.28, 5), 4)
    0.0049
    """
    one, two = sd**2 / n, other_sd**2 / other_n
    if n < 2 or other_n < 2 or one + two == 0:
        return None
    from scipy.special import stdtr

    freedom = (one + two) ** 2 / (one**2 / (n - 1) + two**2 / (other_n - 1))
    return 2 * float(stdtr(freedom, -abs(mean - other_mean) / math.sqrt(one + two)))


def bootstrap_interval(
    statistic: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    n_seeds: int,
    confidence: float = CONFIDENCE,
) -> tuple[float, float] | None:
    """Return the percentile interval of a statistic over resampled seeds; None for one seed.

    Parameters
    ----------
    statistic
        Called once with all resamples [resamples, n_seeds], each the numbers of the seeds drawn
        with replacement. Returns a figure for each.
    n_seeds
        Number of seeds.
    confidence
        Of the interval.

    Examples
    --------
    >>> figures = np.array([1.0, 2.0, 3.0])
    >>> bootstrap_interval(lambda drawn: figures[drawn].mean(axis=1), 3)
    (1.0, 3.0)
    """
    if n_seeds < 2:
        return None
    drawn = np.random.default_rng(0).integers(n_seeds, size=(RESAMPLES, n_seeds))
    tail = (1 - confidence) / 2
    # A quantile between two resamples would be a figure that none of them has.
    low, high = np.quantile(statistic(drawn), [tail, 1 - tail], method="nearest")
    return float(low), float(high)


def spread_ratio(
    ours: Sequence[Sequence[float]],
    theirs: Sequence[Sequence[float]],
    confidence: float = CONFIDENCE,
) -> Difference:
    r"""Return by which factor theirs spread more than ours, less one, with its interval.

    Variances over seeds are pooled over columns. With :math:`F = s_b^2 / s_a^2` and as many degrees
    of freedom on both sides, Fisher's interval is

    .. math:: \sqrt{F / F_{(1 + c)/2}} - 1 \;\dots\; \sqrt{F \cdot F_{(1 + c)/2}} - 1

    With a single seed, or without any spread, the factor is not known, and stands as 1.

    Parameters
    ----------
    ours, theirs
        Figures by column, one for each seed.
    confidence
        Of the interval.

    Examples
    --------
    >>> round(spread_ratio([[1.0, 2.0, 3.0]], [[1.0, 3.0, 5.0]]).mean, 12)
    1.0
    """
    ratio, freedom = _variance_ratio(ours, theirs)
    if ratio is None:
        return Difference(0.0, None, None)
    from scipy.special import fdtri

    reach = float(fdtri(freedom, freedom, (1 + confidence) / 2))
    return Difference(
        math.sqrt(ratio) - 1, math.sqrt(ratio / reach) - 1, math.sqrt(ratio * reach) - 1
    )


def spread_p_value(
    ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]
) -> float | None:
    """Return the two-sided p of Fisher's test of `spread_ratio`; None if it is not known.

    Examples
    --------
    >>> round(spread_p_value([[1.0, 2.0, 3.0]], [[1.0, 3.0, 5.0]]), 12)
    0.4
    """
    ratio, freedom = _variance_ratio(ours, theirs)
    if ratio is None:
        return None
    from scipy.special import fdtr

    below = float(fdtr(freedom, freedom, ratio))
    return 2 * min(below, 1 - below)


def _variance_ratio(
    ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]
) -> tuple[float | None, int]:
    """Return their pooled variance by ours, and the degrees of freedom of each."""
    if [len(column) for column in ours] != [len(column) for column in theirs]:
        raise InvalidInputError("spreads are compared with as many figures on both sides")
    squares = [
        math.fsum(float(np.var(column)) * len(column) for column in each) for each in (ours, theirs)
    ]
    freedom = sum(len(column) - 1 for column in ours)
    return (squares[1] / squares[0] if freedom and min(squares) > 0 else None), freedom
