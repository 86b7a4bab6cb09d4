"""What a disk can do to a write, said with the path: full, over quota, read-only, failing."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coalitions.errors import StorageError

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
        told = storage_error(error, path)
        if told is None:
            raise
        raise told from None
