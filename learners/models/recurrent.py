"""Networks of sequences: GRU, LSTM, the character model of McMahan et al., a transformer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from coalitions.errors import InvalidInputError
from learners.data.client_data import Input, Targets, described
from learners.models.network import MODELS, Network

# ----------------------------------------------------------------------------------------
# What networks of sequences share: tokens or numbers, step by step, as vectors.


class Steps(nn.Module):
    """A sequence as vectors [N, T, width]: tokens by their embeddings, numbers as they are.

    Parameters
    ----------
    inputs
        The one input: codes of shape (T,), or numbers of shape (T,) or (T, numbers of a step).
    embedding
        Length of a token's vector.

    Attributes
    ----------
    length, width
        Number of steps, and length of the vector of each.
    """

    def __init__(self, inputs: Mapping[str, Input], embedding: int) -> None:
        super().__init__()
        kinds = list(inputs.values())
        if len(kinds) != 1 or not 1 <= len(kinds[0].shape) <= (1 if kinds[0].codes else 2):
            raise InvalidInputError(
                "a network of sequences takes one input, tokens [N, T] or numbers [N, T, F], not"
                f" {described(inputs)}"
            )
        (only,) = kinds
        self.length = only.shape[0]
        self.embedding = nn.Embedding(max(only.codes), embedding) if only.codes else None
        self.width = embedding if only.codes else (*only.shape, 1)[1]

    def forward(self, sequence: Tensor) -> Tensor:
        """Return the vectors of a batch of sequences."""
        if self.embedding is not None:
            vectors: Tensor = self.embedding(sequence)
            return vectors
        return sequence if sequence.dim() == 3 else sequence[..., None]


# ----------------------------------------------------------------------------------------
# Recurrent networks: a GRU, an LSTM, and the character model of McMahan et al.


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


# ----------------------------------------------------------------------------------------
# A small transformer, for tokens and for numbers in a row.

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
