"""Privacy loss ε of a Gaussian mechanism that is used many times, and σ for a wanted ε."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.game import FloatVector

# ----------------------------------------------------------------------------------------
# ε of DP-SGD from moments of its privacy loss: quick, never too small, and some way above.

ORDERS = (*(1 + x / 10 for x in range(1, 100)), *range(12, 64), 80, 128, 256, 512, 1024)
"""Rényi orders to minimise over: Opacus' own, and a few more for strong noise."""

ROUNDING = 1e-12
"""What rounding can do to the logarithm of a moment; it is counted against us at every step."""

STRONG = 20.0
"""Above this noise the series of broken orders may take seconds, and whole orders do as well."""


def moments_epsilon(noise: float, rate: float, steps: int, delta: float) -> float:
    """Return ε for δ after steps that each saw a Poisson sample [Mironov2019]_.

    It is below 0 where δ alone pays for more than was used.
    """
    from opacus.accountants.analysis.rdp import get_privacy_spent

    with warnings.catch_warnings():
        # At the last order the figure is a valid bound, only not the least one.
        warnings.filterwarnings("ignore", message="Optimal order is")
        value, _ = get_privacy_spent(
            orders=list(ORDERS), rdp=float(steps) * _moments(noise, rate), delta=delta
        )
    return float(value)


@lru_cache(maxsize=4096)
def _moments(noise: float, rate: float) -> FloatVector:
    """Return the moments of one step at all orders: they take long, and steps only add them."""
    orders = [order for order in ORDERS if noise <= STRONG or float(order).is_integer()]
    logarithms = [(order - 1) * _moment(noise, rate, float(order)) for order in orders]
    # The logarithm of a moment is convex in its order, so a line between two of them lies above.
    between = np.interp(ORDERS, [1.0, *orders], [0.0, *logarithms])
    return np.asarray(between / (np.array(ORDERS) - 1))


def _moment(noise: float, rate: float, order: float) -> float:
    from opacus.accountants.analysis.rdp import compute_rdp

    of_everyone = order / (2 * noise**2)  # a sample tells less than all the data
    try:
        found = compute_rdp(q=rate, noise_multiplier=noise, steps=1, orders=order)
    except (ValueError, OverflowError):  # rounding left nothing to subtract from
        return of_everyone
    return min(float(found) + ROUNDING / (order - 1), of_everyone)


# ----------------------------------------------------------------------------------------
# ε of DP-SGD from the distribution of its privacy loss: sharper than moments, by Opacus' parts.
#
# The loss of one step is a random variable; that of k steps is the sum of k of them, so its
# distribution is a k-fold convolution, computed on a grid by Fourier transform [Gopi2021]_. With
# mesh h the ε found is wrong by at most :math:`h \sqrt{k \log(12 / \delta') / 2}`, and the δ by
# at most δ', if the grid reaches as far as remark 5.6 there asks for. Both are added, so that the
# figure is an upper bound.

ERROR = 0.002
"""What the grid may add to ε, as a share of it, where its size allows."""

MOST_CELLS = 2**18
"""Cells of a grid: a quarter of a second. Where they do not do, ε has a larger error."""

WORTHLESS = 0.1
"""From this error on, as a share of ε, nothing is gained over moments."""

FARTHEST = 300.0
"""No grid goes beyond this ε: exponentials of twice it would nearly leave the numbers."""

DELTA_SHARE = 1e-3
"""δ' as a share of δ."""

LOSS_ROUNDING = 1e-14
"""What rounding can do to δ with every step, and a hundred times that in all."""


@dataclass(frozen=True)
class _Losses:
    """The privacy loss of one step on a grid with cells of width `mesh`."""

    grid: Any
    mesh: float


def composed_epsilon(
    noise: float, rate: float, steps: int, delta: float, horizon: int
) -> float | None:
    """Return an upper bound of ε, None where the grid would be too large or too coarse.

    Parameters
    ----------
    noise, rate, steps, delta
        σ, the probability of a record to be in a step's sample (below 1), the steps, δ.
    horizon
        Most steps that will be asked for with this noise, rate and δ: the grid is made for them.
    """
    rounding = LOSS_ROUNDING * (horizon + 100)
    if rounding > DELTA_SHARE * delta:
        return None
    losses = _losses(noise, rate, delta, horizon)
    if losses is None:
        return None
    from opacus.accountants.analysis.prv import compose_heterogeneous

    delta_error = DELTA_SHARE * delta
    with np.errstate(all="ignore"):  # cells far to the left, which are not used
        try:
            whole = compose_heterogeneous([losses.grid], [steps])
            _, _, upper = whole.compute_epsilon(
                delta, delta_error + rounding, _error(losses.mesh, steps, delta_error)
            )
        except (RuntimeError, ValueError, IndexError):  # δ is beyond what the grid can tell
            return None
    return float(upper) if math.isfinite(upper) else None


@lru_cache(maxsize=128)
def _losses(noise: float, rate: float, delta: float, horizon: int) -> _Losses | None:
    from opacus.accountants.analysis.prv import (
        Domain,
        PoissonSubsampledGaussianPRV,
        TruncatedPrivacyRandomVariable,
        discretize,
    )

    delta_error = DELTA_SHARE * delta
    expected = moments_epsilon(noise, rate, horizon, delta)
    # Remark 5.6, as Opacus' `compute_safe_domain_size` has it; our moments are kept, theirs not.
    reach = 3 + max(
        moments_epsilon(noise, rate, horizon, delta_error / 4),
        moments_epsilon(noise, rate, 1, delta_error / (8 * horizon)),
    )
    if not expected > 0 or not reach < FARTHEST:
        return None
    wanted = ERROR * expected / _error(1.0, horizon, delta_error)
    # As many cells as the transform likes, half of them on either side of zero.
    cells = min(MOST_CELLS, 2 ** math.ceil(math.log2(2 * reach / wanted + 4)))
    mesh = max(wanted, reach / (cells / 2 - 1))
    if _error(mesh, horizon, delta_error) > min(0.5, WORTHLESS * expected):
        return None
    left = cells // 2 - 1
    domain = Domain(-left * mesh, (left + 1) * mesh, cells)
    one_step = PoissonSubsampledGaussianPRV(rate, noise)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the quadrature, on pieces where nothing is
        try:
            cut = TruncatedPrivacyRandomVariable(one_step, domain.t_min, domain.t_max)
            grid = discretize(cut, domain)
        except RuntimeError:  # the grid does not keep the mean
            return None
    return _Losses(grid, mesh)


def _error(mesh: float, steps: int, delta_error: float) -> float:
    """Return what a grid may add to ε."""
    return mesh * math.sqrt(steps * math.log(12 / delta_error) / 2)


# ----------------------------------------------------------------------------------------
# What noise is worth: ε of a Gaussian mechanism that was used many times, and σ for a wanted ε.

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
    loss, composed numerically, with its errors on top (see `learners.privacy.accountant`).

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
