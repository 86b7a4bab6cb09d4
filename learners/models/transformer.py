"""A small transformer, for tokens and for numbers in a row."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from learners.data.contents import Input, Targets
from learners.models._sequence import Steps
from learners.models.network import MODELS, Network

WIDTH, HEADS, BLOCKS = 32, 2, 2


@MODELS.register("transformer")
class Transformer(Network):
    """Two blocks of self-attention with 32 numbers a step and two heads [Vaswani2017]_.

    The next token is told from those before it; all else from the mean over the steps.
    """

    def __init__(self, inputs: Mapping[str, Input], targets: Targets) -> None:
        super().__init__(
            features=_Stack(Steps(inputs, WIDTH), causal=targets.kind == "next-token"),
            hidden=nn.LayerNorm(WIDTH),
            head=nn.Linear(WIDTH, targets.n_outputs),
        )

    @classmethod
    def for_data(cls, inputs: Mapping[str, Input], targets: Targets) -> Transformer:
        """Return the network for some data."""
        return cls(inputs, targets)


class _Stack(nn.Module):
    def __init__(self, steps: Steps, *, causal: bool) -> None:
        super().__init__()
        self.steps, self._causal = steps, causal
        self.entry = nn.Linear(steps.width, WIDTH)
        self.places = nn.Parameter(0.02 * torch.randn(steps.length, WIDTH))
        self.blocks = nn.ModuleList(_Block(causal=causal) for _ in range(BLOCKS))

    def forward(self, sequence: Tensor) -> Tensor:
        vectors: Tensor = self.entry(self.steps(sequence)) + self.places
        for block in self.blocks:
            vectors = block(vectors)
        return vectors if self._causal else vectors.mean(1)


class _Block(nn.Module):
    def __init__(self, *, causal: bool) -> None:
        super().__init__()
        self._causal = causal
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.asked, self.mixed = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.dense = nn.Sequential(
            nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )

    def forward(self, vectors: Tensor) -> Tensor:
        n, length, _ = vectors.shape
        query, key, value = (
            part.view(n, length, HEADS, -1).transpose(1, 2)
            for part in self.asked(self.before(vectors)).chunk(3, dim=-1)
        )
        seen = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=self._causal)
        vectors = vectors + self.mixed(seen.transpose(1, 2).reshape(n, length, WIDTH))
        result: Tensor = vectors + self.dense(self.between(vectors))
        return result
