"""What a solver is: it maps a graph to a structure and a bound, within limits.

Limits are a deadline, a gap and Ctrl-C. A search that takes long is a generator: it gives
(value, labels) every few milliseconds, the best it has so far, and `run_slices` looks at the clock,
at Ctrl-C and after progress reports in between. No kernel ever has to.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError, MissingDependencyError
from coalitions.extras import install_command
from coalitions.game import FloatMatrix, IntVector
from coalitions.graph import SynergyGraph, matrix_of_pairs
from coalitions.registry import Registry
from coalitions.runtime import clock

if TYPE_CHECKING:
    from solvers.demands import Sizes
    from solvers.proofs.certificate import Certificate


@dataclass(frozen=True)
class SearchProgress:
    """What a solver knows at one moment of its work; a `coalitions.Progress`.

    Examples
    --------
    >>> print(SearchProgress(value=12.0, bound=16.0, seconds=3.25).text)
    value 12, at most 16, after 3.2 s
    """

    value: float
    bound: float
    seconds: float

    @property
    def done(self) -> float:
        """Seconds of search so far."""
        return self.seconds

    @property
    def total(self) -> float | None:
        """None: nobody knows how long a search takes."""
        return None

    @property
    def text(self) -> str:
        """A line for people."""
        return f"value {self.value:.6g}, at most {self.bound:.6g}, after {self.seconds:.1f} s"


def check_limits(time_limit: float | None, gap: float, threads: int | None = None) -> None:
    """Refuse limits that make no sense."""
    if time_limit is not None and not time_limit > 0:
        raise InvalidInputError(f"time_limit is {time_limit}; it must be a positive number")
    if not 0 <= gap < 1:
        raise InvalidInputError(f"gap is {gap}; it must be at least 0 and below 1")
    if threads is not None and threads < 1:
        raise InvalidInputError(f"threads is {threads}; it must be at least 1")


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
    report: Callable[[SearchProgress], None] | None = None
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


class TimeIsUp(Exception):  # noqa: N818 (a signal, not an error)
    """The limits ask to stop, or no time is left for what comes next."""


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
    "solvers.heuristics.greedy",
    "solvers.heuristics.local_search",
    "solvers.branch_and_cut.branch_and_cut",
    "solvers.branch_and_price.branch_and_price",
)


# ----------------------------------------------------------------------------------------
# Seeds

RandomState: TypeAlias = NDArray[np.uint64]


def random_state(*seed: int) -> RandomState:
    """Return the state of a generator; equal seeds give equal streams, others unrelated ones."""
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64).astype(np.uint64)
    return state | np.uint64(1)  # zero is the one state xorshift cannot leave


# ----------------------------------------------------------------------------------------
# Searches in slices, and the matrix that they run on if it fits.

Improvement: TypeAlias = tuple[float, IntVector]

DENSE_PLAYERS = 8192
"""Above this many players the gain table would take more than half a gigabyte."""

ALWAYS_DENSE = 300
"""Up to this many players a table is small, however few edges there are."""

DENSE_SHARE = 0.1
"""With fewer of the pairs than this, summing over neighbours beats a table of gains."""

REPORT_EVERY = 0.2
"""Seconds between two reports of progress."""


CLOSING_PER_PAIR = 3e-8
"""Seconds per n² that come after a search on a matrix: a last descent, and the price. A tenth of it
is usual (`python -m benchmarks.constants CLOSING_PER_PAIR`); the rest is for slower machines."""


def fits_table(graph: SynergyGraph) -> bool:
    """Tell whether a graph is searched on a full matrix rather than on its edges."""
    n = graph.n_players
    if n <= ALWAYS_DENSE:
        return True
    if n > DENSE_PLAYERS:
        return False
    return len(graph.edges.weight) >= DENSE_SHARE * n * (n - 1) / 2


def refuse_if_no_table(graph: SynergyGraph) -> None:
    """Raise if a graph has too many players for a full matrix, and say what to do."""
    if graph.n_players > DENSE_PLAYERS:
        raise InvalidInputError(
            f"demands on coalitions are honoured for at most {DENSE_PLAYERS} players, but there are"
            f" {graph.n_players}; leave out sizes, counts, weights and roles, or split the graph"
        )


def matrix_of(graph: SynergyGraph) -> FloatMatrix:
    """Return the synergies as a fresh matrix [n, n], whatever the graph is made of."""
    if not graph.is_sparse:
        return graph.matrix.copy()
    return matrix_of_pairs(graph.n_players, *graph.edges)


def synergies_between(weights: FloatMatrix, groups: IntVector) -> FloatMatrix:
    """Return the synergies between groups numbered 0 … k−1 [k, k], with zeros on the diagonal."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(int(groups.max()) + 1))
    rows = np.add.reduceat(weights[order], starts, axis=0)
    between: FloatMatrix = np.add.reduceat(rows[:, order], starts, axis=1)
    np.fill_diagonal(between, 0.0)
    return between


def leaving_time_to_close(limits: Limits, n_players: int) -> Limits:
    """Return limits that end a little earlier: what comes after a search takes time, too."""
    if limits.deadline is None:
        return limits
    return replace(limits, deadline=limits.deadline - CLOSING_PER_PAIR * n_players**2)


def run_slices(
    search: Iterator[Improvement], start: Improvement, bound: float, limits: Limits
) -> tuple[IntVector, int]:
    """Return the best labels of a search within the limits, and how many slices it took.

    Ends with the search, at the deadline, at Ctrl-C, or when the bound is reached. Never worse than
    `start`.
    """
    began = reported = time.monotonic()
    (value, labels), slices = start, 0
    try:
        for found, partition in search:
            slices += 1
            if found > value:
                value, labels = found, partition.copy()
            now = time.monotonic()
            if limits.report is not None and now - reported > REPORT_EVERY:
                reported = now
                limits.report(SearchProgress(value, bound, now - began))
            if limits.expired or value >= bound:
                break
    except (KeyboardInterrupt, SystemError) as error:
        if not is_ctrl_c(error):
            raise
        limits.interrupted.set()
    return labels, slices
