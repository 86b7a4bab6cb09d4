"""What a client can be asked, what its answer gives away, and what the answer must look like.

A form says of what type and shape an entry of a reply is and within what bounds, given what was
asked. It returns what is wrong with a value as a few words, None if nothing is; it raises nothing,
whatever the value is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from coalitions.registry import Registry
from learners.devices import to_host

if TYPE_CHECKING:
    from learners.client.client import Client
    from learners.data.client_data import Targets
    from learners.rows.parameters import Layout

# ----------------------------------------------------------------------------------------
# What entries of replies look like, so that a server can check them.

LARGEST = 1e100
"""Numbers beyond it are no measurement of anything, and a few of them could not be added up."""

MOST_COUNTED = 2**53
"""The largest count of anything: sums of some such counts fit into 64 bits."""

LONGEST_TEXT = 200
"""Characters of a text."""


@dataclass(frozen=True)
class Asked:
    """What a reply is the answer to.

    Attributes
    ----------
    layout
        What the columns of a model are.
    model
        A model as everyone begins with: of this type are all.
    message
        What the client was sent.
    samples
        Training samples that the client registered with.
    reply
        The entries that were found sound so far, in the order they are declared in.
    targets
        What the federation learns; None if only the network tells it.
    """

    layout: Layout
    model: Tensor
    message: Mapping[str, Any] = field(default_factory=dict)
    samples: int = 0
    reply: Mapping[str, Any] = field(default_factory=dict)
    targets: Targets | None = None

    @property
    def counted(self) -> int | None:
        """How many counts tell what a client has: one for each class or label."""
        return self.classes if self.targets is None else self.targets.n_counted

    @property
    def classes(self) -> int | None:
        """Number of classes, as the network tells it; None if it has no linear classifier."""
        head = self.layout.classifiers.get("head")
        return None if head is None else self.layout.shapes[next(iter(head))][0]

    def rows(self, name: str) -> int:
        """Return how many rows the client was sent under a name."""
        return len(self.message[name])


Shape: TypeAlias = Callable[[Asked], tuple[int | None, ...]]
"""The lengths of an array's axes; None where any length is right."""

Bound: TypeAlias = float | Callable[[Asked], float | None]


def each(name: str, more: int = 0) -> Shape:
    """Return the shape of one number for each row sent under a name, and some more."""
    return lambda asked: (asked.rows(name) + more,)


def _always(asked: Asked) -> bool:
    return True


@dataclass(frozen=True)
class Form:
    """Anything that is finite: the form of an entry that says nothing about itself.

    Attributes
    ----------
    when
        Whether the entry is due; if it is not, it must not be there.
    """

    when: Callable[[Asked], bool] = field(default=_always, kw_only=True)

    def fault(self, name: str, value: object, asked: Asked) -> str | None:
        """Return what is wrong with an entry; None if nothing is."""
        return None if finite(value) else f"{name} is not finite"


@dataclass(frozen=True)
class ModelRows(Form):
    """A tensor of the model's type.

    Attributes
    ----------
    shape
        Its shape; if None, that of what was sent under the same name, else that of a model.
    compared
        Whether its norm is compared with those of the others' replies. Honest models are of one
        size; honest gradients are not: the better a model fits, the smaller they are.
    """

    shape: Shape | None = None
    compared: bool = True

    def fault(self, name: str, value: object, asked: Asked) -> str | None:
        """Return what is wrong with a tensor."""
        if not isinstance(value, Tensor) or value.layout is not torch.strided:
            return f"{name} is {_kind(value)}, not a tensor"
        if value.dtype is not asked.model.dtype:
            return f"{name} is of type {_type(value)}, not {_type(asked.model)}"
        sent = asked.message.get(name, asked.model)
        expected = tuple(sent.shape) if self.shape is None else self.shape(asked)
        return _shape_fault(name, value.shape, expected) or super().fault(name, value, asked)

    def norm(self, value: Tensor) -> float:
        """Return the largest norm of a row, in double precision if it does not fit in single."""
        norm = _longest(value) if value.numel() else 0.0
        if math.isfinite(norm):
            return norm
        return _longest(to_host(value).double())


@dataclass(frozen=True)
class Numbers(Form):
    """A numpy array of numbers.

    Attributes
    ----------
    shape
        Its shape.
    whole
        Whether they are whole numbers.
    least, most
        Their bounds.
    rising
        Whether each is larger than the one before.
    total
        What they add up to at most.
    """

    shape: Shape
    whole: bool = False
    least: Bound = -LARGEST
    most: Bound = LARGEST
    rising: bool = False
    total: Bound = math.inf

    def fault(self, name: str, value: object, asked: Asked) -> str | None:
        """Return what is wrong with an array."""
        kinds, words = ("iu", "whole numbers") if self.whole else ("f", "numbers")
        if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
            return f"{name} is {_kind(value)}, not an array of {words}"
        wrong = _shape_fault(name, value.shape, self.shape(asked))
        if wrong or not value.size:
            return wrong
        if not finite(value):
            return f"{name} is not finite"
        if self.rising and bool((np.diff(value) <= 0).any()):
            return f"{name} does not rise"
        if value.sum(dtype=np.float64) > _bound(self.total, asked, math.inf):
            return f"{name} adds up to {_brief(value.sum(dtype=np.float64))}, which is too much"
        return _range_fault(name, (value.min(), value.max()), self.least, self.most, asked)


