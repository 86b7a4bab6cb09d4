"""Data sets of Hugging Face's `datasets`, and partitions of `flwr-datasets`, as clients' arrays.

Neither package is imported: what has columns and rows like theirs will do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import (
    InvalidInputError,
    UnknownNameError,
    did_you_mean,
    shown,
    with_keywords,
)
from coalitions.files.records import Records, with_days
from coalitions.formatting import in_order, many
from learners.data.own.arrays import Arrays, ClientArrays, are_bytes_of_pictures, pixels_of
from learners.data.own.columns import ClientTable, check_all_tested, client_table, divided
from learners.data.own.encode_table import TableSettings, encode_table
from learners.data.own.frames import column_of, records_of
from learners.settings.seeding import generator

if TYPE_CHECKING:
    from learners.data.client_data import FederatedData, Kind

TARGETS = ("label", "labels", "target", "y", "fine_label")
"""What the column to predict is usually called."""


@with_keywords()
def from_hf(
    data: Any,  # noqa: ANN401 (of a library that need not be installed)
    *,
    target: str | None = None,
    inputs: str | Sequence[str] | None = None,
    client_column: str | None = None,
    task: Kind | None = None,
    share_statistics: bool = False,
    test_size: int | None = None,
    validation_share: float = 0.2,
    seed: int = 0,
) -> FederatedData:
    """Return the federation of data sets, for ``run(config, data=…)``.

    Columns of pictures become float32[N, C, H, W] from −1 to 1, lists of numbers arrays. If all
    columns hold single values, they are encoded as a table is: numbers scaled inside each client,
    words as categories, dates as days.

    Parameters
    ----------
    data
        A data set with a `client_column`; a mapping of names, or a list, of data sets, one for
        each client; or an object of flwr-datasets with `load_partition`. Each may be divided into
        ``train`` and ``test``; else test rows are drawn, `test_size` or a fifth.
    target
        Column to predict; if not given, the one that is called label, target or y.
    inputs
        Columns to predict from; if not given, all others.
    client_column
        Column with the client's name, if one data set has the rows of all.
    task
        What the targets are, if they leave that open.
    share_statistics
        Scale a table's numbers by pooled sums and counts.
    validation_share
        Part of a client's training samples that is set aside for validation.
    seed
        Decides which samples are drawn and set aside.

    Examples
    --------
    >>> class Rows(dict):  # what a Dataset looks like from outside
    ...     column_names = ["x", "label"]
    ...     features = None
    ...     def __len__(self): return 10
    ...     def __getitem__(self, key): return dict(self.items())
    >>> rows = Rows(x=[[0.0, float(k)] for k in range(10)], label=[0, 1] * 5)
    >>> from_hf({"ann": rows, "bob": rows}).names
    ('ann', 'bob')
    """
    from learners.data.own.federation_of import federation_of_arrays

    arrays = arrays_of_hf(
        data,
        target=target,
        inputs=inputs,
        client_column=client_column,
        task=task,
        share_statistics=share_statistics,
        test_size=test_size,
        seed=seed,
    )
    return federation_of_arrays(
        "Hugging Face", arrays, validation_share=validation_share, seed=seed
    )


def arrays_of_hf(
    data: Any,  # noqa: ANN401 (of a library that need not be installed)
    *,
    target: str | None = None,
    inputs: str | Sequence[str] | None = None,
    client_column: str | None = None,
    task: Kind | None = None,
    share_statistics: bool = False,
    test_size: int | None = None,
    seed: int = 0,
) -> ClientArrays:
    """Return the clients' arrays of data sets, see `from_hf`."""
    parts = _clients(data, client_column)
    first = next(iter(parts.values()))[0]
    target = target or _usual_target(first)
    chosen = _inputs(first, target, inputs, client_column)
    for name, both in parts.items():
        for each in both:
            if each is not None:
                _check_columns(each, [target, *chosen], name)
    if all(_is_scalar(first, column) for column in chosen):
        owners = _owners(parts, [target, *chosen])
        question = TableSettings(
            target, task=task, share_statistics=share_statistics, test_size=test_size, seed=seed
        )
        return encode_table(owners, question)
    return _arrays(parts, target, chosen, task, test_size, seed)


