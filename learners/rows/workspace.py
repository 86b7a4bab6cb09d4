"""A network whose parameters are views of one flat tensor: where a client computes."""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch
from torch import Tensor, nn

from coalitions.errors import InvalidInputError
from learners.data.client_data import Batch
from learners.devices import module_to_device, to_device, to_host
from learners.measures.goal import CLASSIFICATION, Goal
from learners.models.network import Network
from learners.rows.parameters import Layout

Loss = Callable[[nn.Module, Batch, Tensor], Tensor]
"""The loss of a network on a batch of inputs and targets."""


def predicted(module: nn.Module, inputs: Batch) -> Tensor:
    """Return a network's outputs: one input is handed to it as it is, several by their names."""
    outputs: Tensor = module(inputs) if isinstance(inputs, Tensor) else module(**inputs)
    return outputs


def part_of(inputs: Batch, at: slice) -> Batch:
    """Return some samples of a batch."""
    if isinstance(inputs, Tensor):
        return inputs[at]
    return {name: each[at] for name, each in inputs.items()}


class Workspace:
    """One network and one gradient, flat; rows are copied in and trained in place.

    There is one workspace in each process, whatever the number of clients: a client's model is a
    row, and it moves in when the client's turn comes. The optimiser's step is then one operation
    on the flat tensor, and so is clearing the gradient.

    Parameters
    ----------
    module
        The network; its parameters become views of `row`.
    layout
        Where its tensors are in a row.
    device
        Where to compute.
    goal
        What the network is to do.
    """

    def __init__(
        self,
        module: nn.Module,
        layout: Layout,
        device: torch.device,
        goal: Goal = CLASSIFICATION,
    ) -> None:
        self.layout = layout
        self.goal = goal
        self.device = device
        self.module = module_to_device(module, device)
        self.row = layout.pack(self.module)
        self.gradient = torch.zeros_like(layout.parameters(self.row))
        self._tensors = dict(module.named_parameters()) | dict(module.named_buffers())
        for name, view in layout.views(self.row).items():
            self._tensors[name].data = view
        for name, at in layout.columns.items():
            if at.stop <= layout.n_parameters:
                # A gradient that is there already is added to in place, so it stays a view.
                self._tensors[name].grad = self.gradient[at].view(layout.shapes[name])
        self.has_batch_norm = any(
            isinstance(part, nn.modules.batchnorm._NormBase) for part in module.modules()
        )

    @property
    def parameters(self) -> Tensor:
        """The parameters, flat, without buffers; a view."""
        return self.layout.parameters(self.row)

    def named_parameters(self) -> dict[str, Tensor]:
        """Return the parameters by name, as autograd knows them."""
        return dict(self.module.named_parameters())

    def load(self, row: Tensor) -> None:
        """Copy a model in."""
        if row.shape != self.row.shape:
            raise InvalidInputError(
                f"a model of this network is a row of {self.layout.size} numbers,"
                f" not {tuple(row.shape)}"
            )
        self.row.copy_(row)

    def saved(self) -> Tensor:
        """Return a copy of the model that is here now."""
        return self.row.clone()

    def freeze_all_but(self, names: Collection[str] | None) -> None:
        """Let only these parameters have a gradient; all of them if None."""
        for name, parameter in self.module.named_parameters():
            parameter.requires_grad_(names is None or name in names)

    def backward(self, loss: Tensor) -> Tensor:
        """Return the flat gradient of a loss at the model that is here now.

        It is overwritten by the next call.
        """
        self.gradient.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        return self.gradient

    def descend(self, loss: Tensor, lr: float) -> None:
        r"""Take a step :math:`w \leftarrow w - \eta \nabla_w` from the model that is here now.

        The same numbers as a step along `backward`, without gathering the gradient into one
        tensor first: a network of millions of parameters spends less time on moving memory.
        """
        moving = [p for p in self.module.parameters() if p.requires_grad]
        gradients = torch.autograd.grad(loss, moving, allow_unused=True)
        with torch.no_grad():
            for parameter, gradient in zip(moving, gradients, strict=True):
                if gradient is not None:
                    parameter.add_(gradient, alpha=-lr)


# ----------------------------------------------------------------------------------------
# What a network makes of its inputs before its last layer sees them.


def represented(module: nn.Module, inputs: Batch) -> tuple[Tensor, Tensor]:
    """Return the vectors [N, F] that enter the last linear layer, and the scores [N, classes].

    Both come from one pass. Any network will do whose last linear layer is its classifier.

    Examples
    --------
    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> vectors, scores = represented(network, torch.zeros(5, 1, 2, 2))
    >>> vectors.shape, scores.shape
    (torch.Size([5, 3]), torch.Size([5, 2]))
    """
    if isinstance(module, Network):
        if isinstance(inputs, Tensor):
            vectors = module.represent(inputs)
        else:
            vectors = module.represent(**inputs)
        return vectors, module.head(vectors)
    linear = [part for part in module.modules() if isinstance(part, nn.Linear)]
    if not linear:
        raise InvalidInputError(
            f"{type(module).__name__} has no linear layer, so nothing enters its classifier;"
            " derive it from learners.models.Network"
        )
    seen: list[Tensor] = []
    hook = linear[-1].register_forward_pre_hook(lambda _, entering: seen.append(entering[0]))
    try:
        scores = predicted(module, inputs)
    finally:
        hook.remove()
    return seen[0], scores


def class_means(vectors: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Return the classes that occur, the mean vector of each, and how often each occurs.

    Classes and counts are on the host, the means where the vectors are.

    .. math:: C^{(j)} = \frac{1}{n_j} \sum_{x : y(x) = j} f(x)

    Examples
    --------
    >>> class_means(torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([7, 3, 3]))
    (tensor([3, 7]), tensor([[3.],
            [1.]]), tensor([2, 1]))
    """
    # Which classes there are decides shapes, so it is found out on the host.
    classes, place, counts = torch.unique(to_host(labels), return_inverse=True, return_counts=True)
    at, n = to_device(place, vectors.device), to_device(counts, vectors.device)
    sums = vectors.new_zeros(len(classes), vectors.shape[1]).index_add(0, at, vectors)
    return classes, sums / n[:, None], counts
