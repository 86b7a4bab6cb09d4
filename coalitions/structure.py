"""CoalitionStructure: a partition of the players in canonical order."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from coalitions.errors import InvalidInputError, did_you_mean, shown, warn_caller
from coalitions.formatting import composed
from coalitions.game import IntVector, labels_of


class Named(Protocol):
    """Players with names, such as those of a `SynergyGraph`."""

    @property
    def labels(self) -> Sequence[str]:
        """Names of the players."""
        ...


class Solved(Protocol):
    """What `solve` returns: it has a structure."""

    @property
    def structure(self) -> CoalitionStructure:
        """The structure that was found."""
        ...


@dataclass(frozen=True)
class CoalitionStructure:
    """A partition of the players 0 … n−1 into coalitions.

    Coalitions are kept in canonical order (members ascending, coalitions by smallest member), so
    two structures are the same partition exactly if they are equal.

    Parameters
    ----------
    coalitions
        The players of each coalition: by number, by name, or as nodes of the graph.
    players
        Who knows the names, a `SynergyGraph` for instance; numbers do without.

    Examples
    --------
    >>> CoalitionStructure([[2, 0], [1]])
    CoalitionStructure(coalitions=((0, 2), (1,)))
    >>> CoalitionStructure.from_labels([7, 3, 7]).labels
    array([0, 1, 0])
    """

    coalitions: tuple[tuple[int, ...], ...]

    def __init__(
        self, coalitions: Iterable[Iterable[Hashable]], players: Named | None = None
    ) -> None:
        names = None if players is None else players.labels
        number = numbering(players)
        blocks = sorted(
            tuple(sorted(map(int, map(number, _members(block))))) for block in coalitions
        )
        if any(not block for block in blocks):
            raise InvalidInputError("a coalition is empty; leave it out")
        _check_cover(sorted(player for block in blocks for player in block), names)
        object.__setattr__(self, "coalitions", tuple(blocks))

    @classmethod
    def from_labels(cls, labels: ArrayLike) -> CoalitionStructure:
        """Return the structure in which players with equal labels are together."""
        vector = np.asarray(labels)
        if vector.ndim != 1:
            raise InvalidInputError(f"labels have shape {vector.shape}; expected one per player")
        if vector.dtype.kind in "iu":
            blocks: dict[int, list[int]] = {}
            for player, label in enumerate(vector.tolist()):
                blocks.setdefault(label, []).append(player)
            # Members ascend, and blocks follow by their first: nothing is left to be checked.
            structure = cls.__new__(cls)
            object.__setattr__(structure, "coalitions", tuple(map(tuple, blocks.values())))
            return structure
        _, numbers = np.unique(vector, return_inverse=True)
        order = np.argsort(numbers, kind="stable")
        cuts = np.flatnonzero(np.diff(numbers[order])) + 1
        return cls(block.tolist() for block in np.split(order, cuts) if len(block))

    @classmethod
    def singletons(cls, n_players: int) -> CoalitionStructure:
        """Return the structure in which everybody is alone."""
        return cls((player,) for player in range(n_players))

    @classmethod
    def grand(cls, n_players: int) -> CoalitionStructure:
        """Return the structure in which everybody is together."""
        return cls([range(n_players)] if n_players else [])

    @property
    def n_players(self) -> int:
        """Number of players."""
        return sum(map(len, self.coalitions))

    @property
    def labels(self) -> IntVector:
        """Number of each player's coalition, int[n], counted in canonical order: a fresh copy."""
        return self._labels.copy()

    @functools.cached_property
    def _labels(self) -> IntVector:
        labels = np.empty(self.n_players, np.int64)
        for number, block in enumerate(self.coalitions):
            labels[list(block)] = number
        return labels

    def __len__(self) -> int:
        return len(self.coalitions)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return iter(self.coalitions)


Structured = CoalitionStructure | Solved | Iterable[Iterable[Hashable]]
"""What a structure can be given as: itself, a solution, or lists of players."""


