"""A federation of data of one's own: numpy arrays of every client, checked before anything else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError, shown, with_keywords
from learners.data.client_data import (
    IGNORED,
    KINDS,
    ONLY,
    ClientData,
    FederatedData,
    Input,
    Kind,
    Split,
    Targets,
)
from learners.data.own.arrays import ClientArrays
from learners.data.poisoning import Poison, poison_of
from learners.data.splits import set_aside
from learners.settings.seeding import generator

Inputs: TypeAlias = NDArray[Any] | Mapping[str, NDArray[Any]]
Arrays: TypeAlias = tuple[Inputs, NDArray[Any]]
"""Inputs [N, …], one array or several by name, and targets [N, …]."""

_Named: TypeAlias = dict[str, NDArray[Any]]

MOST_CLASSES = 10_000
"""More classes than this are hardly classes, but numbers."""

FREE_CODES = 1 << 18
"""Codes that there may be however few of them occur: the largest tokenizers have so many."""

CODES_EACH = 10
"""Codes that there may be for each that occurs, where there are more."""

MOST_NAMED = 5
"""So many clients are named in a sentence; of more, it says how many there are."""


@with_keywords()
def federation_of(
    name: str,
    clients: Mapping[str, tuple[Arrays, Arrays]],
    *,
    task: Kind | Literal["auto"] = "auto",
    codes: Mapping[str, int | Sequence[int]] | None = None,
    class_names: Sequence[str] = (),
    domains: Mapping[str, str] | None = None,
    validation_share: float = 0.2,
    poison: Sequence[str] = (),
    seed: int = 0,
) -> FederatedData:
    """Return the federation of some clients' arrays; whatever is wrong with them is said here.

    Parameters
    ----------
    name
        What to call the data.
    clients
        What each client has to train on and to be tested on, by its name. Numbers of any kind of
        float are real numbers, as are bytes and truth values; whole numbers are codes 0, 1, ….
    task
        What the targets are; ``auto``: floats are a regression; one whole number, truth value or
        text a sample ([N] or [N, 1]) is a class; several truth values, or zeros and ones, are
        labels; other whole numbers in rows are next tokens.
    codes
        How many values the codes of an input have: for each column, or one number for all. What is
        not given is the largest code there is, plus one.
    class_names
        What classes or labels are called. Classes that are text must be among them; without them
        they are sorted.
    domains
        Clients' domains, for those that have one.
    validation_share
        Part of a client's training samples that is set aside for validation.
    poison
        See `learners.data.poisoning.poison_of`.
    seed
        Decides which samples are set aside.

    Examples
    --------
    >>> x, y = np.eye(4, dtype=np.float32), np.array([0, 1, 0, 1])
    >>> data = federation_of("tiny", {"north": ((x, y), (x, y)), "south": ((x, y), (x, y))})
    >>> data.names, data.targets.kind, data.shape
    (('north', 'south'), 'classification', (4,))
    """
    if not clients:
        raise InvalidInputError(f"{name} has no clients; a federation has at least one")
    if not 0 <= validation_share < 1:
        raise InvalidInputError(
            f"the validation share is from 0 up to, not including, 1, not {validation_share}"
        )
    everyone = {
        str(client): (
            _checked_inputs(str(client), "training", train),
            _checked_inputs(str(client), "test", test),
        )
        for client, (train, test) in clients.items()
    }
    inputs = _agreed_inputs(everyone, codes or {})
    if task in ("auto", "classification"):
        clients = {c: (_one_each(train), _one_each(test)) for c, (train, test) in clients.items()}
    kind = _kind(name, clients, task)
    if kind == "next-token":
        inputs = {
            key: Input(each.shape, (max(each.codes),)) if each.codes else each
            for key, each in inputs.items()
        }
    targets, truths = _targets(clients, kind, tuple(class_names), inputs)
    poisons = poison_of(
        poison, n_clients=len(clients), n_classes=targets.n_outputs, kind=targets.kind
    )
    alone = _of_one_kind(targets, {client: truth for client, (truth, _) in truths.items()})
    made = []
    for number, client in enumerate(everyone):
        of_training, of_testing = everyone[client]
        to_learn, to_test = truths[client]
        made.append(
            _client(
                client,
                (of_training, to_learn),
                (of_testing, to_test),
                (domains or {}).get(client, ""),
                validation_share,
                poisons.get(number),
                targets,
                seed,
            )
        )
    notice = _notice(alone)
    data = FederatedData(name, tuple(made), inputs, targets, notice, notice)
    if any(each.kind == "noise" for each in poisons.values()):
        data.only_pictures("the poison noise")
    return data


def federation_of_arrays(
    name: str,
    arrays: ClientArrays,
    *,
    validation_share: float,
    poison: Sequence[str] = (),
    seed: int,
) -> FederatedData:
    """Return the federation of what came in, whichever way; see `federation_of`."""
    data = federation_of(
        name,
        arrays.clients,
        task=arrays.task or "auto",
        codes=arrays.codes,
        class_names=arrays.classes,
        domains=arrays.groups,
        validation_share=validation_share,
        poison=poison,
        seed=seed,
    )
    return replace(data, told="; ".join(filter(None, (arrays.told, data.told))))


def fingerprint(data: FederatedData) -> str:
    """Return a checksum of all that clients have: the same data, the same text.

    It does not matter which samples a seed sets aside for validation, nor their order.
    """
    digest = hashlib.sha256(f"{dict(data.inputs)} {data.targets.kind}".encode())
    for client, name in zip(data.clients, data.names, strict=True):
        learnt = _sum_of_samples(client.train) + _sum_of_samples(client.validation)
        digest.update(f"{name} {learnt} {_sum_of_samples(client.test)}".encode())
    return digest.hexdigest()


def _sum_of_samples(split: Split) -> int:
    """Return the sum of the samples' checksums, which no order changes."""
    arrays = [each.contiguous().numpy() for each in (*split.named.values(), split.targets)]
    return sum(
        int.from_bytes(hashlib.sha256(b"".join(a[i].tobytes() for a in arrays)).digest(), "big")
        for i in range(len(split))
    )


