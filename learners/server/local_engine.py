"""Clients on this machine: in this process, or in worker processes with one thread each."""

from __future__ import annotations

import mmap
import multiprocessing
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from coalitions.errors import CoalitionError, InvalidInputError
from learners.client.client import ClientAnswer, Question, Site, answer
from learners.client.lockstep import in_lockstep
from learners.client.stacked_testing import pays
from learners.client.stacked_training import Stacking
from learners.server.engine import ENGINES, Engine, Replies
from learners.task import TASKS, Message, Task

# ----------------------------------------------------------------------------------------
# Memory that two processes share, to pass tensors without copying them through a pipe.

_ALIGNMENT = 64
"""Bytes: a cache line, and what torch aligns its own tensors to."""


@dataclass(frozen=True)
class _Slot:
    """Where a tensor lies in the mailbox."""

    offset: int
    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True)
class _Inline:
    """A tensor the mailbox had no room for; it goes through the pipe."""

    array: np.ndarray[Any, Any]


class Mailbox:
    """One direction between two processes; it holds one parcel at a time.

    Made before the fork, as anonymous shared memory: it needs no file, /dev/shm's limit does not
    apply, pages cost nothing until they are used, and the system takes them back however the
    processes end.

    Parameters
    ----------
    capacity
        Bytes; what does not fit goes through the pipe, slower but the same.
    """

    def __init__(self, capacity: int) -> None:
        self._bytes = torch.frombuffer(mmap.mmap(-1, capacity), dtype=torch.uint8)

    def put(self, *parcels: Mapping[str, Any] | None) -> tuple[dict[str, Any] | None, ...]:
        """Copy the parcels' tensors in; return what must go through the pipe instead."""
        free = 0
        packed: list[dict[str, Any] | None] = []
        for parcel in parcels:
            if parcel is None:
                packed.append(None)
                continue
            entries: dict[str, Any] = {}
            for name, value in parcel.items():
                if isinstance(value, Tensor):
                    slot = _Slot(free, tuple(value.shape), value.dtype)
                    if free + value.nbytes <= len(self._bytes):
                        self._view(slot).copy_(value.detach())
                        free += -(-value.nbytes // _ALIGNMENT) * _ALIGNMENT
                        value = slot
                    else:
                        value = _Inline(value.detach().numpy())
                entries[name] = value
            packed.append(entries)
        return tuple(packed)

    def take(self, packed: Mapping[str, Any] | None, *, copy: bool) -> dict[str, Any] | None:
        """Return a parcel; without `copy`, its tensors are good until the next `put`."""
        if packed is None:
            return None
        parcel = {}
        for name, value in packed.items():
            if isinstance(value, _Slot):
                view = self._view(value)
                parcel[name] = view.clone() if copy else view
            elif isinstance(value, _Inline):
                parcel[name] = torch.from_numpy(value.array)
            else:
                parcel[name] = value
        return parcel

    def _view(self, slot: _Slot) -> Tensor:
        n_bytes = slot.dtype.itemsize
        for length in slot.shape:
            n_bytes *= length
        return self._bytes[slot.offset : slot.offset + n_bytes].view(slot.dtype).view(slot.shape)


# ----------------------------------------------------------------------------------------
# Clients on this machine: in this process, or in worker processes with one thread each.
#
# One thread per process is the fastest arrangement here: training a small network on small
# batches leaves threads inside an operation nothing to share. Numbers are the same for any number
# of workers, because a client's work depends on its message, its memory and its seeds alone, and
# every process computes it with one thread.

_MAILBOX_MODELS = 32
"""Models that fit in a mailbox, up to a gigabyte of them: what a client is sent in one message."""

_MAILBOX_LEAST, _MAILBOX_MOST = 1 << 26, 1 << 30
"""Bytes of a mailbox; pages that are never used cost nothing."""

_MOST_AT_ONCE = 256
"""Clients that are in the middle of a task at the same time, where they train stacked."""


@ENGINES.register("local")
def _local(site: Site, folder: Path | None) -> Engine:
    """Return the engine of a run; the clients' memories are part of its checkpoints."""
    return local_engine(site, site.config.workers)


def local_engine(site: Site, workers: int) -> Engine:
    """Return an engine for the clients of `site`.

    Parameters
    ----------
    site
        The clients.
    workers
        Worker processes; 1 computes in this process, 0 takes as many as there are cores.
    """
    workers = n_workers(site, workers)
    if compute(site) == "stacked":
        return stacked_engine(site, Stacking(tests=pays(site.workspace.device)))
    return _InProcess(site) if workers == 1 else _Workers(site, workers)


def stacked_engine(site: Site, stacking: Stacking) -> Engine:
    """Return an engine for clients that train at once."""
    return _Stacked(site, stacking)


def compute(site: Site) -> Literal["sequential", "stacked"]:
    """Return how the clients of `site` train: one after the other, or stacked."""
    chosen, here = site.config.compute, site.config.engine == "local"
    if chosen == "auto":
        return "stacked" if here and site.workspace.device.type == "cuda" else "sequential"
    return chosen


def n_workers(site: Site, workers: int) -> int:
    """Return how many processes the clients of `site` are computed in, 1 if it is this one.

    Parameters
    ----------
    site, workers
        See `local_engine`.
    """
    device = site.workspace.device
    can_fork = sys.platform == "linux" and device.type == "cpu"
    if compute(site) == "stacked":
        if workers > 1:
            raise InvalidInputError(
                f"compute stacked trains all clients in one process, not in {workers}; choose"
                " --workers 1, or --compute sequential"
            )
        return 1
    if workers > 1 and not can_fork:
        raise InvalidInputError(
            f"worker processes are for Linux and the device cpu; choose --workers 1 on {device}"
            f" and {sys.platform}"
        )
    if workers == 0:
        cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
        workers = min(cores, site.config.participants) if can_fork else 1
    return workers


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread, then with as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Local:
    """The clients' memories, which both arrangements keep in this process."""

    def __init__(self) -> None:
        self._memories: dict[int, dict[str, Any]] = {}

    def memories(self) -> dict[int, dict[str, Any]]:
        return self._memories

    def restore(self, memories: Mapping[int, Mapping[str, Any]]) -> None:
        self._memories = {client: dict(memory) for client, memory in memories.items()}

    def _memory(self, client: int) -> dict[str, Any]:
        return self._memories.get(client, {})

    def _collected(self, answers: Mapping[int, ClientAnswer]) -> Replies:
        """Keep the memories, and return the replies in the order of the clients' numbers."""
        replies, refused = {}, {}
        for client in sorted(answers):
            given = answers[client]
            if given.reply is None:
                refused[client] = given.reason or "no reason was given"
                continue
            replies[client] = given.reply
            if given.memory is not None:
                self._memories[client] = given.memory
        return Replies(replies, refused)


class _InProcess(_Local):
    """Clients one after the other, in this process."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self._site = site

    def ask(self, task: Task, messages: Mapping[int, Message], round: int) -> Replies:
        with one_thread():
            answers = {
                client: answer(self._site, task, client, round, message, self._memory(client))
                for client, message in messages.items()
            }
        return self._collected(answers)

    def close(self) -> None:
        pass


class _Stacked(_Local):
    """Clients side by side in this process: those that train alike do so as one stack."""

    def __init__(self, site: Site, stacking: Stacking) -> None:
        super().__init__()
        self._site = site
        self._stacking = stacking

    def ask(self, task: Task, messages: Mapping[int, Message], round: int) -> Replies:
        self._stacking.alone.clear()
        answers: dict[int, ClientAnswer] = {}
        everyone, helped = list(messages), False

        def at_once(asked: Sequence[Question]) -> Sequence[Any]:
            nonlocal helped
            helped = True
            return self._stacking.carry_out(asked)

        with one_thread():
            for begin in range(0, len(everyone), _MOST_AT_ONCE):
                some = everyone[begin : begin + _MOST_AT_ONCE]
                jobs = [
                    partial(
                        answer, self._site, task, client, round, messages[client],
                        self._memory(client),
                    )
                    for client in some
                ]  # fmt: skip
                answers |= zip(some, in_lockstep(jobs, at_once), strict=True)
        alone = dict(self._stacking.alone)
        if not helped and not task.watches:
            alone[f"{task.name}: only fit, tests and gradients of models are stacked"] = len(
                everyone
            )
        return replace(self._collected(answers), not_stacked=alone)

    def close(self) -> None:
        pass


def start_child(process: multiprocessing.process.BaseProcess) -> None:
    """Start a process that computes with one thread.

    Forking a process that has used several threads is safe here for the same reason it is in
    torch's own data loader: the child starts with one thread and touches no lock of another. So
    the warning that Python 3.12 gives of it is not shown.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()


def begin_child(inherited: Iterable[Connection]) -> None:
    """Make this process, which was started by `start_child`, one that ends with its parent.

    Parameters
    ----------
    inherited
        Ends of pipes that forking copied. If they stayed open, the pipes would outlive the parent,
        and the child would, too.
    """
    # Ctrl-C reaches every process of the terminal; only the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for each in inherited:
        each.close()
    # A forked process has none of its parent's threads; waiting for them would never end.
    torch.set_num_threads(1)


class _Worker:
    """One worker process, seen from this one."""

    def __init__(self, capacity: int) -> None:
        self.pipe, self.far_end = multiprocessing.Pipe()
        self.outbox, self.inbox = Mailbox(capacity), Mailbox(capacity)
        self.process: multiprocessing.process.BaseProcess | None = None

    def send(self, task: Task, client: int, round: int, message: Message, memory: Message) -> None:
        """Hand a client's task over."""
        packed = self.outbox.put(message, memory)
        self._checked(lambda: self.pipe.send((task.name, client, round, *packed)))

    def receive(self) -> tuple[int, ClientAnswer]:
        """Return the client that is done, and its answer."""
        done = self._checked(self.pipe.recv)
        if isinstance(done, BaseException):
            raise done
        client, reply, memory, reason = done
        return client, ClientAnswer(
            self.inbox.take(reply, copy=True), self.inbox.take(memory, copy=True), reason
        )

    def _checked(self, action: Any) -> Any:  # noqa: ANN401
        try:
            return action()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            assert self.process is not None
            self.process.join(1)
            raise CoalitionError(
                f"a worker process ended without an answer (exit code {self.process.exitcode});"
                " if memory ran out, fewer --workers need less"
            ) from None


class _Workers(_Local):
    """Clients in worker processes, each taking the next one when it is free.

    Workers are forked, so they have the data, the network and every registered task without a
    copy, also those defined in a notebook.
    """

    def __init__(self, site: Site, workers: int) -> None:
        super().__init__()
        wanted = min(_MAILBOX_MODELS * site.initial.nbytes, _MAILBOX_MOST)
        capacity = max(_MAILBOX_LEAST, wanted)
        self._workers = [_Worker(capacity) for _ in range(workers)]
        fork = multiprocessing.get_context("fork")
        for worker in self._workers:
            worker.process = fork.Process(
                target=_serve, args=(site, worker, self._workers), daemon=True
            )
            start_child(worker.process)
        for worker in self._workers:
            worker.far_end.close()

    def ask(self, task: Task, messages: Mapping[int, Message], round: int) -> Replies:
        waiting = iter(messages.items())
        free = list(self._workers)
        busy: dict[Any, _Worker] = {}
        answers: dict[int, ClientAnswer] = {}
        while True:
            while free and (following := next(waiting, None)) is not None:
                client, message = following
                worker = free.pop()
                worker.send(task, client, round, message, self._memory(client))
                busy[worker.pipe] = worker
            if not busy:
                return self._collected(answers)
            for pipe in wait(list(busy)):
                worker = busy.pop(pipe)
                client, given = worker.receive()
                answers[client] = given
                free.append(worker)

    def close(self) -> None:
        for worker in self._workers:
            worker.pipe.close()
        for worker in self._workers:
            assert worker.process is not None
            worker.process.join(0.2)
            if worker.process.is_alive():  # in the middle of a task that nobody waits for
                worker.process.kill()
                worker.process.join()


def _serve(site: Site, worker: _Worker, everyone: list[_Worker]) -> None:
    """Do what comes through the pipe until it closes: the whole life of a worker process."""
    others = [each.far_end for each in everyone if each is not worker]
    begin_child([*others, *(each.pipe for each in everyone)])
    pipe: Connection = worker.far_end
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the parent is gone
        while True:
            pipe.send(_served(site, worker, *pipe.recv()))


def _served(
    site: Site,
    worker: _Worker,
    name: str,
    client: int,
    round: int,
    packed_message: dict[str, Any],
    packed_memory: dict[str, Any],
) -> tuple[int, Any, Any, str | None] | CoalitionError:
    """Return what goes back through the pipe for one task: an answer, or what went wrong."""
    try:
        message = worker.outbox.take(packed_message, copy=False) or {}
        memory = worker.outbox.take(packed_memory, copy=False) or {}
        given = answer(site, TASKS[name], client, round, message, memory)
    except CoalitionError as error:
        return error
    except Exception:
        text = f"task {name!r} of client {client} failed:\n{traceback.format_exc()}"
        return CoalitionError(text)
    reply, kept = worker.inbox.put(given.reply, given.memory)
    return client, reply, kept, given.reason
