"""ε of DP-SGD from moments of its privacy loss: quick, never too small, and some way above."""

from __future__ import annotations

import warnings
from functools import lru_cache

import numpy as np

from coalitions.game import FloatVector

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
