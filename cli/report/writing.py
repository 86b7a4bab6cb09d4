"""Writing the page of a report, once or again and again while runs go on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from cli.report.contents import Section, sections_of
from cli.report.methods import methods_of, read_runs
from cli.report.page import page
from cli.terminal.output import stderr
from coalitions.errors import DamagedFileError, InvalidInputError
from coalitions.files.writing import atomic_write
from learners.measures.scores import recorded_baseline
from learners.runs.reading import RunRecord

# ----------------------------------------------------------------------------------------
# A report's file, from the folders of its runs.


def write_page(
    folders: Sequence[Path], target: Path, refresh: float = 0
) -> tuple[list[Section], list[RunRecord], list[Path]]:
    """Write the page; return its sections, the runs, and which have no round yet.

    Parameters
    ----------
    folders
        Folders of runs, or of comparisons.
    target
        The file; it is replaced when it is complete.
    refresh
        Seconds after which a browser loads the page again; 0 is never.
    """
    runs, waiting = read_runs(folders)
    methods = methods_of(runs)
    sections = sections_of(methods)
    baseline = next(filter(None, map(recorded_baseline, folders)), None)
    with atomic_write(target) as file:
        file.write(page(methods, sections, refresh, baseline).encode())
    return sections, runs, waiting


# ----------------------------------------------------------------------------------------
# A report that follows its runs: a file written again after each round, which reloads by itself.
#
# A page that reloads itself works from the disk, without a server. The last one that is written
# does not reload.

PATIENCE = 30.0
"""Seconds after which no further run of a comparison is waited for."""


def watched(folders: Sequence[Path], target: Path, every: float) -> None:
    """Keep the page up to date until the runs are finished; on Ctrl-C, leave one that stays.

    A comparison's next run begins when another is finished: it is waited for a while.

    Parameters
    ----------
    folders, target
        See `write_page`.
    every
        Seconds from one look to the next.
    """
    for folder in folders:
        if not folder.is_dir():
            raise InvalidInputError(f"{folder} is no folder of a run or a comparison")
    console = stderr()
    told = False
    seen: dict[Path, int] | None = None
    changed = time.monotonic()
    try:
        while True:
            now = _sizes(folders)
            if now != seen and _written(folders, target, every):
                seen, changed = now, time.monotonic()
                if not told:
                    told = True
                    console.print(
                        f"{target.resolve().as_uri()} reloads every {every:g} s; Ctrl-C stops.",
                        style="dim",
                        soft_wrap=True,
                    )
            several = any(not (folder / "config.toml").is_file() for folder in folders)
            quiet = time.monotonic() - changed
            if seen and _finished(folders) and (not several or quiet > PATIENCE):
                return
            time.sleep(every)
    except KeyboardInterrupt:
        if told:
            write_page(folders, target)
        raise


def _written(folders: Sequence[Path], target: Path, every: float) -> bool:
    """Write the page; False while there is nothing to show, or a file is half written."""
    try:
        write_page(folders, target, refresh=every)
    except DamagedFileError:
        time.sleep(0.2)
        write_page(folders, target, refresh=every)  # what is damaged now is not being written
    except InvalidInputError:
        if any(_sizes(folders).values()):
            raise
        return False  # no round is done yet
    return True


def _runs(folders: Sequence[Path]) -> list[Path]:
    """Return the folders of runs in some folders."""
    found: list[Path] = []
    for folder in folders:
        own = (folder / "config.toml").is_file()
        found += [folder] if own else sorted(p.parent for p in folder.glob("*/config.toml"))
    return found


def _sizes(folders: Sequence[Path]) -> dict[Path, int]:
    """Return what grows when something happens: lines of rounds, and results."""
    files = [run / name for run in _runs(folders) for name in ("metrics.jsonl", "result.json")]
    return {file: file.stat().st_size for file in files if file.is_file()}


def _finished(folders: Sequence[Path]) -> bool:
    runs = _runs(folders)
    return bool(runs) and all((run / "result.json").is_file() for run in runs)
