"""Certificate: a proof of a bound that anybody can check in exact integer arithmetic.

A certificate holds no weights and no fixed pairs, only multipliers of inequalities that are true
for every structure, and the pairs on which the search branched. `solvers.verify` takes the weights
from the graph and works out everything else again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError
from coalitions.game import IntVector
from coalitions.graph_files import atomic_write

FORMAT = "coalition-certificate"
VERSION = 1


@dataclass(frozen=True, eq=False)
class Stage:
    """Multipliers, in units of 2^−bits of an integer weight, for some of a part's inequalities.

    `rows` are numbers of inequalities: first the triangles of the part, then its cuts.
    """

    bits: int
    rows: IntVector
    values: IntVector


@dataclass(frozen=True, eq=False)
class Branch:
    """A node of the tree: what its stages prove, and then, if need be, two cases.

    Attributes
    ----------
    stages
        Multipliers, to be applied one after the other: each decides pairs, or closes the node.
    pair
        The two nodes of the graph that are together in one case and apart in the other.
    together, apart
        Numbers of the branches that treat the two cases.
    """

    stages: tuple[Stage, ...] = ()
    pair: tuple[int, int] | None = None
    together: int | None = None
    apart: int | None = None


@dataclass(frozen=True, eq=False)
class Part:
    """The proof for one component of a graph.

    Attributes
    ----------
    nodes
        The players behind each node: more than one where they must be together.
    unit
        The value of one integer weight.
    value
        Integer value of the structure that was found.
    bound
        No structure has an integer value above this.
    merges
        Pairs of nodes that some best structure has together, each by the rule that
        `solvers.reductions` states, in the order in which they were merged.
    triangles
        Triangle inequalities [t, 3]: the centre, then the two other nodes.
    cuts
        2-partition inequalities [k, width]: the centre, the other nodes, then −1.
    tree
        Branches, the root first, each before its cases.
    """

    nodes: tuple[tuple[int, ...], ...]
    unit: Fraction
    value: int
    bound: int
    merges: tuple[tuple[int, int], ...] = ()
    triangles: NDArray[np.integer[Any]] = field(default_factory=lambda: np.empty((0, 3), np.int64))
    cuts: NDArray[np.integer[Any]] = field(default_factory=lambda: np.empty((0, 1), np.int64))
    tree: tuple[Branch, ...] = (Branch(),)


@dataclass(frozen=True, eq=False)
class Certificate:
    """A proof that no structure of a graph is worth more than a bound.

    Attributes
    ----------
    n_players
        Number of players of the graph.
    parts
        Proofs of the components of the positive edges. Nodes in no part are alone.
    must_link, cannot_link
        Pairs of players that the structures under comparison have together, or apart.
    """

    n_players: int
    parts: tuple[Part, ...]
    must_link: tuple[tuple[int, int], ...] = ()
    cannot_link: tuple[tuple[int, int], ...] = ()

    def placed(self, nodes: Sequence[Sequence[int]], n_players: int) -> Certificate:
        """Return the certificate in a larger graph, with nodes[k] the players behind player k."""
        behind = [tuple(int(player) for player in group) for group in nodes]
        parts = tuple(
            replace(
                part,
                nodes=tuple(
                    tuple(sorted(player for old in node for player in behind[old]))
                    for node in part.nodes
                ),
            )
            for part in self.parts
        )
        return Certificate(n_players, parts)

    def to_json(self) -> dict[str, Any]:
        """Return the certificate as plain lists and numbers."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "players": self.n_players,
            "must_link": [list(pair) for pair in self.must_link],
            "cannot_link": [list(pair) for pair in self.cannot_link],
            "parts": [_part_to_json(part) for part in self.parts],
        }

    @classmethod
    def from_json(cls, document: Any) -> Certificate:  # noqa: ANN401 (whatever a file holds)
        """Return the certificate that plain lists and numbers describe.

        Raises
        ------
        InvalidInputError
            The document is not a certificate of this version.
        """
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise InvalidInputError(f"this is not a certificate: it has no format {FORMAT!r}")
        if document.get("version") != VERSION:
            raise InvalidInputError(
                f"the certificate has version {document.get('version')!r}; this program reads"
                f" version {VERSION}"
            )
        try:
            return cls(
                _whole(document["players"]),
                tuple(_part_from_json(part) for part in document["parts"]),
                tuple(_pair(pair) for pair in document["must_link"]),
                tuple(_pair(pair) for pair in document["cannot_link"]),
            )
        except (
            AttributeError,
            KeyError,
            OverflowError,
            TypeError,
            ValueError,
            ZeroDivisionError,
        ) as error:
            raise InvalidInputError(f"the certificate is damaged: {error!r}") from None

    def write(self, path: str | Path) -> None:
        """Write the certificate to a JSON file."""
        with atomic_write(path) as file:
            file.write(json.dumps(self.to_json(), separators=(",", ":")).encode())

    @classmethod
    def read(cls, path: str | Path) -> Certificate:
        """Read a certificate from a JSON file."""
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidInputError(f"cannot read the certificate {path}: {error}") from None
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise InvalidInputError(f"the certificate {path} is not JSON: {error}") from None
        return cls.from_json(document)


