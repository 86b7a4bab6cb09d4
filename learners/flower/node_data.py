"""A node's own data, in the forms that Flower projects have it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from coalitions.errors import InvalidInputError
from learners.data.client_data import ClientData, FederatedData, Split
from learners.data.kinds import ONLY, Input, Targets
from learners.data.own.frames import holds_frame
from learners.settings.config import RunConfig
from learners.settings.seeding import generator

if TYPE_CHECKING:
    from flwr.app import Context

_LABELS = ("label", "labels", "y", "target", "fine_label")
"""What the labels are called in data sets whose examples are tables."""


def called_for(load: Callable[..., Any], context: Context) -> tuple[Any, Any]:
    """Return (train, test) from a project's own function, called with what it has parameters for.

    Parameters
    ----------
    load
        The function.
    context
        The node: `partition_id` and `num_partitions`, its node-config and its run-config.
    """
    config = {**context.run_config, **context.node_config, "context": context}
    known = {key.replace("-", "_"): value for key, value in config.items()}
    arguments = {}
    for name, parameter in inspect.signature(load).parameters.items():
        if name in known:
            arguments[name] = known[name]
        elif parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            raise InvalidInputError(
                f"the function that loads data has a parameter {name}, and neither node-config nor"
                f" run-config has {name.replace('_', '-')}"
            )
    loaded = load(**arguments)
    if not isinstance(loaded, (tuple, list)) or len(loaded) != 2:
        raise InvalidInputError("the function that loads data must return (train, test)")
    return loaded[0], loaded[1]


def as_federated(loaded: tuple[Any, Any], config: RunConfig, targets: Targets) -> FederatedData:
    """Return one node's data as that of a federation with a single client.

    A part of the training data is set aside for validation, the same one at every call.

    Parameters
    ----------
    loaded
        (train, test).
    config
        The run: its seed and its share for validation.
    targets
        What is learnt.
    """
    train, test = _split(loaded[0], "training", targets), _split(loaded[1], "test", targets)
    order = generator(config.seed, "node", "validation").permutation(len(train))
    held_out = int(config.validation_share * len(train))
    chosen = [torch.from_numpy(np.sort(part)) for part in (order[held_out:], order[:held_out])]
    inputs = train.named[ONLY]
    parts = [Split(inputs[at], train.targets[at]) for at in chosen]
    client = ClientData(parts[0], parts[1], test)
    shape = {ONLY: Input(tuple(inputs.shape[1:]))}
    return FederatedData("own", (client,), shape, targets)


def _split(given: Any, what: str, targets: Targets) -> Split:  # noqa: ANN401 (whatever there is)
    if holds_frame(given):
        raise InvalidInputError(
            f"the {what} data has a data frame, and a node cannot encode one: it does not know the"
            " categories of others; scale and encode it in the function that loads data, in the"
            " same way at each node, and return arrays (frame.to_numpy())"
        )
    pair = given if isinstance(given, tuple) and len(given) == 2 else _collected(given, what)
    inputs, labels = (torch.as_tensor(np.asarray(each)) for each in pair)
    if len(inputs) != len(labels) or not len(labels):
        raise InvalidInputError(
            f"the {what} data has {len(inputs)} inputs and {len(labels)} labels; there must be as"
            " many of both, and at least one"
        )
    inputs = inputs.to(torch.float32)
    if not bool(torch.isfinite(inputs).all()):
        raise InvalidInputError(f"the {what} data has numbers that are not finite")
    if targets.kind == "classification":
        return Split(inputs, _classes(labels, what, targets.n_outputs))
    return Split(inputs, _numbers(labels, what, targets))


def _classes(labels: Tensor, what: str, n_classes: int) -> Tensor:
    """Return labels as classes, or say that they are none; a table has them as 3.0, too."""
    whole = labels.to(torch.int64)
    if labels.dim() != 1 or int(whole.min()) < 0 or not torch.equal(whole, labels):
        raise InvalidInputError(f"the labels of the {what} data must be whole numbers from 0 on")
    largest = int(whole.max())
    if largest >= n_classes:
        raise InvalidInputError(
            f"the data has the label {largest}, and the network tells {n_classes} classes apart,"
            f" 0 … {n_classes - 1}"
        )
    return whole


def _numbers(truth: Tensor, what: str, targets: Targets) -> Tensor:
    """Return targets that are numbers, as many for each sample as the network gives."""
    truth = truth.to(torch.float32)
    width = truth[0].numel()
    if truth.dim() > 2 or width != targets.n_outputs:
        raise InvalidInputError(
            f"the {what} data has {width} numbers to learn for each sample, and the network gives"
            f" {targets.n_outputs}"
        )
    if not bool(torch.isfinite(truth).all()):
        raise InvalidInputError(f"the {what} data has targets that are not finite")
    if targets.kind == "multi-label" and not bool(((truth == 0) | (truth == 1)).all()):
        raise InvalidInputError(f"the labels of the {what} data must be zeros and ones")
    return truth


def _collected(given: Any, what: str) -> tuple[Any, Any]:  # noqa: ANN401
    """Return all inputs and labels of a data loader's data set, or of a data set, in order."""
    dataset = getattr(given, "dataset", given)
    try:
        examples = [dataset[i] for i in range(len(dataset))]
    except TypeError:
        raise InvalidInputError(
            f"the {what} data is {type(given).__name__}; it must be a data loader, a data set, or"
            " a pair of inputs and labels"
        ) from None
    if examples and isinstance(examples[0], Mapping):
        label = next((key for key in _LABELS if key in examples[0]), None)
        others = [key for key in examples[0] if key != label]
        if label is None or len(others) != 1:
            raise InvalidInputError(
                f"an example of the {what} data has {', '.join(map(str, examples[0]))}; it must"
                f" have one input, and its label under one of {', '.join(_LABELS)}"
            )
        examples = [(each[others[0]], each[label]) for each in examples]
    if not examples:
        return np.zeros((0, 1), np.float32), np.zeros(0, np.int64)
    inputs, truth = zip(*examples, strict=True)
    return np.stack([np.asarray(x) for x in inputs]), np.stack([np.asarray(y) for y in truth])
