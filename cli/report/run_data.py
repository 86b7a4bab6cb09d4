"""A run's folder as a report needs it: plain values and arrays, read without torch."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from coalitions.errors import DamagedFileError, InvalidInputError
from learners.runs.checksums import check_sum, read_sums


@dataclass(frozen=True)
class Clients:
    """What the clients have: label counts [n, classes], domains, and who is poisoned."""

    labels: NDArray[np.int64]
    domains: Sequence[str]
    poisoned: Sequence[bool]

    def related(self) -> NDArray[np.bool_]:
        """Tell who is truly relevant to whom: same domain or, without domains, a shared label."""
        if any(self.domains):
            domains = np.array(self.domains)
            same: NDArray[np.bool_] = domains[:, None] == domains[None, :]
            honest = ~np.array(self.poisoned, bool)
            same &= honest[:, None] == honest[None, :]
            return same
        has = (self.labels > 0).astype(np.int64)
        shared: NDArray[np.bool_] = has @ has.T > 0
        return shared


@dataclass(frozen=True)
class RunData:
    """What one run left in its folder.

    Attributes
    ----------
    name, folder
        What to call the run, and its folder.
    config
        Its settings.
    history
        The metrics of each round.
    result
        What came out; None while the run is not finished.
    clients
        What the clients have, if the folder says so.
    arrays
        Recorded matrices [rounds, n, n] by name.
    structures
        Coalition labels [n] of each round, with the rounds' numbers.
    environment
        Where the run ran: versions, cores.
    """

    name: str
    folder: str
    config: Mapping[str, Any]
    history: Sequence[Mapping[str, Any]]
    result: Mapping[str, Any] | None
    clients: Clients | None
    arrays: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    structures: Sequence[tuple[int, NDArray[np.int64]]] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_clients(self) -> int:
        """Number of clients."""
        return int(self.config["clients"])

    @property
    def evaluated(self) -> list[Mapping[str, Any]]:
        """The rounds after which the models were tested."""
        return [line for line in self.history if "mean_test_accuracy" in line]


def read_runs(folders: Sequence[Path]) -> tuple[list[RunData], list[Path]]:
    """Return the runs in some folders, and which were left out as they have no round yet.

    A folder of runs, such as `compare --out` makes, stands for all runs in it.
    """
    runs, waiting = [], []
    for folder in folders:
        inside = sorted(path.parent for path in folder.glob("*/config.toml"))
        if (folder / "config.toml").is_file() or not inside:
            runs.append(_read(folder))
            if not runs[-1].history:
                raise InvalidInputError(f"{folder}: the run has not finished a round yet")
            continue
        found = [(path, _read(path)) for path in inside]
        waiting += [path for path, run in found if not run.history]
        begun = [run for _, run in found if run.history]
        runs += sorted(begun, key=lambda run: (run.config["algorithm"], run.config["seed"]))
    if not runs:
        raise InvalidInputError(f"{folders[0]}: no run has finished a round yet")
    names = [run.name for run in runs]
    return [
        run if names.count(run.name) == 1 else replace(run, name=run.folder) for run in runs
    ], waiting


@dataclass(frozen=True)
class Method:
    """Runs that differ in their seeds alone."""

    name: str
    runs: tuple[RunData, ...]


def methods_of(runs: Sequence[RunData]) -> list[Method]:
    """Return the runs, those together that are repetitions of each other with another seed.

    A method with one run is called like the run. The same algorithm with other settings is another
    method, called after what differs.
    """
    groups: dict[str, list[RunData]] = {}
    for run in runs:
        groups.setdefault(json.dumps(_repeated(run), sort_keys=True, default=str), []).append(run)
    if all(len(group) == 1 for group in groups.values()):
        return [Method(run.name, (run,)) for run in runs]
    methods = []
    for group in groups.values():
        if len({run.config["seed"] for run in group}) < len(group):  # the same run twice
            methods += [Method(run.name, (run,)) for run in group]
            continue
        rivals = [_repeated(other[0]) for other in groups.values()]
        methods.append(Method(_method_name(_repeated(group[0]), rivals), tuple(group)))
    names = [method.name for method in methods]
    return [
        method
        if names.count(method.name) == 1
        else replace(method, name=f"{method.name} {number + 1}")
        for number, method in enumerate(methods)
    ]


def _repeated(run: RunData) -> dict[str, Any]:
    """Return the settings that repetitions share, the method's options among them."""
    ignored = ("seed", "options", "workers", "evaluate_every", "checkpoint_every", "plugins")
    settings = {key: value for key, value in run.config.items() if key not in ignored}
    return settings | {f"{key}": value for key, value in run.config.get("options", {}).items()}


