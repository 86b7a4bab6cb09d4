r"""Differential privacy: what is clipped and noised before it leaves a client, and what that buys.

Two mechanisms. In *update* mode a model that leaves a client is

.. math:: r + \mathrm{clip}(\theta - \bar r, C) + \mathcal{N}(0, \sigma^2 C^2 I),
          \qquad \mathrm{clip}(x, C) = x \min(1, C / \lVert x \rVert),

where r is a model the server knows already: the one it sent under the same name, else what the
client sent last, else everyone's initial one; and :math:`\bar r` is r without the noise that the
client itself has put into it. Whatever the client's training data are, the middle term has a norm
of at most C: one look has sensitivity C against a client without data, and ε is that of as many
looks as there were uploads, without amplification, since uploads are visible. In *record* mode the
models come from DP-SGD (`learners.privacy.per_sample`), and ε is for one image more or less.

What clients keep, and predict with, is without noise in update mode.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor

from coalitions.errors import CoalitionError, InvalidInputError
from learners.privacy.accountant import Usage, noise_for, worst_epsilon
from learners.rows.parameters import with_noise
from learners.settings.config import RunConfig
from learners.settings.participation import rounds_of
from learners.task import TASKS, Message, Reveals, Task

if TYPE_CHECKING:
    from learners.algorithm import Algorithm
    from learners.client.client import Client

RELEASES, STEPS, RATE = "privacy releases", "privacy steps", "privacy rate"
"""What a client's memory says about its uploads so far, and its steps of DP-SGD."""

DEFAULT_CLIP = 1.0
"""C where a target ε is given and no clip."""

_BARE = (Reveals.STATISTIC, Reveals.METRIC)
"""What leaves as it was computed from the training data."""

_ROUNDING = 1 - 2.0**-22
"""Shrinks a clipped vector so that rounding to single precision cannot bring it above C."""


@dataclass(frozen=True)
class Privacy:
    """The mechanism of a run.

    Attributes
    ----------
    mode
        ``updates`` or ``records``.
    noise
        σ: standard deviation of the noise, in units of `clip`.
    clip
        C: most that an update, or the gradient of an image, can weigh.
    delta
        δ.
    covers
        What ε is about, and what not.
    target
        The ε that was asked for, if it was.
    passes
        Passes over its data that a client makes in the whole run, if it is in every round.
    """

    mode: Literal["updates", "records"]
    noise: float
    clip: float
    delta: float
    covers: str = ""
    target: float | None = None
    passes: int = 0

    def document(self) -> dict[str, Any]:
        """Return the mechanism as plain values."""
        return {
            "mode": self.mode,
            "noise": self.noise,
            "clip": self.clip,
            "delta": self.delta,
            "covers": self.covers if self.noise else "nothing: there is no noise",
        }

    def worst(self, memories: Mapping[int, Mapping[str, Any]]) -> float | None:
        """Return the most that any client has spent; None if that is no finite number."""
        usages = {self._usage(memory) for memory in memories.values()}
        most = worst_epsilon(self.noise, usages, self.delta, _horizon(self.passes))
        if self.target is not None and most > self.target * (1 + 1e-9):
            raise CoalitionError(
                f"a client has spent epsilon {most:.6g}, more than the {self.target:g} that was"
                " asked for: the method trains or uploads more often than it declares"
            )
        return most if math.isfinite(most) else None

    def _usage(self, memory: Mapping[str, Any]) -> Usage:
        """Return how often a client's data were looked at, by what its memory says."""
        releases = memory.get(RELEASES, 0)
        if self.mode == "updates":
            return Usage(1.0, releases)
        # Steps whose result has not left yet are counted with those that have.
        return Usage(memory.get(RATE, 1.0), memory.get(STEPS, 0) if releases else 0)


def _horizon(passes: int) -> Callable[[Usage], int]:
    """Return how many steps of DP-SGD a client makes in some passes over its data, by its rate."""
    return lambda usage: passes * math.ceil(1 / usage.rate)


def privacy_of(
    config: RunConfig, algorithm: Algorithm, sizes: Sequence[int], *, has_batch_norm: bool
) -> Privacy | None:
    """Return the mechanism of a run, None if it has none; refuse what would make its ε false.

    Parameters
    ----------
    config
        The run.
    algorithm
        Its method.
    sizes
        Number of training images of each client.
    has_batch_norm
        Whether the network has batch norm.
    """
    if not config.clip and config.epsilon is None:
        return None
    clip = DEFAULT_CLIP if config.clip is None else config.clip
    tasks = [TASKS[name] for name in algorithm.traits.asks]
    if config.noise or config.epsilon is not None:
        _refuse_bare_replies(config, algorithm, tasks)
    if config.dp == "records":
        _refuse_own_training(config, tasks)
    if has_batch_norm:
        raise InvalidInputError(
            f"the network {config.model} has batch norm, "
            + (
                "which mixes the images of a batch, so no image's gradient can be clipped alone"
                if config.dp == "records"
                else "whose running variances noise would make negative"
            )
            + "; choose a network without it"
        )
    noise, passes = config.noise or 0.0, config.rounds * algorithm.passes(config.local_epochs)
    if config.epsilon is not None:
        usages = _planned(config, algorithm, tasks, sizes)
        noise = noise_for(config.epsilon, usages, config.delta, _horizon(passes))
    about = _covers(config, tasks)
    return Privacy(config.dp, noise, clip, config.delta, about, config.epsilon, passes)


