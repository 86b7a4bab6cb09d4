"""What a user passes to `run` in Python: data, a network, a loss, metrics."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from coalitions.errors import InvalidInputError, shown
from learners.data.client_data import ONLY, FederatedData
from learners.data.own.arrays import Arrays, ClientArrays
from learners.data.own.encode_table import TableSettings, encode_table
from learners.data.own.federation_of import federation_of_arrays, fingerprint
from learners.data.own.frames import (
    holds_frame,
    is_frame,
    named_target,
    owners_of_all,
    owners_of_pairs,
)
from learners.data.own.paths import path_settings, table_question
from learners.measures.losses import LossFunction
from learners.measures.metrics import OwnMetric
from learners.models.network import seeded
from learners.settings.config import RunConfig

# ----------------------------------------------------------------------------------------
# Tensors, arrays and data sets, converted to arrays.

UserSamples: TypeAlias = Any
"""A pair of inputs and targets, a data set or loader of torch, or a data frame with targets."""


def pairs_of(data: Any) -> dict[str, tuple[UserSamples, UserSamples | None]]:  # noqa: ANN401 (clients' data)
    """Return by its name what each client trains on and is tested on.

    A data frame alone is both: its test rows are drawn later.
    """
    named = data if isinstance(data, Mapping) else {f"client {i}": x for i, x in enumerate(data)}
    pairs: dict[str, tuple[Any, Any]] = {}
    for client, parts in named.items():
        if is_frame(parts):
            pairs[str(client)] = (parts, None)
            continue
        try:
            train, test = parts
        except (TypeError, ValueError):
            raise InvalidInputError(
                f"client {shown(str(client))} needs two things, what it trains on and what it is"
                " tested on"
            ) from None
        for part, given in (("training", train), ("test", test)):
            if given is None:
                raise InvalidInputError(
                    f"client {shown(str(client))} has no {part} data; give it some, or leave it out"
                )
        pairs[str(client)] = (train, test)
    return pairs


def arrays_of(
    pairs: Mapping[str, tuple[UserSamples, UserSamples]],
) -> dict[str, tuple[Arrays, Arrays]]:
    """Return every client's training and test data as arrays, numbers as they are.

    Parameters
    ----------
    pairs
        ``(inputs, targets)`` of arrays or tensors (inputs may be several by name), or a torch
        `TensorDataset` or other `Dataset` of such pairs: two of them for each client.
    """
    return {
        client: (_arrays(client, train), _arrays(client, test))
        for client, (train, test) in pairs.items()
    }


def _arrays(client: str, given: UserSamples) -> Arrays:
    if isinstance(given, TensorDataset):
        *inputs, targets = given.tensors
        return {ONLY: _inputs(inputs)}, _array(targets)
    if isinstance(given, Dataset | DataLoader):
        inputs, truth = examples_of(given, f"client {shown(client)}")
        if not truth:
            raise InvalidInputError(
                f"client {shown(client)}: a data set gives pairs of inputs and target, and has some"
            )
        return _stacked(inputs), np.stack([_array(y) for y in truth])
    if isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 2:
        inputs, targets = given
        if isinstance(inputs, Mapping):
            return {str(key): _array(each) for key, each in inputs.items()}, _array(targets)
        return {ONLY: _array(inputs)}, _array(targets)
    raise InvalidInputError(
        f"client {shown(client)}: data are (inputs, targets), a torch Dataset or a table, not"
        f" {type(given).__name__}"
    )


LABELS = ("label", "labels", "y", "target", "fine_label")
"""What the labels are called in data sets whose examples are tables."""


def examples_of(given: Any, what: str) -> tuple[list[Any], list[Any]]:  # noqa: ANN401
    """Return all inputs and targets of a data set, or of a data loader's, in order.

    Parameters
    ----------
    given
        Its examples are pairs, or tables with one input and its label under one of `LABELS`.
    what
        What messages call the data.
    """
    dataset = getattr(given, "dataset", given)
    try:
        examples = [dataset[i] for i in range(len(dataset))]
    except TypeError:
        raise InvalidInputError(
            f"{what} is {type(given).__name__}; it must be a data loader, a data set, or a pair of"
            " inputs and labels"
        ) from None
    if examples and isinstance(examples[0], Mapping):
        label = next((key for key in LABELS if key in examples[0]), None)
        others = [key for key in examples[0] if key != label]
        if label is None or len(others) != 1:
            raise InvalidInputError(
                f"an example of {what} has {', '.join(map(str, examples[0]))}; it must have one"
                f" input, and its label under one of {', '.join(LABELS)}"
            )
        examples = [(each[others[0]], each[label]) for each in examples]
    for each in examples[:1]:
        if not isinstance(each, tuple | list) or len(each) != 2:
            raise InvalidInputError(f"{what}: a data set gives pairs of inputs and target")
    return [x for x, _ in examples], [y for _, y in examples]


def _inputs(tensors: Sequence[Tensor]) -> NDArray[Any]:
    if len(tensors) == 1:
        return _array(tensors[0])
    raise InvalidInputError(
        f"a TensorDataset of {len(tensors) + 1} tensors does not name its inputs; give"
        " ({'name': tensor, …}, targets) instead"
    )


def _stacked(samples: Sequence[Any]) -> dict[str, NDArray[Any]]:
    if isinstance(samples[0], Mapping):
        return {str(key): np.stack([_array(each[key]) for each in samples]) for key in samples[0]}
    return {ONLY: np.stack([_array(each) for each in samples])}


def _array(given: Any) -> NDArray[Any]:  # noqa: ANN401 (whatever numpy can make an array of)
    if isinstance(given, Tensor):
        given = given.detach().cpu()
        if given.dtype in (torch.bfloat16, torch.float16):
            given = given.float()
        return given.numpy()  # type: ignore[no-any-return]
    return np.asarray(given)


# ----------------------------------------------------------------------------------------
# What a user brings to a run in Python: data, a network, a loss, metrics of their own.
#
# No configuration can hold these, so it holds their marks: ``NAME@CHECKSUM``. A run that is
# resumed asks for the same again and compares the marks.

Clients: TypeAlias = (
    Mapping[str, tuple[UserSamples, UserSamples] | UserSamples]
    | Sequence[tuple[UserSamples, UserSamples] | UserSamples]
    | UserSamples
)
"""What each client trains on and is tested on, by name or in order; or a data frame of all rows."""

Factory: TypeAlias = Callable[[], nn.Module] | nn.Module
"""A class or function that makes a network without being given anything; or a network."""

MARK = "@"

_NAME = "your data"

_FOR_OTHER_DATA = ("train_sizes", "test_sizes", "data_dir", "data_sha256")
"""Settings of data sets by name, and of files."""

_FOR_TABLES = (
    "target",
    "client_column",
    "group_column",
    "schema",
    "share_statistics",
    "train_size",
    "test_size",
)
"""Settings of tables, whether they come from files or from Python."""

_OF_DATA = (
    *(*_FOR_OTHER_DATA, *_FOR_TABLES),
    *("partition", "task", "validation_share", "poison", "seed"),
)
"""Settings that say what becomes of data that are brought, or refuse them."""


class LastData:
    """Keeps the data that were made last, for the next run that has the same.

    Runs of a comparison with the same seed have the same data: these are dealt once. Data of
    another run are forgotten before others are made.
    """

    def __init__(self) -> None:
        self._key: Any = None
        self._made: Any = None

    def of(self, key: Any, make: Callable[[], Any]) -> Any:  # noqa: ANN401 (data, however made)
        """Return what was made last, if its key is this one, or else make it."""
        if key != self._key:
            self.forget()
            self._made, self._key = make(), key
        return self._made

    def forget(self) -> None:
        """Keep nothing."""
        self._key = self._made = None

    def __reduce__(self) -> tuple[type[LastData], tuple[()]]:
        """Travel to another process without the data."""
        return LastData, ()


@dataclass(frozen=True)
class UserInputs:
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
        Name of the column to predict, where data are tables.
    client_column
        Name of the column with the client's name, where one table has the rows of all.
    """

    data: Clients | FederatedData | None = None
    model: Factory | None = None
    loss: str | LossFunction | None = None
    metrics: Sequence[str | OwnMetric] = ()
    target: str | None = None
    client_column: str | None = None

    def marked(
        self, config: RunConfig, last: LastData | None = None
    ) -> tuple[RunConfig, FederatedData | None]:
        """Return the configuration with the marks of what was brought, and the data.

        One that has marks already must have the same. `last` is that of `learners.runs.prepare`.
        """
        config = self._with_columns(config)
        data: FederatedData | None = None
        changes: dict[str, Any] = {}
        if self.data is not None:
            settings = [(name, getattr(config, name)) for name in _OF_DATA]
            asked = ("brought", id(self.data), *settings)
            data, mark = (last or LastData()).of(asked, lambda: self._federation_and_mark(config))
            name = config.dataset.partition(MARK)[0] if MARK in config.dataset else "own"
            changes["dataset"] = f"{name}{MARK}{mark}"
            changes |= {"clients": len(data.clients), "partition": "natural"}
        if self.model is not None:
            changes["model"] = f"own{MARK}{self._model_mark()}"
        if self.loss is not None:
            changes["loss"] = _named(self.loss)
        if self.metrics:
            changes["metric"] = tuple(map(_named, self.metrics))
        for key in ("dataset", "model", "loss", "metric"):
            _check_mark(key, getattr(config, key), changes.get(key))
        for key in ("model", "loss", "metric"):
            _check_given_once(key, getattr(config, key), changes.get(key))
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

    def _with_columns(self, config: RunConfig) -> RunConfig:
        """Return the configuration with the columns that were named beside it."""
        for key in ("target", "client_column"):
            named, there = getattr(self, key), getattr(config, key)
            if named is not None and there not in (None, named):
                raise InvalidInputError(
                    f"{key} is {shown(named)} in the call and {shown(there)} in the configuration;"
                    " name one of them"
                )
            if named is not None:
                config = replace(config, **{key: named})
        return config

    def _federation_and_mark(self, config: RunConfig) -> tuple[FederatedData, str]:
        data = self._federation(config)
        return data, fingerprint(data)[:16]

    def _federation(self, config: RunConfig) -> FederatedData:
        _check_free(config)
        if isinstance(self.data, FederatedData):
            _check_no_table(config)
            return self.data
        return federation_of_arrays(
            _NAME,
            self._arrays(config),
            validation_share=config.validation_share,
            poison=config.poison,
            seed=config.seed,
        )

    def _arrays(self, config: RunConfig) -> ClientArrays:
        """Return the clients' arrays; those in tables are encoded."""
        if is_frame(self.data) or config.client_column is not None:
            return _of_one_table(self.data, config)
        if isinstance(self.data, tuple) and len(self.data) == 2 and all(map(is_frame, self.data)):
            raise InvalidInputError(
                "a pair of tables has training and test rows of all clients: name the column with"
                " the client's name, as client_column=; two clients with a table each are a list"
            )
        pairs = pairs_of(self.data)
        if any(holds_frame(part) for parts in pairs.values() for part in parts):
            return _of_tables(pairs, config)
        _check_no_table(config)
        task = None if config.task == "auto" else config.task
        return ClientArrays(arrays_of(pairs), task, (), {}, "")


