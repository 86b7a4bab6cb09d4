"""A run's folder read without torch: plain values and arrays, checked by checksums."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import DamagedFileError, InvalidInputError
from coalitions.files.arrays import ArrayFile
from coalitions.files.opening import load_json
from coalitions.files.writing import write_whole
from coalitions.game import BoolMatrix, IntVector
from learners.data.ground_truth import label_overlap
from learners.server.client_failures import left_out
from learners.settings.config import RunConfig

# ----------------------------------------------------------------------------------------
# Checksums of a finished run's files: what was changed or damaged since is noticed.

SUMS = "SHA256SUMS"
"""Checksums of files that are the same whenever the run is repeated; `sha256sum -c` reads it."""

TIMED_SUMS = "SHA256SUMS.timed"
"""Checksums of files that say how long the run took."""


def has_times(name: str) -> bool:
    """Tell whether a file may say how long something took: the lines of rounds, and the result."""
    return name == "result.json" or name.endswith(".jsonl")


def write_sums(folder: Path, sums: Mapping[str, str]) -> None:
    """Write the checksums of a finished run's files, those of files with times apart."""
    lines = {name: f"{digest}  {name}\n" for name, digest in sorted(sums.items())}
    timed = [line for name, line in lines.items() if has_times(name)]
    repeatable = [line for name, line in lines.items() if not has_times(name)]
    write_whole(folder / SUMS, "".join(repeatable).encode())
    write_whole(folder / TIMED_SUMS, "".join(timed).encode())


def read_sums(folder: Path) -> dict[str, str]:
    """Return the checksums of a finished run's files by name; none if nobody wrote them."""
    paths = [folder / name for name in (SUMS, TIMED_SUMS)]
    lines = [
        line
        for path in paths
        if path.is_file()
        for line in path.read_bytes().decode(errors="replace").splitlines()
    ]
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def check_sum(folder: Path, name: str, sums: Mapping[str, str]) -> None:
    """Refuse a file of a finished run that is not as it was written."""
    path = folder / name
    if name in sums and (not path.is_file() or file_digest(path) != sums[name]):
        listed = TIMED_SUMS if has_times(name) and (folder / TIMED_SUMS).is_file() else SUMS
        raise DamagedFileError(
            f"{path} is damaged: its checksum is not the one in {listed}; remove result.json, and"
            f" `coalitions resume {folder}` does the last rounds again"
        )


