"""SynergyGraph: who works well with whom, as a symmetric matrix or a list of edges, with names."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coalitions.errors import InvalidInputError, shown, spoken, warn_caller
from coalitions.formatting import composed, many
from coalitions.game import BoolVector, FloatMatrix, FloatVector, IntVector
from coalitions.structure import CoalitionStructure, Nodes, Structured, as_structure

if TYPE_CHECKING:
    import networkx as nx

    from coalitions.games.induced_subgraph import InducedSubgraphGame

DENSE_LIMIT = 5000
"""Above this many players a graph made of edges refuses to build its n×n matrix."""

MATRIX_LIMIT = 8000
"""Most players of a graph that is given as a matrix: solving one takes eight times its 0.5 GB."""

UNNAMED_LIMIT = 1_000_000
"""Most players without names: a number is quickly written, the memory it asks for is not small."""

CHUNK, HEADS = 2**14, 2
"""Weights that are added up together, and how often their first 38 bits are taken off."""

HEADS_LIMIT = 2.0**1000
"""Sums of larger weights may overflow on the way."""

ROUNDING = 8 * float(np.finfo(np.float64).eps)
"""Relative difference of s_ij and s_ji that is no difference: what a few operations round off."""

NEARLY_ONE = 1e-9
"""How far from 1 the correlation of something with itself may be."""

SYMMETRISE: dict[str, Callable[[Any, Any], Any]] = {
    # The same for (b, a) as for (a, b), to the last bit; and the sum of two halves cannot overflow.
    "mean": lambda a, b: np.where(a == b, a, a / 2 + b / 2),
    "sum": lambda a, b: a + b,
    "min": np.minimum,
    "max": np.maximum,
}

CHOICES = "mean, sum, min or max"

ONE_WAY = {
    "mean": "half of each counts",
    "sum": "each counts in full",
    "min": "each counts as the smaller of itself and 0",
    "max": "each counts as the larger of itself and 0",
}
"""What becomes of a number whose other direction is 0."""

TOO_LARGE = (
    "synergies add up to more than a float can be (1.8e308); divide all of them by the same number,"
    " 1e10 for instance"
)


class Edges(NamedTuple):
    """The pairs of a graph with a non-zero synergy, i < j, in lexicographic order."""

    i: IntVector
    j: IntVector
    weight: FloatVector


@dataclass(frozen=True)
class Treatment:
    """What makes synergies of the numbers that somebody has; see `SynergyGraph`."""

    symmetrise: str | None = None
    missing: float | None = None
    threshold: float | str | None = None

    def __post_init__(self) -> None:
        if self.symmetrise not in (None, *SYMMETRISE):
            raise InvalidInputError(
                f"symmetrise is {shown(self.symmetrise)}; it must be one of {', '.join(SYMMETRISE)}"
            )

    @classmethod
    def of(
        cls,
        symmetrize: str | None,
        symmetrise: str | None,
        missing: float | None = None,
        threshold: float | str | None = None,
    ) -> Treatment:
        """Return the treatment that keyword arguments say, in either spelling."""
        if None not in (symmetrize, symmetrise):
            raise InvalidInputError("symmetrize and symmetrise are the same; give one of them")
        return cls(symmetrise if symmetrize is None else symmetrize, missing, threshold)

    @property
    def asked(self) -> dict[str, Any]:
        """What to do, as keyword arguments of `SynergyGraph`."""
        return dict(vars(self))


class SynergyGraph:
    """A weighted graph of players: an edge is the synergy of its two ends.

    Parameters
    ----------
    matrix
        Synergies [n, n]: symmetric and finite; a diagonal is ignored, with a warning if it is not
        0. A NumPy array, anything that converts to one, a SciPy sparse matrix, which alone may
        have more than 8000 players, or a pandas DataFrame, whose index gives the labels. Also a
        DataFrame of pairs (two columns of names, one of numbers), a networkx or an igraph graph.
    labels
        Names of the players; "0" … "n−1" if there are none.
    symmetrize, symmetrise
        ``"mean"``, ``"sum"``, ``"min"`` or ``"max"`` of s_ij and s_ji, for a matrix that is not
        symmetric. What a few operations round off (1.8e-15 of the number) makes no difference. The
        two spellings are the same.
    missing
        The weight of a pair whose synergy is unknown (NaN). If one of s_ij and s_ji is known, it
        counts for both. Without it, NaN is refused.
    threshold
        A number to subtract from every pair, or ``"mean"``: that of all pairs. Correlations and
        similarities need it, since pairs below it must count against being together. It comes
        last, after `missing` and `symmetrize`. Of a graph of edges every pair must be there.

    Notes
    -----
    A graph is immutable. It keeps the matrix or the edges, whichever it was made from; the other
    is built when it is asked for.

    Wherever a player is asked for, a text is a label and a whole number a position. But a graph
    that comes from networkx, igraph or a DataFrame keeps its `nodes`, and there a number is a node.

    ``remarks`` has a sentence on one-way pairs, if there were some, and one on the threshold.

    Examples
    --------
    >>> graph = SynergyGraph([[0, 2, -1], [2, 0, 0], [-1, 0, 0]], labels=["ann", "bob", "cleo"])
    >>> graph.value(CoalitionStructure([[0, 1], [2]]))
    2.0
    """

    def __init__(
        self,
        matrix: ArrayLike | Any,  # noqa: ANN401 (DataFrames and sparse matrices share no base)
        labels: Iterable[Hashable] | None = None,
        *,
        symmetrize: str | None = None,
        symmetrise: str | None = None,
        missing: float | None = None,
        threshold: float | str | None = None,
    ) -> None:
        self._labels: tuple[str, ...]
        self._nodes: Sequence[Hashable]
        self._sparse: bool
        self._matrix: FloatMatrix | None = None
        self._edges: Edges | None = None
        self.remarks: tuple[str, ...] = ()
        treatment = Treatment.of(symmetrize, symmetrise, missing, threshold)
        if not isinstance(matrix, np.ndarray | list | tuple):
            from coalitions.files.libraries import matrix_of

            matrix, labels = matrix_of(matrix, labels, treatment)
            if isinstance(matrix, SynergyGraph):
                self.__dict__.update(matrix.__dict__)
                return
        self._sparse = hasattr(matrix, "tocoo")
        if self._sparse:
            self._labels, self._nodes = _named(labels, _side(np.shape(matrix)))
            self._edges, self.remarks = _edges_of_sparse(matrix, self._labels, treatment)
        else:
            dense = _square(matrix)
            self._labels, self._nodes = _named(labels, len(dense))
            self._matrix, self.remarks = _checked_matrix(dense, self._labels, treatment)

    @classmethod
    def from_edges(
        cls,
        n_players: int,
        i: ArrayLike,
        j: ArrayLike,
        weight: ArrayLike,
        labels: Iterable[Hashable] | None = None,
        *,
        threshold: float | str | None = None,
    ) -> SynergyGraph:
        """Return a graph that stores only its edges.

        Parameters
        ----------
        n_players
            Number of players.
        i, j
            Ends of the edges, in either order; a pair may appear once.
        weight
            Synergy of each pair.
        labels
            Names of the players.
        threshold
            As for a matrix, if there is an edge for every pair.
        """
        graph = cls.__new__(cls)
        if not isinstance(n_players, int | np.integer) or n_players < 1:
            raise InvalidInputError(
                f"n_players is {shown(n_players)}; there must be at least one player"
            )
        graph._labels, graph._nodes = _named(labels, n_players)
        graph._edges, graph.remarks = _checked_edges(
            n_players, i, j, weight, graph._labels, threshold
        )
        graph._matrix = None
        graph._sparse = True
        return graph

    def __copy__(self) -> SynergyGraph:
        return self  # immutable

    def __deepcopy__(self, memo: dict[int, Any]) -> SynergyGraph:
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what pickle kept, with arrays as read-only as they were."""
        self.__dict__.update(state)
        _frozen(*(() if self._matrix is None else (self._matrix,)), *(self._edges or ()))

    @property
    def n_players(self) -> int:
        """Number of players."""
        return len(self._labels)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the players, all different."""
        return self._labels

    @property
    def names(self) -> tuple[str, ...]:
        """The same, as results call it."""
        return self._labels

    @property
    def nodes(self) -> tuple[Hashable, ...]:
        """The players as the graph's author calls them: nodes, labels, or 0 … n−1.

        Examples
        --------
        >>> import networkx as nx
        >>> graph = SynergyGraph(nx.Graph([(2, 4), (4, (0, 1))]))
        >>> graph.nodes, graph.labels
        ((2, 4, (0, 1)), ('2', '4', '(0, 1)'))
        """
        return self._nodes if isinstance(self._nodes, tuple) else tuple(self._nodes)

    @property
    def is_sparse(self) -> bool:
        """Whether the graph is stored as edges."""
        return self._sparse

    @property
    def edges(self) -> Edges:
        """The non-zero synergies as arrays ``i``, ``j``, ``weight`` with i < j."""
        if self._edges is None:
            assert self._matrix is not None
            n = len(self._matrix)
            present = np.triu(self._matrix != 0.0, 1)
            cells = np.flatnonzero(present)
            i = np.repeat(np.arange(n), np.count_nonzero(present, axis=1))
            self._edges = Edges(*_frozen(i, cells - i * n, self._matrix[present]))
        return self._edges

    @functools.cached_property
    def positive_weight(self) -> float:
        """The sum of the positive synergies, correctly rounded: no structure is worth more."""
        weight = self.edges.weight
        return weight_sum(weight[weight > 0])

    @property
    def matrix(self) -> FloatMatrix:
        """The synergies as a read-only matrix [n, n], built on demand."""
        if self._matrix is None:
            n = self.n_players
            if n > DENSE_LIMIT:
                raise InvalidInputError(
                    f"a matrix of {n} × {n} synergies would take {n * n * 8 / 2**30:.1f} GiB;"
                    f" above {DENSE_LIMIT} players use .edges"
                )
            matrix = matrix_of_pairs(n, *self.edges)
            matrix.flags.writeable = False
            self._matrix = matrix
        return self._matrix

    def value(self, structure: Structured) -> float:
        r"""Return the sum of all synergies inside coalitions, correctly rounded.

        .. math:: v(\mathcal{C}) = \sum_{C \in \mathcal{C}} \sum_{i<j \in C} s_{ij}

        A structure may be lists of players: ``[["ann", "bob"], ["cleo"]]``; see `structure`.

        Raises
        ------
        InvalidInputError
            The structure is for other players, or the sum is larger than a float can be.
        """
        return weight_sum(self.edges.weight[self._together(self.structure(structure))])

    def structure(self, coalitions: Structured) -> CoalitionStructure:
        """Return the structure of lists of players, or of what `solve` returned.

        Players are given by number or by name, or as the `nodes` of another library's graph.

        Raises
        ------
        InvalidInputError
            Somebody is missing, is there twice, or is nobody in this graph.

        Examples
        --------
        >>> graph = SynergyGraph([[0, 2], [2, 0]], labels=["ann", "bob"])
        >>> graph.structure([["bob", "ann"]])
        CoalitionStructure(coalitions=((0, 1),))
        """
        return as_structure(coalitions, self)

    def inside(self, structure: Structured) -> FloatVector:
        """Return what each coalition of a structure is worth, in their order.

        Raises
        ------
        InvalidInputError
            The structure is for other players.

        Examples
        --------
        >>> graph = SynergyGraph([[0, 3, -2], [3, 0, -2], [-2, -2, 0]])
        >>> graph.inside(CoalitionStructure([[0, 1], [2]]))
        array([3., 0.])
        """
        structure = self.structure(structure)
        together = self._together(structure)
        worth = np.zeros(len(structure))
        np.add.at(worth, structure.labels[self.edges.i[together]], self.edges.weight[together])
        return worth

    def _together(self, structure: CoalitionStructure) -> BoolVector:
        """Tell for each edge whether its ends are in one coalition."""
        together: BoolVector = structure.labels[self.edges.i] == structure.labels[self.edges.j]
        return together

    def game(self) -> InducedSubgraphGame:
        """Return the game in which a coalition is worth the synergies inside it."""
        from coalitions.games.induced_subgraph import InducedSubgraphGame

        return InducedSubgraphGame(self)

    def subgraph(self, players: Sequence[int] | IntVector) -> SynergyGraph:
        """Return the graph of some players, in the order given."""
        chosen = np.asarray(players, np.int64)
        part = SynergyGraph.__new__(SynergyGraph)
        part._labels = tuple(self._labels[p] for p in chosen)
        kind = Nodes if isinstance(self._nodes, Nodes) else tuple
        part._nodes = kind(self._nodes[p] for p in chosen)
        part._sparse, part.remarks = self._sparse, ()
        if self._matrix is not None:
            matrix = self._matrix[np.ix_(chosen, chosen)]
            matrix.flags.writeable = False
            part._matrix, part._edges = matrix, None
            return part
        place = np.full(self.n_players, -1, np.int64)
        place[chosen] = np.arange(len(chosen))
        i, j, weight = self.edges
        inside = (place[i] >= 0) & (place[j] >= 0)
        part._edges = _ordered(place[i[inside]], place[j[inside]], weight[inside])
        part._matrix = None
        return part

    def with_weights(self, weight: FloatVector) -> SynergyGraph:
        """Return the graph with other synergies for its edges, in the order of `edges`.

        Raises
        ------
        InvalidInputError
            There are not as many weights as edges, or one is not finite.
        """
        i, j, old = self.edges
        if weight.shape != old.shape or not np.isfinite(weight).all():
            raise InvalidInputError(f"{len(old)} edges need as many finite weights")
        other = SynergyGraph.__new__(SynergyGraph)
        other._labels, other._nodes = self._labels, self._nodes
        other._sparse, other.remarks = self._sparse, ()
        kept = weight != 0
        other._edges = Edges(*_frozen(i[kept], j[kept], weight[kept]))
        other._matrix = None
        if self._matrix is not None:
            changed = np.flatnonzero(weight != old)
            matrix = self._matrix.copy()
            matrix[i[changed], j[changed]] = matrix[j[changed], i[changed]] = weight[changed]
            matrix.flags.writeable = False
            other._matrix = matrix
        return other

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        format: str | None = None,
        symmetrize: str | None = None,
        symmetrise: str | None = None,
        missing: float | None = None,
        threshold: float | str | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> SynergyGraph:
        """Read a graph from a file; its ending, or `format`, says how.

        ``.csv``, ``.tsv``, ``.xlsx``, ``.npy``, ``.npz``, ``.json``, ``.graphml`` and ``.edges``
        are known; the path ``-`` is standard input and needs `format`.

        Parameters
        ----------
        path, format
            What to read.
        symmetrize, missing, threshold
            As for a matrix; in a table, a blank cell is unknown.
        tell
            Called with a line on how a table was understood, if that was not plain, and one each on
            pairs with a number in one direction only, and on the threshold.
        """
        from coalitions.files.graphs import read_graph

        treatment = Treatment.of(symmetrize, symmetrise, missing, threshold)
        return read_graph(path, treatment, format=format, tell=tell)

    def write(self, path: str | Path) -> None:
        """Write the graph to a file whose ending says how; see `read`."""
        from coalitions.files.graphs import write_graph

        write_graph(self, path)

    @classmethod
    def from_networkx(
        cls,
        graph: nx.Graph,
        *,
        weight: str = "weight",
        symmetrize: str | None = None,
        symmetrise: str | None = None,
        threshold: float | str | None = None,
    ) -> SynergyGraph:
        """Return the synergy graph of a networkx graph; an edge without weight counts 1.

        Nodes become players in the graph's order: `nodes` has them as they are, `labels` as text.
        A directed graph is a matrix that need not be symmetric: say how to make it so with
        `symmetrize`.
        """
        from coalitions.files.libraries import graph_of_networkx

        treatment = Treatment.of(symmetrize, symmetrise, threshold=threshold)
        return graph_of_networkx(graph, treatment, weight=weight)

    @classmethod
    def from_igraph(
        cls,
        graph: Any,  # noqa: ANN401 (an igraph.Graph, without importing igraph)
        *,
        weight: str = "weight",
        symmetrize: str | None = None,
        symmetrise: str | None = None,
        threshold: float | str | None = None,
    ) -> SynergyGraph:
        """Return the synergy graph of an igraph graph; an edge without weight counts 1.

        Its `nodes` are the vertices' ``name``, if they have one, else their numbers. A directed
        graph is treated as by `from_networkx`.
        """
        from coalitions.files.libraries import graph_of_igraph

        treatment = Treatment.of(symmetrize, symmetrise, threshold=threshold)
        return graph_of_igraph(graph, treatment, weight=weight)

    @classmethod
    def from_frame(
        cls,
        frame: Any,  # noqa: ANN401 (a DataFrame, without importing pandas)
        columns: Sequence[Hashable] | None = None,
        *,
        symmetrize: str | None = None,
        symmetrise: str | None = None,
        missing: float | None = None,
        threshold: float | str | None = None,
    ) -> SynergyGraph:
        """Return the graph of a pandas DataFrame of pairs.

        Parameters
        ----------
        frame
            A row for each pair. Pairs that are not listed are worth 0, and one that is listed in
            both directions must have one number, or `symmetrize`.
        columns
            The two columns of names and the column of numbers. Without it, there must be just
            these three, or columns with common names, such as from, to and weight.
        symmetrize, missing, threshold
            As for a matrix.
        """
        from coalitions.files.libraries import graph_of_pairs_frame

        treatment = Treatment.of(symmetrize, symmetrise, missing, threshold)
        return graph_of_pairs_frame(frame, columns, treatment)

    def to_networkx(self) -> nx.Graph:
        """Return an undirected networkx graph of the `nodes`, with ``weight`` on edges."""
        from coalitions.files.libraries import networkx_graph

        return networkx_graph(self, self.nodes)

    def __repr__(self) -> str:
        return f"SynergyGraph({self.n_players} players, {len(self.edges.weight)} edges)"


Number = TypeVar("Number", bound=np.generic)


def matrix_of_pairs(
    n_players: int, i: IntVector, j: IntVector, numbers: NDArray[Number]
) -> NDArray[Number]:
    """Return the symmetric matrix [n, n] that has a number at each pair (i, j), else zeros.

    Examples
    --------
    >>> matrix_of_pairs(3, np.array([0]), np.array([2]), np.array([7]))
    array([[0, 0, 7],
           [0, 0, 0],
           [7, 0, 0]])
    """
    matrix = np.zeros((n_players, n_players), numbers.dtype)
    matrix[i, j] = matrix[j, i] = numbers
    return matrix


def weight_sum(weights: FloatVector) -> float:
    """Return the sum of synergies, correctly rounded whatever their order.

    Raises
    ------
    InvalidInputError
        The sum is larger than a float can be.

    Examples
    --------
    >>> weight_sum(np.array([1e16, 1.0, -1e16])), weight_sum(np.array([1e308, 1e308, -1e308]))
    (1.0, 1e+308)
    """
    try:
        return math.fsum(_partial_sums(weights))
    except OverflowError:  # on the way, or in the end
        try:
            return float(sum(map(Fraction, weights.tolist()), Fraction(0)))
        except OverflowError:
            raise InvalidInputError(TOO_LARGE) from None


def _partial_sums(weights: FloatVector) -> list[float]:
    """Return fewer numbers with exactly the same sum; `math.fsum` is slow on millions.

    After [Rump2008]_: with σ a power of two far above all weights of a chunk, (σ + w) − σ is w
    without its last bits. Such heads are multiples of one small number, and so few that their sum
    is exact in any order; the tails are exact as well, and next.
    """
    if len(weights) <= CHUNK or not np.abs(weights).max() < HEADS_LIMIT:
        numbers: list[float] = weights.tolist()
        return numbers
    sums = []
    for start in range(0, len(weights), CHUNK):
        tails = weights[start : start + CHUNK]
        for _ in range(HEADS):
            largest = float(np.abs(tails).max())
            sigma = math.ldexp(2.0 * CHUNK, math.frexp(largest)[1])
            heads = (tails + sigma) - sigma
            sums.append(float(heads.sum()))
            tails = tails - heads
        sums += tails[tails != 0.0].tolist()
    return sums


def _frozen(*arrays: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
    """Make arrays read-only and return them."""
    for array in arrays:
        array.flags.writeable = False
    return arrays


def _named(
    labels: Iterable[Hashable] | None, n_players: int
) -> tuple[tuple[str, ...], Sequence[Hashable]]:
    """Return the names of the players as text, and what their user calls them."""
    if labels is None:
        if n_players > UNNAMED_LIMIT:
            raise InvalidInputError(
                f"{shown(n_players)} players without names are too many; more than"
                f" {UNNAMED_LIMIT} need labels"
            )
        return tuple(map(str, range(n_players))), range(n_players)
    if isinstance(labels, Nodes):
        nodes: tuple[Hashable, ...] = labels
        given = _distinct_texts(labels)
    else:
        # An array's own elements print as np.int64(1).
        nodes = tuple(labels.tolist() if isinstance(labels, np.ndarray) else labels)
        given = tuple(map(str, nodes))
    names = tuple(map(composed, given))
    if len(names) != n_players:
        raise InvalidInputError(
            f"there are {len(names)} labels for {shown(n_players)} players; each has one"
        )
    if names != given and len(set(names)) < len(set(given)):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise InvalidInputError(
            f"two labels read {twice!r} and differ only in how their accents are encoded (NFC and"
            " NFD); labels must differ"
        )
    check_names(names)
    return names, nodes


def _distinct_texts(nodes: Nodes) -> tuple[str, ...]:
    """Return a text for each node; where several read the same, those that are no text add more.

    Examples
    --------
    >>> _distinct_texts(Nodes([1, "1", 2]))
    ('1 (int)', '1', '2')
    """
    texts = [str(node) for node in nodes]
    times = Counter(texts)
    if len(times) == len(texts) or len(nodes.place) < len(nodes):
        return tuple(texts)  # what is there twice is refused as a label
    taken = {text for text, node in zip(texts, nodes, strict=True) if isinstance(node, str)}
    taken |= {text for text in times if times[text] == 1}
    for k, node in enumerate(nodes):
        if times[texts[k]] == 1 or isinstance(node, str):
            continue
        kind = type(node).__name__
        choices = (f"{texts[k]} ({kind}{number})" for number in ("", *range(2, len(nodes) + 2)))
        texts[k] = next(text for text in choices if text not in taken)
        taken.add(texts[k])
    return tuple(texts)


def check_names(names: Iterable[str]) -> None:
    """Refuse names of players that are not text, or not all different."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInputError(f"the label {name!r} is used twice; labels must differ")
        if not name.isascii() and not _is_unicode(name):
            raise InvalidInputError(
                f"the label {name!r} is not text: it has half of a character of UTF-16"
            )
        seen.add(name)


