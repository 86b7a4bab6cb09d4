"""From what people have (tensors, arrays, data sets) to arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset

from coalitions.errors import InvalidInputError, shown
from learners.data.own import Arrays
from learners.data.tables.frames import is_frame

Samples: TypeAlias = Any
"""A pair of inputs and targets, a torch data set, or a data frame with a column of targets."""


def pairs_of(data: Any) -> dict[str, tuple[Samples, Samples | None]]:  # noqa: ANN401 (clients' data)
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


def arrays_of(pairs: Mapping[str, tuple[Samples, Samples]]) -> dict[str, tuple[Arrays, Arrays]]:
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
