"""Files that are complete when they appear, also after a power cut; locks; full disks."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from coalitions.errors import InvalidInputError, StorageError
from coalitions.files.opening import json_text

# ----------------------------------------------------------------------------------------
# Errors of the disk, with the path: full, over quota, read-only, failing

_TROUBLE = {
    errno.ENOSPC: "the disk is full; make room",
    errno.EDQUOT: "the disk quota is used up; make room",
    errno.EFBIG: "files of this size are not allowed here; raise the limit (ulimit -f)",
    errno.EROFS: "the disk is read-only; make it writable",
    errno.EIO: "the disk reports an error; check it",
}


def storage_error(error: OSError, path: str | Path) -> StorageError | None:
    """Return what to say if a write to `path` failed for the disk's sake; None if it did not."""
    trouble = _TROUBLE.get(error.errno or 0)
    return None if trouble is None else StorageError(f"{path} cannot be written: {trouble}")


@contextmanager
def disk_trouble_named(path: str | Path) -> Iterator[None]:
    """Turn what the disk does to a write meanwhile into a sentence with the path."""
    try:
        yield
    except OSError as error:
        clearer = storage_error(error, path)
        if clearer is None:
            raise
        raise clearer from None


# ----------------------------------------------------------------------------------------
# Files that are written whole, and locks for their writers

if sys.platform != "win32":
    import fcntl


@contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[bytes]]:
    """Give a file to write that takes its name only when it is complete."""
    import tempfile  # slow to import, and `--help` writes nothing

    target = Path(path)
    if target.exists() and not target.is_file() and not target.is_dir():
        # A device or a pipe: there is nothing to replace, and as root we would replace /dev/null.
        with disk_trouble_named(path), target.open("wb") as file:
            yield file
        return
    try:
        if target.is_dir():
            raise InvalidInputError(f"{path}: is a folder; give the name of a file")
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        refusal = InvalidInputError(f"{path}: cannot be written ({error.strerror})")
        raise storage_error(error, path) or refusal from None
    except ValueError:
        if "\0" not in str(path):
            raise
        raise InvalidInputError(f"{str(path)!r}: is no name of a file") from None
    try:
        with disk_trouble_named(path):
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())  # else a power cut may leave the name without the content
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(name, 0o666 & ~umask)  # mkstemp makes the file private
            os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file that takes its name only when all of it is on disk."""
    require_room(Path(path), len(content))
    with atomic_write(path) as file:
        file.write(content)


def write_json(path: str | Path, document: Any, *, indent: int | None = 2) -> None:  # noqa: ANN401 (any JSON value)
    """Write a document as `json_text` puts it, with a line end."""
    write_whole(path, f"{json_text(document, indent=indent)}\n".encode())


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
            # Another process may have released and removed it between our opening and locking.
            if not path.exists() or not os.path.samestat(os.fstat(file.fileno()), path.stat()):
                raise InvalidInputError(complaint)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
