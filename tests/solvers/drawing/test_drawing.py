"""Pictures of solutions: the geometry is right, and files of both kinds come out for any graph."""

from __future__ import annotations

import itertools
import json
import re
import struct
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coalitions import (
    CoalitionStructure,
    InvalidInputError,
    MissingDependencyError,
    SynergyGraph,
)
from solvers import Solution, explain, solve, solve_game
from solvers.drawing.solution_layout import block_means, pairs_to_draw, place_players, title_of
from solvers.drawing.solution_picture import check_plot_path, draw_solution, solution_figure


def solution_of(graph, labels):
    structure = CoalitionStructure.from_labels(labels)
    total = float(np.abs(graph.edges.weight).sum())
    return Solution(structure, graph.value(structure), total, total, 0.0, "test")


@pytest.fixture
def friends():
    matrix = [[0, 2, 1, -1], [2, 0, -1, -1], [1, -1, 0, -1], [-1, -1, -1, 0]]
    return SynergyGraph(matrix, ["ann", "bob", "cleo", "dan"])


@settings(max_examples=40)
@given(st.lists(st.integers(0, 8), min_size=1, max_size=60))
def test_players_do_not_overlap_and_coalitions_keep_apart(labels):
    graph = SynergyGraph(np.zeros((len(labels), len(labels))))
    solution = solution_of(graph, labels)
    discs = place_players(solution)
    assert sorted(discs.order.tolist()) == list(range(len(labels)))
    sizes = np.diff(discs.starts)
    assert (np.diff(sizes) <= 0).all()
    apart = np.hypot(*(discs.positions[:, None] - discs.positions[None]).transpose(2, 0, 1))
    np.fill_diagonal(apart, np.inf)
    assert apart.min(initial=np.inf) > 0.4
    numbers = solution.structure.labels
    for player, block in enumerate(numbers):
        alone = (numbers == block).sum() == 1
        assert (discs.colours[player] == "#9A9A9A") == alone
        nearest = apart[player].argmin()
        if not alone:  # the nearest neighbour is a partner
            assert numbers[nearest] == block


def test_every_kind_of_pair_has_its_line(friends):
    solution = solution_of(friends, [0, 0, 1, 1])
    lines = {name: pairs.tolist() for name, _, _, pairs in pairs_to_draw(friends, solution)}
    assert lines == {
        "synergy given up": [[0, 2]],
        "synergy inside": [[0, 1]],
        "conflict inside": [[2, 3]],
    }


def test_block_means_count_absent_pairs_as_zero(friends):
    means, names = block_means(friends, solution_of(friends, [0, 0, 0, 1]))
    assert names == ["ann + 2", "dan"]
    np.testing.assert_allclose(means, [[2 / 3, -1], [-1, 0]])


def test_many_coalitions_share_the_last_row():
    n = 100
    graph = SynergyGraph.from_edges(n, [0, 98], [1, 99], [1.0, 3.0])
    means, names = block_means(graph, solution_of(graph, np.arange(n)))
    assert means.shape == (60, 60)
    assert names[-1] == "41 more coalitions"
    assert means[0, 1] == means[1, 0] == 1
    assert means[-1, -1] == pytest.approx(3 / (41 * 40 / 2))


def test_the_title_says_what_was_proven(friends):
    solution = solve(friends, must_link=[(0, 2)])  # without it, a tie
    assert title_of(friends, solution) == "4 players in 2 coalitions, value 2, optimal"
    unproven = solution_of(friends, [0, 0, 1, 2])
    assert title_of(friends, unproven) == "4 players in 3 coalitions, value 2, bound 7"


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf", ".html"])
@pytest.mark.parametrize("kind", ["lone player", "nothing", "five", "dense", "large"])
def test_pictures_of_all_sizes(kind, ending, tmp_path, rng):
    if kind == "lone player":
        graph = SynergyGraph([[0.0]])
    elif kind == "nothing":
        graph = SynergyGraph(np.zeros((4, 4)))
    elif kind == "large":
        i = np.arange(599)
        graph = SynergyGraph.from_edges(600, i, i + 1, rng.normal(size=599))
    else:
        n = 5 if kind == "five" else 120
        matrix = np.triu(rng.normal(size=(n, n)), 1)
        graph = SynergyGraph(matrix + matrix.T)
    path = tmp_path / f"picture{ending}"
    draw_solution(graph, solve(graph, "greedy"), path)
    content = path.read_bytes()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    if ending == ".png":
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", content[16:24])
        assert min(width, height) > 800
    elif ending == ".svg":
        assert b"<svg" in content[:1000]
        assert b"<dc:date>" not in content
    elif ending == ".pdf":
        assert content.startswith(b"%PDF-")
    else:
        text = content.decode()
        assert text.count("<html") == 1
        assert not re.search(r"<script[^>]+src=", text), "the page must work offline"


