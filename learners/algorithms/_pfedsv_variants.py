"""pFedSV beyond its two algorithms: newcomers, other collaborations of its figures, and noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch

from coalitions.game import BoolMatrix, FloatVector, Game, IntVector
from coalitions.games.function import FunctionGame
from learners.client.tasks import deploy, train
from learners.data.ground_truth import label_overlap
from learners.devices import to_host
from learners.privacy.mechanism import as_published
from learners.task import TASKS, Message

if TYPE_CHECKING:
    from torch import Tensor

    from learners.algorithms.pfedsv import Collaboration, Order, PFedSV, SelfDistance
    from learners.client.client import Client
    from learners.server.federation import Federation

FLOOR = 1e-6
"""Least distance in Eq. (6), relative to the model's norm or 1, whichever is larger."""


# ----------------------------------------------------------------------------------------
# Newcomers, and clients that are told in advance who shares a label with them.


def settled_newcomers(
    method: PFedSV, federation: Federation, clients: list[int]
) -> dict[int, Message]:
    """Return what newcomers need to use their models, which they find from scratch."""
    uploads = _stored(federation)
    members = np.array(list(uploads))
    n = len(federation.clients) + len(federation.newcomers)
    state: dict[str, IntVector | FloatVector] = {
        "relevance": np.zeros((n, n)),
        "scored": np.zeros((n, n), np.int64),
    }
    if method.told:
        state["told"] = sharing_labels(federation.registered, n)
    rng = federation.rng("newcomers")
    order: Order = "top-k" if method.order == "top-k" else "scan"
    steps = 1 if method.told else 1 + math.ceil(len(members) / max(method.k, 1))
    for _ in range(steps):
        clients = list(federation.ask(train, {c: {"send": False} for c in clients}, measuring=True))
        slots = {c: rng.permutation(method.choice(state, c, members, order, rng)) for c in clients}
        messages = method.messages(federation, uploads, slots)
        values = federation.ask(TASKS["pfedsv-collaborate"], messages, measuring=True)
        method.learn(state, slots, values)
        clients = list(values)
        federation.round += 1  # another order of the data
    return {c: {} for c in clients}


def _stored(federation: Federation) -> dict[int, Message]:
    """Return what members trained last, as they would upload it."""
    trained = {c: {"trained": True} for c in federation.clients}
    registered = federation.registered
    return {
        c: {"model": reply["model"], "samples": registered[c]["samples"]}
        for c, reply in federation.ask(deploy, trained, measuring=True).items()
        if c in registered
    }


def sharing_labels(described: Mapping[int, Message], n: int) -> IntVector:
    """Return for each pair of n clients whether they share a label, [n, n] (Fig. 4)."""
    nothing = np.zeros_like(next(iter(described.values()))["labels"])
    counts = np.stack([described[c]["labels"] if c in described else nothing for c in range(n)])
    shared: IntVector = label_overlap(counts).astype(np.int64)
    return shared


# ----------------------------------------------------------------------------------------
# What Eq. (6) divides by: the distance of the own model is zero.


def distances_to_first(compared: Tensor) -> tuple[FloatVector, float]:
    """Return how far each model is from the first, and what counts as no distance at all."""
    distances = to_host(torch.linalg.vector_norm(compared - compared[0], dim=1)).double().numpy()
    return distances, FLOOR * max(1.0, float(to_host(compared[0].norm())))


def divisors(distances: FloatVector, floor: float, self_distance: SelfDistance) -> FloatVector:
    """Return the distances to divide by: none is zero, and the first stands for the own model."""
    own, others = distances[0], distances[1:]
    if self_distance not in ("printed", "last"):
        own = others.mean() if self_distance == "mean" else others.min()
    lifted: FloatVector = np.maximum([own, *others], floor)
    return lifted


# ----------------------------------------------------------------------------------------
# Other values than Shapley's, of all models.


def game_of_others(game: Game, alone: float) -> Game:
    """Return the game of the others, X ↦ v(X ∪ {i}) − v({i}); the own model is the first player."""

    def added(coalitions: BoolMatrix) -> FloatVector:
        own = np.ones((len(coalitions), 1), dtype=bool)
        worth: FloatVector = game(np.hstack([own, coalitions])) - alone
        return worth

    return FunctionGame(added, game.n_players - 1)


def values_one_by_one(game: Game) -> tuple[FloatVector, int]:
    """Return what each model is worth by itself, above the first, and the evaluations of that."""
    alone = game(np.eye(game.n_players, dtype=bool))
    return alone[1:] - alone[0], len(alone)


def begun_with(client: Client) -> Tensor:
    """Return the model that the client began the round with."""
    before: Tensor = client.memory.get("before", client.site.initial)
    return before


def similarities(models: Tensor, kind: Collaboration, self_distance: SelfDistance) -> FloatVector:
    r"""Return how much each model [m, P] is like the first, without looking at data (Fig. 4).

    .. math:: 1 / \lVert \theta_i - \theta_j \rVert \quad \text{or} \quad
              \langle \theta_i, \theta_j \rangle
              / (\lVert \theta_i \rVert \lVert \theta_j \rVert)

    Examples
    --------
    >>> rows = torch.tensor([[3.0, 4.0], [3.0, 2.0], [8.0, -6.0]])
    >>> similarities(rows, "similarity", "nearest").round(3), similarities(
    ...     rows, "cosine", "nearest"
    ... ).round(3)
    (array([0.5  , 0.5  , 0.089]), array([1.   , 0.943, 0.   ]))
    """
    if kind == "cosine":
        rows = to_host(models).double()
        angles: FloatVector = torch.cosine_similarity(rows[:1], rows).numpy()
        return angles
    distances, floor = distances_to_first(models)
    if len(distances) == 1:
        return np.ones(1)
    nearness: FloatVector = 1.0 / divisors(distances, floor, self_distance)
    return nearness


def similarity_weights(values: FloatVector, self_distance: SelfDistance) -> FloatVector:
    """Return weights in proportion to the similarities, the client's own first (Fig. 4)."""
    weights = np.maximum(values, 0.0)
    if self_distance == "exclude" and len(weights) > 1:
        weights[0] = 0.0
    if not weights.any():
        weights[0] = 1.0
    shares: FloatVector = weights / weights.sum()
    return shares


# ----------------------------------------------------------------------------------------
# Noise: the server may learn nothing from values that a clean model had a say in.


def known_models(client: Client, method: PFedSV, models: Tensor) -> Tensor:
    """Return the models with the client's own, the first, as the server knows it.

    Where uploads are noised, the values for the server are those of the noised upload; else the
    clean model would speak through them, and through how early a truncating estimator stops. For
    the combination at home the clean model counts. The same object comes back if nothing changes.
    """
    own = models[0]
    known = as_published(client, "model", own)
    if known is own or method.noise_own:
        return models
    known = known.clone()
    if method.shared_extractor:
        features, _ = client.workspace.layout.parts(method.classifier, own.device)
        known[features] = own[features]  # which is the extractor that was received
    return torch.cat([known[None], models[1:]])
