"""Whole numbers from fractions, by largest remainders (Hamilton's method)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def whole_numbers(
    amounts: NDArray[np.float64], total: int, ties: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return whole numbers near `amounts` that add up to `total`; what is 0 stays 0.

    Parameters
    ----------
    amounts
        Non-negative; their sum is `total`, but for rounding errors.
    ties
        Distinct numbers; of equal remainders the one with the smaller number is rounded up.
        Without it, the earlier.

    Examples
    --------
    >>> whole_numbers(np.array([1.5, 0.0, 2.2, 0.3]), 4)
    array([2, 0, 2, 0])
    """
    whole = np.floor(amounts + 1e-9).astype(np.int64)
    rest = np.round(amounts - whole, 9)  # last bits differ between machines, the answer must not
    order = np.lexsort((np.arange(len(amounts)) if ties is None else ties, -rest))
    order = order[amounts[order] > 0]
    whole[order[: max(0, int(total) - int(whole.sum()))]] += 1
    return whole
