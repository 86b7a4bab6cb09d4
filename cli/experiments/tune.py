"""`coalitions tune`: choose options with the same budget for every method."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.experiments._progress import CellsLine
from cli.experiments._seeds import seeds_of
from cli.experiments._tuned import tuned_text
from cli.terminal import run_options as flags
from cli.terminal.completion import completion
from cli.terminal.output import (
    Json,
    Plugin,
    Quiet,
    Verbose,
    loudness,
    print_json,
    stderr,
    stdout,
)
from coalitions.errors import InvalidInputError

if TYPE_CHECKING:
    from learners.comparisons.cells import Cell
    from learners.tuning.search import Found, Search, Strategy


@flags.takes_settings("algorithm", "seed", "evaluate_every", "evaluate_on")
def tune_command(
    *,
    config: Annotated[
        Path | None, typer.Argument(help="Settings as TOML that all runs share.")
    ] = None,
    algorithms: Annotated[
        str,
        typer.Option(
            metavar="A,B,…",
            help="Methods; `coalitions algorithms` lists them.",
            autocompletion=completion("algorithms", several=True),
        ),
    ],
    trials: Annotated[
        int, typer.Option(min=2, help="Points tried of each method, its defaults first.")
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
            help="What to search, or values with commas. [default: lr and the method's numbers]",
        ),
    ] = None,
    seeds: Annotated[
        str, typer.Option(metavar="N,N,…", help="Seeds to tune on; `compare` will not report them.")
    ] = "1000,1001",
    search_seed: Annotated[int, typer.Option(min=0, help="Source of the points.")] = 0,
    given: Mapping[str, Any],
    by: Annotated[
        str | None,
        typer.Option(metavar="METRIC", help="What to search for. [default: accuracy if there is]"),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=0, help="Runs at a time, as for `compare`; 0: one for each core.")
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the runs' folders; the same command goes on with what is there."
            " [default: nothing is kept]"
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="TOML file for `compare`. [default: tuned.toml in --out; without it, printed]"
        ),
    ] = None,
    json_output: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    plugin: Plugin = None,
) -> None:
    """Search for good options, on held-out data of seeds that are not reported.

    Every method gets the same number of trials, rounds and seeds.

    Example: coalitions tune --algorithms fedprox,ditto --trials 9 --jobs 2 --out runs/tuning
    """
    loudness(quiet, verbose)
    numbers = seeds_of(seeds)
    target = output or (None if out is None else out / "tuned.toml")
    if output is not None and (output.is_dir() or not os.access(output.parent, os.W_OK)):
        raise InvalidInputError(
            f"--output {output}: there is no folder {output.parent} to write to"
        )
    from coalitions.plugins import import_plugins
    from learners.tuning.search import tune

    shared = flags.settings(config, given, None, plugin)
    shared.pop("options")
    import_plugins(shared.get("plugins", ()))
    search = _search(shared, algorithms, space or (), numbers, trials, strategy, search_seed)
    progress = _Progress(search, jobs, out, quiet=quiet, verbose=verbose)
    try:
        found = tune(search, out, metric=by, carry=progress.carry)
    except KeyboardInterrupt:
        if out is not None and not quiet:
            stderr().print("The same command goes on from here.", style="dim")
        raise
    text = tuned_text(search, found)
    if target is not None:
        from coalitions.files.writing import atomic_write

        with atomic_write(target) as file:
            file.write(text.encode())
    if json_output:
        print_json(_document(search, found, target))
    elif target is None:
        typer.echo(text, nl=False)
    else:
        _show(search, found, target)


def _search(
    shared: Mapping[str, Any],
    algorithms: str,
    spaces: Sequence[str],
    seeds: Sequence[int],
    trials: int,
    strategy: str,
    seed: int,
) -> Search:
    from learners.algorithm import ALGORITHMS
    from learners.settings.config import RunConfig
    from learners.tuning.search import Search
    from learners.tuning.space import read_space, space_of

    if strategy not in ("random", "halving"):
        raise InvalidInputError(f"--strategy is random or halving, not {strategy!r}")
    way: Strategy = "halving" if strategy == "halving" else "random"

    names = [name.strip() for name in algorithms.split(",") if name.strip()]
    for name in names:
        ALGORITHMS[name]
        if names.count(name) > 1:
            raise InvalidInputError(f"--algorithms: {name} comes twice; give it once")
    if not names:
        raise InvalidInputError("--algorithms names at least one method, as in fedprox,ditto")
    given = [read_space(text) for text in spaces]
    for number, (row, key, _) in enumerate(given):
        if row and row not in names:
            raise InvalidInputError(f"--space {row}.{key}: {row} is none of --algorithms")
        if (row, key) in [(other, also) for other, also, _ in given[:number]]:
            raise InvalidInputError(f"--space of {key} is given twice; give it once")
    lr = RunConfig.of(shared).lr
    found = {name: space_of(name, lr, given) for name in names}
    for row, key, _ in given:
        if not row and not any(key in each for each in found.values()):
            raise InvalidInputError(f"--space {key}: none of the methods has an option {key!r}")
    return Search(shared, found, seeds, trials, way, seed)


class _Progress:
    """Carries out the cells of each rung, with a line on how far things are."""

    def __init__(
        self, search: Search, jobs: int, out: Path | None, *, quiet: bool, verbose: bool
    ) -> None:
        self._jobs, self._quiet, self._verbose = jobs, quiet, verbose
        if quiet:
            return
        for name, space in search.spaces.items():
            told = "; ".join(f"{key} {dimension}" for key, dimension in space.items())
            self._say(f"{name}: {told}")
        self._say(f"Each method: {search.trials} trials, {search.cost} rounds of training in all.")
        if out is None:
            self._say("The runs are not kept: --out DIR keeps them, and goes on after a stop.")

    def _say(self, words: str) -> None:
        stderr().print(words, style="dim", soft_wrap=True, markup=False)

    def carry(self, cells: Sequence[Cell]) -> Sequence[Any]:
        """Carry out the cells of a rung."""
        from learners.comparisons.cells import tried_cells

        with CellsLine(cells, self._jobs, shown=not self._quiet, verbose=self._verbose) as line:
            return tried_cells(cells, jobs=self._jobs, watch=line)


def _document(search: Search, found: Found, target: Path | None) -> dict[str, Any]:
    return {
        "metric": found.metric,
        "seeds": list(search.seeds),
        "trials": search.trials,
        "strategy": search.strategy,
        "rounds_each": search.cost,
        "algorithms": {
            name: {
                "space": {key: str(dimension) for key, dimension in search.spaces[name].items()},
                "best": best.document(),
                "trials": [each.document() for each in found.trials if each.algorithm == name],
            }
            for name, best in found.best.items()
        },
        "output": None if target is None else str(target),
    }


def _show(search: Search, found: Found, target: Path) -> None:
    console = stdout()
    for name, best in found.best.items():
        values = " ".join(f"{key}={value}" for key, value in best.values.items())
        usual = [each for each in found.trials if each.algorithm == name and not each.number][-1]
        was = "not finite" if usual.score is None else f"{usual.score:.4f}"
        at = "" if usual.rounds == best.rounds else f" in round {usual.rounds}"
        console.print(
            f"{name:<12}{found.metric} {best.score:.4f} (as it is: {was}{at})"
            f"  {values or 'as it is'}",
            soft_wrap=True,
            markup=False,
        )
    console.print(f"{target}: for `coalitions compare {target}`", soft_wrap=True, markup=False)


COMMANDS = {"tune": tune_command}