def _is_unicode(name: str) -> bool:
    """Tell whether a name can be written to a file; JSON's escapes can make others."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_matrix_shape(shape: tuple[int, ...]) -> int:
    """Return the number of players of a matrix, or say what is wrong with its shape or size."""
    n_players = _side(shape)
    if n_players > MATRIX_LIMIT:
        raise InvalidInputError(
            f"a matrix of {n_players} × {n_players} synergies is refused: it takes"
            f" {n_players * n_players * 8 / 1e9:.1f} GB, more than once; above"
            f" {MATRIX_LIMIT} players give the pairs that are not 0, as .edges, as .npz with"
            " n_players, i, j and weight, or by SynergyGraph.from_edges"
        )
    return n_players


def _side(shape: tuple[int, ...]) -> int:
    """Return the length of a square's side, which is no square without players."""
    if len(shape) != 2 or shape[0] != shape[1]:
        sides = " × ".join(map(str, shape)) or "a single number"
        raise InvalidInputError(f"the synergy matrix must be square, but it is {sides}")
    if not shape[0]:
        raise InvalidInputError("the synergy matrix is empty; there must be at least one player")
    return shape[0]


def _square(matrix: Any) -> FloatMatrix:  # noqa: ANN401 (anything NumPy can read)
    if isinstance(matrix, np.ndarray):
        check_matrix_shape(matrix.shape)  # before it is copied
    elif isinstance(matrix, list | tuple) and len(matrix) > MATRIX_LIMIT:
        check_matrix_shape((len(matrix),) * 2)
    dense = _floats(matrix, "synergy matrix is", copy=True)
    check_matrix_shape(dense.shape)
    return dense