def _clients(data: Any, client_column: str | None) -> dict[str, tuple[Any, Any]]:  # noqa: ANN401
    """Return each client's data set to train on, and that to test on or None."""
    if hasattr(data, "load_partition"):
        number = _n_partitions(data)
        data = {f"client {i}": data.load_partition(i) for i in range(number)}
    if client_column is not None:
        return _by_column(data, client_column)
    if _is_dataset(data) or _is_divided(data):
        raise InvalidInputError(
            "one data set has the rows of all clients: name the column that says whose they are"
            " (client_column), or give one data set for each client"
        )
    if isinstance(data, Mapping):
        named = {str(name): each for name, each in data.items()}
    elif isinstance(data, Iterable):
        named = {f"client {i}": each for i, each in enumerate(data)}
    else:
        named = {}
    if not named:
        raise InvalidInputError("there is no client: give data sets by name, or a list of them")
    return {name: _divided(each, name) for name, each in named.items()}


def _n_partitions(data: Any) -> int:  # noqa: ANN401
    """Return how many clients an object of flwr-datasets has data for."""
    partitioners = getattr(data, "partitioners", None)
    one = data if partitioners is None else next(iter(partitioners.values()))
    number = getattr(one, "num_partitions", None)
    if not isinstance(number, int) or number < 1:
        raise InvalidInputError("the object has load_partition, and no number of partitions")
    return number


def _is_dataset(each: Any) -> bool:  # noqa: ANN401
    return isinstance(getattr(each, "column_names", None), list)


def _is_divided(each: Any) -> bool:  # noqa: ANN401
    return isinstance(each, Mapping) and "train" in each and all(map(_is_dataset, each.values()))


def _divided(each: Any, name: str) -> tuple[Any, Any]:  # noqa: ANN401
    if _is_dataset(each):
        return each, None
    if _is_divided(each):
        return each["train"], each.get("test")
    raise InvalidInputError(
        f"client {shown(name)} has a {type(each).__name__}; expected a data set of Hugging Face"
    )


def _by_column(data: Any, column: str) -> dict[str, tuple[Any, Any]]:  # noqa: ANN401
    """Return the clients of a data set that has the rows of all of them."""
    train, test = _divided(data, "all")
    found = []
    for part in (train, test):
        rows: dict[str, list[int]] = {}
        if part is not None:
            _check_columns(part, [column], "all")
            for row, name in enumerate(_cells(part, column)):
                if name is None or not str(name).strip():
                    raise InvalidInputError(
                        f"row {row}: the client's name in column {shown(column)} is empty"
                    )
                rows.setdefault(str(name), []).append(row)
        found.append(rows)
    for name in found[0]:
        if test is not None and name not in found[1]:
            raise InvalidInputError(f"client {shown(name)} has no test rows")
    return {
        name: (
            train.select(found[0][name]),
            None if test is None else test.select(found[1][name]),
        )
        for name in in_order(found[0])
    }


def _usual_target(first: Any) -> str:  # noqa: ANN401
    found = [name for name in first.column_names if name.casefold() in TARGETS]
    if len(found) != 1:
        raise InvalidInputError(
            "name the column to predict (target); there are:"
            f" {', '.join(map(str, first.column_names))}"
        )
    return str(found[0])


def _inputs(
    first: Any,  # noqa: ANN401
    target: str,
    inputs: str | Sequence[str] | None,
    client_column: str | None,
) -> list[str]:
    if isinstance(inputs, str):
        return [inputs]
    if inputs is not None:
        return list(inputs)
    found = [name for name in first.column_names if name not in (target, client_column)]
    if not found:
        raise InvalidInputError(f"there is no column to predict {shown(target)} from")
    return found


def _check_columns(each: Any, names: Iterable[str], client: str) -> None:  # noqa: ANN401
    for name in names:
        if name not in each.column_names:
            raise UnknownNameError(
                f"client {shown(client)} has no column {shown(name)};"
                f" {did_you_mean(name, each.column_names)}there are:"
                f" {', '.join(map(str, each.column_names))}"
            )
    if not len(each):
        raise InvalidInputError(f"client {shown(client)} has no rows")


