"""Synergy of two players on their own."""

from __future__ import annotations

import numpy as np

from coalitions.checks import whole_number
from coalitions.errors import BudgetError
from coalitions.game import Game, players_of
from coalitions.graph import SynergyGraph
from coalitions.sampling.evaluator import Evaluator
from coalitions.synergy.estimation import SYNERGIES


@SYNERGIES.register("pairs")
def pairs(game: Game, *, budget: int | None, rng: np.random.Generator) -> SynergyGraph:
    r"""Return what two players are worth together beyond what each is worth alone.

    .. math:: s_{ij} = v(ij) - v(i) - v(j) + v(\emptyset)

    It takes 1 + n(n + 1)/2 evaluations and nothing is random: the choice where larger coalitions
    are too expensive to evaluate, or where pairs are all that matters.
    """
    n = players_of(game)
    needed = 1 + n * (n + 1) // 2
    if budget is not None and whole_number(budget, "the budget", 1) < needed:
        raise BudgetError(f"all pairs of {n} players need {needed} evaluations, not {budget}")
    i, j = np.triu_indices(n, 1)
    coalitions = np.zeros((needed, n), np.bool_)
    coalitions[1 : n + 1] = np.eye(n, dtype=np.bool_)
    rows = np.arange(n + 1, needed)
    coalitions[rows, i] = coalitions[rows, j] = True
    values = Evaluator(game, needed)(coalitions)
    alone = values[1 : n + 1]
    synergies = np.zeros((n, n))
    synergies[i, j] = synergies[j, i] = values[n + 1 :] - alone[i] - alone[j] + values[0]
    return SynergyGraph(synergies)
