from __future__ import annotations

import numpy as np
import pytest

from coalitions import InvalidInputError, all_partitions, bell_number, partition_labels


def test_bell_numbers_of_oeis_a000110():
    first = [1, 1, 2, 5, 15, 52, 203, 877, 4140, 21147, 115975]
    assert [bell_number(n) for n in range(11)] == first
    assert bell_number(25) == 4638590332229999353


@pytest.mark.parametrize("n", range(9))
def test_both_ways_list_the_same_partitions_in_the_same_order(n):
    rows = partition_labels(n)
    assert rows.shape == (bell_number(n), n)
    assert rows.tolist() == [structure.labels.tolist() for structure in all_partitions(n)]


@pytest.mark.parametrize("n", range(1, 9))
def test_rows_are_restricted_growth_strings_in_lexicographic_order(n):
    rows = partition_labels(n).astype(int)
    assert (rows[:, 0] == 0).all()
    assert (rows[:, 1:] <= np.maximum.accumulate(rows, axis=1)[:, :-1] + 1).all()
    listed = [tuple(row) for row in rows.tolist()]
    assert listed == sorted(set(listed))


def test_too_many_players_are_refused_before_memory_is_filled():
    with pytest.raises(InvalidInputError, match="at most 12 players"):
        partition_labels(13)
    assert next(iter(all_partitions(30))).coalitions == (tuple(range(30)),)
    with pytest.raises(InvalidInputError):
        bell_number(-1)
