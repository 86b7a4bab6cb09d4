"""What the models of a federation are to do: the targets, the loss, and what they are judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from learners.data.client_data import IGNORED, Targets
from learners.devices import to_host
from learners.measures.losses import CROSS_ENTROPY, Criterion, LossFunction, criterion_of
from learners.measures.metrics import USUAL, Metric, OwnMetric, Predictions, accuracy, metrics_of


@dataclass(frozen=True)
class Goal:
    """What models are to do.

    Attributes
    ----------
    targets
        What their outputs mean.
    criterion
        The loss.
    metrics
        What they are judged by, beside the loss; the first is what results put first.
    """

    targets: Targets
    criterion: Criterion
    metrics: tuple[Metric, ...]

    def metric(self, name: str = "auto") -> Metric:
        """Return a metric by name, one of the run's own among them; ``auto`` is the usual one."""
        own = {each.name: each for each in self.metrics}
        if name == "auto":
            name = USUAL[self.targets.kind]
        return own[name] if name in own else metrics_of([name], self.targets)[0]

    def tally(self, metrics: Sequence[Metric] = ()) -> Tally:
        """Return an empty account of a model's predictions."""
        return Tally(self, metrics)

    def guess(self, targets: Tensor, n: int) -> Tensor:
        """Return the outputs [n, outputs] of a model that only knows what is usual.

        Parameters
        ----------
        targets
            What is known: targets of training data.
        n
            How many samples, or tokens, to guess.
        """
        if self.targets.has_classes:
            seen = targets[targets != IGNORED]
            counts = torch.bincount(seen.flatten(), minlength=self.targets.n_outputs)
            usual = ((counts + 1.0) / (counts.sum() + len(counts))).log()
        else:
            usual = targets.reshape(len(targets), -1).float().mean(0)
            if self.targets.kind == "multi-label":
                usual = torch.logit(usual, eps=1 / (len(targets) + 2))
        return usual.expand(n, -1)


@dataclass(frozen=True)
class Score:
    """How good a model is on some samples.

    Attributes
    ----------
    correct, counted
        How many predictions are right of how many; 0 of 0 where none can be.
    n
        Number of samples.
    loss
        Mean loss.
    values
        What the metrics say that were asked for; None where one is not defined.
    """

    correct: int
    n: int
    loss: float
    counted: int = 0
    values: tuple[float | None, ...] = ()

    @property
    def accuracy(self) -> float:
        """Share of predictions that are right; 0 if there are none."""
        return self.correct / self.counted if self.counted else 0.0


class Tally:
    """An account of a model's predictions, batch after batch.

    Parameters
    ----------
    goal
        What the model is to do.
    metrics
        What to compute in the end, beside loss and accuracy.
    """

    def __init__(self, goal: Goal, metrics: Sequence[Metric] = ()) -> None:
        self._goal = goal
        self._metrics = tuple(metrics)
        self._n = 0
        # Left on the device until the end: reading a number would wait for all that is computed.
        self._correct: list[Tensor] = []
        self._counted: list[Tensor] = []
        self._losses: list[Tensor] = []
        self._kept: list[tuple[Tensor, Tensor]] = []

    def add(self, outputs: Tensor, targets: Tensor) -> None:
        """Enter a batch: what the model gave, and what would have been right."""
        if self._goal.targets.has_classes:
            self._correct.append((outputs.argmax(-1) == targets).sum())
            if targets.dim() > 1:
                self._counted.append((targets != IGNORED).sum())
        self._n += len(targets)
        self._losses.append(self._goal.criterion.total(outputs, targets))
        if self._metrics:
            self._kept.append((to_host(outputs), to_host(targets)))

    def score(self) -> Score:
        """Return what came out."""
        correct, loss = _sum(self._correct), _sum(self._losses)
        counted = _sum(self._counted) if self._counted else self._n if self._correct else 0
        return Score(
            int(correct), self._n, float(loss) / max(self._n, 1), int(counted), self._values()
        )

    def _values(self) -> tuple[float | None, ...]:
        if not self._metrics or not self._kept:
            return (None,) * len(self._metrics)
        outputs, truth = (torch.cat(each) for each in zip(*self._kept, strict=True))
        return values_of(self._goal, self._metrics, outputs, truth)


def values_of(
    goal: Goal, metrics: Sequence[Metric], outputs: Tensor, targets: Tensor
) -> tuple[float | None, ...]:
    """Return what metrics say of outputs, both on the host; None where one is not defined."""
    given = Predictions.of(goal.targets, outputs.numpy(), targets.numpy())
    return tuple(metric(given) for metric in metrics)


def _sum(numbers: Sequence[Tensor]) -> float:
    """Return the sum of single numbers on a device, added up in Python."""
    return sum(to_host(torch.stack(list(numbers))).tolist()) if numbers else 0


def goal_of(
    targets: Targets,
    loss: str | LossFunction = "auto",
    metrics: Sequence[str | OwnMetric] = (),
) -> Goal:
    """Return what models are to do, by the names of a loss and of metrics.

    Examples
    --------
    >>> goal_of(Targets("classification", 10)).metrics[0].name
    'accuracy'
    """
    return Goal(targets, criterion_of(loss, targets), metrics_of(metrics, targets))


CLASSIFICATION = Goal(Targets("classification", 1), CROSS_ENTROPY, (accuracy,))
"""To tell classes apart, however many they are: the goal of a network that was given none."""
