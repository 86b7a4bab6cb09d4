"""Many clients' tests as one: each tests models of its own, or asks for their outputs, on own data.

Clients are stacked as in training (`learners.client.stacked_training`). Where each tests
several models on the same data, in games of Shapley values for instance, these are stacked, too:
coalitions × clients in one pass. If all test the same one model, it is not copied.

That is for devices where starting an operation takes longer than computing it. On the CPU caches
decide, and a network by itself uses them better.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from learners.client.client import Samples
from learners.client.model_games import Exam, Outputs, entering
from learners.client.training import EVALUATION_CHUNK
from learners.data.client_data import IGNORED, Batch
from learners.devices import to_device, to_host
from learners.measures.goal import Score, values_of
from learners.measures.losses import OwnLoss
from learners.rows.workspace import Workspace

Asked = TypeVar("Asked", Exam, Outputs)
Found = TypeVar("Found")

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
    return _in_pieces(exams, most_bytes, lambda some: _Sitting(some).scores())


def outputs_of_all(
    asked: Sequence[Outputs], most_bytes: int
) -> tuple[list[Tensor] | None, str | None]:
    """Return the outputs of alike questions, or why they cannot be stacked; see `examine`."""
    return _in_pieces(asked, most_bytes, lambda some: _Sitting(some, some[0].part).outputs())


def _in_pieces(
    asked: Sequence[Asked], most_bytes: int, found: Callable[[Sequence[Asked]], list[Found]]
) -> tuple[list[Found] | None, str | None]:
    """Return what is found of alike questions, as many at a time as memory is for."""
    order = sorted(range(len(asked)), key=lambda number: -len(asked[number].data))
    needed = 2 * asked[0].models.nbytes
    most = max(2, min(most_bytes // max(needed, 1), SAMPLES_AT_ONCE // len(asked[0].models)))
    pieces = -(-len(order) // most)
    answers: dict[int, Found] = {}
    for k in range(pieces):
        numbers = order[len(order) * k // pieces : len(order) * (k + 1) // pieces]
        # A client alone is computed twice: numbers must not depend on who else is in a piece.
        twice = numbers if len(numbers) > 1 else 2 * numbers
        try:
            with warnings.catch_warnings():
                # An operation without a rule would be carried out for one model after the other.
                warnings.filterwarnings("error", message=".*batching rule", category=UserWarning)
                of_some = found([asked[number] for number in twice])
        except (RuntimeError, UserWarning) as error:
            return None, f"torch cannot stack this network: {str(error).strip()[:200]}"
        answers |= zip(numbers, of_some, strict=False)
    return [answers[number] for number in range(len(asked))], None


def likeness(asked: Exam | Outputs) -> tuple[Any, ...]:
    """Return what must be equal for two questions to be one."""
    of_kind = (
        tuple(metric.name for metric in asked.metrics) if isinstance(asked, Exam) else asked.part
    )
    return (type(asked), tuple(asked.models.shape), asked.data.form, of_kind)


def why_alone(asked: Exam | Outputs) -> str | None:
    """Return why a client must find out alone; None if it need not."""
    criterion = asked.client.workspace.goal.criterion
    if isinstance(asked, Exam) and isinstance(criterion, OwnLoss):
        return f"the loss {criterion.name} is not one for all clients and single samples"
    if len(asked.data) == 0:
        return "a client without data"
    return None


class _Sitting:
    """Some exams, or questions for outputs, at once; those with the most samples come first."""

    def __init__(self, some: Sequence[Exam] | Sequence[Outputs], part: str | None = None) -> None:
        self._some = some
        self._workspace = workspace = some[0].client.workspace
        self._n_models = some[0].models.shape[0]
        self._metrics = some[0].metrics if isinstance(some[0], Exam) else ()
        self._sizes = [len(each.data) for each in some]
        self._pool, self._starts = Samples.pooled([each.data for each in some])
        places = {each.models.data_ptr() for each in some}
        # The stand-ins of a rehearsal have no place.
        self._shared = self._n_models == 1 and len(places) == 1 and not some[0].models.is_meta
        rows = some[0].models if self._shared else torch.cat([each.models for each in some])
        self._models = self._named(rows)
        per_client = _outputs_of(workspace, part)
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
        metrics = self._metrics
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

    def outputs(self) -> list[Tensor]:
        """Return what every client's models give, [models, samples, …]."""
        pieces: list[list[Tensor]] = [[] for _ in self._some]
        self._workspace.module.eval()
        with torch.no_grad():
            for begin, width, active in self._windows():
                outputs, *_ = self._pass(begin, width, active)
                for number, size in enumerate(self._sizes[:active]):
                    if size > begin:
                        pieces[number].append(outputs[number, :, : size - begin])
            return [torch.cat(each, dim=1) for each in pieces]

    def _values(self, kept: Sequence[tuple[Tensor, Tensor]]) -> Iterator[tuple[float | None, ...]]:
        """Yield what the metrics say of each model of a client."""
        metrics = self._metrics
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
        at = torch.arange(begin, begin + width)[None].expand(active, -1)
        here = at < sizes[:active, None]
        chosen = self._starts[:active, None] + torch.where(here, at, 0)
        inputs, targets = self._pool.take_rows(chosen)
        models = (
            self._models
            if self._shared
            else {name: each[:active] for name, each in self._models.items()}
        )
        outputs = self._outputs(models, inputs)
        if self._n_models == 1:
            outputs = outputs[:, None]
        return outputs, targets, to_device(here, self._workspace.device)

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


def _outputs_of(workspace: Workspace, part: str | None) -> Callable[..., Tensor]:
    module = workspace.module

    def outputs(model: dict[str, Tensor], inputs: Batch) -> Tensor:
        one = isinstance(inputs, Tensor)

        def given() -> Tensor:
            answer: Tensor = functional_call(
                module, model, (inputs,) if one else (), None if one else dict(inputs)
            )
            return answer

        return given() if part is None else entering(module, part, given)

    return outputs
