"""A game that answers with rubbish gets a sentence from every concept, never a rubbish value."""

from __future__ import annotations

import numpy as np
import pytest

from coalitions import (
    CoalitionStructure,
    InvalidInputError,
    banzhaf,
    beta_shapley,
    core_membership,
    estimate_synergy,
    find_deviation,
    least_core,
    myerson,
    nucleolus,
    owen,
    payoffs,
)
from tests.coalitions.table_games import index_of_all, pairs_of

GRAND = CoalitionStructure.grand(3)
CONCEPTS = {
    "banzhaf": banzhaf,
    "banzhaf sampled": lambda game: banzhaf(game, method="msr", budget=6),
    "beta-shapley": lambda game: beta_shapley(game, 2, 1),
    "core": lambda game: core_membership(game, [0, 0, 0]),
    "least core": least_core,
    "nucleolus": nucleolus,
    "interactions": index_of_all,
    "pairs": pairs_of,
    "pairs sampled": lambda game: pairs_of(game, "banzhaf", method="msr", budget=8),
    "synergy": estimate_synergy,
    "myerson": lambda game: myerson(game, [(0, 1)]),
    "owen": lambda game: owen(game, GRAND),
    "payoffs": lambda game: payoffs(game, GRAND),
    "nash": lambda game: find_deviation(game, GRAND),
    "core stability": lambda game: find_deviation(game, GRAND, "core"),
}


class Answers:
    n_players = 3

    def __init__(self, answer):
        self._answer = answer

    def __call__(self, coalitions):
        return self._answer(coalitions)


RUBBISH = {
    "is nan": lambda rows: np.where(rows.any(axis=1), np.nan, 0.0),
    "shape": lambda rows: np.zeros((len(rows), 2)),
}


@pytest.mark.parametrize("concept", CONCEPTS)
@pytest.mark.parametrize("sentence", RUBBISH)
def test_rubbish_is_refused(concept, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        CONCEPTS[concept](Answers(RUBBISH[sentence]))
