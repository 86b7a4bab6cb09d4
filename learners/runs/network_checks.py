"""Do network, weights, data, metrics and method fit together: said before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from coalitions.errors import InvalidInputError, did_you_mean, shown
from learners.algorithm import Algorithm
from learners.client.client import Samples
from learners.data.client_data import FederatedData, Split, Targets
from learners.measures.goal import Goal
from learners.measures.losses import BalancedCrossEntropy
from learners.measures.metrics import Metric, Predictions
from learners.models import Network
from learners.models.network import classifier_parameters
from learners.privacy.per_sample import private_gradient
from learners.rows.parameters import Layout
from learners.rows.workspace import Workspace, part_of, predicted
from learners.runs.reading import file_digest
from learners.settings.config import RunConfig

# ----------------------------------------------------------------------------------------
# Does a network fit the data?

_FEW = slice(0, 2)


def fitted_targets(module: nn.Module, data: FederatedData, name: str) -> Targets:
    """Return the targets as a network sees them, or say that its outputs do not fit them.

    A network may have outputs for classes that nobody has.
    """
    targets = data.targets
    for client, called in zip(data.clients, data.names, strict=True):
        outputs, wanted = _outputs(module, client.train, name), client.train.targets[_FEW]
        leading = tuple(wanted.shape) if targets.has_classes else (len(wanted),)
        shape = tuple(outputs.shape)
        if targets.kind == "regression":
            fits = outputs.numel() == wanted.numel() and len(outputs) == len(wanted)
        elif targets.kind == "multi-label":
            fits = shape == tuple(wanted.shape)
        else:
            fits = shape[:-1] == leading and shape[-1] >= targets.n_outputs
        if not fits:
            expected = leading if targets.kind == "regression" else (*leading, targets.n_outputs)
            raise InvalidInputError(
                f"the network {name} gives outputs of shape {shape} for {len(wanted)} samples of"
                f" client {shown(called)}, and {targets.kind} with {targets.n_outputs} outputs"
                f" needs {expected}"
            )
        if targets.has_classes and not targets.names and shape[-1] > targets.n_outputs:
            targets = replace(targets, n_outputs=shape[-1])
        break  # all clients have the same columns
    return targets


def checked_layout(module: nn.Module, data: FederatedData) -> Layout:
    """Return a network's layout; without a classifier if its last linear layer is none.

    Methods that cut a network in two take the last linear layer for its head. In a plain module
    that is only true if what this layer gives is what the network gives.
    """
    layout = Layout.of(module)
    linear = [part for part in module.modules() if isinstance(part, nn.Linear)]
    if isinstance(module, Network) or not linear:
        return layout
    given: list[Tensor] = []
    hook = linear[-1].register_forward_hook(lambda _, __, output: given.append(output))
    try:
        outputs = _outputs(module, data.clients[0].train, "")
    finally:
        hook.remove()
    is_head = len(given) == 1 and given[0].numel() == outputs.numel()
    if is_head and torch.equal(given[0].flatten(), outputs.flatten()):
        return layout
    return replace(layout, classifiers={})


def check_single_gradients(workspace: Workspace, data: FederatedData, name: str) -> None:
    """Say if the gradients of single samples cannot be had, which ``--dp records`` clips."""
    if isinstance(workspace.goal.criterion, BalancedCrossEntropy):
        raise InvalidInputError(
            "balanced-cross-entropy cannot be used with --dp records: its weights tell how many"
            " samples of each class a client has, without noise"
        )
    train = data.clients[0].train
    few = Samples(train, workspace.device).first(2)
    inputs, targets = few.take(torch.arange(len(few)))
    try:
        with torch.enable_grad():
            private_gradient(
                workspace,
                inputs,
                targets,
                expected=2.0,
                clip=1.0,
                noise=0.0,
                stream=torch.Generator(),
            )
    except (RuntimeError, NotImplementedError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise InvalidInputError(
            f"the gradients of single samples, which --dp records needs, cannot be had of the"
            f" network {name}: {reason}; --dp updates works with any"
        ) from None


def _outputs(module: nn.Module, split: Split, name: str) -> Tensor:
    module.eval()
    try:
        with torch.no_grad():
            outputs = predicted(module, part_of(split.inputs, _FEW))
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
        reason = str(error).strip().split("\n")[0]
        raise InvalidInputError(
            f"the network {name} cannot take what clients have: {_call(split.named)}: {reason}"
        ) from None
    finally:
        module.train()
    if not isinstance(outputs, Tensor):
        raise InvalidInputError(
            f"the network {name} gives {type(outputs).__name__}, and a tensor is needed"
        )
    return outputs


def _call(inputs: Mapping[str, Tensor]) -> str:
    """Return how a network is called with inputs, as its author would write it."""
    given = [
        f"{str(each.dtype).removeprefix('torch.')} [{', '.join(['N', *map(str, each.shape[1:])])}]"
        for each in inputs.values()
    ]
    if len(given) == 1:
        return f"forward(self, x) is called with one tensor, {given[0]}"
    names = ", ".join(inputs)
    return f"forward(self, {names}) is called with these names, shapes {' and '.join(given)}"


# ----------------------------------------------------------------------------------------
# Do clients have the data that metrics and methods need?


def check_validation_data(config: RunConfig, algorithm: Algorithm, data: FederatedData) -> None:
    """Refuse a client without validation data, if the method or a setting needs some."""
    needs = {
        config.algorithm: algorithm.traits.validates,
        "patience": config.patience is not None,
        "keep best": config.keep == "best",
    }
    who = next((name for name, needed in needs.items() if needed), None)
    for number, client in enumerate(data.clients):
        if who is not None and not len(client.validation):
            raise InvalidInputError(
                f"{who} measures models on validation data, and client {number} has"
                f" none; choose a validation_share above {config.validation_share:g}, or more"
                " samples"
            )


def check_metrics(goal: Goal, data: FederatedData) -> None:
    """Refuse a metric that is not defined on the test data of a client.

    As AUROC is not where all samples have one class, whatever a model says of them.
    """
    for metric in goal.metrics:
        undecided = [
            name
            for client, name in zip(data.clients, data.names, strict=True)
            if not _is_defined(metric, data.targets, client.test)
        ]
        if undecided:
            others = f" and of {len(undecided) - 1} more" if len(undecided) > 1 else ""
            raise InvalidInputError(
                f"the metric {metric.name} is not defined on the test data of client"
                f" {shown(undecided[0])}{others}: {metric.undefined}; choose another metric, give"
                " the client other test data, or leave it out"
            )


def _is_defined(metric: Metric, targets: Targets, split: Split) -> bool:
    """Tell whether any model's predictions have a figure; that is a question of the truth alone."""
    if not metric.undefined:
        return True
    truth = split.targets.numpy()
    rows = truth.size if targets.has_classes else len(truth)
    given = Predictions.of(targets, np.zeros((rows, targets.n_outputs)), truth)
    return metric(given) is not None


