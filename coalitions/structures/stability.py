r"""Stability of a structure: who would leave, and whereto.

Players care for what they get inside their coalition, their `payoffs`: half of each synergy on a
graph, the Shapley value of the game among the members otherwise. A structure is

- *Nash* stable if no player gains by moving to another coalition, or by leaving alone;
- *individually* stable if no such move leaves all those joined at least as well off;
- *contractually Nash* stable if no such move leaves all those left behind at least as well off;
- *contractually individually* stable if no such move does both;
- *core* stable if no coalition could form in which every member gets more;
- *strictly core* stable if none could form in which nobody gets less and somebody more;
- *transferable-core* stable if no coalition is worth more than its members get now: they could
  share the difference as they like.

See [Bogomolnaia2002]_, and [Sung2007]_ for the contractual notions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from coalitions.checks import GameLike, as_game
from coalitions.enumeration import member_sums, value_table
from coalitions.errors import BudgetError
from coalitions.formatting import figure, listed
from coalitions.game import FloatVector, Game, IntVector, evaluate, labels_of
from coalitions.games.induced_subgraph import InducedSubgraphGame
from coalitions.games.table import TableGame
from coalitions.graph import SynergyGraph
from coalitions.registry import Registry
from coalitions.results import PublicResult, Row, SmallTable
from coalitions.structure import CoalitionStructure, Structured, as_structure
from coalitions.values.core import members, named_players, scale_of
from coalitions.values.estimate import Estimate
from coalitions.values.owen_myerson import payoffs, payoffs_on, potential_of_table

TOLERANCE = 1e-9
"""A gain counts if it is larger than this, relative to the largest value or synergy."""

MOST_NODES = 30_000_000
"""Branches a search for a blocking coalition on a graph may look at before it gives up."""


Notion: TypeAlias = Callable[[Game | SynergyGraph, CoalitionStructure], "Deviation | None"]
"""A notion of stability: it finds the deviation that breaks a structure, if there is one."""

NOTIONS: Registry[Notion] = Registry("notion of stability")
"""All notions by name."""


@dataclass(frozen=True)
class Deviation(PublicResult):
    """A move that breaks the stability of a structure.

    Attributes
    ----------
    movers
        The players who move: one for the Nash-like notions, a whole coalition for the cores.
    coalition
        The coalition they are in afterwards, themselves included.
    before, after
        What each mover gets before and afterwards. For the transferable core, where the movers
        may share as they like, they share the gain equally.
    labels
        Names of the players.
    """

    movers: tuple[int, ...]
    coalition: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    labels: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def named(self) -> dict[str, float]:
        """What each mover gains, by name."""
        gains = (after - before for before, after in zip(self.before, self.after, strict=True))
        return dict(zip(named_players(self.movers, self.labels), gains, strict=True))

    @property
    def text(self) -> str:
        """The move in a sentence: what the movers get in all, before and afterwards."""
        movers, coalition = self.named, named_players(self.coalition, self.labels)
        gain = f"{figure(sum(self.before), 6)} → {figure(sum(self.after), 6)}"
        if len(movers) == len(coalition):
            verb = "leaves alone" if len(movers) == 1 else "form a coalition"
            return f"{listed(movers)} {verb}: {gain}"
        others = [name for name in coalition if name not in movers]
        return f"{listed(movers)} joins {listed(others)}: {gain}"

    def to_dict(self) -> dict[str, Any]:
        """Return who moves where, by name, and what they get."""
        return {
            "movers": list(self.named),
            "coalition": list(named_players(self.coalition, self.labels)),
            "before": list(self.before),
            "after": list(self.after),
        }

    def _rows(self) -> list[Row]:
        return [
            {"mover": mover, "before": before, "after": after}
            for mover, before, after in zip(self.named, self.before, self.after, strict=True)
        ]

    def _below(self) -> str:
        return self.text


@dataclass(frozen=True, eq=False)
class Stability(PublicResult, Mapping[str, "Deviation | None"]):
    """For every notion the deviation that breaks a structure, or None if it is stable.

    A notion that was not decided within the limit of its search raises that error.

    Attributes
    ----------
    structure
        Who is with whom.
    payoffs
        What everybody gets.
    found
        The deviation by notion, or why it is not known.
    """

    structure: CoalitionStructure
    payoffs: Estimate
    found: Mapping[str, Deviation | BudgetError | None]

    def __getitem__(self, notion: str) -> Deviation | None:
        move = self.found[notion]
        if isinstance(move, BudgetError):
            raise move
        return move

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    @property
    def named(self) -> dict[str, bool | None]:
        """Whether the structure is stable, for each notion; None if it was not decided."""
        return {
            notion: None if isinstance(move, BudgetError) else move is None
            for notion, move in self.found.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the coalitions, what everybody gets, and a move for each notion that fails."""
        names = self.payoffs.names
        return {
            "coalitions": [list(named_players(block, names)) for block in self.structure],
            "payoffs": self.payoffs.named,
            "notions": {
                notion: {"stable": self.named[notion]}
                | (
                    {"deviation": None, "reason": str(move)}
                    if isinstance(move, BudgetError)
                    else {"deviation": None if move is None else move.to_dict()}
                )
                for notion, move in self.found.items()
            },
        }

    def _rows(self) -> list[Row]:
        words = {True: "yes", False: "no", None: "unknown"}
        return [
            {
                "notion": notion,
                "stable": words[self.named[notion]],
                "deviation": move.text if isinstance(move, Deviation) else str(move or ""),
            }
            for notion, move in self.found.items()
        ]

    def _shown(self) -> SmallTable:
        return replace(super()._shown(), n_left=3)


