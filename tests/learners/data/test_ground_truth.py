"""What is true about a split, and how well it was found out."""

from __future__ import annotations

import numpy as np
import pytest

from coalitions.errors import InvalidInputError
from coalitions.structure import CoalitionStructure
from learners import are_separated, detection, federated_data, label_overlap, true_structure
from learners.data.ground_truth import among


def literal_overlap(labels):
    n = len(labels)
    return [[i != j and bool(set(labels[i]) & set(labels[j])) for j in range(n)] for i in range(n)]


@pytest.mark.parametrize("partition", ["ring:2", "ring:3", "pathological:2"])
def test_overlap_of_a_real_split_is_that_of_its_label_sets(partition):
    data = federated_data("digits", clients=10, partition=partition, seed=3)
    labels = [client.train.targets.tolist() for client in data.clients]
    counts = [np.bincount(each, minlength=10) for each in labels]
    np.testing.assert_array_equal(label_overlap(counts), literal_overlap(labels))


def test_detection_by_hand():
    truth = [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    relevance = [[9, 0.2, -0.1], [0.1, 9, 0.3], [0.0, -1, 9]]
    found = detection(relevance, truth)  # claims (0,1), (1,0), (1,2); true are four pairs
    assert found.precision == pytest.approx(2 / 3)
    assert found.recall == pytest.approx(2 / 4)


def test_detection_where_nothing_is_claimed_or_true():
    nothing = np.zeros((2, 2))
    assert detection(nothing, [[0, 1], [1, 0]]).precision == 1.0
    assert detection(nothing, [[0, 1], [1, 0]]).recall == 0.0
    assert detection([[0, 1], [1, 0]], nothing).precision == 0.0
    assert detection([[0, 1], [1, 0]], nothing).recall == 1.0


def test_detection_wants_square_matrices_of_one_size():
    with pytest.raises(InvalidInputError, match="square"):
        detection(np.zeros((2, 2)), np.zeros((3, 3)))


def test_structures_of_domains_and_adversaries():
    assert true_structure(["b", "a", "b"]) == CoalitionStructure([[0, 2], [1]])
    structure = CoalitionStructure([[0, 1, 4], [2, 3]])
    assert are_separated(structure, [2, 3])
    assert are_separated(structure, [])
    assert are_separated(structure, range(5))
    assert not are_separated(structure, [4])
    assert among(structure, [0, 1, 2, 3]) == CoalitionStructure([[0, 1], [2, 3]])