def _part_to_json(part: Part) -> dict[str, Any]:
    # Stages share most of their inequalities; each is written once.
    triangles, which = np.unique(part.triangles, axis=0, return_inverse=True)
    cuts, which_cut = np.unique(part.cuts, axis=0, return_inverse=True)
    number = np.concatenate([which.ravel(), len(triangles) + which_cut.ravel()])
    return {
        "nodes": [list(node) for node in part.nodes],
        "unit": [part.unit.numerator, part.unit.denominator],
        "value": part.value,
        "bound": part.bound,
        "merges": [list(pair) for pair in part.merges],
        "triangles": triangles.tolist(),
        "cuts": [[node for node in cut if node >= 0] for cut in cuts.tolist()],
        "tree": [_branch_to_json(branch, number) for branch in part.tree],
    }


def _branch_to_json(branch: Branch, number: IntVector) -> dict[str, Any]:
    """Describe a branch, with inequality k called number[k]."""
    document: dict[str, Any] = {
        "stages": [
            {
                "bits": stage.bits,
                "rows": number[stage.rows].tolist(),
                "values": stage.values.tolist(),
            }
            for stage in branch.stages
        ]
    }
    if branch.pair is not None:
        document |= {
            "pair": list(branch.pair),
            "together": branch.together,
            "apart": branch.apart,
        }
    return document


def _part_from_json(document: dict[str, Any]) -> Part:
    numerator, denominator = document["unit"]
    return Part(
        nodes=tuple(_wholes(node) for node in document["nodes"]),
        unit=Fraction(_whole(numerator), _whole(denominator)),
        value=_whole(document["value"]),
        bound=_whole(document["bound"]),
        merges=tuple(_pair(pair) for pair in document["merges"]),
        triangles=_rectangle(document["triangles"]),
        cuts=_rectangle(document["cuts"]),
        tree=tuple(_branch_from_json(branch) for branch in document["tree"]),
    )


def _branch_from_json(document: dict[str, Any]) -> Branch:
    stages = tuple(
        Stage(_whole(stage["bits"]), _vector(stage["rows"]), _vector(stage["values"]))
        for stage in document["stages"]
    )
    if "pair" not in document:
        return Branch(stages)
    return Branch(
        stages, _pair(document["pair"]), _whole(document["together"]), _whole(document["apart"])
    )


def _whole(number: Any) -> int:  # noqa: ANN401 (whatever a file holds)
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{number!r} is not a whole number")
    return number


def _wholes(numbers: Sequence[Any]) -> tuple[int, ...]:
    return tuple(_whole(number) for number in numbers)


def _vector(numbers: Any) -> IntVector:  # noqa: ANN401 (whatever a file holds)
    vector = np.array(_wholes(numbers), object)
    if len(vector) and max(abs(vector)) >= 1 << 62:
        raise ValueError("a multiplier is too large")
    return vector.astype(np.int64)


def _rectangle(rows: Any) -> NDArray[np.int64]:  # noqa: ANN401 (whatever a file holds)
    """Return rows of different lengths as a matrix, filled up with −1."""
    width = max(map(len, rows), default=3)
    filled = [[*_wholes(row), *[-1] * (width - len(row))] for row in rows]
    return np.array(filled, np.int64).reshape(-1, width)


def _pair(numbers: Sequence[Any]) -> tuple[int, int]:
    first, second = _wholes(numbers)
    return first, second
