"""Files that are complete when they appear, also after a power cut."""

from __future__ import annotations

import os
from pathlib import Path

from coalitions.graph_files import atomic_write


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that takes its name only when all of it is on disk."""
    with atomic_write(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
