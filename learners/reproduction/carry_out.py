"""An experiment from its runs to its folder: resumable at any moment, several runs at a time."""

from __future__ import annotations

import io
import itertools
import re
import shlex
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from coalitions.drawing.pictures import drawn_to_file, picture
from coalitions.errors import InvalidInputError, NoSolutionError, with_keywords
from coalitions.extras import needed
from coalitions.files.writing import write_whole
from coalitions.results import PublicResult, Row
from learners.experiments.resumable_runs import Cell, CellWatch, planned_cell, tried_cells
from learners.reproduction.claims import Claim, Measured, Verdict
from learners.reproduction.experiment import (
    EXPERIMENTS,
    Experiment,
    Key,
    Scale,
)
from learners.reproduction.kept_experiments import (
    files_of,
    judgement,
    machine_of_today,
    settings_of,
)
from learners.reproduction.pages import (
    figure_of,
    write_summary,
)
from learners.reproduction.pictures import dots
from learners.reproduction.printed import PaperTable
from learners.runs.inputs import LastData
from learners.runs.kept_runs import kept_place
from learners.runs.prepare import checked
from learners.runs.result import Result
from learners.settings.config import RunConfig
from learners.settings.seeding import seeds_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame
    from rich.console import Console


@dataclass(frozen=True)
class Plan:
    """An experiment about to be carried out.

    Attributes
    ----------
    name, experiment, scale, seeds, folder
        Which, how much of it, and where it is kept.
    runs
        Its runs by row and columns, one for each seed, or for the first alone, each with how far
        it is.
    """

    name: str
    experiment: Experiment
    scale: Scale
    seeds: tuple[int, ...]
    folder: Path
    runs: Mapping[Key, tuple[Cell, ...]]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """What there is to run: seed by seed, so that early seeds are complete early."""
        found: dict[Path | None, Cell] = {}
        for cells in itertools.zip_longest(*self.runs.values()):
            for cell in cells:
                if cell is not None:  # not every column has every seed
                    found.setdefault(cell.folder, cell)
        return tuple(found.values())

    @property
    def left(self) -> int:
        """Runs that are not finished."""
        return sum(cell.stage != "finished" for cell in self.cells)

    def as_it_stands(self) -> Plan:
        """Return the plan with how far its runs are now: other experiments may have made some."""
        return replace(
            self,
            runs={
                key: tuple(planned_cell(cell.name, cell.config, cell.folder) for cell in cells)
                for key, cells in self.runs.items()
            },
        )


