"""What comes in from outside, checked once: graphs, games, structures, numbers, seeds and links.

`as_graph`, `as_game` and `coalitions.structure.as_structure` are the three ways in: every public
function that takes a graph, a game or a structure takes it through one of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from math import inf
from numbers import Real
from operator import index
from os import PathLike, fspath
from typing import TYPE_CHECKING, TypeAlias, Union

import numpy as np
from numpy.typing import ArrayLike

from coalitions.errors import InvalidInputError, shown
from coalitions.game import FloatVector, Game, IntVector, labels_of, players_of
from coalitions.structure import numbering, roster

if TYPE_CHECKING:
    import networkx as nx
    from pandas import DataFrame

    from coalitions.graph import SynergyGraph

# ----------------------------------------------------------------------------------------
# Graphs and games

GraphLike: TypeAlias = Union["SynergyGraph", ArrayLike, "DataFrame", "nx.Graph", str, PathLike[str]]
"""What `as_graph` takes, and igraph graphs, SciPy's sparse matrices and the games of graphs."""

GameLike: TypeAlias = Game | GraphLike
"""What `as_game` takes: also a table of 2^n values."""


def as_graph(graph: GraphLike) -> SynergyGraph:
    """Return the graph itself, or the one that a matrix, a data frame or a file makes.

    Parameters
    ----------
    graph
        A `SynergyGraph`, what its constructor takes, the game of a graph, or the path of a file.

    Examples
    --------
    >>> as_graph([[0, 2], [2, 0]]).n_players
    2
    """
    from coalitions.graph import SynergyGraph

    if isinstance(graph, SynergyGraph):
        return graph
    if isinstance(graph, str | PathLike):
        return SynergyGraph.read(fspath(graph))
    inner = getattr(graph, "graph", None)
    if isinstance(inner, SynergyGraph) and callable(graph):
        return inner
    if callable(graph) and hasattr(graph, "n_players"):
        raise InvalidInputError(
            f"a {type(graph).__name__} is a game, not a graph; estimate_synergy(game) makes a graph"
            " of it, and solve_game(game) solves it as it is"
        )
    return SynergyGraph(graph)


def as_game(game: GameLike) -> Game:
    """Return the game itself, or that of a graph, of a table of 2^n values, or of a file.

    Parameters
    ----------
    game
        A `Game`, whatever `as_graph` takes, a list of 2^n values, or a JSON file with ``values``.

    Examples
    --------
    >>> as_game([[0, 2], [2, 0]]).n_players, as_game([0, 1, 1, 4])
    (2, TableGame(2 players))
    """
    from coalitions.graph import SynergyGraph

    if isinstance(game, SynergyGraph):
        return game.game()
    if callable(game) or hasattr(game, "n_players") or game is None:
        players_of(game)  # type: ignore[arg-type]  # says what is missing
        return game  # type: ignore[return-value]
    if isinstance(game, str | PathLike):
        return _game_in_file(game)
    if isinstance(game, list | tuple | np.ndarray) and np.ndim(game[0] if len(game) else 0) == 0:
        from coalitions.games.table import TableGame

        return TableGame(game)
    return as_graph(game).game()


def _game_in_file(path: str | PathLike[str]) -> Game:
    """Return the game in a file; a JSON document with ``values`` is a table, all else a graph."""
    from coalitions.files.opening import load_json, opened
    from coalitions.games.table import TableGame

    if fspath(path).lower().endswith(".json"):
        with opened(fspath(path)) as (where, stream):
            document = load_json(stream.read(), where)
        if isinstance(document, dict) and "values" in document:
            return TableGame.from_document(document, where)
    return as_graph(path).game()


# ----------------------------------------------------------------------------------------
# Numbers, seeds and links

Seed = int | np.random.Generator
"""A whole number that is not negative, or a generator to draw from."""


def whole_number(value: object, what: str, least: int) -> int:
    """Return `value` as an integer of at least `least`; 100.0 is one, True is not.

    Examples
    --------
    >>> whole_number(1e3, "the budget", 1)
    1000
    """
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    try:
        whole = index(number)  # type: ignore[arg-type]
    except TypeError:
        whole = None
    if whole is None or isinstance(value, bool) or whole < least:
        raise InvalidInputError(
            f"{what} is {value!r}; it must be a whole number of at least {least}"
        )
    return whole


def number_in(value: object, what: str, least: float, most: float) -> float:
    """Return `value` as a float between `least` and `most`."""
    if not isinstance(value, Real) or not least <= float(value) <= most:
        upper = "" if most == inf else f" and at most {most:g}"
        raise InvalidInputError(
            f"{what} is {value!r}; it must be a number of at least {least:g}{upper}"
        )
    return float(value)


def generator_of(seed: Seed) -> np.random.Generator:
    """Return the generator itself, or the one that the whole number seeds."""
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(seed_of(seed))


def seed_of(seed: Seed) -> int:
    """Return the whole number itself, or one that is drawn from the generator."""
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(1 << 62))
    try:
        number = index(seed)
    except TypeError:
        number = -1
    if number < 0:
        raise InvalidInputError(
            f"the seed is {seed!r}; it must be a whole number of at least 0 or a numpy Generator"
        )
    return number


def one_number_each(values: ArrayLike, n_players: int, what: str) -> FloatVector:
    """Return the values as a vector of finite numbers, one for each player."""
    try:
        vector = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        vector = np.full(0, np.nan)
    if vector.shape != (n_players,) or not np.isfinite(vector).all():
        raise InvalidInputError(f"{what} must be {n_players} finite numbers, one for each player")
    return vector


def ends_of_links(
    links: SynergyGraph | Iterable[Iterable[Hashable]], game: Game
) -> tuple[IntVector, IntVector]:
    """Return the two ends of all links: the edges of a graph, or pairs of different players.

    Players of a graph are those of the game with the same names, if all are there.

    Examples
    --------
    >>> from coalitions import TableGame
    >>> ends_of_links([(0, 2), (1, "2")], TableGame(range(8)))
    (array([0, 1]), array([2, 2]))
    """
    from coalitions.graph import SynergyGraph

    n_players = players_of(game)
    if isinstance(links, SynergyGraph):
        if links.n_players != n_players:
            raise InvalidInputError(
                f"the graph has {links.n_players} players, the game {n_players}"
            )
        names, (i, j, _) = labels_of(game), links.edges
        if names != links.labels and {*names} == {*links.labels}:
            place = np.array([names.index(label) for label in links.labels], np.int64)
            return place[i], place[j]
        return i, j
    if not isinstance(links, Iterable):
        raise InvalidInputError(f"links are a graph or pairs of players, not {links!r}")
    number = numbering(roster(game), "a link")
    pairs: list[tuple[int, int]] = []
    for link in links:
        ends = [] if isinstance(link, str) or not isinstance(link, Iterable) else list(link)
        one, other = map(number, ends) if len(ends) == 2 else (-1, -1)
        if one == other:
            raise InvalidInputError(f"{shown(link)} is not a link between two different players")
        pairs.append((one, other))
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]
