"""`coalitions compare`: several methods on the same data, several seeds, one row each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.experiments._progress import CellsLine
from cli.experiments._shared import (
    SEEDS,
    SEEDS_HELP,
    Algorithms,
    Seed,
    Shared,
    check_overruled,
    shared_by_all,
    tuned_on,
    tuned_settings,
)
from cli.terminal import run_options as flags
from cli.terminal.completion import check_names
from cli.terminal.output import (
    WRITTEN,
    Json,
    Plugin,
    Quiet,
    Verbose,
    say_loading,
    split_names,
    stderr,
    stdout,
)
from coalitions.errors import InvalidInputError, did_you_mean

if TYPE_CHECKING:
    from learners.experiments.resumable_runs import Cell
    from learners.experiments.variants import Variant

_USUAL = ("local", "fedavg")


@flags.takes_settings("algorithm", "seed", "evaluate_every")
def compare_command(
    *,
    config: Annotated[
        Path | None,
        typer.Argument(
            help="Settings of all runs, as TOML; its algorithm, with its [options], is a row."
        ),
    ] = None,
    algorithms: Algorithms = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            metavar='"NAME: ALGORITHM KEY=VALUE …"',
            help="One more row: a method with options and settings of its own.",
        ),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME.]KEY=A,B,…",
            help="A row for each value of an option or setting; several give all combinations.",
        ),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar=SEEDS, help=f"{SEEDS_HELP} [default: 3]")
    ] = None,
    seed: Seed = None,
    given: Mapping[str, Any],
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="[NAME.]OPTION=VALUE",
            help="An option of one row, as in fedprox.mu=0.1, or of all that have it.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the runs; repeat the command to continue there."
            " [default: nothing is kept]"
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace runs in --out that have other settings.")
    ] = False,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Row to compare the others with. [default: the best one]"
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC",
            help="Metric to compare by, as in loss. [default: accuracy if there is one]",
        ),
    ] = None,
    by_domain: Annotated[
        bool,
        typer.Option(
            "--by-domain", help="Show the mean of each domain beside the mean of all clients."
        ),
    ] = False,
    jobs: Annotated[
        int,
        typer.Option(
            min=0,
            help="Runs at a time, each a process with one thread; 0 takes as many as there are"
            " cores. Does not change the results.",
        ),
    ] = 1,
    format_: Annotated[
        str | None,
        typer.Option(
            "--as",
            help="table, csv (a line per run), json, markdown or latex. [default: table, or"
            " what --output ends in]",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        WRITTEN,
        typer.Option(help="Also write the comparison to this file, in --as."),
    ] = None,
    plot: Annotated[
        Path | None,
        WRITTEN,
        typer.Option(
            help="Plot the metric against the option that --sweep varies (.svg, .png, .pdf)."
        ),
    ] = None,
    json_output: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    plugin: Plugin = None,
) -> None:
    """Compare federated methods over several seeds: means, ranks and paired differences.

    Example: coalitions compare --algorithms local,fedavg,fedprox --seeds 0,1,2 --out runs/three
    """
    target = Target.of(format_, output, json_output, by_domain)
    check_plot(plot, bool(sweep))
    if config is None:  # a file may name plug-ins
        for name in split_names(algorithms, "--algorithms"):
            if name != "all":
                check_names({"algorithms": name}, plugin)
    say_loading(quiet)
    from learners.experiments.comparison import check_metric, check_row, compared
    from learners.experiments.tuning import check_seeds, not_tuned
    from learners.experiments.variants import planned_runs
    from learners.settings.seeding import seeds_of

    shared = shared_by_all(
        config,
        given,
        plugin,
        algorithms=algorithms,
        seeds=seeds,
        seed=seed,
        also=("baseline", "variants", "tuned", "tuning"),
    )
    numbers = seeds_of(3) if shared.seeds is None else shared.seeds
    tuned = tuned_settings(shared.tables.get("tuned", {}))
    check_seeds(numbers, tuned_on(shared.tables.get("tuning", {})))
    rows = _rows(shared, tuned, variant or (), option or (), sweep or ())
    baseline = _baseline(baseline, shared)
    check_overruled(given, option or (), tuned)
    check_row("--baseline", baseline, rows)
    cells = planned_runs(shared.settings, rows, numbers, out, force=force, tell=_telling(quiet))
    check_metric(by, cells, "--metric {}")
    if by_domain:
        _check_domains(by, cells)
    with _progress(cells, out, jobs, by, quiet=quiet, verbose=verbose) as line:
        comparison = compared(
            rows, cells, out, baseline=baseline, metric=by, jobs=jobs, watch=line,
            untuned=not_tuned(rows, tuned),
        )  # fmt: skip
    if plot is not None:
        comparison.plot(plot)
    if out is not None:
        keep(comparison.to_dict(), out)
    target.write(comparison.to_dict())


def _telling(quiet: bool) -> Callable[[str], None]:
    """Return how to say how data were read: what all rows have in common, once."""
    said: set[str] = set()

    def tell(sentence: str) -> None:
        if sentence not in said and not quiet:
            stderr().print(sentence, style="dim", soft_wrap=True, markup=False)
        said.add(sentence)

    return tell


def _baseline(typed: str | None, shared: Shared) -> str | None:
    """Return the row to take differences from: that of the flag, or of the file."""
    filed = shared.tables.get("baseline")
    if filed is not None and not isinstance(filed, str):
        raise InvalidInputError('baseline in a file names a row, as in baseline = "fedavg"')
    return filed if typed is None else typed


def _rows(
    shared: Shared,
    tuned: Mapping[str, Mapping[str, Any]],
    lines: Sequence[str],
    options: Sequence[str],
    sweeps: Sequence[str],
) -> list[Variant]:
    """Return the rows: methods (tuned if the file says how), variants of the file and flags, swept.

    Parameters
    ----------
    shared
        What the file and flags ask.
    tuned
        What the file says was found for each method.
    lines, options, sweeps
        What --variant, --set and --sweep say.
    """
    from learners.experiments.comparison import comparison_rows
    from learners.experiments.variants import read_sweep, read_variant, tabled_variants

    return comparison_rows(
        algorithms=shared.algorithms,
        variants=[*tabled_variants(shared.tables.get("variants", {})), *map(read_variant, lines)],
        sweeps=list(map(read_sweep, sweeps)),
        tuned=tuned,
        algorithm=shared.algorithm,
        options=shared.options,
        settings=options,
    )


def _check_domains(metric: str | None, cells: Sequence[Cell]) -> None:
    """Refuse what --by-domain cannot show, before the first run."""
    from learners.experiments.variants import poisoned_clients
    from learners.measures.metrics import LOSS

    if metric == LOSS:
        raise InvalidInputError(
            f"--by-domain needs a figure of each client, and runs have the mean {LOSS} only; give"
            " another --by, as in --by log-loss --metric log-loss"
        )
    without = []
    for cell in cells:
        liars = poisoned_clients(cell.config.poison)
        honest = [domain for client, domain in enumerate(cell.domains) if client not in liars]
        if not any(honest):
            without.append(cell.name)
    if without:
        raise InvalidInputError(
            f"--by-domain: the honest clients of {', '.join(dict.fromkeys(without))} have no"
            " domains; choose data that have some, such as digits-domains, or a table with"
            " --group-column"
        )


@contextmanager
def _progress(
    cells: Sequence[Cell],
    out: Path | None,
    jobs: int,
    metric: str | None,
    *,
    quiet: bool,
    verbose: bool,
) -> Iterator[CellsLine]:
    """Show a line on how far the runs are, and how to continue if they are interrupted."""
    from learners.measures.scores import score_of

    messages = stderr()

    def say(words: str) -> None:
        if not quiet:
            messages.print(words, style="dim", soft_wrap=True)

    stages = [cell.stage for cell in cells]
    if out is None:
        say("The runs are not kept. With --out DIR they are, and the same command can continue.")
    elif "finished" in stages or "begun" in stages:
        say(
            f"{out}: {stages.count('finished')} of {len(cells)} runs are finished,"
            f" {stages.count('begun')} will be resumed."
        )
    try:
        with CellsLine(
            cells,
            jobs,
            shown=not quiet,
            verbose=verbose,
            check=lambda result: metric and score_of(result.to_dict(), metric),
        ) as line:
            yield line
    except KeyboardInterrupt:
        if out is not None:
            say("Repeat the command to continue.")
        raise


ENDINGS = {".txt": "table", ".csv": "csv", ".json": "json", ".md": "markdown", ".tex": "latex"}
"""What the name of a file says about its format."""

FIGURES = (".svg", ".png", ".pdf")


def check_plot(path: Path | None, swept: bool) -> None:
    """Refuse before the first run what could only fail after the last."""
    if path is None:
        return
    if not swept:
        raise InvalidInputError("--plot draws the metric against what --sweep varies; give one")
    if path.suffix.lower() not in FIGURES:
        raise InvalidInputError(f"--plot {path}: end its name in {', '.join(FIGURES)}")
    import matplotlib  # noqa: F401 (said now if it is not installed)


@dataclass(frozen=True)
class Target:
    """Where the comparison goes: a format on stdout, and maybe a file in a format."""

    printed: str
    file: Path | None
    written: str
    by_domain: bool

    @classmethod
    def of(
        cls, format_: str | None, output: Path | None, json_output: bool, by_domain: bool
    ) -> Target:
        """Check before the first run what could only fail after the last."""
        _check_name("--as", format_, list(ENDINGS.values()))
        if output is None:
            if json_output and format_ not in (None, "json"):
                raise InvalidInputError(f"--json and --as {format_} both decide: give one")
            return cls("json" if json_output else format_ or "table", None, "", by_domain)
        written = format_ or ENDINGS.get(output.suffix.lower())
        if written is None:
            raise InvalidInputError(
                f"--output {output}: its ending says no format; end it in"
                f" {', '.join(ENDINGS)}, or give --as"
            )
        return cls("json" if json_output else "table", output, written, by_domain)

    def write(self, document: Mapping[str, Any]) -> None:
        """Write the file, then print."""
        if self.file is not None:
            from coalitions.files.writing import atomic_write

            with atomic_write(self.file) as file:
                file.write(self._text(document, self.written).encode())
        from learners.experiments.comparison_tables import print_table

        console = stdout()
        if self.printed == "table" and (console.is_terminal or "COLUMNS" in os.environ):
            print_table(document, console, by_domain=self.by_domain)
        else:  # in a pipe nothing is too wide
            typer.echo(self._text(document, self.printed), nl=False)

    def _text(self, document: Mapping[str, Any], format_: str) -> str:
        from learners.experiments.comparison_tables import FORMATS, TABLES

        if format_ in TABLES:
            return TABLES[format_](document, by_domain=self.by_domain)
        return FORMATS[format_](document)


def keep(document: Mapping[str, Any], out: Path) -> None:
    """Write a comparison into the folder of its runs, as JSON and as a table of all runs."""
    from coalitions.files.writing import write_whole
    from learners.experiments.comparison_tables import FORMATS

    for name, format_ in (("comparison.json", "json"), ("comparison.csv", "csv")):
        write_whole(out / name, FORMATS[format_](document).encode())


def _check_name(option: str, name: str | None, there: Sequence[str]) -> None:
    if name is not None and name not in there:
        hint = did_you_mean(name, there)
        raise InvalidInputError(
            f"{option} {name!r} is unknown; {hint}there are: {', '.join(there)}"
        )


COMMANDS = {"compare": compare_command}
