"""The server's side: rounds, who takes part, and `ask`, the only way to a client."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from coalitions.errors import InvalidInputError, NoSolutionError
from coalitions.structure import CoalitionStructure
from learners.algorithm import Algorithm, State
from learners.client.tasks import describe, evaluate, keep
from learners.measures.goal import Goal
from learners.measures.metrics import summary
from learners.privacy.mechanism import Privacy
from learners.rows.parameters import Layout
from learners.server.aggregation import aggregation
from learners.server.client_failures import ClientFailures
from learners.server.engine import Engine, Ledger, Replies, faults
from learners.settings.config import RunConfig
from learners.settings.participation import missing_in, present_in
from learners.settings.schedules import attendance, learning_rate
from learners.settings.seeding import seed_of, stream
from learners.task import Asked, Message, Task


class NobodyAnsweredError(NoSolutionError):
    """Of all that were asked, no client gave an answer that can be used."""


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
    goal
        What the models are to do, and by what they are judged.

    Attributes
    ----------
    round
        Number of the current round; 0 before the first.
    present
        Clients that take part in the current round, in order, without those in quarantine.
    clients, newcomers
        Clients that training is for, and those that are held out of it.
    failures
        Whose replies were refused or lost, and who is not asked any more.
    """

    def __init__(
        self,
        config: RunConfig,
        algorithm: Algorithm,
        engine: Engine,
        layout: Layout,
        initial_model: Tensor,
        privacy: Privacy | None = None,
        goal: Goal | None = None,
    ) -> None:
        self.config = config
        self.goal = goal
        self.algorithm = algorithm
        self.layout = layout
        self.initial_model = initial_model
        self.privacy = privacy
        self.clients = tuple(range(config.members))
        self.newcomers = tuple(range(config.members, config.clients))
        self.round = 0
        self.present = self.clients
        self.ledger = Ledger(config.rounds, config.members)
        self._engine = engine
        algorithm.check(config, layout)
        self._rule = aggregation(config.aggregation)
        self._rule.check(config.participants)
        self.failures = ClientFailures()
        self._losses: dict[int, float] = {}
        self._records: dict[str, Any] = {}
        self._registered: dict[int, Message] | None = None
        self._method_at_work = False
        self._admitted_newcomers: set[int] = set()

    def ask(
        self, task: Task, messages: Mapping[int, Message], *, measuring: bool = False
    ) -> dict[int, Message]:
        """Have clients do a task; return the replies by client, in order.

        This is the only way between server and clients. Traffic is counted here, and replies are
        checked (`learners.server.engine`): nobody is believed. A client whose answer is refused,
        by its own gate or here, is missing from the replies and named in the round's metrics; if
        all are, there is nothing to go on with.

        Parameters
        ----------
        task
            What to do.
        messages
            Who does it, and with what.
        measuring
            Whether this is how the run is watched, not part of the method: not counted.
        """
        strangers = set(messages) - set(self.clients) - self._admitted_newcomers
        if strangers:
            raise InvalidInputError(
                f"there is no client {min(strangers)}; they are numbered 0 …"
                f" {len(self.clients) - 1}"
            )
        self._check_declared(task)
        answers = self._engine.ask(task, messages, self.round)
        if answers.not_stacked:
            counts: dict[str, int] = self._records.setdefault("not_stacked", {})
            for reason, count in answers.not_stacked.items():
                counts[reason] = counts.get(reason, 0) + count
        refused = answers.refused | self._faults(task, messages, answers)
        lost: set[int] = set()
        if measuring:
            self.failures.refused |= refused
        else:
            if "train_loss" in task.reply:
                self.failures.lose(messages)
            refused, lost = self.failures.refuse(refused), self.failures.lost
        replies = {
            c: answers.replies[c] for c in sorted(messages) if c not in refused and c not in lost
        }
        if messages and not replies and not refused:
            raise NobodyAnsweredError(f"round {self.round}: no reply to {task.name!r} arrived")
        if messages and not replies:
            client, reason = next(iter(refused.items()))
            raise NobodyAnsweredError(
                f"round {self.round}: no client gave a usable answer to {task.name!r} (client"
                f" {client}: {reason}); a smaller lr may keep training finite"
            )
        if not measuring:
            for client, message in messages.items():
                self.ledger.sent_down(self.round, client, message)
            for client, reply in replies.items():
                self.ledger.sent_up(self.round, client, reply)
                if "train_loss" in reply:
                    self._losses[client] = reply["train_loss"]
        return replies

    def combine(self, models: Tensor, weights: Tensor) -> Tensor:
        """Return one model of many [n, P], by the run's aggregation.

        Where there are too few for its rule, which only happens if clients are left out or if a
        method combines in groups, the rule does what `learners.server.aggregation` says, and the
        round's metrics count it as `too_few_to_protect`.
        """
        if not self._rule.holds(len(models)):
            self._records["too_few_to_protect"] = self._records.get("too_few_to_protect", 0) + 1
        return self._rule(models, weights)

    def register(self) -> None:
        """Have clients say what they have, unless they have; who does not is asked nothing else."""
        if self._registered is not None:
            return
        refused_before = dict(self.failures.refused)
        self._registered = self.ask(describe, {c: {} for c in self.clients}, measuring=True)
        silent = set(self.clients) - self._registered.keys()
        self.failures.quarantine_unregistered({c: self.failures.refused[c] for c in silent})
        self.failures.refused = refused_before
        self.present = self._admitted(self.present)

    @property
    def registered(self) -> dict[int, Message]:
        """What clients said at the start that they have; who gave no sound answer is missing."""
        self.register()
        assert self._registered is not None
        return self._registered

    def admit(self, newcomers: Sequence[int]) -> None:
        """Let clients register that were held out so far; from now on they can be asked."""
        self._admitted_newcomers |= set(newcomers)
        described = self.ask(describe, {c: {} for c in newcomers}, measuring=True)
        self._registered = self.registered | described

    def said_at_the_start(self) -> list[Message]:
        """Return what every client said that it has, in order; nothing for those who did not."""
        registered = self.registered
        labels = np.zeros_like(next(iter(registered.values()))["labels"])
        nothing = {"samples": 0, "labels": labels, "domain": "", "poisoned": False}
        return [registered.get(client, nothing) for client in self.clients]

    def record(self, **values: Any) -> None:  # noqa: ANN401 (arrays, structures, plain values)
        """Keep something of this round for the run's folder.

        A numpy array of the same shape in every round goes to ``NAME.npy`` [rounds, …], a
        `CoalitionStructure` to ``NAMEs.jsonl``, a plain value into the line of `metrics.jsonl`.
        """
        self._records |= values

    def stream(self, purpose: str) -> torch.Generator:
        """Return the server's random numbers for a purpose in this round."""
        return stream(self.config.seed, "server", self.round, purpose)

    @property
    def lr(self) -> float:
        """The learning rate of this round."""
        return learning_rate(self.config, self.round)

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
        self.register()
        if state is None:
            self._begin(0)
            self._method_at_work = True
            state = self.algorithm.start(self)
            self._method_at_work = False
            if self.newcomers:
                self.algorithm.check_newcomers(state)
        for t in range(after + 1, self.config.rounds + 1):
            began = time.perf_counter()
            self._begin(t)
            self._method_at_work = True
            state = self._after(state, t)
            self._method_at_work = False
            if attendance(self.config.attendance)[0] in ("dropout", "deadline"):
                self.record(missing=sorted(self.failures.lost))
            self.failures.end_round(self.present)
            if self.config.keep == "best":
                self._keep(state)
            metrics = self._metrics(state)
            metrics["seconds"] = time.perf_counter() - began
            yield Round(t, state, metrics, self._records)

    def memories(self) -> dict[int, dict[str, Any]]:
        """Return what the clients keep, for a checkpoint."""
        return self._engine.memories()

    def restore(self, memories: Mapping[int, Mapping[str, Any]]) -> None:
        """Give the clients back what they kept."""
        self._engine.restore(memories)

    def recall(self, line: Mapping[str, Any]) -> None:
        """Remember who was left out so far, from the metrics of the last round."""
        self.failures.recall(line)

    def _begin(self, t: int) -> None:
        self.round = t
        self._losses, self._records = {}, {}
        self.failures.begin_round(missing_in(self.config, t) if t else frozenset())
        if t:
            self.present = self._admitted(present_in(self.config, t))

    def _admitted(self, clients: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(c for c in clients if c not in self.failures.quarantined)

    def _after(self, state: State, t: int) -> State:
        """Return the state after a round; the same if nobody who took part gave an answer.

        A client that is alone in a round must not be able to end the run. It ends if there is
        nobody left to hope for.
        """
        if self.present:
            try:
                return self.algorithm.round(self, state, t)
            except NobodyAnsweredError:
                if self.failures.hopeless(self.clients):
                    raise
        elif len(self.failures.quarantined) == len(self.clients):
            client, reason = next(iter(self.failures.quarantined.items()))
            raise NobodyAnsweredError(
                f"round {t}: no client is left to ask (client {client}: {reason})"
            )
        return state

    def _faults(
        self, task: Task, messages: Mapping[int, Message], answers: Replies
    ) -> dict[int, str]:
        """Return what is wrong with the replies that came."""
        registered = {} if task is describe else self.registered
        questions = {
            client: Asked(
                self.layout,
                self.initial_model,
                message,
                int(registered[client]["samples"]) if client in registered else 0,
                targets=None if self.goal is None else self.goal.targets,
            )
            for client, message in messages.items()
            if client not in answers.refused
        }
        return faults(task, questions, answers.replies, self.config.norm_limit)

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
            "refused": {str(client): reason for client, reason in self.failures.refused.items()},
            **self.failures.document(),
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
        if self._method_at_work and states_epsilon and task.name not in self.algorithm.traits.asks:
            raise InvalidInputError(
                f"{self.config.algorithm} asks its clients for {task.name!r}, which its `traits` do"
                " not name, so nobody has checked what that reveals; it cannot be private"
            )

    def in_use(self, state: State) -> dict[str, dict[int, Message]]:
        """Return what every client needs to use its model, by kind of model.

        As `Algorithm.deployed`; the first kind, which results report, is that of each client's
        best round if the run keeps it.
        """
        kinds = self.algorithm.deployed(self, state)
        if self.config.keep == "best":
            first = next(iter(kinds))
            best: dict[int, Message] = {
                c: {**each, "kept": True} for c, each in kinds[first].items()
            }
            return {**kinds, first: best}
        return kinds

    def _keep(self, state: State) -> None:
        """Have every client decide whether this round is its best so far."""
        messages = next(iter(self.algorithm.deployed(self, state).values()))
        replies = self.ask(keep, messages, measuring=True)
        rounds = [replies[c]["round"] if c in replies else None for c in self.clients]
        self.record(per_client_kept_round=[each or None for each in rounds])

    def evaluation(self, state: State) -> dict[str, Any]:
        """Return how good every client's model is on its own test data.

        Means are over the honest clients: what an adversary's model is worth to the adversary is
        no merit of the method.
        """
        metrics: dict[str, Any] = {}
        for number, (kind, messages) in enumerate(self.in_use(state).items()):
            prefix = "" if number == 0 else f"{kind}_"
            replies = self.evaluated(messages)
            honest = [c for c in self.honest if c in replies]
            if not honest:
                raise NoSolutionError(f"round {self.round}: no honest client has a usable model")
            own = [replies[c]["accuracy"] for c in honest if "accuracy" in replies[c]]
            metrics |= {
                f"{prefix}mean_test_accuracy": float(np.mean(own)) if own else None,
                f"{prefix}worst_client_accuracy": float(np.min(own)) if own else None,
                f"{prefix}mean_test_loss": float(np.mean([replies[c]["loss"] for c in honest])),
                f"{prefix}per_client_test_accuracy": [
                    replies[c]["accuracy"] if c in replies else None for c in self.clients
                ]
                if own
                else None,
            }
            if number == 0:
                metrics["model"] = kind
            if self.goal is not None:
                metrics[f"{prefix}metrics"] = self._summaries(replies, honest)
        return metrics

    def evaluated(self, messages: Mapping[int, Message]) -> dict[int, Message]:
        """Return how good the models of some messages are, with the run's metrics if it has any."""
        if self.goal is not None:
            names = [metric.name for metric in self.goal.metrics]
            messages = {c: {**message, "metrics": names} for c, message in messages.items()}
        return self.ask(evaluate, messages, measuring=True)

    def _summaries(self, replies: Mapping[int, Message], honest: Sequence[int]) -> dict[str, Any]:
        assert self.goal is not None
        summaries = {}
        for place, metric in enumerate(self.goal.metrics):
            values: list[float | None] = [
                float(replies[c]["metrics"][place])
                if c in replies and replies[c]["defined"][place]
                else None
                for c in self.clients
            ]
            summaries[metric.name] = summary(metric, values, honest)
        return summaries

    @property
    def honest(self) -> tuple[int, ...]:
        """Clients whose data is not poisoned; everyone if all is."""
        registered = self.registered
        return tuple(c for c in registered if not registered[c]["poisoned"]) or self.clients