def file_digest(path: Path) -> str:
    """Return the SHA-256 checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ----------------------------------------------------------------------------------------
# What a run left in its folder, as plain values and arrays; read without torch.
#
# Whatever is damaged is named in one sentence.

_OF_THEIR_OWN = ("natural", "own")
"""What `partition` says where there was nothing to deal out; ``own``: the nodes of Flower."""


@dataclass(frozen=True)
class Clients:
    """What the clients have: samples, label counts [n, classes], domains, and who is poisoned.

    `names` are what they are called; empty for those that are only numbered.
    """

    samples: Sequence[int]
    labels: NDArray[np.int64]
    domains: Sequence[str]
    poisoned: Sequence[bool]
    names: Sequence[str] = ()

    @classmethod
    def of(cls, described: Sequence[Mapping[str, Any]]) -> Clients:
        """Return what each client says of itself, or what was written of it."""
        return cls(
            [int(client["samples"]) for client in described],
            np.array(
                [[int(count) for count in client["labels"]] for client in described], np.int64
            ),
            [str(client["domain"]) for client in described],
            [bool(client["poisoned"]) for client in described],
            [str(client.get("name", "")) for client in described],
        )

    def document(self) -> list[dict[str, Any]]:
        """Return it for ``clients.json``."""
        rows = zip(self.samples, self.labels.tolist(), self.domains, self.poisoned, strict=True)
        names = [{"name": name} if name else {} for name in self.names]
        return [
            name | {"samples": samples, "labels": labels, "domain": domain, "poisoned": poisoned}
            for name, (samples, labels, domain, poisoned) in zip(names, rows, strict=True)
        ]

    def related(self) -> BoolMatrix:
        """Tell who is truly relevant to whom: same domain or, without domains, a shared label."""
        if any(self.domains):
            domains, honest = np.array(self.domains), ~np.array(self.poisoned, bool)
            same: BoolMatrix = domains[:, None] == domains[None, :]
            same &= honest[:, None] == honest[None, :]
            return same
        return label_overlap(self.labels) | np.eye(len(self.labels), dtype=bool)


@dataclass(frozen=True)
class RunRecord:
    """What one run left in its folder.

    Attributes
    ----------
    name, folder
        What to call the run, and the name of its folder.
    config
        Its settings, as ``config.toml`` has them.
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
    classes
        What the classes or labels of the data are called; none if they are only numbered.
    """

    name: str
    folder: str
    config: Mapping[str, Any]
    history: Sequence[Mapping[str, Any]]
    result: Mapping[str, Any] | None
    clients: Clients | None
    arrays: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    structures: Sequence[tuple[int, IntVector]] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)
    classes: Sequence[str] = ()

    @property
    def n_clients(self) -> int:
        """Number of clients."""
        return int(self.config["clients"]) - int(self.config.get("new_clients", 0))

    @property
    def natural(self) -> bool:
        """Whether clients came with data of their own, and none were dealt out to them."""
        return self.config.get("partition") in _OF_THEIR_OWN

    @property
    def evaluated(self) -> list[Mapping[str, Any]]:
        """The rounds after which the models were tested."""
        return [line for line in self.history if "mean_test_accuracy" in line]

    @property
    def left_out(self) -> list[dict[str, Any]]:
        """Whose replies were refused, see `learners.server.client_failures`."""
        return left_out(self.history)


def read_run(folder: Path) -> RunRecord:
    """Return all that a run left, but for its models and checkpoints."""
    config = read_config(folder)
    sums = read_sums(folder) if (folder / "result.json").is_file() else {}
    for name in sums:
        if not name.startswith("models/"):
            check_sum(folder, name, sums)
    history = read_history(folder)
    environment = folder / "environment.json"
    with _damage_named(environment):
        surroundings = dict(_document(environment)) if environment.is_file() else {}
    named = folder / "classes.json"
    with _damage_named(named):
        classes = tuple(map(str, _document(named))) if named.is_file() else ()
    return RunRecord(
        name=f"{config.algorithm} (seed {config.seed})",
        folder=folder.name,
        config=tomllib.loads(config.toml()),
        history=history,
        result=read_result(folder),
        clients=_clients(folder / "clients.json", config.members),
        arrays=dict(_matrices(folder, len(history))),
        structures=_structures(folder / "structures.jsonl", config.members),
        environment=surroundings,
        classes=classes,
    )


def read_config(folder: Path) -> RunConfig:
    """Return what a run was asked."""
    check_begun(folder)
    return RunConfig.read(folder / "config.toml")


def check_begun(folder: Path) -> None:
    """Refuse what is no folder of a run."""
    if not folder.exists():
        raise InvalidInputError(f"there is no folder {folder}")
    if not (folder / "config.toml").is_file():
        raise InvalidInputError(f"{folder} is not a run's folder: it has no config.toml")


def read_history(folder: Path) -> list[dict[str, Any]]:
    """Return the metrics of the rounds so far."""
    path = folder / "metrics.jsonl"
    with _damage_named(path):
        history = _lines(path)
        if [line["round"] for line in history] == list(range(1, len(history) + 1)):
            return history
    raise DamagedFileError(f"{path} is damaged: it has not one line for each round")


def read_result(folder: Path) -> dict[str, Any] | None:
    """Return what came out; None if the run is not finished."""
    path = folder / "result.json"
    if not path.is_file():
        return None
    sums = read_sums(folder)
    for name in ("result.json", "metrics.jsonl"):
        check_sum(folder, name, sums)
    try:
        result = _document(path)
    except InvalidInputError:
        result = None
    if isinstance(result, dict) and {"communication", "seconds"} <= result.keys():
        return result
    raise DamagedFileError(
        f"{path} is damaged: it is not what a run writes; remove it, and"
        f" `coalitions resume {folder}` writes it again"
    )


def _clients(path: Path, n_clients: int) -> Clients | None:
    if not path.is_file():
        return None
    with _damage_named(path):
        clients = Clients.of(_document(path))
        if clients.labels.ndim == 2 and len(clients.labels) == n_clients:
            return clients
    raise DamagedFileError(f"{path} is damaged: it does not describe {n_clients} clients")


def _structures(path: Path, n_clients: int) -> list[tuple[int, IntVector]]:
    with _damage_named(path):
        return [
            (int(line["round"]), _labels(line["coalitions"], n_clients)) for line in _lines(path)
        ]


def _labels(coalitions: Sequence[Sequence[int]], n_clients: int) -> IntVector:
    labels = np.full(n_clients, -1, np.int64)
    for number, block in enumerate(coalitions):
        labels[list(block)] = number
    return labels


def _matrices(folder: Path, rounds: int) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield the recorded arrays that have a number for each pair of clients."""
    for path in sorted(folder.glob("*.npy")):
        with _damage_named(path), path.open("rb") as file:
            array = ArrayFile(file, path.name)
            shape = array.header.shape
            if array.header.dtype == np.float64 and len(shape) == 3 and shape[1] == shape[2]:
                yield path.stem, array.load()[:rounds]


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the complete lines of a file that may not be there; one cut off has no newline."""
    lines = path.read_bytes().splitlines(True) if path.is_file() else []
    complete = [line.rstrip(b"\r\n") for line in lines if line.endswith(b"\n")]
    return [load_json(line, f"line {number}") for number, line in enumerate(complete, 1)]


def _document(path: Path) -> Any:  # noqa: ANN401 (whatever the document holds)
    return load_json(path.read_bytes(), path.name)


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    """Say which file is damaged if it cannot be read as what it should be."""
    try:
        yield
    except DamagedFileError:
        raise
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None
    except (LookupError, ValueError, TypeError, AttributeError, OverflowError) as error:
        reason = " ".join(str(error).removeprefix(f"{path.name}: ").split())[:200]
        raise DamagedFileError(f"{path} is damaged: {reason or type(error).__name__}") from None
