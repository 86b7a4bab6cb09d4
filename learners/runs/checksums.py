"""Checksums of a finished run's files: what was changed or damaged since is noticed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from coalitions.errors import DamagedFileError

SUMS = "SHA256SUMS"
"""What `sha256sum -c` reads, too."""


def read_sums(folder: Path) -> dict[str, str]:
    """Return the checksums of a finished run's files by name; none if nobody wrote them."""
    path = folder / SUMS
    if not path.is_file():
        return {}
    lines = path.read_bytes().decode(errors="replace").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def check_sum(folder: Path, name: str, sums: Mapping[str, str]) -> None:
    """Refuse a file of a finished run that is not as it was written."""
    path = folder / name
    if name in sums and (not path.is_file() or file_digest(path) != sums[name]):
        raise DamagedFileError(
            f"{path} is damaged: its checksum is not the one in {SUMS}; remove result.json, and"
            f" `coalitions resume {folder}` does the last rounds again"
        )


def file_digest(path: Path) -> str:
    """Return the SHA-256 checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
