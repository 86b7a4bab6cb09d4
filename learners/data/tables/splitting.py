"""Which of a client's rows it is tested on: drawn, each class in proportion."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError
from learners.data.doors.outcome import Arrays
from learners.data.rounding import whole_numbers

TEST_SHARE = 0.2
"""Share of a client's rows that it is tested on if nobody says."""

Places = NDArray[np.int64]


def drawn(
    labels: Places | None, n_rows: int, n_drawn: int, rng: np.random.Generator
) -> tuple[Places, Places]:
    """Return which rows are left and which are drawn, in order.

    With labels, every class gives its share, and one with two rows or more gives at least one, as
    long as another has two to give.

    Examples
    --------
    >>> labels = np.array([0] * 16 + [1] * 4)
    >>> left, tested = drawn(labels, 20, 5, np.random.default_rng(0))
    >>> np.bincount(labels[tested]).tolist(), len(left)
    ([4, 1], 15)
    """
    groups = np.zeros(n_rows, dtype=np.int64) if labels is None else labels
    kinds, sizes = np.unique(groups, return_counts=True)
    given = whole_numbers(sizes * n_drawn / n_rows, n_drawn)
    for rare in np.flatnonzero((given == 0) & (sizes > 1)):
        if given.max() > 1:
            given[int(np.argmax(given))] -= 1
            given[rare] = 1
    chosen = np.zeros(n_rows, dtype=bool)
    for kind, number in zip(kinds, given, strict=True):
        chosen[rng.permutation(np.flatnonzero(groups == kind))[:number]] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def divided(
    everything: Arrays, n_test: int | None, rng: np.random.Generator, what: str
) -> tuple[Arrays, Arrays]:
    """Return a client's arrays to train on, and those to test on, a fifth if nobody says.

    Parameters
    ----------
    what
        What messages call the client.
    """
    inputs, targets = everything
    n_test = n_test or max(1, round(TEST_SHARE * len(targets)))
    if n_test > len(targets) - 2:
        raise InvalidInputError(
            f"{what} has {len(targets)} samples, too few to test on {n_test} and train on two"
        )
    labels = targets.astype(np.int64) if targets.ndim == 1 and targets.dtype.kind in "iu" else None
    train, test = (
        ({name: array[some] for name, array in inputs.items()}, targets[some])
        for some in drawn(labels, len(targets), n_test, rng)
    )
    return train, test
