"""A run's folder: what it was asked, what happened, where it stands, what came out.

::

    config.toml        complete: `coalitions run DIR/config.toml` repeats the run
    metrics.jsonl      one line per round
    checkpoints/       where the run stands; the newest only
    clients.json       what each client has: counts of labels, domain, poisoned or not
    environment.json   versions and cores of where it ran
    result.json        there when the run is finished
    models/            each client's model
    NAME.npy           arrays a method recorded, [rounds, …]
    NAMEs.jsonl        coalition structures a method recorded, one line per round
    inversion.*        what `coalitions attack` recovered: the picture and its figures
"""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from coalitions.errors import InvalidInputError
from coalitions.structure import CoalitionStructure
from learners.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from learners.config import RunConfig
from learners.federation import Round
from learners.files import held, write_whole
from learners.parameters import Layout


class RunFolder:
    """Reads and writes a run's folder.

    Parameters
    ----------
    path
        The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, config: RunConfig, *, force: bool = False) -> RunFolder:
        """Make a folder for a new run; one that has files must be meant to be replaced."""
        cls.check_free(path, force=force)
        if path.is_dir() and any(path.iterdir()):
            with cls(path).alone():
                shutil.rmtree(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInputError(f"cannot make the folder {path}: {error.strerror}") from None
        write_whole(path / "config.toml", config.toml().encode())
        return cls(path)

    @staticmethod
    def check_free(path: Path, *, force: bool = False) -> None:
        """Refuse a place where a new run must not go."""
        if path.exists() and not path.is_dir():
            raise InvalidInputError(f"{path} is a file; a run needs a folder of its own")
        if path.is_dir() and any(path.iterdir()):
            if not force:
                raise InvalidInputError(
                    f"{path} exists and has files; choose another folder, or --force to replace it"
                )
            if not (path / "config.toml").is_file():
                raise InvalidInputError(
                    f"{path} has files but no config.toml: it is not a run's folder, and it stays"
                )

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Return the folder of a run that was begun."""
        if not (path / "config.toml").is_file():
            raise InvalidInputError(f"{path} is not a run's folder: it has no config.toml")
        return cls(path)

    def alone(self) -> AbstractContextManager[None]:
        """Keep other processes from writing to the folder meanwhile."""
        return held(
            self.path / ".lock",
            f"another process is at work on the run in {self.path}; wait for it, or stop it first",
        )

    def config(self) -> RunConfig:
        """Return what the run was asked."""
        return RunConfig.read(self.path / "config.toml")

    def result(self) -> dict[str, Any] | None:
        """Return what came out; None if the run is not finished."""
        path = self.path / "result.json"
        if not path.is_file():
            return None
        result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return result

    def history(self) -> list[dict[str, Any]]:
        """Return the metrics of the rounds so far."""
        return [json.loads(line) for line in self._lines("metrics.jsonl")]

    def write_round(self, round: Round, n_rounds: int) -> None:
        """Add what a round left behind; the next line is only begun when this one is written."""
        self._append("metrics.jsonl", round.metrics)
        for name, value in round.records.items():
            if isinstance(value, CoalitionStructure):
                line = {"round": round.number, "coalitions": [list(block) for block in value]}
                self._append(f"{name}s.jsonl", line)
            elif isinstance(value, np.ndarray):
                self._store(name, value, round.number, n_rounds)

    def save(self, checkpoint: Checkpoint) -> None:
        """Write where the run stands."""
        save_checkpoint(self.path / "checkpoints", checkpoint)

    def resume_from(self, device: torch.device) -> Checkpoint | None:
        """Return where the run stands, and forget what was written of later rounds."""
        checkpoint = load_checkpoint(self.path / "checkpoints", device)
        done = checkpoint.round if checkpoint else 0
        for file in self.path.glob("*.jsonl"):
            kept = [line for line in self._lines(file.name) if json.loads(line)["round"] <= done]
            write_whole(file, "".join(f"{line}\n" for line in kept).encode())
        return checkpoint

    def write_circumstances(
        self, clients: Sequence[Mapping[str, Any]], place: Mapping[str, Any]
    ) -> None:
        """Write what the clients have, and what the run runs on: for reports, not for resuming.

        Parameters
        ----------
        clients
            What each client has.
        place
            Where clients are computed: device, engine, workers.
        """
        described = [
            {
                "samples": int(told["samples"]),
                "labels": [int(count) for count in told["labels"]],
                "domain": told["domain"],
                "poisoned": bool(told["poisoned"]),
            }
            for told in clients
        ]
        surroundings = {
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "numpy": np.__version__,
            "system": f"{platform.system()} {platform.machine()}",
            "cores": os.cpu_count(),
            **place,
        }
        for name, document in (("clients", described), ("environment", surroundings)):
            text = json.dumps(document, ensure_ascii=False)
            write_whole(self.path / f"{name}.json", f"{text}\n".encode())

    def write_result(self, result: dict[str, Any]) -> None:
        """Write what came out; the run is finished then."""
        text = json.dumps(result, ensure_ascii=False, allow_nan=False, indent=2)
        write_whole(self.path / "result.json", f"{text}\n".encode())

    def write_models(
        self, models: Sequence[Tensor | None], layout: Layout, about: Mapping[str, Any]
    ) -> None:
        """Write each client's model; equal ones share their place on disk."""
        from safetensors.torch import save

        folder = self.path / "models"
        folder.mkdir(exist_ok=True)
        written: dict[int, Path] = {}
        for client, row in enumerate(models):
            path = model_path(folder, client)
            path.unlink(missing_ok=True)
            if row is None:
                continue
            same = written.get(id(row))
            if same is None:
                tensors = {name: view.cpu() for name, view in layout.views(row).items()}
                # One entry, because the file format keeps several in no fixed order.
                write_whole(path, save(tensors, metadata={"about": json.dumps(about)}))
                written[id(row)] = path
            else:
                try:
                    os.link(same, path)
                except OSError:  # a file system without links
                    shutil.copyfile(same, path)

    def read_model(self, client: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the tensors of a client's model, and what is said about it."""
        from safetensors import safe_open

        path = model_path(self.path / "models", client)
        if not path.is_file():
            there = len(list((self.path / "models").glob("client-*.safetensors")))
            raise InvalidInputError(
                f"{self.path} has no model of client {client}; "
                + (f"it has clients 0 … {there - 1}" if there else "the run is not finished")
            )
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return tensors, json.loads(file.metadata()["about"])

    def _append(self, name: str, document: dict[str, Any]) -> None:
        with (self.path / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")

    def _lines(self, name: str) -> list[str]:
        """Return the complete lines of a file: a line that was cut off ends without a newline."""
        path = self.path / name
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        return [line.rstrip("\n") for line in text.splitlines(True) if line.endswith("\n")]

    def _store(self, name: str, value: np.ndarray[Any, Any], t: int, n_rounds: int) -> None:
        path = self.path / f"{name}.npy"
        if not path.is_file():
            part = path.with_name(f".{path.name}.part")
            array = np.lib.format.open_memmap(
                part, mode="w+", dtype=np.float64, shape=(n_rounds, *value.shape)
            )
            array[:] = np.nan
            array.flush()
            part.replace(path)
        array = np.load(path, mmap_mode="r+", allow_pickle=False)
        array[t - 1] = value
        array.flush()


def model_path(folder: Path, client: int) -> Path:
    """Return the file of a client's model."""
    return folder / f"client-{client:04d}.safetensors"


def load_into(module: nn.Module, tensors: dict[str, Tensor]) -> nn.Module:
    """Copy named tensors into a network, and return it ready to predict."""
    own = dict(module.named_parameters()) | dict(module.named_buffers())
    with torch.no_grad():
        for name, tensor in tensors.items():
            own[name].copy_(tensor)
    return module.eval()
