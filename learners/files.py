"""Files that are complete when they appear, also after a power cut, and locks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coalitions.errors import InvalidInputError
from coalitions.graph_files import atomic_write

if sys.platform != "win32":
    import fcntl


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that takes its name only when all of it is on disk."""
    with atomic_write(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def held(path: Path, complaint: str) -> Iterator[None]:
    """Hold the lock file `path` meanwhile; complain if another process does.

    The system lets go of it when the process ends, however it ends. Worker processes do not share
    it, so a run whose process was killed can be resumed at once.
    """
    if sys.platform == "win32":  # nothing is locked there
        yield
        return
    try:
        file = path.open("wb")
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be written ({error.strerror})") from None
    with file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise InvalidInputError(complaint) from None
        except OSError:  # a file system without locks
            pass
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
