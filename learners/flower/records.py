"""Messages as Flower's records and back: names to tensors, arrays and plain values, no pickle.

A message is a `RecordDict` of three records::

    tensors   ArrayRecord   entries that are torch tensors, as .npy
    arrays    ArrayRecord   entries that are numpy arrays, as .npy
    values    ConfigRecord  one text, `json`: all other entries as a JSON object

`.npy` is what Flower itself writes, so its tools can read the arrays. What comes back is a
stranger's: a header that lies about its array, a type that is no number, text that is no JSON are
refused before anything is as large as they claim: memory is taken for bytes that came, only.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coalitions.errors import InvalidInputError
from coalitions.files.arrays import ArrayFile
from learners.task import Message

if TYPE_CHECKING:
    from flwr.app import Array, ArrayRecord, RecordDict

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