def find_deviation(game: GameLike, structure: Structured, notion: str = "nash") -> Deviation | None:
    """Return a deviation that breaks the structure, or None if it is stable.

    Parameters
    ----------
    game
        A graph of any size for the Nash-like notions; for the cores, the search on a graph gives
        up after 30 million branches. Any game of up to about 20 players otherwise.
    structure
        Who is with whom: a structure, a solution, or lists of players.
    notion
        ``"nash"``, ``"individual"``, ``"contractual-nash"``, ``"contractual-individual"``,
        ``"core"``, ``"strict-core"`` or ``"transferable-core"``; see above.

    Raises
    ------
    BudgetError
        If a core could not be decided within the limit.

    Examples
    --------
    >>> graph = SynergyGraph([[0, 2, -1], [2, 0, 0], [-1, 0, 0]])
    >>> find_deviation(graph, CoalitionStructure.singletons(3))
    Deviation(movers=(0,), coalition=(0, 1), before=(0.0,), after=(1.0,))
    >>> find_deviation(graph, CoalitionStructure([[0, 1], [2]]), "core") is None
    True
    """
    search = NOTIONS[notion]
    game = as_game(game)
    structure = as_structure(structure, game)
    whole = game.graph if isinstance(game, InducedSubgraphGame) else game
    found = search(whole, structure)
    return None if found is None else replace(found, labels=labels_of(game))


def deviations(
    game: GameLike, structure: Structured, notions: Sequence[str] | None = None
) -> Stability:
    """Return for every notion the deviation that breaks the structure, or None.

    Parameters
    ----------
    game, structure
        As for `find_deviation`.
    notions
        Names of notions; all if None.

    Examples
    --------
    >>> graph = SynergyGraph([[0, 2, -1], [2, 0, 0], [-1, 0, 0]])
    >>> deviations(graph, CoalitionStructure.grand(3))["individual"]
    Deviation(movers=(2,), coalition=(2,), before=(-0.5,), after=(0.0,))
    """
    game = as_game(game)
    structure = as_structure(structure, game)
    if not isinstance(game, InducedSubgraphGame):
        game = TableGame(value_table(game), labels_of(game))  # once, for all notions
    moves: dict[str, Deviation | BudgetError | None] = {}
    wanted = NOTIONS.names() if notions is None else list(notions)
    for name in wanted:
        NOTIONS[name]  # a misspelt name is told before any search starts
    for name in wanted:
        try:
            moves[name] = find_deviation(game, structure, name)
        except BudgetError as error:
            moves[name] = error
    return Stability(structure, payoffs(game, structure), moves)


@dataclass(frozen=True)
class _Moves:
    """All moves of single players worth looking at: who, whereto, and what comes of it.

    `target` is the number of the coalition joined, or −1 for leaving alone; `loss_joined` and
    `loss_left` are the largest losses among those joined and those left behind.
    """

    player: IntVector
    target: IntVector
    before: FloatVector
    after: FloatVector
    loss_joined: FloatVector
    loss_left: FloatVector
    tolerance: float

    def best(
        self, structure: CoalitionStructure, *, welcome: bool = False, released: bool = False
    ) -> Deviation | None:
        """Return the move with the largest gain among those that nobody who is asked refuses."""
        gain = self.after - self.before
        if welcome:
            gain = np.where(self.loss_joined > self.tolerance, -np.inf, gain)
        if released:
            gain = np.where(self.loss_left > self.tolerance, -np.inf, gain)
        best = int(gain.argmax())
        if gain[best] <= self.tolerance:
            return None
        player, target = int(self.player[best]), int(self.target[best])
        joined = structure.coalitions[target] if target >= 0 else ()
        return Deviation(
            (player,),
            tuple(sorted((*joined, player))),
            (float(self.before[best]),),
            (float(self.after[best]),),
        )