def _of_one_table(data: Any, config: RunConfig) -> ClientArrays:  # noqa: ANN401 (a user's)
    """Return the clients' arrays of one table with the rows of all."""
    if config.client_column is None:
        raise InvalidInputError(
            "your table has the rows of all clients: name the column with the client's name, as"
            " client_column=; or give each client a table of its own, {name: table}"
        )
    question = _question(config, config.target, data)
    return encode_table(owners_of_all(data, config.client_column, question.names), question)


def _of_tables(pairs: Mapping[str, tuple[Any, Any]], config: RunConfig) -> ClientArrays:
    """Return the arrays of clients that have tables of their own."""
    parts = [part for both in pairs.values() for part in both]
    beside = next((name for part in parts if (name := named_target(part)) is not None), None)
    question = _question(config, config.target or beside, parts[0])
    return encode_table(owners_of_pairs(pairs, question.target, question.names), question)


def _question(config: RunConfig, target: str | None, first: Any) -> TableSettings:  # noqa: ANN401
    if target is None:
        there = f"; there are: {', '.join(map(str, first.columns))}" if is_frame(first) else ""
        raise InvalidInputError(f"{_NAME}: name the column to predict, as target={there}")
    asked = replace(path_settings(config), path=Path(_NAME))
    return table_question(asked, target, config.client_column or "")


