from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalitions import CoalitionStructure, InvalidInputError


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12))
def test_equal_labels_are_together_and_only_they(labels):
    structure = CoalitionStructure.from_labels(labels)
    same = np.equal.outer(labels, labels)
    assert np.array_equal(np.equal.outer(structure.labels, structure.labels), same)
    assert CoalitionStructure.from_labels(structure.labels) == structure
    assert structure.n_players == len(labels)
    assert len(structure) == len(set(labels))


def test_order_does_not_matter():
    assert CoalitionStructure([[3, 1], [2, 0]]) == CoalitionStructure([(0, 2), (1, 3)])
    assert hash(CoalitionStructure([[0], [1]])) == hash(CoalitionStructure([[1], [0]]))
    assert list(CoalitionStructure([[3, 1], [2, 0]]).labels) == [0, 1, 0, 1]


def test_singletons_and_grand():
    assert CoalitionStructure.singletons(3).coalitions == ((0,), (1,), (2,))
    assert CoalitionStructure.grand(3).coalitions == ((0, 1, 2),)


@pytest.mark.parametrize(
    ("coalitions", "sentence"),
    [
        ([[0, 1], [1, 2]], "player 1 is in two coalitions"),
        ([[0], [2]], "player 1 is in no coalition"),
        ([[0], []], "a coalition is empty"),
    ],
)
def test_what_is_no_partition_is_refused(coalitions, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        CoalitionStructure(coalitions)


def test_who_changes_labels_does_not_change_the_structure():
    structure = CoalitionStructure([[0, 2], [1]])
    labels = structure.labels
    labels[2] = 1
    assert list(structure.labels) == [0, 1, 0]
    assert structure == CoalitionStructure([[1], [0, 2]])
    assert hash(structure) == hash(CoalitionStructure([[1], [0, 2]]))
