"""What a user brings to a run in Python: data, a network, a loss, metrics of their own.

No configuration can hold these, so it holds their marks: ``NAME@CHECKSUM``. A run that is resumed
asks for the same again and compares the marks.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from torch import nn

from coalitions.errors import InvalidInputError
from learners.data.contents import FederatedData
from learners.data.own import Arrays, federation_of, fingerprint
from learners.measures.losses import LossFunction
from learners.measures.metrics import OwnMetric
from learners.models.network import seeded
from learners.runs.adapters import Samples, arrays_of, is_table
from learners.settings.config import RunConfig

Clients: TypeAlias = Mapping[str, tuple[Samples, Samples]] | Sequence[tuple[Samples, Samples]]
"""What each client trains on and is tested on, by name or in order."""

Factory: TypeAlias = Callable[[], nn.Module] | nn.Module
"""A class or function that makes a network without being given anything; or a network."""

MARK = "@"

_FOR_OTHER_DATA = (
    "train_size",
    "train_sizes",
    "test_size",
    "test_sizes",
    "data_dir",
    "target",
    "client_column",
    "group_column",
    "schema",
    "share_statistics",
    "data_sha256",
)
"""Settings of data sets by name, and of files."""


@dataclass(frozen=True)
class Own:
    """What a user brought; None, or nothing, where the configuration says it.

    Attributes
    ----------
    data
        The clients' data: a federation, or what one is made of.
    model
        The network.
    loss
        A function of outputs and targets.
    metrics
        Names of metrics, and functions of targets and outputs.
    target
        Name of the column that is the target, where data are tables.
    """

    data: Clients | FederatedData | None = None
    model: Factory | None = None
    loss: str | LossFunction | None = None
    metrics: Sequence[str | OwnMetric] = ()
    target: str | None = None

    def marked(self, config: RunConfig) -> tuple[RunConfig, FederatedData | None]:
        """Return the configuration with the marks of what was brought, and the data.

        One that has marks already must have the same.
        """
        data = None if self.data is None else self._federation(config)
        changes: dict[str, Any] = {}
        if data is not None:
            _check_free(config)
            name = config.dataset.partition(MARK)[0] if MARK in config.dataset else "own"
            changes["dataset"] = f"{name}{MARK}{fingerprint(data)[:16]}"
            changes |= {"clients": len(data.clients), "partition": "natural"}
        if self.model is not None:
            changes["model"] = f"own{MARK}{self._model_mark()}"
        if self.loss is not None:
            changes["loss"] = _named(self.loss)
        if self.metrics:
            changes["metric"] = tuple(map(_named, self.metrics))
        for key in ("dataset", "model", "loss", "metric"):
            _check_mark(key, getattr(config, key), changes.get(key))
        return replace(config, **changes), data

    def network(self, seed: int) -> nn.Module:
        """Return the user's network, with initial weights that depend on the seed only.

        A network that is given as it is keeps its weights.
        """
        assert self.model is not None
        if isinstance(self.model, nn.Module):
            return copy.deepcopy(self.model)
        try:
            made = seeded(self.model, seed)
        except TypeError as error:
            raise InvalidInputError(
                f"model is a class or function that is called without arguments; {error}"
            ) from None
        if not isinstance(made, nn.Module):
            raise InvalidInputError(f"model must make a torch.nn.Module, not {type(made).__name__}")
        return made

    def _model_mark(self) -> str:
        """Return a checksum of the network: its parts, and its weights if it came with them."""
        module = self.network(0)
        shapes = {name: tuple(each.shape) for name, each in module.state_dict().items()}
        digest = hashlib.sha256(f"{module!r} {shapes}".encode())
        if isinstance(self.model, nn.Module):
            for each in module.state_dict().values():
                digest.update(each.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]

    def _federation(self, config: RunConfig) -> FederatedData:
        if isinstance(self.data, FederatedData):
            return self.data
        assert self.data is not None
        if is_table(self.data):
            raise InvalidInputError(
                "data is one table; give two for each client, {name: (train, test), …}, or the path"
                " of its file as dataset, with target and client_column"
            )
        named = self.data
        if not isinstance(named, Mapping):
            named = {f"client {i}": each for i, each in enumerate(named)}
        clients: dict[str, tuple[Arrays, Arrays]] = arrays_of(named, self.target)
        return federation_of(
            "your data",
            clients,
            task=config.task,
            validation_share=config.validation_share,
            poison=config.poison,
            seed=config.seed,
        )


def _check_free(config: RunConfig) -> None:
    for key in _FOR_OTHER_DATA:
        if getattr(config, key):
            raise InvalidInputError(f"{key} has no effect on data of one's own")
    if config.partition not in ("auto", "natural"):
        raise InvalidInputError(
            f"the partition {config.partition} has no effect on data of one's own: every client"
            " has what it was given"
        )


def _check_mark(key: str, there: Any, brought: Any) -> None:  # noqa: ANN401 (settings)
    """Refuse what is not the same as a marked configuration was made with."""
    # A path may have the sign in it, too, but after a mark there is nothing but letters and digits.
    texts = (there,) if isinstance(there, str) else there
    marked = any(MARK in each and each.rpartition(MARK)[2].isalnum() for each in texts)
    if not marked or brought == there:
        return
    word = {"dataset": "data", "metric": "metrics"}.get(key, key)
    if brought is None:
        raise InvalidInputError(
            f"the run was made with {word} of its user's own; give the same again, as {word}="
        )
    raise InvalidInputError(
        f"{word} is not the {word} that the run began with ({there} then, {brought} now); give the"
        " same again"
    )


def _named(given: str | Callable[..., Any]) -> str:
    if isinstance(given, str):
        return given
    return f"{getattr(given, '__name__', type(given).__name__)}{MARK}own"
