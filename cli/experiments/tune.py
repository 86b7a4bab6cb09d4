"""`coalitions tune`: choose options with the same budget for every method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.experiments._progress import CellsLine
from cli.experiments._shared import SEEDS, Algorithms, Seed, Shared, shared_by_all
from cli.terminal import run_options as flags
from cli.terminal.output import WRITTEN, Json, Plugin, Quiet, Verbose, print_json, stderr, stdout
from coalitions.errors import InvalidInputError

if TYPE_CHECKING:
    from learners.experiments.resumable_runs import Cell
    from learners.experiments.search_space import TuningSearch


@flags.takes_settings("algorithm", "seed", "evaluate_every", "evaluate_on")
def tune_command(
    *,
    config: Annotated[Path | None, typer.Argument(help="Settings of all runs, as TOML.")] = None,
    algorithms: Algorithms = None,
    trials: Annotated[
        int, typer.Option(min=2, help="Trials of each method; the first has its defaults.")
    ] = 9,
    strategy: Annotated[
        str,
        typer.Option(
            metavar="random|halving",
            help="random: all rounds for each trial; halving: few for all, then three times as"
            " many for the best third, and so on.",
        ),
    ] = "random",
    space: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ALGORITHM.]KEY=LOW..HIGH",
            help="Range to search, or values separated by commas. [default: lr and the"
            " method's numbers]",
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar=SEEDS,
            help="How many seeds to tune on, from 1000 on; or which ones, as in 7,8 or 10-14."
            " `compare` refuses to report them. [default: 2]",
        ),
    ] = None,
    seed: Seed = None,
    search_seed: Annotated[int, typer.Option(min=0, help="Seed of the trials.")] = 0,
    given: Mapping[str, Any],
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="[ALGORITHM.]OPTION=VALUE",
            help="An option that is not searched, of one method or of all that have it.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC", help="Metric to optimise. [default: accuracy if there is one]"
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=0, help="Runs at a time, as for `compare`; 0: one for each core.")
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the runs; repeat the command to continue there."
            " [default: nothing is kept]"
        ),
    ] = None,
    output: Annotated[
        Path | None,
        WRITTEN,
        typer.Option(
            help="TOML file for `compare`. [default: tuned.toml in --out; without it, printed]"
        ),
    ] = None,
    json_output: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    plugin: Plugin = None,
) -> None:
    """Search for good options on validation data, with seeds that compare does not report.

    Every method gets the same number of trials, rounds and seeds.

    Example: coalitions tune --algorithms fedprox,ditto --trials 4 --rounds 5 --out runs/tuning
    """
    target = output or (None if out is None else out / "tuned.toml")
    from learners.experiments.search_space import FIRST_SEED
    from learners.experiments.tuning import searched

    shared = shared_by_all(
        config,
        given,
        plugin,
        algorithms=algorithms,
        seeds=seeds,
        seed=seed,
        first_seed=FIRST_SEED,
    )
    search = _search(shared, option or (), space or (), trials, strategy, search_seed)
    progress = _Progress(search, jobs, out, quiet=quiet, verbose=verbose)
    try:
        found = searched(search, out, metric=by, carry=progress.carry)
    except KeyboardInterrupt:
        if out is not None and not quiet:
            stderr().print("Repeat the command to continue.", style="dim")
        raise
    text = found.to_toml()
    if target is not None:
        from coalitions.files.writing import atomic_write

        with atomic_write(target) as file:
            file.write(text.encode())
    if json_output:
        print_json(found.to_dict() | {"output": None if target is None else str(target)})
    elif target is None:
        typer.echo(text, nl=False)
    else:
        stdout().print(str(found), soft_wrap=True, markup=False, highlight=False)
        stdout().print(f"{target}: for `coalitions compare {target}`", soft_wrap=True, markup=False)


def _search(
    shared: Shared,
    options: Sequence[str],
    spaces: Sequence[str],
    trials: int,
    strategy: str,
    seed: int,
) -> TuningSearch:
    from learners.experiments.search_space import read_space, search_of
    from learners.experiments.variants import set_options, value_of, variant_of

    if strategy not in ("random", "halving"):
        raise InvalidInputError(f"--strategy is random or halving, not {strategy!r}")
    own = None if shared.algorithm is None else [shared.algorithm]
    names = own if shared.algorithms is None else shared.algorithms
    if not names:
        raise InvalidInputError("--algorithms names at least one method, as in fedprox,ditto")
    fixed = {
        row.name: {key: value_of(row.name, key, text) for key, text in row.own.items()}
        for row in set_options([variant_of(n, n, {}) for n in names], options)
    }
    return search_of(
        shared.settings,
        fixed,
        [read_space(text) for text in spaces],
        seeds=2 if shared.seeds is None else shared.seeds,
        trials=trials,
        strategy=strategy,
        seed=seed,
        kept={name: shared.options_of(name) for name in names},
    )


class _Progress:
    """Carries out the cells of each rung, with a line on how far things are."""

    def __init__(
        self, search: TuningSearch, jobs: int, out: Path | None, *, quiet: bool, verbose: bool
    ) -> None:
        self._jobs, self._quiet, self._verbose = jobs, quiet, verbose
        if quiet:
            return
        for name, space in search.spaces.items():
            ranges = "; ".join(f"{key} {dimension}" for key, dimension in space.items())
            self._say(f"{name}: {ranges}")
        self._say(f"Each method: {search.trials} trials, {search.cost} rounds of training in all.")
        if out is None:
            self._say(
                "The runs are not kept. With --out DIR they are, and the same command can continue."
            )

    def _say(self, words: str) -> None:
        stderr().print(words, style="dim", soft_wrap=True, markup=False)

    def carry(self, cells: Sequence[Cell]) -> Sequence[Any]:
        """Carry out the cells of a rung."""
        from learners.experiments.resumable_runs import tried_cells

        with CellsLine(cells, self._jobs, shown=not self._quiet, verbose=self._verbose) as line:
            return tried_cells(cells, jobs=self._jobs, watch=line)


COMMANDS = {"tune": tune_command}