def _checked_inputs(client: str, part: str, arrays: Arrays) -> _Named:
    """Return a client's inputs by name, as float32 or int64."""
    given, truth = arrays
    if np.ndim(truth) == 0:
        raise InvalidInputError(
            f"client {shown(client)}: the targets of its {part} data are no array"
        )
    named = dict(given) if isinstance(given, Mapping) else {ONLY: given}
    if not named:
        raise InvalidInputError(f"client {shown(client)} has no inputs")
    found: _Named = {}
    for key, each in named.items():
        array = np.asarray(each)
        if array.dtype.kind not in "biuf" or array.ndim == 0:
            raise InvalidInputError(
                f"client {shown(client)}: {key} of its {part} data is not an array of numbers, but"
                f" of {array.dtype} {array.shape}"
            )
        if len(array) != len(truth):
            raise InvalidInputError(
                f"client {shown(client)}: its {part} data have {len(array)} rows of {key} and"
                f" {len(truth)} targets"
            )
        real = array.dtype.kind in "fb" or array.dtype == np.uint8
        with np.errstate(over="ignore"):  # what is beyond all floats is refused below
            found[key] = array.astype(np.float32 if real else np.int64)
        if real and not np.isfinite(found[key]).all():
            where = np.argwhere(~np.isfinite(found[key]))[0]
            column = f", column {', '.join(map(str, where[1:]))}" if len(where) > 1 else ""
            raise InvalidInputError(
                f"client {shown(client)}: {key} of its {part} data has no finite number in row"
                f" {where[0]}{column}; fill in what is missing, or leave the row out"
            )
    if not len(truth):
        raise InvalidInputError(
            f"client {shown(client)} has no {part} data; give it some, or leave it out"
        )
    return found


def _agreed_inputs(
    everyone: Mapping[str, tuple[_Named, _Named]], codes: Mapping[str, int | Sequence[int]]
) -> dict[str, Input]:
    """Return what the inputs are, or say whose columns differ."""
    first = next(iter(everyone))
    like = everyone[first][0]
    for client, parts in everyone.items():
        for part, named in zip(("training", "test"), parts, strict=True):
            if named.keys() != like.keys():
                raise InvalidInputError(
                    f"client {shown(client)}: its {part} data have the inputs"
                    f" {', '.join(named)}, and those of {shown(first)} have {', '.join(like)}"
                )
            for key, array in named.items():
                wanted = like[key]
                if array.shape[1:] != wanted.shape[1:] or array.dtype != wanted.dtype:
                    raise InvalidInputError(
                        f"client {shown(client)}: {key} of its {part} data is"
                        f" {_spoken(array)}, and that of {shown(first)} is {_spoken(wanted)};"
                        " all clients have the same columns"
                    )
    unknown = set(codes) - set(like)
    if unknown:
        raise InvalidInputError(f"there are codes for {min(unknown)!r}, which is no input")
    return {
        key: Input(array.shape[1:], _n_codes(key, everyone, codes.get(key)))
        for key, array in like.items()
    }


