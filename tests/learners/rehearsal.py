"""Rounds as on a GPU, on a machine that has none, to see that nothing crosses unseen.

Tensors of the device are without numbers (torch's ``meta``, which fake tensors compute with, too),
and say that they are on ``cuda``, or on ``mps``. Those of the host are real, so solvers and
estimators do their work. Two modes watch every operation:

- a tensor that crosses other than by `learners.devices.to_host` and `to_device` is refused, and so
  is an operation on tensors of both sides, or one that must read numbers to know its shape;
- what is drawn on one side by a generator of the other is refused;
- on ``mps`` numbers of double precision are refused, which it does not have.

What `to_host` would bring are seeded numbers of the right shape.

Torch's own fake tensors on ``cuda`` would do, but cannot be differentiated by a torch that was
built without CUDA: it ends the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from coalitions.errors import CoalitionError
from learners.algorithm import build_algorithm
from learners.client.client import Client, Site
from learners.data.client_data import ClientData, FederatedData, Split, classes, of_pictures
from learners.devices import Passage, crossing
from learners.models.network import build_model
from learners.rows.parameters import Layout
from learners.rows.workspace import Workspace
from learners.server.engine import Engine, Replies
from learners.server.federation import Federation
from learners.server.local_engine import local_engine
from learners.settings.config import RunConfig
from learners.settings.seeding import stream
from learners.task import Message, Task

_STAND_IN = torch.device("meta")

_SHAPE, _N_CLASSES, _SIZES = (1, 28, 28), 3, (8, 5, 6)


class CrossingError(CoalitionError):
    """Something would have crossed between host and device unseen."""


@dataclass
class Rehearsal:
    """What a rehearsal saw.

    Attributes
    ----------
    operations
        Operations on the device.
    reads, bytes_read
        Tensors that the host read, each of which waits for the device, and their size.
    writes, bytes_written
        Tensors that were put on the device, and their size.
    not_stacked
        What was computed for one client after the other, counted by reason.
    """

    operations: int = 0
    reads: int = 0
    bytes_read: int = 0
    writes: int = 0
    bytes_written: int = 0
    not_stacked: dict[str, int] = field(default_factory=dict)


def rehearse(
    algorithm: str,
    *,
    device: str = "cuda",
    rounds: int = 2,
    model: str = "lenet-5",
    **settings: Any,
) -> Rehearsal:
    """Play rounds of a method for three clients, and return what was seen; evaluation is included.

    Parameters
    ----------
    algorithm
        The method.
    device
        ``cuda`` or ``mps``.
    rounds
        How many; in the second one methods have something to go on from.
    model
        The network.
    **settings
        More of `learners.settings.config.RunConfig`; `compute` is stacked if it is not said.

    Raises
    ------
    CrossingError
        Where something crosses that should not.
    """
    usual: dict[str, Any] = {"local_epochs": 1, "batch_size": 6, "workers": 1, "compute": "stacked"}
    config = RunConfig(
        algorithm=algorithm, clients=len(_SIZES), rounds=rounds, **(usual | settings)
    )
    data = _pictures()
    module = build_model(model, shape=_SHAPE, n_classes=_N_CLASSES, seed=0)
    with rehearsing(device) as seen:
        workspace = Workspace(module, Layout.of(module), torch.device(device))
        site = Site(config, build_algorithm(config.algorithm, config.options), workspace, data)
        federation = Federation(
            config,
            site.algorithm,
            _Watched(local_engine(site, 1), device, seen),
            workspace.layout,
            site.initial,
        )
        for each in federation.rounds():
            for reason, count in each.metrics.get("not_stacked", {}).items():
                seen.not_stacked[reason] = seen.not_stacked.get(reason, 0) + count
    return seen


@contextmanager
def rehearsing(device: str = "cuda") -> Iterator[Rehearsal]:
    """Have everything in this block, and in this thread, happen on a device that is not there."""
    seen = Rehearsal()
    with crossing(_Seeded(seen)), _watching(device, seen):
        yield seen


def _pictures() -> FederatedData:
    def some(n: int, *purpose: str | int) -> Split:
        pictures = torch.randn((n, *_SHAPE), generator=stream(0, *purpose))
        return Split(pictures, torch.arange(n) % _N_CLASSES)

    clients = tuple(
        ClientData(some(n, "train", i), some(5, "validation", i), some(6, "test", i), "ab"[i % 2])
        for i, n in enumerate(_SIZES)
    )
    return FederatedData("rehearsal", clients, of_pictures(_SHAPE), classes(_N_CLASSES))


@contextmanager
def _watching(device: str, seen: Rehearsal) -> Iterator[None]:
    with _Border(device, seen), _Names(device):
        yield


class _Watched:
    """An engine that has clients watched in whatever thread they work: modes are of one thread."""

    def __init__(self, engine: Engine, device: str, seen: Rehearsal) -> None:
        self._engine, self._device, self._seen = engine, device, seen
        self._thread = threading.get_ident()

    def ask(self, task: Task, messages: Mapping[int, Message], round: int) -> Replies:
        def run(client: Client, message: Message) -> Message:
            if threading.get_ident() == self._thread:
                return task.run(client, message)
            with _watching(self._device, self._seen):
                return task.run(client, message)

        return self._engine.ask(replace(task, run=run), messages, round)

    def memories(self) -> dict[int, dict[str, Any]]:
        return self._engine.memories()

    def restore(self, memories: Mapping[int, Mapping[str, Any]]) -> None:
        self._engine.restore(memories)

    def close(self) -> None:
        self._engine.close()


class _Seeded(Passage):
    """Brings seeded numbers to the host, and nothing but shapes to the device."""

    def __init__(self, seen: Rehearsal) -> None:
        self._seen = seen
        self._stream = stream(0, "rehearsal")

    def to_host(self, tensor: Tensor) -> Tensor:
        if not tensor.is_meta:
            return tensor.detach()
        self._seen.reads += 1
        self._seen.bytes_read += tensor.nbytes
        shape = tuple(tensor.shape)
        if tensor.dtype is torch.bool:  # whatever was asked, it is as it should be
            return torch.ones(shape, dtype=torch.bool)
        if tensor.dtype.is_floating_point:
            return 0.5 + torch.rand(shape, generator=self._stream, dtype=tensor.dtype) / 2
        return torch.randint(0, 2, shape, generator=self._stream, dtype=tensor.dtype)

    def to_device(self, tensor: Tensor, device: torch.device) -> Tensor:
        if tensor.is_meta:
            return tensor
        self._seen.writes += 1
        self._seen.bytes_written += tensor.nbytes
        return torch.empty_strided(
            tensor.shape, tensor.stride(), dtype=tensor.dtype, device=_STAND_IN
        )

    def generators(self, device: torch.device) -> list[torch.device]:
        return []


class _Names(TorchFunctionMode):
    """Calls the stand-in by the name of the device."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._type, self._named = device, torch.device(device, 0)

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if function is torch.device:  # a name, and nothing on it yet
            return function(*args, **(kwargs or {}))
        named = {name: self._inwards(value) for name, value in (kwargs or {}).items()}
        given = function(*(self._inwards(value) for value in args), **named)
        return self._named if isinstance(given, torch.device) and given == _STAND_IN else given

    def _inwards(self, value: Any) -> Any:
        if isinstance(value, str) and value.split(":")[0] == self._type:
            return _STAND_IN
        if isinstance(value, torch.device) and value.type == self._type:
            return _STAND_IN
        return value


