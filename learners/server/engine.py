"""What carries messages to clients, which of their replies a server accepts, and what was sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from coalitions.registry import Registry
from learners.client.client import Site
from learners.task import Asked, Message, ModelRows, Reveals, Task

# ----------------------------------------------------------------------------------------
# What an engine is: it carries messages to clients and brings their answers back.


@dataclass(frozen=True)
class Replies:
    """The answers of the clients that answered, and why the others' were refused.

    `not_stacked` counts, by reason, what could not be computed for several clients at once where
    the run asked for that.
    """

    replies: dict[int, Message]
    refused: dict[int, str] = field(default_factory=dict)
    not_stacked: dict[str, int] = field(default_factory=dict)


class Engine(Protocol):
    """Where asked tasks run: in this process, in several, or on many machines."""

    def ask(self, task: Task, messages: Mapping[int, Message], round: int) -> Replies:
        """Have each client do a task with its message."""
        ...

    def memories(self) -> dict[int, dict[str, Any]]:
        """Return what the clients keep, for a checkpoint."""
        ...

    def restore(self, memories: Mapping[int, Mapping[str, Any]]) -> None:
        """Give the clients back what they kept."""
        ...

    def close(self) -> None:
        """End what was started."""
        ...


MakeEngine: TypeAlias = Callable[[Site, Path | None], Engine]
"""Maps the clients of a run, and the run's folder if it has one, to who carries messages."""

ENGINES: Registry[MakeEngine] = Registry(
    "engine", "learners.server.local_engine", "learners.flower.simulation"
)


# ----------------------------------------------------------------------------------------
# Which replies to a question a server takes: it believes nobody.
#
# A client may run other code than ours, so what its own gate let out says nothing. Every reply is
# held against what its task declares (`learners.task`), and its models against those of the
# others.


def faults(
    task: Task, asked: Mapping[int, Asked], replies: Mapping[int, Any], norm_limit: float
) -> dict[int, str]:
    """Return what is wrong with the replies to a question, by client; sound ones are missing.

    Parameters
    ----------
    task
        What the clients were asked to do.
    asked
        What each one's reply is held against.
    replies
        What came, of whatever kind it is.
    norm_limit
        How many times the median of the norms a norm may be; of a lone reply, how many times that
        of what was sent.
    """
    reasons: dict[int, str] = {}
    for client, question in asked.items():
        if client not in replies:
            reasons[client] = "it did not answer"
            continue
        try:
            wrong = _fault(task, question, replies[client])
        except Exception as error:  # (whatever it is: no reply may end the run)
            wrong = f"the reply could not be checked ({type(error).__name__})"
        if wrong is not None:
            reasons[client] = wrong
    sound = {client: replies[client] for client in asked if client not in reasons}
    return reasons | _oversized(task, asked, sound, norm_limit)


def _fault(task: Task, asked: Asked, reply: object) -> str | None:
    """Return the first thing that is wrong with a reply by itself."""
    if not isinstance(reply, Mapping):
        return "the reply is not a table"
    undeclared = [name for name in reply if name not in task.reply]
    if undeclared:
        # Its name is the client's own text, so only its beginning is shown, and that escaped.
        return f"the reply has {ascii(undeclared[0])[:40]}, which was not asked for"
    checked: dict[str, Any] = {}
    for name, reveals in task.reply.items():
        form, asked = task.form(name), replace(asked, reply=checked)
        due = form.when(asked)
        if name not in reply:
            if due and reveals is not Reveals.PROGRESS:  # which is for whoever watches
                return f"{name} is missing"
            continue
        if not due:
            return f"the reply has {name}, which was not asked for"
        wrong = form.fault(name, reply[name], asked)
        if wrong is not None:
            return wrong
        checked[name] = reply[name]
    return None


def _oversized(
    task: Task, asked: Mapping[int, Asked], replies: Mapping[int, Any], limit: float
) -> dict[int, str]:
    """Return whose models are too large beside the others', or a lone one beside what was sent.

    The lower of two middle norms is the median: of two replies the smaller one is the measure, or
    the larger could be of any size. Norms of zero are no measure.
    """
    reasons: dict[int, str] = {}
    for name in task.reply:
        form = task.form(name)
        if not isinstance(form, ModelRows) or not form.compared:
            continue
        norms = {c: form.norm(reply[name]) for c, reply in replies.items() if name in reply}
        measure, whose = (
            sorted(norms.values())[(len(norms) - 1) // 2] if norms else 0.0,
            "the median",
        )
        if len(norms) == 1:  # a method may ask one client after the other
            sent = asked[next(iter(norms))].message.get(name)
            measure, whose = 0.0 if sent is None else form.norm(sent), "that of what was sent"
        for client, norm in norms.items():
            if 0 < limit * measure < norm:
                reasons.setdefault(
                    client, f"the norm of {name} is {norm / measure:.3g} times {whose}"
                )
    return reasons


# ----------------------------------------------------------------------------------------
# What travelled between server and clients, counted where it passes.

NUMBER_BYTES = 8
"""What a plain number is taken to weigh."""


@dataclass(frozen=True)
class Traffic:
    """Parameters and bytes that went up to the server and down to clients.

    Parameters are the entries of tensors; plain numbers, text and metrics weigh bytes only.
    """

    up: int = 0
    down: int = 0
    bytes_up: int = 0
    bytes_down: int = 0


class Ledger:
    """Traffic by round and client; round 0 is what happened before the first.

    Parameters
    ----------
    n_rounds, n_clients
        Size of the book.
    """

    def __init__(self, n_rounds: int, n_clients: int) -> None:
        self.counts: NDArray[np.int64] = np.zeros((n_rounds + 1, n_clients, 4), dtype=np.int64)

    def sent_down(self, round: int, client: int, message: Message) -> None:
        """Book a message to a client."""
        self.counts[round, client, 1::2] += _weight(message)

    def sent_up(self, round: int, client: int, reply: Message) -> None:
        """Book a client's reply."""
        self.counts[round, client, 0::2] += _weight(reply)

    def total(self) -> Traffic:
        """Return the traffic of all rounds and clients."""
        return Traffic(*map(int, self.counts.sum(axis=(0, 1))))

    def of_round(self, round: int) -> Traffic:
        """Return the traffic of all clients in a round."""
        return Traffic(*map(int, self.counts[round].sum(axis=0)))

    def of(self, round: int, client: int) -> Traffic:
        """Return the traffic of one client in one round."""
        return Traffic(*map(int, self.counts[round, client]))


def _weight(message: Message) -> tuple[int, int]:
    """Return the number of parameters and of bytes in a message."""
    parameters = n_bytes = 0
    for value in message.values():
        if isinstance(value, Tensor):
            parameters += value.numel()
            n_bytes += value.numel() * value.element_size()
        elif isinstance(value, np.ndarray):
            n_bytes += value.nbytes
        elif isinstance(value, str):
            n_bytes += len(value.encode())
        elif isinstance(value, (list, tuple)):
            n_bytes += NUMBER_BYTES * len(value)
        else:
            n_bytes += NUMBER_BYTES
    return parameters, n_bytes
