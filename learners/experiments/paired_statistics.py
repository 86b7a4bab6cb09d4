"""Is a method better than another one? Means, ranks and paired differences over seeds.

Runs with the same seed share their data, their initial model and their batches, so methods are
compared seed by seed. The seed is what is repeated: an interval speaks about other seeds. The
clients of a run are no repetitions of it (they learn from each other), so they are counted, and no
interval is made of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coalitions.errors import InvalidInputError

if TYPE_CHECKING:  # the command line loads this page without numpy
    import numpy as np
    from numpy.typing import NDArray

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences with its interval; None where pairs are too few for one."""

    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Standing:
    """How a method did among others.

    Attributes
    ----------
    mean, sd
        Of its scores over seeds; `sd` (that of a sample, n − 1) is None with one seed.
    rank
        Mean over seeds of its place, 1 for the best score; ties share the mean of their places.
    difference
        From the baseline, seed by seed.
    """

    mean: float
    sd: float | None
    rank: float
    difference: Difference


def paired_difference(
    ours: Sequence[float], theirs: Sequence[float], confidence: float = CONFIDENCE
) -> Difference:
    r"""Return the mean of :math:`d_s = a_s - b_s` over n seeds with its Student interval.

    .. math:: \bar d \pm t_{n-1,\,(1 + c)/2}\; \frac{s_d}{\sqrt n}

    It holds if the differences are about normal. With few seeds it is wide, as it must be: for
    three, t is 4.30.

    Examples
    --------
    >>> paired_difference([0.75, 0.5], [0.5, 0.25])
    Difference(mean=0.25, low=0.25, high=0.25)
    >>> paired_difference([0.8], [0.7]).low is None
    True
    """
    if len(ours) != len(theirs) or not ours:
        raise InvalidInputError(
            f"pairs need as many scores on both sides, at least one: {len(ours)} and {len(theirs)}"
        )
    gaps = [a - b for a, b in zip(ours, theirs, strict=True)]
    mean = _mean(gaps)
    if len(gaps) == 1:
        return Difference(mean, None, None)
    from scipy.special import stdtrit

    reach = float(stdtrit(len(gaps) - 1, (1 + confidence) / 2)) * _sd(gaps) / math.sqrt(len(gaps))
    return Difference(mean, mean - reach, mean + reach)


def seed_difference(
    ours: Sequence[float], theirs: Sequence[float], confidence: float = CONFIDENCE
) -> Difference:
    """Return the paired difference over seeds; of two that agree, without an interval.

    Accuracies on small test sets often differ by the same amount in two seeds. Student's interval
    then has no width, but a third seed may well differ.

    Examples
    --------
    >>> seed_difference([0.75, 0.5], [0.5, 0.25])
    Difference(mean=0.25, low=None, high=None)
    """
    found = paired_difference(ours, theirs, confidence)
    gaps = [a - b for a, b in zip(ours, theirs, strict=True)]
    if len(gaps) == 2 and math.isclose(*gaps, rel_tol=0, abs_tol=1e-12):
        return Difference(found.mean, None, None)
    return found


def difference_text(gap: Difference, n_seeds: int) -> str:
    """Return a difference as tables have it: ± half of its interval, if it has one.

    Examples
    --------
    >>> difference_text(Difference(0.25, 0.0, 0.5), 3)
    '+0.2500 ± 0.2500'
    >>> difference_text(Difference(0.25, None, None), 2)
    '+0.2500 (too few seeds)'
    """
    if gap.low is not None and gap.high is not None:
        return f"{gap.mean:+.4f} ± {(gap.high - gap.low) / 2:.4f}"  # it is symmetric
    return f"{gap.mean:+.4f}" + " (too few seeds)" * (n_seeds > 1)


def best_sentence(
    scores: Mapping[str, Sequence[float]], best: Sequence[str], rivals: Sequence[str]
) -> str:
    """Say which method is the best, and whether the seeds settle it.

    Parameters
    ----------
    scores
        Scores by method, one per seed.
    best, rivals
        What `best_of` and `not_settled` return.
    """
    if not rivals:
        others = len(scores) > len(best)
        settled = (
            f", and this is settled: 0 is outside the {CONFIDENCE:.0%} interval of each difference"
        )
        return f"Best: {', '.join(best)}{settled * others}."
    gaps = [seed_difference(scores[name], scores[best[0]]) for name in rivals]
    reasons = []
    if any(gap.low is not None for gap in gaps):
        reasons.append(f"0 is in the {CONFIDENCE:.0%} interval of the difference")
    if any(gap.low is None for gap in gaps):
        one = len(scores[best[0]]) == 1
        reasons.append(
            "one seed is too few"
            if one
            else "two seeds that differ by the same amount are too few for an interval"
        )
    why = ", or ".join(reasons)
    return f"Best on average: {', '.join(best)}; not settled against {', '.join(rivals)}: {why}."


