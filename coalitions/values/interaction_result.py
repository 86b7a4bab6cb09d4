"""What comes out of `interactions`: a number for each coalition up to an order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.extras import needed
from coalitions.game import FloatVector
from coalitions.sampling.estimator import Estimate

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class Interactions:
    """An interaction index of all coalitions up to an order, with errors and cost.

    Attributes
    ----------
    index, order
        Name of the index, and the size of the largest coalitions.
    n_players, labels
        The players and their names.
    coalitions
        The coalitions, smaller ones first; players in ascending order.
    values, stderr
        A number for each coalition, and its standard error; all 0 if the values are exact.
    evaluations, method, reason, degrees_of_freedom, stopped
        As in `Estimate`.

    Examples
    --------
    >>> from coalitions import TableGame, interactions
    >>> glove = TableGame([0, 0, 0, 1, 0, 1, 0, 1], labels=["left", "right", "other"])
    >>> found = interactions(glove, "SII", order=2)
    >>> found[0, 1], found[1, 2], len(found)
    (0.5, -0.5, 6)
    >>> found.named["left", "right"]
    0.5
    >>> found.values_of_order(2)
    {(0, 1): 0.5, (0, 2): 0.5, (1, 2): -0.5}
    """

    index: str
    order: int
    n_players: int
    labels: tuple[str, ...]
    coalitions: tuple[tuple[int, ...], ...]
    values: FloatVector
    stderr: FloatVector
    evaluations: int
    method: str
    reason: str = ""
    degrees_of_freedom: float = np.inf
    stopped: str = ""

    @cached_property
    def _places(self) -> dict[tuple[int, ...], int]:
        return {coalition: place for place, coalition in enumerate(self.coalitions)}

    def __getitem__(self, coalition: object) -> float:
        """Return the index of a coalition: players in any order, or a lone player."""
        players = (coalition,) if isinstance(coalition, int | np.integer) else coalition
        try:
            place = self._places[tuple(sorted(set(players)))]  # type: ignore[call-overload]
        except (TypeError, KeyError):
            raise InvalidInputError(
                f"{coalition!r} is not a coalition of at most {self.order} of the players"
                f" 0 … {self.n_players - 1}"
            ) from None
        return float(self.values[place])

    def __len__(self) -> int:
        """Return the number of coalitions."""
        return len(self.coalitions)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        """Return the coalitions one by one."""
        return iter(self.coalitions)

    @property
    def mapping(self) -> dict[tuple[int, ...], float]:
        """The index of each coalition."""
        return dict(zip(self.coalitions, self.values.tolist(), strict=True))

    @property
    def named(self) -> dict[tuple[str, ...], float]:
        """The same by the names of the players."""
        return {tuple(self.labels[i] for i in c): value for c, value in self.mapping.items()}

    def values_of_order(self, size: int) -> dict[tuple[int, ...], float]:
        """Return the index of the coalitions of one size."""
        return {c: value for c, value in self.mapping.items() if len(c) == size}

    def interval(self, level: float = 0.95) -> tuple[FloatVector, FloatVector]:
        """Return the lower and the upper ends of the confidence intervals."""
        same = Estimate(
            self.values,
            self.stderr,
            self.evaluations,
            self.method,
            degrees_of_freedom=self.degrees_of_freedom,
        )
        return same.interval(level)

    def to_frame(self) -> DataFrame:
        """Return a table: the names of a coalition, its size, value and standard error."""
        needed("pandas")
        import pandas as pd

        return pd.DataFrame(
            {
                "coalition": [" × ".join(names) for names in self.named],
                "order": [len(coalition) for coalition in self.coalitions],
                "value": self.values,
                "stderr": self.stderr,
            }
        )

    def plot(self, path: str | Path | None = None) -> Figure:
        """Return a matplotlib figure: players on a circle, lines of pairs, areas of more.

        Parameters
        ----------
        path
            Where to write the picture as well: ``.png``, ``.svg`` or ``.pdf``.

        Raises
        ------
        MissingDependencyError
            matplotlib is not installed.
        """
        from coalitions.results.network import interaction_network

        title = (
            f"{self.index} up to order {self.order}; {self.method}, {self.evaluations} evaluations"
        )
        return interaction_network(self.mapping, self.labels, title, path)

    def _repr_html_(self) -> str:
        """Return a table of the strongest interactions, as notebooks show it."""
        from coalitions.results.tables import interactions_shown

        return interactions_shown(self).html

    def __str__(self) -> str:
        """Return the same table as text."""
        from coalitions.results.tables import interactions_shown

        return interactions_shown(self).text

    def to_json(self) -> str:
        """Return a JSON document, as ``coalitions value --json`` prints it."""
        from coalitions.files.text import json_text

        return json_text(self.document)

    @property
    def document(self) -> dict[str, Any]:
        """What the JSON document holds."""
        numbers = zip(self.named, self.values.tolist(), self.stderr.tolist(), strict=True)
        return {
            "index": self.index,
            "order": self.order,
            "interactions": [
                {"players": list(names), "value": value, "stderr": error}
                for names, value, error in numbers
            ],
            "evaluations": self.evaluations,
            "method": self.method,
            **({"stopped": self.stopped} if self.stopped else {}),
        }
