"""The client's half of the federation: its data, its memory, and the gate its answers pass."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor

from coalitions.errors import CoalitionError, NoSolutionError
from learners.algorithm import Algorithm
from learners.data.client_data import Batch, FederatedData, Split
from learners.devices import to_device
from learners.measures.losses import Criterion
from learners.privacy.mechanism import Privacy, released
from learners.rows.optimizers import Step, optimizer
from learners.rows.workspace import Workspace
from learners.settings.config import RunConfig
from learners.settings.schedules import learning_rate
from learners.settings.seeding import stream
from learners.task import Message, Task, finite


class Question(Protocol):
    """Something that several clients can be helped with at once."""

    @property
    def client(self) -> Client:
        """Who is asked."""
        ...

    def alone(self) -> Any:  # noqa: ANN401 (whatever the question is about)
        """Return what the client itself finds out."""
        ...


Together: TypeAlias = Callable[[Sequence[Question]], list[Any]]
"""Answers a client's questions, perhaps with those of others."""


class Samples:
    """A split of a client's data on the device, ready to take batches from.

    Pictures are kept as [N, H, W, C] and handed out as [n, C, H, W] in that memory order
    (channels last), which convolutions read faster than the usual one.
    """

    def __init__(self, split: Split, device: torch.device) -> None:
        self._one = isinstance(split.inputs, Tensor)
        self._kept = {name: _kept(each, device) for name, each in split.named.items()}
        self._pictures = {name for name, each in split.named.items() if _is_picture(each)}
        self.targets = to_device(split.targets, device)

    def __len__(self) -> int:
        return len(self.targets)

    def with_targets(self, targets: Tensor) -> Samples:
        """Return the same samples with other targets; the inputs are shared, not copied."""
        same = copy.copy(self)
        same.targets = targets
        return same

    @staticmethod
    def pooled(some: Sequence[Samples]) -> tuple[Samples, Tensor]:
        """Return the samples of several alike, one after the other, and where each one's begin.

        They are copied; what occurs more than once is there once.
        """
        distinct: dict[int, Samples] = {id(each): each for each in some}
        begins, begin = {}, 0
        for key, each in distinct.items():
            begins[key] = begin
            begin += len(each)
        pool = copy.copy(some[0])
        pool._kept = {
            name: torch.cat([each._kept[name] for each in distinct.values()])
            for name in some[0]._kept
        }
        pool.targets = torch.cat([each.targets for each in distinct.values()])
        return pool, torch.tensor([begins[id(each)] for each in some])

    @property
    def form(self) -> tuple[tuple[Any, ...], ...]:
        """What a sample looks like: samples of equal form can be joined."""
        named = (*self._kept.items(), ("targets", self.targets))
        return tuple((name, tuple(each.shape[1:]), each.dtype) for name, each in named)

    @property
    def nbytes(self) -> int:
        """Bytes of all samples."""
        return sum(each.nbytes for each in (*self._kept.values(), self.targets))

    def first(self, n: int) -> Samples:
        """Return the first `n` samples; they are shared, not copied."""
        some = copy.copy(self)
        some._kept = {name: each[:n] for name, each in self._kept.items()}
        some.targets = self.targets[:n]
        return some

    def some(self, chosen: Tensor) -> Samples:
        """Return the samples of some indices (int64, on the CPU); they are copied."""
        at, few = to_device(chosen, self.targets.device), copy.copy(self)
        few._kept = {name: each.index_select(0, at) for name, each in self._kept.items()}
        few.targets = self.targets.index_select(0, at)
        return few

    def take(self, chosen: Tensor) -> tuple[Batch, Tensor]:
        """Return the inputs and targets of some indices (int64, on the CPU)."""
        few = self.some(chosen)
        return few._handed(few._kept), few.targets

    def take_rows(self, chosen: Tensor) -> tuple[Batch, Tensor]:
        """Return the inputs and targets of indices [n, width], each [n, width, …]."""
        inputs, targets = self.take(chosen.flatten())

        def in_rows(each: Tensor) -> Tensor:
            return each.reshape(*chosen.shape, *each.shape[1:])

        if isinstance(inputs, Tensor):
            return in_rows(inputs), in_rows(targets)
        return {name: in_rows(each) for name, each in inputs.items()}, in_rows(targets)

    def chunks(self, size: int) -> Iterable[tuple[Batch, Tensor]]:
        """Yield all inputs and targets in order, `size` at a time."""
        for begin in range(0, len(self), size):
            at = slice(begin, begin + size)
            yield (
                self._handed({name: each[at] for name, each in self._kept.items()}),
                self.targets[at],
            )

    def _handed(self, kept: dict[str, Tensor]) -> Batch:
        for name in self._pictures:
            kept[name] = kept[name].permute(0, 3, 1, 2)
        return next(iter(kept.values())) if self._one else kept