@dataclass(frozen=True)
class Number(Form):
    """One number.

    Attributes
    ----------
    whole
        Whether it is a whole number.
    least, most
        Its bounds.
    """

    whole: bool = False
    least: Bound = -LARGEST
    most: Bound = LARGEST

    def fault(self, name: str, value: object, asked: Asked) -> str | None:
        """Return what is wrong with a number."""
        kind = Integral if self.whole else Real
        if isinstance(value, bool) or not isinstance(value, kind):
            return f"{name} is {_kind(value)}, not a {'whole ' * self.whole}number"
        if not finite(value):
            return f"{name} is not finite"
        return _range_fault(name, (value,), self.least, self.most, asked)


@dataclass(frozen=True)
class Text(Form):
    """A short text."""

    def fault(self, name: str, value: object, asked: Asked) -> str | None:
        """Return what is wrong with a text."""
        if not isinstance(value, str):
            return f"{name} is {_kind(value)}, not text"
        return None if len(value) <= LONGEST_TEXT else f"{name} is longer than {LONGEST_TEXT}"


@dataclass(frozen=True)
class Flag(Form):
    """Yes or no."""

    def fault(self, name: str, value: object, asked: Asked) -> str | None:
        """Return what is wrong with a yes or no."""
        right = isinstance(value, (bool, np.bool_))
        return None if right else f"{name} is {_kind(value)}, not yes or no"


COUNT = Number(whole=True, least=0, most=MOST_COUNTED)
"""How much there is of something."""

SHARE = Number(least=0, most=1)
"""A number from 0 to 1."""

TRAINED = Number(
    whole=True, least=lambda asked: min(1, asked.samples), most=lambda asked: asked.samples
)
"""Samples that a client trained on: no more than it registered with, and not none of them."""


def finite(value: object) -> bool:
    """Tell whether a value has no number in it that is infinite or none at all."""
    if isinstance(value, Tensor):
        floats = value.is_floating_point() or value.is_complex()
        return not floats or bool(to_host(torch.isfinite(value).all()))
    if isinstance(value, (float, np.ndarray, np.generic)):
        floats = np.asarray(value).dtype.kind in "fc"
        return not floats or bool(np.isfinite(value).all())
    return True


def _longest(rows: Tensor) -> float:
    return float(to_host(torch.linalg.vector_norm(rows, dim=-1).max()))


def _shape_fault(name: str, shape: tuple[int, ...], expected: tuple[int | None, ...]) -> str | None:
    right = len(shape) == len(expected) and all(
        wanted is None or length == wanted for length, wanted in zip(shape, expected, strict=True)
    )
    if right:
        return None
    lengths = ["any" if length is None else str(length) for length in expected]
    return (
        f"{name} has the shape {' × '.join(map(str, shape)) or 'of a number'},"
        f" not {' × '.join(lengths)}"
    )


def _range_fault(
    name: str, values: tuple[Any, ...], least: Bound, most: Bound, asked: Asked
) -> str | None:
    low, high = _bound(least, asked, -LARGEST), _bound(most, asked, LARGEST)
    outside = [value for value in values if not low <= value <= high]
    if not outside:
        return None
    return f"{name} is {_brief(outside[0])}, not from {low:g} to {high:g}"


def _bound(bound: Bound, asked: Asked, unknown: float) -> float:
    value = bound(asked) if callable(bound) else bound
    return unknown if value is None else value


def _brief(number: Any) -> str:  # noqa: ANN401 (a number of any type)
    try:
        return f"{float(number):g}"
    except OverflowError:
        return "beyond all bounds"


def _kind(value: object) -> str:
    """Return what a value is, in words of ours: nothing of it is repeated."""
    if isinstance(value, Tensor):
        return f"a tensor of type {_type(value)}"
    if isinstance(value, np.ndarray):
        return f"an array of type {value.dtype.kind}"
    names = {str: "text", bool: "yes or no", int: "a whole number", float: "a number"}
    return names.get(type(value), "something else")


def _type(value: Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")


# ----------------------------------------------------------------------------------------
# Tasks.

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
        return {Reveals.MODEL: ModelRows(), Reveals.PROGRESS: Number()}.get(reveals, Form())


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
        `Form`.
    """
    entries = {key: value if isinstance(value, tuple) else (value,) for key, value in reply.items()}
    reveals = {key: value[0] for key, value in entries.items()}
    forms = {key: value[1] for key, value in entries.items() if len(value) == 2}

    def make(run: Callable[[Client, Message], Message]) -> Task:
        return TASKS.register(name)(Task(name, run, reveals, watches, by_fit, forms))

    return make
