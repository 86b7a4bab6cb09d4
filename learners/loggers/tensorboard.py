"""The rounds of a run as event files of TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coalitions.errors import InvalidInputError, MissingDependencyError
from learners.loggers.callback import Callback, scalars
from learners.server.federation import Round
from learners.settings.config import RunConfig

if TYPE_CHECKING:
    from learners.runs.run import Result

NAME = "tensorboard"


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

        folder = self._folder or (None if out is None else out / NAME)
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
