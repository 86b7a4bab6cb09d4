"""Class prototypes travel, not weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import nn

from learners.algorithm import ALGORITHMS, Algorithm, State, Traits
from learners.client.training import EVALUATION_CHUNK, fit
from learners.devices import to_device
from learners.rows.workspace import class_means, represented
from learners.settings.options import option
from learners.task import Asked, Message, ModelRows, Numbers, Reveals, task

if TYPE_CHECKING:
    from torch import Tensor

    from learners.client.client import Client
    from learners.data.client_data import Batch
    from learners.rows.parameters import Layout
    from learners.rows.workspace import Loss
    from learners.server.federation import Federation
    from learners.settings.config import RunConfig


@ALGORITHMS.register("fedproto")
@dataclass(frozen=True)
class FedProto(Algorithm):
    r"""Clients share the mean representation of each class, and nothing else [TanY2022]_.

    A prototype is :math:`C_i^{(j)} = \frac{1}{|D_{i,j}|} \sum_{x \in D_{i,j}} f_i(x)`. A client
    trains its own model on

    .. math:: L_i = L_S + \lambda \sum_j d(C_i^{(j)}, \bar C^{(j)}),

    where the local prototypes are those of the batch, so that the term has a gradient. The server
    averages over the clients that have the class, by their number of its images,

    .. math:: \bar C^{(j)} = \sum_i \frac{|D_{i,j}|}{\sum_k |D_{k,j}|} C_i^{(j)}

    (the paper's formula divides once more by the number of these clients, which would shrink
    prototypes towards zero). A class nobody of the round has keeps its prototype. A
    picture is given the class of the nearest prototype (``personal``); ``classifier`` is what the
    model's own last layer says.

    Parameters
    ----------
    lam
        Strength of the pull towards the global prototypes (λ in the paper); with 0 a client trains
        alone.
    distance
        How far prototypes are apart (d in the paper): the mean squared difference (``mse``), ``l2``
        or ``l1``. It is between the class means of a batch and the prototypes, summed over classes,
        as the paper writes; the authors' program takes the mean squared difference of every image,
        so its λ is not this one.
    """

    lam: float = option(1.0, least=0, changes="models")
    distance: Literal["mse", "l2", "l1"] = option("mse", changes="models")

    @property
    def traits(self) -> Traits:
        """What the method needs: classes, which prototypes are of."""
        return Traits(asks=("fedproto",), kinds=("classification",))

    def check(self, config: RunConfig, layout: Layout) -> None:
        """Refuse a network without a linear head: prototypes are what enters it."""
        layout.parts("head")

    def most_traffic(self, layout: Layout, n_present: int, n_classes: int) -> tuple[int, int]:
        """Return a prototype of every class, both ways."""
        layout.parts("head")  # says so if there is no classifier
        return n_classes * _width(layout), n_classes * _width(layout)

    def start(self, federation: Federation) -> State:
        """Return nothing: there are no prototypes yet."""
        return {}

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Average the prototypes of each class."""
        replies = federation.ask(train_prototypes, dict.fromkeys(federation.present, state))
        known = dict(zip(state.get("classes", ()), state.get("prototypes", ()), strict=True))
        for c in sorted({int(c) for reply in replies.values() for c in reply["classes"]}):
            sent = [
                (reply["prototypes"][place], float(reply["counts"][place]))
                for reply in replies.values()
                for place in np.flatnonzero(reply["classes"] == c)
            ]
            rows = torch.stack([row for row, _ in sent])
            known[c] = federation.combine(rows, rows.new_tensor([count for _, count in sent]))
        classes = sorted(known)
        return {"classes": classes, "prototypes": torch.stack([known[c] for c in classes])}

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Train alone near the prototypes, for as many rounds as the members."""
        for _ in range(federation.config.rounds):
            replies = federation.ask(
                train_prototypes, dict.fromkeys(clients, state), measuring=True
            )
            clients = list(replies)
            federation.round += 1  # another order of the data
        return dict.fromkeys(clients, state)

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return the prototypes for everyone; the models are at home."""
        return {
            "personal": {c: state for c in federation.clients},
            "classifier": {c: {} for c in federation.clients},
        }

    def model(self, client: Client, message: Message) -> Tensor:
        """Return the client's own model."""
        return client.own_model

    def scores(self, client: Client, message: Message, inputs: Batch) -> Tensor:
        r"""Return :math:`-\lVert f(x) - \bar C^{(j)} \rVert^2`; the classifier's scores without.

        A class without a prototype is one unit farther than the farthest.
        """
        vectors, scores = represented(client.workspace.module, inputs)
        if "prototypes" not in message:
            return scores
        squares = torch.cdist(vectors, message["prototypes"]).square()
        farther = squares.amax(1, keepdim=True) + 1.0
        apart = farther.expand(-1, client.site.n_classes).clone()
        apart[:, message["classes"]] = squares
        return -apart


