"""Who carries records to nodes: Flower's grid, or somebody who asks one elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from learners.flower.questions import MESSAGE_TYPE

if TYPE_CHECKING:
    from flwr.app import Message as FlowerMessage
    from flwr.app import RecordDict
    from flwr.serverapp import Grid

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
