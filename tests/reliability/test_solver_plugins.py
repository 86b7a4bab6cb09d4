"""A solver of somebody else may answer anything; nothing wrong becomes a solution."""

from __future__ import annotations

import numpy as np
import pytest

from coalitions import NoSolutionError
from solvers import Answer, solve
from solvers.backends.brute_force import BruteForce

GRAPH = [[0, 2, -1], [2, 0, 1], [-1, 1, 0]]


def answering(answer):
    class Plugin(BruteForce):
        def search(self, graph, *, limits, warm_start=None, sizes=None):
            return answer

    return Plugin()


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (None, "Plugin returned None; a solver returns an Answer"),
        (([0, 0, 0], 3.0), r"Plugin returned \(\[0, 0, 0\], 3\.0\)"),
        (Answer(None, 3.0), "Plugin returned the labels None; for 3 players"),
        (Answer(np.zeros(2, np.int64), 3.0), "an array of 3 whole numbers"),
        (Answer(np.zeros((3, 1), np.int64), 3.0), "an array of 3 whole numbers"),
        (Answer([[0], [0, 1], 2], 3.0), "an array of 3 whole numbers"),
        (Answer(np.zeros(3), 3.0), "an array of 3 whole numbers"),
        (Answer(np.array(["a", "b", "a"]), 3.0), "an array of 3 whole numbers"),
        (Answer(np.array([0, -1, 0]), 3.0), "not negative"),
        (Answer(np.zeros(3, np.int64), float("nan")), "the bound nan; it must be a number"),
        (Answer(np.zeros(3, np.int64), None), "the bound None; it must be a number"),
        (Answer(np.zeros(3, np.int64), "3"), "the bound '3'; it must be a number"),
        (Answer(np.zeros(3, np.int64), True), "the bound True"),
        (
            Answer(np.zeros(3, np.int64), 1.5),
            r"claims the bound 1\.5, but its structure is worth 2",
        ),
        (Answer(np.zeros(3, np.int64), float("-inf")), "claims the bound"),
    ],
)
def test_what_is_no_answer_is_refused_in_a_sentence(answer, sentence):
    with pytest.raises(NoSolutionError, match=sentence):
        solve(GRAPH, answering(answer))


def test_labels_may_be_any_whole_numbers_and_the_bound_unknown():
    found = solve(GRAPH, answering(Answer(np.array([7, 7, 2**62], np.uint64), float("inf"))))
    assert found.structure.coalitions == ((0, 1), (2,))
    assert found.bound == 3.0  # all that is positive
    assert solve(GRAPH, answering(Answer([0, 0, 0], 10**400))).bound == 3.0
    assert solve(GRAPH, answering(Answer([0, 0, 0], np.float32(2.0)))).optimal
