"""Questions to nodes and their replies, and how Flower's grid carries them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from learners.flower.records import NOTHING, UnreadableError, from_records, sound_names, to_records
from learners.privacy.mechanism import RATE, RELEASES, STEPS
from learners.task import MOST_COUNTED, Message

if TYPE_CHECKING:
    from flwr.app import Message as FlowerMessage
    from flwr.app import RecordDict
    from flwr.serverapp import Grid

# ----------------------------------------------------------------------------------------
# What goes beside a message to a node, and beside its reply: the question, and what came of it.

MESSAGE_TYPE = "query.coalitions"
"""How Flower knows our messages."""

_QUESTION, _ANSWER, _TEXT = "question", "answer", "json"

DONE, REFUSED, LOST, HELLO, ENDS = "done", "refused", "lost", "hello", "ends"
"""What came of a question; ENDS: an answer of a private run that must not be dropped."""

BOOKS = (RELEASES, STEPS, RATE)
"""What a client's account of privacy has."""

GREETING = "hello"
"""The task that only asks for a node's client."""


@dataclass(frozen=True)
class NodeQuestion:
    """What a node is asked.

    Attributes
    ----------
    run, name
        Which run, and which question of it.
    task, round
        What to do, in which round.
    builds_on
        The version of the client's memory that it begins with.
    kept
        Versions that the server may go back to; None if nothing is to be forgotten yet.
    settings
        The run's configuration, as TOML.
    message
        What the task is given.
    """

    run: str
    name: str
    task: str
    round: int
    builds_on: str
    kept: tuple[str, ...] | None
    settings: str
    message: Message

    def records(self) -> RecordDict:
        """Return it as Flower carries it."""
        from flwr.app import ConfigRecord

        records = to_records(self.message)
        about = {
            "run": self.run,
            "name": self.name,
            "task": self.task,
            "round": self.round,
            "builds_on": self.builds_on,
            "kept": None if self.kept is None else list(self.kept),
            "settings": self.settings,
        }
        records[_QUESTION] = ConfigRecord({_TEXT: json.dumps(about)})
        return records

    @classmethod
    def read(cls, records: RecordDict) -> NodeQuestion:
        """Return the question that records stand for."""
        about = _about(records, _QUESTION)
        try:
            kept = about["kept"]
            question = cls(
                about["run"],
                about["name"],
                str(about["task"]),
                int(about["round"]),
                about["builds_on"],
                None if kept is None else tuple(kept),
                str(about["settings"]),
                from_records(records),
            )
        except (KeyError, TypeError, ValueError):
            raise UnreadableError("the question is not one of ours") from None
        earlier = [each for each in (question.builds_on, *(question.kept or ())) if each != NOTHING]
        if not sound_names(question.run, question.name, *earlier):
            raise UnreadableError("the question is not one of ours")
        return question


@dataclass(frozen=True)
class Outcome:
    """What came of a question.

    Attributes
    ----------
    status
        `DONE`, `REFUSED`, `LOST`, `HELLO` or `ENDS`.
    reply
        The reply, if it is done.
    reason
        Why not, if it is not.
    version
        The version that the client's memory is at now.
    books
        What the memory says about privacy: counts of what left, see `learners.privacy.mechanism`.
    client
        The number of the node's client, for a greeting.
    """

    status: str
    reply: Message | None = None
    reason: str = ""
    version: str = NOTHING
    books: Message | None = None
    client: int = -1

    def records(self) -> RecordDict:
        """Return it as Flower carries it."""
        from flwr.app import ConfigRecord

        records = to_records(self.reply or {})
        about = {
            "status": self.status,
            "reason": self.reason,
            "version": self.version,
            "books": dict(self.books or {}),
            "client": self.client,
        }
        records[_ANSWER] = ConfigRecord({_TEXT: json.dumps(about)})
        return records

    @classmethod
    def read(cls, records: RecordDict, limit: int) -> Outcome:
        """Return the outcome that records of a stranger stand for; see `from_records`."""
        about = _about(records, _ANSWER)
        status, version, client = (about.get(key) for key in ("status", "version", "client"))
        sound = (
            status in (DONE, REFUSED, LOST, HELLO, ENDS)
            and (version == NOTHING or sound_names("0" * 32, version))
            and type(client) is int
            and _sound_books(about.get("books"))
        )
        if not sound:
            raise UnreadableError("the reply is not one of ours")
        reply = from_records(records, limit)
        reason = quoted(str(about.get("reason", "")))
        return cls(str(status), reply, reason, str(version), about["books"], int(about["client"]))


def quoted(text: str) -> str:
    """Return a node's own text as we repeat it: only its beginning, and that escaped."""
    return ascii(text[:200])[1:-1][:120]


def _sound_books(books: object) -> bool:
    """Tell whether an account of privacy has counts and a rate that a client can have."""
    if not isinstance(books, dict) or not books.keys() <= set(BOOKS):
        return False
    counts, rate = [books.get(name, 0) for name in (RELEASES, STEPS)], books.get(RATE, 1.0)
    return (
        all(type(count) is int and 0 <= count <= MOST_COUNTED for count in counts)
        and type(rate) in (int, float)
        and 1 / MOST_COUNTED <= rate <= 1
    )


