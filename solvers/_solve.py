"""solve(graph): what the caller says, checked once, and handed on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coalitions.checks import GraphLike, Seed, as_graph
from coalitions.runtime import clock
from coalitions.structure import Structured
from solvers.demands import Count, Demands, Pairs, Roles, Weights
from solvers.search import solve_demands
from solvers.solution import Solution
from solvers.solver import SOLVERS, SearchProgress, Solver


def solve(
    graph: GraphLike,
    solver: str | Solver = "auto",
    *,
    time_limit: float | None = None,
    gap: float = 0.0,
    warm_start: Structured | None = None,
    seed: Seed = 0,
    threads: int | None = None,
    must_link: Pairs = (),
    cannot_link: Pairs = (),
    n_groups: Count | None = None,
    min_size: int | None = None,
    max_size: int | None = None,
    weights: Weights | None = None,
    max_weight: float | None = None,
    at_least_one_of: Roles = (),
    n_best: int | None = None,
    all_optimal: bool = False,
    canonical: bool = False,
    certificate: bool = False,
    progress: Callable[[SearchProgress], None] | None = None,
    **options: Any,  # noqa: ANN401 (a solver's own options, checked by its constructor)
) -> Solution:
    """Return the best coalition structure of a graph, with a bound on all others.

    Parameters
    ----------
    graph
        A synergy graph, or what makes one: a matrix, a DataFrame, a networkx or igraph graph, the
        path of a file.
    solver
        A name (see `available`) or a solver object. ``auto`` takes an exact method up to 3000
        players.
    time_limit
        Wall time in seconds; the answer is then the best so far, with a valid bound.
    gap
        Relative gap at which to stop.
    warm_start
        A structure to start from, an earlier solution, or lists of players.
    seed
        Source of all randomness: a whole number, or a numpy Generator to draw one from.
    threads
        Threads a solver may use; one unless told otherwise.
    must_link, cannot_link
        Groups of two or more players, by number or by name, that must be in one coalition, or of
        whom no two may be. A graph of networkx, igraph or pandas knows its players as its nodes:
        there a number is a node.
    n_groups, min_size, max_size
        Number of coalitions (or the least and the largest number), and how many players each may
        have. ``branch-and-cut``, and the integer-programming back-ends on another than the full
        formulation, cannot honour these and the demands below.
    weights, max_weight
        The load of each player (a number for each, or by name), and what a coalition can bear.
    at_least_one_of
        Sets of players: every coalition has a member of each.
    n_best
        How many structures to find, best first: `Solution.others` has those that follow the best.
        Fewer come out if there are no more, or if the time is over. At equal values it is not said
        which one comes in last.
    all_optimal
        Find all structures that are optimal: those after the best are in `Solution.others`. The
        list ends after 1000, or after `n_best`, and `Solution.stats` says so under ``"others"``.
    canonical
        Where several structures are best, return the one with the fewest joined pairs, and of
        these the one whose labels come first: the same for every exact solver and every
        `warm_start`. ``stats["canonical"]`` is false if that was not proven in the time.
    certificate
        Leave nothing unproven on the way, so that `Solution.certificate` is at hand. Without it, a
        certificate may take another, longer search when it is asked for. A solver that gives none
        is refused.
    progress
        Called now and then with value, bound and seconds, see `SearchProgress`.
    **options
        Options of the solver, such as ``formulation="full"``.

    Raises
    ------
    InvalidInputError
        An argument is wrong.
    InfeasibleError
        No structure meets the demands.
    NoSolutionError
        The solver gave no answer, or one that cannot be right.

    Examples
    --------
    >>> solution = solve([[0, 3, -2], [3, 0, -2], [-2, -2, 0]])
    >>> solution.structure.coalitions, solution.value, solution.optimal
    (((0, 1), (2,)), 3.0, True)
    """
    started = clock()
    graph = as_graph(graph)
    demands = Demands.of(
        graph,
        must_link=must_link,
        cannot_link=cannot_link,
        n_groups=n_groups,
        min_size=min_size,
        max_size=max_size,
        weights=weights,
        max_weight=max_weight,
        at_least_one_of=at_least_one_of,
    )
    return solve_demands(
        graph,
        demands,
        solver,
        time_limit=time_limit,
        warm_start=warm_start,
        n_best=n_best,
        all_optimal=all_optimal,
        canonical=canonical,
        certificate=certificate,
        progress=progress,
        started=started,
        gap=gap,
        seed=seed,
        threads=threads,
        **options,
    )


def available() -> dict[str, bool | str]:
    """Return for each solver True, or the reason why it cannot run here."""
    return {name: SOLVERS[name].missing() or True for name in SOLVERS}
