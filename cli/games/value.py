"""`coalitions value`: all solution concepts, for games, graphs and tables of data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from cli.games._data_file import DataQuestion, read_data_game
from cli.games._game_file import read_game
from cli.games._solution_file import read_structure
from cli.terminal.completion import completion, registered
from cli.terminal.output import Format, Json, Missing, Seed, Symmetrise, print_json, stdout
from cli.terminal.text import figure, visible
from coalitions.errors import InvalidInputError, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from cli.games._game_file import FileGame
    from coalitions.problems.named import NamedGame
    from coalitions.sampling.estimator import Estimate
    from coalitions.structure import CoalitionStructure

Document: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """What was asked, as far as some concept may want to know."""

    game: FileGame | NamedGame
    method: str
    budget: int | None
    seed: int
    alpha: float
    beta: float
    structure: Path | None
    links: Path | None
    index: str
    order: int


def value_command(
    file: Annotated[
        str,
        typer.Argument(
            help="Synergy graph (.csv .tsv .npy .npz .json .graphml .edges), or .json with the"
            " 2^n values of a game; - with --format. With --target: a table of data."
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
            help=f"auto, or of banzhaf and beta-shapley: {', '.join(registered('semivalues'))}; of"
            f" the interactions of pairs: {', '.join(registered('pairs'))}; of any order:"
            f" {', '.join(registered('interactions'))}. Not every concept has them all."
        ),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="Most coalitions to evaluate, where a concept can sample.")
    ] = None,
    seed: Seed = 0,
    alpha: Annotated[
        float | None, typer.Option(help="Of beta-shapley (1); large: small coalitions.")
    ] = None,
    beta: Annotated[
        float | None, typer.Option(help="Of beta-shapley (1); large: large coalitions.")
    ] = None,
    structure: Annotated[
        Path | None,
        typer.Option(help='Of owen and payoffs: JSON with "coalitions", as solve --output writes.'),
    ] = None,
    links: Annotated[
        Path | None, typer.Option(help="Of myerson: a graph file; who is linked to whom.")
    ] = None,
    index: Annotated[
        str | None,
        typer.Option(
            help=f"Of interactions: {', '.join(registered('indices'))} (k-SII).",
            autocompletion=completion("indices"),
        ),
    ] = None,
    order: Annotated[
        int | None, typer.Option(help="Of interactions: most players of a coalition (2).")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="The file is a table of data, and this column is to be predicted."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="What learns, with --target: linear, forest, nearest, tree.")
    ] = None,
    units: Annotated[
        str | None,
        typer.Option(
            help="Who is valued, with --target: features (the default), points, or a column whose"
            " values name the sources."
        ),
    ] = None,
    symmetrise: Symmetrise = None,
    missing: Missing = None,
    file_format: Format = None,
    json_output: Json = False,
) -> None:
    """Share the value of a game, a synergy graph or a table of data, by any concept.

    Example: coalitions value examples/data/three_domains.csv --concept prenucleolus

    Example: coalitions value examples/data/three_domains.csv --concept interactions --order 3

    Example: coalitions value patients.csv --target ill --model forest --units hospital
    """
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
    game: FileGame | NamedGame
    understood: Document = {}
    if target is None:
        if model is not None or units is not None:
            raise InvalidInputError("--model and --units are for tables of data: give --target")
        game = read_game(file, file_format=file_format, symmetrise=symmetrise, missing=missing)
    else:
        if (file_format, symmetrise, missing) != (None, None, None):
            raise InvalidInputError("--format, --symmetrise and --missing are for synergy graphs")
        asked = DataQuestion(file, target, model or "linear", units or "features", seed)
        game, understood = read_data_game(asked)
    question = Question(
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
    )
    document = {"concept": concept, **answer(question), **understood}
    if json_output:
        print_json(document)
    else:
        _print(document)
    if document.get("stopped") == "interrupted":
        typer.echo("interrupted: these are the estimates so far", err=True)
        raise typer.Exit(130)


def _named(game: FileGame | NamedGame, numbers: Iterable[float]) -> dict[str, float]:
    return {label: float(x) for label, x in zip(game.labels, numbers, strict=True)}


def _names(game: FileGame | NamedGame, coalitions: Iterable[Iterable[int]]) -> list[list[str]]:
    return [[game.labels[player] for player in coalition] for coalition in coalitions]


def _estimate(game: FileGame | NamedGame, estimate: Estimate) -> Document:
    return {
        "values": _named(game, estimate.values),
        "stderr": _named(game, estimate.stderr),
        "evaluations": estimate.evaluations,
        "method": estimate.method,
        **({"stopped": estimate.stopped} if estimate.stopped else {}),
    }


def _banzhaf(asked: Question) -> Document:
    from coalitions.values.semivalues import banzhaf

    found = banzhaf(asked.game, method=asked.method, budget=asked.budget, seed=asked.seed)
    return _estimate(asked.game, found)


def _shapley(asked: Question) -> Document:
    from coalitions.values.shapley import shapley

    found = shapley(asked.game, asked.method, asked.budget, seed=asked.seed)
    return _estimate(asked.game, found)


def _beta_shapley(asked: Question) -> Document:
    from coalitions.values.semivalues import beta_shapley

    found = beta_shapley(
        asked.game,
        asked.alpha,
        asked.beta,
        method=asked.method,
        budget=asked.budget,
        seed=asked.seed,
    )
    return {"alpha": asked.alpha, "beta": asked.beta, **_estimate(asked.game, found)}


def _nucleolus(asked: Question) -> Document:
    return _nucleolus_in(asked, "imputations")


def _prenucleolus(asked: Question) -> Document:
    return _nucleolus_in(asked, "preimputations")


def _nucleolus_in(asked: Question, domain: Any) -> Document:  # noqa: ANN401 (one of two words)
    from coalitions.values.nucleolus import nucleolus, verify_nucleolus

    found = nucleolus(asked.game, domain=domain)
    return {
        "values": _named(asked.game, found.payoff),
        "verified": verify_nucleolus(asked.game, found).holds,
        "stages": [
            {
                "excess": stage.excess,
                "coalitions": _names(asked.game, stage.coalitions),
                "weights": list(stage.weights),
                "at_own_worth": [asked.game.labels[player] for player in stage.floor_players],
                "own_worth_weights": list(stage.floor_weights),
            }
            for stage in found.stages
        ],
    }


def _least_core(asked: Question) -> Document:
    from coalitions.values.core import TOLERANCE, least_core, scale_of, zero_normalised_table

    found = least_core(asked.game)
    slack = TOLERANCE * scale_of(zero_normalised_table(asked.game))
    return {
        "values": _named(asked.game, found.payoff),
        "epsilon": found.epsilon,
        "core_is_empty": found.epsilon > slack,
        "coalitions": _names(asked.game, found.coalitions),
        "weights": found.weights.tolist(),
    }


def _core(asked: Question) -> Document:
    from coalitions.values.core import core_point

    return {"values": _named(asked.game, core_point(asked.game))}


def _owen(asked: Question) -> Document:
    from coalitions.values.owen import owen_value

    structure = _structure(asked)
    return {
        "values": _named(asked.game, owen_value(asked.game, structure)),
        "coalitions": _names(asked.game, structure),
    }


def _payoffs(asked: Question) -> Document:
    from coalitions.values.owen import payoffs

    structure = _structure(asked)
    return {
        "values": _named(asked.game, payoffs(asked.game, structure)),
        "coalitions": _names(asked.game, structure),
    }


def _structure(asked: Question) -> CoalitionStructure:
    if asked.structure is None:
        raise InvalidInputError("this concept needs --structure FILE with the coalitions")
    return read_structure(asked.structure, asked.game)


def _myerson(asked: Question) -> Document:
    from coalitions.graph import SynergyGraph
    from coalitions.values.myerson import myerson_value

    if asked.links is None:
        raise InvalidInputError("myerson needs --links FILE with the graph of who talks to whom")
    links = SynergyGraph.read(asked.links)
    if sorted(links.labels) != sorted(asked.game.labels):
        raise InvalidInputError(f"{asked.links}: does not have the players of the game")
    place = {label: player for player, label in enumerate(asked.game.labels)}
    i, j, _ = links.edges
    pairs = [
        (place[links.labels[a]], place[links.labels[b]])
        for a, b in zip(i.tolist(), j.tolist(), strict=True)
    ]
    return {"values": _named(asked.game, myerson_value(asked.game, pairs))}


def _shapley_interaction(asked: Question) -> Document:
    return _interaction(asked, "shapley")


def _banzhaf_interaction(asked: Question) -> Document:
    return _interaction(asked, "banzhaf")


def _interaction(asked: Question, index: Any) -> Document:  # noqa: ANN401 (one of two words)
    from coalitions.values.interactions import pairwise_interactions

    found = pairwise_interactions(
        asked.game, index, method=asked.method, budget=asked.budget, seed=asked.seed
    )
    n = asked.game.n_players
    labels = asked.game.labels
    return {
        "pairs": [
            {
                "players": [labels[i], labels[j]],
                "value": float(found.values[i, j]),
                "stderr": float(found.stderr[i, j]),
            }
            for i in range(n)
            for j in range(i + 1, n)
        ],
        "evaluations": found.evaluations,
        "method": found.method,
    }


def _interactions(asked: Question) -> Document:
    from coalitions.values.interactions import interactions

    found = interactions(
        asked.game,
        asked.index,
        asked.order,
        method=asked.method,
        budget=asked.budget,
        seed=asked.seed,
    )
    return found.document


SAMPLING = frozenset({"method", "budget"})

CONCEPTS: dict[str, tuple[Callable[[Question], Document], frozenset[str]]] = {
    "banzhaf": (_banzhaf, SAMPLING),
    "beta-shapley": (_beta_shapley, SAMPLING | {"alpha", "beta"}),
    "shapley": (_shapley, SAMPLING),
    "nucleolus": (_nucleolus, frozenset()),
    "prenucleolus": (_prenucleolus, frozenset()),
    "least-core": (_least_core, frozenset()),
    "core": (_core, frozenset()),
    "owen": (_owen, frozenset({"structure"})),
    "payoffs": (_payoffs, frozenset({"structure"})),
    "myerson": (_myerson, frozenset({"links"})),
    "shapley-interaction": (_shapley_interaction, SAMPLING),
    "banzhaf-interaction": (_banzhaf_interaction, SAMPLING),
    "interactions": (_interactions, SAMPLING | {"index", "order"}),
}
"""Each concept and the options it takes; any other that is given is a mistake, not ignored."""


def _print(document: Document) -> None:
    from rich.table import Table

    console = stdout()
    errors = document.get("stderr", {})
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
        for name, number in document["values"].items():
            error = (f"{errors[name]:.2g}",) if errors else ()
            table.add_row(visible(name), figure(number, 6), *error)
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
