"""Figures of tables: few rows by their colours, many of them line by line."""

from __future__ import annotations

import numpy as np
import pytest

from learners.reproduction.measured import Measured
from learners.reproduction.pictures import MOST_COLOURS, bars, matrices

pytest.importorskip("matplotlib", reason="pictures are not installed: pip install .[report]")


def table(n_rows):
    rows = {f"row {k}": {"one": [1.0 + k, 2.0 + k]} for k in range(n_rows)}
    rows["row 0"]["two"] = [5.0, 7.0]
    return Measured(("one", "two"), rows)


def test_few_rows_have_colours_and_a_legend():
    (axes,) = bars(table(3), None, "title").axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "row 0",
        "row 1",
        "row 2",
    ]


def test_many_rows_have_a_line_each_in_a_panel_for_every_column():
    n = MOST_COLOURS + 1
    one, two = bars(table(n), None, "title").axes
    assert [one.get_title(), two.get_title()] == ["one", "two"]
    assert [text.get_text() for text in one.get_yticklabels()] == [f"row {k}" for k in range(n)]
    assert [bar.get_width() for bar in one.patches] == [1.5 + k for k in range(n)]
    assert [bar.get_width() for bar in two.patches] == [6.0]  # the others have nothing there
    assert one.get_ylim()[0] > one.get_ylim()[1]  # the first row is on top


def test_rows_and_columns_of_a_matrix_are_numbered_as_many_as_there_are():
    axes, *_ = matrices({"panel": np.zeros((2, 5))}, "title").axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "1", "2", "3", "4"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["0", "1"]
