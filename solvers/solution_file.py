"""Solutions in files: JSON, written and read back; a table, a workbook or a page for people."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from coalitions.errors import InvalidInputError
from coalitions.files.result_files import Cell, Table, check_result_path, write_tables
from coalitions.formatting import decimal, figure, listed, players_by_name

if TYPE_CHECKING:
    from coalitions.graph import SynergyGraph
    from coalitions.structure import CoalitionStructure
    from solvers.solution import Solution

# ----------------------------------------------------------------------------------------
# Writing: the ending of the file says which kind it is.


def save_solution(
    solution: Solution, path: Path, document: Mapping[str, Any] | None = None
) -> None:
    """Write a solution to a file, which is there when it is complete; see `Solution.save`.

    Parameters
    ----------
    solution
        The solution.
    path
        The file.
    document
        What a JSON file gets, if it is not that of `solution_document`.
    """
    check_result_path(path)
    tables = {"players": _players, "coalitions": _coalitions, "structures": _structures}
    if path.suffix.lower() in (".md", ".html"):  # people look for the coalitions first
        tables = {"coalitions": _coalitions, "players": _players}
    write_tables(
        path,
        {title: table(solution) for title, table in tables.items()},
        solution_document(solution) if document is None else document,
        title="Coalitions",
        said=verdict(solution),
    )


def solution_document(solution: Solution) -> dict[str, Any]:
    """Return a solution as plain values, its players by name, with what was demanded."""
    names = solution.names
    others = [
        {
            "coalitions": [[names[player] for player in block] for block in other.structure],
            "value": decimal(other.value),
            "bound": decimal(other.bound),
            "optimal": other.optimal,
        }
        for other in solution.others
    ]
    links = {"must_link": solution.must_link, "cannot_link": solution.cannot_link}
    return {
        "coalitions": [[names[player] for player in block] for block in solution.structure],
        "value": decimal(solution.value),
        "bound": decimal(solution.bound),
        "gap": solution.gap,
        "optimal": solution.optimal,
        "seconds": solution.seconds,
        "solver": solution.solver,
        "players": solution.structure.n_players,
        **_inside(solution),
        **{
            name: [[names[a], names[b]] for a, b in pairs] for name, pairs in links.items() if pairs
        },
        **_plain_sizes(solution, names),
        **({"others": others} if others else {}),
        **({"others_note": solution.stats["others"]} if "others" in solution.stats else {}),
    }


def _inside(solution: Solution) -> dict[str, Any]:
    """Return the synergy inside each coalition; a game has none."""
    if solution.graph is None:
        return {}
    return {
        "synergies_inside": [decimal(worth) for worth in solution.graph.inside(solution.structure)]
    }


def _plain_sizes(solution: Solution, names: Sequence[str]) -> dict[str, Any]:
    """Return demands on coalitions and their number as plain values, players by name."""
    demands = solution.demands
    plain: dict[str, Any] = {}
    for name, demand in demands.sizes.items():
        if name == "weights":
            plain[name] = {names[player]: float(load) for player, load in demands.weights.items()}
        elif name == "at_least_one_of":
            plain[name] = [[names[player] for player in role] for role in demands.roles]
        elif name == "n_groups" and isinstance(demand, Sequence):
            plain[name] = [int(each) for each in demand]
        else:
            plain[name] = float(demand) if name == "max_weight" else int(demand)
    return plain


def _players(solution: Solution) -> Table:
    """Return a row for each player: its name, and its coalition in each of the structures.

    Coalitions are numbered from 1, as they are printed.
    """
    names, structures = solution.names, [solution, *solution.others]
    heads = ["coalition", *(f"coalition in structure {k}" for k in range(2, len(structures) + 1))]
    labels = [each.structure.labels + 1 for each in structures]
    order = [player for block in solution.structure for player in block]
    rows: Table = [[names[player], *(int(each[player]) for each in labels)] for player in order]
    return [["player", *heads], *rows]


def _coalitions(solution: Solution) -> Table:
    """Return a row for each coalition: its number, its size, who is in it, the synergy inside."""
    heads: list[Cell] = ["coalition", "players", "names"]
    rows: Table = [
        [number, len(block), listed(block)] for number, block in enumerate(solution.named, 1)
    ]
    if solution.graph is not None:
        heads.append("synergy inside")
        for row, worth in zip(rows, solution.graph.inside(solution.structure), strict=True):
            row.append(decimal(float(worth)))
    return [heads, *rows]


def _structures(solution: Solution) -> Table:
    """Return a row for each structure: what it is worth, and whether that is proven."""
    rows: Table = [
        [number, decimal(each.value), decimal(each.bound), "yes" if each.optimal else "no"]
        for number, each in enumerate([solution, *solution.others], 1)
    ]
    return [["structure", "value", "at most", "proven"], *rows]


def verdict(solution: Solution) -> str:
    """Return in a sentence what a solution is worth, and whether that is the most."""
    proven = (
        "no structure is worth more"
        if solution.optimal
        else f"not proven: at most {figure(solution.bound)} is possible"
    )
    demanded = solution.must_link or solution.cannot_link or solution.sizes
    among = " among those that meet the demands" if demanded and solution.optimal else ""
    return f"Value {figure(solution.value)}: {proven}{among}. Found by {solution.solver}."


# ----------------------------------------------------------------------------------------
# Reading the JSON back, and checking that it is a solution of this graph.

Pairs = Sequence[tuple[int, int]]


class NamedPlayers(Protocol):
    """Players with names: a synergy graph or a game from a file."""

    @property
    def n_players(self) -> int:
        """Number of players."""
        ...

    @property
    def labels(self) -> Sequence[str]:
        """Names of the players."""
        ...


def read_document(path: Path) -> dict[str, Any]:
    """Return the JSON object in a solution's file."""
    from coalitions.files.opening import check_whole, load_json

    check_whole(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read ({error.strerror})") from None
    document = load_json(content, str(path))
    if not isinstance(document, dict):
        raise InvalidInputError(f'{path}: expected an object with "coalitions": [[names…]…]')
    return document


def structure_of(document: dict[str, Any], players: NamedPlayers, path: Path) -> CoalitionStructure:
    """Return the structure of a solution's document, whose players go by name."""
    from coalitions.structure import CoalitionStructure

    coalitions = document.get("coalitions")
    if not isinstance(coalitions, list) or not all(isinstance(c, list) for c in coalitions):
        raise InvalidInputError(f'{path}: expected an object with "coalitions": [[names…]…]')
    numbers = [
        players_by_name([str(name) for name in block], players.labels, str(path))
        for block in coalitions
    ]
    try:
        structure = CoalitionStructure(numbers)
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from None
    if structure.n_players != players.n_players:
        raise InvalidInputError(
            f"{path}: has {structure.n_players} players; there must be {players.n_players}"
        )
    return structure


def links_of(document: dict[str, Any], players: NamedPlayers, path: Path) -> dict[str, Pairs]:
    """Return the demands that a solution's document records: pairs that are together, and apart."""
    links: dict[str, Pairs] = {}
    for name in ("must_link", "cannot_link"):
        pairs = document.get(name, [])
        if not isinstance(pairs, list) or not all(
            isinstance(pair, list) and len(pair) == 2 for pair in pairs
        ):
            raise InvalidInputError(f'{path}: "{name}" must be a list of pairs of names')
        names = [str(end) for pair in pairs for end in pair]
        numbers = players_by_name(names, players.labels, f"{path}: {name}")
        links[name] = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    return links


def sizes_of(document: dict[str, Any], players: NamedPlayers, path: Path) -> dict[str, Any]:
    """Return the demands on coalitions and their number that a solution's document records."""
    sizes: dict[str, Any] = {}
    for name in ("n_groups", "min_size", "max_size"):
        if name in document:
            number = document[name]
            both = number if isinstance(number, list) and name == "n_groups" else [number]
            if not {int}.issuperset(map(type, both)):
                raise InvalidInputError(f'{path}: "{name}" must be a whole number')
            sizes[name] = number
    if "weights" in document:
        weights = document["weights"]
        if not isinstance(weights, dict):
            raise InvalidInputError(f'{path}: "weights" must be an object of names and numbers')
        players_by_name(list(weights), players.labels, f"{path}: weights")
        sizes["weights"] = {name: number_of(weights, name, path) for name in weights}
    if "max_weight" in document:
        sizes["max_weight"] = number_of(document, "max_weight", path)
    if "at_least_one_of" in document:
        roles = document["at_least_one_of"]
        if not isinstance(roles, list) or not all(isinstance(role, list) for role in roles):
            raise InvalidInputError(f'{path}: "at_least_one_of" must be a list of lists of names')
        named = [[str(name) for name in role] for role in roles]
        for role in named:
            players_by_name(role, players.labels, f"{path}: at_least_one_of")
        sizes["at_least_one_of"] = named
    return sizes


def check_reading(
    document: dict[str, Any], value: float, reading: dict[str, Any], path: Path
) -> None:
    """Refuse a solution of another value whose graph was made of its file in another way.

    `reading` has what was typed of that; `value` is what the structure is worth.
    """
    claimed = number_of(document, "value", path)
    if claimed is None or math.isclose(claimed, value, rel_tol=1e-9):
        return
    for name, typed in reading.items():
        recorded = document.get(name)
        if recorded != typed:
            way = typed if recorded is None else recorded
            made = f"{'without' if recorded is None else 'with'} {name}="
            made += reprlib.repr(way).strip("'")
            raise InvalidInputError(
                f"{path}: was made {made}, and its value belongs to those synergies; repeat the"
                " flags with which it was made"
            )


def number_of(document: dict[str, Any], name: str, path: Path) -> float | None:
    """Return a number of a solution's document, None if it has none of that name."""
    if name not in document:
        return None
    number = document[name]
    if isinstance(number, int | float) and not isinstance(number, bool):
        try:
            if math.isfinite(number):
                return float(number)
        except OverflowError:  # an integer that no float can hold
            pass
    raise InvalidInputError(
        f'{path}: "{name}" is {reprlib.repr(number)}; it must be a finite number'
    )


def read_structure(path: Path, players: NamedPlayers) -> CoalitionStructure:
    """Return the structure in a solution's JSON file."""
    return structure_of(read_document(path), players, path)


def read_solution(path: Path, graph: SynergyGraph) -> Solution:
    """Return the solution in a JSON file, valued on the graph; see `Solution.read`."""
    from solvers.demands import Contraction, Demands
    from solvers.optimality import at_stake, is_optimal, losses, positive_weight
    from solvers.solution import Solution

    document = read_document(path)
    structure = structure_of(document, graph, path)
    links, sizes = links_of(document, graph, path), sizes_of(document, graph, path)
    try:
        demands = Demands.of(graph, **{**links, **sizes})
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from None
    problem = Contraction.apply(graph, demands)
    gains = min(positive_weight(graph), positive_weight(problem.graph))
    lost = losses(problem.graph, problem.contract(structure.labels)) if sizes else 0.0
    value, recorded = graph.value(structure), number_of(document, "value", path)
    bound = number_of(document, "bound", path)
    if recorded is None or bound is None:
        raise InvalidInputError(f'{path}: "value" and "bound" must be there, as `save` writes them')
    stake = at_stake(positive_weight(graph), losses(graph, structure.labels))
    if not (is_optimal(value, recorded, stake) and is_optimal(recorded, value, stake)):
        raise InvalidInputError(
            f"{path}: says that its structure is worth {figure(recorded)}; on this graph it is"
            f" worth {figure(value)}, so it is the solution of another"
        )
    return Solution(
        structure=structure,
        value=value,
        bound=max(bound, value),
        positive_weight=gains,
        seconds=number_of(document, "seconds", path) or 0.0,
        solver=str(document.get("solver", "")),
        demands=demands,
        losses=lost,
        graph=graph,
    )