def _n_codes(
    key: str, everyone: Mapping[str, tuple[_Named, _Named]], given: int | Sequence[int] | None
) -> tuple[int, ...]:
    """Return how many values the codes of an input have; nothing for real numbers."""
    arrays = {client: [part[key] for part in parts] for client, parts in everyone.items()}
    one = next(iter(arrays.values()))[0]
    if one.dtype != np.int64:
        if given is not None:
            raise InvalidInputError(f"{key} has codes, so its entries must be whole numbers")
        return ()
    columns = max(1, int(np.prod(one.shape[1:])))
    largest = np.full(columns, -1)
    if given is None:
        _check_codes(key, "code", arrays)
    for client, parts in arrays.items():
        for array in parts:
            flat = array.reshape(len(array), columns)
            if flat.min() < 0:
                raise InvalidInputError(
                    f"client {shown(client)}: {key} has the code {flat.min()}; codes count from 0"
                    " (numbers that are no codes are given as floats)"
                )
            largest = np.maximum(largest, flat.max(axis=0))
    if given is None:
        return tuple((largest + 1).tolist())
    counts = (given,) if isinstance(given, int) else tuple(int(each) for each in given)
    if len(counts) not in (1, columns):
        raise InvalidInputError(f"{key} has {columns} columns, and codes for {len(counts)}")
    if (largest >= np.array(counts)).any():
        raise InvalidInputError(f"{key} has a code {largest.max()}, and there are {max(counts)}")
    return counts


def _check_codes(key: str, what: str, arrays: Mapping[str, Sequence[NDArray[np.int64]]]) -> None:
    """Refuse a code that is far larger than there are codes: a network has a row for each below."""
    tops = {client: max(int(each.max()) for each in parts) for client, parts in arrays.items()}
    client = max(tops, key=lambda client: tops[client])
    if tops[client] < FREE_CODES:
        return
    n_different = len(
        np.unique(np.concatenate([np.unique(each) for parts in arrays.values() for each in parts]))
    )
    if tops[client] >= CODES_EACH * n_different:
        raise InvalidInputError(
            f"client {shown(client)}: {key} has the {what} {tops[client]}, and no more than"
            f" {n_different} different ones occur; number those that occur 0, 1, … (numbers that"
            " are no codes are given as floats)"
        )


def _one_each(arrays: Arrays) -> Arrays:
    """Return a client's arrays with classes in a row of their own, [N], if they came as [N, 1]."""
    inputs, truth = arrays
    truth = np.asarray(truth)
    single = truth.ndim == 2 and truth.shape[1] == 1 and truth.dtype.kind != "f"
    return inputs, truth[:, 0] if single else truth


def _kind(name: str, clients: Mapping[str, tuple[Arrays, Arrays]], task: str) -> Kind:
    truths = [np.asarray(truth) for parts in clients.values() for _, truth in parts]
    for kind in KINDS:
        if task == kind:
            return kind
    if task != "auto":
        raise InvalidInputError(f"the task is {shown(task)}; it can be: auto, {', '.join(KINDS)}")
    kinds = {truth.dtype.kind for truth in truths}
    if truths[0].ndim == 1:
        return "regression" if kinds == {"f"} else "classification"
    if kinds <= set("biu"):
        two = all(np.isin(truth, (0, 1)).all() for truth in truths)
        return "multi-label" if two else "next-token"
    if kinds == {"f"}:
        return "regression"
    raise InvalidInputError(f"{name}: its targets do not tell what the task is; name the task")


