"""Many clients' training as one: their parameters are stacked, layer by layer.

A step of a small network is some hundred operations of a few microseconds each, and starting them
takes longer than computing them on a GPU. Stacked, with `torch.func.vmap`, the steps of fifty
clients are as many operations as one client's. Losses of different clients do not depend on each
other's parameters, so the gradient of their sum holds every client's own.

Batches are those that a client alone would draw. Smaller ones are filled up with samples that
weigh nothing. The stack is sorted by the number of steps, and who is done leaves it at the end, so
nothing is computed for clients that stand still. A stack never has fewer than two clients: for two
and more, torch computes a client's numbers the same way however many there are, to the last bit.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from learners.client import gradients
from learners.client import stacked_testing as examination
from learners.client.client import Question, Samples
from learners.client.gradients import Gradients, LiveMemory
from learners.client.model_games import Exam, Outputs
from learners.client.randomness import KINDS as DROPOUTS
from learners.client.randomness import Drop, calls, drawn, dropping, drops, stacked
from learners.client.training import Fit, Fitted, batches, seed_of_draws
from learners.data.client_data import Batch
from learners.devices import to_device, to_host
from learners.measures.goal import Score
from learners.measures.losses import OwnLoss
from learners.rows.optimizers import optimizer
from learners.rows.workspace import Workspace

MOST_BYTES = 1 << 30
"""Memory for a stack, by prediction; a larger one is computed in several."""

NOT_ON_THE_CPU = "on the CPU, tests and gradients are not stacked"


@dataclass(frozen=True)
class _Drawn:
    """What a client is asked, and the batches it drew."""

    asked: Fit
    batches: tuple[Tensor, ...]


@dataclass(frozen=True)
class _Trial:
    """Whether training can be stacked: why not, or the bytes that a client's step needs.

    Masks of dropout are there for all its steps.
    """

    why_not: str | None
    bytes: int = 0
    mask_bytes: int = 0


class Stacking:
    """Trains clients of one site together, and counts by reason what had to be done alone.

    Parameters
    ----------
    most_bytes
        Memory for a stack; two clients are stacked whatever they need.
    tests
        Whether passes without steps are stacked, too: tests, outputs and gradients.

    Attributes
    ----------
    alone
        How many trainings, tests or gradients were not stacked, by reason.
    bytes_of_a_client
        The most memory that a client of a stack was predicted to need so far.
    models_of_a_client
        The most models that each client was asked to train at a time so far.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, *, tests: bool = True) -> None:
        self.most_bytes = most_bytes
        self.tests = tests
        self.alone: Counter[str] = Counter()
        self.bytes_of_a_client = 0
        self.models_of_a_client = 1
        self._trials: list[tuple[tuple[Any, ...], _Trial]] = []
        self._unstackable: list[tuple[tuple[Any, ...], str]] = []
        self._differentiation = gradients.Differentiation(most_bytes)

    def train(self, fits: Sequence[Fit]) -> list[Fitted | None]:
        """Return the models that were asked for; None for those that a client trains alone."""
        given: list[Fitted | None] = [None] * len(fits)
        groups: list[tuple[tuple[Any, ...], list[int]]] = []
        drawn: dict[int, _Drawn] = {}
        for number, asked in enumerate(fits):
            why_not = _why_alone(asked)
            if why_not is not None:
                self.alone[why_not] += 1
                continue
            chosen = tuple(
                batches(
                    asked.client,
                    len(asked.data),
                    asked.purpose,
                    epochs=asked.epochs,
                    steps=asked.steps,
                )
            )
            if chosen:
                drawn[number] = _Drawn(asked, chosen)
                _members(groups, _likeness(asked)).append(number)
        for alike, numbers in groups:
            if len(numbers) == 1:
                self.alone["no other client trains like this one"] += 1
                continue
            numbers.sort(key=lambda number: -len(drawn[number].batches))
            group = [drawn[number] for number in numbers]
            # The width is the group's, not the chunk's: numbers must not depend on the chunks.
            width = max(len(batch) for each in group for batch in each.batches)
            trial = self._tried(alike, group, width)
            if trial.why_not is not None:
                self.alone[trial.why_not] += len(group)
                continue
            self._note_memory(group, trial)
            for at in _chunks(group, trial, self.most_bytes):
                for number, fitted in zip(numbers[at], _fitted(group[at], width), strict=True):
                    given[number] = fitted
        return given

    def carry_out(self, asked: Sequence[Question]) -> list[Any]:
        """Return the answers; None for what is done alone."""
        given: list[Any] = [None] * len(asked)
        kinds: tuple[tuple[type, Callable[[list[Any]], Sequence[Any]]], ...] = (
            (Fit, self.train),
            (Exam, self.score),
            (Outputs, self.outputs),
            (Gradients, self.differentiate),
        )
        for kind, answers_to in kinds:
            numbers = [n for n, each in enumerate(asked) if isinstance(each, kind)]
            if numbers:
                answers = answers_to([asked[number] for number in numbers])
                for number, each in zip(numbers, answers, strict=True):
                    given[number] = each
        return given

    def score(self, exams: Sequence[Exam]) -> list[list[Score] | None]:
        """Return the scores that were asked for; None for those that a client finds alone."""
        return self._passed(
            exams,
            examination.why_alone,
            examination.likeness,
            lambda some: examination.examine(some, self.most_bytes),
        )

    def outputs(self, asked: Sequence[Outputs]) -> list[Tensor | None]:
        """Return the outputs that were asked for; None for those that a client finds alone."""
        return self._passed(
            asked,
            examination.why_alone,
            examination.likeness,
            lambda some: examination.outputs_of_all(some, self.most_bytes),
        )

    def differentiate(self, asked: Sequence[Gradients]) -> list[Tensor | None]:
        """Return the gradients that were asked for; None for those that a client finds alone."""
        return self._passed(asked, gradients.why_alone, gradients.likeness, self._differentiation)

    def _passed(
        self,
        asked: Sequence[Any],
        why_alone: Callable[[Any], str | None],
        likeness: Callable[[Any], tuple[Any, ...]],
        found: Callable[[Sequence[Any]], tuple[list[Any] | None, str | None]],
    ) -> list[Any]:
        """Return answers that are found by passes without steps; None for what is done alone."""
        given: list[Any] = [None] * len(asked)
        groups: list[tuple[tuple[Any, ...], list[int]]] = []
        for number, each in enumerate(asked):
            why_not = why_alone(each) if self.tests else NOT_ON_THE_CPU
            if why_not is None:
                _members(groups, likeness(each)).append(number)
            else:
                self._count(each, why_not)
        for alike, numbers in groups:
            if sum(len(asked[number].models) for number in numbers) == 1:
                continue
            why_not = next((why for known, why in self._unstackable if known == alike), None)
            if why_not is None:
                answers, why_not = found([asked[number] for number in numbers])
                for number, each in zip(numbers, answers or [], strict=False):
                    given[number] = each
                if why_not is not None:
                    self._unstackable.append((alike, why_not))
            if why_not is not None:
                for number in numbers:
                    self._count(asked[number], why_not)
        return given

    def _count(self, asked: Question, why_not: str) -> None:
        if not asked.client.watched:
            self.alone[why_not] += 1

    def _note_memory(self, group: Sequence[_Drawn], trial: _Trial) -> None:
        members = Counter(each.asked.client.index for each in group)
        self.models_of_a_client = max(self.models_of_a_client, *members.values())
        self.bytes_of_a_client = max(self.bytes_of_a_client, _predicted_bytes(group, trial))

    def _tried(self, likeness: tuple[Any, ...], group: Sequence[_Drawn], width: int) -> _Trial:
        key = (*likeness[1:], width)  # whatever the learning rate, which may change every round
        for known, trial in self._trials:
            if known == key:
                return trial
        trial = _trial(group[:2], width)
        self._trials.append((key, trial))
        return trial


