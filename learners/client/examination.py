"""Many clients' tests as one: each tests models of its own on data of its own.

Clients are stacked as in training (`learners.client.stacked`). Where each tests several models on
the same data, in games of Shapley values for instance, these are stacked, too: coalitions × clients
in one pass. If all test the same one model, it is not copied.

That is for devices where starting an operation takes longer than computing it. On the CPU caches
decide, and a network by itself uses them better.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from learners.client.client import Samples
from learners.client.many_models import Exam
from learners.client.training import EVALUATION_CHUNK
from learners.data.contents import IGNORED, Batch
from learners.devices import to_device, to_host
from learners.measures.goal import Score, values_of
from learners.measures.losses import OwnLoss
from learners.rows.workspace import Workspace

SAMPLES_AT_ONCE = 1 << 15
"""Samples, counted once for each model, in a pass: what LeNet-5 makes of them takes 0.6 GiB."""


@dataclass(frozen=True)
class _Counted:
    """What a pass found out of every client's models, [clients, models]."""

    correct: Tensor
    counted: Tensor
    loss: Tensor


def pays(device: torch.device) -> bool:
    """Tell whether to stack tests: on the CPU, LeNet-5's take two to four times as long."""
    return device.type != "cpu"


def examine(exams: Sequence[Exam], most_bytes: int) -> tuple[list[list[Score]] | None, str | None]:
    """Return the scores of alike exams, or why they cannot be stacked.

    Parameters
    ----------
    exams
        Two or more, of as many models each, on samples of one form.
    most_bytes
        Memory for the models of a stack, by prediction.
    """
    order = sorted(range(len(exams)), key=lambda number: -len(exams[number].data))
    needed = 2 * exams[0].models.nbytes
    most = max(2, min(most_bytes // max(needed, 1), SAMPLES_AT_ONCE // len(exams[0].models)))
    pieces = -(-len(order) // most)
    scores: dict[int, list[Score]] = {}
    for k in range(pieces):
        numbers = order[len(order) * k // pieces : len(order) * (k + 1) // pieces]
        some = [exams[number] for number in numbers]
        try:
            with warnings.catch_warnings():
                # An operation without a rule would be carried out for one model after the other.
                warnings.filterwarnings("error", message=".*batching rule", category=UserWarning)
                found = _Sitting(some if len(some) > 1 else [*some, *some]).scores()
        except (RuntimeError, UserWarning) as error:
            return None, f"torch cannot stack this network: {str(error).strip()[:200]}"
        scores |= zip(numbers, found, strict=False)
    return [scores[number] for number in range(len(exams))], None


def likeness(exam: Exam) -> tuple[Any, ...]:
    """Return what must be equal for two exams to be one."""
    names = tuple(metric.name for metric in exam.metrics)
    return (tuple(exam.models.shape), exam.data.form, names)


def why_alone(exam: Exam) -> str | None:
    """Return why a client must test alone; None if it need not."""
    criterion = exam.client.workspace.goal.criterion
    if isinstance(criterion, OwnLoss):
        return f"the loss {criterion.name} is not one for all clients and single samples"
    if len(exam.data) == 0:
        return "a client without data"
    return None


class _Sitting:
    """Some exams at once; those with the most samples come first."""

    def __init__(self, some: Sequence[Exam]) -> None:
        self._some = some
        self._workspace = workspace = some[0].client.workspace
        self._n_models = some[0].models.shape[0]
        self._sizes = [len(each.data) for each in some]
        self._pool = Samples.joined([each.data for each in some])
        places = {each.models.data_ptr() for each in some}
        # The stand-ins of a rehearsal have no place.
        self._shared = self._n_models == 1 and len(places) == 1 and not some[0].models.is_meta
        rows = some[0].models if self._shared else torch.cat([each.models for each in some])
        self._models = self._named(rows)
        per_client = _outputs_of(workspace)
        if self._n_models > 1:
            per_client = vmap(per_client, in_dims=(0, None))
        self._outputs = vmap(per_client, in_dims=(None if self._shared else 0, 0))

    def _named(self, rows: Tensor) -> dict[str, Tensor]:
        layout = self._workspace.layout
        whole = len(rows) // self._n_models
        lead: tuple[int, ...] = () if self._shared else (whole,)
        lead += (self._n_models,) if self._n_models > 1 else ()
        return {
            name: rows[:, at].reshape(*lead, *layout.shapes[name]).contiguous()
            for name, at in layout.columns.items()
        }

    def scores(self) -> list[list[Score]]:
        """Return the score of every client's models."""
        metrics = self._some[0].metrics
        passes: list[_Counted] = []
        kept: list[list[tuple[Tensor, Tensor]]] = [[] for _ in self._some]
        self._workspace.module.eval()
        with torch.inference_mode():
            for begin, width, active in self._windows():
                outputs, targets, real = self._pass(begin, width, active)
                passes.append(self._count(outputs, targets, real))
                if metrics:
                    host_outputs, host_targets = to_host(outputs), to_host(targets)
                    for number in range(active):
                        there = max(0, min(self._sizes[number] - begin, width))
                        kept[number].append(
                            (host_outputs[number, :, :there], host_targets[number, :there])
                        )
            correct, counted, loss = (
                to_host(torch.stack([getattr(each, name) for each in passes])).sum(0).tolist()
                for name in ("correct", "counted", "loss")
            )
        return [
            [
                Score(
                    int(correct[number][m]),
                    size,
                    float(loss[number][m]) / size,
                    int(counted[number][m]),
                    values,
                )
                for m, values in enumerate(self._values(kept[number]))
            ]
            for number, size in enumerate(self._sizes)
        ]

    def _values(self, kept: Sequence[tuple[Tensor, Tensor]]) -> Iterator[tuple[float | None, ...]]:
        """Yield what the metrics say of each model of a client."""
        metrics = self._some[0].metrics
        if not metrics:
            yield from ((),) * self._n_models
            return
        outputs = torch.cat([each for each, _ in kept], dim=1)
        targets = torch.cat([each for _, each in kept])
        for given in outputs:
            yield values_of(self._workspace.goal, metrics, given, targets)

    def _windows(self) -> Iterator[tuple[int, int, int]]:
        """Yield where a pass begins, how many samples of each client it takes, and of whom."""
        begin = 0
        while begin < self._sizes[0]:
            active = max(2, sum(size > begin for size in self._sizes))
            most = max(1, SAMPLES_AT_ONCE // (active * self._n_models))
            width = min(EVALUATION_CHUNK, most, self._sizes[0] - begin)
            yield begin, width, active
            begin += width

    def _pass(self, begin: int, width: int, active: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return outputs [clients, models, width, …], targets [clients, width, …], what is real."""
        sizes = torch.tensor(self._sizes)
        starts = (sizes.cumsum(0) - sizes)[:active, None]
        at = torch.arange(begin, begin + width)[None].expand(active, -1)
        here = at < sizes[:active, None]
        chosen = starts + torch.where(here, at, 0)
        flat, flat_targets = self._pool.take(chosen.flatten())

        def per_client(each: Tensor) -> Tensor:
            return each.reshape(active, width, *each.shape[1:])

        inputs: Batch = (
            per_client(flat)
            if isinstance(flat, Tensor)
            else {name: per_client(each) for name, each in flat.items()}
        )
        models = (
            self._models
            if self._shared
            else {name: each[:active] for name, each in self._models.items()}
        )
        outputs = self._outputs(models, inputs)
        if self._n_models == 1:
            outputs = outputs[:, None]
        return outputs, per_client(flat_targets), to_device(here, self._workspace.device)

    def _count(self, outputs: Tensor, targets: Tensor, real: Tensor) -> _Counted:
        goal, n = self._workspace.goal, len(self._some)
        active, m, width = outputs.shape[:3]
        wanted = targets[:, None].expand(active, m, *targets.shape[1:])
        losses = goal.criterion.each(outputs.flatten(0, 2), wanted.flatten(0, 2))
        loss = (losses.view(active, m, width) * real[:, None]).sum(2)
        correct = counted = torch.zeros((active, m), dtype=torch.int64, device=real.device)
        if goal.targets.has_classes:
            weighs = real.view(active, width, *(1 for _ in targets.shape[2:])).expand_as(targets)
            right = (outputs.argmax(-1) == wanted) & weighs[:, None]
            counts = weighs & (targets != IGNORED) if targets.dim() > 2 else weighs
            correct = right.flatten(2).sum(2)
            counted = counts.flatten(1).sum(1)[:, None].expand(active, m)
        return _Counted(*(_padded(each, n) for each in (correct, counted, loss)))


def _padded(found: Tensor, n: int) -> Tensor:
    """Return what was found with zeros for the clients that had no samples left."""
    return torch.cat([found, found.new_zeros(n - len(found), found.shape[1])])


def _outputs_of(workspace: Workspace) -> Callable[..., Tensor]:
    module = workspace.module

    def outputs(model: dict[str, Tensor], inputs: Batch) -> Tensor:
        one = isinstance(inputs, Tensor)
        given: Tensor = functional_call(
            module, model, (inputs,) if one else (), None if one else dict(inputs)
        )
        return given

    return outputs
