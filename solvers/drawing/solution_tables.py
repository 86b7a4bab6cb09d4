"""A solution as a pandas table, and as the small table that notebooks and `print` show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coalitions.extras import needed
from coalitions.formatting import figure, listed
from coalitions.results import SmallTable

if TYPE_CHECKING:
    from pandas import DataFrame

    from coalitions.game import FloatVector
    from solvers.solution import Solution

MOST_ROWS, MOST_NAMES = 50, 40
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


def solution_shown(solution: Solution) -> SmallTable:
    """Return a table of the coalitions, and below it what was proven."""
    worth = None if solution.graph is None else solution.graph.inside(solution.structure)
    heads = ["", "coalition", "players", *([] if worth is None else ["synergy inside"])]
    rows = []
    for number, block in enumerate(solution.named[:MOST_ROWS]):
        more = f" … ({len(block) - MOST_NAMES} more)" if len(block) > MOST_NAMES else ""
        cells = [str(number), listed(block[:MOST_NAMES]) + more, str(len(block))]
        rows.append(cells if worth is None else [*cells, figure(worth[number])])
    left = len(solution.structure) - len(rows)
    if left > 0:
        rows.append(["…", f"({left} more coalitions)"])
    demanded = solution.must_link or solution.cannot_link or solution.sizes
    among = " among structures that meet the demands" if demanded else ""
    verdict = (
        f"optimal{among}"
        if solution.optimal
        else f"not proven: at most {figure(solution.bound)} is possible{among}"
    )
    below = (
        f"value {figure(solution.value)}, {verdict}; {solution.solver}, {solution.seconds:.3g} s"
    )
    return SmallTable(heads, rows, below, n_left=2)
