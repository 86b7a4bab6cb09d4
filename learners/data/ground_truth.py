"""What is true about the clients' data, and how well a method has found it out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from coalitions.errors import InvalidInputError
from coalitions.game import BoolMatrix
from coalitions.structure import CoalitionStructure


def label_overlap(counts: ArrayLike) -> BoolMatrix:
    """Return who shares a label with whom, bool[n, n]; nobody with itself.

    This is how the pFedSV paper defines domain relevance.

    Parameters
    ----------
    counts
        Images of each label at each client, [n, classes].

    Examples
    --------
    >>> label_overlap([[5, 5, 0], [0, 5, 5], [5, 0, 0]]).astype(int)
    array([[0, 1, 1],
           [1, 0, 0],
           [1, 0, 0]])
    """
    held = (np.asarray(counts) > 0).astype(np.int64)
    overlap: BoolMatrix = held @ held.T > 0
    np.fill_diagonal(overlap, False)
    return overlap


@dataclass(frozen=True)
class Detection:
    """How well relevant pairs were found: share of those claimed, and of those there are."""

    precision: float
    recall: float


def detection(relevance: ArrayLike, truth: ArrayLike) -> Detection:
    """Return precision and recall of "j is relevant to i, because its relevance is positive".

    All ordered pairs count alike. Who claims nothing is never wrong (precision 1); where there
    is nothing to find, nothing is missed (recall 1).

    Parameters
    ----------
    relevance
        Relevance of j to i, [n, n]; the diagonal is not looked at.
    truth
        Whether j is relevant to i, bool[n, n].

    Examples
    --------
    >>> detection([[1, 0.2, 0.1], [0, 1, 0], [0, 0.3, 1]], label_overlap([[1, 0], [1, 1], [0, 1]]))
    Detection(precision=0.6666666666666666, recall=0.5)
    """
    claimed, true = np.asarray(relevance, dtype=float) > 0, np.asarray(truth, dtype=bool)
    if claimed.shape != true.shape or claimed.ndim != 2 or len(claimed) != claimed.shape[1]:
        raise InvalidInputError(
            f"relevance {claimed.shape} and truth {true.shape} must be square and of one size"
        )
    off_diagonal = ~np.eye(len(claimed), dtype=bool)
    claimed, true = claimed & off_diagonal, true & off_diagonal
    found = int((claimed & true).sum())
    return Detection(
        precision=found / int(claimed.sum()) if claimed.any() else 1.0,
        recall=found / int(true.sum()) if true.any() else 1.0,
    )


def true_structure(domains: Sequence[str]) -> CoalitionStructure:
    """Return the structure in which clients of one domain are together.

    How near another structure comes to it is `coalitions.adjusted_rand_index`; whether another
    mixes no two domains, `coalitions.refines`.

    Examples
    --------
    >>> true_structure(["svhn", "mnist", "svhn"]).coalitions
    ((0, 2), (1,))
    """
    return CoalitionStructure.from_labels(np.array(domains))


def are_separated(structure: CoalitionStructure, some: Collection[int]) -> bool:
    """Tell whether no coalition has both members of `some`, such as adversaries, and others.

    Examples
    --------
    >>> are_separated(CoalitionStructure([[0, 1], [2], [3]]), [2, 3])
    True
    """
    chosen = set(some)
    return all(chosen.issuperset(block) or chosen.isdisjoint(block) for block in structure)


def among(structure: CoalitionStructure, players: Sequence[int]) -> CoalitionStructure:
    """Return the structure that is left of one if only some players count, renumbered in order.

    Examples
    --------
    >>> among(CoalitionStructure([[0, 2, 3], [1]]), [1, 2, 3]).coalitions
    ((0,), (1, 2))
    """
    return CoalitionStructure.from_labels(structure.labels[list(players)])
