"""Results have names, tables, pictures and comparisons; labels are text everywhere."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from coalitions import (
    AirportGame,
    Estimate,
    Estimates,
    FunctionGame,
    InvalidInputError,
    MissingDependencyError,
    TableGame,
    UnknownNameError,
    banzhaf,
    cached,
    feature_games,
    interaction_network,
    interactions,
    leave_one_out,
    normalized,
    reported,
    restricted,
    shapley,
    stored,
    synergy_game,
)
from coalitions.values.estimates import swarm
from tests.coalitions.table_games import pairs_of

ODD = ("<b>ann</b>", "$b$", "c\x1b[2J")


@pytest.fixture
def odd():
    return synergy_game([[0, 2, -1], [2, 0, 4], [-1, 4, 0]], ODD)


@pytest.fixture
def sampled():
    return shapley(FunctionGame(lambda rows: np.sqrt(rows @ np.arange(1.0, 41.0)), 40), budget=100)


def texts(figure):
    from matplotlib.text import Text

    return [each.get_text() for each in figure.findobj(Text)]


def test_a_result_knows_the_names_of_the_game(odd):
    assert shapley(odd).named == dict(zip(ODD, [0.5, 3.0, 1.5], strict=True))
    assert banzhaf(odd).names == leave_one_out(odd).names == ODD
    assert pairs_of(odd).named[ODD[0], ODD[1]] == 2.0
    assert shapley(AirportGame([1, 2])).named == {"0": 0.5, "1": 1.5}


def test_wrapped_games_keep_their_names(odd, tmp_path):
    for wrapped in (cached(odd), normalized(odd), reported(odd, print), stored(odd, tmp_path)):
        assert shapley(wrapped).names == ODD
    assert shapley(restricted(odd, [2, 0])).names == (ODD[2], ODD[0])


@pytest.mark.parametrize("labels", [np.zeros(3), ["x"] * 3, ["a", "b"], "abc", None, 7])
def test_what_a_foreign_game_calls_labels_need_not_be_names(labels):
    game = FunctionGame(lambda rows: rows.sum(axis=1), 3)
    game.labels = labels
    assert shapley(game).names == ("0", "1", "2")


def test_the_base_is_the_empty_coalitions_value_whenever_that_was_evaluated(sampled):
    table = TableGame([3.0, 4.0, 5.0, 8.0])
    asked = FunctionGame(table, 2)
    calls = []
    counted = FunctionGame(lambda rows: calls.extend(rows) or table(rows), 2)
    assert shapley(table).base == shapley(asked).base == 3.0
    assert shapley(counted).base == 3.0
    assert len(calls) == 4
    assert sampled.base == 0.0
    assert shapley(AirportGame([1, 2])).base is None  # nothing was evaluated


def test_a_frame_has_a_row_for_each_player_or_pair(sampled, odd):
    frame = sampled.to_frame()
    assert list(frame) == ["player", "value", "stderr", "low", "high"]
    assert len(frame) == 40
    assert (frame.low < frame.value).all()
    pairs = pairs_of(odd).to_frame()
    assert list(pairs)[:3] == ["coalition", "order", "value"]
    assert pairs.value.tolist() == [2.0, -1.0, 4.0]


def test_json_has_what_the_command_line_prints(sampled, odd):
    document = json.loads(sampled.to_json())
    assert document["values"]["39"] == sampled.values[39]
    assert document["stderr"]["39"] == sampled.stderr[39]
    assert (document["method"], document["evaluations"]) == ("portfolio", 100)
    assert json.loads(pairs_of(odd).to_json())["interactions"][0]["coalition"] == [*ODD[:2]]


def test_a_notebook_shows_labels_as_text_and_no_more_than_fifty_rows(odd, sampled):
    page = shapley(odd)._repr_html_()
    assert "&lt;b&gt;ann&lt;/b&gt;" in page
    assert "<b>" not in page
    assert "\x1b" not in page
    assert "standard error" not in page
    assert "standard error" in sampled._repr_html_()
    many = shapley(AirportGame(range(1, 101)))._repr_html_()
    assert many.count("<tr>") == 52
    assert "(50 more)" in many
    assert "<b>" not in pairs_of(odd)._repr_html_()


def test_print_shows_the_same_table_as_text(odd, sampled):
    lines = str(shapley(odd)).splitlines()
    assert lines[0].split() == ["player", "value"]
    assert len(lines) == 1 + odd.n_players + 2
    assert "\x1b" not in str(shapley(odd))
    assert lines[-1].startswith("exact")
    assert "± standard error" in str(sampled)
    assert str(pairs_of(odd)).splitlines()[0].split() == ["players", "value"]
    assert str(interactions(odd, "SII", order=2)).splitlines()[0].split() == ["players", "value"]


@pytest.mark.parametrize("kind", ["bar", "waterfall", "force"])
def test_every_kind_of_plot_is_a_figure_with_the_names_as_text(kind, odd, sampled, tmp_path):
    file = tmp_path / "values.png"
    figure = shapley(odd).plot(kind, file)
    assert file.read_bytes().startswith(b"\x89PNG")
    assert {"<b>ann</b>", "$b$"} <= set(texts(figure))
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert sampled.plot(kind).axes


def test_bars_are_as_long_as_the_values_and_intervals_as_wide(sampled):
    axes = sampled.plot().axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    lengths = [patch.get_width() for patch in axes.patches]
    assert names[-1] == "11 others together"
    np.testing.assert_allclose(lengths[:-1], [sampled.named[name] for name in names[:-1]])
    assert sum(lengths) == pytest.approx(sampled.values.sum())
    low, _ = sampled.interval()
    assert axes.collections[0].get_segments()[0][0][0] == pytest.approx(low[int(names[0])])


def test_a_waterfall_goes_from_nobody_to_all():
    result = shapley(TableGame([3.0, 4.0, 5.0, 1.0]))
    axes = result.plot("waterfall").axes[0]
    first, last = axes.patches[0], axes.patches[-1]
    assert first.get_x() == pytest.approx(3.0)
    assert last.get_x() + last.get_width() == pytest.approx(1.0)
    assert axes.get_xlabel() == "from 3 (nobody) to 1 (all)"


def test_an_unknown_kind_or_file_is_refused_in_a_sentence(odd, tmp_path):
    with pytest.raises(UnknownNameError, match="did you mean 'waterfall'"):
        shapley(odd).plot("waterfal")
    with pytest.raises(InvalidInputError, match=r"a picture is a \.png, \.svg or \.pdf"):
        shapley(odd).plot(path=tmp_path / "values.html")


def test_without_matplotlib_or_pandas_there_is_a_sentence(odd, monkeypatch):
    for name in ("matplotlib", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match=r"matplotlib.*pip install '\.\[report\]"):
        shapley(odd).plot()
    with pytest.raises(MissingDependencyError, match=r"pandas.*pip install '\.\[tables\]'"):
        shapley(odd).to_frame()


def test_a_network_has_a_line_for_each_pair_and_an_area_for_three(odd):
    axes = pairs_of(odd).plot().axes[0]
    assert len(axes.lines) == 3
    widths = sorted(line.get_linewidth() for line in axes.lines)
    assert widths[-1] > widths[0]
    axes = interaction_network({(0,): 1.0, (0, 1): -1.0, (0, 1, 2): 2.0}, ODD).axes[0]
    assert (len(axes.lines), len(axes.patches)) == (1, 1)
    with pytest.raises(InvalidInputError, match="is no set of the players"):
        interaction_network({(0, 3): 1.0}, ODD)


def test_interactions_of_any_order_have_a_picture_and_a_table(odd, tmp_path):
    found = interactions(odd, "SII", order=3)
    axes = found.plot(tmp_path / "network.svg").axes[0]
    assert (tmp_path / "network.svg").stat().st_size
    assert len(axes.lines) == 3
    assert "<b>ann</b>" in texts(axes.figure)
    page = found._repr_html_()
    assert "&lt;b&gt;ann&lt;/b&gt; × $b$" in page
    assert "<b>" not in page


def test_many_rows_make_a_beeswarm():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 3))
    games = feature_games(lambda x: 3 * x[:, 0] - x[:, 1], rows, np.zeros(3), names=ODD)
    many = Estimates([shapley(game) for game in games], games)
    np.testing.assert_allclose(many.values[:, 0], 3 * rows[:, 0])
    np.testing.assert_array_equal(many.data, rows)
    assert list(many.named) == [*ODD]
    assert list(many.to_frame())[:3] == ["row", "player", "value"]
    assert len(many.to_frame()) == 90
    assert len(json.loads(many.to_json())["rows"]) == len(many) == 30
    assert "&lt;b&gt;" in many._repr_html_()
    figure = many.plot()
    points = [each for each in figure.axes[0].collections if len(each.get_offsets())]
    assert [len(each.get_offsets()) for each in points] == [30, 30, 30]
    np.testing.assert_allclose(points[0].get_offsets()[:, 0], many.values[:, 0])
    assert [bar.get_width() for bar in many.plot("bar").axes[0].patches] == pytest.approx(
        sorted(many.importance, reverse=True)
    )


def test_words_and_groups_have_no_colour_and_different_players_are_refused():
    class Odd(FunctionGame):
        row, players = ["red", 2.0, 3.0], ((0,), (1,), (1, 2))

    game = Odd(lambda rows: rows.sum(axis=1), 3)
    many = Estimates([shapley(game)], [game])
    assert np.isnan(many.data).tolist() == [[True, False, True]]
    with pytest.raises(InvalidInputError, match="different players"):
        Estimates([shapley(game), shapley(AirportGame([1, 2]))])
    with pytest.raises(InvalidInputError, match="1 results and 2 games"):
        Estimates([shapley(game)], [game, game])
    with pytest.raises(InvalidInputError, match="one game or more"):
        Estimates([])


def test_points_of_a_swarm_keep_apart_and_near_their_line():
    offsets = swarm(np.zeros(100), 1.0)
    assert len(set(offsets.tolist())) == 100
    assert np.abs(offsets).max() <= 0.4


def estimate(values, stderr, **more):
    return Estimate(np.array(values, float), np.array(stderr, float), 10, "permutation", **more)


def test_a_difference_matches_players_by_name_and_adds_the_errors():
    one = estimate([1, 2, 3], [0.3, 0, 0.3], labels=("a", "b", "c"), degrees_of_freedom=9.0)
    two = estimate([3, 1, 1], [0.4, 0.4, 0], labels=("c", "b", "a"), degrees_of_freedom=4.0)
    gap = one.difference(two)
    assert gap.named == {"a": 0.0, "b": 1.0, "c": 0.0}
    np.testing.assert_allclose(gap.stderr, [0.3, 0.4, 0.5])
    assert gap.degrees_of_freedom == pytest.approx(4.0)
    assert gap.evaluations == 20
    with pytest.raises(InvalidInputError, match="different players"):
        one.difference(estimate([1, 2, 3], [0, 0, 0]))
    with pytest.raises(InvalidInputError, match="cannot be compared"):
        one.difference([1, 2, 3])


def test_intervals_of_differences_of_independent_estimates_cover():
    game = FunctionGame(lambda rows: np.sqrt(rows @ np.arange(1.0, 9.0)), 8)
    truth = shapley(game).values
    other = FunctionGame(lambda rows: np.sqrt(rows @ np.arange(8.0, 0.0, -1.0)), 8)
    held = []
    for seed in range(40):
        one = shapley(game, "permutation", budget=100, seed=2 * seed)
        two = shapley(other, "permutation", budget=100, seed=2 * seed + 1)
        low, high = one.difference(two).interval()
        held.append(((low <= truth - truth[::-1]) & (truth - truth[::-1] <= high)).mean())
    assert np.mean(held) > 0.9


def test_rank_correlation_of_exact_values_is_kendalls():
    from scipy.stats import kendalltau

    rng = np.random.default_rng(0)
    one, two = rng.normal(size=(2, 12))
    found = estimate(one, np.zeros(12)).rank_correlation(estimate(two, np.zeros(12)))
    assert found.low == found.value == found.high == pytest.approx(kendalltau(one, two)[0])
    tied = estimate([1, 1, 2], [0, 0, 0]).rank_correlation(estimate([1, 2, 3], [0, 0, 0]))
    assert (tied.low, tied.value, tied.high) == pytest.approx((2 / 3,) * 3)


def test_the_ends_of_a_rank_correlation_hold_the_truth():
    rng = np.random.default_rng(1)
    one, two = rng.normal(size=(2, 15))
    truth = estimate(one, np.zeros(15)).rank_correlation(estimate(two, np.zeros(15))).value
    held = []
    for _ in range(200):
        noise = 0.1 * rng.normal(size=(2, 15))
        found = estimate(one + noise[0], np.full(15, 0.1)).rank_correlation(
            estimate(two + noise[1], np.full(15, 0.1))
        )
        held.append(found.low <= truth <= found.high)
        assert found.low <= found.value <= found.high
    assert np.mean(held) >= 0.95
    same = estimate(one + noise[0], np.full(15, 0.1)).rank_correlation(
        estimate(one + noise[1], np.full(15, 0.1))
    )
    assert same.high == 1.0 > same.value


def test_a_rank_correlation_wants_two_players_and_a_level():
    with pytest.raises(InvalidInputError, match="two players or more"):
        estimate([1], [0]).rank_correlation(estimate([1], [0]))
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        estimate([1, 2], [0, 0]).rank_correlation(estimate([1, 2], [0, 0]), 1.0)