def _check_free(config: RunConfig) -> None:
    for key in _FOR_OTHER_DATA:
        if getattr(config, key):
            raise InvalidInputError(f"{key} has no effect on data of one's own")
    if config.partition not in ("auto", "natural"):
        raise InvalidInputError(
            f"the partition {config.partition} has no effect on data of one's own: every client"
            " has what it was given"
        )


def _check_no_table(config: RunConfig) -> None:
    for key in _FOR_TABLES:
        if getattr(config, key):
            raise InvalidInputError(
                f"{key} has no effect on data of one's own that are arrays; it is for tables"
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


def _check_given_once(key: str, there: Any, brought: Any) -> None:  # noqa: ANN401 (settings)
    """Refuse what the settings and the call both name, unless it is the same."""
    if brought is None or there in ("auto", (), brought):
        return
    word = {"metric": "metrics"}.get(key, key)
    raise InvalidInputError(
        f"the settings say {key} = {_listed(there)}, and {word}= brings {_listed(brought)}; give"
        " one of them"
    )


def _listed(names: str | Sequence[str]) -> str:
    texts = (names,) if isinstance(names, str) else names
    return ", ".join(each.partition(MARK)[0] for each in texts)


def _named(given: str | Callable[..., Any]) -> str:
    if isinstance(given, str):
        return given
    return f"{getattr(given, '__name__', type(given).__name__)}{MARK}own"
