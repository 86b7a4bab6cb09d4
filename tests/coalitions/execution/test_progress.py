"""The line says how long it will take, from how long it took lately."""

from __future__ import annotations

import io

import pytest

from coalitions import Evaluations, FunctionGame, shapley, time_left


class Screen(io.StringIO):
    def isatty(self):
        return True


def lines(reports, budget, *, stream=None, every=1.0):
    stream = stream or io.StringIO()
    clock = iter([second for second, _ in reports])
    progress = time_left(stream, every=every, clock=lambda: next(clock))
    for _, done in reports:
        progress(Evaluations(done, budget))
    return stream.getvalue().splitlines()


def test_what_came_at_once_from_the_disk_is_forgotten():
    # 500 values were known, then each takes a second.
    reports = [(0.0, 1), (0.1, 500), *((0.1 + k, 500 + k) for k in range(1, 121))]
    assert lines(reports, 1000)[-1] == "620 of 1000 evaluations, about 6 min left"


def test_no_more_lines_than_asked_for_but_always_the_last():
    reports = [(k / 10, k) for k in range(101)]
    written = lines(reports, 100, every=5.0)
    assert [line.split()[0] for line in written] == ["0", "50", "100"]
    assert written[-1] == "100 of 100 evaluations"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.1, "1 s"), (59, "59 s"), (61, "1 min"), (7000, "117 min"), (9000, "2 h")],
)
def test_times_are_said_as_people_do(seconds, said):
    assert lines([(0, 0), (seconds, 1)], 2, every=0)[-1].endswith(f"about {said} left")


def test_a_terminal_has_one_line():
    screen = Screen()
    lines([(0, 1), (5, 2), (10, 3)], 3, stream=screen)
    assert screen.getvalue().count("\n") == 1
    assert screen.getvalue().count("\r") == 3


def test_shapley_takes_it():
    stream = io.StringIO()
    game = FunctionGame(lambda rows: rows.sum(axis=1), 20)
    shapley(game, "antithetic", budget=200, batch_size=20, progress=time_left(stream, every=0))
    assert len(stream.getvalue().splitlines()) >= 5
