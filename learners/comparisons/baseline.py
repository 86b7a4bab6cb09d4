"""The row that a comparison's differences are taken from, kept beside its runs for reports."""

from __future__ import annotations

from pathlib import Path

from coalitions.errors import InvalidInputError
from coalitions.files.text import load_json
from coalitions.files.writing import write_json

FILE = "comparison.json"


def record_baseline(folder: Path, baseline: str | None) -> None:
    """Keep which row was chosen; None, the best one, is kept where another was chosen before."""
    path = folder / FILE
    if baseline is not None or path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_json(path, {"baseline": baseline})


def recorded_baseline(folder: Path) -> str | None:
    """Return the row that was chosen; None if there is none."""
    path = folder / FILE
    if not path.is_file():
        return None
    document = load_json(path.read_bytes(), str(path))
    baseline = document.get("baseline") if isinstance(document, dict) else 0
    if not isinstance(baseline, str | None):
        raise InvalidInputError(f'{path}: expected an object with "baseline": the name of a row')
    return baseline
