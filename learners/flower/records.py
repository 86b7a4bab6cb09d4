"""Messages as Flower's records, without pickle, and a node's memory of a run."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coalitions.errors import InvalidInputError
from coalitions.files.arrays import ArrayFile
from coalitions.files.writing import disk_trouble_named, write_whole
from learners.runs.checkpoint import tensor_bytes
from learners.task import Message

if TYPE_CHECKING:
    from flwr.app import Array, ArrayRecord, RecordDict

# ----------------------------------------------------------------------------------------
# Messages as Flower's records and back: names to tensors, arrays and plain values, no pickle.
#
# A message is a `RecordDict` of three records::
#
#     tensors   ArrayRecord   entries that are torch tensors, as .npy
#     arrays    ArrayRecord   entries that are numpy arrays, as .npy
#     values    ConfigRecord  one text, `json`: all other entries as a JSON object
#
# `.npy` is what Flower itself writes, so its tools can read the arrays. What comes back is a
# stranger's: a header that lies about its array, a type that is no number, text that is no JSON
# are refused before anything is as large as they claim: memory is taken for bytes that came,
# only.

TENSORS, ARRAYS, VALUES, JSON = "tensors", "arrays", "values", "json"

_NUMPY = "numpy.ndarray"
"""What Flower calls an array that is written as .npy."""

_KINDS = "biufc"
"""Of numpy's kinds of types, those that are numbers."""

_ENTRIES = 10_000
"""Entries of a message; ours have a dozen."""

_AXES = 16
"""Axes of an array; ours have two."""


class UnreadableError(InvalidInputError):
    """Records that are no message of ours."""


def to_records(message: Message) -> RecordDict:
    """Return a message as records.

    Parameters
    ----------
    message
        Names to tensors, numpy arrays, and values that JSON can hold; a tuple becomes a list.
    """
    from flwr.app import ArrayRecord, ConfigRecord, RecordDict

    tensors, arrays, values = ArrayRecord(), ArrayRecord(), {}
    for name, value in message.items():
        if isinstance(value, Tensor):
            tensors[name] = _written(value.detach().cpu().numpy())
        elif isinstance(value, np.ndarray):
            arrays[name] = _written(value)
        else:
            values[name] = value.item() if isinstance(value, np.generic) else value
    try:
        text = json.dumps(values)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"a message holds tensors, numpy arrays, text, numbers and lists of these: {error}"
        ) from None
    return RecordDict({TENSORS: tensors, ARRAYS: arrays, VALUES: ConfigRecord({JSON: text})})


def _written(array: NDArray[Any]) -> Array:
    from flwr.app import Array

    # `ascontiguousarray` gives a single number an axis; its shape is put back.
    return Array(np.ascontiguousarray(array).reshape(array.shape))


def from_records(records: RecordDict, limit: int | None = None) -> dict[str, Any]:
    """Return the message that records stand for.

    Parameters
    ----------
    records
        Whatever came.
    limit
        Bytes that all of it may have; None for any number.

    Raises
    ------
    UnreadableError
        It is no message, or too large; in words that repeat nothing of it.
    """
    _check_size(records, limit)
    message: dict[str, Any] = {}
    for place in (TENSORS, ARRAYS):
        for name, array in _record(records, place).items():
            value = _array(array)
            message[name] = torch.from_numpy(value) if place == TENSORS else value
    values = _values(records)
    if len(values) + len(message) > _ENTRIES or values.keys() & message.keys():
        raise UnreadableError("the reply has too many entries, or one of them twice")
    return message | values


def _check_size(records: RecordDict, limit: int | None) -> None:
    """Refuse records with more bytes than a message may have, by what they are, not claim."""
    total = 0
    for record in records.array_records.values():
        total += sum(len(array.data) for array in record.values())
    for config in records.config_records.values():
        total += sum(len(value) if isinstance(value, (str, bytes)) else 8 for value in config)
        total += sum(
            len(value) if isinstance(value, (str, bytes, list)) else 8 for value in config.values()
        )
    if limit is not None and total > limit:
        raise UnreadableError(f"the reply has {total:,} bytes, and {limit:,} are the most")


def _record(records: RecordDict, place: str) -> ArrayRecord:
    if place not in records.array_records:
        raise UnreadableError(f"the reply has no {place}")
    record = records.array_records[place]
    if len(record) > _ENTRIES:
        raise UnreadableError(f"the reply has {len(record)} {place}")
    return record