# ----------------------------------------------------------------------------------------
# Weights that training begins with, from a safetensors file; a pickle is never opened.


def bound_to_weights(config: RunConfig) -> RunConfig:
    """Return the settings with the checksum of the file of weights, if they name one.

    One that they have already must still be that of the file.
    """
    if config.weights is None:
        if config.weights_sha256 is not None:
            raise InvalidInputError("weights_sha256 has no effect unless weights names a file")
        return config
    path = Path(config.weights)
    if not path.is_file():
        return config  # which reading it says in its own words
    digest = file_digest(path)
    if config.weights_sha256 not in (None, digest):
        raise InvalidInputError(
            f"{path}: has changed since the run was set up (weights_sha256 differs); bring back"
            " what it was, or start another run"
        )
    return replace(config, weights_sha256=digest)


def load_weights(path: Path, module: nn.Module, name: str) -> str:
    """Copy the tensors of a file into a network called `name`; return a sentence on what was done.

    Every tensor of the file must be one of the network, with its shape. The head may be left out as
    a whole, as for another number of classes: it begins fresh. Whole-number buffers may be, too.
    """
    tensors = _read(path)
    own = dict(module.named_parameters()) | dict(module.named_buffers())
    head = _head(module)
    for key, tensor in tensors.items():
        if key not in own:
            raise InvalidInputError(
                f"{path} has a tensor {key!r}, which {name} has not;"
                f" {did_you_mean(key, own)}it has: {', '.join(own)}"
            )
        if tensor.shape != own[key].shape:
            fresh = "; leave the head out of the file to begin with a fresh one"
            raise InvalidInputError(
                f"{path}: {key!r} is {_shape(tensor)}, and {name} wants {_shape(own[key])}"
                + (fresh if key in head else "")
            )
        if not bool(torch.isfinite(tensor).all()):
            raise InvalidInputError(f"{path}: {key!r} has numbers that are not finite")
    wanted = {key for key, tensor in own.items() if tensor.is_floating_point()}
    missing = [key for key in own if key in wanted and key not in tensors]
    no_head = bool(missing) and set(missing) == head & wanted
    if missing and not no_head:
        raise InvalidInputError(
            f"{path} lacks {missing[0]!r} ({_shape(own[missing[0]])}) of {name}; only the whole"
            f" head may be left out: {', '.join(sorted(head)) or 'this network has none'}"
        )
    with torch.no_grad():
        for key, tensor in tensors.items():
            own[key].copy_(tensor)
    begun = f"{name} begins with the weights of {path}"
    if no_head:
        begun += f"; its head ({', '.join(missing)}) is not there, and begins fresh"
    return begun + "."


def _read(path: Path) -> dict[str, Tensor]:
    if path.suffix != ".safetensors":
        raise InvalidInputError(
            f"weights are read from a .safetensors file, and {path} is none; a pickle could run any"
            " code: save them by safetensors.torch.save_file(network.state_dict(), FILE)"
        )
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        reason = error.strerror or "there is no such file"
        raise InvalidInputError(f"cannot read {path}: {reason}") from None
    except (SafetensorError, ValueError) as error:
        raise InvalidInputError(f"{path} is not a safetensors file: {error}") from None


def _head(module: nn.Module) -> frozenset[str]:
    try:
        return classifier_parameters(module)
    except InvalidInputError:  # a network without a linear layer
        return frozenset()


def _shape(tensor: Tensor) -> str:
    return " × ".join(map(str, tensor.shape)) or "a number"
