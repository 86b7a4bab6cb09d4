"""How a server makes one model of many, also when some of them lie.

A rule is chosen by name; those that assume a share of liars take it after a colon:
``trimmed-mean:0.3``. Median and Krum look at models only, not at the sizes clients claim to have.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

from coalitions.errors import InvalidInputError
from coalitions.registry import Registry
from learners.parameters import distances, weighted_mean

Aggregation: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Maps rows [n, P] and their weights [n] to one row; may have an option `share`."""

AGGREGATIONS: Registry[Callable[..., Tensor]] = Registry("aggregation", "learners.aggregation")

LIARS = 0.2
"""The share of clients that are taken to lie if nothing else is said."""


def aggregation(text: str) -> Aggregation:
    """Return the rule that ``NAME`` or ``NAME:SHARE`` stands for.

    Examples
    --------
    >>> rows = torch.tensor([[0.0], [1.0], [2.0], [99.0]])
    >>> aggregation("trimmed-mean:0.25")(rows, torch.ones(4))
    tensor([1.5000])
    """
    name, colon, share = text.partition(":")
    rule = AGGREGATIONS[name]
    if not colon:
        return rule
    if "share" not in inspect.signature(rule).parameters:
        raise InvalidInputError(f"the aggregation {name} takes no number, so {text!r} is too much")
    try:
        value = float(share)
    except ValueError:
        value = -1.0
    if not 0 <= value < 0.5:
        raise InvalidInputError(
            f"aggregation {text!r}: the share of clients that lie is at least 0 and below 0.5"
        )
    return partial(rule, share=value)


@AGGREGATIONS.register("mean")
def mean(rows: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted mean."""
    return weighted_mean(rows, weights)


@AGGREGATIONS.register("median")
def median(rows: Tensor, weights: Tensor) -> Tensor:
    """Return the median of each coordinate ([Yin2018]_, Option I); of two middle ones, the mean."""
    ordered = rows.sort(dim=0).values
    n = len(rows)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2


@AGGREGATIONS.register("trimmed-mean")
def trimmed_mean(rows: Tensor, weights: Tensor, share: float = LIARS) -> Tensor:
    r"""Return the mean of each coordinate without its extremes ([Yin2018]_, Option II).

    The :math:`\lfloor \beta n \rfloor` largest and as many smallest entries go; the rest are
    averaged with their weights. Share 0 is the mean.
    """
    n = len(rows)
    cut = _floor(share * n)
    if cut == 0:
        return weighted_mean(rows, weights)
    ordered, order = rows.sort(dim=0)
    kept = slice(cut, n - cut)
    shares = weights.to(rows.dtype)[order[kept]]
    return (shares * ordered[kept]).sum(0) / shares.sum(0)


@AGGREGATIONS.register("krum")
def krum(rows: Tensor, weights: Tensor, share: float = LIARS) -> Tensor:
    r"""Return the row that is closest to its nearest neighbours ([Blanchard2017]_, Section 4).

    With f liars among n, and :math:`i \to j` if j is one of the n − f − 2 rows closest to i,

    .. math:: s(i) = \sum_{i \to j} \lVert \theta_i - \theta_j \rVert^2,

    the row of the lowest score is taken. f is the share of n, but at most what Krum can bear,
    :math:`2f + 2 < n`.
    """
    scores, _ = _krum_scores(rows, share)
    return rows[int(scores.argmin())].clone()


@AGGREGATIONS.register("multi-krum")
def multi_krum(rows: Tensor, weights: Tensor, share: float = LIARS) -> Tensor:
    """Return the weighted mean of the n − f rows of the lowest scores (see `krum`)."""
    scores, liars = _krum_scores(rows, share)
    kept = scores.argsort(stable=True)[: len(rows) - liars].sort().values
    return weighted_mean(rows[kept], weights[kept])


def _krum_scores(rows: Tensor, share: float) -> tuple[Tensor, int]:
    n = len(rows)
    liars = min(_floor(share * n), max(0, (n - 3) // 2))
    neighbours = max(1, n - liars - 2)
    squares = distances(rows).square().fill_diagonal_(torch.inf)
    return squares.sort(dim=1).values[:, :neighbours].sum(1), liars


@AGGREGATIONS.register("geometric-median")
def geometric_median(rows: Tensor, weights: Tensor) -> Tensor:
    r"""Return the point with the smallest weighted sum of distances to the rows [Pillutla2022]_.

    .. math:: \arg\min_v \sum_i \alpha_i \lVert v - \theta_i \rVert

    by the smoothed Weiszfeld algorithm (Algorithm 2 there): a mean with weights
    :math:`\alpha_i / \max(\nu, \lVert v - \theta_i \rVert)`, repeated until it stays.
    """
    shares = (weights / weights.sum()).to(rows.dtype)
    # From the median, and with ν on the scale of most distances: a liar far away can then neither
    # delay the search nor blur what it ends at.
    centre = median(rows, weights)
    apart = (rows - centre).norm(dim=1)
    if not bool(apart.any()):
        return centre
    least = _SMOOTHING * float(apart[apart > 0].median())
    for _ in range(_WEISZFELD_STEPS):
        moved = weighted_mean(rows, shares / apart.clamp(min=least))
        done = float((moved - centre).norm()) <= least
        centre = moved
        if done:
            break
        apart = (rows - centre).norm(dim=1)
    return centre


_WEISZFELD_STEPS = 200
_SMOOTHING = 1e-6


def _floor(count: float) -> int:
    """Return the floor of a share of clients; 0.29 · 100 is 29, though its float is below."""
    return int(count + 1e-9)
