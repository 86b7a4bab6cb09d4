"""Many models tested on the same data, and the game whose coalitions are sets of models."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from coalitions.errors import InvalidInputError
from coalitions.game import FloatVector, as_coalitions
from learners.client.client import Client, Samples
from learners.client.training import EVALUATION_CHUNK, score_model
from learners.devices import to_device, to_host
from learners.measures.goal import Score
from learners.measures.metrics import Metric, Predictions
from learners.models import Network
from learners.rows.workspace import Workspace, predicted

# ----------------------------------------------------------------------------------------
# Many models on the same pictures: what they can share, they share.
#
# The first layer of every model sees the same input. Side by side, the first convolutions of a
# block of models are one convolution with many filters, and their pools one pool over many
# channels, which use the processor's vector units where LeNet-5's six filters leave them half
# empty. From there on each model goes its own way. The numbers are those of a pass for each
# model.

WIDE_CHANNELS = 24
"""Filters to put side by side: LeNet-5 gained nothing from more, and memory grows with them."""

WIDE_CHUNK = 20
"""Pictures in a pass of the wide layer: what it writes before the pool stays in the cache."""


@dataclass(frozen=True, eq=False)
class Exam:
    """What `examined` is asked: how good models [m, P] are on samples with known targets."""

    client: Client
    models: Tensor
    data: Samples
    metrics: tuple[Metric, ...] = ()

    def alone(self) -> list[Score]:
        """Return the scores, computed by the client alone."""
        return score_models(self.client.workspace, self.models, self.data, self.metrics)


def examined(
    client: Client, models: Tensor, data: Samples, metrics: Sequence[Metric] = ()
) -> list[Score]:
    """Return how good each model [m, P] is: by the client alone, or with others at once."""
    scores: list[Score]
    (scores,) = client.find_out([Exam(client, models, data, tuple(metrics))])
    return scores


@dataclass(frozen=True, eq=False)
class Outputs:
    """A question: what models [m, P] give for samples, or what enters a part of them, [m, N, …].

    The answer stays where the models are; `part` is a name in the network.
    """

    client: Client
    models: Tensor
    data: Samples
    part: str | None = None

    def alone(self) -> Tensor:
        """Return what the models give, one after the other."""
        workspace, part = self.client.workspace, self.part
        module = workspace.module
        module.eval()
        ((inputs, _),) = self.data.chunks(len(self.data))
        given = []
        with torch.no_grad():
            for row in self.models:
                workspace.load(row)
                given.append(
                    predicted(module, inputs)
                    if part is None
                    else entering(module, part, lambda: predicted(module, inputs))
                )
        return torch.stack(given)


def entering(module: nn.Module, part: str, passing: Callable[[], object]) -> Tensor:
    """Return what enters a part of a network in a pass through it."""
    seen: list[Tensor] = []
    layer = module.get_submodule(part)
    hook = layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    try:
        passing()
    finally:
        hook.remove()
    (vectors,) = seen
    return vectors


def score_models(
    workspace: Workspace, rows: Tensor, data: Samples, metrics: Sequence[Metric] = ()
) -> list[Score]:
    """Return how good each model [m, P] is on samples with known targets."""
    stem = _stem(workspace.module)
    if stem is None or len(rows) == 1:
        return [score_model(workspace, row, data, metrics) for row in rows]
    block = max(1, WIDE_CHANNELS // stem.convolution.out_channels)
    scores: list[Score] = []
    for some in torch.split(rows, block):
        scores += _score_block(workspace, some, data, stem, metrics)
    return scores


@dataclass(frozen=True)
class _Stem:
    """A first convolution, what follows it channel by channel, and the rest of the network."""

    name: str
    convolution: nn.Conv2d
    channelwise: nn.Sequential
    rest: nn.Sequential


def _stem(module: nn.Module) -> _Stem | None:
    """Return the part of a network that models can share; None if there is none."""
    if not isinstance(module, Network) or not isinstance(module.features, nn.Sequential):
        return None
    layers = list(module.features)
    if not layers or not isinstance(layers[0], nn.Conv2d) or layers[0].groups != 1:
        return None
    if layers[0].padding_mode != "zeros":
        return None
    end = 1
    while end < len(layers) and isinstance(layers[end], (nn.MaxPool2d, nn.AvgPool2d, nn.ReLU)):
        end += 1
    (first,) = (name for name, part in module.named_modules() if part is layers[0])
    rest = nn.Sequential(*layers[end:], module.hidden, module.head)
    return _Stem(first, layers[0], nn.Sequential(*layers[1:end]), rest)


def _score_block(
    workspace: Workspace, rows: Tensor, data: Samples, stem: _Stem, metrics: Sequence[Metric]
) -> list[Score]:
    weight, bias = _stacked(workspace, rows, stem)
    channels = stem.convolution.out_channels
    tallies = [workspace.goal.tally(metrics) for _ in rows]
    workspace.module.eval()
    with torch.inference_mode():
        for images, targets in data.chunks(EVALUATION_CHUNK):
            assert isinstance(images, Tensor)  # a network with a stem has one input
            wide = torch.cat(
                [
                    stem.channelwise(
                        nn.functional.conv2d(
                            some,
                            weight,
                            bias,
                            stem.convolution.stride,
                            stem.convolution.padding,
                            stem.convolution.dilation,
                        )
                    )
                    for some in torch.split(images, WIDE_CHUNK)
                ]
            )
            for number, row in enumerate(rows):
                workspace.load(row)
                own = wide[:, number * channels : (number + 1) * channels]
                given = stem.rest(own.contiguous(memory_format=torch.channels_last))
                tallies[number].add(given, targets)
    return [tally.score() for tally in tallies]


def _stacked(workspace: Workspace, rows: Tensor, stem: _Stem) -> tuple[Tensor, Tensor | None]:
    """Return the filters and biases of all models' first convolutions, one after the other."""
    columns, shape = workspace.layout.columns, stem.convolution.weight.shape
    weight = rows[:, columns[f"{stem.name}.weight"]].reshape(-1, *shape[1:])
    if stem.convolution.bias is None:
        return weight, None
    return weight, rows[:, columns[f"{stem.name}.bias"]].reshape(-1)


