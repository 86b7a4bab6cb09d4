"""Neighbourhoods: some teams of a structure, to be taken apart and put together at their best."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coalitions.game import BoolMatrix, FloatVector, IntVector
from solvers.branch_and_price.problem import Problem


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


def restricted(problem: Problem, nodes: IntVector, n_others: int) -> Problem:
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
    return Problem.of(problem.weights[np.ix_(nodes, nodes)], part)
