"""The protocol of callbacks: what a run tells, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from learners.server.federation import Round
from learners.settings.config import RunConfig

if TYPE_CHECKING:
    from learners.runs.run import Result


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
