"""From what people have (tensors, arrays, data sets, tables) to arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset

from coalitions.errors import InvalidInputError, shown
from learners.data.own import Arrays

Samples: TypeAlias = Any
"""A pair of inputs and targets, a torch data set, or a table with a column of targets."""


def arrays_of(
    clients: Mapping[str, tuple[Samples, Samples]], target: str | None = None
) -> dict[str, tuple[Arrays, Arrays]]:
    """Return every client's training and test data as arrays.

    Parameters
    ----------
    clients
        ``(inputs, targets)`` of arrays or tensors (inputs may be several by name), a torch
        `TensorDataset` or other `Dataset` of such pairs, or a table (pandas, polars, …) with a
        column of targets: two of them for each client.
    target
        Name of the column of targets, if there are tables.
    """
    pairs: dict[str, tuple[Any, Any]] = {}
    for client, parts in clients.items():
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
    if any(is_table(part) for parts in pairs.values() for part in parts):
        return _of_tables(pairs, target)
    return {
        client: (_arrays(client, train), _arrays(client, test))
        for client, (train, test) in pairs.items()
    }


def _arrays(client: str, given: Samples) -> Arrays:
    if isinstance(given, TensorDataset):
        *inputs, targets = given.tensors
        return _inputs(inputs), _array(targets)
    if isinstance(given, Dataset):
        pairs = [given[i] for i in range(len(given))]  # type: ignore[arg-type]
        if not pairs or not isinstance(pairs[0], tuple) or len(pairs[0]) != 2:
            raise InvalidInputError(
                f"client {shown(client)}: a data set gives pairs of inputs and target, and has some"
            )
        return _stacked([pair[0] for pair in pairs]), np.stack([_array(y) for _, y in pairs])
    if isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 2:
        inputs, targets = given
        if isinstance(inputs, Mapping):
            return {str(key): _array(each) for key, each in inputs.items()}, _array(targets)
        return _array(inputs), _array(targets)
    raise InvalidInputError(
        f"client {shown(client)}: data are (inputs, targets), a torch Dataset or a table, not"
        f" {type(given).__name__}"
    )


def _inputs(tensors: Sequence[Tensor]) -> Any:  # noqa: ANN401 (one array, or several by name)
    if len(tensors) == 1:
        return _array(tensors[0])
    raise InvalidInputError(
        f"a TensorDataset of {len(tensors) + 1} tensors does not name its inputs; give"
        " ({'name': tensor, …}, targets) instead"
    )


def _stacked(samples: Sequence[Any]) -> Any:  # noqa: ANN401 (one array, or several by name)
    if isinstance(samples[0], Mapping):
        return {str(key): np.stack([_array(each[key]) for each in samples]) for key in samples[0]}
    return np.stack([_array(each) for each in samples])


def _array(given: Any) -> NDArray[Any]:  # noqa: ANN401 (whatever numpy can make an array of)
    if isinstance(given, Tensor):
        given = given.detach().cpu()
        if given.dtype in (torch.bfloat16, torch.float16):
            given = given.float()
        return given.numpy()  # type: ignore[no-any-return]
    return np.asarray(given)


def is_table(given: object) -> bool:
    """Tell whether something is a table of any library."""
    return hasattr(given, "columns") and hasattr(given, "__getitem__")


def _of_tables(
    pairs: Mapping[str, tuple[Any, Any]], target: str | None
) -> dict[str, tuple[Arrays, Arrays]]:
    """Return arrays of tables: numbers in one input, codes of categories in another."""
    first = next(iter(pairs))
    columns = [str(each) for each in pairs[first][0].columns]
    if target is None:
        raise InvalidInputError("data are tables; name the column of targets, as target=")
    for client, parts in pairs.items():
        for part, table in zip(("training", "test"), parts, strict=True):
            there = [str(each) for each in table.columns] if is_table(table) else []
            for lacking, having, other in (
                (f"the {part} data of client {shown(client)}", there, columns),
                (f"the training data of client {shown(first)}", columns, there),
            ):
                if absent := [name for name in other if name not in having]:
                    raise InvalidInputError(
                        f"{lacking} have no column {shown(absent[0])}, and others have it; all"
                        " clients need the same columns"
                    )
    if target not in columns:
        raise InvalidInputError(
            f"there is no column {shown(target)}; there are: {', '.join(columns)}"
        )
    tables = [table for parts in pairs.values() for table in parts]
    features = [each for each in columns if each != target]
    for client, parts in pairs.items():
        for part, table in zip(("training", "test"), parts, strict=True):
            _check_there(table, features, f"client {shown(client)}: its {part} data")
    numbers = [c for c in features if all(_column(t, c).dtype.kind in "biuf" for t in tables)]
    words = {
        c: sorted({str(each) for table in tables for each in _column(table, c)})
        for c in features
        if c not in numbers
    }

    def arrays(table: Any) -> Arrays:  # noqa: ANN401 (a table of any library)
        inputs: dict[str, NDArray[Any]] = {}
        if numbers:
            inputs["numbers"] = np.stack(
                [_column(table, c).astype(np.float32) for c in numbers], axis=1
            )
        if words:
            codes = {c: {word: i for i, word in enumerate(there)} for c, there in words.items()}
            inputs["codes"] = np.stack([_coded(_column(table, c), codes[c]) for c in words], axis=1)
        only = next(iter(inputs.values())) if len(inputs) == 1 else inputs
        return only, _column(table, target)

    return {client: (arrays(train), arrays(test)) for client, (train, test) in pairs.items()}


def _check_there(table: Any, names: Sequence[str], whose: str) -> None:  # noqa: ANN401 (any table)
    """Refuse a number or date that is not there, with the name of its column."""
    for name in names:
        cells = _column(table, name)
        if cells.dtype.kind == "f" and not (there := np.isfinite(cells)).all():
            raise InvalidInputError(
                f"{whose} have no finite number in column {shown(name)}, row {np.argmin(there)};"
                " fill in what is missing, or leave the row out"
            )


def _column(table: Any, name: str) -> NDArray[Any]:  # noqa: ANN401 (a table of any library)
    """Return a column; times are days since the start of 1970."""
    cells = np.asarray(table[name])
    if cells.dtype.kind != "M":
        return cells
    days = cells.astype("datetime64[us]").astype(np.int64) / (86_400 * 1e6)
    return np.where(np.isnat(cells), np.nan, days)


def _coded(values: Iterable[Any], codes: Mapping[str, int]) -> NDArray[np.int64]:
    return np.array([codes[str(each)] for each in values], np.int64)
