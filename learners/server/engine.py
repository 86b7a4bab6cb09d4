"""What an engine is: it carries messages to clients and brings their answers back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from coalitions.registry import Registry
from learners.client.client import Site
from learners.task import Message, Task


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
