"""The one narrow interface between those who value coalitions and those who analyse them."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coalitions.errors import InvalidInputError

BoolMatrix: TypeAlias = NDArray[np.bool_]
FloatVector: TypeAlias = NDArray[np.float64]
FloatMatrix: TypeAlias = NDArray[np.float64]
IntVector: TypeAlias = NDArray[np.int64]


@runtime_checkable
class Game(Protocol):
    """Anything that knows its number of players and maps coalitions to values.

    A game is called with a boolean array [m, n], one coalition a row, and answers with m values
    (float64). It is batched because utilities are expensive and vectorise well: an estimator asks
    for all the coalitions it needs in as few calls as it can. The value of the empty coalition is
    evaluated like any other and never assumed to be 0.
    """

    @property
    def n_players(self) -> int:
        """Number of players."""
        ...

    def __call__(self, coalitions: Any, /) -> Any:  # noqa: ANN401 (shapiq's games annotate otherwise)
        """Return the values of the coalitions, one for each row."""
        ...


def as_coalitions(coalitions: ArrayLike, n_players: int) -> BoolMatrix:
    """Return `coalitions` as a boolean matrix [m, n].

    Accepts one coalition (n,) or many (m, n), boolean or 0/1.

    Examples
    --------
    >>> as_coalitions([1, 0, 1], 3)
    array([[ True, False,  True]])
    """
    array = np.asarray(coalitions)
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim != 2 or array.shape[1] != n_players:
        raise InvalidInputError(
            f"coalitions have shape {np.shape(coalitions)}; expected (m, {n_players}) or"
            f" ({n_players},) for {n_players} players"
        )
    if array.dtype != np.bool_:
        if not np.isin(array, (0, 1)).all():
            raise InvalidInputError("coalitions must be boolean or hold only 0 and 1")
        array = array.astype(np.bool_)
    return array
