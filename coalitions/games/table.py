"""A game given by the values of all its coalitions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from coalitions.enumeration import masks_of_coalitions, value_table
from coalitions.errors import InvalidInputError
from coalitions.files.opening import load_json, opened
from coalitions.formatting import composed
from coalitions.game import FloatVector, Game, as_coalitions, has_texts


class TableGame:
    """A game that looks its values up: player i is bit i of the index.

    Parameters
    ----------
    table
        The 2^n values v(0), v(1), …; v(0) is the empty coalition and need not be 0.
    labels
        Names of the players; "0" … "n−1" if there are none.

    Examples
    --------
    >>> glove = TableGame([0, 0, 0, 1, 0, 1, 0, 1])  # player 0 has the only left glove
    >>> glove([[1, 1, 0], [0, 1, 1]])
    array([1., 0.])
    """

    def __init__(self, table: ArrayLike, labels: Iterable[Hashable] | None = None) -> None:
        if has_texts(table):
            raise InvalidInputError("the table of values is not numeric: it has texts or times")
        try:
            values = np.ascontiguousarray(table, np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(f"the table of values is not numeric: {error}") from None
        n = max(0, values.size.bit_length() - 1)
        if values.ndim != 1 or values.size != 1 << n or n < 1:
            raise InvalidInputError(
                f"the table of values has shape {values.shape}; expected one value for each of the"
                " 2^n coalitions of n ≥ 1 players"
            )
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise InvalidInputError(
                f"value {bad[0]} of the table is {values[bad[0]]}; all must be finite numbers"
            )
        names = tuple(composed(str(name)) for name in (range(n) if labels is None else labels))
        if len(names) != n or len(set(names)) != n:
            raise InvalidInputError(
                f"there are {len(set(names))} different labels for {n} players; each needs its own"
            )
        if values is table:
            values = values.copy()
        values.flags.writeable = False
        self.table = values
        self.labels = names

    @classmethod
    def of(cls, game: Game) -> TableGame:
        """Return the table of any game, which is asked for all of its 2^n values."""
        return cls(value_table(game), getattr(game, "labels", None))

    @classmethod
    def read(cls, path: str | Path) -> TableGame:
        """Read ``{"values": [v(0), v(1), …], "labels": […]}``; the path ``-`` is standard input."""
        with opened(path) as (where, stream):
            return cls.from_document(load_json(stream.read(), where), where)

    @classmethod
    def from_document(cls, document: object, source: str = "the document") -> TableGame:
        """Return the game of a parsed JSON document with ``values`` and, maybe, ``labels``."""
        if not isinstance(document, dict) or not isinstance(document.get("values"), list):
            raise InvalidInputError(f'{source}: expected {{"values": [v(0), v(1), …]}}')
        labels = document.get("labels")
        if labels is not None and not isinstance(labels, list):
            raise InvalidInputError(f'{source}: "labels" must be a list of names')
        try:
            return cls(document["values"], labels)
        except InvalidInputError as error:
            raise InvalidInputError(f"{source}: {error}") from None

    @property
    def n_players(self) -> int:
        """Number of players."""
        return len(self.labels)

    def __call__(self, coalitions: ArrayLike) -> FloatVector:
        """Return the values of the coalitions, one for each row."""
        rows = as_coalitions(coalitions, self.n_players)
        return np.asarray(self.table[masks_of_coalitions(rows)])

    def __repr__(self) -> str:
        return f"TableGame({self.n_players} players)"
