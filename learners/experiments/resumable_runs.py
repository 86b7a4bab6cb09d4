"""Many runs as cells of a table: kept in folders, gone on with, several at a time.

A cell is a name, a complete configuration and maybe a folder. Numbers are the same whatever the
number of processes: a run depends on its configuration alone.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Literal, Protocol

from coalitions.errors import CoalitionError, InvalidInputError, NoSolutionError
from learners.runs.folder import RunFolder, is_bare
from learners.runs.inputs import LastData, UserInputs
from learners.runs.prepare import prepare
from learners.runs.result import Result
from learners.runs.run import OnRound, begin, go_on
from learners.server.local_engine import begin_child, start_child
from learners.settings.config import RunConfig, differing_settings, spoken_setting

NO_INPUTS = UserInputs()

Stage = Literal["new", "begun", "finished", "other settings"]


@dataclass(frozen=True)
class Cell:
    """One run among many: what it is called, its settings, its folder if it has one.

    Attributes
    ----------
    name
        What it is called.
    config
        Its settings, complete.
    folder
        Where it is kept; None keeps nothing.
    stage
        How far it is.
    domains
        The domains of its clients, if the plan knows them.
    inputs
        What the user passed beside the settings: data, a network, a loss, metrics.
    last
        Has the data of the run before, which another cell may have, too.
    """

    name: str
    config: RunConfig
    folder: Path | None = None
    stage: Stage = "new"
    domains: tuple[str, ...] = ()
    inputs: UserInputs = field(default=NO_INPUTS, repr=False)
    last: LastData = field(default_factory=LastData, repr=False, compare=False)

    def result(self, on_round: OnRound | None = None, workers: int | None = None) -> Result:
        """Return what came out: read, resumed or run, whichever is left to do.

        Parameters
        ----------
        on_round
            Called after each round.
        workers
            Worker processes of the run, if not what its settings say.
        """
        own, last = self.inputs, self.last
        try:
            if self.folder is not None and self.stage in ("begun", "finished"):
                return go_on(self.folder, own, last, on_round=on_round, workers=workers)
            config = self.config if workers is None else replace(self.config, workers=workers)
            force = self.stage == "other settings"
            return begin(prepare(config, own, last), self.folder, force=force, on_round=on_round)
        except CoalitionError as error:
            raise type(error)(f"{self.name}, seed {self.config.seed}: {error}") from None


class CellWatch(Protocol):
    """Is told how far cells are."""

    def begin(self, cell: Cell) -> None:
        """Take note that a cell begins, or goes on; one that is finished is only read."""

    def round(self, cell: Cell, number: int, metrics: Mapping[str, Any]) -> None:
        """Take note that a round of a cell is done."""

    def end(self, cell: Cell, result: Result | None) -> None:
        """Take note that a cell is finished; None if nothing can come of it."""


class _Nobody:
    """Takes note of nothing."""

    def begin(self, cell: Cell) -> None:
        pass

    def round(self, cell: Cell, number: int, metrics: Mapping[str, Any]) -> None:
        pass

    def end(self, cell: Cell, result: Result | None) -> None:
        pass


def planned_cell(
    name: str,
    config: RunConfig,
    folder: Path | None,
    *,
    force: bool = False,
    domains: tuple[str, ...] = (),
    inputs: UserInputs = NO_INPUTS,
    last: LastData | None = None,
) -> Cell:
    """Return a cell with how far it is, from what is in its folder.

    Parameters
    ----------
    name
        What it is called.
    config
        Its settings, complete (see `learners.runs.run.completed`).
    folder
        Where it is kept; None keeps nothing.
    force
        Replace a run that was made with other settings, which is refused otherwise.
    domains
        Its clients' domains.
    inputs
        What the user passed beside the settings.
    last
        Has the data of the run before; cells that share it have them dealt once.
    """
    stage = _stage(folder, config, force)
    return Cell(name, config, folder, stage, domains, inputs, last or LastData())


def run_cells(
    cells: Sequence[Cell], *, jobs: int = 1, watch: CellWatch | None = None
) -> list[Result]:
    """Return the results of cells, in their order, those that are finished read, others run.

    Parameters
    ----------
    cells
        The cells; see `planned_cell`.
    jobs
        Runs at a time. 1 runs them in this process, each with the workers its settings say; more
        are processes with one thread each; 0 takes as many as there are cores. Stopped at any
        moment, finished cells are kept, and the others go on from their checkpoints.
    watch
        Told of what happens, in this process.

    Examples
    --------
    >>> from learners.runs.run import completed
    >>> settings = {"clients": 2, "rounds": 1, "train_size": 20, "workers": 1}
    >>> cells = [Cell(name, completed({**settings, "algorithm": name})) for name in ("local",)]
    >>> [result.config.algorithm for result in run_cells(cells)]
    ['local']
    """
    outcomes = tried_cells(cells, jobs=jobs, watch=watch, tolerant=False)
    return [each for each in outcomes if isinstance(each, Result)]


def tried_cells(
    cells: Sequence[Cell],
    *,
    jobs: int = 1,
    watch: CellWatch | None = None,
    tolerant: bool = True,
) -> list[Result | NoSolutionError]:
    """Return the results of cells, and for those of which nothing came, why.

    Nothing comes of a run whose models do not stay finite, say at too high a learning rate. Any
    other error ends all cells, as it does in `run_cells`.

    Parameters
    ----------
    cells, jobs, watch
        See `run_cells`.
    tolerant
        Whether to go on after such a run.
    """
    watch = watch or _Nobody()
    if jobs < 0:
        raise InvalidInputError(f"jobs must be 0 or more, not {jobs}")
    jobs = min(jobs or cores(), len(cells))
    try:
        if jobs <= 1:
            return _in_turn(cells, watch, tolerant)
        return _at_a_time(cells, jobs, watch, tolerant)
    finally:
        for cell in cells:
            cell.last.forget()


def _in_turn(
    cells: Sequence[Cell], watch: CellWatch, tolerant: bool
) -> list[Result | NoSolutionError]:
    outcomes: list[Result | NoSolutionError] = []
    for cell in cells:
        watch.begin(cell)
        try:
            result = cell.result(_reporter(cell, watch))
        except NoSolutionError as error:
            if not tolerant:
                raise
            outcomes.append(error)
            watch.end(cell, None)
        else:
            outcomes.append(result)
            watch.end(cell, result)
    return outcomes


def _reporter(cell: Cell, watch: CellWatch) -> OnRound:
    return lambda round: watch.round(cell, round.number, round.metrics)


def _at_a_time(
    cells: Sequence[Cell], jobs: int, watch: CellWatch, tolerant: bool
) -> list[Result | NoSolutionError]:
    """Run cells in processes of their own, each forked or spawned when there is room."""
    outcomes: dict[int, Result | NoSolutionError] = {}
    running: dict[Connection, tuple[int, Any]] = {}
    lifeline, held = multiprocessing.Pipe(duplex=False)
    ahead = iter(enumerate(cells))
    try:
        while True:
            while len(running) < jobs and (following := next(ahead, None)) is not None:
                number, cell = following
                watch.begin(cell)
                if cell.stage == "finished":
                    outcomes[number] = done = cell.result()
                    watch.end(cell, done)
                else:
                    pipe, process = _started(cell, lifeline, held, list(running))
                    running[pipe] = (number, process)
            if not running:
                return [outcomes[number] for number in range(len(cells))]
            for ready in wait(list(running)):
                pipe = ready  # type: ignore[assignment]
                number, process = running[pipe]
                message = _next_message(pipe, process, cells[number])
                failed = isinstance(message, NoSolutionError) and tolerant
                if isinstance(message, BaseException) and not failed:
                    raise message
                if failed or isinstance(message, Result):
                    outcomes[number] = message
                    del running[pipe]
                    process.join()
                    pipe.close()
                    watch.end(cells[number], None if failed else message)
                else:
                    watch.round(cells[number], *message)
    finally:
        # What is under way is left as a kill would leave it: its last checkpoint is sound.
        for pipe, (_, process) in running.items():
            process.kill()
            process.join()
            pipe.close()
        held.close()
        lifeline.close()


def _started(
    cell: Cell, lifeline: Connection, held: Connection, siblings: Sequence[Connection]
) -> tuple[Connection, Any]:
    """Return the pipe of a cell's process, and the process, at work."""
    forks = sys.platform == "linux"
    context: Any = multiprocessing.get_context("fork" if forks else "spawn")
    pipe, far_end = context.Pipe(duplex=False)
    inherited = (held, pipe, *siblings) if forks else ()
    process = context.Process(target=_work, args=(cell, far_end, lifeline, inherited))
    start_child(process)
    far_end.close()
    return pipe, process


