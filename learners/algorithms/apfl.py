"""A personal and a global model, mixed in a proportion that is learnt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from learners.algorithm import ALGORITHMS, Algorithm, State, Traits, personal_and_global
from learners.client.randomness import taking
from learners.client.training import batches, client_loss, mean_loss, training_mode
from learners.devices import to_host
from learners.settings.options import option
from learners.task import SHARE, Message, Reveals, task

if TYPE_CHECKING:
    from learners.client.client import Client
    from learners.server.federation import Federation


@ALGORITHMS.register("apfl")
@dataclass(frozen=True)
class APFL(Algorithm):
    r"""Adaptive personalised federated learning: a learnt mixture of two models [Deng2020]_.

    Client i has its version :math:`w_i` of the global model and its own :math:`v_i`, and uses
    :math:`\bar v_i = \alpha_i v_i + (1 - \alpha_i) w_i`. On every batch (Algorithm 1):

    .. math::
        w_i &\leftarrow w_i - \eta \nabla f_i(w_i), \\
        v_i &\leftarrow v_i - \eta \nabla_v f_i(\bar v_i) = v_i - \eta \alpha_i \nabla f_i(\bar v_i)

    and, where α is learnt,

    .. math:: \alpha_i \leftarrow \alpha_i - \eta\,\langle v_i - w_i, \nabla f_i(\bar v_i) \rangle

    kept within [0, 1]. The server takes the plain mean of the :math:`w_i`. With α fixed at 1 a
    client trains alone; with α = 0 it is federated averaging.

    Parameters
    ----------
    alpha
        Share of the own model in the mixture at the start (α in the paper).
    adapt
        When the share learns: on the first batch of a ``round``, at every ``step``, or ``never``.
    """

    alpha: float = option(0.5, least=0, most=1, changes="models")
    adapt: Literal["round", "step", "never"] = option("round", changes="models")

    @property
    def traits(self) -> Traits:
        """What the method needs: its own task, in which two models take every step together."""
        return Traits(asks=("apfl",), stops_early=False)

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Average the clients' versions of the global model, each alike."""
        sent = {"model": state["model"]}
        replies = federation.ask(train_mixture, dict.fromkeys(federation.present, sent))
        models = torch.stack([reply["model"] for reply in replies.values()])
        alphas = [reply["alpha"] for reply in replies.values() if "alpha" in reply]
        if alphas:  # in a private run they stay at home
            federation.record(mean_alpha=sum(alphas) / len(alphas))
        return {**state, "model": federation.combine(models, models.new_ones(len(models)))}

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Train one round as members do, and use the mixture with the global model."""
        sent = {"model": state["model"]}
        replies = federation.ask(train_mixture, dict.fromkeys(clients, sent), measuring=True)
        return {c: {} for c in replies}

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return nothing for the mixtures, which clients have, and the global model."""
        return personal_and_global(federation, state, {})


@task(
    "apfl",
    model=Reveals.MODEL,
    alpha=(Reveals.PROGRESS, SHARE),
    train_loss=Reveals.PROGRESS,
    samples=Reveals.SIZE,
)
def train_mixture(client: Client, message: Message) -> Message:
    """Train the global `model` to send back, and the personal one inside the mixture."""
    method, workspace = client.algorithm, client.workspace
    assert isinstance(method, APFL)
    parameters, buffers = workspace.layout.parameters, slice(workspace.layout.n_parameters, None)
    w = message["model"].clone()
    v = client.memory.get("personal", client.site.initial).clone()
    alpha: float = client.memory.get("alpha", method.alpha)
    step_w = client.descent(parameters(w))
    step_v = client.descent(parameters(v))
    loss_on, take = client_loss(client), taking(client, client.data.train, "train")
    losses: list[Tensor] = []
    with training_mode(client, "train"):
        for chosen in batches(client, len(client.data.train), "train"):
            inputs, targets = take(chosen)
            workspace.load(alpha * v + (1 - alpha) * w)
            loss = loss_on(workspace.module, inputs, targets)
            at_mixture = workspace.backward(loss).clone()
            v[buffers] = workspace.row[buffers]
            workspace.load(w)
            at_w = workspace.backward(loss_on(workspace.module, inputs, targets))
            w[buffers] = workspace.row[buffers]
            learns = method.adapt == "step" or (method.adapt == "round" and not losses)
            apart = parameters(v) - parameters(w)
            slope = float(to_host(torch.dot(apart, at_mixture))) if learns else 0.0
            step_w(at_w)
            step_v(alpha * at_mixture)
            alpha = min(1.0, max(0.0, alpha - client.lr * slope))
            losses.append(loss.detach())
    client.memory.update(personal=v, alpha=alpha, model=alpha * v + (1 - alpha) * w)
    return {
        "model": w,
        "alpha": alpha,
        "train_loss": mean_loss(losses),
        "samples": len(client.data.train),
    }