def _method_name(own: Mapping[str, Any], all_settings: Sequence[Mapping[str, Any]]) -> str:
    rivals = [each for each in all_settings if each["algorithm"] == own["algorithm"]]
    different = [key for key in own if any(each.get(key) != own[key] for each in rivals)]
    return " ".join([str(own["algorithm"]), *(f"{key}={own[key]}" for key in different)])


def _read(folder: Path) -> RunData:
    config_path = folder / "config.toml"
    if not config_path.is_file():
        raise InvalidInputError(f"{folder} is not a run's folder: it has no config.toml")
    with _damage_named(config_path):
        config = tomllib.loads(config_path.read_text(encoding="utf-8"))
        n_clients, name = int(config["clients"]), f"{config['algorithm']} (seed {config['seed']})"
    sums = read_sums(folder) if (folder / "result.json").is_file() else {}
    for listed in sums:
        if not listed.startswith("models/"):
            check_sum(folder, listed, sums)
    history = _lines(folder / "metrics.jsonl")
    result = _document(folder / "result.json")
    environment = _document(folder / "environment.json") or {}
    clients = _clients(folder / "clients.json")
    with _damage_named(folder / "structures.jsonl"):
        structures = [
            (line["round"], _labels(line["coalitions"], n_clients))
            for line in _lines(folder / "structures.jsonl")
        ]
    arrays = {path.stem: _matrices(path, len(history)) for path in sorted(folder.glob("*.npy"))}
    kept = {name: array for name, array in arrays.items() if array is not None}
    return RunData(
        name, folder.name, config, history, result, clients, kept, structures, environment
    )


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    """Say which file is damaged if it cannot be read as what it should be."""
    try:
        yield
    except InvalidInputError:
        raise
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None
    except (LookupError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise DamagedFileError(
            f"{path.parent}: a file of the run is damaged: {path.name} ({error})"
        ) from None


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the complete lines, one per round, of a file that may not be there."""
    if not path.is_file():
        return []
    with _damage_named(path):
        complete = path.read_bytes().splitlines(True)
        lines = [json.loads(line) for line in complete if line.endswith(b"\n")]
        if all(isinstance(line["round"], int) for line in lines):
            return lines
        raise DamagedFileError(f"{path} is damaged (a line does not tell its round)")


def _document(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    with _damage_named(path):
        return dict(json.loads(path.read_bytes()))


def _clients(path: Path) -> Clients | None:
    if not path.is_file():
        return None
    with _damage_named(path):
        document = json.loads(path.read_bytes())
        return Clients(
            np.array([client["labels"] for client in document], np.int64),
            [str(client["domain"]) for client in document],
            [bool(client["poisoned"]) for client in document],
        )


def _labels(coalitions: Sequence[Sequence[int]], n_clients: int) -> NDArray[np.int64]:
    labels = np.full(n_clients, -1, np.int64)
    for number, block in enumerate(coalitions):
        labels[list(block)] = number
    return labels


def _matrices(path: Path, rounds: int) -> NDArray[np.float64] | None:
    with _damage_named(path), path.open("rb") as file:
        npy.read_magic(file)
        shape, _, kind = npy.read_array_header_1_0(file)
        if kind != np.float64 or len(shape) != 3 or shape[1] != shape[2]:
            return None
        content = file.read()  # not np.load: it would allocate whatever a damaged header claims
        if len(content) != 8 * prod(shape):
            raise ValueError(f"it is not {' by '.join(map(str, shape))} numbers")
        return np.frombuffer(content).reshape(shape)[:rounds]
