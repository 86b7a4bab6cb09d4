"""Gradients of a client's loss at given models, for one client or for many at once."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, vmap
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from learners.client.client import Client, Samples
from learners.client.randomness import drops
from learners.client.training import EVALUATION_CHUNK, gradient_at
from learners.data.client_data import Batch
from learners.devices import to_device
from learners.measures.losses import OwnLoss
from learners.rows.workspace import Workspace

# ----------------------------------------------------------------------------------------
# How much memory tensors take while something is computed.


class LiveMemory(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up the memory of tensors that are made inside, as long as anyone has them.

    What kernels take and give back within an operation is not seen.

    Attributes
    ----------
    peak
        The most bytes at any time.

    Examples
    --------
    >>> import torch
    >>> with LiveMemory() as seen:
    ...     for _ in range(3):
    ...         twice = torch.ones(100) * 2
    >>> seen.peak
    1200
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak = 0
        self._now = 0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        older = [each.untyped_storage() for each in _tensors((args, kwargs))]
        given = function(*args, **(kwargs or {}))
        for each in _tensors(given):
            storage = each.untyped_storage()
            if storage in self._known or any(storage is other for other in older):
                continue
            self._known.add(storage)
            self._now += storage.nbytes()
            weakref.finalize(storage, self._gone, storage.nbytes())
        self.peak = max(self.peak, self._now)
        return given

    def _gone(self, size: int) -> None:
        self._now -= size


def _tensors(values: object) -> list[Tensor]:
    return [each for each in tree_leaves(values) if isinstance(each, Tensor)]


# ----------------------------------------------------------------------------------------
# Gradients of a client's loss at given models: alone, or for many clients at once.
#
# Stacked, every model of every client is differentiated in one pass, whoever asks for how many:
# models × clients are one long list, and an entry of it has a client's samples beside a model.
# The passes are those of a client alone, over as many samples, so that losses which are means
# over a pass are the same.


@dataclass(frozen=True, eq=False)
class Gradients:
    """What `gradients_at` is asked; see there."""

    client: Client
    models: Tensor
    data: Samples
    training: bool = False

    def alone(self) -> Tensor:
        """Return the gradients, one after the other."""
        rows = [
            gradient_at(self.client, row, data=self.data, training=self.training)
            for row in self.models
        ]
        return torch.stack(rows)


def gradients_at(
    client: Client, models: Tensor, *, data: Samples | None = None, training: bool = False
) -> Tensor:
    """Return the gradient of the client's mean loss at each of some models, [m, parameters].

    See `learners.client.training.gradient_at`.
    """
    asked = Gradients(client, models, client.data.train if data is None else data, training)
    found: Tensor
    (found,) = client.find_out([asked])
    return found


def likeness(asked: Gradients) -> tuple[Any, ...]:
    """Return what must be equal for gradients to be found at once."""
    return (asked.data.form, asked.training)


def why_alone(asked: Gradients) -> str | None:
    """Return why a client must differentiate alone; None if it need not."""
    workspace = asked.client.workspace
    criterion = workspace.goal.criterion
    if isinstance(criterion, OwnLoss) or asked.client.criterion is not criterion:
        return f"the loss {criterion.name} is not one for all clients and single samples"
    if len(asked.data) == 0:
        return "a client without data"
    if asked.training and workspace.has_batch_norm:
        return "batch norm: samples that fill up a batch would count"
    if asked.training and drops(workspace.module):
        return "gradients with dropout: each client draws from a stream of its own"
    return None


class Differentiation:
    """Finds alike gradients at once, as many as memory is for by what two were seen to take.

    Parameters
    ----------
    most_bytes
        Memory for a stack; two models are stacked whatever they need.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._seen: list[tuple[tuple[Any, ...], int]] = []

    def __call__(self, asked: Sequence[Gradients]) -> tuple[list[Tensor] | None, str | None]:
        """Return the gradients of two models or more, or why they cannot be stacked."""
        entries = _entries(asked)
        shape = asked[0].client.workspace.gradient
        found = [shape.new_empty((len(each.models), len(shape))) for each in asked]
        try:
            with warnings.catch_warnings():
                # An operation without a rule would be carried out for one model after the other.
                warnings.filterwarnings("error", message=".*batching rule", category=UserWarning)
                at_once = max(2, self._most_bytes // self._bytes_of_one(entries))
                pieces = -(-len(entries) // at_once)
                for k in range(pieces):
                    some = entries[len(entries) * k // pieces : len(entries) * (k + 1) // pieces]
                    rows = _stack(some, len(entries[0].asked.data)).gradients()
                    for entry, row in zip(some, rows, strict=False):
                        found[entry.question][entry.place] = row
        except (RuntimeError, UserWarning) as error:
            return None, f"torch cannot stack this network: {str(error).strip()[:200]}"
        return found, None

    def _bytes_of_one(self, entries: Sequence[_Entry]) -> int:
        """Return what a model of a stack needs: its row and its gradient, and those of a pass."""
        first = entries[0]
        key = (*likeness(first.asked), min(EVALUATION_CHUNK, len(first.asked.data)))
        for known, size in self._seen:
            if known == key:
                return size
        stack = _stack(entries[:2], len(first.asked.data))
        with LiveMemory() as memory:
            stack.slopes(0)
        size = int(memory.peak // 2 + 2 * first.model.nbytes)
        self._seen.append((key, size))
        return size


@dataclass(frozen=True)
class _Entry:
    """A model and the samples it is differentiated on; where its gradient goes."""

    question: int
    place: int
    asked: Gradients

    @property
    def model(self) -> Tensor:
        return self.asked.models[self.place]


def _entries(asked: Sequence[Gradients]) -> list[_Entry]:
    """Return all models, those with the most samples first."""
    entries = [
        _Entry(number, place, each)
        for number, each in enumerate(asked)
        for place in range(len(each.models))
    ]
    return sorted(entries, key=lambda entry: -len(entry.asked.data))


def _stack(some: Sequence[_Entry], longest: int) -> _Stack:
    """Return a stack; a model alone in it is computed twice."""
    return _Stack(some if len(some) > 1 else [*some, *some], longest)


class _Stack:
    """Some models at once; those with the most samples come first.

    Passes are as wide as `longest`, the most samples of anyone, asks for, also if nobody here has
    as many: numbers must not depend on who is in a stack.
    """

    def __init__(self, some: Sequence[_Entry], longest: int) -> None:
        first = some[0].asked
        self._longest = longest
        self._workspace = workspace = first.client.workspace
        self._training = first.training
        self._sizes = torch.tensor([len(entry.asked.data) for entry in some])
        self._pool, self._starts = Samples.pooled([entry.asked.data for entry in some])
        rows, layout = torch.stack([entry.model for entry in some]), workspace.layout
        self._names = [
            name for name, at in layout.columns.items() if at.stop <= layout.n_parameters
        ]
        self._models = {
            name: rows[:, at].reshape(len(some), *layout.shapes[name]).contiguous()
            for name, at in layout.columns.items()
        }
        self._loss_of_each = vmap(_loss_of(workspace))

    def gradients(self) -> Tensor:
        """Return the gradient of every model, [entries, parameters]."""
        whole = self.slopes(0)
        for begin in range(EVALUATION_CHUNK, int(self._sizes[0]), EVALUATION_CHUNK):
            more = self.slopes(begin)
            whole[: len(more)] += more
        return whole

    def slopes(self, begin: int) -> Tensor:
        """Return what the samples from `begin` on, a pass of them, add to the gradients."""
        active = max(2, int((self._sizes > begin).sum()))
        sizes = self._sizes[:active, None]
        width = min(EVALUATION_CHUNK, self._longest - begin)
        at = torch.arange(begin, begin + width)[None].expand(active, -1)
        here = at < sizes
        chosen = self._starts[:active, None] + torch.where(here, at, 0)
        inputs, targets = self._pool.take_rows(chosen)
        shares = here.sum(1) / self._sizes[:active]
        real = here.clone()
        real[:, 0] = True  # who has no sample here has one that counts for nothing: 0/0 otherwise
        workspace = self._workspace
        workspace.module.train(self._training)
        models = {name: each[:active].detach() for name, each in self._models.items()}
        moving = [models[name].requires_grad_() for name in self._names]
        kind = workspace.row.dtype
        with torch.enable_grad():
            losses = self._loss_of_each(
                models,
                inputs,
                targets,
                to_device(real.to(kind), workspace.device),
            )
            slopes = torch.autograd.grad(
                losses @ to_device(shares.to(kind), workspace.device),
                moving,
                allow_unused=True,
                materialize_grads=True,
            )
        return torch.cat([each.flatten(1) for each in slopes], 1)


def _loss_of(workspace: Workspace) -> Callable[..., Tensor]:
    module, criterion = workspace.module, workspace.goal.criterion

    def loss(model: dict[str, Tensor], inputs: Batch, targets: Tensor, real: Tensor) -> Tensor:
        one = isinstance(inputs, Tensor)
        outputs = functional_call(
            module, model, (inputs,) if one else (), None if one else dict(inputs)
        )
        return criterion.masked(outputs, targets, real)

    return loss