def as_structure(structure: Structured, players: Players | None = None) -> CoalitionStructure:
    """Return the structure itself, that of a solution, or the one that lists of players make.

    Parameters
    ----------
    structure
        A `CoalitionStructure`, what `solve` returned, or lists of players, by number, by name, or
        as the `nodes` of another library's graph.
    players
        The graph or the game that the structure is about. None if only numbers will be given.

    Raises
    ------
    InvalidInputError
        Somebody is missing, is there twice, or is nobody there.
    """
    who = None if players is None else roster(players)
    solved = getattr(structure, "structure", None)
    if isinstance(solved, CoalitionStructure):
        names = getattr(getattr(structure, "graph", None), "labels", ())
        if who is not None and names != who.labels and {*names} == {*who.labels}:
            raise InvalidInputError(
                "the solution is of a graph with these players in another order; give its"
                " named, which is the coalitions by name"
            )
        structure = solved
    if not isinstance(structure, CoalitionStructure):
        if isinstance(structure, str) or not isinstance(structure, Iterable):
            raise InvalidInputError(
                f"{shown(structure)} is no structure; give lists of players: [[0, 1], [2]]"
            )
        return CoalitionStructure(structure, who)
    if players is not None and structure.n_players != players.n_players:
        raise InvalidInputError(
            f"the structure has {structure.n_players} players,"
            f" the {'graph' if hasattr(players, 'nodes') else 'game'} {players.n_players}"
        )
    return structure


class Players(Protocol):
    """A graph or a game: it knows how many players there are."""

    @property
    def n_players(self) -> int:
        """Number of players."""
        ...


class Labels(NamedTuple):
    """The names of a game's players."""

    labels: tuple[str, ...]


def roster(players: Players) -> Named:
    """Return who knows what the players are called: the graph, or the names in a game."""
    graph: Any = getattr(players, "graph", players)
    if hasattr(graph, "nodes") and hasattr(graph, "labels"):
        named: Named = graph
        return named
    return Labels(labels_of(players))  # type: ignore[arg-type]


class Nodes(tuple[Hashable, ...]):
    """The nodes of a graph of another library, by which its users call the players.

    Where players have labels, or nothing, a whole number is a position. Here it is a node.
    """

    warned = False
    """Whether we have already said which of two players a number means."""

    @functools.cached_property
    def place(self) -> dict[Hashable, int]:
        """The position of each node."""
        return {node: k for k, node in enumerate(self)}


class Position(int):
    """A player's number that was worked out already: a position, also where a number is a node."""


def numbering(players: Named | None, where: str = "") -> Callable[[object], int]:
    """Return what gives the position of a player, however the user calls it.

    This is the one place that decides it. A text is a label. A whole number is a position, unless
    the graph came with `Nodes`: then it is a node, as is any other object. What we return can be
    passed in again: a `Position` always is one.

    Parameters
    ----------
    players
        Who knows the players: a `SynergyGraph`, or a game with labels. None if only numbers will
        be asked for.
    where
        What the user gave, for messages: ``"must_link"``.

    Examples
    --------
    >>> from coalitions import SynergyGraph
    >>> number = numbering(SynergyGraph([[0, 2], [2, 0]], ["ann", "bob"]))
    >>> number("bob"), number(0)
    (1, 0)
    """
    names = None if players is None else players.labels
    nodes: Any = getattr(players, "nodes", ())
    by_label: dict[str, int] = {}

    def labelled(player: str) -> int | None:
        if names is None:
            raise InvalidInputError(
                f"{shown(player)} is a name, and this structure has no names. Pass the graph as"
                " well: CoalitionStructure(coalitions, graph)"
            )
        if not by_label:
            by_label.update((composed(name), k) for k, name in enumerate(names))
        return by_label.get(composed(player))

    def position(player: Any) -> int | None:  # noqa: ANN401 (whatever the user gave)
        if isinstance(player, float) and player.is_integer():
            player = int(player)
        try:
            number = index(player)
        except TypeError:
            if where:
                return None
            raise InvalidInputError(
                f"a player is given by number or by name, not as {shown(player)}"
            ) from None
        return number if names is None or 0 <= number < len(names) else None

    def node(player: object) -> Position:
        found: int | None
        if isinstance(player, Position):
            found = position(player)
        else:
            found = _place_of_node(player, nodes)
            if found is None and isinstance(player, str):
                found = labelled(player)
        if found is None:
            raise _nobody(player, names or (), nodes, where)
        return Position(found)

    def number(player: object) -> int:
        if names is None and type(player) is int:  # most often
            return player
        if isinstance(player, str):
            found = labelled(player)
        else:
            found = None if isinstance(player, bool) else position(player)
        if found is None:
            raise _nobody(player, names or (), nodes, where)
        return found

    return node if isinstance(nodes, Nodes) else number


