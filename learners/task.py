"""What a client can be asked, and what its answer gives away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from coalitions.registry import Registry
from learners.reply_schema import COUNT, TRAINED, Form, Number, Rows

if TYPE_CHECKING:
    from learners.client.client import Client

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
        Whether every model in a reply is what `learners.client.training.fit` returned, or a part of
        it: then the noise of DP-SGD protects it.
    forms
        What entries look like, where their kind does not say it already: see `form`.
    """

    name: str
    run: Callable[[Client, Message], Message]
    reply: Mapping[str, Reveals]
    watches: bool = False
    by_fit: bool = False
    forms: Mapping[str, Form] = field(default_factory=dict)

    def form(self, name: str) -> Form:
        """Return what an entry must look like for a server to take it.

        What is not declared follows from what it reveals. A model is like the one that was sent
        under its name; `samples` are images trained on. Of a bare statistic or metric nothing is
        known but that it is finite.
        """
        if name in self.forms:
            return self.forms[name]
        reveals = self.reply[name]
        if reveals is Reveals.SIZE:
            return TRAINED if name == "samples" else COUNT
        return {Reveals.MODEL: Rows(), Reveals.PROGRESS: Number()}.get(reveals, Form())


TASKS: Registry[Task] = Registry("task", "learners.client.tasks", "learners.algorithms")
"""All tasks by name: ``federation.ask(TASKS["train"], messages)``."""


def task(
    name: str,
    *,
    watches: bool = False,
    by_fit: bool = False,
    **reply: Reveals | tuple[Reveals, Form],
) -> Callable[[Callable[[Client, Message], Message]], Task]:
    """Return a decorator that makes a function of (client, message) the task called `name`.

    Parameters
    ----------
    name
        Name of the task.
    watches, by_fit
        See `Task`.
    **reply
        Entries its replies have, and what each reveals; with a form, how each looks: see
        `learners.reply_schema`.
    """
    entries = {key: value if isinstance(value, tuple) else (value,) for key, value in reply.items()}
    reveals = {key: value[0] for key, value in entries.items()}
    forms = {key: value[1] for key, value in entries.items() if len(value) == 2}

    def make(run: Callable[[Client, Message], Message]) -> Task:
        return TASKS.register(name)(Task(name, run, reveals, watches, by_fit, forms))

    return make
