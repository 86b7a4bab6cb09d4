"""Ctrl-C returns the estimate so far; a folder lets a killed run go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from coalitions import (
    AirportGame,
    FunctionGame,
    InvalidInputError,
    banzhaf,
    parallel,
    shapley,
    top_k,
)
from coalitions.values import budget as door
from coalitions.values.estimators.regression import LeverageShap as Leverage


def root(rows):
    return np.sqrt(rows @ np.arange(1.0, rows.shape[1] + 1))


@pytest.fixture
def every_game_is_long(monkeypatch):
    monkeypatch.setattr(door, "LONG", 0.0)
    monkeypatch.setattr(door, "MOST_SHARE", 1e9)


def interrupting(after):
    """Return a progress report that presses Ctrl-C after so many evaluations."""

    def progress(state):
        if state.done > after:
            signal.raise_signal(signal.SIGINT)

    return progress


@pytest.mark.parametrize("share", [1e9, 0.0])
@pytest.mark.parametrize(
    ("players", "options"),
    [
        (6, {}),
        (9, {"budget": 200}),
        (9, {"method": "antithetic", "budget": 200}),
        (9, {"method": "leverage", "budget": 200}),
    ],
)
def test_a_long_game_has_the_same_values_and_no_coalition_twice(
    players, options, share, every_game_is_long, monkeypatch
):
    monkeypatch.setattr(door, "MOST_SHARE", share)
    calls = []
    game = FunctionGame(lambda rows: calls.extend(map(bytes, rows)) or root(rows), players)
    staged = shapley(game, **options)
    assert len(calls) == len(set(calls)) == staged.evaluations
    monkeypatch.setattr(door, "LONG", 1e9)
    plain = shapley(FunctionGame(root, players), **options)
    np.testing.assert_array_equal(staged.values, plain.values)
    np.testing.assert_array_equal(staged.stderr, plain.stderr)
    assert (staged.method, staged.evaluations) == (plain.method, plain.evaluations)
    assert staged.stopped == ""
    assert staged.base == plain.base == 0.0


def test_ctrl_c_returns_what_a_smaller_budget_would_have(every_game_is_long):
    game = FunctionGame(root, 12)
    found = shapley(game, budget=400, batch_size=10, progress=interrupting(250))
    assert found.stopped == "interrupted"
    assert found.evaluations == 200
    smaller = shapley(game, budget=200)
    np.testing.assert_array_equal(found.values, smaller.values)
    np.testing.assert_array_equal(found.stderr, smaller.stderr)
    assert "stopped: interrupted" in found._repr_html_()
    assert json.loads(found.to_json())["stopped"] == "interrupted"


def test_ctrl_c_uses_what_was_evaluated_where_estimates_take_long(monkeypatch):
    monkeypatch.setattr(door, "LONG", 0.0)
    monkeypatch.setattr(door, "MOST_SHARE", 0.0)  # so that only the first stage is estimated
    game = FunctionGame(root, 12)
    found = shapley(game, budget=400, batch_size=10, progress=interrupting(250))
    assert (found.stopped, found.evaluations) == ("interrupted", 200)
    np.testing.assert_array_equal(found.values, shapley(game, budget=200).values)


def test_a_second_ctrl_c_does_not_wait_for_an_estimate(monkeypatch):
    monkeypatch.setattr(door, "LONG", 0.0)
    monkeypatch.setattr(door, "MOST_SHARE", 0.0)
    pressed = []

    def estimated(self, pool, plain=Leverage.estimate, *, seed):
        values = plain(self, pool, seed=seed)
        if pressed:
            signal.raise_signal(signal.SIGINT)
        return values

    def progress(state):
        if state.done > 250:
            pressed.append(state.done)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Leverage, "estimate", estimated)
    game = FunctionGame(root, 12)
    found = shapley(game, "leverage", budget=400, batch_size=10, progress=progress)
    assert (found.stopped, found.evaluations) == ("interrupted", 26)


def test_ctrl_c_in_an_exact_run_returns_an_estimate_that_says_so(every_game_is_long):
    game = FunctionGame(root, 10)
    found = shapley(game, batch_size=16, progress=interrupting(600))
    assert (found.method, found.evaluations) == ("portfolio", 512)
    assert found.stopped == "interrupted"
    assert "before all 2^10 coalitions" in found.reason
    np.testing.assert_allclose(found.values, shapley(game).values, atol=0.01)
    assert banzhaf(game, batch_size=16, progress=interrupting(600)).stopped == "interrupted"


def test_ctrl_c_before_there_is_anything_goes_its_usual_way(every_game_is_long):
    game = FunctionGame(root, 12)
    with pytest.raises(KeyboardInterrupt):
        shapley(game, budget=400, batch_size=1, progress=interrupting(10))
    with pytest.raises(KeyboardInterrupt):
        shapley(game, budget=400, batch_size=10, progress=interrupting(250), interruptible=False)


def test_a_target_error_keeps_its_looks_and_says_why_it_stopped():
    game = FunctionGame(root, 20)
    met = shapley(game, "antithetic", budget=4000, target_error=0.2)
    assert met.stopped == "target error"
    assert met.evaluations < 4000
    cut = shapley(
        game, "antithetic", budget=4000, target_error=1e-9, batch_size=50,
        progress=interrupting(1500),
    )  # fmt: skip
    assert cut.stopped == "interrupted"
    assert 500 < cut.evaluations <= 1000


def test_a_long_game_reports_every_few_coalitions(every_game_is_long):
    seen, calls = [], []
    game = FunctionGame(lambda rows: calls.append(len(rows)) or root(rows), 9)
    shapley(game, budget=200, progress=lambda state: seen.append((state.done, state.total)))
    assert max(calls) == 16
    assert seen[-1] == (200, 200)
    assert len(seen) == len(calls) >= 200 / 16


def test_other_threads_hear_nothing_of_ctrl_c_and_go_straight_on(every_game_is_long):
    calls = []
    game = FunctionGame(lambda rows: calls.append(len(rows)) or root(rows), 9)
    thread = threading.Thread(target=lambda: shapley(game, budget=200))
    thread.start()
    thread.join()
    assert calls == [2, 198]


def test_the_k_largest_of_the_last_look_come_back(every_game_is_long):
    noise = np.random.default_rng(0).normal(size=1 << 12)
    masks = 1 << np.arange(12)
    game = FunctionGame(lambda rows: noise[rows @ masks], 12)
    top = top_k(game, 3, budget=600, batch_size=10, progress=interrupting(400))
    assert not top.settled
    assert top.estimate.stopped == "interrupted"
    assert top.evaluations == 300


PROGRAM = """
import sys, time
import numpy as np
from coalitions import FunctionGame, parallel, shapley

