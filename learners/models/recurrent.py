"""Recurrent networks: a GRU, an LSTM, and the character model of McMahan et al."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor, nn

from learners.data.contents import Input, Targets
from learners.models._sequence import Steps
from learners.models.network import MODELS, Network


class Recurrent(Network):
    """A recurrent layer over a sequence; one output at its end, or one at each step.

    Next tokens have an output at each step, all else one at the last.
    """

    cell: ClassVar[type[nn.GRU | nn.LSTM]] = nn.GRU
    embedding: ClassVar[int] = 16
    width: ClassVar[int] = 32
    layers: ClassVar[int] = 1

    def __init__(self, inputs: Mapping[str, Input], targets: Targets) -> None:
        steps = Steps(inputs, self.embedding)
        layer = self.cell(steps.width, self.width, self.layers, batch_first=True)
        super().__init__(
            features=_Run(steps, layer, every=targets.kind == "next-token"),
            hidden=nn.Identity(),
            head=nn.Linear(self.width, targets.n_outputs),
        )

    @classmethod
    def for_data(cls, inputs: Mapping[str, Input], targets: Targets) -> Recurrent:
        """Return the network for some data."""
        return cls(inputs, targets)


class _Run(nn.Module):
    def __init__(self, steps: Steps, layer: nn.GRU | nn.LSTM, *, every: bool) -> None:
        super().__init__()
        self.steps, self.layer, self._every = steps, layer, every

    def forward(self, sequence: Tensor) -> Tensor:
        states: Tensor = self.layer(self.steps(sequence))[0]
        return states if self._every else states[:, -1]


@MODELS.register("gru")
class GRU(Recurrent):
    """One layer of 32 gated units, tokens embedded in 16 numbers."""


@MODELS.register("lstm")
class LSTM(Recurrent):
    """One layer of 32 long short-term memory cells, tokens embedded in 16 numbers."""

    cell = nn.LSTM


@MODELS.register("char-lstm")
class CharLSTM(Recurrent):
    """Two layers of 256 LSTM cells over characters embedded in 8 numbers [McMahan2017]_."""

    cell, embedding, width, layers = nn.LSTM, 8, 256, 2
