"""A server's side: a Flower server app that runs one of our methods with the nodes of its grid."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from coalitions.errors import InvalidInputError
from coalitions.extras import needed
from coalitions.files.opening import json_text
from coalitions.files.writing import disk_trouble_named
from learners.client.client import Site
from learners.flower.grid_engine import GridEngine, Identity, Patience
from learners.flower.questions import GridCarrier
from learners.runs.prepare import checked_for_nodes
from learners.runs.result import Result
from learners.runs.run import begin_or_resume
from learners.server.client_failures import left_out
from learners.server.engine import Engine
from learners.server.federation import Round
from learners.settings.config import RunConfig

if TYPE_CHECKING:
    from flwr.app import Context
    from flwr.serverapp import Grid, ServerApp

_USUAL = {"num_server_rounds": "rounds", "learning_rate": "lr", "fraction_train": "participation"}
"""What Flower's own templates call some of our settings."""

_NOT_THEIRS = ("options", "plugins", "engine", "device", "workers", "data_dir", "dataset", "model")
"""Settings that a project's run-config does not decide."""

_STEADY = 3.0
"""Seconds for which no more nodes come; then all are taken to be there."""


def server_app(
    algorithm: str | None = None,
    model: Callable[[], nn.Module] | None = None,
    *,
    clients: int | None = None,
    out: str | Path | None = None,
    patience: Patience | None = None,
    on_result: Callable[[Result], None] | None = None,
    **settings: Any,  # noqa: ANN401 (any setting)
) -> ServerApp:
    """Return a Flower server app that runs one of our methods.

    Settings are taken from the arguments, then from the project's run-config, under our names or
    those of Flower's templates (`num-server-rounds`, `learning-rate`, `fraction-train`); the
    method's own options from `options`.

    Parameters
    ----------
    algorithm
        The method; `algorithm` of the run-config if not given.
    model
        Returns the network; the one that the client app is given.
    clients
        How many nodes take part, numbered from 0; `clients` of the run-config if not given, else
        those that are there when the run begins.
    out
        The run's folder; a run that stopped there is gone on with. `out` of the run-config if not
        given; without it, nothing is kept.
    patience
        How long to wait for nodes.
    on_result
        Called with what came out.
    **settings
        See `learners.RunConfig`.
    """
    needed("flwr")
    if model is None:
        raise InvalidInputError("server_app needs the model that client_app has: model=Net")
    from flwr.serverapp import ServerApp

    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        run_config = {key.replace("-", "_"): value for key, value in context.run_config.items()}
        with _audited(run_config, context, grid) as record:
            given = _settings(run_config) | settings
            given["algorithm"] = algorithm or given.get("algorithm", "fedavg")
            carrier = GridCarrier(grid)
            wait = patience or _patience(run_config)
            n_clients = clients or given.get("clients") or _those_there(carrier, wait)
            config = RunConfig.of(given | {"clients": n_clients})
            prepared = checked_for_nodes(config, model).prepared()
            place = out if out is not None else run_config.get("out")
            record |= {"algorithm": given["algorithm"], "clients": n_clients}

            def engine(site: Site, folder: Path | None) -> Engine:
                return GridEngine(carrier, site, Identity.of(folder), wait)

            def tell(round: Round) -> None:
                record["nodes"] = sorted({*record["nodes"], *map(str, carrier.nodes())})
                record["rounds"] = round.number
                _tell(round)

            result = begin_or_resume(prepared, Path(str(place)) if place else None, engine, tell)
            record["left_out"] = left_out(result.history)
        if on_result is not None:
            on_result(result)

    return app


@contextmanager
def _audited(
    run_config: Mapping[str, Any], context: Context, grid: Grid
) -> Iterator[dict[str, Any]]:
    """Yield the audit's record of a run; append it, as a line of JSON, to the file named `audit`.

    It is written however the run ends. Without `audit` in the run-config nothing is written.
    """
    run = grid.run
    record: dict[str, Any] = {
        "began": _now(),
        "run": str(context.run_id),
        "started_by": run_config.get("started_by", ""),
        "app": run.fab_hash if run else "",
        "nodes": [],
        "rounds": 0,
        "result": "finished",
    }
    try:
        yield record
    except BaseException as error:
        record["result"] = f"failed: {type(error).__name__}: {error}".removesuffix(": ")
        raise
    finally:
        if run_config.get("audit"):
            path = Path(str(run_config["audit"]))
            line = json_text(record | {"ended": _now()}, indent=None)
            with disk_trouble_named(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("a") as file:
                    file.write(line + "\n")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _tell(round: Round) -> None:
    """Say in Flower's log, which `flwr run --stream` shows, how a round ended."""
    metrics = round.metrics
    accuracy = metrics.get("mean_test_accuracy")
    words = "" if accuracy is None else f", mean test accuracy {accuracy:.4f}"
    for client, reason in metrics["refused"].items():
        words += f"; left out: client {client} ({reason})"
    logging.getLogger("flwr").info("round %d%s", round.number, words)


def _settings(run_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a run-config has; what else it has is the project's own."""
    ours = {each.name for each in fields(RunConfig)} - set(_NOT_THEIRS)
    named = {_USUAL.get(key, key): value for key, value in run_config.items()}
    values = {key: value for key, value in named.items() if key in ours}
    # Flower flattens tables: options of the method are `options.NAME`.
    options = {
        key.removeprefix("options."): value
        for key, value in run_config.items()
        if key.startswith("options.")
    }
    return values | ({"options": options} if options else {})


def _patience(run_config: Mapping[str, Any]) -> Patience:
    """Return how long to wait, by the run-config: `wait-for-clients`, `wait-for-answer`."""
    waits = {"start": "wait_for_clients", "answer": "wait_for_answer"}
    given = {name: run_config[key] for name, key in waits.items() if key in run_config}
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
            key = waits[name].replace("_", "-")
            raise InvalidInputError(f"{key} is {value!r}; it must be a number of seconds above 0")
    return Patience(**given)


def _those_there(carrier: GridCarrier, patience: Patience) -> int:
    """Return how many nodes there are once no more come."""
    began = changed = time.monotonic()
    n = 0
    while time.monotonic() < began + patience.start:
        now = len(carrier.nodes())
        if now != n:
            n, changed = now, time.monotonic()
        if n and time.monotonic() > changed + _STEADY:
            break
        time.sleep(patience.look)
    if not n:
        raise InvalidInputError(f"no node was there within {patience.start:g} s")
    return n
