"""Models as rows of one flat tensor, and what is computed on rows in single operations.

A federation of n models with P parameters is a tensor [n, P]. Averaging, distances, cosines and
noise are one operation on it; a network is a view of a row (see `learners.rows.workspace`).

A row holds the parameters in the order of `named_parameters`, then the floating-point buffers in
the order of `named_buffers` (the running mean and variance of batch norm). Buffers travel and are
averaged with the parameters, as federated averaging does in common practice, but no optimiser,
distance or cosine sees them: those work on `layout.parameters(rows)`. Whole-number buffers
(batch norm's count of batches) are not part of a row and keep the value of the fresh network.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from coalitions.errors import InvalidInputError
from learners.devices import to_device, to_host
from learners.models.network import classifier_parameters

Params: TypeAlias = Mapping[str, Tensor]
"""The parameters of one model by name."""

Cut: TypeAlias = Literal["head", "dense"]
"""Where features end and the classifier begins: see `classifier_parameters`."""


@dataclass(frozen=True)
class Layout:
    """Which columns of a row hold which tensor of the network.

    Attributes
    ----------
    shapes
        Shape of each tensor by its name, parameters first, then floating-point buffers.
    n_parameters
        Number of columns that are parameters; they come first.
    classifiers
        Names of the tensors of the classifier, by where it is cut off; the server knows the
        network's parts without having the network. Empty for one that has no linear layer.
    """

    shapes: Mapping[str, tuple[int, ...]]
    n_parameters: int
    classifiers: Mapping[Cut, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, module: nn.Module) -> Layout:
        """Return the layout of a network's rows."""
        parameters = {name: tuple(p.shape) for name, p in module.named_parameters()}
        buffers = {
            name: tuple(buffer.shape)
            for name, buffer in module.named_buffers()
            if buffer.is_floating_point()
        }
        classifiers: dict[Cut, frozenset[str]] = {}
        cuts: tuple[Cut, ...] = ("head", "dense")
        for cut in cuts:
            with suppress(InvalidInputError):  # said by `parts`, if anyone asks for this cut
                classifiers[cut] = classifier_parameters(module, cut=cut)
        size = sum(math.prod(shape) for shape in parameters.values())
        return cls(parameters | buffers, size, classifiers)

    @cached_property
    def columns(self) -> dict[str, slice]:
        """Columns of each tensor by its name."""
        columns, begin = {}, 0
        for name, shape in self.shapes.items():
            columns[name] = slice(begin, begin + math.prod(shape))
            begin += math.prod(shape)
        return columns

    @cached_property
    def size(self) -> int:
        """Length of a row: parameters and buffers."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def columns_of(self, names: Collection[str]) -> Tensor:
        """Return the numbers (int64) of the columns that hold some tensors, in a row's order.

        With the names of `learners.models.classifier_parameters` it tells a classifier's columns
        from those of its features: ``rows[:, columns]`` is the part that is shared, or kept.
        """
        pieces = [
            torch.arange(at.start, at.stop) for name, at in self.columns.items() if name in names
        ]
        return torch.cat(pieces) if pieces else torch.empty(0, dtype=torch.int64)

    def parts(self, cut: Cut = "head", device: torch.device | None = None) -> tuple[Tensor, Tensor]:
        """Return the columns of the features and those of the classifier, on a device if named."""
        names = self.classifiers.get(cut)
        if names is None:
            raise InvalidInputError(
                f"this network cannot be cut into features and classifier at {cut!r}: cut at"
                " 'head' it needs a linear layer that gives its outputs, at 'dense' it must be a"
                " learners.models.Network"
            )
        features, classifier = self.columns_of(self.shapes.keys() - names), self.columns_of(names)
        if device is None:
            return features, classifier
        return to_device(features, device), to_device(classifier, device)

    def parameters(self, rows: Tensor) -> Tensor:
        """Return the parameters of one row or many, without the buffers, as a view."""
        return rows[..., : self.n_parameters]

    def views(self, row: Tensor) -> dict[str, Tensor]:
        """Return the named tensors of one row, as views of it."""
        if row.shape != (self.size,):
            raise InvalidInputError(
                f"a model of this network is a row of {self.size} numbers, not {tuple(row.shape)}"
            )
        return {name: row[at].view(self.shapes[name]) for name, at in self.columns.items()}

    def pack(self, module: nn.Module) -> Tensor:
        """Return the row of a network."""
        tensors = dict(module.named_parameters()) | dict(module.named_buffers())
        return torch.cat([tensors[name].detach().reshape(-1) for name in self.shapes])

    def unpack(self, row: Tensor, module: nn.Module) -> nn.Module:
        """Copy a row into a network and return it."""
        tensors = dict(module.named_parameters()) | dict(module.named_buffers())
        with torch.no_grad():
            for name, view in self.views(row).items():
                tensors[name].copy_(view)
        return module


def weighted_mean(rows: Tensor, weights: Tensor | None = None) -> Tensor:
    r"""Return :math:`\sum_i w_i \theta_i / \sum_i w_i` of the rows [n, P]; equal weights if None.

    Examples
    --------
    >>> weighted_mean(torch.tensor([[0.0, 4.0], [4.0, 0.0]]), torch.tensor([3.0, 1.0]))
    tensor([1., 3.])
    """
    if weights is None:
        weights = rows.new_ones(len(rows))
    total = weights.sum()
    sound = (weights >= 0).all() & (total > 0)
    if weights.shape != (len(rows),) or not bool(to_host(sound)):
        raise InvalidInputError(
            f"a mean of {len(rows)} models needs as many weights, none negative, not all zero"
        )
    return (weights / total).to(rows.dtype) @ rows


def as_weights(values: npt.ArrayLike, rows: Tensor) -> Tensor:
    """Return numbers of the host as a tensor of the rows' type, where the rows are."""
    return to_device(torch.from_numpy(np.asarray(values)).to(rows.dtype), rows.device)


def reinitialised(row: Tensor, layout: Layout, stream: torch.Generator) -> Tensor:
    """Return another fresh model, given one that was just initialised.

    Initial weights of a tensor are independent draws from one distribution, so the same numbers
    in another order are as good a draw; constants (batch norm's) stay what they are. A server
    gets as many different starts as it wants without having the network.
    """
    fresh = row.clone()
    for at in layout.columns.values():
        order = torch.randperm(at.stop - at.start, generator=stream)
        fresh[at] = row[at][to_device(order, row.device)]
    return fresh


def distances(rows: Tensor) -> Tensor:
    """Return the Euclidean distances between rows, [n, n].

    Differences are formed before they are squared: close models keep their exact distance, which
    the faster expansion into inner products would round to zero.
    """
    return torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")


def cosines(rows: Tensor) -> Tensor:
    """Return the cosines between rows, [n, n], with ones on the diagonal.

    A row of zeros points nowhere: its cosine with every other row is 0.

    Examples
    --------
    >>> cosines(torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 0.0]]))
    tensor([[1., 1., 0.],
            [1., 1., 0.],
            [0., 0., 1.]])
    """
    norms = rows.norm(dim=1, keepdim=True)
    directions = rows / torch.where(norms > 0, norms, 1.0)
    return (directions @ directions.T).clamp_(-1.0, 1.0).fill_diagonal_(1.0)


def with_noise(rows: Tensor, deviation: float, stream: torch.Generator) -> Tensor:
    """Return the rows plus independent Gaussian noise of a standard deviation."""
    noise = torch.randn(rows.shape, generator=stream, dtype=rows.dtype)  # drawn on the CPU, so
    return rows + deviation * to_device(noise, rows.device)  # that every device adds the same noise
