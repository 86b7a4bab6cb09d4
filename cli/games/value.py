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
    Plot,
    Plugin,
    Quiet,
    Seed,
    Symmetrise,
    Threshold,
    check_plot,
    draw,
    figure,
    loudness,
    print_json,
    stdout,
    visible,
)
from cli.terminal.progress import EvaluationLine
from coalitions.errors import InvalidInputError, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from cli.games._game_file import FileGame
    from coalitions.problems.named import NamedGame


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
        str | None,
        typer.Option(
            help="banzhaf (the default; shapley with --target), shapley, beta-shapley, nucleolus,"
            " prenucleolus, least-core, core, owen, payoffs, myerson, shapley-interaction,"
            " banzhaf-interaction, or interactions of any order."
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help=f"auto, or for banzhaf, beta-shapley: {', '.join(registered('semivalues'))}; for"
            f" pairs: {', '.join(registered('pairs'))}; for any order:"
            f" {', '.join(registered('interactions'))}. Not every concept has them all."
        ),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="Most coalitions to evaluate, where a concept can sample.")
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
            help=f"Model to train, with --target: {', '.join(registered('data_models'))}, or one"
            " of a plug-in. [default: linear]",
            autocompletion=completion("data_models"),
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
    plot: Plot = None,
    plugin: Plugin = None,
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compute Banzhaf values, the nucleolus, interactions and more, also of a table of data.

    Example: coalitions value examples/data/three_domains.csv --concept prenucleolus

    Example: coalitions value examples/data/three_domains.csv --concept interactions --order 3

    Example: coalitions value examples/data/patients.csv --target readmitted --units hospital
    """
    del plugin  # imported by its callback
    loudness(quiet, verbose=False)
    if concept is None:
        concept = "banzhaf" if target is None else "shapley"
    if concept not in CONCEPTS:
        hint = did_you_mean(concept, CONCEPTS)
        raise UnknownNameError(
            f"there is no concept named {concept!r}; {hint}there are: {', '.join(CONCEPTS)}"
        )
    answer, takes = CONCEPTS[concept]
    given: dict[str, object] = {"method": method, "budget": budget, "alpha": alpha, "beta": beta}
    given |= {"structure": structure, "links": links, "index": index, "order": order}
    for option, setting in given.items():
        if setting is not None and option not in takes:
            raise InvalidInputError(f"{concept} does not take --{option}")
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
            raise InvalidInputError("--format, --symmetrise and --threshold are for synergy graphs")
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
        _print(document)
    draw(found.drawn, plot)
    if document.get("stopped") == "interrupted":
        typer.echo("interrupted: these are the estimates so far", err=True)
        raise typer.Exit(130)


def _print(document: Document) -> None:
    from rich.table import Table

    console = stdout()
    errors = document.get("stderr", {})
    values = document.get("values", {})
    noise = 1e-12 * max(map(abs, values.values()), default=0.0)  # what sums leave of nothing
    if "pairs" in document or "interactions" in document:
        title = document.get("index", "interaction")
        table = Table("players", title, "± standard error", box=None, pad_edge=False)
        for pair in document.get("pairs") or document["interactions"]:
            name = visible(" – ".join(pair["players"]))
            table.add_row(name, figure(pair["value"], 6), f"{pair['stderr']:.2g}")
    else:
        table = Table("player", document["concept"], box=None, pad_edge=False)
        if errors:
            table.add_column("± standard error")
        for name, number in values.items():
            error = (f"{errors[name]:.2g}",) if errors else ()
            shown = 0.0 if abs(number) < noise else number
            table.add_row(visible(name), figure(shown, 6), *error)
    for column in table.columns[1:]:
        column.justify = "right"
    console.print(table)
    for line in _remarks(document):
        console.print(line)


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
        if "metric" in document:
            lines.append(
                f"values are shares of {document['metric']} on {document['test']} test rows, after"
                f" learning from {document['train']}"
            )
        return lines
    return []


COMMANDS = {"value": value_command}
