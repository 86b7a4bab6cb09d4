"""Several global models; every client trains the one that suits it best."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch

from coalitions.structure import CoalitionStructure
from learners.algorithm import ALGORITHMS, Algorithm, State, Traits
from learners.client.gradients import gradients_at
from learners.client.model_games import examined
from learners.client.tasks import train
from learners.rows.parameters import reinitialised
from learners.settings.options import option
from learners.task import Message, ModelRows, Number, Reveals, task

if TYPE_CHECKING:
    from torch import Tensor

    from learners.client.client import Client
    from learners.server.federation import Federation


@ALGORITHMS.register("ifca")
@dataclass(frozen=True)
class IFCA(Algorithm):
    r"""Iterative federated clustering: K models, each client in the one it fits [Ghosh2020]_.

    Algorithm 1: client i receives all models, estimates its cluster
    :math:`\hat j = \arg\min_j F_i(\theta_j)` by its training loss, and then

    - ``model`` averaging: trains :math:`\tilde\theta_i` from :math:`\theta_{\hat j}`; a cluster's
      model becomes the plain mean of its clients';
    - ``gradient`` averaging: sends :math:`g_i = \nabla F_i(\theta_{\hat j})`;
      :math:`\theta_j \leftarrow \theta_j - \frac{\gamma}{m} \sum_{i : \hat j = j} g_i`, with m
      clients in the round and γ the run's learning rate.

    A cluster nobody chose stays as it is. One model with model averaging is federated averaging
    (of clients with equally much data). When a client uses its model, it chooses in the same way.

    Parameters
    ----------
    k
        Number of models K; 0 is one for every client. The first starts where every method starts,
        the others elsewhere.
    averaging
        What the server averages: a ``model`` after local training, or one ``gradient``.
    """

    k: int = option(3, least=0, changes="traffic")
    averaging: Literal["model", "gradient"] = option("model", changes="models")

    @property
    def traits(self) -> Traits:
        """What the method needs: a choice of models, and training unless gradients are averaged."""
        return Traits(asks=("ifca",) if self.averaging == "gradient" else ("ifca", "train"))

    def start(self, federation: Federation) -> State:
        """Return the first models; nobody has chosen yet (−1)."""
        first, stream = federation.initial_model, federation.stream("clusters")
        n = len(federation.clients)
        others = [reinitialised(first, federation.layout, stream) for _ in range((self.k or n) - 1)]
        return {"models": torch.stack([first, *others]), "clusters": [-1] * n}

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Let the clients choose and train, and update each cluster from its own."""
        models, clusters = state["models"].clone(), list(state["clusters"])
        by_gradient = self.averaging == "gradient"
        sent = {"models": models, "gradient": by_gradient}
        chosen = federation.ask(choose_cluster, dict.fromkeys(federation.present, sent))
        for c, reply in chosen.items():
            clusters[c] = reply["cluster"]
        # The chosen model is at the client already: it starts from there.
        replies = chosen if by_gradient else federation.ask(train, {c: {} for c in chosen})
        for j in sorted({clusters[c] for c in replies}):
            members = [c for c in replies if clusters[c] == j]
            if by_gradient:
                gradients = torch.stack([replies[c]["gradient"] for c in members])
                share = federation.lr * len(members) / len(replies)
                mean = federation.combine(gradients, gradients.new_ones(len(members)))
                federation.layout.parameters(models[j]).sub_(mean, alpha=share)
            else:
                rows = torch.stack([replies[c]["model"] for c in members])
                models[j] = federation.combine(rows, rows.new_ones(len(members)))
        # Who has not chosen yet stands alone.
        labels = [j if j >= 0 else len(models) + c for c, j in enumerate(clusters)]
        federation.record(structure=CoalitionStructure.from_labels(labels))
        return {"models": models, "clusters": clusters}

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Take the model of the cluster with the lowest training loss."""
        return {c: {"models": state["models"]} for c in clients}

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return all models for everyone, to choose from."""
        return {"cluster": {c: {"models": state["models"]} for c in federation.clients}}

    def model(self, client: Client, message: Message) -> Tensor:
        """Return the model of the lowest training loss."""
        models: Tensor = message["models"]
        return models[_closest(client, models)[0]]


@task(
    "ifca",
    cluster=(
        Reveals.METRIC,
        Number(whole=True, least=0, most=lambda asked: asked.rows("models") - 1),
    ),
    gradient=(
        Reveals.STATISTIC,
        ModelRows(
            lambda asked: (asked.layout.n_parameters,),
            when=lambda asked: bool(asked.message["gradient"]),
        ),
    ),
    train_loss=Reveals.PROGRESS,
)
def choose_cluster(client: Client, message: Message) -> Message:
    """Keep the one of `models` with the lowest training loss; send its gradient if asked to."""
    models = message["models"]
    cluster, loss = _closest(client, models)
    client.memory["model"] = models[cluster].clone()
    reply = {"cluster": cluster, "train_loss": loss}
    if not message.get("gradient"):
        return reply
    (found,) = gradients_at(client, models[cluster][None])
    return reply | {"gradient": found}


def _closest(client: Client, models: Tensor) -> tuple[int, float]:
    losses = [each.loss for each in examined(client, models, client.data.train)]
    # A loss that is no number compares as neither lower nor higher: it must not be the lowest.
    cluster = min(range(len(losses)), key=lambda j: (math.isnan(losses[j]), losses[j]))
    return cluster, losses[cluster]
