"""Clients with similar models pull each other closer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import torch

from coalitions.errors import InvalidInputError
from learners.algorithm import ALGORITHMS, Algorithm, State, Traits
from learners.client.tasks import train
from learners.client.training import fit
from learners.devices import to_host
from learners.rows.parameters import cosines, distances
from learners.settings.options import option
from learners.task import Message, Reveals, task

if TYPE_CHECKING:
    from torch import Tensor

    from learners.client.client import Client
    from learners.rows.parameters import Layout
    from learners.server.federation import Federation
    from learners.settings.config import RunConfig


@ALGORITHMS.register("fedamp")
@dataclass(frozen=True)
class FedAMP(Algorithm):
    r"""Federated attentive message passing, and its heuristic form [Huang2021]_.

    It minimises :math:`\sum_i F_i(w_i) + \lambda \sum_{i<j} A(\lVert w_i - w_j \rVert^2)` with
    :math:`A(x) = 1 - e^{-x/\sigma}`. The server makes every client's cloud model,

    .. math::
        u_i = \xi_{ii} w_i + \sum_{j \ne i} \xi_{ij} w_j, \quad
        \xi_{ij} = \alpha A'(\lVert w_i - w_j \rVert^2)
                 = \tfrac{\alpha}{\sigma} e^{-\lVert w_i - w_j \rVert^2 / \sigma}, \quad
        \xi_{ii} = 1 - \sum_{j \ne i} \xi_{ij},

    and the client minimises :math:`F_i(w) + \frac{\lambda}{2\alpha} \lVert w - u_i \rVert^2`.
    HeurFedAMP (``attention="cosine"``) has instead a fixed :math:`\xi_{ii}` and, for
    :math:`j \ne i`,

    .. math:: \xi_{ij} = (1 - \xi_{ii})\, \frac{e^{\sigma \cos(w_i, w_j)}}
              {\sum_{h \ne i} e^{\sigma \cos(w_i, w_h)}}.

    The clients of a round are collaborators; the absent keep their models.

    Parameters
    ----------
    attention
        How models are compared: ``distance`` (FedAMP) or ``cosine`` (HeurFedAMP).
    lam
        Strength of the pull of clients towards their cloud models (λ in the paper).
    sigma
        How quickly attention fades with the difference of two models (σ in the paper). For
        distances, differences of models well below :math:`\sqrt{\sigma}` are "similar".
    alpha
        Step towards similar models (α in the paper); if None, σ/n for n clients: the largest that
        leaves everyone a share of 1/n or more of its own cloud model (1 for the heuristic form,
        where it only divides λ). One that could make :math:`\xi_{ii}` negative is refused.
    self_weight
        Share of the own model in the heuristic form (:math:`\xi_{ii}` in the paper); 1/n for the n
        clients of the round if None.
    start_from
        Where a client begins: at the ``cloud`` model, or at its ``own``, where only the proximal
        term pulls.
    """

    relevance_is: ClassVar[str] = "attention"
    attention: Literal["distance", "cosine"] = option("distance", changes="models")
    lam: float = option(0.1, least=0, changes="models")
    sigma: float = option(10.0, least=0, changes="models")
    alpha: float | None = option(None, above=0, unset="σ/n, or 1", changes="models")
    self_weight: float | None = option(
        None, least=0, most=1, unset="1/n", needs={"attention": "cosine"}, changes="models"
    )
    start_from: Literal["cloud", "own"] = option("cloud", changes="models")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sigma == 0 and self.attention == "distance":
            raise InvalidInputError(
                "sigma of fedamp must be a positive number unless attention is cosine, not 0"
            )

    @property
    def traits(self) -> Traits:
        """What the method needs; every client gets a mixture of its own."""
        return Traits(asks=("fedamp",), averages=False)

    def check(self, config: RunConfig, layout: Layout) -> None:
        """Refuse a step that is too large for the number of clients."""
        n = config.members + bool(config.new_clients)  # a newcomer joins alone
        if self.attention == "distance" and self.step(n) * (n - 1) > self.sigma:
            raise InvalidInputError(
                f"alpha of fedamp must be at most sigma/{n - 1} = {self.sigma / (n - 1):g} for"
                f" {n} clients, or a client's weight for itself could be negative"
            )

    def start(self, federation: Federation) -> State:
        """Return everyone's first model."""
        return {"models": federation.initial_model.repeat(len(federation.clients), 1)}

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Send everyone present its cloud model, and keep what it makes of it."""
        models, present = state["models"].clone(), list(federation.present)
        rows = models[present]
        weights = self.weights(federation.layout.parameters(rows), len(federation.clients))
        on_host = to_host(weights).numpy()
        relevance = np.zeros((len(models), len(models)), on_host.dtype)
        relevance[np.ix_(present, present)] = on_host
        federation.record(relevance=relevance)
        clouds = weights @ rows
        replies = federation.ask(
            train_near_cloud,
            {c: {"model": cloud} for c, cloud in zip(present, clouds, strict=True)},
        )
        for c, reply in replies.items():
            models[c] = reply["model"]
        return {"models": models}

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Train the mean model, then near the cloud model that attention gives to the result."""
        stored = state["models"]
        begin = {"model": stored.mean(0), "keep": True}
        first = federation.ask(train, dict.fromkeys(clients, begin), measuring=True)
        clouds = {}
        for c, reply in first.items():
            models = torch.cat([stored, reply["model"][None]])
            weights = self.weights(federation.layout.parameters(models), len(models))
            clouds[c] = {"model": weights[-1] @ models}
        federation.round += 1  # another order of the data
        return {c: {} for c in federation.ask(train_near_cloud, clouds, measuring=True)}

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return each client's own model."""
        return {"personal": {c: {"model": state["models"][c]} for c in federation.clients}}

    def step(self, n_clients: int) -> float:
        """Return α."""
        if self.alpha is not None:
            return self.alpha
        return self.sigma / n_clients if self.attention == "distance" else 1.0

    def weights(self, rows: Tensor, n_clients: int) -> Tensor:
        """Return ξ [m, m] of the parameters [m, P] of the round's clients; rows add to one."""
        m = len(rows)
        if self.attention == "distance":
            xi = torch.exp(-distances(rows).square() / self.sigma)
            xi *= self.step(n_clients) / self.sigma
            own = 1 - xi.fill_diagonal_(0.0).sum(1)
        else:
            kept = 1 / m if self.self_weight is None else self.self_weight
            kept = 1.0 if m == 1 else kept
            likeness = (self.sigma * cosines(rows)).fill_diagonal_(-torch.inf)
            xi = torch.zeros_like(likeness) if m == 1 else (1 - kept) * torch.softmax(likeness, 1)
            own = xi.new_full((m,), kept)
        return xi.diagonal_scatter(own)


@task("fedamp", by_fit=True, model=Reveals.MODEL, train_loss=Reveals.PROGRESS, samples=Reveals.SIZE)
def train_near_cloud(client: Client, message: Message) -> Message:
    """Train near the cloud model that was received as `model`."""
    method = client.algorithm
    assert isinstance(method, FedAMP)
    cloud = message["model"]
    fitted = fit(
        client,
        cloud if method.start_from == "cloud" else client.own_model,
        proximal=method.lam / method.step(client.config.members),
        anchor=cloud,
    )
    client.memory["model"] = fitted.model
    return {
        "model": fitted.model,
        "train_loss": fitted.loss,
        "samples": len(client.data.train),
    }
