"""Tasks that wait for each other where they train or test, so that this can be done at once.

A task is a plain function that asks something (`learners.client.client.Client.find_out`) somewhere
in its middle. To stop it there without rewriting it, every task has a thread, and the threads pass
a baton: exactly one of them, or the one that started them, runs at any time. So they may share a
workspace.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import torch

from learners.client.client import Question, Together
from learners.client.training import Fitted

T = TypeVar("T")

AtOnce = Callable[[Sequence[Question]], Sequence[Any]]
"""Carries out what several are asked; None for those that shall do it alone."""


def in_lockstep(jobs: Sequence[Callable[[Together], T]], at_once: AtOnce) -> list[T]:
    """Return what each job returns.

    A job is handed what its client is to ask. It runs until it asks or is done. When all of them
    do or are, `at_once` is told what those that wait asked, and they go on.

    Parameters
    ----------
    jobs
        What to do; the first to fail ends the meeting with its error.
    at_once
        Called by the thread that this was called from.
    """
    guests = [_Guest(job) for job in jobs]
    try:
        for guest in guests:
            guest.go_on()
        while waiting := [guest for guest in guests if guest.asks is not None]:
            given = iter(at_once([each for guest in waiting for each in guest.asks or ()]))
            answers = [[next(given) for _ in guest.asks or ()] for guest in waiting]
            for guest, some in zip(waiting, answers, strict=True):
                guest.go_on(some)
        return [guest.result for guest in guests]
    finally:
        for guest in guests:
            guest.leave()


class _Left(BaseException):
    """Ends a job that nobody waits for any more; no task may take it for an error of its own."""


class _Guest(Generic[T]):
    """One job and its thread; `asks` is what it waits for, None if it is done."""

    result: T

    def __init__(self, job: Callable[[Together], T]) -> None:
        self._job = job
        self._turn, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._given: Sequence[Any] = ()
        self._error: BaseException | None = None
        self._leaving = False
        self.asks: Sequence[Question] | None = None

    def go_on(self, given: Sequence[Any] = ()) -> None:
        """Let the job run until it asks or is done."""
        self.asks, self._given = None, given
        if self._thread.ident is None:
            self._thread.start()
        self._turn.release()
        self._back.acquire()
        if self._error is not None:
            raise self._error

    def leave(self) -> None:
        """End the job, at the latest where it asks next."""
        if self._thread.is_alive():
            self._leaving = True
            self._turn.release()
            self._thread.join()

    def _live(self) -> None:
        torch.set_num_threads(1)  # a setting of each thread
        self._turn.acquire()
        try:
            if not self._leaving:
                self.result = self._job(self._ask)
        except _Left:
            pass
        except BaseException as error:  # raised again in the thread that waits for this one
            self._error = error
        finally:
            self._back.release()

    def _ask(self, questions: Sequence[Question]) -> list[Any]:
        self.asks = questions
        self._back.release()
        self._turn.acquire()
        if self._leaving:
            raise _Left
        answers = [
            question.alone() if given is None else given
            for question, given in zip(questions, self._given, strict=True)
        ]
        if answers and isinstance(answers[-1], Fitted):
            # Others had the workspace meanwhile: leave it as training alone would have.
            workspace = questions[-1].client.workspace
            workspace.load(answers[-1].model)
            workspace.module.train()
        return answers
