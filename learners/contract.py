"""What every federated method promises, as checks that a plug-in can be held against."""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from learners.algorithm import ALGORITHMS
from learners.runs.run import Result, resume, run
from learners.server.federation import Round

SMALL = {"rounds": 3, "local_epochs": 1, "train_size": 20, "workers": 1}


def algorithm_checks(name: str) -> Iterator[tuple[str, Callable[[], str | None]]]:
    """Give what is checked of a registered method, each with a function that finds the fault.

    Parameters
    ----------
    name
        The name it is registered by.

    Returns
    -------
    Pairs of a promise and a function, which returns None if it is kept, and a sentence if not.
    """
    yield "says what it is", lambda: _described(name)
    yield "1, 2 and 5 clients", lambda: _any_number(name)
    yield "the same seed gives the same run", lambda: _repeats(name)
    yield "only clients that take part send", lambda: _absent_are_silent(name)
    yield "a stopped run goes on as if it had not stopped", lambda: _resumes(name)


class _StopError(Exception):
    """Ends a run after a round."""


def _described(name: str) -> str | None:
    document = (ALGORITHMS[name].__doc__ or "").strip()
    if not document or document.startswith(f"{ALGORITHMS[name].__name__}("):
        return "it has no docstring, which `coalitions algorithms` shows"
    return None


def _any_number(name: str) -> str | None:
    for clients in (1, 2, 5):
        result = run(SMALL | {"algorithm": name, "clients": clients, "partition": "iid"})
        last = result.history[-1]
        if len(result.history) != 3 or len(last["per_client_test_accuracy"]) != clients:
            return f"with {clients} clients, rounds or accuracies are missing"
        if not 0 <= last["worst_client_accuracy"] <= last["mean_test_accuracy"] <= 1:
            return f"with {clients} clients, accuracies are not between 0 and 1"
        if any(line["refused"] for line in result.history):
            return f"with {clients} clients, replies were refused: {last['refused']}"
        if not all(math.isfinite(value) for value in last.values() if isinstance(value, float)):
            return f"with {clients} clients, a metric is not finite"
    return None


def _partial(name: str, **more: Any) -> Result:  # noqa: ANN401 (settings of a run)
    return run(SMALL | {"algorithm": name, "clients": 5, "participation": 0.4} | more)


def _lines(result: Result) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if "seconds" not in k} for line in result.history]


def _repeats(name: str) -> str | None:
    first = _lines(_partial(name))
    if _lines(_partial(name)) != first:
        return "two runs with one seed differ: take all chance from the run's seed"
    if _lines(_partial(name, workers=2)) != first:
        return "with two workers the numbers are others"
    return None


def _absent_are_silent(name: str) -> str | None:
    for line in _partial(name).history:
        absent = set(range(5)) - set(line["participants"])
        loud = sorted(client for client in absent if line["up_per_client"][client])
        if loud:
            return f"client {loud[0]} was not asked, and sent something"
    return None


def _resumes(name: str) -> str | None:
    settings = SMALL | {"algorithm": name, "clients": 4, "participation": 0.6}

    def stop(round: Round) -> None:
        if round.number == 2:
            raise _StopError

    with tempfile.TemporaryDirectory() as folder:
        whole = run(settings, Path(folder, "whole"))
        with contextlib.suppress(_StopError):
            run(settings, Path(folder, "stopped"), on_round=stop)
        resumed = resume(Path(folder, "stopped"))
        if _lines(resumed) != _lines(whole):
            return "after a stop in round 2 the numbers are others: keep state in the federation"
    return None
