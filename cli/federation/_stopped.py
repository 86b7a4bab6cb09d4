"""What a run that is stopped by Ctrl-C says: which round is kept, and how to go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli.terminal.output import stderr


@contextmanager
def told_when_stopped(folder: Path, rounds: int, *, quiet: bool) -> Iterator[None]:
    """Say on Ctrl-C which round of a run is kept, and how to go on.

    Parameters
    ----------
    folder
        The run's folder.
    rounds
        Rounds of the whole run.
    quiet
        Say nothing.
    """
    try:
        yield
    except KeyboardInterrupt:
        if not quiet and (folder / "config.toml").is_file():
            stderr().print(_kept(folder, rounds), style="dim", soft_wrap=True, markup=False)
        raise


def _kept(folder: Path, rounds: int) -> str:
    from learners.runs.checkpoint import newest_first, round_of

    done = [round_of(file) for file in newest_first(folder / "checkpoints")]
    if not done:
        return f"No round is kept yet; `coalitions resume {folder}` begins again."
    if done[0] == rounds:
        return f"All {rounds} rounds are kept; `coalitions resume {folder}` writes the result."
    return (
        f"Round {done[0]} of {rounds} is saved; `coalitions resume {folder}` continues with round"
        f" {done[0] + 1}."
    )
