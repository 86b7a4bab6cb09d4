"""One table or figure of a paper: what is run, what is read off, what is claimed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from coalitions.registry import Registry
from learners.measures.scores import domain_means
from learners.reproduction.claims import Claim, Measured
from learners.reproduction.printed import PaperTable, paper_table
from learners.runs.reading import Clients, RunRecord, read_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from learners.runs.result import Result

Scale = Literal["smoke", "small", "paper"]
"""How much is done: seconds, up to twenty minutes of two cores, or what the paper did."""

Key: TypeAlias = tuple[str, str]
"""A row and a group of columns: runs that differ in their seed alone."""

Results: TypeAlias = Mapping[Key, Sequence["Result"]]
"""The runs that were made, one for each seed."""

SEEDS: Mapping[Scale, int] = {"smoke": 1, "small": 5, "paper": 5}
"""Seeds, if the user names no number."""

SECOND_LOOK = 0.975
"""Confidence where there are more seeds than usual: two looks at the figures share the 5 %."""


class Experiment(ABC):
    """A table or figure of a paper.

    To add one, write a subclass in a module of `learners.reproduction.experiments` and decorate it
    with ``@EXPERIMENTS.register("paper-table1")``. Its docstring's first line is its title.

    Attributes
    ----------
    source, first_version
        Names of the files with what the paper prints, if it prints numbers, and with what an
        earlier version of it printed.
    data_dir
        Where data files are, for experiments that read some without a run.
    folder
        Where the experiment is kept, for those that compute for long without a run.
    on_part
        Called by those as each part is done, with how many are done now and how many there were
        to do.
    seeds
        Number of seeds by scale, if not the usual one.
    first_seed
        Where the seeds begin.
    settles
        Whether it settles what a paper leaves open, and is no table or figure of one.
    """

    source: ClassVar[str | None] = None
    first_version: ClassVar[str | None] = None
    data_dir: Path | None = None
    folder: Path | None = None
    on_part: Callable[[int, int], None] | None = None
    seeds: ClassVar[Mapping[Scale, int]] = SEEDS
    first_seed: ClassVar[int] = 0
    settles: ClassVar[bool] = False

    @property
    def title(self) -> str:
        """What it shows, in a line."""
        return (type(self).__doc__ or "").strip().partition("\n")[0]

    @property
    def printed(self) -> PaperTable | None:
        """What the paper prints."""
        return None if self.source is None else paper_table(self.source)

    @abstractmethod
    def runs(self, scale: Scale) -> Mapping[Key, Mapping[str, Any]]:
        """Return the settings of all runs, without their seeds; empty if nothing is trained.

        Rows with the same settings share a run, also those of other experiments.
        """

    def once(self, scale: Scale) -> frozenset[str]:
        """Return groups of columns that only the first seed has: more would take too long."""
        return frozenset()

    def beside(self, scale: Scale, seeds: Sequence[int]) -> str:
        """Return what there is to do beside runs, in words; nothing if it takes no time."""
        return ""

    @abstractmethod
    def measured(self, results: Results, scale: Scale, seeds: Sequence[int]) -> Measured:
        """Return the table that the runs give."""

    @abstractmethod
    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return what the paper claims, with what came out."""

    def figures(self, found: Measured, results: Results, scale: Scale) -> Mapping[str, Figure]:
        """Return the figures by name: the table in dots, if the experiment has no other."""
        from learners.reproduction.pictures import dots

        return {"figure": dots(found, self.printed, self.title)}

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return what a reader must know of the difference between the paper and a scale."""
        return ()

    def tried(self, scale: Scale) -> Sequence[str]:
        """Return what else was tried, and what that changed."""
        return ()

    def seeds_added(self, scale: Scale, n_seeds: int) -> bool:
        """Return whether there are more seeds than the scale has: then this is a second look."""
        return n_seeds > self.seeds[scale]

    def judged(
        self, found: Measured, results: Results, scale: Scale, n_seeds: int
    ) -> tuple[Claim, ...]:
        """Return what the paper claims, with wider intervals if seeds were added."""
        if self.seeds_added(scale, n_seeds):
            found = replace(found, confidence=SECOND_LOOK)
        return tuple(self.claims(found, results))


EXPERIMENTS: Registry[type[Experiment]] = Registry(
    "experiment", "learners.reproduction.experiments"
)


@dataclass(frozen=True)
class TableRow:
    """A row: a method with options and settings of its own, and which of its models is tested.

    Attributes
    ----------
    algorithm, options, settings
        As in a run's configuration.
    tested
        Name of the model, such as ``trained``; the one that the method deploys if empty.
    """

    algorithm: str
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    tested: str = ""

    def run(self, shared: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of its run, given those that all rows share."""
        options = {"options": dict(self.options)}
        return {**shared, **self.settings, "algorithm": self.algorithm, **options}


def mean_accuracy(result: Result, tested: str = "") -> float:
    """Return the mean test accuracy over clients, in percent."""
    prefix = f"{tested}_" if tested else ""
    return 100 * float(result.metrics[f"{prefix}mean_test_accuracy"])


def record_of(result: Result) -> RunRecord:
    """Return what a run left in its folder; an experiment's runs all have one."""
    assert result.out is not None
    return read_run(result.out)


def clients_of(result: Result) -> Clients:
    """Return what a run recorded of its clients; an experiment's runs all have it."""
    clients = record_of(result).clients
    assert clients is not None
    return clients


def domain_accuracies(result: Result, tested: str = "") -> dict[str, float]:
    """Return the mean test accuracy of the honest clients of every domain, in percent."""
    prefix = f"{tested}_" if tested else ""
    clients = clients_of(result)
    accuracies = result.metrics[f"{prefix}per_client_test_accuracy"]
    percent = [None if each is None else 100 * each for each in accuracies]
    return domain_means(percent, clients.domains, clients.poisoned)


class AccuracyTable(Experiment):
    """A table of mean test accuracies: methods in rows, federations in columns."""

    ours: ClassVar[str]
    """The row whose lead is claimed."""

    @abstractmethod
    def methods(self, scale: Scale) -> Mapping[str, TableRow]:
        """Return the rows."""

    @abstractmethod
    def federations(self, scale: Scale) -> Mapping[str, Mapping[str, Any]]:
        """Return the settings that all rows share, by column."""

    def runs(self, scale: Scale) -> Mapping[Key, Mapping[str, Any]]:
        """Return a run for every row in every column."""
        return {
            (row, column): method.run(shared)
            for column, shared in self.federations(scale).items()
            for row, method in self.methods(scale).items()
        }

    def measured(self, results: Results, scale: Scale, seeds: Sequence[int]) -> Measured:
        """Return the accuracies."""
        columns = tuple(self.federations(scale))
        return Measured(
            columns,
            {
                row: {
                    column: [mean_accuracy(each, method.tested) for each in results[row, column]]
                    for column in columns
                    if (row, column) in results
                }
                for row, method in self.methods(scale).items()
            },
        )

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return that our row leads in every column."""
        from learners.reproduction.claims import best

        return [best(found, self.ours, column, self.printed) for column in found.columns]
