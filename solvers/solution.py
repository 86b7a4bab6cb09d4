"""Solution: a structure, what it is worth, and how much better any other could be."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coalitions.results import PublicResult, SmallTable
from coalitions.structure import CoalitionStructure
from solvers.demands import NOTHING_DEMANDED, Demands
from solvers.optimality import at_stake, is_optimal

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from pandas import DataFrame

    from coalitions.graph import SynergyGraph
    from solvers.proofs.certificate import Certificate


@dataclass(frozen=True)
class Solution(PublicResult):
    """A coalition structure with its proof.

    Attributes
    ----------
    structure
        The best structure found.
    value
        Its value, recomputed on the graph.
    bound
        No structure is worth more than this.
    positive_weight
        Sum of the positive weights: the scale on which value and bound are compared.
    seconds
        Wall time, without that for which it had to wait for kernels.
    solver
        Name of the method that answered.
    stats
        What the method counted: nodes, rows, iterations …; "compile_seconds" if kernels had to
        be loaded or compiled.
    prove
        Makes the certificate, if the method has one.
    demands
        What was demanded of the structure.
    losses
        What the structure loses in its negative pairs, where sizes may force pairs together: it
        counts on the scale, too. 0 where no sizes are demanded.
    others
        The structures that follow, best first, if `solve` was asked for more than one. The bound
        of each is one on all structures that are not listed before it.
    graph
        The graph that was solved, which knows the names of the players; None for a game.
    labels
        Names of the players of a game; a graph has its own.
    """

    structure: CoalitionStructure
    value: float
    bound: float
    positive_weight: float
    seconds: float
    solver: str
    stats: Mapping[str, Any] = field(default_factory=dict)
    prove: Callable[[], Certificate | None] | None = field(default=None, repr=False, compare=False)
    demands: Demands = NOTHING_DEMANDED
    losses: float = 0.0
    others: tuple[Solution, ...] = field(default=(), repr=False)
    graph: SynergyGraph | None = field(default=None, repr=False, compare=False)
    labels: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def names(self) -> Sequence[str]:
        """Names of the players, or their numbers."""
        if self.graph is not None:
            return self.graph.labels
        return self.labels or tuple(map(str, range(self.structure.n_players)))

    @property
    def must_link(self) -> tuple[tuple[int, int], ...]:
        """Pairs of players, by position, that must be together; they can be demanded again."""
        return self.demands.must_link

    @property
    def cannot_link(self) -> tuple[tuple[int, int], ...]:
        """Pairs of players, by position, that must be apart; they can be demanded again."""
        return self.demands.cannot_link

    @property
    def sizes(self) -> Mapping[str, Any]:
        """The other demands (sizes, counts, weights, roles) as keyword arguments of `solve`.

        ``verify(graph, structure, certificate, **sizes)`` repeats them.
        """
        return self.demands.sizes

    @functools.cached_property
    def certificate(self) -> Certificate | None:
        """A proof of the bound that `solvers.verify` checks without a solver, if there is one.

        It is made when it is first asked for. Where a quick search settled the graph, that takes
        another, longer one: a certificate needs multipliers.
        """
        return None if self.prove is None else self.prove()

    @property
    def named(self) -> tuple[tuple[str, ...], ...]:
        """The coalitions as names of players, in the order of `structure`.

        Examples
        --------
        >>> from coalitions import SynergyGraph
        >>> from solvers import solve
        >>> solve(SynergyGraph([[0, 2], [2, 0]], labels=["ann", "bob"])).named
        (('ann', 'bob'),)
        """
        names = self.names
        return tuple(tuple(names[player] for player in block) for block in self.structure)

    def communities(self) -> list[set[Hashable]]:
        """Return the coalitions as sets of the graph's own nodes, in the order of `structure`.

        Nodes are those of a networkx or igraph graph or of a DataFrame, else labels, else numbers.

        Examples
        --------
        >>> import networkx as nx
        >>> from solvers import solve
        >>> solve(nx.Graph([(3, 4), (7, 8)])).communities()
        [{3, 4}, {8, 7}]
        """
        nodes = range(self.structure.n_players) if self.graph is None else self.graph.nodes
        return [{nodes[player] for player in block} for block in self.structure]

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each player, coalition by coalition.

        Its columns are the player's name, the number of its coalition (as in `named`), how many
        players that has, and, of a graph, the sum of the player's synergies inside it.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        from solvers.drawing.solution_tables import solution_frame

        return solution_frame(self)

    def save(self, path: str | Path) -> None:
        """Write the solution to a file; the ending of its name says how.

        ``.json`` has everything, and `read` reads it back. ``.csv`` has a row for each player, with
        the number of its coalition, in UTF-8 with the mark that Excel needs; a name that Excel
        would take for a formula gets an apostrophe. ``.xlsx`` has sheets of players, coalitions and
        structures; ``.md`` and ``.html`` have tables of coalitions and players.

        Raises
        ------
        InvalidInputError
            The name ends in something else, or nothing can be written there.
        MissingDependencyError
            openpyxl, which writes ``.xlsx``, is not installed.
        """
        from pathlib import Path

        from solvers.solution_file import save_solution

        save_solution(self, Path(path))

    @classmethod
    def read(cls, path: str | Path, graph: SynergyGraph) -> Solution:
        """Return the solution that `save` wrote to a ``.json`` file.

        Its value is worked out again; that nothing is worth more than its bound is taken from the
        file (`solvers.verify` checks a certificate). The file does not hold a certificate.

        Parameters
        ----------
        path
            The file.
        graph
            The graph that was solved.

        Raises
        ------
        InvalidInputError
            It is no such file, or the solution of another graph.

        Examples
        --------
        >>> import tempfile
        >>> from coalitions import SynergyGraph
        >>> from solvers import Solution, solve
        >>> graph = SynergyGraph([[0, 2], [2, 0]], labels=["ann", "bob"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     solve(graph).save(f"{folder}/pair.json")
        ...     Solution.read(f"{folder}/pair.json", graph).named
        (('ann', 'bob'),)
        """
        from pathlib import Path

        from solvers.solution_file import read_solution

        return read_solution(Path(path), graph)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Return a matplotlib figure: the graph by coalition, and the matrix ordered by it.

        Parameters
        ----------
        path
            Where to write the picture as well: ``.png``, ``.svg``, ``.pdf``, or ``.html``, a page
            that can be zoomed (which needs plotly).

        Raises
        ------
        MissingDependencyError
            matplotlib, or plotly, is not installed.
        InvalidInputError
            The file cannot be written, or there is no graph: a game is not drawn.
        """
        from solvers.drawing.solution_picture import plotted

        return plotted(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Return the solution as plain values, players by name, with what was demanded."""
        from solvers.solution_file import solution_document

        return solution_document(self)

    def _shown(self) -> SmallTable:
        """Return a table of the coalitions, and below it the verdict."""
        from solvers.drawing.solution_tables import solution_shown

        return solution_shown(self.to_dict(), self.stats.get("model"))

    @property
    def gap(self) -> float:
        """Distance of value and bound, relative to the larger in size: 0 if they meet."""
        return relative_gap(self.value, self.bound)

    @property
    def optimal(self) -> bool:
        """Whether bound and value meet, so that nothing better exists."""
        return is_optimal(self.value, self.bound, at_stake(self.positive_weight, self.losses))


def relative_gap(value: float, bound: float) -> float:
    """Return (bound − value) / max(|bound|, |value|), and 0 if both are 0."""
    scale = max(abs(bound), abs(value))
    return max(0.0, (bound - value) / scale) if scale else 0.0
