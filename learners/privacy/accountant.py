"""What noise is worth: ε of a Gaussian mechanism that was used many times, and σ for a wanted ε."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from coalitions.errors import InvalidInputError
from learners.privacy.loss_distribution import composed_epsilon
from learners.privacy.moments import moments_epsilon

MOST_LOG_NOISE = 20.0
"""No σ above e^20 is looked for."""

LEAST_NOISE = 1e-9
"""Less is none: ε would be beyond 10^17."""


@dataclass(frozen=True)
class Usage:
    """How often a mechanism saw the data: `steps` times, each record with probability `rate`."""

    rate: float
    steps: int


@lru_cache(maxsize=4096)
def epsilon(noise: float, usage: Usage, delta: float, horizon: int = 0) -> float:
    """Return ε for δ of Gaussian mechanisms with sensitivity 1 and standard deviation `noise`.

    At rate 1 it is the exact figure of the closed form, see `gaussian_delta`. Below, each step sees
    a Poisson sample, and the figure is the smaller of two bounds by Opacus: of moments (Rényi
    divergences), added over the steps [Mironov2019]_, and of the whole distribution of the privacy
    loss, composed numerically, with its errors on top (see `learners.privacy.loss_distribution`).

    Parameters
    ----------
    noise, usage, delta
        σ, how often the data were seen, δ.
    horizon
        Steps of the whole run, if they are known to be more than those of `usage`. All its figures
        then come from one grid, so that ε grows from round to round and is soon computed.

    Examples
    --------
    >>> round(epsilon(1.0, Usage(1.0, 1), 1e-5), 3)
    4.377
    >>> round(epsilon(1.0, Usage(0.05, 200), 1e-5), 2)
    4.78
    """
    bound = ceiling(noise, usage, delta)
    if usage.rate == 1 or not 0 < bound < math.inf:
        return bound
    horizon = max(horizon, usage.steps)
    sharper = composed_epsilon(noise, usage.rate, usage.steps, delta, horizon)
    return bound if sharper is None else max(0.0, min(bound, sharper))


@lru_cache(maxsize=65536)
def ceiling(noise: float, usage: Usage, delta: float) -> float:
    """Return an upper bound of `epsilon` that takes no time: exact at rate 1, by moments below."""
    if usage.steps == 0:
        return 0.0
    if noise < LEAST_NOISE:
        return math.inf
    if usage.rate == 1:
        return _gaussian_epsilon(math.sqrt(usage.steps) / noise, delta)
    return max(0.0, moments_epsilon(noise, usage.rate, usage.steps, delta))


def worst_epsilon(
    noise: float, usages: Iterable[Usage], delta: float, horizon: Callable[[Usage], int]
) -> float:
    """Return the largest ε of some usages; those that cannot have it are not worked out."""
    most = 0.0
    bounds = {usage: ceiling(noise, usage, delta) for usage in usages}
    for usage in sorted(bounds, key=lambda each: bounds[each], reverse=True):
        if bounds[usage] <= most:
            break
        most = max(most, epsilon(noise, usage, delta, horizon(usage)))
    return most


def gaussian_delta(epsilon: float, mu: float) -> float:
    r"""Return the least δ for ε of a Gaussian mechanism with sensitivity/deviation μ [Balle2018]_.

    Theorem 8 there, written with :math:`\mu = \Delta / \sigma`:

    .. math:: \delta(\varepsilon) = \Phi(\tfrac{\mu}{2} - \tfrac{\varepsilon}{\mu})
              - e^\varepsilon\, \Phi(-\tfrac{\mu}{2} - \tfrac{\varepsilon}{\mu}).

    T uses of it are one use with :math:`\mu \sqrt T`, because T looks with independent noise say
    as much as their mean does.

    Examples
    --------
    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    from scipy.special import log_ndtr

    first = log_ndtr(mu / 2 - epsilon / mu)
    second = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return float(math.exp(first) - math.exp(min(second, first)))


def noise_for(
    target: float,
    usages: Sequence[Usage],
    delta: float,
    horizon: Callable[[Usage], int] | None = None,
) -> float:
    """Return a noise with which no usage spends more ε than `target`: the least, to six digits.

    Parameters
    ----------
    target, usages, delta
        The ε to keep, what will be spent it on, δ.
    horizon
        Steps of the whole run by usage, as `epsilon` will be asked for them.
    """
    some = sorted({usage for usage in usages if usage.steps}, key=lambda each: -each.steps)
    if not some:
        raise InvalidInputError(f"nothing would be released, so no noise gives epsilon {target}")
    steps = horizon or (lambda usage: usage.steps)

    def excess(log_noise: float) -> float:
        spent = worst_epsilon(math.exp(log_noise), some, delta, steps)
        # An ε of 0 has no logarithm; any number below the target's does for the search.
        return math.log(max(spent, target * 1e-3) / target)

    high, stride = 0.0, 1.0
    while excess(high) > 0:
        if high >= MOST_LOG_NOISE:
            raise InvalidInputError(
                f"epsilon {target} cannot be reached by noise that leaves anything to learn from"
            )
        high, stride = min(high + stride, MOST_LOG_NOISE), 2 * stride
    low, stride = high - 1.0, 1.0
    while excess(low) <= 0:
        low, stride = low - stride, 2 * stride
    from scipy.optimize import brentq

    found = float(brentq(excess, low, high, xtol=1e-7, rtol=1e-12))
    # The root is between two numbers 1e-7 apart: a few steps up are on the safe side of it.
    step = 2e-7
    while excess(found) > 0:
        found, step = found + step, 2 * step
    return math.exp(found)


def _gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the ε at which `gaussian_delta` is δ."""
    from scipy.optimize import brentq

    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    high = 1.0
    while gaussian_delta(high, mu) > delta:
        high *= 2
    found = brentq(lambda at: gaussian_delta(at, mu) - delta, 0.0, high, xtol=1e-12, rtol=1e-13)
    return float(found)
