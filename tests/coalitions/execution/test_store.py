"""Values on disk survive whatever happens to the process, and belong to one game."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from coalitions import (
    AirportGame,
    FunctionGame,
    InvalidInputError,
    all_coalitions,
    cached,
    parallel,
    shapley,
    stored,
)
from coalitions.errors import DamagedFileError, DamagedFileWarning, StorageError
from coalitions.execution.store import fingerprint

COSTS = [8.0, 11.0, 13.0, 18.0]


def counted(calls):
    def value(rows):
        calls.extend(rows.tolist())
        return rows @ np.arange(1.0, 5.0)

    return FunctionGame(value, 4)


def test_a_second_run_evaluates_nothing(tmp_path):
    calls = []
    rows = all_coalitions(4)
    first = stored(counted(calls), tmp_path / "v", name="sum")(rows)
    assert len(calls) == 16
    again = stored(counted(calls), tmp_path / "v", name="sum")
    np.testing.assert_array_equal(again(rows), first)
    assert len(calls) == 16
    assert again.evaluations == 0
    assert len(again) == 16


def test_a_coalition_that_comes_twice_is_evaluated_once(tmp_path):
    calls = []
    game = stored(counted(calls), tmp_path, name="sum", batch_size=8)
    assert game([[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]]).tolist() == [1, 2, 1]
    assert len(calls) == 2


def test_another_game_is_refused_and_so_is_another_name(tmp_path):
    stored(AirportGame(COSTS), tmp_path / "a")([[1, 0, 0, 0]])
    with pytest.raises(InvalidInputError, match="values of another game"):
        stored(AirportGame([*COSTS[:3], 19.0]), tmp_path / "a")
    with pytest.raises(InvalidInputError, match="values of another game"):
        stored(AirportGame(COSTS), tmp_path / "a", name="airport")
    with pytest.raises(InvalidInputError, match="values of another game"):
        stored(AirportGame(COSTS[:3]), tmp_path / "a")


def test_functions_are_told_apart_by_what_they_do_and_close_over():
    def game(factor, exponent=1):
        return FunctionGame(lambda rows: factor * rows.sum(axis=1) ** exponent, 3)

    assert fingerprint(game(2)) == fingerprint(game(2))
    assert len({fingerprint(game(2)), fingerprint(game(3)), fingerprint(game(2, 2))}) == 3
    assert fingerprint(FunctionGame(lambda rows: rows.sum(axis=1), 3)) != fingerprint(
        FunctionGame(lambda rows: rows.any(axis=1), 3)
    )


def test_the_fingerprint_is_the_same_in_another_process():
    code = textwrap.dedent("""
        from coalitions import FunctionGame, bankruptcy_game
        from coalitions.execution.store import fingerprint
        name = "an" + "n"
        game = FunctionGame(lambda rows: rows.sum(axis=1) * len(name), 3)
        print(fingerprint(game), fingerprint(bankruptcy_game([1, 2], 2, ["a", "b"])))
    """)
    seen = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(seen) == 1


def test_what_cannot_be_digested_wants_a_name(tmp_path):
    game = FunctionGame(lambda rows, file=sys.stdout: rows.sum(axis=1), 2)
    with pytest.raises(InvalidInputError, match="give it a name"):
        stored(game, tmp_path)
    assert stored(game, tmp_path, name="sum")([[1, 1]]).tolist() == [2]


def test_a_torn_record_is_cut_off_and_evaluated_again(tmp_path):
    calls = []
    stored(counted(calls), tmp_path, name="sum")([[1, 0, 0, 0], [0, 1, 0, 0]])
    file = tmp_path / "values.bin"
    file.write_bytes(file.read_bytes()[:-5])  # killed in the middle of a write
    game = stored(counted(calls), tmp_path, name="sum")
    assert len(game) == 1
    assert game([[0, 1, 0, 0], [0, 0, 1, 0]]).tolist() == [2, 3]
    assert len(calls) == 4
    assert len(stored(counted(calls), tmp_path, name="sum")) == 3


def test_a_damaged_value_is_never_returned(tmp_path):
    calls = []
    rows = all_coalitions(4)
    stored(counted(calls), tmp_path, name="sum")(rows)
    file = tmp_path / "values.bin"
    content = bytearray(file.read_bytes())
    content[3 * 13 + 4] ^= 1  # in the value of the fourth record
    file.write_bytes(content)
    with pytest.warns(DamagedFileWarning, match="1 values are damaged"):
        game = stored(counted(calls), tmp_path, name="sum")
    np.testing.assert_array_equal(game(rows), rows @ np.arange(1.0, 5.0))
    assert game.evaluations == 1


def test_a_folder_without_its_card_is_refused(tmp_path):
    stored(AirportGame(COSTS), tmp_path)([[1, 0, 0, 0]])
    (tmp_path / "game.json").unlink()
    with pytest.raises(DamagedFileError, match="the game of the values in"):
        stored(AirportGame(COSTS), tmp_path)


def test_a_card_that_is_not_ours_is_refused(tmp_path):
    (tmp_path / "game.json").write_text(json.dumps([1]))
    with pytest.raises(InvalidInputError, match="another game"):
        stored(AirportGame(COSTS), tmp_path)


def test_a_place_that_cannot_be_a_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidInputError, match="cannot be made"):
        stored(AirportGame(COSTS), tmp_path / "file" / "below")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_named(tmp_path):
    game = stored(AirportGame(COSTS), tmp_path)
    (tmp_path / "values.bin").symlink_to("/dev/full")
    with pytest.raises(StorageError, match=r"values\.bin cannot be written: the disk is full"):
        game._append({b"\x80": 1.0})


def test_two_objects_share_a_folder(tmp_path):
    one, other = stored(AirportGame(COSTS), tmp_path), stored(AirportGame(COSTS), tmp_path)
    one([[1, 0, 0, 0]])
    other([[1, 0, 0, 0], [1, 1, 0, 0]])
    assert (one.evaluations, other.evaluations) == (1, 1)


def test_it_goes_inside_parallel_only(tmp_path):
    with pytest.raises(InvalidInputError, match="store first"):
        stored(parallel(AirportGame(COSTS)), tmp_path)


def test_the_same_shapley_values_with_and_without(tmp_path):
    game = FunctionGame(lambda rows: np.sqrt(rows.sum(axis=1)), 20)
    plain = shapley(game, "antithetic", budget=200)
    kept = shapley(stored(game, tmp_path), "antithetic", budget=200)
    np.testing.assert_array_equal(plain.values, kept.values)
    memory = cached(stored(game, tmp_path))
    np.testing.assert_array_equal(shapley(memory, "antithetic", budget=200).values, plain.values)
    assert memory.game.evaluations == 0


PROGRAM = """
import os, sys, time
import numpy as np
from coalitions import FunctionGame, parallel, shapley, stored