class _Border(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Refuses what crosses."""

    def __init__(self, device: str, seen: Rehearsal) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._device, self._seen = device, seen

    def __torch_dispatch__(
        self,
        function: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        tensors = [each for each in tree_leaves((args, named)) if isinstance(each, Tensor)]
        there = [each for each in tensors if each.is_meta]
        here = [each for each in tensors if not each.is_meta]
        target = named.get("device")
        moves = target is not None and (
            (here and target == _STAND_IN) or (there and target != _STAND_IN)
        )
        # Torch takes a single number of the host in an operation of the device; not as a copy.
        copies = "copy" in str(function) and here
        if moves or (there and (copies or any(each.dim() for each in here))):
            raise CrossingError(f"{function} has tensors on the host and on {self._device}")
        if there and function is torch.ops.aten._local_scalar_dense.default:
            raise CrossingError(f"a number on {self._device} is read without to_host")
        generator = named.get("generator")
        drawn_there = there or target == _STAND_IN
        if generator is not None and drawn_there and generator.device.type != self._device:
            raise CrossingError(f"{function} draws on {self._device} by a stream of the host")
        try:
            given = function(*args, **named)
        except NotImplementedError as error:
            raise CrossingError(
                f"{function} needs to read numbers on {self._device}: {error}"
            ) from None
        results = [each for each in tree_leaves(given) if isinstance(each, Tensor)]
        if any(each.is_meta for each in results):
            self._seen.operations += 1
            if self._device == "mps" and any(
                each.is_meta and each.dtype is torch.float64 for each in results
            ):
                raise CrossingError(f"{function} has numbers of double precision, and mps has none")
        return given
