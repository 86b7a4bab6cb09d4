"""Linear algebra whose rounding does not depend on the number of threads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_LOCK = RLock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS and LAPACK compute with one thread, inside a block or a decorated function.

    A matrix product that is shared among threads adds its terms in another order for each number
    of threads. The number belongs to the whole process: of several Python threads only one is
    inside at a time, so that none gives the number back while another counts on it. Entering
    and leaving takes about 40 µs.

    Keep a user's game outside: it may want all the threads there are. Import ``scipy.linalg``
    before, if it is used inside: it brings a BLAS of its own.
    """
    with _LOCK, _blas("scipy.linalg" in sys.modules).limit(limits=1):
        yield


@cache
def _blas(with_scipy: bool) -> ThreadpoolController:
    """Return the BLAS libraries that are loaded by now, which take milliseconds to find."""
    del with_scipy  # it tells the two answers apart in the cache
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