def _targets(
    clients: Mapping[str, tuple[Arrays, Arrays]],
    kind: Kind,
    names: tuple[str, ...],
    inputs: Mapping[str, Input],
) -> tuple[Targets, dict[str, tuple[NDArray[Any], NDArray[Any]]]]:
    """Return what the targets are, and each client's as the kind has them."""
    raw = {
        str(client): tuple(np.asarray(truth) for _, truth in parts)
        for client, parts in clients.items()
    }
    dims = {"classification": (1,), "regression": (1, 2), "multi-label": (2,), "next-token": (2,)}
    like = next(iter(raw.values()))[0]
    for client, parts in raw.items():
        for truth in parts:
            if truth.ndim not in dims[kind] or truth.shape[1:] != like.shape[1:]:
                raise InvalidInputError(
                    f"client {shown(client)}: targets of shape {truth.shape} are no {kind}, or not"
                    f" like those of the others, {like.shape}"
                )
            if truth.dtype.kind == "f" and not np.isfinite(truth).all():
                raise InvalidInputError(
                    f"client {shown(client)}: a target is not finite; leave such rows out"
                )
    if kind in ("regression", "multi-label"):
        numbers = {
            client: tuple(_as_numbers(client, truth, kind) for truth in parts)
            for client, parts in raw.items()
        }
        n_outputs = 1 if like.ndim == 1 else like.shape[1]
        return Targets(kind, n_outputs, names), numbers  # type: ignore[return-value]
    if kind == "next-token":
        whole = {
            client: tuple(_as_whole(client, truth) for truth in parts)
            for client, parts in raw.items()
        }
        largest = max(int(truth.max()) for parts in whole.values() for truth in parts)
        known = [max(each.codes) for each in inputs.values() if each.codes]
        if largest >= max(known, default=0):
            _check_codes("the target", "token", whole)
        n_tokens = max([largest + 1, len(names), *known])
        return Targets(kind, n_tokens, names), whole  # type: ignore[return-value]
    return _classes(raw, names)


def _classes(
    raw: Mapping[str, tuple[NDArray[Any], ...]], names: tuple[str, ...]
) -> tuple[Targets, dict[str, tuple[NDArray[Any], NDArray[Any]]]]:
    texts = any(truth.dtype.kind not in "biuf" for parts in raw.values() for truth in parts)
    if texts:
        there = sorted({str(each) for parts in raw.values() for t in parts for each in t})
        names = names or tuple(there)
        _check_classes(len(names), "")
        strange = set(there) - set(names)
        if strange:
            client = next(
                c for c, parts in raw.items() for t in parts if strange & set(map(str, t))
            )
            raise InvalidInputError(
                f"client {shown(client)} has the class {shown(min(strange))}, which is none of the"
                f" {len(names)} classes"
            )
        place = {each: number for number, each in enumerate(names)}
        coded = {
            client: tuple(np.array([place[str(each)] for each in t], np.int64) for t in parts)
            for client, parts in raw.items()
        }
        return Targets("classification", len(names), names), coded  # type: ignore[return-value]
    whole = {
        client: tuple(_as_whole(client, truth) for truth in parts) for client, parts in raw.items()
    }
    largest = max(int(truth.max()) for parts in whole.values() for truth in parts)
    for client, parts in whole.items():
        for truth in parts:
            if truth.min() < 0 or (names and truth.max() >= len(names)):
                bad = truth.min() if truth.min() < 0 else truth.max()
                raise InvalidInputError(
                    f"client {shown(client)} has the class {bad}; classes count from 0"
                    + (f" to {len(names) - 1}" if names else "")
                )
    n_classes = len(names) or max(2, largest + 1)
    top = max(whole, key=lambda client: max(truth.max() for truth in whole[client]))
    _check_classes(n_classes, f"client {shown(top)} has the class {largest}: ")
    return Targets("classification", n_classes, names), whole  # type: ignore[return-value]


def _check_classes(n: int, why: str) -> None:
    if n > MOST_CLASSES:
        raise InvalidInputError(
            f"{why}there would be {n} classes, and {MOST_CLASSES} are the most; number those that"
            " occur 0, 1, …, or give floats, which are predicted as numbers"
        )


def _as_numbers(client: str, truth: NDArray[Any], kind: Kind) -> NDArray[np.float32]:
    if truth.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"client {shown(client)}: targets of {truth.dtype} are no {kind}; they are numbers"
        )
    if kind == "multi-label" and not np.isin(truth, (0, 1)).all():
        raise InvalidInputError(
            f"client {shown(client)}: a label is there or not, 1 or 0, and one of its targets is"
            " neither"
        )
    return truth.astype(np.float32)