def test_the_page_holds_the_ordered_matrix(friends, tmp_path):
    path = tmp_path / "friends.html"
    draw_solution(friends, solution_of(friends, [0, 1, 1, 0]), path)
    text = path.read_text()
    names = re.search(r'"ticktext":(\["ann".*?\])', text)
    assert names is not None
    assert json.loads(names[1]) == ["ann", "dan", "bob", "cleo"]


def test_names_cannot_break_out_of_the_page(tmp_path):
    graph = SynergyGraph([[0, 1], [1, 0]], ["</script><script>alert(1)</script>", "b"])
    path = tmp_path / "page.html"
    draw_solution(graph, solve(graph), path)
    assert "<script>alert(1)" not in path.read_text()


def test_wrong_names_are_refused_before_any_work(tmp_path):
    with pytest.raises(InvalidInputError, match=r"ends in \.gif; a picture is a \.png, \.svg"):
        check_plot_path(tmp_path / "picture.gif")
    with pytest.raises(InvalidInputError, match="ends in nothing"):
        check_plot_path(tmp_path / "picture")
    with pytest.raises(InvalidInputError, match="there is no folder"):
        check_plot_path(tmp_path / "missing" / "picture.png")


def overlaps(figure, solution):
    """Return the names whose letters touch a node, as drawn."""
    axes = figure.axes[0]
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    places = axes.transData.transform(place_players(solution).positions)
    nodes = next(c for c in axes.collections if type(c).__name__ == "PathCollection")
    radius = np.sqrt(nodes.get_sizes()[0]) / 2 * figure.dpi / 72
    touching = []
    for text in axes.texts:
        box = text.get_window_extent(renderer)
        low, high = np.array([box.x0, box.y0]), np.array([box.x1, box.y1])
        gap = np.maximum(np.maximum(low - places, places - high), 0)
        if (np.hypot(*gap.T) < radius).any():
            touching.append(text.get_text())
    return touching


