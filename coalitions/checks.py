"""What comes in from outside, checked once: numbers, seeds and links."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from numbers import Real
from operator import index
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from coalitions.errors import InvalidInputError
from coalitions.game import FloatVector, IntVector

if TYPE_CHECKING:
    from coalitions.graph import SynergyGraph

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
    links: SynergyGraph | Iterable[tuple[int, int]], n_players: int
) -> tuple[IntVector, IntVector]:
    """Return the two ends of all links: the edges of a graph, or pairs of different players.

    Examples
    --------
    >>> ends_of_links([(0, 2), (1, 2)], 3)
    (array([0, 1]), array([2, 2]))
    """
    from coalitions.graph import SynergyGraph

    if isinstance(links, SynergyGraph):
        if links.n_players != n_players:
            raise InvalidInputError(
                f"the graph has {links.n_players} players, the game {n_players}"
            )
        return links.edges.i, links.edges.j
    if not isinstance(links, Iterable):
        raise InvalidInputError(f"links are a graph or pairs of players, not {links!r}")
    pairs: list[tuple[int, int]] = []
    for link in links:
        try:
            one, other = map(index, link)
        except (TypeError, ValueError):
            one = other = -1
        if one == other or not (0 <= one < n_players and 0 <= other < n_players):
            raise InvalidInputError(
                f"{link!r} is not a link between two of the players 0 … {n_players - 1}"
            )
        pairs.append((one, other))
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    return ends[:, 0], ends[:, 1]
