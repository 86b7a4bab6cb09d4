"""The oracle that knows which clients belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from coalitions.errors import InvalidInputError
from coalitions.structure import CoalitionStructure
from learners.algorithm import ALGORITHMS, Algorithm, State, Traits
from learners.client.tasks import describe, train
from learners.settings.options import option

if TYPE_CHECKING:
    from learners.data.client_data import FederatedData
    from learners.server.federation import Federation
    from learners.task import Message


@ALGORITHMS.register("domain")
@dataclass(frozen=True)
class Domain(Algorithm):
    """Federated averaging inside each true domain: an oracle for comparison.

    A group is a domain of the data set, or, where there are no domains, the clients that have
    exactly the same labels. Nobody could know these groups in practice; a method that finds
    coalitions by itself can at best match it.

    Parameters
    ----------
    separate_poisoned
        Whether poisoned clients form groups of their own.
    """

    separate_poisoned: bool = option(True, changes="structure")

    def check_data(self, data: FederatedData) -> None:
        """Refuse data that have neither domains nor labels: there are no groups to know."""
        super().check_data(data)
        if not data.targets.n_counted and not any(each.domain for each in data.clients):
            raise InvalidInputError(
                f"domain groups clients by their domains or labels, and those of {data.name} have"
                f" neither ({data.targets.kind})"
            )

    @property
    def traits(self) -> Traits:
        """What the method needs: to know what clients have."""
        return Traits(asks=("describe", "train"))

    def start(self, federation: Federation) -> State:
        """Return the groups, and everyone's first model."""
        described = federation.ask(describe, {c: {} for c in federation.clients}, measuring=True)
        groups = [self._group(described[c]) if c in described else (c,) for c in federation.clients]
        numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
        labels = [numbers[group] for group in groups]
        return {"labels": labels, "models": federation.initial_model.repeat(len(numbers), 1)}

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Average what the members of each group trained."""
        labels, models = state["labels"], state["models"].clone()
        replies = federation.ask(
            train, {c: {"model": models[labels[c]]} for c in federation.present}
        )
        for group in sorted({labels[c] for c in replies}):
            sent = [reply for c, reply in replies.items() if labels[c] == group]
            rows = torch.stack([reply["model"] for reply in sent])
            sizes = rows.new_tensor([float(reply["samples"]) for reply in sent])
            models[group] = federation.combine(rows, sizes)
        federation.record(structure=CoalitionStructure.from_labels(labels))
        return {**state, "models": models}

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Take the model of the own group; where it is a new one, train the mean of all groups'."""
        registered, labels, models = federation.registered, state["labels"], state["models"]
        known = {
            self._group(registered[c]): labels[c] for c in federation.clients if c in registered
        }
        groups = {c: known.get(self._group(registered[c])) for c in clients if c in registered}
        begin = {"model": models.mean(0), "keep": True, "send": False}
        alone = {c: begin for c, group in groups.items() if group is None}
        trained = federation.ask(train, alone, measuring=True) if alone else {}
        return {
            c: {} if group is None else {"model": models[group]}
            for c, group in groups.items()
            if group is not None or c in trained
        }

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return the group's model for everyone."""
        models, labels = state["models"], state["labels"]
        return {"group": {c: {"model": models[labels[c]]} for c in federation.clients}}

    def _group(self, described: Message) -> tuple[object, ...]:
        kind = described["domain"] or tuple((described["labels"] > 0).tolist())
        return (kind, bool(described["poisoned"]) and self.separate_poisoned)