@NOTIONS.register("nash")
def _nash(game: Game | SynergyGraph, structure: CoalitionStructure) -> Deviation | None:
    return _moves(game, structure).best(structure)


@NOTIONS.register("individual")
def _individual(game: Game | SynergyGraph, structure: CoalitionStructure) -> Deviation | None:
    return _moves(game, structure).best(structure, welcome=True)


@NOTIONS.register("contractual-nash")
def _contractual_nash(game: Game | SynergyGraph, structure: CoalitionStructure) -> Deviation | None:
    return _moves(game, structure).best(structure, released=True)


@NOTIONS.register("contractual-individual")
def _contractual_individual(
    game: Game | SynergyGraph, structure: CoalitionStructure
) -> Deviation | None:
    return _moves(game, structure).best(structure, welcome=True, released=True)


@NOTIONS.register("core")
def _core(game: Game | SynergyGraph, structure: CoalitionStructure) -> Deviation | None:
    return _blocking(game, structure, "core")


@NOTIONS.register("strict-core")
def _strict_core(game: Game | SynergyGraph, structure: CoalitionStructure) -> Deviation | None:
    return _blocking(game, structure, "strict-core")


@NOTIONS.register("transferable-core")
def _transferable(game: Game | SynergyGraph, structure: CoalitionStructure) -> Deviation | None:
    return _blocking(game, structure, "transferable-core")


def _moves(game: Game | SynergyGraph, structure: CoalitionStructure) -> _Moves:
    if isinstance(game, SynergyGraph):
        return _moves_on_graph(game, structure)
    return _moves_of_table(value_table(game), structure)


