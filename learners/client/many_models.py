"""Many models on the same pictures: what they can share, they share.

The first layer of every model sees the same input. Side by side, the first convolutions of a block
of models are one convolution with many filters, and their pools one pool over many channels, which
use the processor's vector units where LeNet-5's six filters leave them half empty. From there
on each model goes its own way. The numbers are those of a pass for each model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from learners.client.client import Client, Samples
from learners.client.training import EVALUATION_CHUNK, score_model
from learners.measures.goal import Score
from learners.measures.metrics import Metric
from learners.models import Network
from learners.rows.workspace import Workspace, predicted

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
