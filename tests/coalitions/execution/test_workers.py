"""Workers return the same numbers in the same order, whoever they are and however many."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

from coalitions import (
    AirportGame,
    FunctionGame,
    InvalidInputError,
    NoSolutionError,
    TableGame,
    all_coalitions,
    parallel,
    shapley,
)

TABLE = TableGame(np.random.default_rng(0).normal(size=256))


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("chunk_size", [1, 7, 1000])
def test_numbers_and_order_do_not_depend_on_the_workers(workers, chunk_size):
    rows = all_coalitions(8)[::-1]
    with parallel(TABLE, workers, chunk_size=chunk_size) as game:
        np.testing.assert_array_equal(game(rows), TABLE(rows))
        np.testing.assert_array_equal(game(rows[:5]), TABLE(rows[:5]))
        assert game(rows[:0]).shape == (0,)
        assert game.labels == TABLE.labels


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_any_executor_will_do_and_stays_open(kind):
    rows = all_coalitions(8)
    with kind(2) as executor:
        with parallel(TABLE, executor, chunk_size=64) as game:
            np.testing.assert_array_equal(game(rows), TABLE(rows))
        assert executor.submit(int, "3").result() == 3


def test_an_estimate_is_the_same_as_without_workers():
    game = FunctionGame(lambda rows: np.sqrt(rows @ np.arange(20.0)), 20)
    plain = shapley(game, budget=60, batch_size=1)
    with parallel(game, 2) as shared:
        np.testing.assert_array_equal(shapley(shared, budget=60).values, plain.values)


def test_several_workers_are_at_work(tmp_path):
    def value(row):
        (tmp_path / str(os.getpid())).touch()
        until = time.monotonic() + 60.0
        while len(list(tmp_path.iterdir())) < 3 and time.monotonic() < until:
            time.sleep(0.01)  # until all three have come; the machine may be busy
        return float(os.getpid())

    with parallel(FunctionGame(value, 5, takes="row"), 3) as game:
        assert len(set(game(all_coalitions(5)).tolist()) - {float(os.getpid())}) == 3


def test_an_error_of_the_game_comes_through_and_the_game_goes_on():
    def value(row):
        if row.all():
            raise ZeroDivisionError("of the game")
        return float(row.sum())

    with parallel(FunctionGame(value, 3, takes="row"), 2) as game:
        with pytest.raises(ZeroDivisionError, match="of the game"):
            game(all_coalitions(3))
        assert game([[1, 1, 0]]).tolist() == [2]


def test_a_worker_that_dies_is_a_sentence_and_the_game_goes_on():
    def value(row):
        if row.all():
            os.kill(os.getpid(), signal.SIGKILL)
        return float(row.sum())

    with parallel(FunctionGame(value, 3, takes="row"), 2) as game:
        with pytest.raises(NoSolutionError, match="a worker ended before it had answered"):
            game(all_coalitions(3))
        assert game([[1, 1, 0]]).tolist() == [2]


def test_a_game_that_cannot_be_sent_to_an_executor_is_a_sentence():
    game = FunctionGame(lambda rows: rows.sum(axis=1), 3)
    with (
        ProcessPoolExecutor(1) as executor,
        pytest.raises(InvalidInputError, match="cannot be sent to another process"),
    ):
        parallel(game, executor)(all_coalitions(3))


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"workers": "two"}, {"chunk_size": 0},
                                   {"threads": 0}])  # fmt: skip
def test_wrong_arguments_are_refused(wrong):
    with pytest.raises(InvalidInputError, match="must be a whole number of at least 1"):
        parallel(AirportGame([1, 2]), **wrong)


SLEEPER = """
import time
from coalitions import FunctionGame, parallel, shapley
def value(row):
    time.sleep(600)
with parallel(FunctionGame(value, 6, takes="row"), 2) as game:
    print("asking", flush=True)
    game([[True] * 6] * 4)
"""


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_the_one_that_asked(blow):
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout.readline() == "asking\n"
    deadline = time.monotonic() + 200
    while len(workers := children_of(process.pid)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.3)
    if blow == signal.SIGINT:
        os.killpg(process.pid, blow)  # what a terminal does at Ctrl-C
    else:
        os.kill(process.pid, blow)
    _, errors = process.communicate(timeout=100)
    while any(map(alive, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    if blow == signal.SIGINT:
        assert errors.count("Traceback") == 1  # the user's own program, not one for each worker
        assert errors.strip().endswith("KeyboardInterrupt")


def test_joblibs_executor_will_do():
    loky = pytest.importorskip("joblib.externals.loky", reason="joblib is not installed")
    executor = loky.get_reusable_executor(2)
    try:
        with parallel(TABLE, executor, chunk_size=64) as game:
            rows = all_coalitions(8)
            np.testing.assert_array_equal(game(rows), TABLE(rows))
        # It pickles by itself what pickle does not take.
        with parallel(FunctionGame(lambda rows: rows.sum(axis=1), 4), executor) as game:
            assert shapley(game, budget=16).values == pytest.approx(1.0)
    finally:
        executor.shutdown(kill_workers=True)
