"""Tasks that wait for each other where they train, so that the training can be done at once.

A task is a plain function that calls `learners.client.training.fit` somewhere in its middle. To
stop it there without rewriting it, every task has a thread, and the threads pass a baton: exactly
one of them, or the one that started them, runs at any time. So they may share a workspace.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import torch

from learners.client.training import Fit, Fitted, fit_alone

T = TypeVar("T")

Trainer = Callable[[Fit], Fitted]
"""Carries out what `fit` is asked."""

Together = Callable[[Sequence[Fit]], Sequence[Fitted | None]]
"""Carries out what several are asked; None for those that shall train alone."""


def meeting(jobs: Sequence[Callable[[Trainer], T]], train: Together) -> list[T]:
    """Return what each job returns.

    A job is handed the trainer that its client is to have. It runs until it trains or is done.
    When all of them do or are, `train` is told what those that train are asked, and they go on.

    Parameters
    ----------
    jobs
        What to do; the first to fail ends the meeting with its error.
    train
        Called by the thread that this was called from.
    """
    guests = [_Guest(job) for job in jobs]
    try:
        for guest in guests:
            guest.go_on()
        while waiting := [(guest, guest.asked) for guest in guests if guest.asked is not None]:
            given = train([asked for _, asked in waiting])
            for (guest, _), each in zip(waiting, given, strict=True):
                guest.go_on(each)
        return [guest.result for guest in guests]
    finally:
        for guest in guests:
            guest.leave()


class _Left(BaseException):
    """Ends a job that nobody waits for any more; no task may take it for an error of its own."""


class _Guest(Generic[T]):
    """One job and its thread; `asked` is what it is to train, None if it is done."""

    result: T

    def __init__(self, job: Callable[[Trainer], T]) -> None:
        self._job = job
        self._turn, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._given: Fitted | None = None
        self._error: BaseException | None = None
        self._leaving = False
        self.asked: Fit | None = None

    def go_on(self, given: Fitted | None = None) -> None:
        """Let the job run until it trains or is done."""
        self.asked, self._given = None, given
        if self._thread.ident is None:
            self._thread.start()
        self._turn.release()
        self._back.acquire()
        if self._error is not None:
            raise self._error

    def leave(self) -> None:
        """End the job, at the latest where it trains next."""
        if self._thread.is_alive():
            self._leaving = True
            self._turn.release()
            self._thread.join()

    def _live(self) -> None:
        torch.set_num_threads(1)  # a setting of each thread
        self._turn.acquire()
        try:
            if not self._leaving:
                self.result = self._job(self._train)
        except _Left:
            pass
        except BaseException as error:  # raised again in the thread that waits for this one
            self._error = error
        finally:
            self._back.release()

    def _train(self, asked: Fit) -> Fitted:
        self.asked = asked
        self._back.release()
        self._turn.acquire()
        if self._leaving:
            raise _Left
        if self._given is None:
            return fit_alone(asked)
        # Others had the workspace meanwhile: leave it as training alone would have.
        workspace = asked.client.workspace
        workspace.load(self._given.model)
        workspace.module.train()
        return self._given
