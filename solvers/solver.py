"""What a solver is: it maps a graph to a structure and a bound, within limits."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar

from coalitions.compiling.clock import clock
from coalitions.errors import MissingDependencyError
from coalitions.extras import install_command
from coalitions.game import IntVector
from coalitions.graph import SynergyGraph
from coalitions.registry import Registry

if TYPE_CHECKING:
    from solvers.proofs.certificate import Certificate
    from solvers.sizes import Sizes


@dataclass(frozen=True)
class Progress:
    """What a solver knows at one moment of its work."""

    value: float
    bound: float
    seconds: float


@dataclass(frozen=True)
class Limits:
    """When a solver must stop, and what it may use.

    Attributes
    ----------
    deadline
        Moment of `clock` at which to stop, which does not count the time that kernels take to
        compile; None for never.
    gap
        Relative gap at which a proof counts as done.
    threads
        Threads a solver may use; None leaves the choice to it.
    seed
        Source of all randomness.
    report
        Called with the progress now and then.
    interrupted
        Set by Ctrl-C: everybody answers with the best so far, and whatever comes after stops as
        well.
    """

    deadline: float | None = None
    gap: float = 0.0
    threads: int | None = None
    seed: int = 0
    report: Callable[[Progress], None] | None = None
    interrupted: Event = field(default_factory=Event)

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, never negative; infinite if there is none."""
        if self.interrupted.is_set():
            return 0.0
        if self.deadline is None:
            return float("inf")
        return max(0.0, self.deadline - clock())

    def part(self, share: float) -> Limits:
        """Return limits that end when a share of the time that is left is over."""
        if self.deadline is None:
            return self
        return replace(self, deadline=clock() + share * self.seconds_left)

    @property
    def expired(self) -> bool:
        """Whether it is time to stop: the deadline has passed, or somebody pressed Ctrl-C."""
        if self.interrupted.is_set():
            return True
        return self.deadline is not None and clock() >= self.deadline


@contextlib.contextmanager
def heeding_ctrl_c(limits: Limits) -> Iterator[None]:
    """Let Ctrl-C end a search like its deadline does; a second Ctrl-C raises KeyboardInterrupt.

    Somebody else's way to treat Ctrl-C is left alone, and only the main thread hears of it.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def note(number: int, frame: FrameType | None) -> None:
        if limits.interrupted.is_set():
            signal.default_int_handler(number, frame)
        limits.interrupted.set()

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def is_ctrl_c(error: BaseException) -> bool:
    """Tell whether somebody pressed Ctrl-C; in a compiled function it becomes a SystemError."""
    return isinstance(error, KeyboardInterrupt) or isinstance(error.__cause__, KeyboardInterrupt)


@dataclass(frozen=True)
class Answer:
    """What a solver found: a block number for each player and a valid upper bound.

    There is no value here: the front door prices the labels on the graph, so a solver cannot
    misreport it. A run stopped by its limits answers with its best labels and its best bound.
    """

    labels: IntVector
    bound: float
    stats: Mapping[str, Any] = field(default_factory=dict)
    prove: Callable[[], Certificate | None] | None = None

    @functools.cached_property
    def certificate(self) -> Certificate | None:
        """The proof of the bound, made when it is first asked for; None if there is none."""
        return None if self.prove is None else self.prove()


class Solver(ABC):
    """A method that partitions a graph; its options are dataclass fields of the subclass.

    The front door sees to everything that is the same for all: trivial graphs, players that must
    or must not be together, components, prices and proof. `search` is asked for one connected
    graph (by positive edges) of at least two players.
    """

    exact: ClassVar[bool] = True
    """Whether the method proves optimality, given time."""

    needs: ClassVar[tuple[str, ...]] = ()
    """Modules of optional packages the method imports."""

    certifies: ClassVar[bool] = False
    """Whether the method's answers carry a certificate where no sizes are demanded."""

    certifies_sizes: ClassVar[bool] = False
    """Whether they do where sizes are demanded."""

    at_once: ClassVar[int] = 8
    """Up to this many players it has a good structure in no time; more start from greedy's where
    time is limited."""

    @property
    def takes_sizes(self) -> bool:
        """Whether this solver, with these options, can honour `Sizes`."""
        return False

    def certifying(self) -> Solver:
        """Return this method, set to leave nothing unproven; only asked if it `certifies`."""
        return self

    @classmethod
    def missing(cls) -> str | None:
        """Return why the method cannot run here, or None if it can."""
        for module in cls.needs:
            if importlib.util.find_spec(module) is None:
                command = install_command(module) or f"pip install {module}"
                return f"{module} is not installed: {command}"
        return None

    @classmethod
    def require(cls, name: str) -> None:
        """Raise if the method cannot run here."""
        reason = cls.missing()
        if reason:
            raise MissingDependencyError(f"{name} cannot run: {reason}")

    @abstractmethod
    def search(
        self,
        graph: SynergyGraph,
        *,
        limits: Limits,
        warm_start: IntVector | None = None,
        sizes: Sizes | None = None,
    ) -> Answer:
        """Return the best labels found and a bound on the value of every structure.

        Parameters
        ----------
        graph
            The players and their synergies.
        limits
            When to stop; a method looks at them at least every tenth of a second.
        warm_start
            Labels of a structure to start from.
        sizes
            Demands on the coalitions; only given to a solver whose `takes_sizes` is true.
        """


SOLVERS: Registry[type[Solver]] = Registry(
    "solver",
    "solvers.backends",
    "solvers.heuristics",
    "solvers.branch_and_cut.method",
    "solvers.branch_and_price.method",
)