def _cells(each: Any, column: str) -> list[Any]:  # noqa: ANN401
    """Return a column as plain values; classes by their names."""
    cells = list(each[:][column])
    names = getattr((each.features or {}).get(column), "names", None)
    if names is None:
        return cells
    return [None if cell is None or cell < 0 else names[cell] for cell in cells]


def _is_scalar(each: Any, column: str) -> bool:  # noqa: ANN401
    return isinstance(each[:1][column][0], str | int | float | bool | np.number | date | None)


# -- tables ----------------------------------------------------------------------------------------


def _owners(parts: Mapping[str, tuple[Any, Any]], columns: list[str]) -> list[ClientTable]:
    def table_of(each: Any, name: str) -> Records:  # noqa: ANN401
        where = f"data of {name}"
        table = {
            column: column_of(_objects(_cells(each, column)), f"{where}: column {shown(column)}")
            for column in columns
        }
        return with_days(records_of(table, where))

    owners = [
        client_table(name, table_of(train, name), None if test is None else table_of(test, name))
        for name, (train, test) in parts.items()
    ]
    check_all_tested(owners)
    return owners


def _objects(cells: list[Any]) -> NDArray[Any]:
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array


# -- arrays ----------------------------------------------------------------------------------------


def _arrays(
    parts: Mapping[str, tuple[Any, Any]],
    target: str,
    inputs: list[str],
    task: Kind | None,
    test_size: int | None,
    seed: int,
) -> ClientArrays:
    clients = {}
    for name, (train, test) in parts.items():
        learning = _part(train, target, inputs, name)
        if test is not None:
            clients[name] = learning, _part(test, target, inputs, name)
        else:
            clients[name] = divided(
                learning, test_size, generator(seed, "test rows", name), f"client {shown(name)}"
            )
    names = next(iter(parts.values()))[0].features
    classes = getattr((names or {}).get(target), "names", None) or ()
    n_rows = sum(len(y) for both in clients.values() for _, y in both)
    drawn_ = ", test rows drawn in each client" if all(t is None for _, t in parts.values()) else ""
    told = (
        f"{many(n_rows, 'row')} of {many(len(clients), 'client')}, predicting {target} from"
        f" {', '.join(inputs)}{drawn_}"
    )
    return ClientArrays(clients, task, tuple(classes), {}, told)


def _part(each: Any, target: str, inputs: list[str], client: str) -> Arrays:  # noqa: ANN401
    rows = each[:]
    arrays = {
        name: _array(list(rows[name]), f"client {shown(client)}, column {shown(name)}")
        for name in inputs
    }
    if len(inputs) == 1:
        arrays = {"inputs": arrays[inputs[0]]}
    targets = np.asarray(list(rows[target]))
    if targets.dtype.kind not in "biuf" or targets.dtype == object:
        raise InvalidInputError(
            f"client {shown(client)}, column {shown(target)} is no column of numbers; encode the"
            " classes first (class_encode_column)"
        )
    return arrays, targets


def _array(cells: list[Any], what: str) -> NDArray[Any]:
    """Return a column as an array: pictures from −1 to 1, channels first; numbers as they are."""
    pictures = hasattr(cells[0], "convert") and hasattr(cells[0], "mode")
    if pictures:
        grey = all(cell.mode in ("1", "L", "LA") for cell in cells)
        cells = [cell.convert("L" if grey else "RGB") for cell in cells]
    try:
        array = np.stack([np.asarray(cell) for cell in cells])
    except ValueError:
        raise InvalidInputError(
            f"{what} has rows of different sizes; bring them to one size first"
        ) from None
    if array.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"{what} holds {array.dtype}, and networks take numbers; turn it into some first, as"
            " with map, or leave it out of inputs"
        )
    if are_bytes_of_pictures(array):
        return pixels_of(array)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InvalidInputError(f"{what} has numbers that are missing or not finite")
    return array.astype(np.float32 if array.dtype.kind == "f" else np.int64)
