"""One body with two heads: a generic one for everybody, a personal one beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn

from learners.algorithm import ALGORITHMS, Algorithm, State
from learners.optimizers import optimizer
from learners.options import option
from learners.representation import represented
from learners.task import Message, Reveals, task
from learners.training import fit

if TYPE_CHECKING:
    from torch import Tensor

    from learners.client import Client
    from learners.federation import Federation


@ALGORITHMS.register("fedrod")
@dataclass(frozen=True)
class FedRoD(Algorithm):
    r"""A generic predictor trained on balanced risk, and a personal head on top [Chen2022]_.

    With features :math:`z = f(x; \theta)`, the generic scores are :math:`g = h(z; \phi)` and
    the personal ones :math:`g + h(z; \psi_i)`. Body and generic head minimise the balanced
    softmax loss (:math:`N_{i,c}` images of class c at client i),

    .. math:: -\log \frac{N_{i,y}^\gamma e^{g_y}}{\sum_c N_{i,c}^\gamma e^{g_c}},

    and are averaged as in federated averaging; the personal head minimises the plain loss of the
    personal scores, and nothing of that reaches body or generic head. It stays at home and
    starts at zero, where both predictors are the same.

    Both heads are linear, so their sum is one linear head: the personal predictor is an ordinary
    model of this network.

    Parameters
    ----------
    gamma
        γ; with 0 the loss is the plain one, and the generic model is that of federated averaging.
    """

    gamma: float = option(1.0, least=0, changes="models")

    @property
    def asks(self) -> tuple[str, ...]:
        """Names of the tasks the method asks its clients for."""
        return ("fedrod",)

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Average bodies and generic heads."""
        sent = {"model": state["model"]}
        replies = federation.ask(train_two_heads, dict.fromkeys(federation.present, sent))
        models = torch.stack([reply["model"] for reply in replies.values()])
        sizes = [float(reply["samples"]) for reply in replies.values()]
        return {**state, "model": federation.combine(models, models.new_tensor(sizes))}

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return the generic model for everyone, with and without the personal head."""
        sent = {"model": state["model"]}
        return {
            "personal": {c: sent | {"both_heads": True} for c in federation.clients},
            "global": {c: sent for c in federation.clients},
        }

    def model(self, client: Client, message: Message) -> Tensor:
        """Return the generic model, its head plus the personal one if that is asked for."""
        received: Tensor = message["model"]
        if not message.get("both_heads") or "personal_head" not in client.memory:
            return received
        _, head = client.workspace.layout.parts("head")
        row = received.clone()
        row[head] += client.memory["personal_head"]
        return row


@task("fedrod", model=Reveals.MODEL, train_loss=Reveals.PROGRESS, samples=Reveals.SIZE)
def train_two_heads(client: Client, message: Message) -> Message:
    """Train the generic `model` on balanced risk, and the own head beside it on plain risk."""
    method, settings, layout = client.algorithm, client.config, client.workspace.layout
    assert isinstance(method, FedRoD)
    _, columns = layout.parts("head")
    own = client.memory.get("personal_head")
    psi = (torch.zeros_like(message["model"][columns]) if own is None else own).clone()
    step = optimizer(psi, settings.optimizer, settings.lr, settings.momentum)
    shapes = [layout.shapes[name] for name in layout.columns if name in layout.classifiers["head"]]
    sizes = [torch.Size(shape).numel() for shape in shapes]
    prior = _log_prior(client, method.gamma)

    def balanced_loss(module: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        vectors, generic = represented(module, images)
        psi.requires_grad_(True)
        parts = [part.view(shape) for part, shape in zip(psi.split(sizes), shapes, strict=True)]
        personal = generic.detach() + nn.functional.linear(vectors.detach(), *parts)
        (slope,) = torch.autograd.grad(nn.functional.cross_entropy(personal, labels), psi)
        psi.requires_grad_(False)
        step(slope)
        return nn.functional.cross_entropy(generic + prior, labels)

    fitted = fit(client, message["model"], loss=balanced_loss)
    client.memory["personal_head"] = psi
    return {
        "model": fitted.model,
        "train_loss": fitted.loss,
        "samples": len(client.data.train),
    }


def _log_prior(client: Client, gamma: float) -> Tensor:
    """Return γ ln N of every class; a class the client has not is out of the softmax (−∞)."""
    counts = torch.bincount(client.data.train.labels, minlength=client.site.n_classes)
    return counts.log() * gamma if gamma else torch.zeros_like(counts, dtype=torch.float32)
