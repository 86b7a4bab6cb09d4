"""`coalitions value`: all solution concepts, for games, graphs and tables of data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.data_files import DataQuestion, number_of, read_data_game, rule_of
from cli.games._concepts import CONCEPTS, NETWORKS, ConceptQuestion, Document
from cli.games._game_file import read_game
from cli.terminal.completion import completion, registered
from cli.terminal.output import (
    Format,
    Json,
    Output,
    Plot,
    Quiet,
    Seed,
    Symmetrise,
    Threshold,
    check_output,
    check_plot,
    draw,
    figure,
    print_json,
    save_output,
    stdout,
    visible,
)
from cli.terminal.progress import EvaluationLine
from coalitions.errors import InvalidInputError, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from cli.games._game_file import FileGame
    from coalitions.problems.named import NamedGame
    from coalitions.values.estimate import Estimate, Interactions


def value_command(
    file: Annotated[
        str,
        typer.Argument(
            help="Synergy graph (.csv .tsv .xlsx .npy .npz .json .graphml .edges), or .json with"
            " the 2^n values of a game; - with --format. With --target: a table of data (.csv .tsv"
            " .xlsx)."
        ),
    ],
    concept: Annotated[
        str,
        typer.Option(
            help="shapley, banzhaf, beta-shapley, nucleolus, prenucleolus, least-core, core, owen,"
            " payoffs, myerson, shapley-interaction, banzhaf-interaction, or interactions of any"
            " order."
        ),
    ] = "shapley",
    method: Annotated[
        str | None,
        typer.Option(
            help=f"auto, or {', '.join(registered('estimators'))}; for banzhaf, beta-shapley:"
            f" {', '.join(registered('semivalues'))}; for pairs:"
            f" {', '.join(registered('pairs'))}; for any order:"
            f" {', '.join(registered('interactions'))}. Not every concept has them all.",
            autocompletion=completion("estimators"),
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            help="Most coalitions to evaluate, where a concept can sample. [default: shapley: all"
            " 2^n up to 16 players, else 100·n]"
        ),
    ] = None,
    target_error: Annotated[
        float | None,
        typer.Option(help="Stop once no player's standard error is larger than this."),
    ] = None,
    seed: Seed = 0,
    alpha: Annotated[
        float | None,
        typer.Option(help="For beta-shapley: larger favours small coalitions. [default: 1]"),
    ] = None,
    beta: Annotated[
        float | None,
        typer.Option(help="For beta-shapley: larger favours large coalitions. [default: 1]"),
    ] = None,
    structure: Annotated[
        Path | None,
        typer.Option(
            help='For owen and payoffs: JSON with "coalitions", as solve --output writes.'
        ),
    ] = None,
    links: Annotated[
        Path | None, typer.Option(help="For myerson: a graph file with the links between players.")
    ] = None,
    index: Annotated[
        str | None,
        typer.Option(
            help=f"For interactions: {', '.join(registered('indices'))}. [default: k-SII]",
            autocompletion=completion("indices"),
        ),
    ] = None,
    order: Annotated[
        int | None, typer.Option(help="For interactions: most players in a coalition. [default: 2]")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="Read the file as a table of data, and predict this column."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help=f"Model to train, with --target: {', '.join(registered('data-models'))}, or one"
            " of a plug-in. [default: linear]",
            autocompletion=completion("data-models"),
        ),
    ] = None,
    units: Annotated[
        str | None,
        typer.Option(
            help="What to value, with --target: features (the default), points, or a column that"
            " names the sources."
        ),
    ] = None,
    symmetrise: Symmetrise = None,
    threshold: Threshold = None,
    missing: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|mean|median|drop",
            help="Value for blank cells: a number, or with --target also mean or median of the"
            " training rows, or drop to leave out the row. [default: refuse blanks]",
        ),
    ] = None,
    file_format: Format = None,
    output: Output = None,
    plot: Plot = None,
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compute Shapley values, the nucleolus, interactions and more, also of a table of data.

    Example: coalitions value examples/data/three_domains.csv --concept prenucleolus

    Example: coalitions value examples/data/three_domains.csv --concept interactions --order 3

    Example: coalitions value examples/data/patients.csv --target readmitted --units hospital
    """
    if concept not in CONCEPTS:
        hint = did_you_mean(concept, CONCEPTS)
        raise UnknownNameError(
            f"there is no concept named {concept!r}; {hint}there are: {', '.join(CONCEPTS)}"
        )
    answer, takes = CONCEPTS[concept]
    given: dict[str, object] = {"method": method, "budget": budget, "target_error": target_error}
    given |= {
        "alpha": alpha,
        "beta": beta,
        "structure": structure,
        "links": links,
        "index": index,
        "order": order,
    }
    for option, setting in given.items():
        if setting is not None and option not in takes:
            raise InvalidInputError(f"{concept} does not take --{option.replace('_', '-')}")
    check_output(output)
    check_plot(plot, network=concept in NETWORKS)
    game: FileGame | NamedGame
    understood: Document = {}
    if target is None:
        if model is not None or units is not None:
            raise InvalidInputError("--model and --units are for tables of data: give --target")
        if Path(file).suffix.lower() == ".parquet":
            raise InvalidInputError(f"{file}: is a table of data: give --target, a column of it")
        game = read_game(
            file,
            file_format=file_format,
            symmetrise=symmetrise,
            missing=number_of(missing),
            threshold=threshold,
            quiet=quiet,
        )
    else:
        if (file_format, symmetrise, threshold) != (None, None, None):
            raise InvalidInputError("--format, --symmetrize and --threshold are for synergy graphs")
        data = DataQuestion(
            file, target, model or "linear", units or "features", seed, rule_of(missing)
        )
        game, understood = read_data_game(data, quiet=quiet)
    with EvaluationLine(quiet=quiet) as progress:
        found = answer(
            ConceptQuestion(
                concept,
                game,
                method or "auto",
                budget,
                target_error,
                seed,
                1.0 if alpha is None else alpha,
                1.0 if beta is None else beta,
                structure,
                links,
                index or "k-SII",
                2 if order is None else order,
                progress,
            )
        )
    document = {"concept": concept, **found.document, **understood}
    if json_output:
        print_json(document)
    else:
        _print(document, found.drawn)
    save_output(
        output,
        {concept: found.drawn},
        document,
        title=concept.capitalize(),
        said=" ".join(line.strip() for line in _remarks(document)),
    )
    draw(found.drawn, plot)
    if document.get("stopped") == "interrupted":
        typer.echo("interrupted: these are the estimates so far", err=True)
        raise typer.Exit(130)