@dataclass(frozen=True, eq=False)
class Reproduced(PublicResult):
    """A table or figure of a paper: the paper's figures, ours, and a verdict on each claim.

    Attributes
    ----------
    plan
        The experiment: its name, scale, seeds, folder and runs.
    found, printed
        What was measured, and what the paper prints.
    claims
        The claims of the paper, each with its `verdict`.
    missing
        Sentences on rows that are not in the table, as their models did not stay finite.
    """

    plan: Plan
    found: Measured
    printed: PaperTable | None
    claims: tuple[Claim, ...]
    missing: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What the table or figure shows, in a line."""
        return self.plan.experiment.title

    @property
    def folder(self) -> Path:
        """Where the table, the claims and the pictures were written."""
        return self.plan.folder

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict on each claim: holds, does not hold, level, or cannot be told."""
        return {claim.text: claim.verdict for claim in self.claims}

    @property
    def named(self) -> dict[str, dict[str, float]]:
        """Our mean over the seeds by row and column."""
        return {
            row: {column: statistics.fmean(values) for column, values in columns.items()}
            for row, columns in self.found.rows.items()
        }

    def to_frame(self, *, claims: bool = False) -> DataFrame:
        """Return a pandas DataFrame with a line for each row and column of the table.

        It has our mean and standard deviation over the seeds, and the paper's.

        Parameters
        ----------
        claims
            Return a line for each claim instead: its text, the difference in the paper and ours
            with its interval, the verdict, and why.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        if claims:
            needed("pandas")
            import pandas as pd

            keys = ("claim", "paper", "ours", "interval", "verdict", "why")
            documents = [claim.document() for claim in self.claims]
            return pd.DataFrame(
                [{key: each[key] for key in keys} for each in documents], columns=keys
            )
        return super().to_frame()

    def _rows(self) -> list[Row]:
        lines: list[Row] = []
        for row, columns in self.found.rows.items():
            for column, values in columns.items():
                paper = None if self.printed is None else self.printed.get(row, column)
                lines.append(
                    {
                        "row": row,
                        "column": column,
                        "mean": statistics.fmean(values),
                        "sd": statistics.stdev(values) if len(values) > 1 else None,
                        "paper": None if paper is None else paper.mean,
                        "paper_spread": None if paper is None else paper.spread,
                    }
                )
        return lines

    def plot(self, path: str | Path | None = None) -> Figure:
        """Return a matplotlib figure: every seed, our means, and the figures of the paper.

        The experiment's own pictures are in its folder.

        Parameters
        ----------
        path
            Where to write the picture as well: ``.png``, ``.svg`` or ``.pdf``.

        Raises
        ------
        MissingDependencyError
            matplotlib is not installed.
        """
        return drawn_to_file(lambda: dots(self.found, self.printed, self.title), path)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as ``coalitions reproduce NAME --json`` prints them."""
        return {
            "name": self.plan.name,
            "title": self.title,
            "settles": self.plan.experiment.settles,
            "scale": self.plan.scale,
            "seeds": list(self.plan.seeds),
            "rows": {
                row: {column: list(values) for column, values in columns.items()}
                for row, columns in self.found.rows.items()
            },
            "columns": list(self.found.columns),
            "unit": self.found.unit,
            "settings": settings_of(self.plan),
            **judgement(
                self.plan.experiment, self.plan.scale, len(self.plan.seeds), self.found, self.claims
            ),
            "missing": list(self.missing),
        }

    def __str__(self) -> str:
        """Return the table and the verdicts, as ``coalitions reproduce`` prints them."""
        from rich.console import Console

        file = io.StringIO()
        print_reproduced(self, Console(file=file, width=200))
        return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def print_reproduced(done: Reproduced, console: Console) -> None:
    """Print the table with the paper's figures beside ours, the verdicts, and the file."""
    from rich import box
    from rich.table import Table

    table = Table(title=f"{done.plan.name}: {done.title}", box=box.SIMPLE)
    table.add_column(done.found.unit)
    for column in done.found.columns:
        table.add_column(column, justify="right")
        if done.printed is not None:
            table.add_column("paper", justify="right", style="dim")
    for row in done.found.rows:
        cells = [row]
        for column in done.found.columns:
            cells.append(figure_of(done.found.get(row, column)))
            if done.printed is not None:
                paper = done.printed.get(row, column)
                cells.append("" if paper is None else str(paper))
        table.add_row(*cells)
    console.print(table)
    # At the smallest scale the notes say that these are other data than the table's title names.
    notes = done.plan.experiment.notes("smoke") if done.plan.scale == "smoke" else ()
    for sentence in (*notes, *done.missing):
        console.print(sentence, soft_wrap=True)
    for claim in done.claims:
        console.print(f"{claim.verdict:15} {claim.text}: {claim.why}", soft_wrap=True)
    console.print(f"{done.folder / 'table.md'}", soft_wrap=True)


@with_keywords()
def reproduce(
    name: str,
    scale: Scale = "small",
    out: str | Path = "reproduction",
    *,
    seeds: int | str | Sequence[int] | None = None,
    data_dir: str | Path | None = None,
    jobs: int = 1,
    watch: CellWatch | None = None,
) -> Reproduced:
    """Return a table or figure of a paper, made again: its figures, ours, and verdicts.

    All is written to a folder of the experiment's name in `out`. The same call continues there
    after an interruption.

    Parameters
    ----------
    name
        The table or figure, as in ``"fedc2i-table1"``; ``coalitions reproduce --list`` lists them.
    scale
        ``"smoke"``: seconds, on generated data. ``"small"``: at most twenty minutes on two cores.
        ``"paper"``: all that the paper did.
    out
        Folder of all experiments. They share the runs that they have in common.
    seeds
        How many seeds, or which ones; 1 at smoke, 5 or fewer else, if None.
    data_dir
        Folder with data files; ``$COALITIONS_DATA`` if None.
    jobs
        Runs at a time, each a process with one thread; 0 for one on each core. Results do not
        depend on it.
    watch
        Is told how far the runs are.
    """
    if scale not in get_args(Scale):
        raise InvalidInputError(f"scale is {scale!r}; it can be: {', '.join(get_args(Scale))}")
    folder = None if data_dir is None else Path(data_dir)
    planned = plan(name, scale, Path(out), seeds=seeds, data_dir=folder)
    command = typed_command(name, scale, seeds, folder)
    return carry_out(planned, jobs=jobs, watch=watch, command=command)


def typed_command(
    name: str, scale: Scale, seeds: int | str | Sequence[int] | None, data_dir: Path | None
) -> str:
    """Return the command that repeats an experiment; the reader knows where the data are."""
    words = ["coalitions", "reproduce", name, "--scale", scale]
    if seeds is not None:
        words += ["--seeds", str(seeds) if isinstance(seeds, int | str) else _listed(seeds)]
    words += [] if data_dir is None else ["--data-dir", "DIR"]
    return shlex.join(words)


