"""Federated averaging, then fine-tuning at home."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from learners.algorithm import ALGORITHMS, Algorithm, State, personal_and_global
from learners.client.training import fit
from learners.settings.options import option

if TYPE_CHECKING:
    from torch import Tensor

    from learners.client.client import Client
    from learners.server.federation import Federation
    from learners.task import Message


@ALGORITHMS.register("fedavg-ft")
@dataclass(frozen=True)
class FedAvgFineTuned(Algorithm):
    """Federated averaging whose global model every client fine-tunes before it is used.

    Fine-tuning does not feed back into the federation: the global model is that of `fedavg`. Both
    are reported, the fine-tuned one as the method's result.

    Parameters
    ----------
    fine_tune_epochs
        Passes over the client's training data; the run's `local_epochs` if None.
    """

    fine_tune_epochs: int | None = option(
        None, least=0, unset="the run's local_epochs", changes="models"
    )

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Fine-tune the global model, as every client does."""
        return {c: {"model": state["model"], "fine_tune": True} for c in clients}

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return the global model for everyone, to fine-tune and as it is."""
        sent = {"model": state["model"], "fine_tune": True}
        return personal_and_global(federation, state, sent)

    def model(self, client: Client, message: Message) -> Tensor:
        """Return the global model, fine-tuned if that is asked for."""
        received: Tensor = message["model"]
        if not message.get("fine_tune"):
            return received
        return fit(client, received, purpose="fine-tune", epochs=self.fine_tune_epochs).model
