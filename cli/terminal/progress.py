"""Progress on stderr: of evaluations of a game, and of rounds of a run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any

from cli.terminal.output import stderr

if TYPE_CHECKING:
    from coalitions.execution.progress import Evaluations
    from learners.server.federation import Round
    from learners.settings.config import RunConfig

# ----------------------------------------------------------------------------------------
# Where an estimate is: a line on stderr, once it takes long.

PATIENCE = 2.0
"""Seconds after which somebody who waits wants to know for how long."""

ELSEWHERE = 30.0
"""Seconds between two lines where there is no terminal on which one is written over."""


class EvaluationLine:
    """Evaluations made, and the time left; what is soon done says nothing.

    Parameters
    ----------
    quiet
        Say nothing at all.
    stream
        Where to write; standard error if there is none.
    clock
        Tells the seconds.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        stream: IO[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from coalitions.execution.progress import time_left

        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._clock = clock
        self._begun = clock()
        self._shown = False
        terminal = self._stream.isatty()
        self._report = time_left(self._stream, every=1.0 if terminal else ELSEWHERE, clock=clock)

    def __enter__(self) -> EvaluationLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown and self._stream.isatty():
            self._stream.write("\r\x1b[K")  # the result stands in its place

    def __call__(self, progress: Evaluations) -> None:
        """Take a report; at the end the result speaks for itself."""
        finished = progress.done >= progress.total
        if self._quiet or finished or self._clock() - self._begun < PATIENCE:
            return
        self._shown = True
        self._report(progress)


# ----------------------------------------------------------------------------------------
# Where a run is: a bar on a terminal; with --verbose, a line per round wherever stderr goes.


class RoundProgress:
    """Shows rounds as they end.

    Parameters
    ----------
    config
        The run.
    quiet, verbose
        Show nothing; or lines with all there is to say, instead of a bar.
    """

    def __init__(self, config: RunConfig, *, quiet: bool = False, verbose: bool = False) -> None:
        self._n_rounds = config.rounds
        self._console = stderr()
        self._verbose = verbose
        self._quiet = quiet
        self._named: set[tuple[str, str]] = set()
        self._bar: Any = None
        if verbose:
            self._say(_what_begins(config))
        elif not quiet and self._console.is_terminal:
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("round {task.completed}/{task.total}"),
                BarColumn(),
                TextColumn("{task.description}"),
                TimeRemainingColumn(),
                console=self._console,
                transient=True,
            )

    def __enter__(self) -> RoundProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, round: Round) -> None:
        """Show where the run is."""
        self.show(round.number, round.metrics)

    def show(self, number: int, metrics: Mapping[str, Any], about: str = "") -> None:
        """Show what is known of a round; lines begin with `about`."""
        if self._verbose:
            self._say(f"{about}round {number}/{self._n_rounds}  {_details(metrics)}")
        if not self._quiet:
            self._name_left_out(number, metrics, about)
        if self._bar is None:
            return
        if not self._bar.tasks:  # begun after the workers were forked: the bar has a thread
            # A resumed run has done the rounds before: the bar, and the time left, begin there.
            self._bar.add_task("", total=self._n_rounds, completed=number - 1)
            self._bar.start()
        self._bar.update(self._bar.tasks[0].id, completed=number, description=_scores(metrics))

    def _name_left_out(self, number: int, metrics: Mapping[str, Any], about: str) -> None:
        """Say who is left out: when it happens first, and when a client is not asked any more."""
        verbs = {"refused": "left out", "quarantined": "not asked any more"}
        for kind, words in verbs.items():
            for client, why in metrics[kind].items():
                if (kind, client) not in self._named:
                    self._named.add((kind, client))
                    self._say(f"{about}round {number}: client {client} is {words}: {why}")

    def _say(self, line: str) -> None:
        self._console.print(line, soft_wrap=True, markup=False)


def _scores(metrics: Mapping[str, Any]) -> str:
    words = []
    if metrics.get("mean_test_accuracy") is not None:
        words.append(f"accuracy {metrics['mean_test_accuracy']:.4f}")
    for name, told in metrics.get("metrics", {}).items():
        if name != "accuracy" and told["mean"] is not None:
            words.append(f"{name} {told['mean']:.4f}")
    if metrics["train_loss"] is not None:
        words.append(f"loss {metrics['train_loss']:.4f}")
    return "  ".join(words)


def _details(metrics: Mapping[str, Any]) -> str:
    """Return all that one line can say about a round."""
    words = [_scores(metrics)] if _scores(metrics) else []
    if metrics.get("per_client_test_accuracy") is not None:
        each = metrics["per_client_test_accuracy"]
        shown = " ".join("-" if score is None else f"{score:.3f}" for score in each)
        words.append(f"each {shown}")
    words.append(f"{len(metrics['participants'])} took part")
    words.append(f"{metrics['up']:,} up, {metrics['down']:,} down")
    if "structure_value" in metrics:
        proof = "optimal" if metrics["structure_optimal"] else "not proven"
        words.append(
            f"structure {metrics['structure_value']:.4g} ({metrics['structure_solver']}, {proof},"
            f" {metrics['solve_seconds']:.3f} s)"
        )
    if metrics["epsilon"] is not None:
        words.append(f"epsilon {metrics['epsilon']:.4g}")
    words += [f"client {client} left out: {why}" for client, why in metrics["refused"].items()]
    words.append(f"{metrics['seconds']:.3f} s")
    return "  ".join(words)


def _what_begins(config: RunConfig) -> str:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    libraries = [f"python {platform.python_version()}"]
    for name in ("coalition-kit", "torch", "numpy"):
        try:
            libraries.append(f"{name} {version(name)}")
        except PackageNotFoundError:  # used from its sources
            continue
    return (
        f"{config.algorithm} on {config.dataset}: {config.clients} clients, {config.rounds} rounds,"
        f" seed {config.seed}; {', '.join(libraries)}"
    )