def released(privacy: Privacy, task: Task, client: Client, message: Message, reply: Message) -> Any:  # noqa: ANN401
    """Return what of a reply leaves the client, and how; the client's memory keeps the books."""
    models = {name: reply[name] for name in reply if task.reply[name] is Reveals.MODEL}
    leaving = {name: reply[name] for name in reply}
    if privacy.noise:
        for name in reply:
            if task.reply[name] in _BARE:
                raise InvalidInputError(_sentence(client.config.algorithm, name, task.reply[name]))
            if task.reply[name] is Reveals.PROGRESS:
                del leaving[name]
    if not models:
        return leaving
    if privacy.mode == "records":
        if not task.by_fit:
            raise InvalidInputError(_own_training(client.config.algorithm, task))
    else:
        leaving |= _noised(privacy, client, message, models)
    client.memory[RELEASES] = client.memory.get(RELEASES, 0) + 1
    return leaving


def as_published(client: Client, name: str, own: Tensor) -> Tensor:
    """Return the model that others know of a client under a name, in place of its own.

    It is the client's own, unless noise was put into what it sent. Numbers that a client computes
    for others must come from here: its own model is an un-noised function of its training data.
    """
    published: Tensor = client.memory.get(_published(name), own)
    return published


def clipped(vectors: Sequence[Tensor], clip: float) -> list[Tensor]:
    """Return vectors whose joint Euclidean norm is at most `clip`, never more.

    Examples
    --------
    >>> import torch
    >>> clipped([torch.tensor([3.0, 4.0])], 10.0)
    [tensor([3., 4.])]
    """
    squares = sum(float(each.double().square().sum()) for each in vectors)
    norm = math.sqrt(squares)
    if norm <= clip:
        return list(vectors)
    return [(each.double() * (clip / norm * _ROUNDING)).to(each.dtype) for each in vectors]


def _noised(
    privacy: Privacy, client: Client, message: Message, models: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return the models as update mode sends them: clipped together, so that they are one look."""
    known = {name: _reference(client, message, name, models[name]) for name in models}
    differences = [model - known[name][1] for name, model in models.items()]
    stream = client.stream(f"noise of release {client.memory.get(RELEASES, 0)}")
    sent = {}
    for name, difference in zip(models, clipped(differences, privacy.clip), strict=True):
        public, clean = known[name]
        noisy = difference
        if privacy.noise:
            noisy = with_noise(difference, privacy.noise * privacy.clip, stream)
        sent[name] = public + noisy
        if name not in message:
            client.memory[_published(name)] = sent[name]
            client.memory[_clean(name)] = clean + difference
    return sent


def _reference(client: Client, message: Message, name: str, model: Tensor) -> tuple[Tensor, Tensor]:
    """Return the model the server knows already, and the same without the client's own noise."""
    if name in message:
        public = clean = message[name]
    else:
        public = client.memory.get(_published(name), client.site.initial)
        clean = client.memory.get(_clean(name), client.site.initial)
    if public.shape != model.shape:
        raise CoalitionError(
            f"the client sends {name!r} of shape {tuple(model.shape)}, and the server knows one of"
            f" {tuple(public.shape)}: there is nothing to measure an update from"
        )
    return public, clean


def _published(name: str) -> str:
    return f"published {name}"


def _clean(name: str) -> str:
    return f"published {name}, without noise"


def _refuse_bare_replies(config: RunConfig, algorithm: Algorithm, tasks: Sequence[Task]) -> None:
    for task in tasks:
        for name, reveals in task.reply.items():
            if reveals in _BARE:
                raise InvalidInputError(_sentence(config.algorithm, name, reveals))
    objection = algorithm.privacy_objection(config.dp)
    if objection is not None:
        raise InvalidInputError(objection)


def _refuse_own_training(config: RunConfig, tasks: Sequence[Task]) -> None:
    for task in tasks:
        if Reveals.MODEL in task.reply.values() and not task.by_fit:
            raise InvalidInputError(_own_training(config.algorithm, task))


def _sentence(algorithm: str, name: str, reveals: Reveals) -> str:
    return (
        f"{algorithm} cannot be private: its clients send {name!r} without noise"
        f" ({reveals.value}), so a stated epsilon would be false"
    )


def _own_training(algorithm: str, task: Task) -> str:
    return (
        f"{algorithm} cannot use --dp records: the task {task.name!r} trains in a way of its own,"
        " where the gradients of single images are not clipped; --dp updates can"
    )


def _planned(
    config: RunConfig, algorithm: Algorithm, tasks: Sequence[Task], sizes: Sequence[int]
) -> list[Usage]:
    """Return how often each client's data will be looked at in the whole run."""
    rounds = rounds_of(config)
    if config.dp == "updates":
        uploads = sum(Reveals.MODEL in task.reply.values() for task in tasks)
        return [Usage(1.0, uploads * each) for each in rounds]
    passes = algorithm.passes(config.local_epochs)
    return [
        Usage(sampling_rate(config, n), each * passes * steps_of_pass(config, n))
        for each, n in zip(rounds, sizes, strict=True)
        if n
    ]


def sampling_rate(config: RunConfig, n_images: int) -> float:
    """Return the probability of an image to be in a batch of DP-SGD."""
    return min(1.0, config.batch_size / n_images)


def steps_of_pass(config: RunConfig, n_images: int) -> int:
    """Return how many batches of DP-SGD stand for a pass over the data: as many as without it."""
    return math.ceil(n_images / config.batch_size)


def _covers(config: RunConfig, tasks: Sequence[Task]) -> str:
    whole = config.dp == "updates"
    text = "all training images of a client together" if whole else "each training image by itself"
    text += "; not the number of images"
    if any(Reveals.HELD_OUT in task.reply.values() for task in tasks):
        text += ", and not the validation images, which the values that clients send depend on"
    return text
