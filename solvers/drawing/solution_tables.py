"""A solution as a pandas table, and as the small table that notebooks and `print` show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coalitions.extras import needed
from coalitions.formatting import figure, listed, quoted, visible
from coalitions.results import SmallTable

if TYPE_CHECKING:
    from pandas import DataFrame

    from coalitions.game import FloatVector
    from solvers.solution import Solution

MOST_ROWS, MOST_NAMES = 100, 40
"""What is shown of a large structure; `Solution.named` has all of it."""


def solution_frame(solution: Solution) -> DataFrame:
    """Return a row for each player; see `Solution.to_frame`."""
    needed("pandas")
    import pandas as pd

    order = [player for block in solution.structure for player in block]
    sizes = [len(block) for block in solution.structure for _ in block]
    columns: dict[str, object] = {
        "player": [name for block in solution.named for name in block],
        "coalition": solution.structure.labels[order],
        "size": sizes,
    }
    if solution.graph is not None:
        columns["synergy"] = _own(solution)[order]
    return pd.DataFrame(columns)


def _own(solution: Solution) -> FloatVector:
    """Return the sum of each player's synergies inside its coalition."""
    assert solution.graph is not None
    i, j, weight = solution.graph.edges
    labels = solution.structure.labels
    inside = labels[i] == labels[j]
    own = np.zeros(solution.structure.n_players)
    for ends in (i, j):
        np.add.at(own, ends[inside], weight[inside])
    return own


def solution_shown(document: Mapping[str, Any], model: str | None = None) -> SmallTable:
    """Return a table of the coalitions, and below it what was proven.

    Parameters
    ----------
    document
        What `Solution.to_dict` returns, or `Solution.save` has written.
    model
        A remark of the solver on its model.
    """
    blocks, inside = document["coalitions"], document.get("synergies_inside")
    heads = ["", "coalition", "players", *([] if inside is None else ["synergy inside"])]
    rows = []
    for number, block in enumerate(blocks[:MOST_ROWS]):
        more = f" … ({len(block) - MOST_NAMES} more)" if len(block) > MOST_NAMES else ""
        cells = [str(number + 1), visible(listed(block[:MOST_NAMES]) + more), str(len(block))]
        rows.append(cells if inside is None else [*cells, figure(inside[number])])
    if len(blocks) > MOST_ROWS:
        rows.append(["…", f"({len(blocks) - MOST_ROWS} more coalitions)"])
    among = _among(document)
    if document["optimal"]:
        verdict = (
            "optimal: no structure is worth more" if among is None else f"optimal among {among}"
        )
    else:
        limit = "" if among is None else f" among {among}"
        most = figure(document["bound"])
        verdict = f"not proven: at most {most} is possible{limit}, gap {document['gap']:.3%}"
    below = [
        f"value {figure(document['value'])}   {visible(verdict)}",
        f"{document['solver']}, {document['seconds']:.3f} s",
    ]
    if model is not None:  # somebody else answered, or nobody had the time
        below.append(f"model: {model}")
    return SmallTable(heads, rows, "\n".join(below), n_left=2)


def _among(document: Mapping[str, Any]) -> str | None:
    """Return which structures meet the demands that a document records; None if all do."""
    from solvers.demands import DEMANDS

    names = [name for block in document["coalitions"] for name in block]
    number = {name: place for place, name in enumerate(names)}
    links = {
        key: [(number[a], number[b]) for a, b in document.get(key, ())]
        for key in ("must_link", "cannot_link")
    }
    others = [name for name in DEMANDS if name not in links]
    sizes = {name: document[name] for name in others if name in document}
    return structures_in_words(names, **{**links, **sizes})


# ----------------------------------------------------------------------------------------
# Demands in words.

Pairs = Sequence[tuple[int, int]]

MOST_PAIRS = 3
"""So many pairs are named in a sentence; the others are counted."""


def structures_in_words(
    labels: Sequence[str],
    must_link: Pairs,
    cannot_link: Pairs,
    n_groups: int | Sequence[int] | None = None,
    min_size: int | None = None,
    max_size: int | None = None,
    weights: Mapping[str, float] | None = None,
    max_weight: float | None = None,
    at_least_one_of: Sequence[Sequence[str]] = (),
) -> str | None:
    """Return which structures meet the demands, in words, or None if all do.

    Examples
    --------
    >>> structures_in_words(["ann", "bob", "cleo"], [(1, 2)], [(0, 1)])
    'structures that keep ann and bob apart, and bob and cleo together'
    >>> structures_in_words(["ann", "bob", "cleo"], [], [], max_size=2)
    'structures with at most 2 players each'
    >>> structures_in_words(["ann", "bob"], [], [], n_groups=[1, 2], at_least_one_of=[["ann"]])
    'structures of 1 to 2 coalitions with one of ann in each'
    """
    words = "structures"
    if n_groups is not None:
        least, largest = (n_groups, n_groups) if isinstance(n_groups, int) else n_groups
        count = str(least) if least == largest else f"{least} to {largest}"
        words += f" of {count} {'coalition' if largest == 1 else 'coalitions'}"
    each = []
    if min_size is not None and max_size is not None:
        count = str(min_size) if min_size == max_size else f"{min_size} to {max_size}"
        each.append(f"{count} players each")
    elif min_size is not None:
        each.append(f"at least {min_size} players each")
    elif max_size is not None:
        each.append(f"at most {max_size} players each")
    if max_weight is not None:
        each.append(f"a weight of at most {max_weight:g} each")
    each += [f"one of {_listed(role)} in each" for role in at_least_one_of]
    if each:
        words += f" with {', '.join(each)}"
    kept = [
        f"{_named(pairs, labels)} {how}"
        for pairs, how in ((cannot_link, "apart"), (must_link, "together"))
        if pairs
    ]
    if kept:
        words += f" that keep {', and '.join(kept)}"
    return None if words == "structures" else words


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_PAIRS
    return listed(names[:MOST_PAIRS]) + (f" and {more} more" if more > 0 else "")


def _named(pairs: Pairs, labels: Sequence[str]) -> str:
    names = ", ".join(f"{quoted(labels[a])} and {quoted(labels[b])}" for a, b in pairs[:MOST_PAIRS])
    more = len(pairs) - MOST_PAIRS
    return names if more <= 0 else f"{names} and {more} more {'pair' if more == 1 else 'pairs'}"
