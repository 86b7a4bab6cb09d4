"""A report's file, from the folders of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cli.report.contents import Section, sections_of
from cli.report.methods import methods_of, read_runs
from cli.report.page import page
from coalitions.files.writing import atomic_write
from learners.comparisons.baseline import recorded_baseline
from learners.runs.reading import RunRecord


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