def _as_whole(client: str, truth: NDArray[Any]) -> NDArray[np.int64]:
    if truth.dtype.kind not in "biuf" or (truth != np.floor(truth)).any():
        raise InvalidInputError(f"client {shown(client)}: a target is not a whole number")
    if (np.abs(truth.astype(np.float64)) >= 2**53).any():
        raise InvalidInputError(f"client {shown(client)}: a target is beyond 2^53")
    return truth.astype(np.int64)


def _of_one_kind(targets: Targets, learnt: Mapping[str, NDArray[Any]]) -> dict[str, str]:
    """Return the clients whose training data have one class only, and which.

    Such a client has something to teach to others, and to learn from them. Refused are clients
    from whose targets nothing can be learnt, and a federation where nobody has another class.
    """
    found: dict[str, str] = {}
    for client, truth in learnt.items():
        if targets.kind == "next-token":
            if not (truth != IGNORED).any():
                raise InvalidInputError(f"client {shown(client)} has no token to learn")
        elif len(np.unique(truth, axis=0)) == 1:
            if targets.kind == "regression":
                raise InvalidInputError(
                    f"client {shown(client)}: the target of all its training data is the same, so"
                    " there is nothing to learn; leave it out"
                )
            found[client] = _spoken_class(targets, truth[0])
    if len(found) == len(learnt) and len(set(found.values())) == 1:
        first, only = next(iter(found.items()))
        whose = (
            f"all {len(found)} clients, {shown(first)} first," if len(found) > 1 else shown(first)
        )
        raise InvalidInputError(
            f"the training data of {whose} have one class only, {shown(only)}; there is nothing to"
            " learn"
        )
    return found


def _spoken_class(targets: Targets, one: Any) -> str:  # noqa: ANN401 (a class, or labels)
    names = targets.names
    if targets.kind == "classification":
        return names[one] if names else str(one)
    there = [names[k] if names else str(k) for k in np.flatnonzero(one)]
    return ", ".join(there) or "no label"


def _notice(alone: Mapping[str, str]) -> str:
    """Return a sentence on the clients that have one class only; nothing if there are none."""
    if not alone:
        return ""
    named = [f"{shown(client)} ({only})" for client, only in alone.items()]
    listed = ", ".join(named[:MOST_NAMED]) + ", …" * (len(named) > MOST_NAMED)
    many = f"{len(named)} clients have" if len(named) > 1 else "a client has"
    return f"{many} one class only in the training data: {listed}"


def _client(
    name: str,
    train: tuple[_Named, NDArray[Any]],
    test: tuple[_Named, NDArray[Any]],
    domain: str,
    validation_share: float,
    poison: Poison | None,
    targets: Targets,
    seed: int,
) -> ClientData:
    inputs, truth = train
    if validation_share and len(truth) < 2:
        raise InvalidInputError(
            f"client {shown(name)} has one training sample, and one more is needed for validation;"
            " give it more, or choose validation_share 0"
        )
    spread_over = truth if truth.ndim == 1 else np.zeros(len(truth))
    aside = set_aside(spread_over, validation_share, generator(seed, "validation", name))
    learnt = {key: each[~aside] for key, each in inputs.items()}
    labels = truth[~aside]
    if poison is not None:
        rng = generator(seed, "poison", name)
        (key,) = learnt if len(learnt) == 1 else (ONLY,)
        some = learnt.get(key, np.zeros((len(labels), 0), np.float32))
        changed, labels = poison.corrupt(some, labels, targets.n_outputs, rng)
        if key in learnt:
            learnt[key] = changed
    return ClientData(
        _split(learnt, labels),
        _split({key: each[aside] for key, each in inputs.items()}, truth[aside]),
        _split(*test),
        domain=domain,
        poisoned=poison is not None,
        name=name,
    )


def _split(inputs: _Named, truth: NDArray[Any]) -> Split:
    tensors = {key: torch.from_numpy(np.ascontiguousarray(each)) for key, each in inputs.items()}
    only = next(iter(tensors.values())) if len(tensors) == 1 else tensors
    return Split(only, torch.from_numpy(np.ascontiguousarray(truth)))


def _spoken(array: NDArray[Any]) -> str:
    kind = "codes" if array.dtype == np.int64 else "numbers"
    return f"{'×'.join(map(str, array.shape[1:])) or 'one'} {kind}"
