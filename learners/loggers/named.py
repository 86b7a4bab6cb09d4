"""Loggers by name, as ``--log`` takes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from coalitions.errors import InvalidInputError, did_you_mean
from learners.loggers import csv_file, tensorboard
from learners.loggers.callback import Callback
from learners.loggers.csv_file import CsvLogger
from learners.loggers.tensorboard import TensorBoardLogger

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
    places = {"csv": csv_file.NAME, "tensorboard": tensorboard.NAME}
    return [name for name, place in places.items() if (folder / place).exists()]
