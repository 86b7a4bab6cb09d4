r"""ε of DP-SGD from the distribution of its privacy loss: sharper than moments, by Opacus' parts.

The loss of one step is a random variable; that of k steps is the sum of k of them, so its
distribution is a k-fold convolution, computed on a grid by Fourier transform [Gopi2021]_. With mesh
h the ε found is wrong by at most :math:`h \sqrt{k \log(12 / \delta') / 2}`, and the δ by at most
δ', if the grid reaches as far as remark 5.6 there asks for. Both are added, so that the figure is
an upper bound.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from learners.privacy.moments import moments_epsilon

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

ROUNDING = 1e-14
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
    rounding = ROUNDING * (horizon + 100)
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
