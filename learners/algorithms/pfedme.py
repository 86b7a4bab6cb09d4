"""Personal models as minimisers of Moreau envelopes around the global one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from coalitions.errors import InvalidInputError
from learners.algorithm import ALGORITHMS, Algorithm, State, Traits, personal_and_global
from learners.client.randomness import taking
from learners.client.training import batches, client_loss, mean_loss, training_mode
from learners.settings.options import option
from learners.task import Message, Reveals, task

if TYPE_CHECKING:
    from learners.client.client import Client
    from learners.server.federation import Federation


@ALGORITHMS.register("pfedme")
@dataclass(frozen=True)
class PFedMe(Algorithm):
    r"""Personalised federated learning with Moreau envelopes [Dinh2020]_.

    Client i's personal model minimises :math:`f_i(\theta) + \frac{\lambda}{2} \lVert \theta - w
    \rVert^2`. Algorithm 1, from :math:`w_i = w^t`, on every batch: K gradient steps

    .. math:: \theta_i \leftarrow \theta_i
              - \gamma\,(\nabla \tilde f_i(\theta_i) + \lambda\,(\theta_i - w_i)),

    then :math:`w_i \leftarrow w_i - \eta \lambda\,(w_i - \theta_i)`. The server moves by β towards
    the plain mean of the clients of the round:

    .. math:: w^{t+1} = (1 - \beta)\,w^t + \beta\,\tfrac{1}{|S|} \sum_{i \in S} w_i.

    The K steps go on from the last batch's :math:`\theta_i`, as in the authors' program.

    Parameters
    ----------
    lam
        Strength of the pull between personal and global models (λ in the paper): with 0 the global
        model does not move; as it grows, personal models become global.
    inner_steps
        Steps towards a personal model in each batch (K in the paper).
    eta
        Learning rate of the local copy of the global model (η in the paper); if None, the run's
        learning rate, but at most 1/λ, where :math:`w_i` becomes :math:`\theta_i`. More would
        overshoot and is refused.
    personal_lr
        Learning rate of the personal models (γ in the paper); if None, :math:`1 / (\lambda +
        1/\text{lr})`, the step for a function as curved as the run's learning rate allows, plus the
        envelope's λ.
    beta
        Share of the mean of the clients in the next global model (β in the paper).
    """

    lam: float = option(15.0, least=0, changes="models")
    inner_steps: int = option(5, least=1, changes="models")
    eta: float | None = option(
        None, least=0, unset="the run's learning rate, at most 1/λ", changes="models"
    )
    personal_lr: float | None = option(None, above=0, unset="1 / (λ + 1/lr)", changes="models")
    beta: float = option(1.0, above=0, changes="models")

    @property
    def traits(self) -> Traits:
        """What the method needs: its own task, which solves for every batch by itself."""
        return Traits(asks=("pfedme",), stops_early=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.eta is not None and self.eta * self.lam > 1:
            raise InvalidInputError(
                f"eta of pfedme must be from 0 to 1/lam = {1 / self.lam:g}, where the global model"
                f" goes all the way to the personal one, not {self.eta}"
            )

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Move towards the mean of the clients' versions of the global model."""
        sent = {"model": state["model"]}
        replies = federation.ask(train_envelope, dict.fromkeys(federation.present, sent))
        models = torch.stack([reply["model"] for reply in replies.values()])
        mean = federation.combine(models, models.new_ones(len(models)))
        return {**state, "model": torch.lerp(state["model"], mean, self.beta)}

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Train one round as members do: a personal model near the global one."""
        sent = {"model": state["model"]}
        replies = federation.ask(train_envelope, dict.fromkeys(clients, sent), measuring=True)
        return {c: {} for c in replies}

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return nothing for the personal models, which clients have, and the global one."""
        return personal_and_global(federation, state, {})


@task("pfedme", model=Reveals.MODEL, train_loss=Reveals.PROGRESS, samples=Reveals.SIZE)
def train_envelope(client: Client, message: Message) -> Message:
    """Descend the envelope around the global `model`; keep the personal one."""
    method, workspace = client.algorithm, client.workspace
    assert isinstance(method, PFedMe)
    layout = workspace.layout
    lr = method.personal_lr or 1 / (method.lam + 1 / client.lr)
    pull = min(1.0, client.lr * method.lam) if method.eta is None else method.eta * method.lam
    row = message["model"].clone()
    w = layout.parameters(row)
    workspace.load(row)
    theta = workspace.parameters
    step = client.descent(theta, lr)
    loss_on, take = client_loss(client), taking(client, client.data.train, "train")
    losses: list[Tensor] = []
    with training_mode(client, "train"):
        for chosen in batches(client, len(client.data.train), "train"):
            inputs, targets = take(chosen)
            for _ in range(method.inner_steps):
                loss = loss_on(workspace.module, inputs, targets)
                gradient = workspace.backward(loss)
                with torch.no_grad():
                    step(gradient.add_(theta - w, alpha=method.lam))
            with torch.no_grad():
                w.sub_(w - theta, alpha=pull)
            losses.append(loss.detach())
    row[layout.n_parameters :] = workspace.row[layout.n_parameters :]
    client.memory["model"] = workspace.saved()
    return {
        "model": row,
        "train_loss": mean_loss(losses),
        "samples": len(client.data.train),
    }