def _about(records: RecordDict, place: str) -> dict[str, Any]:
    text = records.config_records.get(place, {}).get(_TEXT)
    if not isinstance(text, str) or len(text) > 1 << 16:
        raise UnreadableError(f"there is no {place}")
    try:
        about = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableError(f"the {place} is not JSON") from None
    if not isinstance(about, dict):
        raise UnreadableError(f"the {place} is not a table")
    return about


# ----------------------------------------------------------------------------------------
# Who carries records to nodes: Flower's grid, or a carrier that asks one elsewhere.

_TRANSPORT = ("httpx", "httpcore", "grpc")
"""Packages whose errors, like those of the system, are of the way to the SuperLink.

Every other error arises while Flower reads a reply, and is the node's that sent it. So is an answer
of the SuperLink that it cannot give the reply: if it answers nothing at all, `nodes` fails, too.
"""


@dataclass(frozen=True)
class Parcel:
    """Records for a node."""

    node: int
    content: RecordDict
    round: int
    seconds: float


@dataclass(frozen=True)
class Delivery:
    """What came back for a parcel: records, or the number of Flower's error, −1 if unreadable.

    `reason` is what Flower says about the error; it may repeat a node's own words.
    """

    parcel: str
    content: RecordDict | None
    error: int | None
    reason: str = ""


class Carrier(Protocol):
    """The part of Flower's grid that we need."""

    def nodes(self) -> set[int]:
        """Return the nodes that are there."""
        ...

    def push(self, parcels: Sequence[Parcel]) -> list[str | None]:
        """Send parcels off; return a name for each, None if it could not be sent."""
        ...

    def pull(self, parcels: Iterable[str]) -> list[Delivery]:
        """Return what has come back for parcels."""
        ...

    def close(self) -> None:
        """End what was started."""
        ...


class GridCarrier:
    """Flower's own grid, as the server app is given it.

    Parameters
    ----------
    grid
        The grid.
    at_once
        Seconds that a reply is waited for before the next one is looked at.
    """

    def __init__(self, grid: Grid, at_once: float = 0.5) -> None:
        self._grid = grid
        self._at_once = at_once
        self._pulls: dict[str, _Pull] = {}

    def nodes(self) -> set[int]:
        """Return the nodes that are there."""
        return set(self._grid.get_node_ids())

    def push(self, parcels: Sequence[Parcel]) -> list[str | None]:
        """Send parcels off, one by one: many large ones do not fit in one request of Flower's."""
        from flwr.app import Message

        names: list[str | None] = []
        for parcel in parcels:
            message = Message(
                parcel.content,
                dst_node_id=parcel.node,
                message_type=MESSAGE_TYPE,
                ttl=parcel.seconds,
                group_id=str(parcel.round),
            )
            sent = list(self._grid.push_messages([message]))
            names.append(sent[0] if sent else None)
        return names

    def pull(self, parcels: Iterable[str]) -> list[Delivery]:
        """Return what has come back; a reply that Flower cannot read, or not yet, harms no other.

        Each is pulled by itself: Flower gives a reply once, and none of those that it is asked for
        together if it fails at one. And each has a thread: Flower waits for all pieces of a reply,
        for two hours if its node goes on sending, and the others do not wait with it.
        """
        names = list(parcels)
        self._pulls = {name: pull for name, pull in self._pulls.items() if name in names}
        deliveries: list[Delivery] = []
        for name in names:
            if name not in self._pulls:
                self._pulls[name] = _Pull(self._grid, name)
                self._pulls[name].join(self._at_once)
            if not self._pulls[name].is_alive():
                deliveries += self._pulls.pop(name).deliveries()
        return deliveries

    def close(self) -> None:
        """Leave the grid to Flower."""


class _Pull(threading.Thread):
    """One reply, on its way."""

    def __init__(self, grid: Grid, parcel: str) -> None:
        super().__init__(daemon=True)
        self._grid, self._parcel = grid, parcel
        self._came: list[Delivery] = []
        self._error: Exception | None = None
        self.start()

    def run(self) -> None:
        """Pull it."""
        try:
            self._came = [_delivery(each) for each in self._grid.pull_messages([self._parcel])]
        except Exception as error:
            self._error = error

    def deliveries(self) -> list[Delivery]:
        """Return what came, once the thread has ended: the reply, an error, or nothing yet."""
        if self._error is None:
            return self._came
        if _of_transport(self._error):
            raise self._error
        return [Delivery(self._parcel, None, -1)]


def _of_transport(error: Exception) -> bool:
    if isinstance(error, OSError):
        return True
    return type(error).__module__.startswith(_TRANSPORT) and not hasattr(error, "response")


def _delivery(message: FlowerMessage) -> Delivery:
    parcel = message.metadata.reply_to_message_id
    if message.has_error():
        return Delivery(parcel, None, int(message.error.code), str(message.error.reason))
    return Delivery(parcel, message.content, None)
