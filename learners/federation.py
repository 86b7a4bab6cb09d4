"""The server's side: rounds, who takes part, and `ask`, the only way to a client."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from coalitions.errors import InvalidInputError, NoSolutionError
from coalitions.structure import CoalitionStructure
from learners.aggregation import aggregation
from learners.algorithm import Algorithm, State
from learners.config import RunConfig
from learners.engines.engine import Engine
from learners.parameters import Layout
from learners.participation import present_in
from learners.privacy import Privacy
from learners.seeding import seed_of, stream
from learners.task import Message, Task
from learners.tasks import describe, evaluate
from learners.traffic import Ledger


@dataclass(frozen=True)
class Round:
    """What a round left behind.

    Attributes
    ----------
    number
        1, 2, …
    state
        What the server remembers after it.
    metrics
        Plain values: a line of `metrics.jsonl`.
    records
        What the method recorded: arrays and coalition structures by name.
    """

    number: int
    state: State
    metrics: dict[str, Any]
    records: dict[str, Any]


class Federation:
    """The server's view of a run: numbered clients it can ask, and nothing of their data.

    Parameters
    ----------
    config
        The run.
    algorithm
        The method.
    engine
        Who carries messages.
    layout
        What the columns of a model are.
    initial_model
        The model everyone starts from.
    privacy
        The mechanism that clients use before they send anything, to tell its ε; None if none.

    Attributes
    ----------
    round
        Number of the current round; 0 before the first.
    present
        Clients that take part in the current round, in order.
    """

    def __init__(
        self,
        config: RunConfig,
        algorithm: Algorithm,
        engine: Engine,
        layout: Layout,
        initial_model: Tensor,
        privacy: Privacy | None = None,
    ) -> None:
        self.config = config
        self.algorithm = algorithm
        self.layout = layout
        self.initial_model = initial_model
        self.privacy = privacy
        self.clients = tuple(range(config.clients))
        self.round = 0
        self.present = self.clients
        self.ledger = Ledger(config.rounds, config.clients)
        self._engine = engine
        algorithm.check(config, layout)
        self._aggregate = aggregation(config.aggregation)
        self._refused: dict[int, str] = {}
        self._losses: dict[int, float] = {}
        self._records: dict[str, Any] = {}
        self._honest: tuple[int, ...] | None = None
        self._method_at_work = False

    def ask(
        self, task: Task, messages: Mapping[int, Message], *, measuring: bool = False
    ) -> dict[int, Message]:
        """Have clients do a task; return the replies by client, in order.

        This is the only way between server and clients. Traffic is counted here. A client whose
        answer is refused (it is not finite) is missing from the replies and named in the round's
        metrics; if all are, there is nothing to go on with.

        Parameters
        ----------
        task
            What to do.
        messages
            Who does it, and with what.
        measuring
            Whether this is how the run is watched, not part of the method: not counted.
        """
        strangers = set(messages) - set(self.clients)
        if strangers:
            raise InvalidInputError(
                f"there is no client {min(strangers)}; they are numbered 0 …"
                f" {len(self.clients) - 1}"
            )
        self._check_declared(task)
        answers = self._engine.ask(task, messages, self.round)
        if answers.refused and not answers.replies:
            client, reason = next(iter(answers.refused.items()))
            raise NoSolutionError(
                f"round {self.round}: no client gave a usable answer to {task.name!r} (client"
                f" {client}: {reason}); a smaller lr may keep training finite"
            )
        self._refused |= answers.refused
        if not measuring:
            for client, message in messages.items():
                self.ledger.sent_down(self.round, client, message)
            for client, reply in answers.replies.items():
                self.ledger.sent_up(self.round, client, reply)
                if "train_loss" in reply:
                    self._losses[client] = reply["train_loss"]
        return answers.replies

    def combine(self, models: Tensor, weights: Tensor) -> Tensor:
        """Return one model of many [n, P], by the run's aggregation."""
        return self._aggregate(models, weights)

    def record(self, **values: Any) -> None:  # noqa: ANN401 (arrays, structures, plain values)
        """Keep something of this round for the run's folder.

        A numpy array of the same shape in every round goes to ``NAME.npy`` [rounds, …], a
        `CoalitionStructure` to ``NAMEs.jsonl``, a plain value into the line of `metrics.jsonl`.
        """
        self._records |= values

    def stream(self, purpose: str) -> torch.Generator:
        """Return the server's random numbers for a purpose in this round."""
        return stream(self.config.seed, "server", self.round, purpose)

    def rng(self, purpose: str) -> np.random.Generator:
        """Return the same as a numpy generator."""
        return np.random.default_rng(seed_of(self.config.seed, "server", self.round, purpose))

    def rounds(self, state: State | None = None, after: int = 0) -> Iterator[Round]:
        """Yield one round after the other.

        Parameters
        ----------
        state
            What the server remembers of the rounds so far; None to start afresh.
        after
            Number of the last round that is done.
        """
        if state is None:
            self._begin(0)
            self._method_at_work = True
            state = self.algorithm.start(self)
            self._method_at_work = False
        for t in range(after + 1, self.config.rounds + 1):
            began = time.perf_counter()
            self._begin(t)
            self._method_at_work = True
            state = self.algorithm.round(self, state, t)
            self._method_at_work = False
            metrics = self._metrics(state)
            metrics["seconds"] = time.perf_counter() - began
            yield Round(t, state, metrics, self._records)

    def memories(self) -> dict[int, dict[str, Any]]:
        """Return what the clients keep, for a checkpoint."""
        return self._engine.memories()

    def restore(self, memories: Mapping[int, Mapping[str, Any]]) -> None:
        """Give the clients back what they kept."""
        self._engine.restore(memories)

    def _begin(self, t: int) -> None:
        self.round = t
        self._refused, self._losses, self._records = {}, {}, {}
        if t:
            self.present = present_in(self.config, t)

    def _metrics(self, state: State) -> dict[str, Any]:
        t, traffic = self.round, self.ledger.of_round(self.round)
        losses = list(self._losses.values())
        metrics: dict[str, Any] = {
            "round": t,
            "participants": list(self.present),
            "train_loss": float(np.mean(losses)) if losses else None,
        }
        if t % self.config.evaluate_every == 0 or t == self.config.rounds:
            metrics |= self.evaluation(state)
        metrics |= {
            "up": traffic.up,
            "down": traffic.down,
            "bytes_up": traffic.bytes_up,
            "bytes_down": traffic.bytes_down,
            "up_per_client": self.ledger.counts[t, :, 0].tolist(),
            "down_per_client": self.ledger.counts[t, :, 1].tolist(),
            "refused": {str(client): reason for client, reason in self._refused.items()},
            "epsilon": None if self.privacy is None else self.privacy.worst(self.memories()),
        }
        plain = {
            name: value
            for name, value in self._records.items()
            if not isinstance(value, (np.ndarray, CoalitionStructure))
        }
        return metrics | plain

    def _check_declared(self, task: Task) -> None:
        """Refuse, in a private run, what the check of the method's replies has not seen."""
        states_epsilon = self.privacy is not None and self.privacy.noise > 0
        if self._method_at_work and states_epsilon and task.name not in self.algorithm.asks:
            raise InvalidInputError(
                f"{self.config.algorithm} asks its clients for {task.name!r}, which its `asks` does"
                " not name, so nobody has checked what that reveals; it cannot be private"
            )

    def evaluation(self, state: State) -> dict[str, Any]:
        """Return how good every client's model is on its own test data.

        Means are over the honest clients: what an adversary's model is worth to the adversary is
        no merit of the method.
        """
        metrics: dict[str, Any] = {}
        for number, (kind, messages) in enumerate(self.algorithm.deployed(self, state).items()):
            replies = self.ask(evaluate, messages, measuring=True)
            honest = [c for c in self.honest if c in replies]
            if not honest:
                raise NoSolutionError(f"round {self.round}: no honest client has a usable model")
            accuracies = [replies[c]["accuracy"] for c in honest]
            prefix = "" if number == 0 else f"{kind}_"
            metrics |= {
                f"{prefix}mean_test_accuracy": float(np.mean(accuracies)),
                f"{prefix}worst_client_accuracy": float(np.min(accuracies)),
                f"{prefix}mean_test_loss": float(np.mean([replies[c]["loss"] for c in honest])),
                f"{prefix}per_client_test_accuracy": [
                    replies[c]["accuracy"] if c in replies else None for c in self.clients
                ],
            }
            if number == 0:
                metrics["model"] = kind
        return metrics

    @property
    def honest(self) -> tuple[int, ...]:
        """Clients whose data is not poisoned; everyone if all is."""
        if self._honest is None:
            told = self.ask(describe, {c: {} for c in self.clients}, measuring=True)
            honest = tuple(c for c in self.clients if not told[c]["poisoned"])
            self._honest = honest or self.clients
        return self._honest
