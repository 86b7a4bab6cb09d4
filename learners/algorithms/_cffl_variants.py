"""CFFL beyond its three algorithms: overlapping coalitions, and newcomers that join one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from coalitions.game import FloatMatrix, FloatVector
from coalitions.graph import SynergyGraph
from learners.algorithm import State
from learners.client.tasks import deploy, evaluate, evaluate_many, train
from learners.rows.parameters import weighted_mean
from solvers import solve_overlapping

if TYPE_CHECKING:
    from torch import Tensor

    from learners.algorithms.cffl import CFFL
    from learners.server.federation import Federation
    from learners.task import Message

Models = Mapping[int, "Tensor"]
"""What clients uploaded, by client."""

ROUNDING = 1e-9
"""Sums of accuracies that differ by less are equal."""


# ----------------------------------------------------------------------------------------
# Overlapping coalitions.


def overlapping_round(
    method: CFFL, federation: Federation, state: State, uploads: Models, synergies: FloatMatrix
) -> State:
    """Form coalitions that may overlap; everyone gets a mixture of its own."""
    labels, models = state["labels"], state["models"]
    clients = list(uploads)
    solution = solve_overlapping(
        SynergyGraph(synergies), method.overlap, time_limit=method.time_limit
    )
    means = [
        method.mean(federation, [uploads[clients[place]] for place in coalition])
        for coalition in solution.coalitions
    ]
    rows = [models[label] for label in labels]  # who is absent keeps its last model
    for place, client in enumerate(clients):
        weights = membership_weights(synergies[place], solution.coalitions, place)
        mixed = sum(weight * means[number] for number, weight in weights.items())
        rows[client] = mixed if weights else uploads[client]
    federation.record(
        memberships=[[clients[place] for place in block] for block in solution.coalitions],
        structure_value=solution.value,
        structure_optimal=solution.optimal,
        structure_solver="solve_overlapping",
        solve_seconds=solution.seconds,
    )
    return {"labels": list(range(len(labels))), "models": torch.stack(rows)}


def membership_weights(
    synergies: FloatVector, coalitions: Sequence[Sequence[int]], player: int
) -> dict[int, float]:
    """Return the weights of a player's coalitions, by number: in proportion to its synergies there.

    A coalition from which it gains nothing has no say; if that is true of all, all have the same.

    Examples
    --------
    >>> membership_weights(np.array([0.0, 3.0, 1.0]), [(0, 1), (0, 2), (1, 2)], 0)
    {0: 0.75, 1: 0.25}
    """
    inside = {
        number: max(0.0, float(synergies[list(coalition)].sum()))
        for number, coalition in enumerate(coalitions)
        if player in coalition
    }
    total = sum(inside.values())
    if total == 0.0:
        return dict.fromkeys(inside, 1.0 / len(inside)) if inside else {}
    return {number: gain / total for number, gain in inside.items()}


# ----------------------------------------------------------------------------------------
# Newcomers.


def settled_newcomers(
    method: CFFL, federation: Federation, state: State, clients: list[int]
) -> dict[int, Message]:
    """Return for each newcomer the mean of its own model and those of the coalition it joins."""
    models, labels = state["models"], state["labels"]
    weights = models.new_tensor([float(labels.count(k)) for k in range(len(models))])
    begin = {"model": weighted_mean(models, weights), "keep": True}
    replies = federation.ask(train, dict.fromkeys(clients, begin), measuring=True)
    stored = federation.ask(deploy, {c: {} for c in federation.clients}, measuring=True)
    members = {c: reply["model"] for c, reply in stored.items()}
    own = {c: reply["model"] for c, reply in replies.items()}
    steps = _steps(method, federation, own)
    choices = [[], *([m for m in members if labels[m] == k] for k in sorted(set(labels)))]
    candidates: dict[int, list[Tensor]] = {}
    for c in own:
        synergies = method.synergies_with(federation, members, c, own[c])
        worth = [sum(synergies.get(m, 0.0) for m in block) for block in choices]
        near = equally_good(worth, list(map(len, choices)), steps.get(c, 0.0))
        joined = [[members[m] for m in choices[k]] for k in near]
        candidates[c] = [method.mean(federation, [own[c], *rows]) for rows in joined]
    chosen = _of_least_loss(method, federation, candidates)
    return {c: {"model": row} for c, row in chosen.items()}


def _steps(method: CFFL, federation: Federation, own: Models) -> dict[int, float]:
    """Return what one held-out sample of each newcomer is worth with a member, if anything."""
    if method.synergy == "cos" or method.gain not in ("auto", "accuracy"):
        return {}
    messages = {c: {"model": row, "on": method.ica_on} for c, row in own.items()}
    replies = federation.ask(evaluate, messages, measuring=True)
    return {c: 1 / (2 * reply["samples"]) for c, reply in replies.items() if "accuracy" in reply}


def _of_least_loss(
    method: CFFL, federation: Federation, rows: Mapping[int, list[Tensor]]
) -> dict[int, Tensor]:
    """Return each newcomer's model of the lowest loss on its held-out data; else the first."""
    several = {c: torch.stack(some) for c, some in rows.items() if len(some) > 1}
    chosen = {c: some[0] for c, some in rows.items()}
    if method.synergy == "ica" and several:
        messages = {c: {"models": some, "on": method.ica_on} for c, some in several.items()}
        for c, reply in federation.ask(evaluate_many, messages, measuring=True).items():
            chosen[c] = rows[c][int(np.argmin(reply["loss"]))]
    return chosen


def equally_good(worth: Sequence[float], sizes: Sequence[int], step: float) -> list[int]:
    """Return which choices are as good as the best, for all that can be told.

    Parameters
    ----------
    worth, sizes
        Synergy with each coalition, and its number of members.
    step
        What one held-out sample is worth with a member.

    Examples
    --------
    >>> equally_good([0.0, 0.25, 0.75], [0, 2, 2], step=0.125)
    [2]
    >>> equally_good([0.0, 0.5, 0.75], [0, 2, 2], step=0.125)
    [1, 2]
    """
    best = int(np.argmax(worth))
    return [
        k
        for k, value in enumerate(worth)
        if value >= worth[best] - step * max(sizes[k], sizes[best]) - ROUNDING
    ]