def _next_message(pipe: Connection, process: Any, cell: Cell) -> Any:  # noqa: ANN401
    try:
        return pipe.recv()
    except (EOFError, ConnectionResetError):
        process.join()
        return CoalitionError(
            f"{cell.name}, seed {cell.config.seed}: its process ended without a result (exit code"
            f" {process.exitcode}); if memory ran out, fewer --jobs need less"
        )


def _work(
    cell: Cell, pipe: Connection, lifeline: Connection, inherited: Sequence[Connection]
) -> None:
    """Run a cell in a process of its own, and send each round and the result to the parent."""
    begin_child(inherited)
    threading.Thread(target=_end_with_the_parent, args=(lifeline,), daemon=True).start()
    with suppress(BrokenPipeError, ConnectionResetError):  # the parent is gone
        pipe.send(_outcome(cell, lambda round: pipe.send((round.number, round.metrics))))
    pipe.close()
    # Not the way out of an ordinary process: a forked one must not flush its parent's files.
    os._exit(0)


def _outcome(cell: Cell, on_round: Callable[[Any], None]) -> Result | CoalitionError:
    try:
        found = cell.result(on_round, workers=1)
    except CoalitionError as error:
        return error
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception:
        return CoalitionError(
            f"{cell.name}, seed {cell.config.seed} failed:\n{traceback.format_exc()}"
        )
    return replace(found, _models=(), _network=None)  # what stands in folders need not travel


def _end_with_the_parent(lifeline: Connection) -> None:
    """End this process, which frees its lock, when the parent is gone."""
    with suppress(EOFError, OSError):
        lifeline.recv()
    os._exit(1)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _stage(folder: Path | None, config: RunConfig, force: bool) -> Stage:
    if folder is None or not folder.exists():
        return "new"
    if folder.is_dir() and is_bare(folder):  # killed before it had written its settings
        return "new"
    if not (folder / "config.toml").is_file():
        raise InvalidInputError(
            f"{folder} is not the folder of a run: it has no config.toml; choose another --out"
        )
    different = differing_settings(RunFolder.open(folder).config(), config)
    if not different:
        return "finished" if (folder / "result.json").is_file() else "begun"
    if not force:
        key, was, wanted = different[0]
        more = f" ({len(different) - 1} more differ)" if len(different) > 1 else ""
        raise InvalidInputError(
            f"{folder} was made with {key} {spoken_setting(was)}, not"
            f" {spoken_setting(wanted)}{more}; choose another --out, or --force to replace such"
            " runs"
        )
    return "other settings"
