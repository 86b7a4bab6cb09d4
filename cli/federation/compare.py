"""`coalitions compare`: several methods on the same data, several seeds, one row each."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.federation import _run_options as flags
from cli.federation._comparison_formats import ENDINGS, FORMATS, print_table
from cli.federation._comparison_progress import ComparisonLine
from cli.federation._round_progress import RoundProgress
from cli.terminal.completion import check_names, completion
from cli.terminal.output import Json, Plugin, Quiet, Verbose, loudness, stderr, stdout
from coalitions.errors import InvalidInputError, did_you_mean

if TYPE_CHECKING:
    from learners.runs.comparison import PlannedRun
    from learners.runs.run import Result


@flags.takes_settings("algorithm", "seed", "evaluate_every")
def compare_command(
    *,
    config: Annotated[
        Path | None, typer.Argument(help="Settings as TOML that all runs share.")
    ] = None,
    algorithms: Annotated[
        str,
        typer.Option(
            metavar="A,B,…",
            help="Methods, or `all`; `coalitions algorithms` lists them.",
            autocompletion=completion("algorithms", several=True),
        ),
    ] = "local,fedavg",
    seeds: Annotated[str, typer.Option(metavar="N,N,…", help="Seeds.")] = "0,1,2",
    given: Mapping[str, Any],
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="[ALGORITHM.]OPTION=VALUE",
            help="An option of one method, as in fedprox.mu=0.1, or of all that have it.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the runs' folders; the same command goes on with what is there."
            " [default: nothing is kept]"
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace runs in --out that have other settings.")
    ] = False,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Method to take differences from. [default: the best one]"
        ),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="table, csv (a line per run), json, markdown or latex. [default: table, or"
            " what --output ends in]",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Also write the comparison to this file, in --format.")
    ] = None,
    json_output: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    plugin: Plugin = None,
) -> None:
    """Compare federated methods over seeds: means, ranks, paired differences, one row each.

    Example: coalitions compare --algorithms local,fedavg,fedprox --seeds 0,1,2 --out runs/three
    """
    loudness(quiet, verbose)
    numbers = _seeds(seeds)
    target = _Target.of(format_, output, json_output)
    if algorithms != "all" and config is None:  # a file may name plug-ins
        for name in _names(algorithms):
            check_names({"algorithms": name}, plugin)
    from dataclasses import fields

    from learners.algorithm import ALGORITHMS
    from learners.runs.comparison import planned_runs

    names = ALGORITHMS.names() if algorithms == "all" else _names(algorithms)
    known = {name: {each.name for each in fields(ALGORITHMS[name])} for name in names}
    _check_name("--baseline", baseline, names)
    shared = flags.settings(config, given, None, plugin)
    shared.pop("options")
    planned = planned_runs(shared, _options(option, known), numbers, out, force=force)
    results = _results(planned, out, quiet=quiet, verbose=verbose)
    document = comparison_document(results, numbers, baseline)
    target.write(document)


def _results(
    planned: Sequence[PlannedRun], out: Path | None, *, quiet: bool, verbose: bool
) -> dict[str, list[Result]]:
    """Return each method's results, one per seed, with a line on how far things are."""
    messages = stderr()

    def say(words: str) -> None:
        if not quiet:
            messages.print(words, style="dim", soft_wrap=True)

    stages = [each.stage for each in planned]
    if out is None:
        say("The runs are not kept: --out DIR keeps them, and goes on after an interruption.")
    elif "finished" in stages or "begun" in stages:
        say(
            f"{out}: {stages.count('finished')} of {len(planned)} runs are there,"
            f" {stages.count('begun')} to be resumed."
        )
    results: dict[str, list[Result]] = {}
    methods = [each.config.algorithm for each in planned]
    try:
        shown = not quiet and not verbose
        with ComparisonLine(methods, planned[0].config.rounds, shown=shown) as line:
            for each in planned:
                line.begin(each.config.algorithm, each.config.seed)
                progress = RoundProgress(each.config, verbose=True) if verbose else line
                result = each.result(progress.update)
                line.end(result.seconds)
                results.setdefault(each.config.algorithm, []).append(result)
    except KeyboardInterrupt:
        if out is not None:
            say("The same command goes on from here.")
        raise
    return results


def comparison_document(
    results: Mapping[str, Sequence[Result]], seeds: Sequence[int], baseline: str | None
) -> dict[str, Any]:
    """Return what `--json` prints: methods compared with the baseline, the best if None."""
    from learners.runs.comparison import poisoned_clients
    from learners.runs.paired import CONFIDENCE, best_of, ranks, standings

    scores = {
        name: [result.mean_test_accuracy for result in runs] for name, runs in results.items()
    }
    best = best_of(scores)
    baseline = baseline or best[0]
    standing = standings(scores, baseline)
    places = ranks(scores)
    config = results[baseline][0].config
    liars = poisoned_clients(config.poison)
    rows = {}
    for name, runs in results.items():
        own = standing[name]
        rows[name] = {
            "mean_test_accuracy": own.mean,
            "sd": own.sd,
            "per_seed": scores[name],
            "rank": own.rank,
            "difference": asdict(own.difference),
            "clients": _gains(runs, results[baseline], liars),
            **_means(runs),
            "runs": [
                {
                    "seed": seed,
                    "mean_test_accuracy": run.mean_test_accuracy,
                    "worst_client_accuracy": run.worst_client_accuracy,
                    "per_client_test_accuracy": run.per_client_test_accuracy,
                    "rank": place,
                    "difference": run.mean_test_accuracy - other,
                    "communication": {way: run.communication[way] for way in ("up", "down")},
                    "epsilon": run.epsilon,
                    "seconds": run.seconds,
                    "out": None if run.out is None else str(run.out),
                }
                for seed, run, place, other in zip(
                    seeds, runs, places[name], scores[baseline], strict=True
                )
            ],
        }
    return {
        "settings": {
            "dataset": config.dataset,
            "clients": config.clients,
            "partition": config.partition,
            "rounds": config.rounds,
        },
        "seeds": list(seeds),
        "baseline": baseline,
        "best": best,
        "confidence": CONFIDENCE,
        "algorithms": rows,
    }


