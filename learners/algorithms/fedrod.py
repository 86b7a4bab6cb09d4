"""One body with two heads: a generic one for everybody, a personal one beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import nn

from coalitions.errors import InvalidInputError
from learners.algorithm import ALGORITHMS, Algorithm, State, Traits, personal_and_global
from learners.client.training import fit
from learners.devices import to_device, to_host
from learners.rows.parameters import Layout, as_weights
from learners.rows.workspace import represented
from learners.settings.options import option
from learners.task import Message, ModelRows, Reveals, task

if TYPE_CHECKING:
    from torch import Tensor

    from learners.client.client import Client
    from learners.data.client_data import Batch
    from learners.server.federation import Federation
    from learners.settings.config import RunConfig


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

    With ``head="hypernetwork"`` the personal head is not trained but written, from the client's
    shares of classes :math:`a_i` by a network H of two layers with a ReLU between them,

    .. math:: \psi_i = H(a_i; \nu), \quad a_{i,c} = N_{i,c} / \textstyle\sum_d N_{i,d}.

    ν minimises the loss of the personal scores in place of :math:`\psi_i`, travels and is averaged
    like the rest. A client that was never asked has a personal head, too. H writes zeros at first.

    Parameters
    ----------
    gamma
        How strongly the loss of the generic model is balanced by class counts (γ in the paper);
        with 0 the loss is the plain one, and the generic model is that of federated averaging.
    head
        Everybody's own personal head (``linear``), or one that a shared ``hypernetwork`` writes.
    width
        Units of the hypernetwork's hidden layer.
    """

    gamma: float = option(1.0, least=0, changes="models")
    head: Literal["linear", "hypernetwork"] = option("linear", changes="traffic")
    width: int = option(16, least=1, needs={"head": "hypernetwork"}, changes="traffic")

    @property
    def traits(self) -> Traits:
        """What the method needs: classes, which are balanced."""
        return Traits(asks=("fedrod",), kinds=("classification",))

    def check(self, config: RunConfig, layout: Layout) -> None:
        """Refuse a network without a linear head, and a loss other than the method's own."""
        layout.parts("head")
        if config.loss not in ("auto", "cross-entropy"):
            raise InvalidInputError(
                f"fedrod trains on its own balanced cross-entropy, so the loss {config.loss} would"
                " have no effect"
            )

    def start(self, federation: Federation) -> State:
        """Return the first generic model, and a hypernetwork that writes zeros if there is one."""
        state = super().start(federation)
        if self.head == "linear":
            return state
        stream, parts = federation.stream("hypernetwork"), []
        for name, shape in self.writer(federation.layout).shapes.items():
            # He's initialisation where something passes a ReLU; all else starts at zero.
            scale = math.sqrt(2 / shape[1]) if name == "input.weight" else 0.0
            parts.append(scale * torch.randn(math.prod(shape), generator=stream))
        return {**state, "hypernetwork": as_weights(torch.cat(parts), federation.initial_model)}

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Average bodies and generic heads, and the hypernetwork if there is one."""
        sent = dict(state)
        replies = federation.ask(train_two_heads, dict.fromkeys(federation.present, sent))
        sizes = [float(reply["samples"]) for reply in replies.values()]
        new = {}
        for name in state:
            rows = torch.stack([reply[name] for reply in replies.values()])
            new[name] = federation.combine(rows, rows.new_tensor(sizes))
        return new

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Train a personal head beside the generic model, which stays as it is."""
        replies = federation.ask(train_two_heads, dict.fromkeys(clients, state), measuring=True)
        return {c: {**state, "both_heads": True} for c in replies}

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return the generic model for everyone, with and without the personal head."""
        return personal_and_global(federation, state, {**state, "both_heads": True})

    def model(self, client: Client, message: Message) -> Tensor:
        """Return the generic model, its head plus the personal one if that is asked for."""
        received: Tensor = message["model"]
        own = message.get("hypernetwork", client.memory.get("personal_head"))
        if not message.get("both_heads") or own is None:
            return received
        _, head = client.workspace.layout.parts("head", received.device)
        row = received.clone()
        row[head] += self.personal_head(client, own)
        return row

    def personal_head(self, client: Client, own: Tensor) -> Tensor:
        """Return ψ: what the client trained itself, or what the hypernetwork writes for it."""
        if self.head == "linear":
            return own
        layout = client.workspace.layout
        part = self.writer(layout).views(own)
        shares = as_weights(_counts(client), own) / max(len(client.data.train), 1)
        hidden = (part["input.weight"] @ shares + part["input.bias"]).relu()
        return part["output.weight"] @ hidden + part["output.bias"]

    def writer(self, layout: Layout) -> Layout:
        """Return which columns of the flat ν are which layer of the hypernetwork."""
        _, head = layout.parts("head")
        shapes_of_head = [layout.shapes[name] for name in layout.classifiers["head"]]
        classes = shapes_of_head[0][0]
        shapes = {
            "input.weight": (self.width, classes),
            "input.bias": (self.width,),
            "output.weight": (len(head), self.width),
            "output.bias": (len(head),),
        }
        return Layout(shapes, sum(map(math.prod, shapes.values())))


@task(
    "fedrod",
    model=Reveals.MODEL,
    hypernetwork=(Reveals.MODEL, ModelRows(when=lambda asked: "hypernetwork" in asked.message)),
    train_loss=Reveals.PROGRESS,
    samples=Reveals.SIZE,
)
def train_two_heads(client: Client, message: Message) -> Message:
    """Train the generic `model` on balanced risk, and the personal head beside it on plain risk.

    The personal head is the client's own, or that of the `hypernetwork` that was received.
    """
    method, layout = client.algorithm, client.workspace.layout
    assert isinstance(method, FedRoD)
    _, columns = layout.parts("head", message["model"].device)
    own = message.get("hypernetwork", client.memory.get("personal_head"))
    own = (torch.zeros_like(message["model"][columns]) if own is None else own).clone()
    step = client.descent(own)
    shapes = [layout.shapes[name] for name in layout.columns if name in layout.classifiers["head"]]
    sizes = [torch.Size(shape).numel() for shape in shapes]
    prior = _log_prior(client, method.gamma)

    def balanced_loss(module: nn.Module, inputs: Batch, labels: Tensor) -> Tensor:
        vectors, generic = represented(module, inputs)
        own.requires_grad_(True)
        psi = torch.split(method.personal_head(client, own), sizes)
        parts = [part.view(shape) for part, shape in zip(psi, shapes, strict=True)]
        personal = generic.detach() + nn.functional.linear(vectors.detach(), *parts)
        (slope,) = torch.autograd.grad(nn.functional.cross_entropy(personal, labels), own)
        own.requires_grad_(False)
        step(slope)
        return nn.functional.cross_entropy(generic + prior, labels)

    fitted = fit(client, message["model"], loss=balanced_loss)
    reply = {
        "model": fitted.model,
        "train_loss": fitted.loss,
        "samples": len(client.data.train),
    }
    if method.head == "hypernetwork":
        return reply | {"hypernetwork": own}
    client.memory["personal_head"] = own
    return reply


def _log_prior(client: Client, gamma: float) -> Tensor:
    """Return γ ln N of every class; a class the client has not is out of the softmax (−∞)."""
    counts = _counts(client)
    prior = counts.log() * gamma if gamma else torch.zeros_like(counts, dtype=torch.float32)
    return to_device(prior, client.workspace.device)


def _counts(client: Client) -> Tensor:
    """Return how many training samples there are of each class, on the host."""
    return torch.bincount(to_host(client.data.train.targets), minlength=client.site.n_classes)