def _is_picture(inputs: Tensor) -> bool:
    return inputs.dim() == 4 and inputs.is_floating_point()


def _kept(inputs: Tensor, device: torch.device) -> Tensor:
    """Return inputs as they are kept: pictures channels last."""
    if not _is_picture(inputs):
        return to_device(inputs, device)
    n, channels, height, width = inputs.shape
    # Copied into a fresh tensor: for one channel `contiguous` would keep strides that
    # convolutions do not recognise as channels last.
    pixels = torch.empty((n, height, width, channels)).copy_(inputs.permute(0, 2, 3, 1))
    return to_device(pixels, device)


@dataclass(frozen=True)
class LocalData:
    """What one client has, on the device."""

    train: Samples
    validation: Samples
    test: Samples
    domain: str
    poisoned: bool
    name: str = ""


class Site:
    """What the clients of one process share: the network, the method, the settings.

    Parameters
    ----------
    config
        The run.
    algorithm
        The method; its client half is called from tasks.
    workspace
        The network to compute with.
    data
        Every client's data.
    privacy
        What is done to anything that leaves a client; None if nothing is.
    """

    def __init__(
        self,
        config: RunConfig,
        algorithm: Algorithm,
        workspace: Workspace,
        data: FederatedData,
        privacy: Privacy | None = None,
    ) -> None:
        self.config = config
        self.algorithm = algorithm
        self.workspace = workspace
        self.privacy = privacy
        self.initial = workspace.saved()
        self.targets = data.targets
        self.n_classes = data.n_classes
        device = workspace.device
        self.data = tuple(
            LocalData(
                Samples(each.train, device),
                Samples(each.validation, device),
                Samples(each.test, device),
                each.domain,
                each.poisoned,
                name,
            )
            for each, name in zip(data.clients, data.names, strict=True)
        )

    def with_data(self, data: tuple[LocalData, ...]) -> Site:
        """Return the same with other data."""
        other = copy.copy(self)
        other.data = data
        return other