def _floats(
    numbers: Any,  # noqa: ANN401 (anything NumPy can read)
    what: str,
    *,
    copy: bool | None = None,
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return real numbers as floats; those that are too large become infinite."""
    if getattr(getattr(numbers, "dtype", None), "kind", "f") not in "biufOUS":
        raise InvalidInputError(f"the {what} not numeric: of type {numbers.dtype}")
    try:
        with np.errstate(over="ignore"):
            return np.array(numbers, dtype=np.float64, copy=copy)
    except (TypeError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())[:160]
        raise InvalidInputError(f"the {what} not numeric: {reason}") from None


def _checked_matrix(
    matrix: FloatMatrix, labels: tuple[str, ...], treatment: Treatment
) -> tuple[FloatMatrix, tuple[str, ...]]:
    """Return the synergies, and remarks on what became of the numbers."""
    _ignore_diagonal(np.diag(matrix), labels, matrix, treatment)
    np.fill_diagonal(matrix, 0.0)  # ours: `_square` has copied it
    remarks = []
    if treatment.missing is not None:
        remarks += _fill_in(matrix, treatment.missing)
    finite = np.isfinite(matrix)
    if not finite.all():
        a, b = np.argwhere(~finite)[0]
        unknown = " (or say what unknown pairs are worth: missing=0.0)"
        raise InvalidInputError(
            f"the synergy of {labels[a]!r} and {labels[b]!r} (row {a + 1}, column {b + 1}) is"
            f" {matrix[a, b]}; every cell must be a finite number"
            f"{unknown if np.isnan(matrix[a, b]) else ''}"
        )
    if treatment.symmetrise is not None:
        present = matrix != 0
        known = int(np.count_nonzero(np.triu(present | present.T)))
        one_way = int(np.count_nonzero(present & ~present.T))
        remarks += _one_way(one_way, known, treatment.symmetrise)
        matrix = _symmetrised(treatment.symmetrise, matrix, matrix.T)
    differing = matrix != matrix.T
    if differing.any():
        a, b = np.nonzero(np.triu(differing))
        far = np.flatnonzero(~same_but_for_rounding(matrix[a, b], matrix[b, a]))
        if len(far):
            raise _not_symmetric(
                labels[a[far[0]]], labels[b[far[0]]], *matrix[[a, b], [b, a]][:, far[0]].tolist()
            )
        matrix[a, b] = matrix[b, a] = _symmetrised("mean", matrix[a, b], matrix[b, a])
    matrix = np.ascontiguousarray(matrix)
    if treatment.threshold is not None and len(matrix) > 1:
        above = matrix[np.triu_indices(len(matrix), 1)]
        limit, remark = _limit(treatment.threshold, above)
        matrix -= limit
        np.fill_diagonal(matrix, 0.0)
        _check_finite(matrix)
        remarks.append(remark)
    matrix.flags.writeable = False
    return matrix, tuple(remarks)


def _limit(threshold: float | str, weights: FloatVector) -> tuple[float, str]:
    """Return what to subtract from all pairs, and the remark on it."""
    every = f"every one of {len(weights)} pairs" if len(weights) > 1 else "the one pair"
    if isinstance(threshold, str) and threshold == "mean":
        mean = weight_sum(weights) / len(weights)
        return mean, f"the mean of all pairs, {mean:.6g}, was subtracted from {every}"
    try:
        limit = math.nan if isinstance(threshold, bool | str) else float(threshold)
    except (TypeError, ValueError, OverflowError):
        limit = math.nan
    if not math.isfinite(limit):
        raise InvalidInputError(
            f"threshold is {shown(threshold)}; it must be a finite number, or 'mean'"
        )
    return limit, f"{spoken(limit)} was subtracted from {every}"


def _one_way(one_way: int, known: int, how: str) -> list[str]:
    """Return the remark on pairs of which one direction alone has a number, if there are some."""
    if not one_way:
        return []
    return [f"{one_way} of {known} pairs are one-way (the other direction is 0): {ONE_WAY[how]}"]


def _check_finite(weights: np.ndarray[Any, np.dtype[np.float64]]) -> None:
    """Refuse what became too large for a float."""
    if not np.isfinite(weights).all():
        raise InvalidInputError(TOO_LARGE)


def _symmetrised(how: str, one: Any, other: Any) -> Any:  # noqa: ANN401 (arrays of one shape)
    """Return what becomes of the two directions of pairs."""
    with np.errstate(over="ignore"):  # refused below, in a sentence
        both = SYMMETRISE[how](one, other)
    _check_finite(both)
    return both


def same_but_for_rounding(one: FloatVector, other: FloatVector) -> BoolVector:
    """Tell which numbers are the same but for rounding."""
    with np.errstate(over="ignore"):  # an infinite difference is one
        near: BoolVector = np.abs(one - other) <= ROUNDING * np.maximum(np.abs(one), np.abs(other))
    return near


def _not_symmetric(a: str, b: str, one: float, other: float) -> InvalidInputError:
    return InvalidInputError(
        f"the synergy matrix is not symmetric: {a!r}–{b!r} is {spoken(one)} but {b!r}–{a!r} is"
        f" {spoken(other)}; choose symmetrise={CHOICES}"
    )


def _not_the_same(a: str, b: str, one: float, other: float) -> InvalidInputError:
    return InvalidInputError(
        f"the pair {a!r}–{b!r} is {spoken(one)} and, the other way round, {spoken(other)}; choose"
        f" symmetrise={CHOICES}"
    )


def _fill_in(matrix: FloatMatrix, missing: float) -> list[str]:
    """Give pairs whose synergy is unknown a weight; one of two cells is enough to know it."""
    try:
        value = float(missing)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise InvalidInputError(f"missing is {shown(missing)}; it must be a finite number")
    a, b = np.nonzero(np.isnan(matrix))
    matrix[a, b] = matrix[b, a]
    one_way = int(np.count_nonzero(~np.isnan(matrix[a, b])))
    matrix[np.isnan(matrix)] = value
    if not one_way:
        return []
    return [f"{many(one_way, 'pair')} known in one direction only: that number counts for both"]


def _ignore_diagonal(
    own: FloatVector,
    labels: tuple[str, ...],
    weights: FloatMatrix | FloatVector,
    treatment: Treatment,
) -> None:
    """Say that what players are worth by themselves is left out; NaN is nothing to say.

    Ones are what correlations and similarities have there.
    """
    given = np.flatnonzero((own != 0) & ~np.isnan(own))
    if not len(given):
        return
    ones = np.abs(own - 1) <= NEARLY_ONE
    like_correlations = bool(ones.all()) and float(np.nanmax(np.abs(weights))) <= 1 + NEARLY_ONE
    if like_correlations and treatment.threshold is not None:
        return
    hint = (
        "; these look like correlations or similarities, which need a threshold: a pair below it"
        " counts against being together (threshold=mean, or a number, as in threshold=0.2)"
    )
    warn_caller(
        f"the diagonal is ignored: {labels[given[0]]!r} has {own[given[0]]:g} with itself, but a"
        f" player's own worth does not change which structure is best"
        f"{hint if like_correlations else ''}"
    )


def _edges_of_sparse(
    matrix: Any,  # noqa: ANN401 (any SciPy sparse format)
    names: tuple[str, ...],
    treatment: Treatment,
) -> tuple[Edges, tuple[str, ...]]:
    """Return the edges of a sparse matrix, in which what is not stored is 0, and remarks."""
    from scipy import sparse

    if matrix.dtype.kind not in "biuf":
        raise InvalidInputError(f"the synergy matrix is not numeric: of type {matrix.dtype}")
    coo = sparse.coo_array(matrix, dtype=np.float64)
    coo.sum_duplicates()
    i, j = coo.row.astype(np.int64), coo.col.astype(np.int64)
    one, other, weight, remarks = one_of_two(
        i, j, coo.data, names, treatment.symmetrise, directed=True
    )
    edges, more = _checked_edges(len(names), one, other, weight, names, treatment.threshold)
    return edges, (*remarks, *more)


def one_of_two(
    i: IntVector,
    j: IntVector,
    weight: FloatVector,
    names: Sequence[str],
    symmetrise: str | None,
    *,
    directed: bool,
) -> tuple[IntVector, IntVector, FloatVector, tuple[str, ...]]:
    """Return pairs that are listed once, of pairs that may be listed in both directions.

    A direction that is not listed is 0 where `symmetrise` is given, or the list is `directed`.
    Else a pair in one direction is all there is to say of it. Last come remarks.

    Raises
    ------
    InvalidInputError
        The two directions differ, and it is not said what to make of it; or one is listed twice.
    """
    wrong = np.flatnonzero(~np.isfinite(weight))
    if len(wrong):
        first = wrong[0]
        raise _not_finite(names[i[first]], names[j[first]], float(weight[first]))
    loop = i == j
    a, b, w = i[~loop], j[~loop], weight[~loop]
    low, high = np.minimum(a, b), np.maximum(a, b)
    key, back = low * len(names) + high, a > b
    order = np.lexsort((back, key))
    key, back, low, high, w = key[order], back[order], low[order], high[order], w[order]
    again = np.flatnonzero((key[1:] == key[:-1]) & (back[1:] == back[:-1]))
    if len(again):
        one, other = names[low[again[0]]], names[high[again[0]]]
        raise InvalidInputError(f"the pair {one!r}–{other!r} is listed twice; list it once")
    first, place = np.unique(key, return_index=True, return_inverse=True)[1:]
    low, high = low[first], high[first]
    both = np.zeros((2, len(first)))  # there, and back
    listed = np.zeros((2, len(first)), np.bool_)
    both[back.astype(np.int64), place] = w
    listed[back.astype(np.int64), place] = True
    remarks: list[str] = []
    if symmetrise is not None:
        some, every = (both != 0).any(axis=0), (both != 0).all(axis=0)
        remarks = _one_way(int((some & ~every).sum()), int(some.sum()), symmetrise)
    elif not directed:
        one_way = listed[0] != listed[1]
        both[:, one_way] = both.sum(axis=0)[one_way]
        if one_way.any() and not one_way.all():
            remarks = [
                f"{np.count_nonzero(one_way)} of {len(first)} pairs are one-way (listed in one"
                " direction only): each counts in full"
            ]
    far = np.flatnonzero(~same_but_for_rounding(both[0], both[1]))
    if symmetrise is None and len(far):
        ends, two = (names[low[far[0]]], names[high[far[0]]]), both[:, far[0]].tolist()
        raise _not_symmetric(*ends, *two) if directed else _not_the_same(*ends, *two)
    found = _symmetrised(symmetrise or "mean", both[0], both[1])
    low, high = np.concatenate((low, i[loop])), np.concatenate((high, j[loop]))
    return low, high, np.concatenate((found, weight[loop])), tuple(remarks)


def _not_finite(one: str, other: str, weight: float) -> InvalidInputError:
    return InvalidInputError(
        f"the synergy of {one!r} and {other!r} is {weight}; every weight must be a finite number"
    )


def _ends(numbers: ArrayLike) -> np.ndarray[Any, Any]:
    """Return one end of every edge, as it was given."""
    try:
        ends = np.asarray(numbers)
    except ValueError:  # lists of different lengths
        ends = np.zeros(1, object)
    if ends.dtype.kind not in "iuf" and ends.size:
        raise InvalidInputError(
            f"the ends of edges must be numbers of players, not {shown(numbers)}"
        )
    return ends


def _checked_edges(
    n_players: int,
    i: ArrayLike,
    j: ArrayLike,
    weight: ArrayLike,
    labels: tuple[str, ...],
    threshold: float | str | None = None,
) -> tuple[Edges, tuple[str, ...]]:
    """Return the edges, and remarks on what became of their weights."""
    ends = _ends(i), _ends(j)
    with np.errstate(invalid="ignore"):  # found below, by comparison
        a, b = (end.astype(np.int64, copy=False) for end in ends)
    w = _floats(weight, "weights of the edges are")
    if not (a.shape == b.shape == w.shape and a.ndim == 1):
        raise InvalidInputError(
            f"edges need as many i as j as weights, but there are {a.size}, {b.size} and {w.size}"
        )
    for end, given in zip((a, b), ends, strict=True):
        wrong = np.flatnonzero((end < 0) | (end >= n_players) | (end != given))
        if len(wrong):
            raise InvalidInputError(
                f"edge {wrong[0] + 1} names player {given[wrong[0]]}; players are the whole"
                f" numbers 0 … {n_players - 1}"
            )
    wrong = np.flatnonzero(~np.isfinite(w))
    if len(wrong):
        first = wrong[0]
        raise _not_finite(labels[a[first]], labels[b[first]], w[first])
    loops = a == b
    if loops.any():
        own = np.zeros(n_players)
        own[a[loops]] = w[loops]
        _ignore_diagonal(own, labels, w, Treatment(threshold=threshold))
        a, b, w = a[~loops], b[~loops], w[~loops]
    remarks: tuple[str, ...] = ()
    if threshold is not None:
        n_pairs = n_players * (n_players - 1) // 2
        listed = len(np.unique(np.minimum(a, b) * n_players + np.maximum(a, b)))
        if listed < n_pairs:
            raise InvalidInputError(
                f"a threshold is subtracted from every pair, but only {listed} of {n_pairs} pairs"
                " are listed; list all pairs, or give a matrix"
            )
        if n_pairs:
            limit, remark = _limit(threshold, w)
            w, remarks = w - limit, (remark,)
            _check_finite(w)
    edges = _ordered(a, b, w)
    again = (edges.i[1:] == edges.i[:-1]) & (edges.j[1:] == edges.j[:-1])
    twice = np.flatnonzero(again)
    if len(twice):
        one, other = labels[edges.i[twice[0]]], labels[edges.j[twice[0]]]
        raise InvalidInputError(f"the pair {one!r}–{other!r} is listed twice; list it once")
    return edges, remarks


def _ordered(i: IntVector, j: IntVector, weight: FloatVector) -> Edges:
    """Return the edges with i < j, zeros dropped, in lexicographic order."""
    kept = weight != 0
    weight = weight[kept]
    key = np.minimum(i, j)  # low << 32 | high, step by step: there may be millions
    key <<= 32
    key |= np.maximum(i, j)
    if len(weight) < len(key):
        key = key[kept]
    if not (key[1:] > key[:-1]).all():
        order = np.argsort(key, kind="stable")
        key, weight = key[order], weight[order]
    return Edges(*_frozen(key >> 32, key & 0xFFFFFFFF, weight))
