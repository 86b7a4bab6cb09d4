"""what_if: what it costs to have some players together, or apart."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

from coalitions.checks import GraphLike, as_graph
from coalitions.errors import InfeasibleError, InvalidInputError
from coalitions.formatting import decimal, figure, listed, visible
from coalitions.results import PublicResult, Row
from coalitions.runtime import clock
from solvers.demands import Contraction, Demands, Pairs, SearchArguments, pairs_in, split_off
from solvers.optimality import advantage, losses
from solvers.search import solve_demands
from solvers.solution import Solution

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure


@dataclass(frozen=True)
class WhatIf(PublicResult):
    """What a wish costs.

    Attributes
    ----------
    cost
        What the best structure is worth more than the best one that grants the wish; 0 if the wish
        is free. Between the two bounds of `cost_range` if one of the solutions is not optimal.
    solution
        The best structure that grants the wish.
    base
        The best structure without it.
    """

    cost: float
    solution: Solution
    base: Solution

    @property
    def optimal(self) -> bool:
        """Whether both solutions, and so the cost, are proven."""
        return self.solution.optimal and self.base.optimal

    @property
    def cost_range(self) -> tuple[float, float]:
        """The least and the most that the wish can cost, as far as is proven."""
        if self.optimal:
            return self.cost, self.cost
        least = self.base.value - self.solution.bound
        return max(0.0, min(least, self.cost)), max(
            self.cost, self.base.bound - self.solution.value
        )

    @property
    def named(self) -> tuple[tuple[str, ...], ...]:
        """The coalitions of the structure that grants the wish, by name."""
        return self.solution.named

    def to_dict(self) -> dict[str, Any]:
        """Return the cost and both structures, players by name."""
        return {
            "cost": decimal(self.cost),
            "value": decimal(self.solution.value),
            "base_value": decimal(self.base.value),
            "coalitions": [list(block) for block in self.named],
            "base_coalitions": [list(block) for block in self.base.named],
            "optimal": self.optimal,
            "cost_range": [decimal(each) for each in self.cost_range],
        }

    def _rows(self) -> list[Row]:
        both = (("without it", self.base), ("with it", self.solution))
        return [
            {
                "wish": which,
                "coalitions": " | ".join(map(listed, solution.named)),
                "value": solution.value,
                "optimal": solution.optimal,
            }
            for which, solution in both
        ]

    def _below(self) -> str:
        least, most = map(figure, self.cost_range)
        proven = "proven" if self.optimal else f"not proven: it is between {least} and {most}"
        return f"the wish costs {figure(self.cost) if self.cost else 'nothing'} ({proven})"

    def __str__(self) -> str:
        """Return what the wish costs, and both structures, as the command line prints them."""
        lines = [
            f"{row['wish']}, {figure(row['value'])}: {visible(row['coalitions'])}"
            for row in self._rows()
        ]
        return "\n".join([self._below(), *lines])

    def plot(self, path: str | Path | None = None) -> Figure:
        """Return a matplotlib figure of the structure that grants the wish; see `Solution.plot`."""
        return self.solution.plot(path)


def _in_words_of_the_wish(sentence: str, demands: Demands, joined: object, parted: object) -> str:
    """Return a sentence about links that name them by the arguments of `what_if`."""
    wishes = (("must_link", "together", joined), ("cannot_link", "apart", parted))
    for demand, wish in ((demand, wish) for demand, wish, pairs in wishes if pairs):
        sentence = sentence.replace(f"({demand})", f"by {demand}")
        also = f"{demand} with " if getattr(demands, demand) else ""
        sentence = re.sub(rf"(?<![\w'\"]){demand}(?![\w'\"])", f"{also}the wish ({wish})", sentence)
    return sentence


def what_if(
    graph: GraphLike,
    solver: str = "auto",
    *,
    together: Pairs = (),
    apart: Pairs = (),
    time_limit: float | None = None,
    **demands: Unpack[SearchArguments],
) -> WhatIf:
    """Return what it costs to have players together, or apart, with the structures.

    Parameters
    ----------
    graph
        A synergy graph, or a matrix that makes one.
    solver
        As for `solve`.
    together, apart
        Groups of two or more players, by number or name: all of a group in one coalition, or no two
        of them.
    time_limit
        Seconds for both searches.
    **demands
        What holds with and without the wish, as `solve` takes it: links, sizes …

    Raises
    ------
    InvalidInputError
        There is no wish, or a group has not two different players who are there.
    InfeasibleError
        The wish cannot be granted.

    Examples
    --------
    >>> from coalitions import SynergyGraph
    >>> graph = SynergyGraph([[0, 3, 2], [3, 0, -4], [2, -4, 0]], labels=["ann", "bob", "cleo"])
    >>> wish = what_if(graph, together=[("ann", "cleo")])
    >>> wish.cost, wish.solution.structure.coalitions
    (1.0, ((0, 2), (1,)))
    """
    graph = as_graph(graph)
    joined = pairs_in(together, graph, "together")
    parted = pairs_in(apart, graph, "apart")
    if not joined and not parted:
        raise InvalidInputError("what_if takes a wish: give players in together or in apart")
    started = clock()
    half = None if time_limit is None else time_limit / 2
    demanded, settings = split_off(demands)
    always = Demands.of(graph, **demanded)
    base = solve_demands(graph, always, solver, time_limit=half, **settings)
    if base.stats.get("interrupted"):
        raise KeyboardInterrupt  # half an answer is none
    labels = base.structure.labels
    if all(labels[a] == labels[b] for a, b in joined) and not any(
        labels[a] == labels[b] for a, b in parted
    ):
        return WhatIf(0.0, base, base)
    settings.pop("warm_start", None)  # it need not grant the wish
    try:
        granted = solve_demands(
            graph,
            always.with_links(joined, parted),
            solver,
            # A search may end a moment late: then nothing is left, and greedy's structure must do.
            time_limit=None if time_limit is None else max(time_limit - (clock() - started), 1e-3),
            **settings,
        )
    except InfeasibleError as error:
        raise InfeasibleError(_in_words_of_the_wish(str(error), always, joined, parted)) from None
    cost = advantage(graph.edges, base.structure.labels, granted.structure.labels)
    if cost < 0:  # the first search was cut short: this one found a better base
        cost = 0.0
        nodes = Contraction.apply(graph, always)
        lost = losses(nodes.graph, nodes.contract(granted.structure.labels))
        base = replace(
            base,
            structure=granted.structure,
            value=granted.value,
            losses=lost if always.sizes else 0.0,
            bound=max(base.bound, granted.value),
        )
    granted = replace(granted, bound=max(granted.value, min(granted.bound, base.bound)))
    return WhatIf(cost, granted, base)
