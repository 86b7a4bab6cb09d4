"""Pictures of solutions: the geometry is right, and files of both kinds come out for any graph."""

from __future__ import annotations

import json
import re
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.report.structure_plot import (
    block_means,
    check_plot_path,
    draw_solution,
    pairs_to_draw,
    place_players,
    title_of,
)
from coalitions import CoalitionStructure, InvalidInputError, SynergyGraph
from solvers import Solution, solve


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


@pytest.mark.parametrize("ending", [".png", ".html"])
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
    with pytest.raises(InvalidInputError, match=r"ends in \.pdf; a picture is a \.png or"):
        check_plot_path(tmp_path / "picture.pdf")
    with pytest.raises(InvalidInputError, match="ends in nothing"):
        check_plot_path(tmp_path / "picture")
    with pytest.raises(InvalidInputError, match="there is no folder"):
        check_plot_path(tmp_path / "missing" / "picture.png")
