"""The engine `flower` on this machine: Flower's simulation in a process of its own.

The server stays in this process, with its folder, its progress and its Ctrl-C. The child runs
Flower's simulation; its server app only hands over what the grid is asked for, and its client app
makes each node's data from the run's settings, as the engine `local` does. Nothing leaves the
machine: telemetry and the search for updates are off.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from coalitions.errors import CoalitionError
from coalitions.extras import needed
from learners.client.client import Site
from learners.flower.grid_engine import GridEngine, Identity, NoNodesError, Patience
from learners.flower.node import answering, number_of
from learners.flower.questions import Delivery, GridCarrier, Parcel
from learners.server.engine import ENGINES, Engine
from learners.server.local_engine import n_workers
from learners.settings.config import RunConfig

if TYPE_CHECKING:
    from flwr.app import Context
    from flwr.serverapp import Grid

QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
}
"""Settings that keep Flower and Ray from calling anybody."""

_PROGRAM = f"import {__name__} as simulation; simulation.serve()"
"""What the child runs; the module has its own name there, by which Ray's actors import it."""

_START = 1200.0
"""Seconds that Flower has to begin: on a crowded machine Ray takes minutes."""

_CROWDED = "timed out during startup"
"""What Ray says when a machine is so busy that its own start took over 30 s, which it fixes."""

_STARTS = 3
"""How often a simulation is started for that reason."""

_SIMULATED = Patience(start=_START, answer=7 * 24 * 3600.0, return_=10.0, look=0.02)
"""A simulated node never goes away, so it has all the time it needs."""


@ENGINES.register("flower")
def simulation(site: Site, folder: Path | None) -> Engine:
    """Return an engine whose clients are the nodes of a simulation on this machine.

    Parameters
    ----------
    site
        The run; nodes make their data from its settings.
    folder
        The run's folder; nodes keep their memory in `nodes/` there.
    """
    needed("flwr")
    needed("ray")
    identity = Identity.of(folder)
    for last in (*[False] * (_STARTS - 1), True):
        carrier = Simulation(site, folder)
        try:
            return GridEngine(carrier, site, identity, _SIMULATED)
        except NoNodesError:
            failure = carrier.failure(f"had no client ready within {_SIMULATED.start:g} s")
            carrier.close()
            raise failure from None
        except BaseException as error:
            carrier.close()
            if last or _CROWDED not in str(error):
                raise
    raise AssertionError("the last start returns or raises")


class Simulation:
    """The process that runs the simulation, seen from this one: a grid that is elsewhere."""

    def __init__(self, site: Site, folder: Path | None) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="coalitions-")
        nodes = Path(self._scratch.name) if folder is None else folder.resolve() / "nodes"
        workers = n_workers(site, site.config.workers)
        self._pipe, far_end = multiprocessing.Pipe()
        self._log = Path(self._scratch.name) / "log"
        arguments = [far_end.fileno(), nodes, site.config.clients, workers, self._scratch.name]
        with self._log.open("wb") as log, far_end:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | QUIET | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                pass_fds=[far_end.fileno()],
                start_new_session=True,  # Ctrl-C is for this process, which ends the other
            )

    def nodes(self) -> set[int]:
        """Return the nodes that are there."""
        answer: set[int] = self._call("nodes")
        return answer

    def push(self, parcels: Sequence[Parcel]) -> list[str | None]:
        """Send parcels off."""
        answer: list[str | None] = self._call("push", list(parcels)) if parcels else []
        return answer

    def pull(self, parcels: Iterable[str]) -> list[Delivery]:
        """Return what has come back."""
        answer: list[Delivery] = self._call("pull", list(parcels))
        return answer

    def _call(self, method: str, *arguments: Any) -> Any:  # noqa: ANN401
        try:
            self._pipe.send((method, arguments))
            if self._pipe.poll(_START):
                return self._pipe.recv()
        except (EOFError, OSError):
            raise self.failure("ended before the run did") from None
        raise self.failure(f"did nothing for {_START:g} s")

    def failure(self, what: str) -> CoalitionError:
        """Return an error that says what went wrong, and what the simulation said last."""
        said = self._log.read_text(errors="replace").strip().splitlines()
        last = ascii(said[-1].strip())[1:-1] if said else "it said nothing"
        return CoalitionError(f"Flower's simulation {what}: {last[:300]}")

    def close(self) -> None:
        """End the simulation, and all that it started."""
        self._pipe.close()
        # At once: what a node keeps is on disk before it answers, and nobody waits for the rest.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._scratch.cleanup()


def serve() -> None:
    """Run a simulation that does what comes through the pipe: the whole life of the child."""
    from flwr.serverapp import ServerApp
    from flwr.simulation import run_simulation

    logging.getLogger("flwr").setLevel(logging.ERROR)
    end, place, n_clients, workers, scratch = sys.argv[1:]
    pipe, nodes = Connection(int(end)), Path(place)
    server = ServerApp()

    @server.main()
    def hand_over(grid: Grid, context: Context) -> None:
        carrier = GridCarrier(grid)
        with pipe, suppress(EOFError, OSError):
            while True:  # until the pipe closes
                method, arguments = pipe.recv()
                pipe.send(getattr(carrier, method)(*arguments))

    try:
        run_simulation(
            server_app=server,
            client_app=answering(_site_of, lambda context: nodes / f"{number_of(context):04d}"),
            num_supernodes=int(n_clients),
            backend_config={
                "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
                "init_args": {
                    "num_cpus": int(workers),
                    "log_to_driver": False,
                    "include_dashboard": False,
                    "configure_logging": False,
                    "_temp_dir": scratch,
                },
            },
        )
    except Exception as error:
        # Flower's thread for the server would go on without nodes, so the process ends here.
        print(_first_cause(error), flush=True)  # noqa: T201 (the log, whose last line is told)
        os._exit(1)


def _first_cause(error: BaseException) -> str:
    """Return in one line what an error began with."""
    while (before := error.__cause__ or error.__context__) is not None:
        error = before
    return " ".join(f"{type(error).__name__}: {error}".split())


@lru_cache(2)
def _simulated(settings: str) -> Site:
    """Return the clients of a run, made anew from its settings in the process of a node."""
    from learners.runs.prepare import prepare

    torch.set_num_threads(1)
    return prepare(RunConfig.of(tomllib.loads(settings))).site


def _site_of(settings: str, context: Context) -> Site:
    return _simulated(settings)
