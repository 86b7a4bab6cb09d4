"""A global model that is good after one step at home."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from learners.algorithm import ALGORITHMS, Algorithm, State, Traits, personal_and_global
from learners.client.gradients import gradients_at
from learners.client.randomness import taking
from learners.client.training import batches, client_loss, mean_loss, training_mode
from learners.settings.options import option
from learners.task import Message, Reveals, task

if TYPE_CHECKING:
    from torch import Tensor

    from learners.client.client import Client
    from learners.server.federation import Federation


@ALGORITHMS.register("per-fedavg")
@dataclass(frozen=True)
class PerFedAvg(Algorithm):
    r"""Model-agnostic meta-learning, federated [Fallah2020]_.

    It minimises the mean over clients of :math:`F_i(w) = f_i(w - \alpha \nabla f_i(w))`. A
    local step of Algorithm 1, with three batches D, D′, D″ of their own:

    .. math::
        \tilde w &= w - \alpha \tilde\nabla f_i(w, D), \\
        w &\leftarrow w - \beta\,(I - \alpha \tilde\nabla^2 f_i(w, D''))
            \,\tilde\nabla f_i(\tilde w, D').

    The first-order variant (``fo``) leaves the Hessian out; the Hessian-free one (``hf``) takes,
    for :math:`g = \tilde\nabla f_i(\tilde w, D')`,

    .. math:: \tilde\nabla^2 f_i(w, D'')\,g \approx \frac{\tilde\nabla f_i(w + \delta g, D'')
              - \tilde\nabla f_i(w - \delta g, D'')}{2 \delta}.

    The server takes the plain mean of the round's clients. A client uses
    :math:`w - \alpha \nabla f_i(w)` over all its training data (``personal``); the model before
    that step is ``global``. With α = 0 it is federated averaging. β is the run's learning rate.

    Parameters
    ----------
    alpha
        Length of the step by which a client adapts (α in the paper); the run's learning rate if
        None.
    variant
        How second derivatives are treated: left out (``fo``), or from differences of gradients
        (``hf``).
    difference_step
        Length of the difference by which ``hf`` takes derivatives (δ in the paper).
    """

    alpha: float | None = option(None, least=0, unset="the run's learning rate", changes="models")
    variant: Literal["fo", "hf"] = option("fo", changes="models")
    difference_step: float = option(1e-3, above=0, needs={"variant": "hf"}, changes="models")

    @property
    def traits(self) -> Traits:
        """What the method needs: its own task, of steps instead of epochs."""
        return Traits(asks=("per-fedavg",), stops_early=False)

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Average what clients made of the meta-model, each alike."""
        sent = {"model": state["model"]}
        replies = federation.ask(train_meta, dict.fromkeys(federation.present, sent))
        models = torch.stack([reply["model"] for reply in replies.values()])
        return {**state, "model": federation.combine(models, models.new_ones(len(models)))}

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Adapt the meta-model by one step, as every client does."""
        return {c: {"model": state["model"], "adapt": True} for c in clients}

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return the meta-model for everyone, to adapt and as it is."""
        sent = {"model": state["model"], "adapt": True}
        return personal_and_global(federation, state, sent)

    def model(self, client: Client, message: Message) -> Tensor:
        """Return the meta-model, one gradient step further if that is asked for."""
        received: Tensor = message["model"]
        if not message.get("adapt"):
            return received
        adapted = received.clone()
        parameters = client.workspace.layout.parameters(adapted)
        (found,) = gradients_at(client, received[None])
        parameters.sub_(found, alpha=self.inner_lr(client))
        return adapted

    def inner_lr(self, client: Client) -> float:
        """Return α."""
        return client.lr if self.alpha is None else self.alpha


@task("per-fedavg", model=Reveals.MODEL, train_loss=Reveals.PROGRESS, samples=Reveals.SIZE)
def train_meta(client: Client, message: Message) -> Message:
    """Take meta-gradient steps from the `model` that was received."""
    method, workspace = client.algorithm, client.workspace
    assert isinstance(method, PerFedAvg)
    layout, data, alpha = workspace.layout, client.data.train, method.inner_lr(client)
    row = message["model"].clone()
    w = layout.parameters(row)
    loss_on, take = client_loss(client), taking(client, data, "train")
    step = client.descent(w)

    def gradient(parameters: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        workspace.load(row)
        workspace.parameters.copy_(parameters)
        loss = loss_on(workspace.module, *take(chosen))
        return workspace.backward(loss).clone(), loss.detach()

    # The outer batches come in the order of plain training: with α = 0 nothing else is left.
    draws = [batches(client, len(data), purpose) for purpose in ("inner", "train", "hessian")]
    losses: list[Tensor] = []
    with training_mode(client, "train"):
        for inner, outer, curvature in zip(*draws, strict=True):
            ahead = w - alpha * gradient(w, inner)[0]
            g, loss = gradient(ahead, outer)
            row[layout.n_parameters :] = workspace.row[layout.n_parameters :]
            if method.variant == "hf":
                delta = method.difference_step
                forward, _ = gradient(w + delta * g, curvature)
                backward, _ = gradient(w - delta * g, curvature)
                g = g - alpha * (forward - backward) / (2 * delta)
            step(g)
            losses.append(loss)
    return {"model": row, "train_loss": mean_loss(losses), "samples": len(data)}
