"""Certificate: a proof of a bound that anybody can check in exact integer arithmetic.

A certificate holds no weights and no fixed pairs, only multipliers of inequalities that are true
for every structure, and the pairs on which the search branched. `solvers.verify` takes the weights
from the graph and works out everything else again.
"""

from __future__ import annotations

import itertools
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError
from coalitions.files.opening import check_whole, load_json
from coalitions.files.writing import write_json
from coalitions.game import IntVector
from solvers.proofs.proof_demands import (
    TeamDemands,
    damaged,
    entry,
    fraction,
    list_of,
    pairs_of,
    vector,
    whole,
    wholes,
)
from solvers.proofs.teams import GroupPrices, TeamsProof

FORMAT = "coalition-certificate"
VERSION = 1
TEAMS_VERSION = 2
"""The version of a certificate that compares structures of demanded sizes."""

PRICES_VERSION = 3
"""The version of one in which prices of coalitions close a branch."""

SIDES_VERSION = 4
"""The version of one in which both sides of a cut have several nodes."""

LONGEST_CUT = 16
"""Most nodes in a cut: what is checked grows with the square of it."""

MOST_BITS = 64
"""Most bits that a stage may add to the integer weights."""


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
    prices
        Prices of coalitions that close what the stages leave, if there are any.
    """

    stages: tuple[Stage, ...] = ()
    pair: tuple[int, int] | None = None
    together: int | None = None
    apart: int | None = None
    prices: GroupPrices | None = None


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
        Pairs of nodes that some best structure has together, each by a rule that the verifier
        knows, in the order in which they were merged; the second is part of the first from then on.
    triangles
        Triangle inequalities [t, 3]: the centre, then the two other nodes.
    cuts
        2-partition inequalities [k, width]: the nodes of one side, those of the other, then −1.
        There are at most `LONGEST_CUT` nodes in each.
    heads
        How many nodes of each cut are on its first side [k], or None if it is one in each.
    tree
        Branches, the root first, each before its cases. Each but the root is a case of exactly one.
    """

    nodes: tuple[tuple[int, ...], ...]
    unit: Fraction
    value: int
    bound: int
    merges: tuple[tuple[int, int], ...] = ()
    triangles: NDArray[np.integer[Any]] = field(default_factory=lambda: np.empty((0, 3), np.int64))
    cuts: NDArray[np.integer[Any]] = field(default_factory=lambda: np.empty((0, 1), np.int64))
    heads: IntVector | None = None
    tree: tuple[Branch, ...] = (Branch(),)

    @property
    def sides(self) -> IntVector:
        """How many nodes are on the first side of each cut: its right-hand side."""
        return np.ones(len(self.cuts), np.int64) if self.heads is None else self.heads


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
    teams, demands
        The proof for all players at once, by prices of coalitions, and what is demanded of every
        coalition; then there are no parts.
    """

    n_players: int
    parts: tuple[Part, ...]
    must_link: tuple[tuple[int, int], ...] = ()
    cannot_link: tuple[tuple[int, int], ...] = ()
    teams: TeamsProof | None = None
    demands: TeamDemands | None = None

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

    @property
    def _version(self) -> int:
        """The least version of the format that can hold it."""
        if self.teams is not None:
            return TEAMS_VERSION
        if any(part.heads is not None and (part.heads != 1).any() for part in self.parts):
            return SIDES_VERSION
        priced = any(branch.prices is not None for part in self.parts for branch in part.tree)
        return PRICES_VERSION if priced else VERSION

    def to_json(self) -> dict[str, Any]:
        """Return the certificate as plain lists and numbers."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": self._version,
            "players": self.n_players,
            "must_link": [list(pair) for pair in self.must_link],
            "cannot_link": [list(pair) for pair in self.cannot_link],
        }
        if self.teams is None:
            return document | {"parts": [_part_to_json(part) for part in self.parts]}
        demands = {} if self.demands is None else self.demands.to_json()
        return document | {"demands": demands, "teams": self.teams.to_json()}

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
        version = document.get("version")
        if type(version) is not int or not VERSION <= version <= SIDES_VERSION:
            raise InvalidInputError(
                f"the certificate has version {reprlib.repr(version)}; this program reads versions"
                f" {VERSION} to {SIDES_VERSION}"
            )
        n_players = whole(entry(document, "players"), "players")
        links = pairs_of(document, "must_link"), pairs_of(document, "cannot_link")
        if version == TEAMS_VERSION:
            demands = TeamDemands.from_json(entry(document, "demands"), n_players)
            teams = TeamsProof.from_json(entry(document, "teams"))
            return cls(n_players, (), *links, teams=teams, demands=demands)
        parts = tuple(_part_from_json(part) for part in list_of(document, "parts"))
        return cls(n_players, parts, *links)

    def write(self, path: str | Path) -> None:
        """Write the certificate to a JSON file."""
        write_json(path, self.to_json(), indent=None)

    @classmethod
    def read(cls, path: str | Path) -> Certificate:
        """Read a certificate from a JSON file."""
        check_whole(path)
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise InvalidInputError(
                f"cannot read the certificate {path}: {error.strerror or error}"
            ) from None
        return cls.from_json(load_json(content, f"certificate {path}"))


