"""Clients at the nodes of a Flower federation: questions go out as messages, replies come back.

A node says once which client it is. A client whose node is gone, late or broken is left out of the
question with the reason; the others' replies stand. A question that a node lost is sent again, as
long as there is time, and has one effect however often it arrives (`learners.flower.records`).
"""

from __future__ import annotations

import math
import time
import uuid
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from coalitions.errors import CoalitionError, DamagedFileError, NoSolutionError
from coalitions.files.opening import load_json
from coalitions.files.writing import write_json
from learners.client.client import Site
from learners.flower.questions import (
    BOOKS,
    DONE,
    ENDS,
    GREETING,
    HELLO,
    LOST,
    Carrier,
    Delivery,
    NodeQuestion,
    Outcome,
    Parcel,
    quoted,
)
from learners.flower.records import NOTHING, UnreadableError, sound_names
from learners.privacy.mechanism import RELEASES, Privacy
from learners.server.engine import Replies
from learners.task import Message, Task

if TYPE_CHECKING:
    from flwr.app import RecordDict

_RETRIES = 2
"""How often a question is sent again to a client whose node lost it."""

_TRANSIENT = {3, 4, 5, 8}
"""Flower's errors of messages and nodes that went missing: another try may succeed."""

_GREETINGS = 3
"""How often a node is asked who it is."""

_LEAST_LIMIT = 1 << 20
_CHECKPOINTS = 3
"""Checkpoints whose versions nodes keep: those of a run's folder, and one that is being written."""


class NoNodesError(CoalitionError):
    """Nobody to begin with."""


@dataclass(frozen=True)
class Patience:
    """How long a server waits, in seconds.

    Attributes
    ----------
    start
        For all clients to be there, before it begins with those that are.
    answer
        For an answer.
    return_
        For a node that went away during a question to come back.
    look
        From one look for answers to the next.
    """

    start: float = 300.0
    answer: float = 3600.0
    return_: float = 10.0
    look: float = 0.5


@dataclass(frozen=True)
class Identity:
    """A run's id, by which nodes know it again, and how often its server was started."""

    run: str
    life: int

    @classmethod
    def of(cls, folder: Path | None) -> Identity:
        """Return the identity of the run in a folder, started once more; a new one without."""
        if folder is None:
            return cls(uuid.uuid4().hex, 1)
        path = folder / "flower.json"
        if not path.is_file():
            identity = cls(uuid.uuid4().hex, 1)
        else:
            known: Any = load_json(path.read_bytes(), str(path))
            sound = isinstance(known, dict) and type(known.get("life")) is int
            if not sound or not sound_names(known.get("run")):
                raise DamagedFileError(f"{path} is damaged: it does not tell the run's id")
            identity = cls(known["run"], known["life"] + 1)
        write_json(path, {"run": identity.run, "life": identity.life})
        return identity


