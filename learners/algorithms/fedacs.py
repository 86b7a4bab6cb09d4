"""FedACS: the server mixes for each client the models that resemble its own most."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import torch

from coalitions.game import FloatMatrix
from learners.algorithm import ALGORITHMS, Algorithm, State, Traits
from learners.client.tasks import train
from learners.devices import to_host
from learners.rows.parameters import as_weights, cosines
from learners.settings.options import option

if TYPE_CHECKING:
    from torch import Tensor

    from learners.server.federation import Federation
    from learners.task import Message


@ALGORITHMS.register("fedacs")
@dataclass(frozen=True)
class FedACS(Algorithm):
    r"""Personalised federated learning with attention-based client selection [Chen2024]_.

    Algorithm 1 alternates between two parts of the objective
    :math:`\mathcal{F}(W) + \lambda \sum_{ij} s_{ij} \lVert w_i - w_j \rVert^2` (Eqs. 1 and 2).
    The server mixes, with :math:`s_{ij}` the cosine of the models and :math:`\delta` the
    p-quantile of all of them,

    .. math:: u_i = \frac{\sum_{j : s_{ij} > \delta} s_{ij} w_j}
                         {\sum_{j : s_{ij} > \delta} s_{ij}}, \tag{4}

    and the client trains from there: :math:`w_i = u_i - \beta \nabla F_i(u_i)`, repeated (Eq. 5).
    Eq. (4) is the gradient step of Eq. (3) with step size 1 and normalised scores.

    A client always counts for itself (:math:`s_{ii} = 1`), also where :math:`\delta = 1`, as in
    the first round; a selected cosine below 0 has weight 0. Absent clients keep their last model
    and are nobody's collaborators (but see `among`).

    Parameters
    ----------
    p
        Quantile of the similarities that another model must reach to be mixed in (it sets
        :math:`\delta`): 0 lets nearly everyone in, 1 nobody else.
    among
        Whose models are mixed: those of the clients ``present`` in the round, or ``all`` that the
        server has stored, as Algorithm 1 can be read.
    similarity
        Similarity of the whole models (``weights``), or of what they have learned since the common
        start (``updates``). Models from one start have cosines near 1, so that weights are equal
        and :math:`\delta` alone decides.
    threshold
        A fixed similarity that another model must reach, instead (:math:`\delta`): −inf mixes all
        models. (The paper writes that ∞ does.)
    """

    relevance_is: ClassVar[str] = "similarity"
    p: float = option(0.5, least=0, most=1, needs={"threshold": None}, changes="models")
    threshold: float | None = option(None, unset="p decides", changes="models")
    among: Literal["present", "all"] = option("present", changes="models")
    similarity: Literal["weights", "updates"] = option("weights", changes="relevance")

    @property
    def traits(self) -> Traits:
        """What the method needs; every client gets a mixture of its own."""
        return Traits(averages=False)

    def start(self, federation: Federation) -> State:
        """Return everyone's first model."""
        return {"models": federation.initial_model.repeat(len(federation.clients), 1)}

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Mix the models of those present for each of them, and have them train from there."""
        present = list(federation.present)
        mixing = present if self.among == "present" else list(federation.clients)
        models = state["models"][mixing]
        compared = models - federation.initial_model if self.similarity == "updates" else models
        similarities = to_host(cosines(federation.layout.parameters(compared))).double().numpy()
        delta = threshold(similarities, self.p) if self.threshold is None else self.threshold
        weights = attention(similarities, delta)
        weights = weights[[mixing.index(c) for c in present]]
        mixed = as_weights(weights, models) @ models  # Eq. (4)
        replies = federation.ask(
            train, {c: {"model": row} for c, row in zip(present, mixed, strict=True)}
        )
        trained = state["models"].clone()
        for client, reply in replies.items():
            trained[client] = reply["model"]
        n = len(federation.clients)
        relevance = np.zeros((n, n))
        relevance[np.ix_(mixing, mixing)] = similarities
        collaborators = np.zeros(n, np.int64)
        collaborators[present] = (weights > 0).sum(axis=1)
        federation.record(relevance=relevance, collaborators=collaborators.tolist())
        if math.isfinite(delta):
            federation.record(delta=delta)
        return {"models": trained}

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Train the mean model, mix by attention over the stored ones, and train the mixture."""
        stored = state["models"]
        first = federation.ask(
            train, {c: {"model": stored.mean(0)} for c in clients}, measuring=True
        )
        mixed = {}
        for c, reply in first.items():
            models = torch.cat([stored, reply["model"][None]])
            mixed[c] = self.mixed(federation, models)[-1]
        federation.round += 1  # another order of the data
        sent = {c: {"model": row, "keep": True, "send": False} for c, row in mixed.items()}
        return {c: {} for c in federation.ask(train, sent, measuring=True)}

    def mixed(self, federation: Federation, models: Tensor) -> Tensor:
        """Return what Eq. (4) makes of models [m, P] for each of them."""
        compared = models - federation.initial_model if self.similarity == "updates" else models
        similarities = to_host(cosines(federation.layout.parameters(compared))).double().numpy()
        delta = threshold(similarities, self.p) if self.threshold is None else self.threshold
        return as_weights(attention(similarities, delta), models) @ models

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return everyone's own model, as trained last."""
        return {"personal": {c: {"model": state["models"][c]} for c in federation.clients}}


def threshold(similarities: FloatMatrix, p: float) -> float:
    r"""Return :math:`\delta`, the p-quantile of all entries of the matrix.

    Examples
    --------
    >>> threshold(np.array([[1.0, 0.2], [0.2, 1.0]]), 0.5)
    0.6
    """
    return float(np.quantile(similarities, p))


def attention(similarities: FloatMatrix, delta: float) -> FloatMatrix:
    r"""Return the weights [n, n] with which Eq. (4) mixes models; each row sums to 1.

    Examples
    --------
    >>> attention(np.array([[1.0, 0.6, 0.1], [0.6, 1.0, -0.5], [0.1, -0.5, 1.0]]), 0.5)
    array([[0.625, 0.375, 0.   ],
           [0.375, 0.625, 0.   ],
           [0.   , 0.   , 1.   ]])
    """
    selected = (similarities > delta) | np.eye(len(similarities), dtype=bool)
    scores = np.where(selected, np.maximum(similarities, 0.0), 0.0)
    weights: FloatMatrix = scores / scores.sum(axis=1, keepdims=True)
    return weights
