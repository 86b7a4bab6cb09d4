"""Graphs of pairs with names: edge lists, tables of pairs, other libraries' edges."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np

from coalitions.errors import InvalidInputError, shown
from coalitions.formatting import composed
from coalitions.graph import SynergyGraph, Treatment, one_of_two
from coalitions.structure import Nodes

Pair = tuple[str, str, float]

_ONE = {
    "a", "from", "source", "src", "i", "u", "x", "first", "id1", "item1", "member1", "name1",
    "node1", "person1", "persona", "person", "player1", "playera", "player", "vertex1",
    "knoten1", "mitarbeiter1", "mitarbeitera", "mitarbeiter", "quelle", "spieler1", "spielera",
    "spieler", "von",
}  # fmt: skip
_OTHER = {
    "b", "to", "target", "dst", "destination", "j", "v", "y", "second", "id2", "item2", "member2",
    "name2", "node2", "partner", "person2", "personb", "player2", "playerb", "vertex2", "with",
    "an", "knoten2", "mit", "mitarbeiter2", "mitarbeiterb", "nach", "spieler2", "spielerb", "ziel",
    "zu",
}  # fmt: skip
_WEIGHT = {
    "weight", "affinity", "corr", "correlation", "rating", "score", "similarity", "strength",
    "synergy", "value", "w", "ähnlichkeit", "gewicht", "korrelation", "punkte", "stärke",
    "synergie", "wert", "poids", "peso", "valeur", "valor",
}  # fmt: skip
"""How people head the columns of a table of pairs."""


def pair_columns(header: Sequence[object]) -> tuple[int, int, int] | None:
    """Return where a header has the two names and the number of a pair, None if it does not.

    Examples
    --------
    >>> pair_columns(["Nr", "von", "nach", "Gewicht"]), pair_columns(["ann", "bob", "cleo"])
    ((1, 2, 3), None)
    """
    words = ["".join(str(cell).split()).casefold().strip("_-:") for cell in header]
    found = []
    for known in (_ONE, _OTHER, _WEIGHT):
        places = [k for k, word in enumerate(words) if word in known]
        if len(places) != 1:
            return None
        found.append(places[0])
    return found[0], found[1], found[2]


def graph_of_pairs(
    pairs: Sequence[Pair],
    labels: Sequence[Hashable] | None,
    treatment: Treatment,
) -> SynergyGraph:
    """Return the graph of pairs of names; without labels, players come as they appear.

    Pairs that are not listed are 0. With `missing`, a number that is NaN is that. A pair may be
    listed in both directions if both say the same, or `symmetrise` says what to make of it. A
    threshold needs all pairs.

    Raises
    ------
    InvalidInputError
        A pair is listed twice, has no number, or names somebody who is not in `labels`.
    """
    pairs = [(composed(a), composed(b), weight) for a, b, weight in pairs]
    if labels is None:
        names = list(dict.fromkeys(name for a, b, _ in pairs for name in (a, b)))
    else:
        names = [str(label) for label in labels]
        labels = labels if isinstance(labels, Nodes) else names
    if not names:
        raise InvalidInputError("has no players; expected lines `a b weight`")
    place = {composed(name): k for k, name in enumerate(names)}
    for a, b, weight in pairs:
        for end in (a, b):
            if end not in place:
                raise InvalidInputError(f"an edge names {shown(end)}, who is not in labels")
        if math.isnan(weight) and treatment.missing is None and a != b:
            raise InvalidInputError(
                f"the pair {a!r}–{b!r} has no number; fill it in, or say what unknown pairs are"
                " worth: missing=0"
            )
    ends = np.array([(place[a], place[b]) for a, b, _ in pairs], np.int64).reshape(-1, 2)
    weights = np.array([weight for _, _, weight in pairs], np.float64)
    weights[np.isnan(weights)] = treatment.missing or 0.0
    i, j, weights, remarks = one_of_two(
        ends[:, 0], ends[:, 1], weights, names, treatment.symmetrise, directed=False
    )
    graph = SynergyGraph.from_edges(
        len(names), i, j, weights, labels or names, threshold=treatment.threshold
    )
    graph.remarks = (*remarks, *graph.remarks)
    return graph