def _means(runs: Sequence[Result]) -> dict[str, Any]:
    """Return the figures of a method besides its accuracy, over its seeds."""
    import statistics

    return {
        "model": runs[0].metrics["model"],
        "other_models": {
            kind: statistics.fmean(run.metrics[f"{kind}{_ACCURACY}"] for run in runs)
            for kind in _other_models(runs[0])
        },
        "worst_client_accuracy": statistics.fmean(run.worst_client_accuracy for run in runs),
        "communication": {
            way: round(statistics.fmean(run.communication[way] for run in runs))
            for way in ("up", "down")
        },
        "private": runs[0].privacy is not None,
        "epsilon": _most([run.epsilon for run in runs]),
        "seconds": statistics.fmean(run.seconds for run in runs),
    }


def _gains(
    ours: Sequence[Result], theirs: Sequence[Result], liars: Collection[int]
) -> dict[str, int]:
    """Count the honest clients of all seeds that are better, equally and worse off with ours."""
    counts = {"better": 0, "equal": 0, "worse": 0}
    for one, other in zip(ours, theirs, strict=True):
        pairs = zip(one.per_client_test_accuracy, other.per_client_test_accuracy, strict=True)
        for client, (a, b) in enumerate(pairs):
            if a is not None and b is not None and client not in liars:
                counts["better" if a > b else "equal" if a == b else "worse"] += 1
    return counts


def _most(spent: Sequence[float | None]) -> float | None:
    """Return the ε of the worst seed; None if one has no finite ε."""
    finite = [each for each in spent if each is not None]
    return max(finite) if len(finite) == len(spent) else None


_ACCURACY = "_mean_test_accuracy"


def _other_models(result: Result) -> list[str]:
    """Return what else a method has for its clients: the global model besides personal ones."""
    return [key.removesuffix(_ACCURACY) for key in result.metrics if key.endswith(_ACCURACY)]


@dataclass(frozen=True)
class _Target:
    """Where the comparison goes: a format on stdout, and maybe a file in a format."""

    printed: str
    file: Path | None
    written: str

    @classmethod
    def of(cls, format_: str | None, output: Path | None, json_output: bool) -> _Target:
        """Check before the first run what could only fail after the last."""
        _check_name("--format", format_, list(FORMATS))
        if output is None:
            if json_output and format_ not in (None, "json"):
                raise InvalidInputError(f"--json and --format {format_} both decide: give one")
            return cls("json" if json_output else format_ or "table", None, "")
        if output.is_dir():
            raise InvalidInputError(f"--output {output} is a folder; give a file")
        written = format_ or ENDINGS.get(output.suffix.lower())
        if written is None:
            raise InvalidInputError(
                f"--output {output}: its ending says no format; end it in"
                f" {', '.join(ENDINGS)}, or give --format"
            )
        if not os.access(output.parent, os.W_OK):
            raise InvalidInputError(
                f"--output {output}: there is no folder {output.parent} to write to"
            )
        return cls("json" if json_output else "table", output, written)

    def write(self, document: Mapping[str, Any]) -> None:
        """Write the file, then print."""
        if self.file is not None:
            from coalitions.files.writing import atomic_write

            with atomic_write(self.file) as file:
                file.write(FORMATS[self.written](document).encode())
        console = stdout()
        if self.printed == "table" and (console.is_terminal or "COLUMNS" in os.environ):
            print_table(document, console)
        else:  # in a pipe nothing is too wide
            typer.echo(FORMATS[self.printed](document), nl=False)


def _check_name(option: str, name: str | None, there: Sequence[str]) -> None:
    if name is not None and name not in there:
        hint = did_you_mean(name, there)
        raise InvalidInputError(
            f"{option} {name!r} is unknown; {hint}there are: {', '.join(there)}"
        )


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InvalidInputError("--algorithms names at least one method, as in local,fedavg")
    return list(dict.fromkeys(names))


def _seeds(text: str) -> list[int]:
    try:
        seeds = [int(seed) for seed in text.split(",")]
    except ValueError:
        seeds = [-1]
    if min(seeds) < 0:
        raise InvalidInputError(f"--seeds takes whole numbers from 0, as in 0,1,2; it got {text!r}")
    if len(set(seeds)) < len(seeds):
        raise InvalidInputError(
            f"--seeds {text}: a seed that comes twice gives the same run twice, which is no"
            " repetition"
        )
    return seeds


def _options(
    settings: list[str] | None, known: Mapping[str, set[str]]
) -> dict[str, dict[str, str]]:
    """Return each method's own options, given the names of those it has."""
    options: dict[str, dict[str, str]] = {name: {} for name in known}
    for setting in settings or ():
        target, equals, value = setting.partition("=")
        name, _, option = target.rpartition(".")
        option = option.replace("-", "_")
        if not equals or not option or (name and name not in known):
            raise InvalidInputError(
                "--set takes OPTION=VALUE, or ALGORITHM.OPTION=VALUE for one of --algorithms,"
                f" as in fedprox.mu=0.1; it got {setting!r}"
            )
        having = [name] if name else [each for each in known if option in known[each]]
        if not having:
            raise InvalidInputError(
                f"--set {setting}: none of the methods has an option {option!r}"
            )
        for each in having:
            options[each][option] = value
    return options


COMMANDS = {"compare": compare_command}
