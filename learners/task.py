"""What a client can be asked, and what its answer gives away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from coalitions.registry import Registry

if TYPE_CHECKING:
    from learners.client import Client

Message: TypeAlias = Mapping[str, Any]
"""What travels: names to tensors (counted as parameters), numpy arrays and plain values (not)."""


class Reveals(Enum):
    """What an entry of a reply says about the client's data."""

    MODEL = "a model trained from what was received, or kept in memory, under the same name"
    STATISTIC = "a tensor computed from the data: a gradient, prototypes"
    METRIC = "a few numbers computed from the training data, which the method goes by"
    HELD_OUT = "numbers computed from validation data with models that were sent or received"
    PROGRESS = "numbers for whoever watches, which nothing depends on: the training loss"
    SIZE = "how much there is: images, evaluations; taken to be public"


@dataclass(frozen=True)
class Task:
    """A named piece of work of a client.

    Attributes
    ----------
    name
        How a client knows it, here or on another machine.
    run
        Maps the client and the message to the reply. It may read and write `client.memory`, which
        stays with the client; it must not write into the message's tensors.
    reply
        Every entry a reply may have, and what it reveals. An entry that is not declared here
        does not leave the client: the boundary refuses it.
    watches
        Whether the reply is how a run is watched, and no part of a method.
    by_fit
        Whether every model in a reply is what `learners.training.fit` returned, or a part of it:
        then the noise of DP-SGD protects it.
    """

    name: str
    run: Callable[[Client, Message], Message]
    reply: Mapping[str, Reveals]
    watches: bool = False
    by_fit: bool = False


TASKS: Registry[Task] = Registry("task", "learners.tasks", "learners.algorithms")


def task(
    name: str, *, watches: bool = False, by_fit: bool = False, **reply: Reveals
) -> Callable[[Callable[[Client, Message], Message]], Task]:
    """Return a decorator that makes a function of (client, message) the task called `name`.

    Parameters
    ----------
    name
        Name of the task.
    watches, by_fit
        See `Task`.
    **reply
        Entries its replies have, and what each reveals.
    """

    def make(run: Callable[[Client, Message], Message]) -> Task:
        return TASKS.register(name)(Task(name, run, reply, watches, by_fit))

    return make