def _place_of_node(player: Any, nodes: Nodes) -> int | None:  # noqa: ANN401 (whatever came)
    """Return the position of a node, None if it is none."""
    try:
        place = nodes.place.get(player)
    except TypeError:  # a list, which cannot be a node
        return None
    # True == 1, but nobody calls the node 1 so.
    if place is None or isinstance(player, bool) != isinstance(nodes[place], bool):
        return None
    mistaken = isinstance(player, int | np.integer) and place != player
    if mistaken and 0 <= player < len(nodes) and not nodes.warned:
        nodes.warned = True
        warn_caller(
            f"{player!r} is taken as the node {player!r}, not as the player at position {player!r},"
            f" which is {shown(nodes[player])}: demands on this graph name its nodes"
        )
    return place


def _nobody(
    player: Any,  # noqa: ANN401 (whatever came)
    names: Sequence[str],
    nodes: Sequence[Hashable],
    where: str,
) -> InvalidInputError:
    """Return the sentence about an unknown player."""
    n = len(names)
    number = isinstance(player, int | np.integer) and not isinstance(player, bool)
    hint = did_you_mean(player, names) if isinstance(player, str) else ""
    if isinstance(nodes, Nodes) and not isinstance(player, Position):
        if number and 0 <= player < n:
            hint = f"did you mean {shown(nodes[player])}, which is at position {player}?"
        hint = hint or f"its nodes are {', '.join(map(shown, nodes[:4]))}{', …' * (n > 4)}"
        who = f"{where} names {shown(player)}, which is" if where else f"{shown(player)} is"
        return InvalidInputError(f"{who} no node of the graph; {hint.strip()}")
    if number:
        who = f"{where} names player {player}" if where else f"there is no player {player}"
        return InvalidInputError(f"{who}; players are 0 … {n - 1}")
    who = f"there is no player {shown(player)}"
    if where:
        who = f"{where} names {shown(player)}, who is not a player"
    return InvalidInputError(f"{who}; {hint}".rstrip("; "))


def _members(block: Iterable[Hashable]) -> Iterable[Hashable]:
    """Return a coalition, which a single number or text is not."""
    if isinstance(block, str) or not isinstance(block, Iterable):
        raise InvalidInputError(
            f"a coalition is a list of players, not {shown(block)}; write [[0, 1], [2]]"
        )
    return block


def _check_cover(players: list[int], names: Sequence[str] | None) -> None:
    """Refuse players that are not 0 … n−1, each of them once."""
    n_players = len(players) if names is None else len(names)
    if players == list(range(n_players)):
        return

    def called(player: int) -> str:
        known = names is not None and 0 <= player < n_players
        return repr(names[player]) if known and names is not None else str(player)

    twice = [p for p, q in itertools.pairwise(players) if p == q]
    missing = sorted(set(range(n_players)) - set(players))
    if twice:
        what = f"player {called(twice[0])} is in two coalitions"
    elif missing:
        what = f"player {called(missing[0])} is in no coalition"
    else:
        what = f"there is no player {next(p for p in players if not 0 <= p < n_players)}"
    whom = "0 … n-1" if names is None else f"0 … {n_players - 1}"
    raise InvalidInputError(
        f"coalitions must cover the players {whom}, each of them once, but {what}"
    )