@dataclass
class Client:
    """One client at one moment: what a task sees.

    A task trains with `learners.fit`, which takes the client, and keeps in `memory` what it needs
    next time. The learning rate of the round is `lr`, the run's settings are `config`, and
    `stream(purpose)` gives random numbers that depend on the seed, the client and the round.
    `data.train`, `data.validation` and `data.test` are its samples, as many as their `len`.

    Attributes
    ----------
    site
        Where the client computes, and what all clients there share.
    index, round
        Which client, and in which round.
    memory
        What the client keeps from task to task: tensors, numpy arrays and plain values. It never
        travels; it is part of a checkpoint.
    watched
        Whether the task is how the run is watched: then nothing of it counts as sent.
    together
        Who answers what can be answered for several clients at once, see `find_out`; the client
        itself if None.
    """

    site: Site
    index: int
    round: int
    memory: dict[str, Any] = field(default_factory=dict)
    watched: bool = False
    together: Together | None = None

    def find_out(self, questions: Sequence[Question]) -> list[Any]:
        """Return the answers to questions: found by the client alone, or with others at once.

        Questions are to train, to test, to differentiate, or to tell outputs
        (`learners.client.training`, `many_models`, `gradients`). What does not depend on each
        other is asked in one call.
        """
        if self.together is None:
            return [question.alone() for question in questions]
        return self.together(questions)

    @property
    def data(self) -> LocalData:
        """The client's own data."""
        return self.site.data[self.index]

    @property
    def algorithm(self) -> Algorithm:
        """The method, for its client half."""
        return self.site.algorithm

    @property
    def config(self) -> RunConfig:
        """The settings of the run."""
        return self.site.config

    @property
    def workspace(self) -> Workspace:
        """The network to compute with."""
        return self.site.workspace

    @property
    def criterion(self) -> Criterion:
        """The loss that the client makes small."""
        goal = self.workspace.goal
        return goal.criterion.for_client(self.data.train.targets, goal.targets.n_outputs)

    @property
    def own_model(self) -> Tensor:
        """The model in the client's memory; before the first, everyone's initial one."""
        model: Tensor = self.memory.get("model", self.site.initial)
        return model

    @property
    def lr(self) -> float:
        """The learning rate of this round."""
        return learning_rate(self.config, self.round)

    def descent(
        self, parameters: Tensor, lr: float | None = None, trained: Tensor | None = None
    ) -> Step:
        """Return the step of the run's optimiser on a flat tensor, with fresh state.

        `lr` is the round's if None; `trained` is as of `learners.rows.optimizers.optimizer`.
        """
        settings = self.config
        return optimizer(
            parameters,
            settings.optimizer,
            self.lr if lr is None else lr,
            settings.momentum,
            weight_decay=settings.weight_decay,
            max_norm=settings.max_gradient_norm,
            trained=trained,
        )

    def stream(self, purpose: str) -> torch.Generator:
        """Return the random numbers of a purpose: the same for this client and round, always."""
        return stream(self.config.seed, "client", self.index, self.round, purpose)


@dataclass(frozen=True)
class ClientAnswer:
    """What comes out of the gate: a reply, and the memory to keep; or a reason why neither."""

    reply: Message | None
    memory: dict[str, Any] | None = None
    reason: str | None = None


def answer(
    site: Site,
    task: Task,
    client: int,
    round: int,
    message: Message,
    memory: Message,
    together: Together | None = None,
) -> ClientAnswer:
    """Return a client's answer to a message: the one gate through which anything leaves a client.

    What a task did not declare, and what is not finite, does not leave. A client whose answer is
    refused forgets what it learnt in the task: it stays at its last sound model. In a private run
    noise is added here (see `learners.privacy.mechanism`), unless the run is only watched; an
    answer that is not finite ends such a run, because a missing answer would not be covered by ε.
    """
    host = Client(site, client, round, dict(memory), task.watches, together)
    reply = task.run(host, message)
    undeclared = set(reply) - set(task.reply)
    if undeclared:
        raise CoalitionError(
            f"task {task.name!r} replies with {sorted(undeclared)[0]!r}, which it did not declare"
        )
    for name, value in (*reply.items(), *host.memory.items()):
        if not finite(value):
            if site.privacy is not None and not task.watches:
                raise NoSolutionError(
                    f"round {round}: {name} of client {client} is not finite, and in a private run"
                    " no answer can be dropped: who is missing would tell of its data; a smaller"
                    " lr, or less noise, may keep training finite"
                )
            return ClientAnswer(None, reason=f"{name} is not finite")
    if site.privacy is not None and not task.watches:
        reply = released(site.privacy, task, host, message, reply)
    changed = host.memory if _changed(host.memory, memory) else None
    return ClientAnswer(reply, changed)


def _changed(now: Message, before: Message) -> bool:
    return now.keys() != before.keys() or any(now[key] is not before[key] for key in now)
