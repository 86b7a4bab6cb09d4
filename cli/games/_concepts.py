"""The solution concepts of `coalitions value`: what each answers, and which options it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from coalitions.errors import InfeasibleError, InvalidInputError
from solvers.solution_file import read_structure

if TYPE_CHECKING:
    from cli.games._game_file import FileGame
    from coalitions.game import FloatVector
    from coalitions.problems.named import NamedGame
    from coalitions.structure import CoalitionStructure
    from coalitions.values.budget import EvaluationProgress
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
    progress: EvaluationProgress | None = None

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


def _named(game: FileGame | NamedGame, numbers: Iterable[float]) -> dict[str, float]:
    return {label: float(x) for label, x in zip(game.labels, numbers, strict=True)}


def _names(game: FileGame | NamedGame, coalitions: Iterable[Iterable[int]]) -> list[list[str]]:
    return [[game.labels[player] for player in coalition] for coalition in coalitions]


def _estimate(game: FileGame | NamedGame, estimate: Estimate, **more: object) -> ConceptAnswer:
    document = {
        **more,
        "values": _named(game, estimate.values),
        "stderr": _named(game, estimate.stderr),
        "evaluations": estimate.evaluations,
        "method": estimate.method,
        "reason": estimate.reason,
        **({"stopped": estimate.stopped} if estimate.stopped else {}),
    }
    return ConceptAnswer(document, estimate)


def _shares(
    asked: ConceptQuestion, values: Estimate | FloatVector, **more: object
) -> ConceptAnswer:
    """Return shares that are not sampled."""
    import numpy as np

    from coalitions.values.estimate import Estimate

    shares = np.asarray(values, np.float64)
    drawn = Estimate(shares, np.zeros(len(shares)), 0, asked.concept, labels=asked.game.labels)
    return ConceptAnswer({"values": _named(asked.game, shares), **more}, drawn)


def _banzhaf(asked: ConceptQuestion) -> ConceptAnswer:
    from coalitions.values.semivalues import banzhaf

    return _estimate(asked.game, banzhaf(asked.game, **asked.sampling))


def _shapley(asked: ConceptQuestion) -> ConceptAnswer:
    from coalitions.values.shapley import shapley

    return _estimate(asked.game, shapley(asked.game, **asked.sampling))


def _beta_shapley(asked: ConceptQuestion) -> ConceptAnswer:
    from coalitions.values.semivalues import beta_shapley

    found = beta_shapley(asked.game, asked.alpha, asked.beta, **asked.sampling)
    return _estimate(asked.game, found, alpha=asked.alpha, beta=asked.beta)


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
    stages = [
        {
            "excess": stage.excess,
            "coalitions": _names(asked.game, stage.coalitions),
            "weights": list(stage.weights),
            "at_own_worth": [asked.game.labels[player] for player in stage.floor_players],
            "own_worth_weights": list(stage.floor_weights),
        }
        for stage in found.stages
    ]
    verified = verify_nucleolus(asked.game, found).holds
    return _shares(asked, found.payoff, verified=verified, stages=stages)


def _least_core(asked: ConceptQuestion) -> ConceptAnswer:
    from coalitions.values.core import TOLERANCE, least_core, scale_of, zero_normalised_table

    found = least_core(asked.game)
    slack = TOLERANCE * scale_of(zero_normalised_table(asked.game))
    return _shares(
        asked,
        found.payoff,
        epsilon=found.epsilon,
        core_is_empty=found.epsilon > slack,
        coalitions=_names(asked.game, found.coalitions),
        weights=found.weights.tolist(),
    )


def _core(asked: ConceptQuestion) -> ConceptAnswer:
    from coalitions.values.core import core_point

    return _shares(asked, core_point(asked.game))


def _owen(asked: ConceptQuestion) -> ConceptAnswer:
    from coalitions.values.owen_myerson import owen

    structure = _structure(asked)
    shares = owen(asked.game, structure)
    return _shares(asked, shares, coalitions=_names(asked.game, structure))


def _payoffs(asked: ConceptQuestion) -> ConceptAnswer:
    from coalitions.values.owen_myerson import payoffs

    structure = _structure(asked)
    shares = payoffs(asked.game, structure)
    return _shares(asked, shares, coalitions=_names(asked.game, structure))


def _structure(asked: ConceptQuestion) -> CoalitionStructure:
    if asked.structure is None:
        raise InvalidInputError("this concept needs --structure FILE with the coalitions")
    return read_structure(asked.structure, asked.game)


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
    place = {label: player for player, label in enumerate(asked.game.labels)}
    i, j, _ = links.edges
    pairs = [
        (place[links.labels[a]], place[links.labels[b]])
        for a, b in zip(i.tolist(), j.tolist(), strict=True)
    ]
    return _shares(asked, myerson(asked.game, pairs))


def _shapley_interaction(asked: ConceptQuestion) -> ConceptAnswer:
    return _interaction(asked, "shapley")


def _banzhaf_interaction(asked: ConceptQuestion) -> ConceptAnswer:
    return _interaction(asked, "banzhaf")


def _interaction(asked: ConceptQuestion, index: Any) -> ConceptAnswer:  # noqa: ANN401 (one of two words)
    from coalitions.values.interactions import interactions

    found = interactions(asked.game, index, coalitions="pairs", **asked.sampling)
    document = {
        "interactions": found.to_dict()["interactions"],
        "evaluations": found.evaluations,
        "method": found.method,
        "reason": found.reason,
    }
    return ConceptAnswer(document, found)


def _interactions(asked: ConceptQuestion) -> ConceptAnswer:
    from coalitions.values.interactions import interactions

    found = interactions(asked.game, asked.index, asked.order, **asked.sampling)
    return ConceptAnswer(found.to_dict(), found)


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
