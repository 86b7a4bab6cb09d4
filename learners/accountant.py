"""What noise is worth: ε of a Gaussian mechanism that was used many times, and σ for a wanted ε."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.game import FloatVector

ORDERS = (*(1 + x / 10 for x in range(1, 100)), *range(12, 64), 80, 128, 256, 512, 1024)
"""Rényi orders to minimise over: Opacus' own, and a few more for strong noise."""


MOST_LOG_NOISE = 20.0
"""No σ above e^20 is looked for."""


@dataclass(frozen=True)
class Usage:
    """How often a mechanism saw the data: `steps` times, each record with probability `rate`."""

    rate: float
    steps: int


@lru_cache(maxsize=4096)
def epsilon(noise: float, usage: Usage, delta: float) -> float:
    """Return ε for δ of Gaussian mechanisms with sensitivity 1 and standard deviation `noise`.

    At rate 1 it is the exact figure of the closed form, see `gaussian_delta`. Below, each step sees
    a Poisson sample, and the figure is that of Opacus' accountant: moments (Rényi divergences) of
    the sampled mechanism, added over the steps [Mironov2019]_.

    Examples
    --------
    >>> round(epsilon(1.0, Usage(1.0, 1), 1e-5), 3)
    4.377
    """
    if usage.steps == 0:
        return 0.0
    if noise == 0:
        return math.inf
    if usage.rate == 1:
        return _gaussian_epsilon(math.sqrt(usage.steps) / noise, delta)
    from opacus.accountants.analysis.rdp import get_privacy_spent

    with warnings.catch_warnings():
        # At the last order the figure is a valid bound, only not the least one.
        warnings.filterwarnings("ignore", message="Optimal order is")
        value, _ = get_privacy_spent(
            orders=list(ORDERS), rdp=usage.steps * _moments(noise, usage.rate), delta=delta
        )
    return float(value)


@lru_cache(maxsize=4096)
def _moments(noise: float, rate: float) -> FloatVector:
    """Return the moments of one step at all orders: they take long, and steps only add them."""
    from opacus.accountants.analysis.rdp import compute_rdp

    return np.asarray(compute_rdp(q=rate, noise_multiplier=noise, steps=1, orders=list(ORDERS)))


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


def noise_for(target: float, usages: Sequence[Usage], delta: float) -> float:
    """Return the least noise (to six digits) with which no usage spends more ε than `target`."""
    some = sorted({usage for usage in usages if usage.steps}, key=lambda each: -each.steps)
    if not some:
        raise InvalidInputError(f"nothing would be released, so no noise gives epsilon {target}")
    noise, worst = 0.0, some[0]
    while True:
        noise = max(noise, _noise_for_one(target, worst, delta))
        worst = max(some, key=lambda usage: epsilon(noise, usage, delta))
        if epsilon(noise, worst, delta) <= target:
            return noise


def _noise_for_one(target: float, usage: Usage, delta: float) -> float:
    from scipy.optimize import brentq

    def excess(log_noise: float) -> float:
        # An ε of 0 has no logarithm; any number below the target's does for the search.
        spent = max(epsilon(math.exp(log_noise), usage, delta), target * 1e-3)
        return math.log(spent / target)

    high = 0.0
    while excess(high) > 0:
        high += 1.0
        if high > MOST_LOG_NOISE:
            raise InvalidInputError(
                f"epsilon {target} cannot be reached by noise that leaves anything to learn from"
            )
    low = high - 1.0
    while excess(low) <= 0:
        low -= 1.0
    found = float(brentq(excess, low, high, xtol=1e-7, rtol=1e-12))
    # The root is between two numbers 1e-7 apart: the next steps up are on the safe side of it.
    while excess(found) > 0:
        found += 2e-7
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
