"""How a server makes one model of many, also when some of them lie.

A rule is chosen by name; those that assume a share of liars take it after a colon:
``trimmed-mean:0.3``. Median, geometric median and Krum look at models only, not at the sizes that
clients claim to have.

A rule bears so many liars and no more. One that cannot bear the share asked for among the clients
of a round is refused before the run (`Rule.check`). In a round where fewer are left, or in a group
of them, it takes the share of those there are, but at least one, for liars. Where it cannot bear
even that, it is the median of each coordinate: no rule bears more among so few.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from coalitions.errors import InvalidInputError
from coalitions.registry import Registry
from learners.devices import to_host
from learners.rows.parameters import distances, weighted_mean

AGGREGATIONS: Registry[Callable[..., Tensor]] = Registry(
    "aggregation", "learners.server.aggregation"
)
"""Functions of rows [n, P] and their weights [n] to one row.

One that assumes liars takes their number after that: ``liars``.
"""

LIARS = 0.2
"""The share of clients that are taken to lie if nothing else is said."""

_HONEST = {"median": 1, "geometric-median": 1, "trimmed-mean": 1, "krum": 3, "multi-krum": 3}
"""By how many clients the honest must outnumber the liars for a rule to bear these."""


@dataclass(frozen=True)
class Rule:
    """A way to make one model of many.

    Attributes
    ----------
    text
        What it was chosen by.
    name
        Its name.
    share
        The share of clients that is taken to lie; None if the rule makes no assumption.
    """

    text: str
    name: str
    share: float | None

    def __call__(self, rows: Tensor, weights: Tensor) -> Tensor:
        """Return one row for rows [n, P] and their weights [n]."""
        if self.share is None:
            return AGGREGATIONS[self.name](rows, weights)
        if not self.holds(len(rows)):
            return median(rows, weights)
        return AGGREGATIONS[self.name](rows, weights, self.liars(len(rows)))

    def liars(self, n: int) -> int:
        """Return how many of n clients are taken to lie; one alone is not."""
        return max(1, _floor(self.share * n)) if self.share and n > 1 else 0

    def holds(self, n: int) -> bool:
        """Tell whether the rule bears its share of liars, or a single one, among n clients."""
        return n == 1 or n >= self._needs(self._least_liars(n))

    def check(self, n: int) -> None:
        """Refuse a rule that cannot bear what it is asked for among n clients."""
        if self.share and _floor(self.share * n) == 0:
            raise InvalidInputError(
                f"aggregation {self.text!r}: {self.share:g} of the {n} clients of a round is less"
                f" than one, so no client would count as a liar; {self._advice(n)}"
            )
        liars = self._least_liars(n)
        if liars and n < self._needs(liars):
            who = "one liar" if liars == 1 else f"{liars} liars"
            raise InvalidInputError(
                f"aggregation {self.text!r} bears {who} only among {self._needs(liars)} clients or"
                f" more, and a round has {n}; {self._advice(n)}"
            )

    def _least_liars(self, n: int) -> int:
        """Return how many liars it must bear: its share; one, if it is to be robust at all."""
        if self.share is not None:
            return self.liars(n)
        return int(self.name in _HONEST)

    def _needs(self, liars: int) -> int:
        return 2 * liars + _HONEST.get(self.name, 1) if liars else 1

    def _advice(self, n: int) -> str:
        """Return what would do instead."""
        most = (n - _HONEST.get(self.name, 1)) // 2
        if most < 1:
            return f"it needs {self._needs(1)} clients a round, or choose mean"
        low, high = _share(1, n), _share(most, n)
        shares = f"of {low:g}" if low == high else f"from {low:g} to {high:g}"
        enough = next((k for k in range(n + 1, 100 * n) if self._bears_share(k)), None)
        more = "" if enough is None else f"; for this one, {enough} clients would do"
        return f"with {n} it can take a share {shares}{more}"

    def _bears_share(self, n: int) -> bool:
        liars = _floor((self.share or 0) * n)
        return liars >= 1 and n >= self._needs(liars)


def aggregation(text: str) -> Rule:
    """Return the rule that ``NAME`` or ``NAME:SHARE`` stands for.

    Examples
    --------
    >>> rows = torch.tensor([[0.0], [1.0], [2.0], [99.0]])
    >>> aggregation("trimmed-mean:0.25")(rows, torch.ones(4))
    tensor([1.5000])
    """
    name, colon, share = text.partition(":")
    assumes_liars = "liars" in inspect.signature(AGGREGATIONS[name]).parameters
    if not colon:
        return Rule(text, name, LIARS if assumes_liars else None)
    if not assumes_liars:
        raise InvalidInputError(f"the aggregation {name} takes no number, so {text!r} is too much")
    try:
        value = float(share)
    except ValueError:
        value = -1.0
    if not 0 <= value < 0.5:
        raise InvalidInputError(
            f"aggregation {text!r}: the share of clients that lie is at least 0 and below 0.5"
        )
    return Rule(text, name, value)


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
def trimmed_mean(rows: Tensor, weights: Tensor, liars: int) -> Tensor:
    r"""Return the mean of each coordinate without its extremes ([Yin2018]_, Option II).

    As many of the largest and of the smallest entries go as there are liars; the rest are averaged
    with their weights. Without liars it is the mean. It needs :math:`n > 2f`.
    """
    if liars == 0:
        return weighted_mean(rows, weights)
    ordered, order = rows.sort(dim=0)
    kept = slice(liars, len(rows) - liars)
    shares = weights.to(rows.dtype)[order[kept]]
    return (shares * ordered[kept]).sum(0) / shares.sum(0)


@AGGREGATIONS.register("krum")
def krum(rows: Tensor, weights: Tensor, liars: int) -> Tensor:
    r"""Return the row that is closest to its nearest neighbours ([Blanchard2017]_, Section 4).

    With f liars among n, and :math:`i \to j` if j is one of the n − f − 2 rows closest to i,

    .. math:: s(i) = \sum_{i \to j} \lVert \theta_i - \theta_j \rVert^2,

    the row of the lowest score is taken. It needs :math:`n > 2f + 2`.
    """
    return rows[int(to_host(_krum_scores(rows, liars).argmin()))].clone()


@AGGREGATIONS.register("multi-krum")
def multi_krum(rows: Tensor, weights: Tensor, liars: int) -> Tensor:
    """Return the weighted mean of the n − f rows of the lowest scores (see `krum`)."""
    scores = _krum_scores(rows, liars)
    kept = scores.argsort(stable=True)[: len(rows) - liars].sort().values
    return weighted_mean(rows[kept], weights[kept])


def _krum_scores(rows: Tensor, liars: int) -> Tensor:
    neighbours = max(1, len(rows) - liars - 2)
    squares = distances(rows).square().fill_diagonal_(torch.inf)
    return squares.sort(dim=1).values[:, :neighbours].sum(1)


@AGGREGATIONS.register("geometric-median")
def geometric_median(rows: Tensor, weights: Tensor) -> Tensor:
    r"""Return the point with the smallest sum of distances to the rows [Pillutla2022]_.

    .. math:: \arg\min_v \sum_i \lVert v - \theta_i \rVert

    by the smoothed Weiszfeld algorithm (Algorithm 2 there): a mean with weights
    :math:`1 / \max(\nu, \lVert v - \theta_i \rVert)`, repeated until it stays. The paper weighs
    each distance by the client's size; a size is what a client claims, and who claims most would
    have its way.
    """
    shares = rows.new_ones(len(rows)) / len(rows)
    # From the median, and with ν on the scale of most distances: a liar far away can then neither
    # delay the search nor blur what it ends at.
    centre = median(rows, weights)
    apart = (rows - centre).norm(dim=1)
    if not bool(to_host(apart.any())):
        return centre
    least = _SMOOTHING * float(to_host(apart[apart > 0].median()))
    for _ in range(_WEISZFELD_STEPS):
        moved = weighted_mean(rows, shares / apart.clamp(min=least))
        done = float(to_host((moved - centre).norm())) <= least
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


def _share(liars: int, n: int) -> float:
    """Return the least share, of two digits if that will do, that is so many of n clients."""
    for digits in (2, 4, 8):
        share = math.ceil(liars / n * 10**digits - 1e-6) / 10**digits
        if _floor(share * n) == liars:
            return share
    return liars / n
