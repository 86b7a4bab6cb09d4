"""Training alone: what collaboration is measured against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from learners.algorithm import ALGORITHMS, Algorithm, State, Traits
from learners.client.tasks import train

if TYPE_CHECKING:
    from learners.server.federation import Federation
    from learners.task import Message


@ALGORITHMS.register("local")
@dataclass(frozen=True)
class Local(Algorithm):
    """Every client trains its own model on its own data; no model travels ("Separate")."""

    @property
    def traits(self) -> Traits:
        """What the method needs; models stay at home."""
        return Traits(averages=False)

    def start(self, federation: Federation) -> State:
        """Return nothing: the server has nothing to remember."""
        return {}

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Have the clients train on."""
        federation.ask(train, {c: {"send": False} for c in federation.present})
        return state

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Train alone, for the local epochs of all rounds."""
        epochs = federation.config.rounds * federation.config.local_epochs
        sent = {"send": False, "epochs": epochs}
        return {c: {} for c in federation.ask(train, dict.fromkeys(clients, sent), measuring=True)}

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return nothing for anyone: each client has its model."""
        return {"personal": {c: {} for c in federation.clients}}