class GridEngine:
    """An engine whose clients are nodes.

    Parameters
    ----------
    carrier
        Who carries records.
    site
        The run, for its settings and the size of its models.
    identity
        The run's id.
    patience
        How long to wait.
    """

    def __init__(
        self, carrier: Carrier, site: Site, identity: Identity, patience: Patience
    ) -> None:
        self._settings = site.config.toml()
        self._carrier = carrier
        self._site = site
        self._identity = identity
        self._patience = patience
        self._n_clients = site.config.clients
        self._homes: dict[int, int] = {}
        self._greeted: dict[int, int] = {}
        self._greetings: dict[str, tuple[int, float]] = {}
        self._complaint = ""
        self._looked = -math.inf
        self._number = 0
        self._round = 0
        self._versions: dict[int, str] = {}
        self._books: dict[int, dict[str, Any]] = {}
        self._kept: deque[dict[int, str]] = deque(maxlen=_CHECKPOINTS)
        self._gather()

    def ask(self, task: Task, messages: Mapping[int, Message], round: int) -> Replies:
        """Have each client's node do a task with its message."""
        self._enter(round)
        self._number += 1
        contents = {
            client: self._question(client, task.name, round, message).records()
            for client, message in messages.items()
        }
        done: dict[int, Outcome] = {}
        refused: dict[int, str] = {}
        arrived = self._exchange(contents, round)
        for client in sorted(messages):
            came = arrived[client]
            limit = self._limit(messages[client])
            outcome = came if isinstance(came, str) else _outcome_in(came, limit)
            if isinstance(outcome, str):
                refused[client] = outcome
                continue
            if outcome.status == ENDS and self._site.privacy is not None and not task.watches:
                raise NoSolutionError(f"round {round}: client {client}: {outcome.reason}")
            if outcome.status == LOST:
                self._versions.pop(client, None)
                refused[client] = "it lost its memory of the rounds so far"
            elif outcome.status != DONE or outcome.reply is None:
                refused[client] = outcome.reason or "it gave no reason"
            else:
                done[client] = outcome
        refused |= self._overspent(done)
        replies: dict[int, Message] = {}
        for client, outcome in done.items():
            if client not in refused and outcome.reply is not None:
                replies[client] = outcome.reply
                self._remember(client, outcome)
        return Replies(replies, refused)

    def memories(self) -> dict[int, dict[str, Any]]:
        """Return which version each client's memory is at; the memory itself stays at its node."""
        return {
            client: {"version": version, **self._books.get(client, {})}
            for client, version in self._versions.items()
        }

    def restore(self, memories: Mapping[int, Mapping[str, Any]]) -> None:
        """Have the clients go on from these versions."""
        self._versions = {client: str(each["version"]) for client, each in memories.items()}
        self._books = {
            client: {name: each[name] for name in BOOKS if name in each}
            for client, each in memories.items()
        }
        self._kept.clear()
        self._kept.append(dict(self._versions))

    def close(self) -> None:
        """End what was started."""
        self._carrier.close()

    def _question(self, client: int, task: str, round: int, message: Message) -> NodeQuestion:
        kept = None
        if len(self._kept) > 1:
            now = self._versions.get(client, NOTHING)
            kept = tuple({v[client]: None for v in (*self._kept, {client: now}) if client in v})
        name = f"{self._identity.life}.{self._number}"
        builds_on = self._versions.get(client, NOTHING)
        return NodeQuestion(
            self._identity.run, name, task, round, builds_on, kept, self._settings, message
        )

    def _remember(self, client: int, outcome: Outcome) -> None:
        if outcome.version != NOTHING:
            self._versions[client] = outcome.version
        self._books[client] = dict(outcome.books or {})

    def _overspent(self, done: Mapping[int, Outcome]) -> dict[int, str]:
        """Return whose account of privacy cannot be true, by client: ε is computed from them all.

        A question has one upload at most. What else an account says is wrong only if it comes to
        more than the run may spend.
        """
        privacy = self._site.privacy
        if privacy is None:
            return {}
        books = {client: outcome.books or {} for client, outcome in done.items()}
        wrong = {
            client: "its account of privacy has more uploads than it was asked for"
            for client, each in books.items()
            if each.get(RELEASES, 0) > self._books.get(client, {}).get(RELEASES, 0) + 1
        }
        books = {client: each for client, each in books.items() if client not in wrong}
        if _excess(privacy, books) is not None:
            excesses = {client: _excess(privacy, {client: each}) for client, each in books.items()}
            wrong |= {client: excess for client, excess in excesses.items() if excess is not None}
        return wrong

    def _enter(self, round: int) -> None:
        """Note, at the first question of a round, what the last checkpoint refers to."""
        if round > self._round:
            if self._round and self._round % self._site.config.checkpoint_every == 0:
                self._kept.append(dict(self._versions))
            self._round = round

    def _limit(self, message: Message) -> int:
        """Return the most bytes that a reply to a message can have."""
        sent = sum(v.nbytes for v in message.values() if isinstance(v, (Tensor, np.ndarray)))
        return _LEAST_LIMIT + 16 * self._site.initial.nbytes + 4 * sent

    def _gather(self) -> None:
        """Wait for the nodes of all clients; go on with those that are there in time."""
        until = time.monotonic() + self._patience.start
        while len(self._homes) < self._n_clients and time.monotonic() < until:
            self._look_round()
            for delivery in self._carrier.pull(self._greetings):
                self._meet(delivery)
            if len(self._homes) < self._n_clients:
                time.sleep(self._patience.look)
        if not self._homes:
            raise NoNodesError(
                f"no node of the federation was there within {self._patience.start:g} s; start a"
                " SuperNode for each client, with its number as partition-id in --node-config"
                + (f"; the last that was not taken: {self._complaint}" if self._complaint else "")
            )

    def _look_round(self) -> None:
        """Note who left, and ask those who are new which client they are."""
        if time.monotonic() < self._looked + self._patience.look:
            return
        self._looked = time.monotonic()
        nodes = self._carrier.nodes()
        self._homes = {client: node for client, node in self._homes.items() if node in nodes}
        self._greeted = {node: n for node, n in self._greeted.items() if node in nodes}
        since = self._looked - self._patience.start
        self._greetings = {p: each for p, each in self._greetings.items() if each[1] > since}
        waiting = {node for node, _ in self._greetings.values()}
        settled = set(self._homes.values()) | waiting
        new = [n for n in nodes if n not in settled and self._greeted.get(n, 0) < _GREETINGS]
        name = f"{self._identity.life}.0"
        hello = NodeQuestion(
            self._identity.run, name, GREETING, 0, NOTHING, None, self._settings, {}
        ).records()
        sent = self._carrier.push([self._parcel(node, hello, 0) for node in new])
        for node, parcel in zip(new, sent, strict=True):
            self._greeted[node] = self._greeted.get(node, 0) + 1
            if parcel is not None:
                self._greetings[parcel] = node, self._looked

    def _meet(self, delivery: Delivery) -> None:
        """Note which client a node is, unless another node is that one."""
        node, _ = self._greetings.pop(delivery.parcel)
        if delivery.content is None:
            self._complaint = _spoken_error(delivery)
            return
        outcome = _outcome_in(delivery.content, _LEAST_LIMIT)
        if isinstance(outcome, str):
            self._complaint = outcome
            return
        self._greeted[node] = _GREETINGS
        if outcome.status != HELLO:
            self._complaint = outcome.reason
        elif not 0 <= outcome.client < self._n_clients:
            self._complaint = f"its client is {outcome.client}, not 0 … {self._n_clients - 1}"
        else:
            self._homes.setdefault(outcome.client, node)

    def _parcel(self, node: int, content: RecordDict, round: int) -> Parcel:
        return Parcel(node, content, round, self._patience.answer)

    def _exchange(
        self, contents: Mapping[int, RecordDict], round: int
    ) -> dict[int, RecordDict | str]:
        """Return what came for each client: records, or why nothing did."""
        began = time.monotonic()
        came: dict[int, RecordDict | str] = {}
        under_way: dict[str, int] = {}
        tries = dict.fromkeys(contents, 0)
        homeless_since: dict[int, float] = {}
        self._looked = -math.inf
        while True:
            self._look_round()
            busy = set(under_way.values())
            ready = [c for c in contents if c not in came and c not in busy and c in self._homes]
            parcels = [self._parcel(self._homes[c], contents[c], round) for c in ready]
            for client, parcel in zip(ready, self._carrier.push(parcels), strict=True):
                tries[client] += 1
                homeless_since.pop(client, None)
                if parcel is not None:
                    under_way[parcel] = client
                elif tries[client] > _RETRIES:
                    came[client] = "its node could not be reached"
            for delivery in self._carrier.pull([*under_way, *self._greetings]):
                if delivery.parcel in self._greetings:
                    self._meet(delivery)
                elif delivery.parcel in under_way:
                    client = under_way.pop(delivery.parcel)
                    if delivery.content is not None:
                        came[client] = delivery.content
                    elif delivery.error not in _TRANSIENT or tries[client] > _RETRIES:
                        came[client] = _spoken_error(delivery)
            now = time.monotonic()
            busy = set(under_way.values())
            for client in contents:
                if client in came or client in busy or client in self._homes:
                    continue
                # Who was not there when it was asked is not waited for; who was, may come back.
                awaited = tries[client] or self._greetings
                patience = self._patience.return_ if awaited else 0.0
                if now - homeless_since.setdefault(client, now) >= patience:
                    came[client] = "its node is not there"
            if len(came) == len(contents):
                return came
            if now - began > self._patience.answer:
                late = f"it did not answer within {self._patience.answer:g} s"
                return {client: came.get(client, late) for client in contents}
            time.sleep(self._patience.look)


def _outcome_in(content: RecordDict, limit: int) -> Outcome | str:
    """Return the outcome that a stranger's records stand for, or why they stand for none.

    Nothing that a node sends may end the run of the others, so every exception is its own.
    """
    try:
        return Outcome.read(content, limit)
    except UnreadableError as error:
        return str(error)
    except Exception as error:  # (whatever it is: its text may be the node's own)
        return f"its reply could not be read ({type(error).__name__})"


def _spoken_error(delivery: Delivery) -> str:
    if delivery.error in _TRANSIENT:
        return "its node went away before it answered"
    if delivery.error == -1:
        return "its reply could not be read"
    return f"its app failed: {quoted(delivery.reason)}"


def _excess(privacy: Privacy, books: Mapping[int, Mapping[str, Any]]) -> str | None:
    try:
        privacy.worst(books)
    except CoalitionError as error:
        return str(error)
    except Exception as error:  # (numbers that nobody has come upon are no reason to end a run)
        return f"nothing can be computed from its account of privacy ({type(error).__name__})"
    return None
