"""Clients that send what they like: their replies are changed after their own gate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

import learners.server.local_engine
from learners.client.client import ClientAnswer, answer

Tamper = Callable[[dict], object]


def models(reply):
    """Return the names of the tensors in a reply."""
    return [name for name, value in reply.items() if isinstance(value, torch.Tensor)]


def arrays(reply):
    kinds = (torch.Tensor, np.ndarray)
    return [name for name, value in reply.items() if isinstance(value, kinds)]


def on_arrays(change):
    """Return what changes every array of a reply, and its numbers if it has no array."""

    def tamper(reply):
        names = arrays(reply) or [n for n, v in reply.items() if isinstance(v, (int, float))]
        return {**reply, **{name: change(reply[name]) for name in names}}

    return tamper


def wrong_shape(value):
    if isinstance(value, torch.Tensor):
        return torch.cat([value.reshape(-1), value.reshape(-1)[:1]])
    return np.append(np.ravel(value), 0)


def wrong_type(value):
    if isinstance(value, torch.Tensor):
        return value.to(torch.complex64)
    return np.asarray(value).astype(object)


def filled(number):
    def change(value):
        if isinstance(value, torch.Tensor):
            return torch.full_like(value, number)
        if isinstance(value, np.ndarray):
            return np.full(value.shape, number)
        return number

    return change


def missing(reply):
    name = next(iter(arrays(reply) or [name for name in reply if name != "train_loss"]))
    return {key: value for key, value in reply.items() if key != name}


def claiming(n):
    return lambda reply: {**reply, **{name: n for name in ("samples",) if name in reply}}


BEHAVIOURS: dict[str, Tamper] = {
    "a wrong shape": on_arrays(wrong_shape),
    "nothing of what was asked": lambda reply: {},
    "a missing entry": missing,
    "an entry too many": lambda reply: {**reply, "extra": torch.ones(3)},
    "text": on_arrays(lambda value: "[red]me\x1b[31m"),
    "another type": on_arrays(wrong_type),
    "not a number": on_arrays(filled(float("nan"))),
    "infinity": on_arrays(filled(float("inf"))),
    "3e38": on_arrays(filled(3e38)),
    "no table": lambda reply: [1, 2, 3],
}
"""What a server can tell from any reply to any task."""

CLAIMS = {"1e12 samples": 10**12, "no samples": 0, "minus one sample": -1, "half a sample": 0.5}


def hostile(monkeypatch, tampers: dict[int, Tamper], *, watching: bool = False) -> None:
    """Have clients answer through `tampers` in engines made from here on.

    With `watching`, also to the questions that only watch the run.
    """

    def tampered(site, task, client, *rest):
        given = answer(site, task, client, *rest)
        if client not in tampers or given.reply is None or (task.watches and not watching):
            return given
        return replace(given, reply=tampers[client](dict(given.reply)))

    monkeypatch.setattr(learners.server.local_engine, "answer", tampered)


def flipped(factor: float) -> Tamper:
    """Return what turns every model of a reply round, times a factor."""
    return lambda reply: {**reply, **{name: -factor * reply[name] for name in models(reply)}}


def absent(monkeypatch, clients: tuple[int, ...]) -> None:
    """Have clients not answer what a method asks them."""

    def silent(site, task, client, *rest):
        if client in clients and not task.watches:
            return ClientAnswer(None, reason="it is not there")
        return answer(site, task, client, *rest)

    monkeypatch.setattr(learners.server.local_engine, "answer", silent)
