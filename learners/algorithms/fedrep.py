"""A shared representation, and a head of everyone's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch

from coalitions.errors import InvalidInputError
from learners.algorithm import ALGORITHMS, Algorithm, State, Traits
from learners.client.training import fit
from learners.settings.options import option
from learners.task import Message, Reveals, task

if TYPE_CHECKING:
    from torch import Tensor

    from learners.client.client import Client
    from learners.rows.parameters import Layout
    from learners.server.federation import Federation
    from learners.settings.config import RunConfig


@ALGORITHMS.register("fedrep")
@dataclass(frozen=True)
class FedRep(Algorithm):
    r"""A representation that is averaged, under heads that stay at home [Collins2021]_.

    Algorithm 1: with the body φ received, client i first trains its head, then the body,

    .. math::
        h_i &\leftarrow \mathrm{GRD}(f_i(h_i, \phi), h_i) \quad (\tau_h \text{ epochs}), \\
        \phi_i &\leftarrow \mathrm{GRD}(f_i(h_i, \phi_i), \phi_i) \quad (\tau_\phi \text{ epochs}),

    and sends :math:`\phi_i` alone; the server takes the plain mean of the bodies.

    Parameters
    ----------
    head_epochs
        Passes over the data for the head (:math:`\tau_h` in the paper); the run's `local_epochs` if
        None.
    body_epochs
        Passes over the data for the body (:math:`\tau_\phi` in the paper, which has 1, and 5 for
        some data sets); the run's `local_epochs` if None, so that bodies train as long as the
        models of other methods.
    cut
        Where the head begins: the last layer (``head``), all layers after the convolutions
        (``dense``), or nowhere (``none``): then all is body, and it is federated averaging with
        equal weights.
    """

    head_epochs: int | None = option(
        None,
        least=0,
        unset="the run's local_epochs",
        needs={"cut": ("head", "dense")},
        changes="models",
    )
    body_epochs: int | None = option(
        None, least=0, unset="the run's local_epochs", changes="models"
    )
    cut: Literal["head", "dense", "none"] = option("head", changes="traffic")

    @property
    def traits(self) -> Traits:
        """What the method needs: its own task."""
        return Traits(asks=("fedrep",))

    def passes(self, local_epochs: int) -> int:
        """Return the passes for the head and those for the body."""
        head = local_epochs if self.head_epochs is None else self.head_epochs
        body = local_epochs if self.body_epochs is None else self.body_epochs
        return body + (0 if self.cut == "none" else head)

    def check(self, config: RunConfig, layout: Layout) -> None:
        """Refuse a network that is all head."""
        if not len(self.parts(layout)[0]):
            raise InvalidInputError(
                f"fedrep with cut {self.cut} has no body to share: {config.model} has no layer"
                " before its head; choose cut head, or a network with convolutions"
            )

    def start(self, federation: Federation) -> State:
        """Return the first body."""
        body, _ = self.parts(federation.layout, federation.initial_model.device)
        return {"body": federation.initial_model[body]}

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Average the bodies, each alike."""
        sent = {"body": state["body"]}
        replies = federation.ask(train_head_then_body, dict.fromkeys(federation.present, sent))
        bodies = torch.stack([reply["body"] for reply in replies.values()])
        return {**state, "body": federation.combine(bodies, bodies.new_ones(len(bodies)))}

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Train an own head on the shared body, which stays as it is."""
        sent = {"body": state["body"]}
        replies = federation.ask(train_head_then_body, dict.fromkeys(clients, sent), measuring=True)
        return dict.fromkeys(replies, sent)

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return the body for everyone, to put under the own head."""
        return {"personal": {c: {"body": state["body"]} for c in federation.clients}}

    def model(self, client: Client, message: Message) -> Tensor:
        """Return the received body under the client's own head."""
        body, head = self.parts(client.workspace.layout, client.workspace.device)
        row = client.site.initial.clone()
        row[body] = message["body"]
        if "head" in client.memory:
            row[head] = client.memory["head"]
        return row

    def parts(self, layout: Layout, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
        """Return the columns of the body and of the head, on a device if one is named."""
        if self.cut == "none":
            none = torch.empty(0, dtype=torch.int64, device=device)
            return torch.arange(layout.size, device=device), none
        return layout.parts(self.cut, device)


@task("fedrep", by_fit=True, body=Reveals.MODEL, train_loss=Reveals.PROGRESS, samples=Reveals.SIZE)
def train_head_then_body(client: Client, message: Message) -> Message:
    """Train the own head on the `body` that was received, then the body, and send the body."""
    method, layout = client.algorithm, client.workspace.layout
    assert isinstance(method, FedRep)
    body, head = method.parts(layout, client.workspace.device)
    head_names = frozenset() if method.cut == "none" else layout.classifiers[method.cut]
    row = method.model(client, message)
    if head_names:
        row = fit(client, row, purpose="head", epochs=method.head_epochs, only=head_names).model
    fitted = fit(client, row, epochs=method.body_epochs, only=layout.shapes.keys() - head_names)
    client.memory["head"] = fitted.model[head]
    return {
        "body": fitted.model[body],
        "train_loss": fitted.loss,
        "samples": len(client.data.train),
    }
