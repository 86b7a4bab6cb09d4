"""Solutions in files: the JSON that `Solution.save` writes, read back."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from coalitions.characters import figure, players_by_name
from coalitions.errors import InvalidInputError

if TYPE_CHECKING:
    from coalitions.graph import SynergyGraph
    from coalitions.structure import CoalitionStructure
    from solvers.solution import Solution

Pairs = Sequence[tuple[int, int]]


class Players(Protocol):
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
    from coalitions.files.opening import check_whole
    from coalitions.files.text import load_json

    check_whole(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read ({error.strerror})") from None
    document = load_json(content, str(path))
    if not isinstance(document, dict):
        raise InvalidInputError(f'{path}: expected an object with "coalitions": [[names…]…]')
    return document


def structure_of(document: dict[str, Any], players: Players, path: Path) -> CoalitionStructure:
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


def links_of(document: dict[str, Any], players: Players, path: Path) -> dict[str, Pairs]:
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


def sizes_of(document: dict[str, Any], players: Players, path: Path) -> dict[str, Any]:
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
            made = f"without --{name}"
            if recorded is not None:
                made = f"with --{name} {reprlib.repr(recorded).strip(chr(39))}"
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


def read_structure(path: Path, players: Players) -> CoalitionStructure:
    """Return the structure in a solution's JSON file."""
    return structure_of(read_document(path), players, path)


def read_solution(path: Path, graph: SynergyGraph) -> Solution:
    """Return the solution in a JSON file, valued on the graph; see `Solution.read`."""
    from solvers.optimality import at_stake, is_optimal, losses, positive_weight
    from solvers.preparation.demands import contract
    from solvers.solution import Solution

    document = read_document(path)
    structure = structure_of(document, graph, path)
    links, sizes = links_of(document, graph, path), sizes_of(document, graph, path)
    problem = contract(graph, **links)
    gains = min(positive_weight(graph), positive_weight(problem.graph))
    lost = losses(problem.graph, problem.contract(structure.labels)) if sizes else 0.0
    value, told = graph.value(structure), number_of(document, "value", path)
    bound = number_of(document, "bound", path)
    if told is None or bound is None:
        raise InvalidInputError(f'{path}: "value" and "bound" must be there, as `save` writes them')
    stake = at_stake(positive_weight(graph), losses(graph, structure.labels))
    if not (is_optimal(value, told, stake) and is_optimal(told, value, stake)):
        raise InvalidInputError(
            f"{path}: says that its structure is worth {figure(told)}; on this graph it is worth"
            f" {figure(value)}, so it is the solution of another"
        )
    return Solution(
        structure=structure,
        value=value,
        bound=max(bound, value),
        positive_weight=gains,
        seconds=number_of(document, "seconds", path) or 0.0,
        solver=str(document.get("solver", "")),
        must_link=tuple(links["must_link"]),
        cannot_link=tuple(links["cannot_link"]),
        sizes=sizes,
        losses=lost,
        graph=graph,
    )