asked = 0

def value(row):
    global asked
    asked += 1
    time.sleep(0.01 if asked <= 250 else 2.0)  # the one that interrupts may be late
    with open({log!r}, "ab", buffering=0) as log:
        log.write(bytes(row.tolist()) + b"\\n")
    return float(np.sqrt(row @ np.arange(1.0, 13.0)))

game = FunctionGame(value, 12, takes="row")
found = shapley({game}, budget={budget}, resume={resume!r})
print(found.stopped, found.evaluations, *found.values.tolist(), float(found.stderr.max()))
"""


def started(tmp_path, game="game", resume=None, budget=None):
    script, log = tmp_path / "program.py", tmp_path / "log"
    script.write_text(PROGRAM.format(log=str(log), game=game, resume=resume, budget=budget))
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, start_new_session=True, text=True
    )
    return process, log


def wait_for(log, evaluations, process):
    deadline = time.monotonic() + 120
    while not log.exists() or log.stat().st_size < evaluations * 13:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)


def test_a_real_ctrl_c_ends_the_game_at_once_and_the_estimate_is_printed(tmp_path):
    process, log = started(tmp_path)  # exact: 4096 evaluations
    wait_for(log, 200, process)
    process.send_signal(signal.SIGINT)
    words = process.communicate(timeout=60)[0].split()
    assert process.returncode == 0
    assert words[0] == "interrupted"
    assert 26 <= int(words[1]) <= 512
    same = shapley(FunctionGame(root, 12), "portfolio", budget=int(words[1]))
    np.testing.assert_allclose(np.array(words[2:-1], float), same.values, atol=1e-9)
    assert float(words[-1]) == pytest.approx(same.stderr.max())


@pytest.mark.parametrize("game", ["game", "parallel(game, 2, chunk_size=3)"])
def test_after_a_kill_the_same_call_evaluates_nothing_again(tmp_path, game):
    folder = tmp_path / "values"
    process, log = started(tmp_path, game, str(folder), budget=120)
    wait_for(log, 40, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    # A call of the game that was not answered is no value yet: one row, or a chunk for each worker.
    kept = (folder / "values.bin").stat().st_size // 14
    before = len(log.read_bytes().splitlines())
    assert before - (1 if game == "game" else 6) <= kept <= before
    process, _ = started(tmp_path, game, str(folder), budget=120)
    words = process.communicate(timeout=120)[0].split()
    again = log.read_bytes().splitlines()[before:]
    assert len(again) == 120 - kept
    assert len(set(again)) == len(again)
    plain = shapley(FunctionGame(root, 12), budget=120)
    np.testing.assert_allclose(np.array(words[1:-1], float), plain.values, rtol=1e-9, atol=1e-12)


def test_resume_refuses_another_game_and_leaves_closed_forms_alone(tmp_path):
    one = FunctionGame(lambda rows: rows.sum(axis=1), 4)
    first = shapley(one, resume=tmp_path / "v")
    np.testing.assert_array_equal(shapley(one, resume=tmp_path / "v").values, first.values)
    assert banzhaf(one, resume=tmp_path / "v").evaluations == 16
    with pytest.raises(InvalidInputError, match="values of another game"):
        shapley(FunctionGame(lambda rows: rows.any(axis=1), 4), resume=tmp_path / "v")
    with pytest.raises(InvalidInputError, match="the folder for values is 5; it must be a path"):
        shapley(one, resume=5)
    assert shapley(AirportGame([1, 2]), resume=tmp_path / "w").evaluations == 0
    assert not (tmp_path / "w").exists()


def test_workers_that_are_shared_stay_shared(tmp_path):
    with parallel(FunctionGame(root, 5), 2) as game:
        kept = shapley(game, resume=tmp_path)
    np.testing.assert_array_equal(kept.values, shapley(FunctionGame(root, 5)).values)