@pytest.mark.parametrize("n", [1, 2, 5, 15, 30, 45, 60])
@pytest.mark.parametrize("name", ["{}", "mnist-{}"])
def test_names_do_not_touch_nodes(n, name):
    rng = np.random.default_rng(n)
    matrix = np.triu(rng.normal(size=(n, n)), 1)
    graph = SynergyGraph(matrix + matrix.T, [name.format(k) for k in range(n)])
    solution = solution_of(graph, rng.integers(0, max(1, n // 5), n))
    figure = solution_figure(graph, solution)
    assert len(figure.axes[0].texts) == n
    assert overlaps(figure, solution) == []


def test_small_matrices_have_numbers_and_coalitions_have_discs(friends, tmp_path):
    solution = solution_of(friends, [0, 0, 1, 1])
    figure = solution_figure(friends, solution)
    network, heat = figure.axes[:2]
    assert [text.get_text() for text in heat.texts[:4]] == ["0", "2", "1", "-1"]
    assert len(network.patches) == 2
    draw_solution(friends, solution, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert '"texttemplate":"%{text}"' in page
    assert page.count('"type":"circle"') >= 2
    assert page.count('"type":"line"') >= 2  # between the coalitions, across and down
    large = SynergyGraph(np.zeros((17, 17)))
    assert not solution_figure(large, solution_of(large, [0] * 17)).axes[1].texts


PHONE = 360
"""Pixels that a picture has on a phone."""


def test_few_players_can_be_read_on_a_phone():
    n = 16
    graph = SynergyGraph(np.full((n, n), -0.125) * (1 - np.eye(n)))
    figure = solution_figure(graph, solution_of(graph, np.arange(n)))
    pixels = PHONE / figure.get_figwidth() / 72  # of a point
    network, heat = figure.axes
    assert min(text.get_fontsize() for text in network.texts) * pixels > 9
    figure.draw_without_rendering()
    cells = [text.get_window_extent() for text in heat.texts[:n]]
    assert all(one.x1 <= two.x0 for one, two in itertools.pairwise(cells))


def test_the_same_solution_gives_the_same_picture(friends, tmp_path):
    solution = solution_of(friends, [0, 0, 1, 1])
    for ending in ("png", "svg", "pdf"):
        draw_solution(friends, solution, tmp_path / f"one.{ending}")
        draw_solution(friends, solution, tmp_path / f"two.{ending}")
        one, two = ((tmp_path / f"{name}.{ending}").read_bytes() for name in ("one", "two"))
        assert one == two


def test_a_solution_draws_itself(friends, tmp_path):
    from matplotlib.figure import Figure

    solution = solve(friends, "brute-force")
    assert isinstance(solution.plot(), Figure)
    assert isinstance(solution.plot(tmp_path / "s.svg"), Figure)
    assert isinstance(solution.plot(str(tmp_path / "s.html")), Figure)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.html", "s.svg"]
    with pytest.raises(InvalidInputError, match=r"a picture is a \.png"):
        solution.plot("s.gif")
    with pytest.raises(InvalidInputError, match="of a game has no graph"):
        solve_game(friends.game()).plot()


def test_a_solution_names_its_players(friends):
    solution = solve(friends, "brute-force", must_link=[("ann", "cleo")])
    assert solution.named == (("ann", "bob", "cleo"), ("dan",))
    assert solution.graph is friends
    assert solve_game(friends.game()).named[0][0] == "ann"
    assert solve([[0, 1], [1, 0]]).named == (("0", "1"),)
    assert "graph" not in repr(solution)


def test_a_solution_is_a_table(friends):
    solution = solution_of(friends, [0, 1, 0, 2])
    assert list(solution.to_frame().columns) == ["player", "coalition", "size"]
    solution = solve(friends, "brute-force", must_link=[("ann", "cleo")])
    frame = solution.to_frame()
    assert frame["player"].tolist() == ["ann", "bob", "cleo", "dan"]
    assert frame["coalition"].tolist() == solution.structure.labels.tolist() == [0, 0, 0, 1]
    assert frame["size"].tolist() == [3, 3, 3, 1]
    assert frame["synergy"].tolist() == [3, 1, 0, 0]
    assert frame["synergy"].sum() / 2 == solution.value


def test_a_notebook_shows_a_table_and_the_verdict():
    graph = SynergyGraph([[0, 2.5], [2.5, 0]], ["<b>ann</b>", "bob & co"])
    page = solve(graph, "brute-force")._repr_html_()
    assert "&lt;b&gt;ann&lt;/b&gt;, bob &amp; co" in page
    assert "<td>2.5</td>" in page
    assert "<p>value 2.5   optimal: no structure is worth more</p><p>brute-force, " in page
    many = SynergyGraph(np.zeros((200, 200)))
    page = solution_of(many, np.arange(200))._repr_html_()
    assert "(100 more coalitions)" in page
    assert "synergy inside" not in page
    unproven = replace(solution_of(graph, [0, 1]), bound=9.0, positive_weight=9.0)
    assert "not proven: at most 9 is possible" in unproven._repr_html_()


def test_print_shows_the_same_table_as_text(friends):
    solution = solve(friends, "brute-force", must_link=[("ann", "cleo")])
    head, first, second, empty, verdict, solver = str(solution).splitlines()
    assert head.split() == ["coalition", "players", "synergy", "inside"]
    assert first.split() == ["1", "ann,", "bob,", "cleo", "3", "2"]
    assert second.split() == ["2", "dan", "1", "0"]
    assert len(head) == len(first) == len(second)
    assert empty == ""
    assert verdict == "value 2   optimal among structures that keep ann and cleo together"
    assert solver.startswith("brute-force, ")
    assert repr(solution).startswith("Solution(structure=")
    odd = SynergyGraph([[0, 1.0], [1.0, 0]], ["an\x1bn", "李"])
    assert "an\\x1bn, 李" in str(solve(odd))
    assert "an\\x1bn, 李" in str(solve_game(odd.game()))
    why = explain(friends, solution, "ann", fragile_pairs=False)
    assert str(why) == why.text


@pytest.mark.parametrize(
    ("module", "use", "extra"),
    [
        ("pandas", lambda s: s.to_frame(), "tables"),
        ("matplotlib", lambda s: s.plot(), "report"),
        ("plotly", lambda s: s.plot("x.html"), "report"),
    ],
)
def test_what_is_not_installed_is_said_with_the_command(monkeypatch, friends, module, use, extra):
    solution = solve(friends, "brute-force")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=rf"{module}.*pip install .*\[{extra}\]"):
        use(solution)
