"""Costs that are known for every group, to be shared by its members."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import chain, compress
from typing import Any, TypeAlias

import numpy as np

from coalitions.errors import InvalidInputError, shown, with_keywords
from coalitions.game import BoolMatrix, FloatVector
from coalitions.problems.named import NamedGame, names_of, number

Costs: TypeAlias = Mapping[Any, float] | Callable[[tuple[str, ...]], float]


@with_keywords()
def cost_game(
    costs: Costs, names: Iterable[Hashable] | None = None, *, savings: bool = False
) -> CostGame:
    r"""Return the game in which a coalition is worth what it would pay on its own.

    Parameters
    ----------
    costs
        The cost of every group that is asked for: a mapping from groups of names, or a function of
        a tuple of names. Nobody pays nothing.
    names
        Names of the players; by default all that occur in the mapping, in that order.
    savings
        Take what a coalition saves by acting together, :math:`\sum_{i \in S} c(i) - c(S)`: the form
        that the core and the nucleolus expect, in which more is better.

    Examples
    --------
    Two towns can build one water plant for 15, or one each for 11 and 7.

    >>> from coalitions import shapley
    >>> game = cost_game({("A",): 11, ("B",): 7, ("A", "B"): 15})
    >>> shapley(game).values
    array([9.5, 5.5])
    """
    if callable(costs):
        if names is None:
            raise InvalidInputError("a function of costs does not say who plays; give names")
        players = tuple(names)
        return CostGame(costs, names_of(players, len(players), "players"), savings)
    if not isinstance(costs, Mapping) or not costs:
        raise InvalidInputError(
            "costs must be a mapping from groups to numbers, such as {('ann', 'bob'): 12},"
            " or a function of a group"
        )
    table: dict[frozenset[str], float] = {}
    for group, cost in costs.items():
        if not isinstance(group, Iterable):
            raise InvalidInputError(
                f"the costs are of {shown(group)}, which is neither a name nor a group of names;"
                " names of players are text, such as 'ann'"
            )
        members = frozenset([group] if isinstance(group, str) else map(str, group))
        price = number(cost, f"the cost of {shown(group)}")
        if not members and price:
            raise InvalidInputError(
                f"the empty coalition, {shown(group)}, costs {shown(cost)}; it must be 0"
            )
        if table.setdefault(members, price) != price:
            raise InvalidInputError(f"{shown(group)} has two costs")
    groups = ([group] if isinstance(group, str) else group for group in costs)
    everybody = dict.fromkeys(map(str, chain.from_iterable(groups)))
    players = tuple(everybody if names is None else names)
    return CostGame(_Table(table), names_of(players, len(players), "players"), savings)


class CostGame(NamedGame):
    """The game of known costs; see `cost_game`."""

    def __init__(
        self, cost: Callable[[tuple[str, ...]], float], labels: tuple[str, ...], savings: bool
    ) -> None:
        self.cost = cost
        self.labels = labels
        self.savings = savings

    def _values(self, rows: BoolMatrix) -> FloatVector:
        costs = np.array([self._cost(row) for row in rows], np.float64)
        if not self.savings:
            return costs
        alone = np.array([self._cost(row) for row in np.eye(self.n_players, dtype=np.bool_)])
        return np.asarray(np.where(rows, alone, 0.0).sum(axis=1) - costs)

    def _cost(self, row: FloatVector | BoolMatrix) -> float:
        if not row.any():
            return 0.0
        members = tuple(compress(self.labels, row))
        return number(self.cost(members), f"the cost of {shown(members)}")


class _Table:
    """Costs that are looked up, whatever the order of the names."""

    def __init__(self, table: dict[frozenset[str], float]) -> None:
        # A list in one order, not sets: so that equal games look equal on disk.
        self._costs = {tuple(sorted(group)): cost for group, cost in table.items()}

    def __call__(self, members: tuple[str, ...]) -> float:
        try:
            return self._costs[tuple(sorted(members))]
        except KeyError:
            raise InvalidInputError(
                f"the costs do not say what {', '.join(members)} pay on their own"
            ) from None
