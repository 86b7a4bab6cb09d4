"""The interface of games: a function from coalitions to their values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import index
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coalitions.errors import InvalidInputError

BoolVector: TypeAlias = NDArray[np.bool_]
BoolMatrix: TypeAlias = NDArray[np.bool_]
FloatVector: TypeAlias = NDArray[np.float64]
FloatMatrix: TypeAlias = NDArray[np.float64]
IntVector: TypeAlias = NDArray[np.int64]
IntMatrix: TypeAlias = NDArray[np.int64]


@runtime_checkable
class Game(Protocol):
    """Anything that knows its number of players and maps coalitions to values.

    A game is called with a boolean array [m, n], one coalition a row, and answers with m values
    (float64). It is batched because utilities are expensive and vectorise well: an estimator asks
    for all the coalitions it needs in as few calls as it can. The value of the empty coalition is
    evaluated like any other and never assumed to be 0. The array is a copy, which a game may write
    into.

    A game may offer short cuts, which are looked for by name:

    ``table``
        All 2^n values, float64, player i = bit i of the index.
    ``shapley_values()``
        The Shapley values in closed form; the attribute may also be None.
    ``semivalues(sizes)``
        The semivalue of a distribution of sizes, see `coalitions.semivalue`.
    ``pair_interactions(index)``
        The ``"shapley"`` or ``"banzhaf"`` interactions of all pairs [n, n].
    ``kernel``
        A `Kernel`: the game as compiled code.
    ``labels``
        Names of the players.
    """

    @property
    def n_players(self) -> int:
        """Number of players."""
        ...

    def __call__(self, coalitions: Any, /) -> Any:  # noqa: ANN401 (shapiq's games annotate otherwise)
        """Return the values of the coalitions, one for each row."""
        ...


@dataclass(frozen=True, eq=False)
class Kernel:
    """A game as compiled code: players join one by one, and each step costs what it changes.

    Attributes
    ----------
    add
        A function compiled by ``numba.njit`` that is called as ``add(state, player, parameters)``
        with (float64[:], int64, float64[:]). It lets the player join the coalition that `state`
        stands for, by changing `state`, and returns the value of the larger coalition.
    parameters
        What defines the game, as one float64 vector.
    start
        The state of the empty coalition.
    empty
        The value of the empty coalition.

    Examples
    --------
    The game in which each member brings 2:

    >>> from numba import njit
    >>> @njit
    ... def add(state, player, parameters):
    ...     state[0] += parameters[0]
    ...     return state[0]
    >>> kernel = Kernel(add, parameters=np.array([2.0]), start=np.zeros(1), empty=0.0)
    """

    add: Callable[[FloatVector, int, FloatVector], float]
    parameters: FloatVector
    start: FloatVector
    empty: float = 0.0

    @classmethod
    def of_value(
        cls,
        value: Callable[[FloatVector, FloatVector], float],
        parameters: FloatVector,
        n_players: int,
    ) -> Kernel:
        """Return the kernel of a game that only knows the value of whole coalitions.

        `value` is compiled by ``numba.njit`` and called as ``value(members, parameters)``, where
        ``members`` is a float64 vector of zeros and ones. Each step then costs a full evaluation.
        """
        from coalitions.compiling import add_of_value

        parameters = np.ascontiguousarray(parameters, np.float64)
        start = np.zeros(n_players)
        return cls(add_of_value(value), parameters, start, float(value(start, parameters)))


def players_of(game: Game) -> int:
    """Return the number of players, after a look at whether this is a game at all."""
    n = getattr(game, "n_players", None)
    try:
        n_players = index(n)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidInputError(
            f"a game needs n_players, a whole number, not {n!r}; wrap a function:"
            " FunctionGame(function, n)"
        ) from None
    if n_players < 1:
        raise InvalidInputError(f"the game has {n_players} players; it needs at least one")
    if not callable(game):
        raise InvalidInputError(
            f"a {type(game).__name__} cannot be asked for the values of coalitions; a graph"
            " becomes a game by graph.game()"
        )
    return n_players


def labels_of(game: Game) -> tuple[str, ...]:
    """Return the players' names, or their numbers if the game has no name for each of them.

    Examples
    --------
    >>> from coalitions import synergy_game
    >>> labels_of(synergy_game([[0, 2], [2, 0]], ["ann", "bob"]))
    ('ann', 'bob')
    """
    n = players_of(game)
    named = getattr(game, "labels", None)
    # A foreign game may call something else its labels: the classes of its data, say.
    if isinstance(named, list | tuple) and len(named) == n:
        labels = tuple(map(str, named))
        if len(set(labels)) == n:
            return labels
    return tuple(map(str, range(n)))


G = TypeVar("G")

_CHECKED: set[type] = set()


def answers_checked(game_class: type[G]) -> type[G]:
    """Say of a class of games that its answers went through `evaluate` when it asked others.

    Then they are not checked again, and the rows are not copied again: the class must not write to
    them. A subclass may do anything, so this does not hold for it.
    """
    _CHECKED.add(game_class)
    return game_class


def evaluate(game: Game, rows: BoolMatrix) -> FloatVector:
    """Return the game's values as a checked float64 vector, one for each row.

    This is where foreign games come in. A game gets a copy of the rows: whatever it writes into
    them, the caller's stay as they are. Read-only rows would trouble games that do not write, too:
    PyTorch warns of them, and Cython refuses them. The answers are checked here: one finite number
    for each row.
    """
    if type(game) in _CHECKED:
        checked: FloatVector = game(rows)
        return checked
    answer = game(rows.copy())
    if np.iscomplexobj(answer):
        raise InvalidInputError("the game's values are complex; a value is a real number")
    if has_texts(answer):
        raise InvalidInputError(
            "the game's values are texts or times, not numbers; convert them, by float for instance"
        )
    try:
        values = np.asarray(answer, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"the game's values are not numbers: {error}") from None
    if values.shape != (len(rows),):
        if values.size != len(rows):
            raise InvalidInputError(
                f"the game was asked for {len(rows)} coalitions but answered with an array of"
                f" shape {values.shape}; a game returns one value for each row"
            )
        values = values.reshape(len(rows))
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        members = np.flatnonzero(rows[bad[0]]).tolist()
        raise InvalidInputError(f"the value of coalition {members} is {values[bad[0]]}")
    return values


_TEXTS = (str, bytes, np.datetime64, np.timedelta64)


def has_texts(values: object) -> bool:
    """Tell whether there are texts or times among values, which NumPy would take for numbers.

    Examples
    --------
    >>> has_texts([1, "1.5"]), has_texts(np.array([1.5]))
    (True, False)
    """
    if isinstance(values, _TEXTS):
        return True
    if isinstance(values, list | tuple):
        return any(map(has_texts, values))
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if kind == "O":  # objects, or a type of pandas
        return any(isinstance(each, _TEXTS) for each in np.asarray(values, object).flat)
    return kind in ("U", "S", "M", "m")


def closed_form_of(game: Game, name: str = "shapley_values") -> Callable[..., FloatVector] | None:
    """Return the function by which the game knows some values without being asked, if it has it."""
    return getattr(game, name, None)


def table_of(game: Game) -> FloatVector | None:
    """Return the game's 2^n values, if it has them at hand."""
    return getattr(game, "table", None)


def kernel_of(game: Game) -> Kernel | None:
    """Return the game as compiled code, if it offers that."""
    return getattr(game, "kernel", None)


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
