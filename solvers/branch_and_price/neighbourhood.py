"""Neighbourhoods: some teams of a structure, to be taken apart and put together at their best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from coalitions.game import BoolMatrix, FloatVector, IntVector
from solvers.branch_and_price.branch_and_price import TeamIncumbent, TeamProblem

# Guesses: no program measures them alone.

NEAR, FARTHER = 44, 2
"""Nodes of the first part of a structure, and how many more after each part in vain."""

FAR, FARTHEST = 60, 80
"""Nodes at most, in parts of any other structure and of the best one."""

STUCK = 10
"""After so many parts in vain it is another structure's turn."""


class Nearby:
    """Takes parts of good structures apart and puts them together at their best.

    It goes back and forth between the best structure and ones that begin elsewhere: what comes out
    differs more by where it began than by how long it was improved.

    Parameters
    ----------
    problem, incumbent
        What is asked, and the best structure so far.
    solved
        Improves a structure of a part as far as it can; tells how many rounds that took.
    rng
        Chooses the parts.

    Attributes
    ----------
    rounds
        What all parts took.
    """

    def __init__(
        self,
        problem: TeamProblem,
        incumbent: TeamIncumbent,
        solved: Callable[[TeamProblem, TeamIncumbent], int],
        rng: np.random.Generator,
    ) -> None:
        self._problem, self._best = problem, incumbent
        self._solved, self._rng = solved, rng
        self._near = incumbent
        self._reach, self._in_vain = NEAR, 0
        # How far the best structure was searched, and what it was worth then.
        self._left_at = NEAR, incumbent.value
        self.rounds = 0

    def improve(
        self, members: BoolMatrix, levels: FloatVector, elsewhere: Callable[[], IntVector | None]
    ) -> IntVector | None:
        """Solve a part anew; return the best structure if it became better by that.

        Parameters
        ----------
        members, levels
            Columns in use in a solution of the linear program [k, n], and how much of each [k].
        elsewhere
            Finds another structure to begin with.
        """
        if self._in_vain >= STUCK:
            self._turn(elsewhere)
        near = self._near
        assert near.labels is not None
        # From 0 on, so that there are numbers for the new teams that no other has.
        labels = np.unique(near.labels, return_inverse=True)[1]
        nodes = neighbourhood(labels, members, levels, self._reach, self._rng)
        part = restricted(self._problem, nodes, len(np.unique(np.delete(labels, nodes))))
        best = TeamIncumbent(part, seed=0, expired=lambda: False)
        best.offer(labels[nodes])
        self.rounds += self._solved(part, best)
        found = labels.copy()
        if best.labels is not None:
            found[nodes] = self._problem.n + best.labels
        if not near.offer(found):
            self._in_vain += 1
            self._reach = min(self._reach + FARTHER, FARTHEST if near is self._best else FAR)
            return None
        self._in_vain = 0
        return found if near is self._best or self._best.offer(found) else None

    def _turn(self, elsewhere: Callable[[], IntVector | None]) -> None:
        """Leave a structure near which nothing better is found."""
        self._in_vain = 0
        if self._near is not self._best:
            reach, value = self._left_at
            self._near, self._reach = self._best, reach if value == self._best.value else NEAR
            return
        self._left_at = self._reach, self._best.value
        labels = elsewhere()
        other = TeamIncumbent(self._problem, seed=0, expired=lambda: False)
        if labels is not None and other.offer(labels):
            self._near, self._reach = other, NEAR


def neighbourhood(
    labels: IntVector,
    members: BoolMatrix,
    levels: FloatVector,
    n_nodes: int,
    rng: np.random.Generator,
) -> IntVector:
    """Return the nodes of some teams between which a linear program is in doubt.

    Parameters
    ----------
    labels
        The teams.
    members, levels
        Columns in use in a solution of the linear program [k, n], and how much of each [k].
    n_nodes
        So many, or a few more.
    rng
        Chooses the first team; others follow by what they share with it.
    """
    teams = labels == np.unique(labels)[:, None]
    # Whether a column touches a team: two teams share the columns that touch both.
    touched = (teams.astype(np.float64) @ members.T.astype(np.float64) > 0).astype(np.float64)
    shared = (touched * np.maximum(levels, 0.0)) @ touched.T
    np.fill_diagonal(shared, 0.0)
    doubt = shared.sum(axis=1) + 1e-6
    first = int(rng.choice(len(teams), p=doubt / doubt.sum()))
    inside = np.zeros(len(teams), np.bool_)
    inside[first] = True
    while not inside.all() and teams[inside].sum() < n_nodes:
        pull = np.where(inside, -1.0, shared[inside].sum(axis=0))
        inside[int(np.argmax(pull + 1e-3 * rng.random(len(pull))))] = True
    return np.flatnonzero(teams[inside].any(axis=0))


def restricted(problem: TeamProblem, nodes: IntVector, n_others: int) -> TeamProblem:
    """Return the problem of some nodes, where all others make `n_others` coalitions."""
    sizes = problem.sizes
    place = {node: number for number, node in enumerate(nodes.tolist())}
    part = replace(
        sizes,
        players=sizes.players[nodes],
        fewest=max(1, sizes.fewest - n_others),
        most=sizes.most - n_others,
        loads=sizes.loads[nodes] if len(sizes.loads) else sizes.loads,
        roles=tuple(tuple(place[i] for i in role if i in place) for role in sizes.roles),
        apart=tuple((place[a], place[b]) for a, b in sizes.apart if a in place and b in place),
    )
    return TeamProblem.of(problem.weights[np.ix_(nodes, nodes)], part)