def _array(array: Any) -> NDArray[Any]:  # noqa: ANN401 (Flower's array, whatever is in it)
    """Return the array that a .npy file holds, once it is certain that all of it is there."""
    if array.stype != _NUMPY:
        raise UnreadableError("an array of the reply is not written as .npy")
    try:
        file = ArrayFile(io.BytesIO(array.data), "an array of the reply")
    except InvalidInputError:
        raise UnreadableError("an array of the reply is not written as .npy") from None
    header = file.header
    if header.dtype.kind not in _KINDS:
        raise UnreadableError("an array of the reply does not hold numbers")
    if len(header.shape) > _AXES:
        raise UnreadableError(f"an array of the reply has more than {_AXES} axes")
    if header.nbytes != file.n_bytes:
        raise UnreadableError("an array of the reply has another size than it says")
    return file.load().astype(header.dtype.newbyteorder("="), copy=False)


def _values(records: RecordDict) -> dict[str, Any]:
    text = records.config_records.get(VALUES, {}).get(JSON)
    if not isinstance(text, str):
        raise UnreadableError("the reply has no values")
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableError("the values of the reply are not JSON") from None
    if not isinstance(values, dict):
        raise UnreadableError("the values of the reply are not a table")
    return values


# ----------------------------------------------------------------------------------------
# What a node keeps of a run: the client's memory after each question that changed it.
#
# A version is named after its question. The server says which one a question builds on, so a
# client whose answer came too late, or whose server went back to a checkpoint, goes on from where
# the server is, and a question that arrives twice has one effect: it is answered from what is
# kept.

NOTHING = ""
"""The version before the first."""

_RECORD = "coalitions"
_DIGEST = hashlib.sha256().digest_size
_RUN, _VERSION = re.compile(r"[0-9a-f]{32}"), re.compile(r"\d{1,9}\.\d{1,9}")


@dataclass(frozen=True)
class Version:
    """What a client remembers after a question, and what it answered to it."""

    name: str
    memory: Mapping[str, Any]
    reply: Mapping[str, Any]


class NodeMemory:
    """The versions of one run at one node: the newest in Flower's state, all of them in a folder.

    Parameters
    ----------
    folder
        The node's own folder; the run's versions lie in one named after the run.
    run
        The run's id.
    state
        What Flower keeps for the node while its process lives.
    """

    def __init__(self, folder: Path, run: str, state: RecordDict) -> None:
        self._folder = folder / run
        self._run = run
        self._state = state

    def version(self, name: str) -> Version | None:
        """Return a version, None if the node does not have it, or not whole."""
        newest = self._state.config_records.get(_RECORD)
        if newest is not None and (newest["run"], newest["version"]) == (self._run, name):
            content = newest["content"]
        else:
            try:
                content = self._path(name).read_bytes()
            except OSError:
                return None
        return _unpacked(name, content)

    def keep(self, version: Version) -> None:
        """Keep a version, on disk first."""
        from flwr.app import ConfigRecord

        content = _packed(version)
        with disk_trouble_named(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        write_whole(self._path(version.name), content)
        self._state[_RECORD] = ConfigRecord(
            {"run": self._run, "version": version.name, "content": content}
        )

    def forget_others(self, names: Collection[str]) -> None:
        """Remove all versions but some."""
        kept = {self._path(name) for name in names}
        for path in self._folder.glob("*.safetensors"):
            if path not in kept:
                path.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.safetensors"


def sound_names(run: object, *versions: object) -> bool:
    """Tell whether a run and versions are named as ours are: names become files."""
    return (
        isinstance(run, str)
        and _RUN.fullmatch(run) is not None
        and all(isinstance(each, str) and _VERSION.fullmatch(each) for each in versions)
    )


def _packed(version: Version) -> bytes:
    tensors: dict[str, Tensor] = {}
    values: dict[str, Any] = {}
    for part, entries in (("memory", version.memory), ("reply", version.reply)):
        for name, value in entries.items():
            if isinstance(value, Tensor):
                tensors[f"{part}/tensor/{name}"] = value.detach().cpu().contiguous()
            elif isinstance(value, np.ndarray):
                tensors[f"{part}/array/{name}"] = torch.from_numpy(np.array(value, order="C"))
            else:
                plain = value.item() if isinstance(value, np.generic) else value
                values.setdefault(part, {})[name] = plain
    content = tensor_bytes(tensors, {"values": json.dumps(values)})
    return hashlib.sha256(content).digest() + content


def _unpacked(name: str, content: bytes) -> Version | None:
    from safetensors.torch import load

    digest, content = content[:_DIGEST], content[_DIGEST:]
    if hashlib.sha256(content).digest() != digest:
        return None
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    values = json.loads(header["__metadata__"]["values"])
    parts: dict[str, dict[str, Any]] = {
        part: dict(values.get(part, {})) for part in ("memory", "reply")
    }
    for place, tensor in load(content).items():
        part, kind, entry = place.split("/", 2)
        parts[part][entry] = tensor if kind == "tensor" else tensor.numpy()
    return Version(name, parts["memory"], parts["reply"])