def _why_alone(asked: Fit) -> str | None:
    """Return why a client must train alone; None if it need not, as far as is known yet."""
    workspace, settings = asked.client.workspace, asked.client.config
    criterion = workspace.goal.criterion
    if settings.optimizer not in ("sgd", "adam"):
        return f"the optimizer {settings.optimizer} is torch's own"
    if settings.patience is not None:
        return "patience: each client stops when its own validation data say so"
    if settings.augment is not None:
        return "augment: each client draws from a stream of its own"
    if not asked.start.shape == asked.anchor.shape == workspace.row.shape:
        return "not a model of this network"  # said in full by whoever trains it
    if asked.privacy is not None and asked.privacy.mode == "records":
        return "dp records: gradients of single records are clipped"
    if asked.loss is not None:
        return "the method has a loss of its own for each client"
    if isinstance(criterion, OwnLoss) or asked.client.criterion is not criterion:
        return f"the loss {criterion.name} is not one for all clients and single samples"
    if workspace.has_batch_norm:
        return "batch norm: samples that fill up a batch would count"
    if any(_draws(part) for part in workspace.module.modules()):
        return "dropout inside a layer that draws by itself"
    return None


def _draws(part: nn.Module) -> bool:
    """Tell whether a part draws what cannot be drawn before, as recurrent layers do."""
    if isinstance(part, DROPOUTS):
        return False
    chance = getattr(part, "p" if isinstance(part, nn.modules.dropout._DropoutNd) else "dropout", 0)
    return isinstance(chance, (int, float)) and chance > 0