def _moves_on_graph(graph: SynergyGraph, structure: CoalitionStructure) -> _Moves:
    """List the moves to coalitions where the player knows somebody, and those to nobody.

    In any other coalition a player gets 0, as alone, and there is nobody to refuse alone.
    """
    n, n_blocks = structure.n_players, len(structure)
    labels = structure.labels
    now = payoffs_on(graph, structure)
    i, j, weight = graph.edges
    player = np.concatenate([i, j])
    target = labels[np.concatenate([j, i])]
    half = np.tile(weight / 2, 2)
    home = target == labels[player]
    # Those left behind lose half of a positive synergy, those joined half of a negative one.
    loss_left = np.zeros(n)
    np.maximum.at(loss_left, player[home], half[home])
    cell, inverse = np.unique(player[~home] * n_blocks + target[~home], return_inverse=True)
    gets = np.bincount(inverse, half[~home], len(cell))
    loss_joined = np.zeros(len(cell))
    np.maximum.at(loss_joined, inverse, -half[~home])
    mover = np.concatenate([cell // n_blocks, np.arange(n)])
    return _Moves(
        player=mover,
        target=np.concatenate([cell % n_blocks, np.full(n, -1)]),
        before=now[mover],
        after=np.concatenate([gets, np.zeros(n)]),
        loss_joined=np.concatenate([loss_joined, np.zeros(n)]),
        loss_left=loss_left[mover],
        tolerance=TOLERANCE * (float(np.abs(weight).max(initial=0.0)) or 1.0),
    )


def _moves_of_table(table: FloatVector, structure: CoalitionStructure) -> _Moves:
    """List all moves; what anybody gets anywhere comes from the potential of the game."""
    potential = potential_of_table(table)

    def share(player: int, coalition: int) -> float:
        return float(potential[coalition] - potential[coalition & ~(1 << player)])

    def loss(block: tuple[int, ...], before: int, after: int) -> float:
        return max((share(k, before) - share(k, after) for k in block), default=0.0)

    masks = [sum(1 << player for player in block) for block in structure]
    found: list[tuple[float, ...]] = []
    for player, home in enumerate(structure.labels.tolist()):
        bit = 1 << player
        left = tuple(k for k in structure.coalitions[home] if k != player)
        loss_left = loss(left, masks[home], masks[home] & ~bit)
        before = share(player, masks[home])
        for target in (-1, *range(len(masks))):
            if target != home:
                block, mask = (
                    (structure.coalitions[target], masks[target]) if target >= 0 else ((), 0)
                )
                loss_joined = loss(block, mask, mask | bit)
                after = share(player, mask | bit)
                found.append((player, target, before, after, loss_joined, loss_left))
    player_, target_, before_, after_, joined_, left_ = np.array(found).T
    return _Moves(
        player=player_.astype(np.int64),
        target=target_.astype(np.int64),
        before=before_,
        after=after_,
        loss_joined=joined_,
        loss_left=left_,
        tolerance=TOLERANCE * scale_of(table - table[0]),
    )


def _blocking(
    game: Game | SynergyGraph, structure: CoalitionStructure, notion: str
) -> Deviation | None:
    """Return a coalition that breaks one of the cores."""
    now = payoffs_on(game, structure)
    if isinstance(game, SynergyGraph):
        chosen = _blocking_on_graph(game, now, notion)
    else:
        chosen = _blocking_in_table(value_table(game), now, notion)
    if chosen is None:
        return None
    before = now[list(chosen)]
    if notion == "transferable-core":
        value = _value(game, chosen)
        after = before + (value - before.sum()) / len(chosen)
    else:
        rest = (player for player in range(structure.n_players) if player not in chosen)
        alone = CoalitionStructure([chosen, *((player,) for player in rest)])
        after = payoffs_on(game, alone)[list(chosen)]
    return Deviation(chosen, chosen, tuple(before.tolist()), tuple(after.tolist()))


def _value(game: Game | SynergyGraph, coalition: tuple[int, ...]) -> float:
    """Return v(coalition) − v(∅)."""
    if isinstance(game, SynergyGraph):
        game = game.game()
    rows = np.zeros((2, game.n_players), np.bool_)
    rows[1, list(coalition)] = True
    empty, value = evaluate(game, rows).tolist()
    return float(value - empty)


def _blocking_in_table(table: FloatVector, now: FloatVector, notion: str) -> tuple[int, ...] | None:
    """Look at all coalitions; take the one with the largest least, or total, gain."""
    tolerance = TOLERANCE * scale_of(table - table[0])
    if notion == "transferable-core":
        appeal = table - table[0] - member_sums(now)
        best = int(appeal[1:].argmax()) + 1
        return members(best) if appeal[best] > tolerance else None
    potential = potential_of_table(table)
    least, most = np.full(len(table), np.inf), np.full(len(table), -np.inf)
    for player, share in enumerate(now.tolist()):
        half = 1 << player
        with_player = potential.reshape(-1, 2, half)
        gain = with_player[:, 1] - with_player[:, 0] - share
        for extreme, bound in ((np.minimum, least), (np.maximum, most)):
            part = bound.reshape(-1, 2, half)[:, 1]
            extreme(part, gain, out=part)
    least[0] = -np.inf
    if notion == "core":
        best = int(least.argmax())
        return members(best) if least[best] > tolerance else None
    most[least < -tolerance] = -np.inf
    best = int(most.argmax())
    return members(best) if most[best] > tolerance else None


def _blocking_on_graph(
    graph: SynergyGraph, now: FloatVector, notion: str
) -> tuple[int, ...] | None:
    """Search for any blocking coalition, by branch and bound."""
    from coalitions.structures._blocking import blocking_coalition, gaining_coalition

    start, neighbour, weight = _adjacency(graph)
    tolerance = TOLERANCE * (float(np.abs(weight).max(initial=0.0)) or 1.0)
    if notion == "transferable-core":
        status, inside = gaining_coalition(start, neighbour, weight, now, tolerance, MOST_NODES)
    else:
        status, inside = blocking_coalition(
            start, neighbour, weight, now, tolerance, notion == "strict-core", MOST_NODES
        )
    if status < 0:
        raise BudgetError(
            f"{MOST_NODES:,} branches did not settle whether the structure is {notion} stable"
        )
    return tuple(np.flatnonzero(inside).tolist()) if status else None


def _adjacency(graph: SynergyGraph) -> tuple[IntVector, IntVector, FloatVector]:
    """Return the neighbours of each player as rows, the largest synergy first."""
    i, j, weight = graph.edges
    source, neighbour = np.concatenate([i, j]), np.concatenate([j, i])
    both = np.tile(weight, 2)
    order = np.lexsort((neighbour, -both, source))
    start = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=graph.n_players))])
    return start, neighbour[order], both[order]
