"""What a network makes of its inputs before its last layer sees them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from coalitions.errors import InvalidInputError
from learners.data.contents import Batch
from learners.devices import to_device, to_host
from learners.models.network import Network
from learners.rows.workspace import predicted


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
