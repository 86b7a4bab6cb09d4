"""Weights that training begins with, from a safetensors file; a pickle is never opened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from coalitions.errors import InvalidInputError, did_you_mean
from learners.models.network import classifier_parameters
from learners.runs.reading import file_digest
from learners.settings.config import RunConfig


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
