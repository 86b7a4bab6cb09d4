"""Checksums of a finished run's files: what was changed or damaged since is noticed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from coalitions.errors import DamagedFileError
from coalitions.files.writing import write_whole

SUMS = "SHA256SUMS"
"""Checksums of files that are the same whenever the run is repeated; `sha256sum -c` reads it."""

TIMED_SUMS = "SHA256SUMS.timed"
"""Checksums of files that say how long the run took."""


def has_times(name: str) -> bool:
    """Tell whether a file may say how long something took: the lines of rounds, and the result."""
    return name == "result.json" or name.endswith(".jsonl")


def write_sums(folder: Path, sums: Mapping[str, str]) -> None:
    """Write the checksums of a finished run's files, those of files with times apart."""
    lines = {name: f"{digest}  {name}\n" for name, digest in sorted(sums.items())}
    timed = [line for name, line in lines.items() if has_times(name)]
    repeatable = [line for name, line in lines.items() if not has_times(name)]
    write_whole(folder / SUMS, "".join(repeatable).encode())
    write_whole(folder / TIMED_SUMS, "".join(timed).encode())


def read_sums(folder: Path) -> dict[str, str]:
    """Return the checksums of a finished run's files by name; none if nobody wrote them."""
    paths = [folder / name for name in (SUMS, TIMED_SUMS)]
    lines = [
        line
        for path in paths
        if path.is_file()
        for line in path.read_bytes().decode(errors="replace").splitlines()
    ]
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def check_sum(folder: Path, name: str, sums: Mapping[str, str]) -> None:
    """Refuse a file of a finished run that is not as it was written."""
    path = folder / name
    if name in sums and (not path.is_file() or file_digest(path) != sums[name]):
        listed = TIMED_SUMS if has_times(name) and (folder / TIMED_SUMS).is_file() else SUMS
        raise DamagedFileError(
            f"{path} is damaged: its checksum is not the one in {listed}; remove result.json, and"
            f" `coalitions resume {folder}` does the last rounds again"
        )


def file_digest(path: Path) -> str:
    """Return the SHA-256 checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