def _listed(seeds: Sequence[int]) -> str:
    """Return seeds as the command line takes them; one alone is a range, as a number counts."""
    return ",".join(map(str, seeds)) if len(seeds) > 1 else f"{seeds[0]}-{seeds[0]}"


def plan(
    name: str,
    scale: Scale,
    out: Path,
    *,
    seeds: int | str | Sequence[int] | None = None,
    data_dir: Path | None = None,
) -> Plan:
    """Return an experiment with all its runs, checked before the first of them.

    Runs are kept by their settings, so that experiments share those that they have in common.

    Parameters
    ----------
    name
        A name of `EXPERIMENTS`.
    scale
        How much is done.
    out
        Folder that has, or will have, a folder of the experiment's name.
    seeds
        How many seeds, or which ones; what is usual at the scale if None.
    data_dir
        Where data files are.
    """
    experiment = EXPERIMENTS[name]()
    experiment.data_dir, experiment.folder = data_dir, out / name
    asked = experiment.seeds[scale] if seeds is None else seeds
    numbers = tuple(seeds_of(asked, experiment.first_seed))
    shared: dict[str, Any] = {}
    if scale == "smoke":
        shared["workers"] = 1  # such runs are over before workers have started
    elif data_dir is not None:
        shared["data_dir"] = str(data_dir.resolve())
    runs = {}
    once, last = experiment.once(scale), LastData()
    for key, given in experiment.runs(scale).items():
        config = checked(RunConfig.of({**shared, **given, "seed": 0}), last=last).config
        title = ", ".join(part for part in key if part)
        place = kept_place(out / "runs", config)
        runs[key] = tuple(
            planned_cell(title, replace(config, seed=seed), place / f"seed{seed}", last=last)
            for seed in (numbers[:1] if key[1] in once else numbers)
        )
    return Plan(name, experiment, scale, numbers, out / name, runs)


def carry_out(
    plan: Plan, *, jobs: int = 1, watch: CellWatch | None = None, command: str = ""
) -> Reproduced:
    """Return what came out of an experiment, and write it to its folder.

    Parameters
    ----------
    plan
        The experiment; see `plan`.
    jobs
        Runs at a time, see `learners.experiments.resumable_runs.tried_cells`. Rows without
        a result, because their models did not stay finite, are left out, and the table says so.
    watch
        Told of the runs as they go.
    command
        What was typed, to be repeated.
    """
    needed("matplotlib")
    experiment, scale = plan.experiment, plan.scale
    cells = plan.cells
    folders = [cell.folder for cell in cells]
    made = dict(zip(folders, tried_cells(cells, jobs=jobs, watch=watch), strict=True))
    results, failed = {}, {}
    for key, each in plan.runs.items():
        outcomes = [made[cell.folder] for cell in each]
        errors = [outcome for outcome in outcomes if isinstance(outcome, NoSolutionError)]
        if errors:
            failed[key] = errors[0]
        else:
            results[key] = [outcome for outcome in outcomes if isinstance(outcome, Result)]
    if failed and not results:
        raise next(iter(failed.values()))
    found = experiment.measured(results, scale, plan.seeds)
    claims = experiment.judged(found, results, scale, len(plan.seeds))
    missing = tuple(f"Not in the table: {error}." for error in failed.values())
    reproduced = Reproduced(plan, found, experiment.printed, claims, missing)
    plan.folder.mkdir(parents=True, exist_ok=True)
    _write(reproduced, experiment.figures(found, results, scale), command)
    write_summary(plan.folder.parent)
    return reproduced


def _write(done: Reproduced, figures: Mapping[str, Figure], command: str) -> None:
    plan = done.plan
    document = {**done.to_dict(), "command": command, "machine": machine_of_today()}
    files = files_of(plan.experiment, done.found, done.claims, document)
    for name, figure in figures.items():
        for kind in ("svg", "png"):
            files[f"{name}.{kind}"] = picture(figure, kind, dpi=120)
    for key, (cell, *_) in plan.runs.items():
        files[f"configurations/{_slug(key)}.toml"] = cell.config.toml().encode()
    for name, content in files.items():
        path = plan.folder / name
        path.parent.mkdir(exist_ok=True)
        write_whole(path, content)


def _slug(key: Key) -> str:
    """Return a folder's name for a row and its columns.

    Examples
    --------
    >>> _slug(("FedAvg+FT", "MNIST, 10 clients"))
    'fedavg+ft--mnist-10-clients'
    """
    parts = (re.sub(r"[^\w+.=-]+", "-", part.lower()).strip("-") for part in key if part)
    return "--".join(parts)