def _likeness(asked: Fit) -> tuple[Any, ...]:
    """Return what must be equal for two trainings to be one stack."""
    return (asked.lr, asked.objective, asked.proximal, asked.only, asked.data.form)


def _members(
    groups: list[tuple[tuple[Any, ...], list[int]]], likeness: tuple[Any, ...]
) -> list[int]:
    """Return the group's numbers so far; compared, not hashed: a method need not be hashable."""
    for known, numbers in groups:
        if known == likeness:
            return numbers
    groups.append((likeness, []))
    return groups[-1][1]


def _chunks(group: Sequence[_Drawn], trial: _Trial, most_bytes: int) -> Iterator[slice]:
    """Yield as few equal pieces of a group as are predicted to fit, if they have two members."""
    n, each = len(group), _bytes_of_one(group, trial)
    pieces = max(1, min(-(-n // 2), n * each // most_bytes))
    while True:
        slices = [slice(n * k // pieces, n * (k + 1) // pieces) for k in range(pieces)]
        fit = all(
            (at.stop - at.start) * each + _bytes_of_data(group[at]) <= most_bytes for at in slices
        )
        if fit or -(-n // pieces) <= 2:
            yield from slices
            return
        pieces += 1


def predicted_bytes(fits: Sequence[Fit]) -> int:
    """Return the most memory that one of some alike clients, two or more, needs in a stack."""
    group = [
        _Drawn(each, tuple(batches(each.client, len(each.data), each.purpose))) for each in fits
    ]
    group.sort(key=lambda each: -len(each.batches))
    width = max(len(batch) for each in group for batch in each.batches)
    return _predicted_bytes(group, _trial(group[:2], width))


def _predicted_bytes(group: Sequence[_Drawn], trial: _Trial) -> int:
    """Return the most memory that a member of the group needs in a stack.

    A copy of a client's data is shared by all models that it trains.
    """
    models = Counter(id(each.asked.data) for each in group)
    samples = max(each.asked.data.nbytes / models[id(each.asked.data)] for each in group)
    return _bytes_of_one(group, trial) + int(samples)


def _bytes_of_data(group: Sequence[_Drawn]) -> int:
    """Return the memory of a copy of all data; the same data are there once."""
    return sum({id(each.asked.data): each.asked.data.nbytes for each in group}.values())


def _bytes_of_one(group: Sequence[_Drawn], trial: _Trial) -> int:
    """Return the memory that a member of the group needs in a stack, beside its data.

    Its rows (the model, those received and the anchor where they are needed, what the optimiser
    keeps) are there all the time. Beside them there is what a step needs, its gradient among that,
    or, when all steps are done, the result in one piece and by client.
    """
    first = group[0].asked
    settings = first.client.config
    rows = 1 + (first.objective is not None) + bool(first.proximal)
    rows += {"adam": 2}.get(settings.optimizer, int(settings.momentum > 0))
    row = first.start.nbytes
    masks = trial.mask_bytes * len(group[0].batches)
    return rows * row + masks + max(trial.bytes, 2 * row)


def _trial(some: Sequence[_Drawn], width: int) -> _Trial:
    """Try a step of two clients."""
    stack = _Stack(some, width)
    try:
        with warnings.catch_warnings(record=True) as said, LiveMemory() as memory:
            warnings.simplefilter("always")
            stack.gradients(0)
    except RuntimeError as error:  # an operation without a rule for stacks, or that draws
        reason = str(error).strip().split("\n")[0]
        return _Trial(f"torch cannot stack this network or objective: {reason[:200]}")
    for warning in said:
        # Such an operation is carried out for one client after the other: nothing is gained.
        if found := re.search(r"batching rule for (aten::\w+)", str(warning.message)):
            return _Trial(f"torch cannot stack this network or objective: it has {found[1]}")
    return _Trial(None, memory.peak // len(some), stack.mask_bytes // len(some))


def _fitted(some: Sequence[_Drawn], width: int) -> list[Fitted]:
    """Return the trained models of a chunk; a client alone in it is computed twice."""
    stack = _Stack(some if len(some) > 1 else [*some, *some], width)
    rows: list[Tensor] = []  # of those that are done: the last clients of the stack first
    for t in range(stack.n_steps):
        stack.step(t)
        done = stack.active(t + 1)
        if done < stack.active(t):
            rows = [*stack.rows(done, stack.active(t)), *rows]
    losses = to_host(stack.losses).tolist()
    return [
        Fitted(row, loss / len(each.batches))
        for row, loss, each in zip(rows, losses, some, strict=False)
    ]


class _Stack:
    """Some clients' parameters, data and batches; those with the most steps come first."""

    def __init__(self, some: Sequence[_Drawn], width: int) -> None:
        self._first = first = some[0].asked
        self._workspace = workspace = first.client.workspace
        self._ends = [len(each.batches) for each in some]
        self.n_steps = self._ends[0]
        self._pool, begins = Samples.pooled([each.asked.data for each in some])
        self._chosen, self._real = _filled_up(some, begins, width, workspace)
        self._model = _stacked([each.asked.start for each in some], workspace)
        anchors = [each.asked.anchor for each in some] if first.proximal else []
        self._centre = _stacked(anchors, workspace)
        self._received = {} if first.objective is None else _copied(self._model)
        names = dict(workspace.module.named_parameters())
        self._trained = [name for name in names if first.only is None or name in first.only]
        settings = first.client.config
        self._steps = {
            name: optimizer(
                self._model[name],
                settings.optimizer,
                first.lr,
                settings.momentum,
                weight_decay=settings.weight_decay,
            )
            for name in self._trained
        }
        self._kept = _dropped(some, width, workspace)
        self.losses = torch.zeros(len(some), device=workspace.device)
        self._loss_of_each = vmap(self._loss_of_one(frozenset(names)), randomness="error")

    def active(self, t: int) -> int:
        """Return how many clients take a step t, counted from 0; they are the first ones."""
        return sum(end > t for end in self._ends)

    @property
    def mask_bytes(self) -> int:
        """Bytes of what dropout keeps in a step."""
        return sum(each[0].nbytes for each in self._kept)

    def rows(self, begin: int, end: int) -> Iterator[Tensor]:
        """Yield the models of some clients as they are now."""
        flat = torch.cat([each[begin:end].flatten(1) for each in self._model.values()], 1)
        yield from (row.clone() for row in flat)

    def gradients(self, t: int) -> tuple[dict[str, Tensor], Tensor]:
        """Return the gradient of each trained tensor at step t, and the clients' losses."""
        n = max(2, self.active(t))
        model = {name: each[:n] for name, each in self._model.items()}
        for name in self._trained:
            model[name].requires_grad_()
        received = {name: each[:n] for name, each in self._received.items()}
        inputs, targets = self._pool.take_rows(self._chosen[t, :n])
        self._workspace.module.train()
        with torch.enable_grad():
            goals, losses = self._loss_of_each(
                model,
                received,
                inputs,
                targets,
                self._real[t, :n],
                [each[t, :n] for each in self._kept],
            )
            moving = [model[name] for name in self._trained]
            gradients = torch.autograd.grad(
                goals.sum(), moving, allow_unused=True, materialize_grads=True
            )
        return dict(zip(self._trained, gradients, strict=True)), losses.detach()

    @torch.no_grad()
    def step(self, t: int) -> None:
        """Take step t with every client that has one."""
        gradients, losses = self.gradients(t)
        if self._first.proximal:
            for name, gradient in gradients.items():
                n = len(gradient)
                pull = self._model[name][:n] - self._centre[name][:n]
                gradients[name] = gradient.add(pull, alpha=self._first.proximal)
        most = self._first.client.config.max_gradient_norm
        for name, gradient in (gradients if most is None else _cut(gradients, most)).items():
            self._steps[name](gradient)
        n = self.active(t)
        self.losses[:n] += losses[:n]

    def _loss_of_one(self, parameters: frozenset[str]) -> Callable[..., tuple[Tensor, Tensor]]:
        module, objective = self._workspace.module, self._first.objective
        criterion = self._workspace.goal.criterion

        def loss(
            model: dict[str, Tensor],
            received: dict[str, Tensor],
            inputs: Batch,
            targets: Tensor,
            real: Tensor,
            kept: list[Tensor],
        ) -> tuple[Tensor, Tensor]:
            one = isinstance(inputs, Tensor)
            with dropping(drops(module), kept):
                outputs = functional_call(
                    module, model, (inputs,) if one else (), None if one else dict(inputs)
                )
            value = criterion.masked(outputs, targets, real)
            if objective is None:
                return value, value
            own = {name: each for name, each in model.items() if name in parameters}
            return objective(value, own, received), value

        return loss


def _cut(gradients: dict[str, Tensor], most: float) -> dict[str, Tensor]:
    """Return every client's gradient cut to a length, as `learners.rows.optimizers` does."""
    squares = [each.flatten(1).square().sum(1) for each in gradients.values()]
    length = torch.stack(squares).sum(0).sqrt()
    share = (most / (length + 1e-6)).clamp(max=1.0)
    return {
        name: each * share.view(-1, *(1 for _ in each.shape[1:]))
        for name, each in gradients.items()
    }


def _dropped(some: Sequence[_Drawn], width: int, workspace: Workspace) -> list[Tensor]:
    """Return what dropout keeps, [steps, clients, width, …] for each of its calls in a pass."""
    if not drops(workspace.module):
        return []
    in_a_pass: dict[int, list[Drop]] = {}
    kept: list[list[list[Tensor]]] = []
    for each in some:
        asked, steps = each.asked, []
        stream = torch.Generator().manual_seed(seed_of_draws(asked.client, asked.purpose))
        for batch in each.batches:
            n = len(batch)
            if n not in in_a_pass:
                in_a_pass[n] = calls(workspace, asked.data, n)
            steps.append(list(drawn(in_a_pass[n], stream, workspace.row.dtype)))
        kept.append(steps)
    return [to_device(each, workspace.device) for each in stacked(kept, width)]


def _stacked(rows: Sequence[Tensor], workspace: Workspace) -> dict[str, Tensor]:
    """Return the tensors of several models by name, each [clients, …] in memory of its own."""
    if not rows:
        return {}
    flat, layout = torch.stack(list(rows)), workspace.layout
    views = {
        name: flat[:, at].reshape(len(rows), *layout.shapes[name])
        for name, at in layout.columns.items()
    }
    return _copied(views)


def _copied(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        name: each.clone(memory_format=torch.contiguous_format) for name, each in tensors.items()
    }


def _filled_up(
    some: Sequence[_Drawn], begins: Tensor, width: int, workspace: Workspace
) -> tuple[Tensor, Tensor]:
    """Return which of the pooled samples each step takes, and which of them are real.

    Both are [steps, clients, width]. A client without a step has its first sample.
    """
    shape = (len(some[0].batches), len(some), width)
    chosen, real = (
        torch.zeros(shape, dtype=torch.int64),
        torch.zeros(shape, dtype=workspace.row.dtype),
    )
    real[:, :, 0] = 1
    for number, (each, begin) in enumerate(zip(some, begins.tolist(), strict=True)):
        chosen[:, number] = begin
        for t, batch in enumerate(each.batches):
            chosen[t, number, : len(batch)] = begin + batch
            real[t, number, : len(batch)] = 1
    return to_device(chosen, workspace.device), to_device(real, workspace.device)
