"""What a node keeps of a run: the client's memory after each question that changed it.

A version is named after its question. The server says which one a question builds on, so a client
whose answer came too late, or whose server went back to a checkpoint, goes on from where the server
is, and a question that arrives twice has one effect: it is answered from what is kept.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from coalitions.files.storage import disk_trouble_named
from coalitions.files.writing import write_whole

if TYPE_CHECKING:
    from flwr.app import RecordDict

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
    from safetensors.torch import save

    tensors: dict[str, Tensor] = {}
    values: dict[str, Any] = {}
    for part, entries in (("memory", version.memory), ("reply", version.reply)):
        for name, value in entries.items():
            if isinstance(value, Tensor):
                # Cloned: the format refuses tensors that share their memory.
                tensors[f"{part}/tensor/{name}"] = value.detach().cpu().clone().contiguous()
            elif isinstance(value, np.ndarray):
                array = torch.from_numpy(np.array(value, order="C"))
                tensors[f"{part}/array/{name}"] = array
            else:
                plain = value.item() if isinstance(value, np.generic) else value
                values.setdefault(part, {})[name] = plain
    content: bytes = save(tensors, metadata={"values": json.dumps(values)})
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