def ranks(
    scores: Mapping[str, Sequence[float]], *, lower_is_better: bool = False
) -> dict[str, list[float]]:
    """Return each method's place in every seed: 1 is the best, ties share the mean place.

    Examples
    --------
    >>> ranks({"a": [0.5], "b": [0.9], "c": [0.5]})
    {'a': [2.5], 'b': [1.0], 'c': [2.5]}
    """
    import numpy as np

    # Equal accuracies may differ in the last bit, when they were summed in another order.
    table = np.round(np.array(list(scores.values()), np.float64), 12)
    table = -table if lower_is_better else table
    above = (table[None, :, :] > table[:, None, :]).sum(axis=1)
    level = (table[None, :, :] == table[:, None, :]).sum(axis=1)
    return dict(zip(scores, (above + (level + 1) / 2).tolist(), strict=True))


def best_of(scores: Mapping[str, Sequence[float]], *, lower_is_better: bool = False) -> list[str]:
    """Return who has the best mean score: one name, or all that share it."""
    means = {name: round(_mean(values), 12) for name, values in scores.items()}
    top = min(means.values()) if lower_is_better else max(means.values())
    return [name for name, mean in means.items() if mean == top]


def not_settled(
    scores: Mapping[str, Sequence[float]], *, lower_is_better: bool = False
) -> list[str]:
    """Return who may be as good as the best: 0 is in the interval of the difference from it.

    One seed has no interval, so it settles nothing; nor do two that differ by the same amount.

    Examples
    --------
    >>> not_settled({"a": [0.9, 0.8, 0.9], "b": [0.1, 0.0, 0.1], "c": [0.8, 0.9, 0.7]})
    ['c']
    """
    best = best_of(scores, lower_is_better=lower_is_better)
    found = []
    for name, values in scores.items():
        gap = seed_difference(values, scores[best[0]])
        unsettled = gap.low is None or gap.high is None or gap.low <= 0 <= gap.high
        if name not in best and unsettled:
            found.append(name)
    return found


def standings(
    scores: Mapping[str, Sequence[float]], baseline: str, *, lower_is_better: bool = False
) -> dict[str, Standing]:
    """Return how every method did, compared with the baseline.

    Parameters
    ----------
    scores
        Scores by method, one per seed, in the same order of seeds for all.
    baseline
        The method that the others are compared with.
    lower_is_better
        Whether the lowest score is the best, as with an error; differences keep their sign.
    """
    places = ranks(scores, lower_is_better=lower_is_better)
    return {
        name: Standing(
            _mean(values),
            _sd(values) if len(values) > 1 else None,
            _mean(places[name]),
            seed_difference(values, scores[baseline]),
        )
        for name, values in scores.items()
    }


def _mean(values: Sequence[float]) -> float:
    # fsum rounds once, so the order of seeds does not show.
    return math.fsum(values) / len(values)


def _sd(values: Sequence[float]) -> float:
    mean = _mean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


# ----------------------------------------------------------------------------------------
# Tests beside the paired interval: several rivals, counts, printed means, other statistics.
#
# None of them draws from a global random state; the bootstrap has its own seed.

RESAMPLES = 10_000
"""Resamples of a bootstrap: a share of 2.5 % is then known to ± 0.3 points."""


def paired_p_value(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """Return the two-sided p of Student's paired test; None where pairs are too few.

    It is at most α where `seed_difference` at confidence 1 − α leaves zero out.

    Examples
    --------
    >>> round(paired_p_value([3.0, 5.0, 7.0], [2.0, 3.0, 4.0]), 4)
    0.0742
    """
    import numpy as np

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
    >>> import numpy as np
    >>> figures = np.array([1.0, 2.0, 3.0])
    >>> bootstrap_interval(lambda drawn: figures[drawn].mean(axis=1), 3)
    (1.0, 3.0)
    """
    import numpy as np

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
    import numpy as np

    if [len(column) for column in ours] != [len(column) for column in theirs]:
        raise InvalidInputError("spreads are compared with as many figures on both sides")
    squares = [
        math.fsum(float(np.var(column)) * len(column) for column in each) for each in (ours, theirs)
    ]
    freedom = sum(len(column) - 1 for column in ours)
    return (squares[1] / squares[0] if freedom and min(squares) > 0 else None), freedom
