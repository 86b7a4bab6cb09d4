"""The state of a run on disk: files that grow with its rounds, and checkpoints with checksums."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.lib import format as npy
from numpy.typing import NDArray
from torch import Tensor

from coalitions.errors import DamagedFileError, InvalidInputError
from coalitions.files.opening import json_text, load_json
from coalitions.files.writing import atomic_write, disk_trouble_named, require_room, write_whole

# ----------------------------------------------------------------------------------------
# Files that grow with the rounds of a run, and marks that tell where each stood.
#
# Lines go to ``NAME.jsonl``, arrays to ``NAME.npy`` [rounds, …]. What is written stays as it is,
# so a mark is a length and the checksum of that much of the file. A checkpoint keeps the marks of
# its round: on resuming, what came later is cut off, and what was lost or changed is noticed.

Mark = tuple[int, str]
"""Bytes of a file, and their SHA-256 checksum."""

_CHUNK = 1 << 20


@dataclass
class _Written:
    """How far a file is written, with the running checksum of that much."""

    size: int = 0
    digest: Any = field(default_factory=hashlib.sha256)

    def add(self, content: bytes) -> None:
        self.size += len(content)
        self.digest.update(content)


class RoundFiles:
    """The growing files of a folder.

    Parameters
    ----------
    folder
        Where they are. A file of which there is no mark is begun anew by the first write to it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written: dict[str, _Written] = {}

    def add_line(self, name: str, document: Mapping[str, Any]) -> None:
        """Add a line to ``NAME.jsonl``."""
        path = self._folder / f"{name}.jsonl"
        line = f"{json_text(document, indent=None)}\n".encode()
        begun = self._written.get(path.name)
        with disk_trouble_named(path), path.open("wb" if begun is None else "ab") as file:
            file.write(line)
        self._written.setdefault(path.name, _Written()).add(line)

    def add_row(self, name: str, value: NDArray[Any], t: int, n_rounds: int) -> None:
        """Put the array of round `t` in its place in ``NAME.npy``; rounds without one are NaN."""
        path = self._folder / f"{name}.npy"
        row = np.ascontiguousarray(value, np.float64)
        shape = (n_rounds, *row.shape)
        header = _header(shape)
        begun = self._written.get(path.name)
        if begun is None:
            _write_empty(path, header, shape)
            begun = self._written[path.name] = _Written()
            begun.add(header)
        place = len(header) + (t - 1) * row.nbytes
        with path.open("rb") as file:
            if file.read(len(header)) != header:
                raise InvalidInputError(
                    f"{name} must have the same shape in every round; in round {t} it is"
                    f" {list(row.shape)}"
                )
        with disk_trouble_named(path), path.open("r+b") as file:
            file.seek(place)
            file.write(row.tobytes())
        nothing = np.full(row.shape, np.nan).tobytes()
        for _ in range(begun.size, place, row.nbytes or 1):
            begun.add(nothing)
        begun.add(row.tobytes())

    def names(self) -> list[str]:
        """Return the names of the files."""
        return list(self._written)

    def marks(self) -> dict[str, Mark]:
        """Return how far every file is written, once it is on disk so far."""
        for name in self._written:
            path = self._folder / name
            with disk_trouble_named(path), path.open("r+b") as file:
                os.fsync(file.fileno())
        return {name: (file.size, file.digest.hexdigest()) for name, file in self._written.items()}

    def return_to(self, marks: Mapping[str, Mark]) -> None:
        """Cut every file back to its mark; refuse if one is no longer what was marked."""
        written = {}
        for name, (size, checksum) in marks.items():
            written[name] = _read_first(self._folder / name, size)
            if written[name].digest.hexdigest() != checksum:
                raise DamagedFileError(
                    f"{self._folder / name} is damaged: it is not what was written to it"
                )
        for name, (size, _) in marks.items():
            path = self._folder / name
            with disk_trouble_named(path), path.open("r+b") as file:
                file.truncate(size)
                if name.endswith(".npy"):
                    _fill(file, size)
        self._written = written


