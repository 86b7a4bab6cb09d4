"""Callbacks, which a run tells how far it is; and loggers, which write it to files.

Loggers have names, as ``--log`` takes them: a CSV file, and event files of TensorBoard.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coalitions.errors import InvalidInputError, MissingDependencyError, did_you_mean
from coalitions.files.writing import write_whole
from learners.server.federation import Round
from learners.settings.config import RunConfig

if TYPE_CHECKING:
    from learners.runs.result import Result


class Callback:
    """Told of a run as it goes on; a class that inherits from it says what it wants to know.

    Whatever a callback raises ends the run, as Ctrl-C does: the last checkpoint is kept.

    Examples
    --------
    >>> class Said(Callback):
    ...     def on_round(self, round):
    ...         print(round.number, sorted(scalars(round.metrics))[:2])
    >>> from learners import run
    >>> result = run({"clients": 2, "rounds": 1, "workers": 1}, callbacks=[Said()])
    1 ['accuracy', 'bytes_down']
    """

    def on_begin(
        self, config: RunConfig, out: Path | None, history: Sequence[Mapping[str, Any]]
    ) -> None:
        """Hear that a run begins, or goes on.

        Parameters
        ----------
        config
            What it was asked, complete.
        out
            Its folder, if it has one.
        history
            The metrics of the rounds that are done: none of a new run.
        """

    def on_round(self, round: Round) -> None:
        """Hear that a round is done, and kept if the run has a folder."""

    def on_end(self, result: Result) -> None:
        """Hear that the run is finished; not called if it was stopped."""


def scalars(line: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a round by name, the mean of each metric among them.

    Examples
    --------
    >>> scalars({"round": 3, "train_loss": 0.5, "epsilon": None,
    ...          "metrics": {"auroc": {"mean": 0.9, "per_client": [0.9]}}})
    {'train_loss': 0.5, 'auroc': 0.9}
    """
    found = {
        key: float(value)
        for key, value in line.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and key != "round"
    }
    for name, told in (line.get("metrics") or {}).items():
        if told["mean"] is not None:
            found[name] = float(told["mean"])
    return found


# ----------------------------------------------------------------------------------------
# The rounds of a run as a table that any program reads: ``metrics.csv``.

CSV_FILE = "metrics.csv"


class CsvLogger(Callback):
    """Writes a line for each round, a column for each number; a round without one leaves it empty.

    The file is written anew after every round, so it is whole at any moment, has the columns of all
    rounds, and follows a run that was resumed.

    Parameters
    ----------
    path
        The file; None is ``metrics.csv`` in the run's folder.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lines: list[dict[str, float]] = []

    def on_begin(
        self, config: RunConfig, out: Path | None, history: Sequence[Mapping[str, Any]]
    ) -> None:
        """Take up the rounds that are done."""
        if self._path is None:
            if out is None:
                raise InvalidInputError("a CSV log needs a file, or a run with a folder")
            self._path = out / CSV_FILE
        self._lines = [_line(each) for each in history]
        if self._lines:
            self._write()

    def on_round(self, round: Round) -> None:
        """Add a round."""
        self._lines.append(_line(round.metrics))
        self._write()

    def _write(self) -> None:
        assert self._path is not None
        columns = list(dict.fromkeys(key for line in self._lines for key in line))
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self._lines)
        write_whole(self._path, text.getvalue().encode())


def _line(metrics: Mapping[str, Any]) -> dict[str, float]:
    return {"round": metrics["round"], **scalars(metrics)}


# ----------------------------------------------------------------------------------------
# The rounds of a run as event files of TensorBoard.

TENSORBOARD_FOLDER = "tensorboard"


class TensorBoardLogger(Callback):
    """Writes every number of a round, step by step; rounds that are done again replace the old.

    Parameters
    ----------
    folder
        Where event files go; None is ``tensorboard/`` in the run's folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        try:
            import tensorboard  # noqa: F401 (said before anything is trained)
        except ModuleNotFoundError:
            raise MissingDependencyError(
                "logging to TensorBoard needs its package: pip install tensorboard"
            ) from None
        self._folder = folder
        self._writer: Any = None

    def on_begin(
        self, config: RunConfig, out: Path | None, history: Sequence[Mapping[str, Any]]
    ) -> None:
        """Open the files; in a new folder, write the rounds that are done, too."""
        from torch.utils.tensorboard import SummaryWriter

        folder = self._folder or (None if out is None else out / TENSORBOARD_FOLDER)
        if folder is None:
            raise InvalidInputError("a TensorBoard log needs a folder, or a run with one")
        there = folder.is_dir() and any(folder.iterdir())
        self._writer = SummaryWriter(folder, purge_step=len(history) + 1 if there else None)
        for line in () if there else history:
            self._write(line)

    def on_round(self, round: Round) -> None:
        """Write the numbers of a round where whoever looks on sees them."""
        self._write(round.metrics)

    def on_end(self, result: Result) -> None:
        """Close the files."""
        self._writer.close()

    def _write(self, line: Mapping[str, Any]) -> None:
        for name, value in scalars(line).items():
            self._writer.add_scalar(name, value, line["round"])
        self._writer.flush()


# ----------------------------------------------------------------------------------------
# Loggers by name, as ``--log`` takes them.

LOGGERS: dict[str, type[CsvLogger] | type[TensorBoardLogger]] = {
    "csv": CsvLogger,
    "tensorboard": TensorBoardLogger,
}


def loggers_of(names: Sequence[str]) -> list[Callback]:
    """Return the loggers of these names, which write to the run's folder."""
    for name in names:
        if name not in LOGGERS:
            raise InvalidInputError(
                f"there is no log {name!r}; {did_you_mean(name, LOGGERS)}there are:"
                f" {', '.join(LOGGERS)}"
            )
    return [LOGGERS[name]() for name in dict.fromkeys(names)]


def logs_in(folder: Path) -> list[str]:
    """Return the logs that a run's folder has: whoever resumes it goes on with them."""
    places = {"csv": CSV_FILE, "tensorboard": TENSORBOARD_FOLDER}
    return [name for name, place in places.items() if (folder / place).exists()]
