"""Who carries records to nodes: Flower's grid, or somebody who asks one elsewhere."""

from __future__ import annotations

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

Every other error arises while Flower reads a reply, and is the node's that sent it.
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
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

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
        """Return what has come back; a reply that Flower cannot read harms no other."""
        names = list(parcels)
        if not names:
            return []
        try:
            return [_delivery(each) for each in self._grid.pull_messages(names)]
        except Exception as error:
            if isinstance(error, OSError) or type(error).__module__.startswith(_TRANSPORT):
                raise
            if len(names) == 1:
                return [Delivery(names[0], None, -1)]
            return [delivery for name in names for delivery in self.pull([name])]

    def close(self) -> None:
        """Leave the grid to Flower."""


def _delivery(message: FlowerMessage) -> Delivery:
    parcel = message.metadata.reply_to_message_id
    if message.has_error():
        return Delivery(parcel, None, int(message.error.code), str(message.error.reason))
    return Delivery(parcel, message.content, None)