def _read_first(path: Path, size: int) -> _Written:
    """Return the first `size` bytes of a file as written."""
    written = _Written()
    try:
        with path.open("rb") as file:
            while written.size < size:
                content = file.read(min(_CHUNK, size - written.size))
                if not content:
                    raise DamagedFileError(
                        f"{path} is damaged: {size - written.size:,} bytes of it are lost"
                    )
                written.add(content)
    except FileNotFoundError:
        raise DamagedFileError(f"{path} is missing") from None
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error.strerror}") from None
    return written


def _header(shape: tuple[int, ...]) -> bytes:
    header = io.BytesIO()
    descr = npy.dtype_to_descr(np.dtype(np.float64))
    fields = {"descr": descr, "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(header, fields)
    return header.getvalue()


def _write_empty(path: Path, header: bytes, shape: tuple[int, ...]) -> None:
    """Write an array without numbers: a full disk is noticed now, not in round 400."""
    require_room(path, len(header) + 8 * prod(shape))
    with atomic_write(path) as file:
        file.write(header)
        row = np.full(shape[1:], np.nan).tobytes()
        for _ in range(shape[0]):
            file.write(row)


def _fill(file: BinaryIO, size: int) -> None:
    """Forget the rows of an array file after its first `size` bytes."""
    file.seek(0)
    npy.read_magic(file)
    shape, _, _ = npy.read_array_header_1_0(file)
    end = file.tell() + 8 * prod(shape)
    file.seek(size)
    nothing = np.full(_CHUNK // 8, np.nan).tobytes()
    while file.tell() < end:
        file.write(nothing[: end - file.tell()])


# ----------------------------------------------------------------------------------------
# Where a run stands, in two files: numbers as safetensors, the rest as JSON with checksums.

KEPT = 2
"""Checkpoints that are kept: the newest, and the one before in case it is damaged."""

_VERSION = 2
_TENSOR, _ARRAY = "tensor", "array"


@dataclass(frozen=True)
class Checkpoint:
    """All that the rest of a run depends on.

    Attributes
    ----------
    round
        The last round that is done.
    state
        What the server remembers.
    memories
        What each client remembers.
    traffic
        The ledger's counts.
    seconds
        Time spent so far.
    settings
        The run's configuration, as TOML: no other run may go on from here.
    marks
        How far the files are written that grow with the rounds.
    """

    round: int
    state: Mapping[str, Any]
    memories: Mapping[int, Mapping[str, Any]]
    traffic: NDArray[np.int64]
    seconds: float
    settings: str = ""
    marks: Mapping[str, Mark] = field(default_factory=dict)


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, then remove all but the one before it.

    The JSON file comes last and holds the checksum of the other: a checkpoint exists when both
    are complete, and at every moment at least one does.
    """
    tensors: dict[str, Tensor] = {}
    document = {
        "version": _VERSION,
        "round": checkpoint.round,
        "settings": checkpoint.settings,
        "marks": checkpoint.marks,
        "seconds": checkpoint.seconds,
        "state": _packed(checkpoint.state, "state", tensors),
        "memories": {
            str(client): _packed(memory, f"client {client}", tensors)
            for client, memory in checkpoint.memories.items()
        },
        "traffic": _packed({"counts": checkpoint.traffic}, "traffic", tensors),
    }
    numbers = tensor_bytes(tensors)
    document["sha256"] = hashlib.sha256(numbers).hexdigest()
    text = json_text(document, indent=None)
    name = f"round-{checkpoint.round:06d}"
    with disk_trouble_named(folder):
        folder.mkdir(exist_ok=True)
    write_whole(folder / f"{name}.safetensors", numbers)
    write_whole(folder / f"{name}.json", f"{_digest(text)}\n{text}\n".encode())
    # Those of later rounds are what a run left that had to go back.
    done = [each.stem for each in newest_first(folder) if round_of(each) <= checkpoint.round]
    for old in folder.glob("round-*"):
        if old.stem not in done[:KEPT]:
            old.unlink()


def newest_first(folder: Path) -> list[Path]:
    """Return the JSON files of the checkpoints in a folder."""
    return sorted(folder.glob("round-*.json"), key=round_of, reverse=True)


def round_of(file: Path) -> int:
    """Return the round of a checkpoint, from the name of its file."""
    return int(file.stem.removeprefix("round-"))


def load_checkpoint(file: Path, device: torch.device) -> Checkpoint:
    """Return the checkpoint with this JSON file, or say what is wrong with it."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    document = read_document(file)
    numbers_file = file.with_suffix(".safetensors")
    numbers = _read(numbers_file)
    if hashlib.sha256(numbers).hexdigest() != document.get("sha256"):
        raise DamagedFileError(f"{numbers_file} is damaged: its checksum does not match")
    try:
        return _checkpoint(document, load(numbers), device)
    except (LookupError, ValueError, TypeError, AttributeError, OverflowError, SafetensorError):
        raise DamagedFileError(f"{file} is damaged: it is not what a run writes") from None


def _checkpoint(
    document: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device
) -> Checkpoint:
    return Checkpoint(
        int(document["round"]),
        _unpacked(document["state"], "state", tensors, device),
        {
            int(client): _unpacked(memory, f"client {client}", tensors, device)
            for client, memory in document["memories"].items()
        },
        _unpacked(document["traffic"], "traffic", tensors, device)["counts"],
        float(document["seconds"]),
        str(document["settings"]),
        {name: (int(size), str(digest)) for name, (size, digest) in document["marks"].items()},
    )


def read_document(file: Path) -> dict[str, Any]:
    """Return what the JSON file of a checkpoint says; it says with which `settings` it was made."""
    checksum, _, text = _read(file).rstrip(b"\n").partition(b"\n")
    if hashlib.sha256(text).hexdigest().encode() != checksum:
        raise DamagedFileError(f"{file} is damaged: its checksum does not match")
    try:
        document = load_json(text, str(file))
    except InvalidInputError as error:
        raise DamagedFileError(f"{error}; it is damaged") from None
    if not isinstance(document, dict) or document.get("version") != _VERSION:
        raise DamagedFileError(f"{file} was written by another version of this program")
    if not isinstance(document.get("settings"), str):
        raise DamagedFileError(f"{file} is damaged: it does not tell its settings")
    return document


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error.strerror}") from None


def _packed(
    values: Mapping[str, Any], owner: str, tensors: dict[str, Tensor]
) -> dict[str, tuple[str, Any]]:
    """Return the plain values, and put tensors and arrays into `tensors`."""
    packed: dict[str, tuple[str, Any]] = {}
    for name, value in values.items():
        if isinstance(value, Tensor):
            tensors[f"{owner}/{name}"] = value.detach().cpu().contiguous()
            packed[name] = (_TENSOR, None)
        elif isinstance(value, np.ndarray):
            tensors[f"{owner}/{name}"] = torch.from_numpy(np.ascontiguousarray(value))
            packed[name] = (_ARRAY, list(value.shape))
        else:
            try:
                plain = json.loads(json.dumps(value, allow_nan=False)) == value
            except (TypeError, ValueError):
                plain = False
            if not plain:
                raise InvalidInputError(
                    f"{name!r} of the {owner} cannot be saved and come back the same: use tensors,"
                    f" numpy arrays, text, finite numbers, and lists or tables of these,"
                    f" not {type(value).__name__}"
                )
            packed[name] = ("plain", value)
    return packed


def tensor_bytes(tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """Return tensors as safetensors; the format refuses shared memory, so such ones are copied."""
    from safetensors.torch import save

    taken: set[int] = set()
    apart = {}
    for name, tensor in tensors.items():
        place = tensor.untyped_storage().data_ptr()
        apart[name] = tensor.clone() if place in taken else tensor
        taken.add(place)
    content: bytes = save(apart, metadata=metadata)
    return content


def _unpacked(
    packed: Mapping[str, Any], owner: str, tensors: Mapping[str, Tensor], device: torch.device
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, (kind, value) in packed.items():
        if kind == _TENSOR:
            values[name] = tensors[f"{owner}/{name}"].to(device)
        elif kind == _ARRAY:
            values[name] = tensors[f"{owner}/{name}"].numpy().reshape(value)
        else:
            values[name] = value
    return values


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