def _print(document: Document, found: Estimate | Interactions) -> None:
    from rich.table import Table

    from coalitions.values.estimate import Interactions

    console = stdout()
    if "interactions" in document or isinstance(found, Interactions):
        title = document.get("index", "interaction")
        table = Table("players", title, "± standard error", box=None, pad_edge=False)
        for pair in document["interactions"]:
            name = visible(" – ".join(pair["coalition"]))
            table.add_row(name, figure(pair["value"], 6), f"{pair['error']:.2g}")
        table.columns[2].justify = "right"
    else:
        table = _bars(found, document["concept"], list(document["values"]))
    table.columns[1].justify = "right"
    console.print(table)
    for line in _remarks(document):
        console.print(line, soft_wrap=True)


BAR_WIDTH = 40
"""Characters of a bar chart, from the smallest to the largest end of an interval."""


def _bars(found: Estimate, concept: str, names: Sequence[str]) -> Table:
    """Return shares as numbers, and as bars with intervals if they are not exact."""
    from rich.table import Table

    exact = not found.stderr.any()
    low, high = found.interval()
    left = min(0.0, float(low.min()))
    span = max(0.0, float(high.max())) - left
    noise = 1e-12 * float(abs(found.values).max())  # what sums leave of nothing
    table = Table("player", concept, box=None, pad_edge=False)
    if not exact:
        table.add_column("± standard error", justify="right")
    table.add_column("" if exact else "with 95 % interval")
    for k, name in enumerate(names):
        value = 0.0 if abs(found.values[k]) < noise else found.values[k]
        error = () if exact else (f"{found.stderr[k]:.2g}",)
        ends = _place(low[k], left, span), _place(high[k], left, span)
        bar = _bar(_place(value, left, span), _place(0.0, left, span), ends)
        table.add_row(visible(name), figure(value, 6), *error, bar)
    return table


def _place(number: float, left: float, span: float) -> int:
    """Return the column of a number."""
    return round((number - left) / span * (BAR_WIDTH - 1)) if span > 0 else 0


def _bar(value: int, zero: int, interval: tuple[int, int]) -> str:
    """Return a bar from zero to the value, with the interval drawn over it."""
    cells = [" "] * BAR_WIDTH
    for column in range(min(value, zero), max(value, zero) + 1):
        cells[column] = "█"
    low, high = interval
    if low < high:
        for column in range(low, high + 1):
            cells[column] = "▓" if cells[column] == "█" else "─"
        cells[low], cells[high] = "├", "┤"
    cells[zero] = "│" if cells[zero] in " ─" or value == zero else cells[zero]
    return "".join(cells).rstrip()


def _remarks(document: Document) -> list[str]:
    """Return what there is to say below the table."""
    if "epsilon" in document:
        empty = "empty" if document["core_is_empty"] else "not empty"
        return [f"\nleast core at ε = {figure(document['epsilon'], 6)}: the core is {empty}"]
    if "verified" in document:
        word = "verified" if document["verified"] else "NOT verified"
        return [f"\n{word} in {len(document['stages'])} stages"]
    if "method" in document:
        lines = [f"\n{document['method']}, {document['evaluations']} evaluations"]
        if document.get("reason"):
            lines[0] += f": {document['reason']}"
        if "metric" in document:
            lines.append(
                f"values are shares of {document['metric']} on {document['test']} test rows, after"
                f" learning from {document['train']}"
            )
        return lines
    return []


COMMANDS = {"value": value_command}
