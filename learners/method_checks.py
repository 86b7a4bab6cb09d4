"""What every federated method promises: of ours in the tests, of plug-ins by `check-plugin`."""

from __future__ import annotations

import contextlib
import json
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from coalitions.registry import Checks
from learners.algorithm import ALGORITHMS, build_algorithm
from learners.runs.folder import RunFolder
from learners.runs.result import Result
from learners.runs.run import resume, run
from learners.server.federation import Round

SMALL = {"rounds": 3, "local_epochs": 1, "train_size": 20, "workers": 1}


def algorithm_checks(name: str) -> Checks:
    """Give what is checked of the method that is registered by this name."""
    yield "says what it is", lambda: _described(name)
    yield "1, 2 and 5 clients", lambda: _any_number(name)
    yield "the same seed gives the same run", lambda: _repeats(name)
    yield "only clients that take part send", lambda: _absent_are_silent(name)
    yield "a stopped run goes on as if it had not stopped", lambda: _resumes(name)
    yield "the folder of a run repeats it", lambda: _folder_repeats(name)


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
        wrong = "rounds are missing" if len(result.history) != 3 else None
        for line in result.history:
            wrong = wrong or _fault_of_line(line, clients)
        total = result.communication
        if total["up"] > total["bytes_up"] or total["down"] > total["bytes_down"]:
            wrong = wrong or "fewer bytes than parameters were sent"
        for client in range(clients):
            if not finite([each.detach() for each in result.model(client).parameters()]):
                wrong = wrong or f"the model of client {client} is not finite"
        if wrong is not None:
            return f"with {clients} clients, {wrong}"
    return None


def _fault_of_line(line: Mapping[str, Any], clients: int) -> str | None:
    """Return what is wrong with the metrics of a round."""
    if not finite(line):
        return "a metric is not finite"
    if len(line["per_client_test_accuracy"]) != clients:
        return "accuracies are missing"
    if not 0 <= line["worst_client_accuracy"] <= line["mean_test_accuracy"] <= 1:
        return "accuracies are not between 0 and 1"
    for way in ("up", "down"):
        sent = line[f"{way}_per_client"]
        if len(sent) != clients or sum(sent) != line[way]:
            return f"what clients sent {way} does not add up"
    if line["refused"]:
        return f"replies were refused: {line['refused']}"
    return None


def finite(value: object) -> bool:
    """Tell whether all numbers in a value are finite, however deep they lie."""
    if isinstance(value, Mapping):
        return all(map(finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(finite, value))
    if isinstance(value, Tensor):
        return bool(value.isfinite().all())
    return not isinstance(value, float) or math.isfinite(value)


def _partial(name: str, **more: Any) -> Result:  # noqa: ANN401 (settings of a run)
    return run(SMALL | {"algorithm": name, "clients": 5, "participation": 0.4} | more)


def _lines(result: Result) -> list[dict[str, Any]]:
    """Return a run's metrics without its times."""
    return [
        {key: value for key, value in line.items() if not key.endswith("seconds")}
        for line in result.history
    ]


def _repeats(name: str) -> str | None:
    first = _lines(_partial(name))
    if any(len(line["participants"]) != 2 for line in first):
        return "two of five clients take part in a round, and others did"
    if _lines(_partial(name)) != first:
        return "two runs with one seed differ: take all chance from the run's seed"
    if _lines(_partial(name, workers=2)) != first:
        return "with two workers the numbers are others"
    if _lines(_partial(name, seed=1)) == first:
        return "another seed changes nothing"
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
        if _lines(resumed) != _lines(whole) or resumed.communication != whole.communication:
            return "after a stop in round 2 the numbers are others: keep state in the federation"
        one, other = (
            {path.name: path.read_bytes() for path in Path(folder, each, "models").iterdir()}
            for each in ("whole", "stopped")
        )
        if one != other:
            return "after a stop in round 2 the models are others: keep state in the federation"
    return None


def _folder_repeats(name: str) -> str | None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "one")
        first = run(SMALL | {"algorithm": name, "clients": 2, "rounds": 2}, folder)
        config = RunFolder.open(folder).config()
        given = build_algorithm(name, {}).options()
        if config.options != {key: value for key, value in given.items() if value is not None}:
            return f"its config.toml has the options {config.options}, and it has {given}"
        if _lines(run(config)) != _lines(first):
            return "a run of its config.toml gives other numbers"
        odd: list[str] = []
        for line in (folder / "metrics.jsonl").read_text().splitlines():
            json.loads(line, parse_constant=odd.append)
        if odd:
            return f"metrics.jsonl has {odd[0]}, which is no JSON"
    return None
