"""A global model, and personal ones that stay near it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from learners.algorithm import ALGORITHMS, Algorithm, State, Traits, personal_and_global
from learners.client.tasks import train
from learners.client.training import fit
from learners.settings.options import option
from learners.task import Message, Reveals, task

if TYPE_CHECKING:
    from learners.client.client import Client
    from learners.server.federation import Federation


@ALGORITHMS.register("ditto")
@dataclass(frozen=True)
class Ditto(Algorithm):
    r"""Federated averaging with personal models that a proximal term ties to it [LiT2021]_.

    Algorithm 1 there: besides its part in federated averaging from :math:`w^t`, client k keeps
    :math:`v_k` and repeats

    .. math:: v_k \leftarrow v_k - \eta\,(\nabla F_k(v_k) + \lambda\,(v_k - w^t)).

    The personal model never travels. With λ = 0 it is local training; as λ grows, it becomes the
    global model.

    Parameters
    ----------
    lam
        Strength of the pull of personal models towards the global one (λ in the paper).
    personal_epochs
        Passes over the data for the personal model; the run's `local_epochs` if None.
    """

    lam: float = option(1.0, least=0, changes="models")
    personal_epochs: int | None = option(
        None, least=1, unset="the run's local_epochs", changes="models"
    )

    @property
    def traits(self) -> Traits:
        """What the method needs: its own task."""
        return Traits(asks=("ditto",))

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Begin at the global model, and train a personal one near it for one round."""
        sent = {"model": state["model"]}
        begin = sent | {"keep": True, "send": False, "epochs": 0}
        begun = federation.ask(train, dict.fromkeys(clients, begin), measuring=True)
        replies = federation.ask(train_both, dict.fromkeys(begun, sent), measuring=True)
        return {c: {} for c in replies}

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return nothing for the personal models, which clients have, and the global one."""
        return personal_and_global(federation, state, {})


@task("ditto", by_fit=True, model=Reveals.MODEL, train_loss=Reveals.PROGRESS, samples=Reveals.SIZE)
def train_both(client: Client, message: Message) -> Message:
    """Train the global `model` to send back, and the personal one, near it, to keep."""
    method = client.algorithm
    assert isinstance(method, Ditto)
    shared = fit(client, message["model"])
    personal = fit(
        client,
        client.own_model,
        epochs=method.personal_epochs,
        proximal=method.lam,
        anchor=message["model"],
        leaves=False,
    )
    client.memory["model"] = personal.model
    return {
        "model": shared.model,
        "train_loss": personal.loss,
        "samples": len(client.data.train),
    }
