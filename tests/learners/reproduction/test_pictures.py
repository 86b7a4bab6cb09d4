"""Figures of tables: a panel for every column, a line for every row."""

from __future__ import annotations

import numpy as np
import pytest

from learners.reproduction.claims import Measured
from learners.reproduction.pictures import bars, coalitions_by_round, dots, matrices
from learners.reproduction.printed import PaperTable, Printed

pytest.importorskip("matplotlib", reason="pictures are not installed: pip install .[report]")


def table(n_rows):
    rows = {f"row {k}": {"one": [1.0 + k, 2.0 + k]} for k in range(n_rows)}
    rows["row 0"]["two"] = [5.0, 7.0]
    return Measured(("one", "two"), rows)


def test_every_column_has_a_panel_and_every_row_a_line():
    one, two = dots(table(3), None, "title").axes
    assert [one.get_title(), two.get_title()] == ["one", "two"]
    assert [text.get_text() for text in one.get_yticklabels()] == ["row 0", "row 1", "row 2"]
    assert one.get_ylim()[0] > one.get_ylim()[1]  # the first row is on top


def marks(axes, label):
    (found,) = (
        handle
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
        if name == label
    )
    line = getattr(found, "lines", [found])[0]
    return [(float(x), float(y)) for x, y in zip(*line.get_data(), strict=True)]


def test_a_line_has_the_seeds_their_mean_and_what_the_paper_prints():
    rows = {"row 1": {"one": Printed(9.0)}}
    printed = PaperTable("a paper", "Table 1", "%", ("one", "two"), rows)
    one, two = dots(table(2), printed, "title").axes
    assert marks(one, "a seed") == [(1.0, 0.0), (2.0, 0.0), (2.0, 1.0), (3.0, 1.0)]
    assert marks(one, "here, mean ± sd") == [(1.5, 0.0), (2.5, 1.0)]
    assert marks(one, "paper") == [(9.0, 1.0)]
    assert marks(two, "here, mean ± sd") == [(6.0, 0.0)]  # the other row has nothing there
    assert "paper" not in two.get_legend_handles_labels()[1]


@pytest.mark.parametrize("n_columns", [1, 4, 5, 9])
def test_panels_without_a_column_are_not_shown(n_columns):
    columns = tuple(f"column {number}" for number in range(n_columns))
    found = Measured(columns, {"row": {column: [1.0] for column in columns}})
    axes = dots(found, None, "title").axes
    assert sum(each.get_visible() for each in axes) == n_columns


def test_the_legend_stands_below_all_panels_and_a_long_title_has_lines():
    figure = dots(table(3), None, "a title " * 20)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    top = legend.get_window_extent().y1
    assert all(top <= axes.get_tightbbox().y0 + 1 for axes in figure.axes)
    title = figure._suptitle.get_window_extent()
    assert title.x0 >= 0
    assert title.x1 <= figure.bbox.width


def test_rows_and_columns_of_a_matrix_are_numbered_as_many_as_there_are():
    axes, *_ = matrices({"panel": np.zeros((2, 5))}, "title").axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "1", "2", "3", "4"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["0", "1"]


@pytest.mark.parametrize(("least", "low"), [(0.0, 0.0), (-2.0, -3.0)])
def test_colours_of_a_matrix_begin_at_zero_unless_something_is_below(least, low):
    axes, *_ = matrices({"panel": np.array([[least, 3.0]])}, "title").axes
    assert axes.images[0].get_clim() == (low, 3.0)


def test_clients_of_one_coalition_have_one_colour():
    labels = np.array([[0, 0], [1, 0], [1, 1]])
    (axes,) = coalitions_by_round(labels, ["a", "b", "c"], "title").axes
    (mesh,) = axes.collections
    a, a_later, b, b_later, c, c_later = mesh.to_rgba(mesh.get_array().ravel()).tolist()
    assert b == c == c_later
    assert a == a_later == b_later != b
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b", "c"]
    assert axes.get_ylim() == (3.0, 0.0)  # the first client is on top


def test_bars_that_are_marked_have_another_colour():
    (axes,) = bars(
        np.array([1.0, 2.0, 3.0]), ["a", "b", "c"], np.array([1, 0, 1]) > 0, "t", "x"
    ).axes
    assert [bar.get_width() for bar in axes.patches] == [1.0, 2.0, 3.0]
    first, second, third = (bar.get_facecolor() for bar in axes.patches)
    assert first == third != second
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b", "c"]
