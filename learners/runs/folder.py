"""A run's folder: what it was asked, what happened, where it stands, what came out.

::

    config.toml        complete: `coalitions run DIR/config.toml` repeats the run
    metrics.jsonl      one line per round
    checkpoints/       where the run stands: the newest, and the one before
    clients.json       what each client has: counts of labels, domain, poisoned or not
    classes.json       what classes or labels are called, in order of a model's outputs
    environment.json   versions and cores of where it ran
    result.json        there when the run is finished
    SHA256SUMS         checksums of what a finished run left, as `sha256sum -c` reads them
    SHA256SUMS.timed   the same for the files that say how long the run took
    models/            each client's model
    NAME.npy           arrays a method recorded, [rounds, …]
    NAMEs.jsonl        coalition structures a method recorded, one line per round
    flower.json        the run's id, by which the nodes of a Flower federation know it
    nodes/             what simulated nodes of Flower remember
    inversion.*        what `coalitions attack` recovered: the picture and its figures
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from coalitions.errors import (
    DamagedFileError,
    DamagedFileWarning,
    InvalidInputError,
    StorageError,
)
from coalitions.files.opening import json_text
from coalitions.files.writing import (
    disk_trouble_named,
    held,
    require_room,
    storage_error,
    write_json,
    write_whole,
)
from coalitions.structure import CoalitionStructure
from learners.rows.parameters import Layout
from learners.runs.checkpoint import (
    Checkpoint,
    RoundFiles,
    load_checkpoint,
    newest_first,
    read_document,
    save_checkpoint,
)
from learners.runs.kept_runs import with_all_options
from learners.runs.reading import (
    SUMS,
    TIMED_SUMS,
    Clients,
    check_begun,
    check_sum,
    file_digest,
    read_config,
    read_history,
    read_result,
    read_sums,
    write_sums,
)
from learners.server.federation import Round
from learners.settings.config import RunConfig, differing_settings, spoken_setting

_LOCK = ".lock"

_TEMPORARY = re.compile(
    r"\.(config\.toml|metrics\.csv|(clients|environment|result)\.json|round-\d+\.(json|safetensors)"
    r"|client-\d+\.safetensors|.+\.npy|SHA256SUMS(\.timed)?)\.[a-z0-9_]{8}"
)


class RunFolder:
    """Reads and writes a run's folder.

    Parameters
    ----------
    path
        The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._records = RoundFiles(path)
        self._sums: dict[str, str] = {}

    @classmethod
    @contextmanager
    def create(cls, path: Path, config: RunConfig, *, force: bool = False) -> Iterator[RunFolder]:
        """Give the folder of a new run, alone; one that has a run must be meant to be replaced."""
        cls.check_free(path, force=force)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            refusal = InvalidInputError(f"cannot make the folder {path}: {error.strerror}")
            raise storage_error(error, path) or refusal from None
        folder = cls(path)
        with folder.alone():
            cls.check_free(path, force=force)  # another process may have begun a run meanwhile
            folder._clear()
            write_whole(path / "config.toml", config.toml().encode())
            yield folder

    @staticmethod
    def check_free(path: Path, *, force: bool = False) -> None:
        """Refuse a place where a new run must not go."""
        if path.exists() and not path.is_dir():
            raise InvalidInputError(f"{path} is a file; a run needs a folder of its own")
        if path.is_dir() and not is_bare(path):
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
        check_begun(path)
        return cls(path)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from writing to the folder meanwhile."""
        complaint = (
            f"another process is at work on the run in {self.path}; wait for it, or stop it first"
        )
        try:
            with held(self.path / _LOCK, complaint):
                yield
        except StorageError as error:
            if not (self.path / "config.toml").is_file():  # there is nothing to go on with
                raise
            raise StorageError(
                f"{error}, then `coalitions resume {self.path}` goes on where it stopped"
            ) from None

    def config(self) -> RunConfig:
        """Return what the run was asked."""
        return with_all_options(read_config(self.path))

    def result(self) -> dict[str, Any] | None:
        """Return what came out; None if the run is not finished."""
        return read_result(self.path)

    def history(self) -> list[dict[str, Any]]:
        """Return the metrics of the rounds so far."""
        return read_history(self.path)

    def write_round(self, round: Round, n_rounds: int) -> None:
        """Add what a round left behind."""
        self._records.add_line("metrics", round.metrics)
        for name, value in round.records.items():
            if isinstance(value, CoalitionStructure):
                line = {"round": round.number, "coalitions": [list(block) for block in value]}
                self._records.add_line(f"{name}s", line)
            elif isinstance(value, np.ndarray):
                self._records.add_row(name, value, round.number, n_rounds)

    def save(self, checkpoint: Checkpoint) -> None:
        """Write where the run stands."""
        marked = replace(checkpoint, marks=self._records.marks())
        save_checkpoint(self.path / "checkpoints", marked)

    def resume_from(self, config: RunConfig, device: torch.device) -> Checkpoint | None:
        """Return where the run stands, and forget what was written of later rounds.

        A damaged checkpoint is passed over, with a warning, for the one before.

        Parameters
        ----------
        config
            What the run is to do now; it must be what it did so far.
        device
            Where the state goes.
        """
        self.sweep()
        for sums in (SUMS, TIMED_SUMS):
            (self.path / sums).unlink(missing_ok=True)
        faults = []
        for file in newest_first(self.path / "checkpoints"):
            try:
                checkpoint = load_checkpoint(file, device)
                self._check_settings(checkpoint.settings, config)
                self._records.return_to(checkpoint.marks)
            except DamagedFileError as fault:
                faults.append(str(fault))
                continue
            if faults:
                warnings.warn(
                    f"{faults[0]}; the run goes on from the checkpoint of round"
                    f" {checkpoint.round} instead",
                    DamagedFileWarning,
                    stacklevel=3,
                )
            return checkpoint
        if faults:
            raise DamagedFileError(
                f"{faults[0]}, and there is no sound checkpoint before it; begin again with"
                f" `coalitions run {self.path}/config.toml --out {self.path} --force`"
            )
        (self.path / "metrics.jsonl").unlink(missing_ok=True)
        return None

    def check_finished(self, config: RunConfig) -> None:
        """Refuse a finished run whose settings were changed since."""
        for file in newest_first(self.path / "checkpoints"):
            try:
                settings = read_document(file)["settings"]
            except DamagedFileError:  # nobody needs it any more
                continue
            self._check_settings(settings, config)
            return

    def sweep(self) -> None:
        """Remove what a killed process left of files it was about to write."""
        for folder in (self.path, self.path / "checkpoints", self.path / "models"):
            for path in folder.iterdir() if folder.is_dir() else ():
                if _is_temporary(path):
                    path.unlink(missing_ok=True)

    def _check_settings(self, began_with: str, config: RunConfig) -> None:
        began = replace(RunConfig.of(tomllib.loads(began_with)), data_dir=config.data_dir)
        # The data may have moved; what decides the numbers may not have changed. An option that the
        # method did not have when the run began has its default.
        began, config = with_all_options(began), with_all_options(config)
        for key, was, now in differing_settings(began, config):
            path = self.path / "config.toml"
            raise InvalidInputError(
                f"{path} says {key} {spoken_setting(now)}, but the run began with"
                f" {spoken_setting(was)}: the rest would not fit what is done; change it back, or"
                f" begin a new run with `coalitions run {path} --out NEW`"
            )

    def _clear(self) -> None:
        """Remove a run, its settings last: one that is removed by half can still be removed."""
        last = self.path / "config.toml"
        there = [path for path in self.path.iterdir() if path.name != _LOCK]
        try:
            for path in sorted(there, key=lambda path: (path == last, path.name != "result.json")):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()
        except OSError as error:
            raise InvalidInputError(f"cannot remove {error.filename}: {error.strerror}") from None

    def write_circumstances(
        self,
        clients: Sequence[Mapping[str, Any]],
        place: Mapping[str, Any],
        classes: Sequence[str] = (),
    ) -> None:
        """Write what the clients have, and what the run runs on: for reports, not for resuming.

        Parameters
        ----------
        clients
            What each client has.
        place
            Where clients are computed: device, engine, workers.
        classes
            What classes or labels are called, if they have names.
        """
        described = Clients.of(clients)
        surroundings = {
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "numpy": np.__version__,
            "system": f"{platform.system()} {platform.machine()}",
            "cores": os.cpu_count(),
            **place,
        }
        documents = {"clients": described.document(), "environment": surroundings}
        if classes:
            documents["classes"] = list(classes)
        for name, document in documents.items():
            write_json(self.path / f"{name}.json", document, indent=None)

    def write_result(self, result: dict[str, Any]) -> None:
        """Write what came out; the run is finished then."""
        content = f"{json_text(result)}\n".encode()
        sums = self._sums | {name: file_digest(self.path / name) for name in self._records.names()}
        sums["result.json"] = hashlib.sha256(content).hexdigest()
        write_sums(self.path, sums)
        write_whole(self.path / "result.json", content)

    def write_models(
        self, models: Sequence[Tensor | None], layout: Layout, about: Mapping[str, Any]
    ) -> None:
        """Write each client's model; equal ones share their place on disk."""
        from safetensors.torch import save

        folder = self.path / "models"
        with disk_trouble_named(folder):
            folder.mkdir(exist_ok=True)
        for client in range(len(models)):
            model_path(folder, client).unlink(missing_ok=True)
        rows = {id(row): row for row in models if row is not None}
        require_room(folder, sum(row.numel() * row.element_size() for row in rows.values()))
        written: dict[int, Path] = {}
        for client, row in enumerate(models):
            path = model_path(folder, client)
            if row is None:
                continue
            same = written.setdefault(id(row), path)
            name = path.relative_to(self.path).as_posix()
            if same == path:
                tensors = {name: view.cpu() for name, view in layout.views(row).items()}
                # One entry, because the file format keeps several in no fixed order.
                content = save(tensors, metadata={"about": json.dumps(about)})
                write_whole(path, content)
                self._sums[name] = hashlib.sha256(content).hexdigest()
            else:
                try:
                    os.link(same, path)
                except OSError:  # a file system without links
                    write_whole(path, same.read_bytes())
                self._sums[name] = self._sums[same.relative_to(self.path).as_posix()]

    def read_model(self, client: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the tensors of a client's model, and what is said about it."""
        from safetensors import SafetensorError, safe_open

        path = model_path(self.path / "models", client)
        if not path.is_file():
            there = len(list((self.path / "models").glob("client-*.safetensors")))
            raise InvalidInputError(
                f"{self.path} has no model of client {client}; "
                + (f"it has clients 0 … {there - 1}" if there else "the run is not finished")
            )
        check_sum(self.path, path.relative_to(self.path).as_posix(), read_sums(self.path))
        try:
            with safe_open(path, framework="pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                return tensors, json.loads(file.metadata()["about"])
        except (SafetensorError, LookupError, TypeError, ValueError) as error:
            raise DamagedFileError(f"{path} is damaged: {error}") from None


def _is_temporary(path: Path) -> bool:
    """Tell whether a file is what a killed process leaves of one that it was about to write."""
    return path.is_file() and _TEMPORARY.fullmatch(path.name) is not None


def is_bare(folder: Path) -> bool:
    """Tell whether a folder has nothing, or only what a run leaves that was killed at once."""
    return all(path.name == _LOCK or _is_temporary(path) for path in folder.iterdir())


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
