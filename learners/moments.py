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
    from opacus.accountants.analysis.rdp import compute_rdp

    found = compute_rdp(q=rate, noise_multiplier=noise, steps=1, orders=list(ORDERS))
    return np.asarray(found) + ROUNDING / (np.array(ORDERS) - 1)
