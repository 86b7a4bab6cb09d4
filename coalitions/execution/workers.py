"""parallel(game): one game, evaluated by several processes or by any executor."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import warnings
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from threading import Thread
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from coalitions.checks import GameLike, as_game, whole_number
from coalitions.errors import InvalidInputError, NoSolutionError, with_keywords
from coalitions.game import (
    BoolMatrix,
    FloatVector,
    Game,
    as_coalitions,
    evaluate,
    labels_of,
)


@with_keywords()
def parallel(
    game: GameLike, workers: int | Executor = 2, *, chunk_size: int = 1, threads: int | None = 1
) -> ParallelGame:
    """Return the game with its coalitions shared among workers; use it in a ``with`` block.

    The coalitions of a call are cut into chunks of a fixed size, and the values come back in
    order: the numbers are the same for any number of workers.

    Parameters
    ----------
    game
        Any game whose value of a coalition depends on that coalition alone.
    workers
        How many processes to start, or an executor of `concurrent.futures` that is ready (joblib
        and Dask have one; for Ray see docs/problems.md). It is not shut down here.
    chunk_size
        How many coalitions a worker is asked for at once. One is right if they take long; a game
        that is quick on many rows wants more.
    threads
        Threads of BLAS and OpenMP in each of our processes, so that they do not get into each
        other's way; None for as many as there are. With an executor that is its own matter.

    Notes
    -----
    On Linux the processes are forked, so any game will do; elsewhere, and for an executor, the game
    must be one that `pickle` takes, and the program needs ``if __name__ == "__main__":``. Ctrl-C
    ends the processes at once. To keep what is evaluated, store inside:
    ``parallel(stored(game, folder), workers=4)``.

    Examples
    --------
    >>> from coalitions import AirportGame, banzhaf
    >>> with parallel(AirportGame([8, 11, 13, 18]), workers=2) as game:
    ...     banzhaf(game).values
    array([1.  , 1.75, 2.75, 7.75])
    """
    return ParallelGame(game, workers, chunk_size, threads)


class ParallelGame:
    """A game that several workers evaluate; see `parallel`."""

    def __init__(
        self, game: GameLike, workers: int | Executor, chunk_size: int, threads: int | None
    ) -> None:
        game = as_game(game)
        if not callable(getattr(workers, "submit", None)):
            workers = whole_number(workers, "the number of workers", 1)
        self.game = game
        self.workers = workers
        self.chunk_size = whole_number(chunk_size, "the size of a chunk", 1)
        self.threads = None if threads is None else whole_number(threads, "threads", 1)
        self._pool: ProcessPoolExecutor | None = None

    @property
    def n_players(self) -> int:
        """Number of players."""
        return int(self.game.n_players)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the players: the game's own, or numbers."""
        return labels_of(self.game)

    def __call__(self, coalitions: ArrayLike) -> FloatVector:
        """Return the values of the coalitions, one for each row, in order."""
        rows = as_coalitions(coalitions, self.n_players)
        futures: list[Future[FloatVector]] = []
        try:
            for start in range(0, len(rows), self.chunk_size):
                futures.append(self._submit(rows[start : start + self.chunk_size]))
            parts = [future.result() for future in futures]
        except BaseException as error:
            if not isinstance(error, Exception) or isinstance(error, BrokenProcessPool):
                self._kill()  # Ctrl-C: nobody waits for a chunk that may take an hour
            # Only now: a pool that breaks stumbles over futures that were cancelled before.
            for future in futures:
                future.cancel()
            if isinstance(error, BrokenProcessPool):
                raise NoSolutionError(
                    "a worker ended before it had answered; perhaps the memory was used up:"
                    " try fewer workers"
                ) from None
            if _is_of_pickle(error):
                raise InvalidInputError(
                    f"the game cannot be sent to another process ({error}); make it of functions"
                    " and classes that stand at the top of a module"
                ) from None
            raise
        return np.concatenate([np.zeros(0), *parts])

    def _submit(self, rows: BoolMatrix) -> Future[FloatVector]:
        if not isinstance(self.workers, int):
            return self.workers.submit(evaluate, self.game, rows)
        if self._pool is None:
            method = "fork" if sys.platform == "linux" else None
            self._pool = ProcessPoolExecutor(
                self.workers,
                mp_context=multiprocessing.get_context(method),
                initializer=_begin,
                initargs=(self.game, self.threads),
            )
            with warnings.catch_warnings():
                # Python 3.12 warns of forking a process with threads. The first chunk starts the
                # workers, which touch no lock of another thread.
                warnings.simplefilter("ignore", DeprecationWarning)
                return self._pool.submit(_evaluated, rows)
        return self._pool.submit(_evaluated, rows)

    def around(self, game: Game) -> ParallelGame:
        """Return another game with as many workers, who are started when they are needed."""
        return ParallelGame(game, self.workers, self.chunk_size, self.threads)

    def close(self) -> None:
        """End the processes that were started here; a later call starts new ones."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(cancel_futures=True)

    def _kill(self) -> None:
        """End them in the middle of whatever they do."""
        if self._pool is None:
            return
        processes: dict[int, Any] = getattr(self._pool, "_processes", None) or {}
        for process in list(processes.values()):
            process.kill()
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None}

    def __repr__(self) -> str:
        return f"parallel({self.game!r}, workers={self.workers!r})"


def _is_of_pickle(error: BaseException) -> bool:
    """Tell whether something could not be sent; pickle has no class of its own for most of that."""
    spoken = isinstance(error, TypeError | AttributeError) and "pickle" in str(error)
    return isinstance(error, pickle.PicklingError) or spoken


_game: Game | None = None
"""In a worker: the game, sent once and not with every chunk."""


def _begin(game: Game, threads: int | None) -> None:
    """Prepare a worker."""
    global _game
    _game = game
    # Ctrl-C goes to all processes of a terminal; the one that asked decides what to do about it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    if threads is not None:
        from threadpoolctl import threadpool_limits

        threadpool_limits(threads)


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, however it went."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        with suppress(OSError):
            parent.join()
        os._exit(1)


def _evaluated(rows: BoolMatrix) -> FloatVector:
    if _game is None:
        raise NoSolutionError("this worker has no game")
    return evaluate(_game, rows)
