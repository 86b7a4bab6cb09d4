"""How good a method is in each domain: means over the domain's honest clients."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def domain_means(
    figures: Sequence[float | None], domains: Sequence[str], poisoned: Sequence[bool]
) -> dict[str, float]:
    """Return the mean figure of the honest clients of every domain.

    A client without a figure is left out, and so is a domain where no honest client has one.

    Parameters
    ----------
    figures
        Each client's figure, such as its accuracy; None where it has none.
    domains
        Each client's domain; ``""`` where there are none.
    poisoned
        Whether each client's data are poisoned.

    Examples
    --------
    >>> domain_means([0.5, 1.0, 0.25, 0.0], ["a", "a", "b", "b"], [False, False, False, True])
    {'a': 0.75, 'b': 0.25}
    """
    found: dict[str, list[float]] = {}
    for figure, domain, liar in zip(figures, domains, poisoned, strict=True):
        if not liar and figure is not None:
            found.setdefault(domain, []).append(figure)
    return {domain: statistics.fmean(each) for domain, each in found.items()}