# ----------------------------------------------------------------------------------------
# What a coalition of models is worth on a data set, as a game: no tensor leaves this file.

AVERAGES_AT_ONCE = 1 << 26
"""Parameters of averaged models to hold at a time: a quarter of a gigabyte."""


class ModelGame:
    r"""The utility of a coalition: how good the plain average of its members' models is.

    .. math:: v(X) = \text{accuracy}\Bigl(\tfrac{1}{|X|} \sum_{j \in X} \theta_j\Bigr),
              \qquad v(\emptyset) = 0

    With ``metric="loss"``, :math:`v(X) = \ln C - \text{loss}` for C classes: better than guessing
    is positive, and the empty coalition guesses. With any other metric m, negated if it is an
    error, :math:`v(X) = m(X) - m(\emptyset)`, where the empty coalition answers what is usual in
    `known`. A coalition for which m is not defined is worth 0.

    All averages asked for in one call are one matrix product (or a few, if they would not fit in
    memory), and every distinct coalition is tested once, see `learners.client.model_games`.

    Parameters
    ----------
    workspace
        The network.
    models
        The players, a row each, [n, P].
    data
        Samples to test on.
    n_classes
        Number of classes, C above; as the workspace's goal says if not given.
    metric
        ``accuracy``, ``loss``, or another of `learners.measures.metrics`; ``auto`` is what is usual
        with the targets.
    known
        Targets by which the empty coalition guesses; those of `data` if not given.
    client
        Whose game it is: other clients' games may be computed with it at once.
    """

    def __init__(
        self,
        workspace: Workspace,
        models: Tensor,
        data: Samples,
        *,
        n_classes: int | None = None,
        metric: str = "accuracy",
        known: Tensor | None = None,
        client: Client | None = None,
    ) -> None:
        if len(data) == 0:
            raise InvalidInputError(
                "the client has no data to value models on; choose a validation_share above 0"
            )
        self._workspace = workspace
        self._models = models
        self._data = data
        self._client = client
        goal = workspace.goal
        self._metric = None if metric == "loss" else goal.metric(metric)
        self._by_accuracy = self._metric is not None and self._metric.name == "accuracy"
        known = data.targets if known is None else known
        self._guessing = self._guessed(known, n_classes or goal.targets.n_outputs)

    @property
    def n_players(self) -> int:
        """Number of models."""
        return len(self._models)

    def __call__(self, coalitions: ArrayLike) -> FloatVector:
        """Return the value of every coalition, bool[m, n] -> float64[m]."""
        members = as_coalitions(coalitions, self.n_players)
        distinct, where = np.unique(members, axis=0, return_inverse=True)
        sizes = distinct.sum(axis=1)
        values = np.zeros(len(distinct))
        (some,) = np.nonzero(sizes)
        at_once = max(1, AVERAGES_AT_ONCE // self._models.shape[1])
        for block in np.split(some, range(at_once, len(some), at_once)):
            weights = to_device(
                torch.from_numpy(distinct[block] / sizes[block, None]).to(self._models.dtype),
                self._models.device,
            )
            values[block] = [self._value(score) for score in self._scores(weights @ self._models)]
        return values[where.reshape(-1)]

    def _scores(self, rows: Tensor) -> list[Score]:
        if self._client is None:
            return score_models(self._workspace, rows, self._data, self._asked)
        return examined(self._client, rows, self._data, self._asked)

    @property
    def _asked(self) -> tuple[Metric, ...]:
        return () if self._metric is None or self._by_accuracy else (self._metric,)

    def _value(self, score: Score) -> float:
        if self._by_accuracy:
            return score.accuracy
        if self._metric is None:
            return self._guessing - score.loss
        (value,) = score.values
        return 0.0 if value is None else self._metric.gain(value) - self._guessing

    def _guessed(self, known: Tensor, n_classes: int) -> float:
        """Return what the empty coalition gets: its loss, or its metric so that more is better."""
        goal, truth = self._workspace.goal, self._data.targets
        if self._by_accuracy or (self._metric is None and goal.targets.has_classes):
            return math.log(n_classes)
        guess = goal.guess(
            to_host(known), truth.numel() if goal.targets.has_classes else len(truth)
        )
        if self._metric is None:
            return float(goal.criterion.mean(guess, to_host(truth)))
        given = Predictions.of(goal.targets, guess.numpy(), to_host(truth).numpy())
        value = self._metric(given)
        return 0.0 if value is None else self._metric.gain(value)