def value(row):
    time.sleep(0.02)
    with open({log!r}, "ab", buffering=0) as log:   # what the game has returned, as it knows it
        log.write(bytes(row.tolist()) + b"\\n")
    return float(np.sqrt(row.sum()))

game = stored(FunctionGame(value, 12, takes="row"), {folder!r})
with parallel(game, workers=2) as shared:
    print(shapley(shared, "antithetic", budget=150).values.tolist())
"""


def test_a_killed_run_goes_on_and_evaluates_nothing_again(tmp_path):
    log, folder = tmp_path / "log", tmp_path / "values"
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.format(log=str(log), folder=str(folder)))
    process = subprocess.Popen([sys.executable, str(script)], start_new_session=True)
    deadline = time.monotonic() + 200
    while not log.exists() or log.stat().st_size < 40 * 13:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)  # the workers as well, in the middle of their work
    process.wait()
    before = log.read_bytes().splitlines()
    on_disk = (folder / "values.bin").stat().st_size // 14  # two bytes of key, 8 + 4 of value
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=250
    )
    lines = log.read_bytes().splitlines()
    assert 40 <= len(before) < len(set(lines))
    assert on_disk >= len(before) - 2  # each worker may be killed just before it writes
    assert len(lines) - len(before) == len(set(lines)) - on_disk
    plain = shapley(
        FunctionGame(lambda rows: np.sqrt(rows.sum(axis=1)), 12), "antithetic", budget=150
    )
    np.testing.assert_allclose(json.loads(done.stdout), plain.values, rtol=1e-12)
