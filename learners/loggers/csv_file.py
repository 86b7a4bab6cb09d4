"""The rounds of a run as a table that any program reads: ``metrics.csv``."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coalitions.errors import InvalidInputError
from coalitions.files.writing import write_whole
from learners.loggers.callback import Callback, scalars
from learners.server.federation import Round
from learners.settings.config import RunConfig

NAME = "metrics.csv"


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
            self._path = out / NAME
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
