"""Networks of dense layers: linear, two hidden layers, and tables with categories."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from coalitions.errors import InvalidInputError
from learners.data.client_data import Input, Targets, size_of
from learners.models.network import MODELS, Network, Shape

# ----------------------------------------------------------------------------------------
# Numbers and categories side by side: embeddings of codes, then two dense layers.

MOST_NUMBERS = 1 << 24
"""Numbers that stand for the codes of an input: 64 MiB in each model."""


@MODELS.register("tabular")
class Tabular(Network):
    """Numbers as they are and embeddings of codes, then 64 and 32 ReLUs; takes any inputs."""

    def __init__(self, inputs: Mapping[str, Input], n_outputs: int) -> None:
        columns = MixedColumns(inputs)
        super().__init__(
            features=columns,
            hidden=nn.Sequential(
                nn.Linear(columns.width, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU()
            ),
            head=nn.Linear(32, n_outputs),
        )

    @classmethod
    def for_data(cls, inputs: Mapping[str, Input], targets: Targets) -> Tabular:
        """Return the network for some data."""
        return cls(inputs, targets.n_outputs)


class MixedColumns(nn.Module):
    """All inputs of a sample as one vector: numbers as they are, each code by its embedding.

    Attributes
    ----------
    width
        Length of the vector.
    """

    def __init__(self, inputs: Mapping[str, Input]) -> None:
        super().__init__()
        self._inputs = dict(inputs)
        self.width = sum(size_of(each) for each in inputs.values() if not each.codes)
        self.embeddings = nn.ModuleDict()
        for name, each in inputs.items():
            counts = codes_of(each)
            if counts:
                _check_room(name, counts)
                tables = [nn.Embedding(n, embedding_width(n)) for n in counts]
                self.embeddings[name.replace(".", "_")] = nn.ModuleList(tables)
                self.width += sum(table.embedding_dim for table in tables)

    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor:
        """Return a vector for each sample."""
        given = dict(zip(self._inputs, inputs, strict=True)) if inputs else named
        parts = []
        for name, each in self._inputs.items():
            flat = given[name].flatten(1) if given[name].dim() > 1 else given[name][:, None]
            if not each.codes:
                parts.append(flat)
                continue
            tables = self.embeddings[name.replace(".", "_")]
            assert isinstance(tables, nn.ModuleList)
            parts += [table(flat[:, column]) for column, table in enumerate(tables)]
        return torch.cat(parts, dim=1)


def _check_room(name: str, counts: Sequence[int]) -> None:
    numbers = sum(n * embedding_width(n) for n in counts)
    if numbers > MOST_NUMBERS:
        raise InvalidInputError(
            f"{name} has {len(counts)} columns of up to {max(counts)} codes each, and the network"
            f" would need {numbers:,} numbers for them, of which {MOST_NUMBERS:,} are the most;"
            " number the codes of each column 0, 1, …, or give real numbers as floats"
        )


def codes_of(each: Input) -> tuple[int, ...]:
    """Return how many values each column of codes has; nothing for numbers."""
    if len(each.codes) == 1:
        return each.codes * size_of(each)
    return each.codes


def embedding_width(n_codes: int) -> int:
    """Return how many numbers stand for one of some codes."""
    return min(16, math.ceil(n_codes / 2))


# ----------------------------------------------------------------------------------------
# One linear layer: logistic regression, or linear regression.


@MODELS.register("linear")
class LinearModel(Network):
    """One linear layer on numbers and embeddings of codes: for few rows of a table."""

    def __init__(self, inputs: Mapping[str, Input], n_outputs: int) -> None:
        columns = MixedColumns(inputs)
        super().__init__(
            features=columns, hidden=nn.Identity(), head=nn.Linear(columns.width, n_outputs)
        )

    @classmethod
    def for_data(cls, inputs: Mapping[str, Input], targets: Targets) -> LinearModel:
        """Return the network for some data."""
        return cls(inputs, targets.n_outputs)


# ----------------------------------------------------------------------------------------
# Two hidden layers of 200: the "2NN" of McMahan et al.


@MODELS.register("mlp")
class MLP(Network):
    """Two hidden layers of 200 ReLUs, 199 210 parameters on MNIST [McMahan2017]_."""

    def __init__(self, shape: Shape, n_classes: int) -> None:
        super().__init__(
            features=nn.Flatten(),
            hidden=nn.Sequential(
                nn.Linear(math.prod(shape), 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU()
            ),
            head=nn.Linear(200, n_classes),
        )