def _part_to_json(part: Part) -> dict[str, Any]:
    # Stages share most of their inequalities; each is written once.
    triangles, which = np.unique(part.triangles, axis=0, return_inverse=True)
    heads = part.sides
    both = np.column_stack((heads, part.cuts))
    cuts, which_cut = np.unique(both, axis=0, return_inverse=True)
    number = np.concatenate([which.ravel(), len(triangles) + which_cut.ravel()])
    document = {
        "nodes": [list(node) for node in part.nodes],
        "unit": [part.unit.numerator, part.unit.denominator],
        "value": part.value,
        "bound": part.bound,
        "merges": [list(pair) for pair in part.merges],
        "triangles": triangles.tolist(),
        "cuts": [[node for node in cut if node >= 0] for cut in cuts[:, 1:].tolist()],
        "tree": [_branch_to_json(branch, number) for branch in part.tree],
    }
    return document if (heads == 1).all() else document | {"heads": cuts[:, 0].tolist()}


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
    if branch.prices is not None:
        document["prices"] = branch.prices.to_json()
    return document


# Whatever a file holds is checked below, before anything is made of it.


def _part_from_json(document: Any) -> Part:  # noqa: ANN401
    triangles = list_of(document, "triangles")
    corners = list(itertools.chain.from_iterable(wholes(row, "triangles", 3) for row in triangles))
    return Part(
        nodes=tuple(wholes(node, "nodes") for node in list_of(document, "nodes")),
        unit=fraction(entry(document, "unit"), "unit"),
        value=whole(entry(document, "value"), "value"),
        bound=whole(entry(document, "bound"), "bound"),
        merges=pairs_of(document, "merges"),
        triangles=vector(corners, "triangles").reshape(-1, 3),
        cuts=_cuts(list_of(document, "cuts")),
        heads=vector(document["heads"], "heads") if "heads" in document else None,
        tree=tuple(_branch_from_json(branch) for branch in list_of(document, "tree")),
    )


def _branch_from_json(document: Any) -> Branch:  # noqa: ANN401
    stages = tuple(_stage_from_json(stage) for stage in list_of(document, "stages"))
    prices = GroupPrices.from_json(document["prices"]) if "prices" in document else None
    if "pair" not in document:
        return Branch(stages, prices=prices)
    i, j = wholes(document["pair"], "pair", 2)
    return Branch(
        stages,
        (i, j),
        whole(entry(document, "together"), "together"),
        whole(entry(document, "apart"), "apart"),
        prices,
    )


def _stage_from_json(document: Any) -> Stage:  # noqa: ANN401
    return Stage(
        whole(entry(document, "bits"), "bits"),
        vector(entry(document, "rows"), "rows"),
        vector(entry(document, "values"), "values"),
    )


def _cuts(rows: list[Any]) -> NDArray[np.int32]:
    """Return cuts of different lengths as a matrix, filled up with −1."""
    lengths = [len(wholes(row, "cuts")) for row in rows]
    if not all(2 <= length <= LONGEST_CUT for length in lengths):
        raise damaged(f"a cut has not 2 to {LONGEST_CUT} nodes")
    nodes = vector(list(itertools.chain.from_iterable(rows)), "cuts")
    if len(nodes) and not 0 <= nodes.min() <= nodes.max() < 1 << 31:
        raise damaged("a cut names a node that is not there")
    matrix = np.full((len(rows), max(lengths, default=3)), -1, np.int32)
    matrix[np.arange(matrix.shape[1]) < np.array(lengths, np.int64)[:, None]] = nodes
    return matrix
