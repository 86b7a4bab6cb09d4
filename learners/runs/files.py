"""Files that are complete when they appear, also after a power cut; checksums; locks."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from coalitions.errors import DamagedFileError, InvalidInputError, StorageError
from coalitions.files.graphs import atomic_write
from coalitions.files.storage import storage_error

if sys.platform != "win32":
    import fcntl


SUMS = "SHA256SUMS"
"""What `sha256sum -c` reads, too: the checksums of a finished run's files."""

_TEMPORARY = re.compile(
    r"\.(config\.toml|(clients|environment|result)\.json|round-\d+\.(json|safetensors)"
    r"|client-\d+\.safetensors|.+\.npy|SHA256SUMS)\.[a-z0-9_]{8}"
)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that takes its name only when all of it is on disk."""
    require_room(path, len(content))
    with atomic_write(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def require_room(path: Path, size: int) -> None:
    """Refuse to begin a file, or to fill a folder, that the disk has no room for."""
    try:
        disk = shutil.disk_usage(path if path.is_dir() else path.parent)
    except OSError:  # a file system that does not tell; the write will
        return
    free = disk.total - disk.used  # what is kept for root counts: never refuse what would fit
    if disk.total and size > free:
        raise StorageError(
            f"{path} cannot be written: it needs {_spoken_size(size)}, and the disk has"
            f" {_spoken_size(free)} left; make room"
        )


def _spoken_size(size: int) -> str:
    return f"{size:,} bytes" if size < 10_000 else f"{size / 1e6:,.2f} MB"


def is_temporary(path: Path) -> bool:
    """Tell whether a file is what a killed process leaves of one that it was about to write."""
    return path.is_file() and _TEMPORARY.fullmatch(path.name) is not None


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
        refusal = InvalidInputError(f"{path}: cannot be written ({error.strerror})")
        raise storage_error(error, path) or refusal from None
    with file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise InvalidInputError(complaint) from None
        except OSError:  # a file system without locks
            pass
        else:
            # Whoever held it may have let go, and removed it, between our opening and locking.
            if not path.exists() or not os.path.samestat(os.fstat(file.fileno()), path.stat()):
                raise InvalidInputError(complaint)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
