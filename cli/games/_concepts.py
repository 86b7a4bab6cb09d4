"""The solution concepts of `coalitions value`: what each answers, and which options it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from coalitions.errors import InfeasibleError, InvalidInputError
from solvers.solution_file import read_structure

if TYPE_CHECKING:
    from cli.games._game_file import FileGame
    from coalitions.execution.progress import OnEvaluations
    from coalitions.problems.named import NamedGame
    from coalitions.values.estimate import Estimate, Interactions

Document: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class ConceptQuestion:
    """What was asked, as far as some concept may want to know."""

    concept: str
    game: FileGame | NamedGame
    method: str
    budget: int | None
    target_error: float | None
    seed: int
    alpha: float
    beta: float
    structure: Path | None
    links: Path | None
    index: str
    order: int
    progress: OnEvaluations | None = None

    @property
    def sampling(self) -> dict[str, Any]:
        """What every concept takes that can sample."""
        return {
            "method": self.method,
            "budget": self.budget,
            "target_error": self.target_error,
            "seed": self.seed,
            "progress": self.progress,
        }


class ConceptAnswer(NamedTuple):
    """The document, and what can be drawn of it."""

    document: Document
    drawn: Estimate | Interactions


def _answered(found: Estimate | Interactions, **more: object) -> ConceptAnswer:
    return ConceptAnswer(found.to_dict() | more, found)


def _banzhaf(asked: ConceptQuestion) -> ConceptAnswer:
    from coalitions.values.semivalues import banzhaf

    return _answered(banzhaf(asked.game, **asked.sampling))


def _shapley(asked: ConceptQuestion) -> ConceptAnswer:
    from coalitions.values.shapley import shapley

    return _answered(shapley(asked.game, **asked.sampling))


def _beta_shapley(asked: ConceptQuestion) -> ConceptAnswer:
    from coalitions.values.semivalues import beta_shapley

    found = beta_shapley(asked.game, asked.alpha, asked.beta, **asked.sampling)
    return _answered(found, alpha=asked.alpha, beta=asked.beta)


def _nucleolus(asked: ConceptQuestion) -> ConceptAnswer:
    try:
        return _nucleolus_in(asked, "imputations")
    except InfeasibleError as error:
        raise InfeasibleError(f"{error}: --concept prenucleolus") from None


def _prenucleolus(asked: ConceptQuestion) -> ConceptAnswer:
    return _nucleolus_in(asked, "preimputations")


def _nucleolus_in(asked: ConceptQuestion, domain: Any) -> ConceptAnswer:  # noqa: ANN401 (one of two words)
    from coalitions.values.nucleolus import nucleolus, verify_nucleolus

    found = nucleolus(asked.game, domain=domain)
    return _answered(found, verified=verify_nucleolus(asked.game, found).holds)


def _least_core(asked: ConceptQuestion) -> ConceptAnswer:
    from coalitions.values.core import least_core

    return _answered(least_core(asked.game))


def _core(asked: ConceptQuestion) -> ConceptAnswer:
    from coalitions.values.core import core_point

    return _answered(core_point(asked.game))


def _owen(asked: ConceptQuestion) -> ConceptAnswer:
    from coalitions.values.owen_myerson import owen

    return _of_structure(asked, owen)


def _payoffs(asked: ConceptQuestion) -> ConceptAnswer:
    from coalitions.values.owen_myerson import payoffs

    return _of_structure(asked, payoffs)


def _of_structure(asked: ConceptQuestion, shares: Callable[..., Estimate]) -> ConceptAnswer:
    if asked.structure is None:
        raise InvalidInputError("this concept needs --structure FILE with the coalitions")
    structure = read_structure(asked.structure, asked.game)
    names = asked.game.labels
    coalitions = [[names[player] for player in block] for block in structure]
    return _answered(shares(asked.game, structure), coalitions=coalitions)


def _myerson(asked: ConceptQuestion) -> ConceptAnswer:
    from coalitions.graph import SynergyGraph
    from coalitions.values.owen_myerson import myerson

    if asked.links is None:
        raise InvalidInputError(
            "myerson needs --links FILE with a graph of the links between players"
        )
    links = SynergyGraph.read(asked.links)
    if sorted(links.labels) != sorted(asked.game.labels):
        raise InvalidInputError(f"{asked.links}: does not have the players of the game")
    return _answered(myerson(asked.game, links))


def _shapley_interaction(asked: ConceptQuestion) -> ConceptAnswer:
    return _pairs(asked, "SII")


def _banzhaf_interaction(asked: ConceptQuestion) -> ConceptAnswer:
    return _pairs(asked, "BII")


def _pairs(asked: ConceptQuestion, index: str) -> ConceptAnswer:
    from coalitions.values.interactions import interactions

    return _answered(interactions(asked.game, index, coalitions="pairs", **asked.sampling))


def _interactions(asked: ConceptQuestion) -> ConceptAnswer:
    from coalitions.values.interactions import interactions

    return _answered(interactions(asked.game, asked.index, asked.order, **asked.sampling))


SAMPLING = frozenset({"method", "budget", "target_error"})

CONCEPTS: dict[str, tuple[Callable[[ConceptQuestion], ConceptAnswer], frozenset[str]]] = {
    "shapley": (_shapley, SAMPLING),
    "banzhaf": (_banzhaf, SAMPLING),
    "beta-shapley": (_beta_shapley, SAMPLING | {"alpha", "beta"}),
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

NETWORKS = frozenset({"shapley-interaction", "banzhaf-interaction", "interactions"})
"""Concepts that are drawn as a network, not as bars."""