def _width(layout: Layout) -> int:
    """Return how many numbers a prototype has: what the classifier sees of a picture."""
    return max(max(layout.shapes[name][1:], default=0) for name in layout.classifiers["head"])


def _last(asked: Asked) -> float | None:
    return None if asked.classes is None else asked.classes - 1


def _present(asked: Asked) -> int:
    return len(asked.reply["classes"])


@task(
    "fedproto",
    classes=(
        Reveals.METRIC,
        Numbers(lambda _: (None,), whole=True, rising=True, least=0, most=_last),
    ),
    prototypes=(
        Reveals.STATISTIC,
        ModelRows(lambda asked: (_present(asked), _width(asked.layout))),
    ),
    counts=(
        Reveals.METRIC,
        Numbers(
            lambda asked: (_present(asked),),
            whole=True,
            least=1,
            total=lambda asked: asked.samples,
        ),
    ),
    train_loss=Reveals.PROGRESS,
    samples=Reveals.SIZE,
)
def train_prototypes(client: Client, message: Message) -> Message:
    """Train the own model near the global `prototypes` of `classes`, if any; send its own."""
    method, workspace, data = client.algorithm, client.workspace, client.data.train
    assert isinstance(method, FedProto)
    loss: Loss | None = None
    if method.lam and "prototypes" in message:
        loss = _regularised(client, method, message)
    fitted = fit(client, client.own_model, loss=loss)
    client.memory["model"] = fitted.model
    workspace.module.eval()
    with torch.no_grad():
        chunks = list(data.chunks(EVALUATION_CHUNK))
        vectors = torch.cat([represented(workspace.module, inputs)[0] for inputs, _ in chunks])
    classes, means, counts = class_means(vectors, data.targets)
    return {
        "prototypes": means,
        "classes": classes.numpy(),
        "counts": counts.numpy(),
        "train_loss": fitted.loss,
        "samples": len(data),
    }


def _regularised(client: Client, method: FedProto, message: Message) -> Loss:
    """Return the loss plus λ times the distance of the batch's prototypes to the global ones."""
    place, criterion = torch.full((client.site.n_classes,), -1), client.criterion
    place[message["classes"]] = torch.arange(len(message["classes"]))

    def loss(module: nn.Module, inputs: Batch, labels: Tensor) -> Tensor:
        vectors, scores = represented(module, inputs)
        classes, means, _ = class_means(vectors, labels)
        known = (place[classes] >= 0).nonzero().flatten()
        ours = means[to_device(known, means.device)]
        apart = ours - message["prototypes"][to_device(place[classes[known]], means.device)]
        return criterion.mean(scores, labels) + method.lam * _distance(apart, method.distance)

    return loss


def _distance(apart: Tensor, kind: Literal["mse", "l2", "l1"]) -> Tensor:
    """Return the sum over classes of the length of the differences [classes, F]."""
    if kind == "mse":
        return apart.square().mean(1).sum()
    lengths: Tensor = torch.linalg.vector_norm(apart, ord=1 if kind == "l1" else 2, dim=1)
    return lengths.sum()
