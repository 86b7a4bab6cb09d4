"""What surrounds a command: pipes, narrow terminals, colours, locales, Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cli.terminal.help import GROUPS
from coalitions import SynergyGraph
from tests.cli.games.test_solve import EXAMPLE
from tests.cli.typed import COMMAND, in_a_process
from tests.cli.typed import typed as coalitions

COMMANDS = [command for commands in GROUPS.values() for command in commands]


@pytest.fixture(scope="module")
def large_graph(tmp_path_factory):
    """A graph nobody proves in the time a test has."""
    rng = np.random.default_rng(0)
    matrix = np.triu(rng.normal(size=(90, 90)).round(3), 1)
    path = tmp_path_factory.mktemp("graphs") / "noise.npz"
    SynergyGraph(matrix + matrix.T).write(path)
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command):
    result = coalitions(command, "--help")
    assert result.returncode == 0, result.stderr
    assert f"Example: coalitions {command}" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_help_leaves_room_for_the_text_at_80_columns(command):
    shown = coalitions(command, "--help", env={**os.environ, "COLUMNS": "80"}).stdout
    assert max(map(len, shown.splitlines())) == 80
    starts = [
        re.search(r"\S", line[24:-1]).start() + 24
        for line in re.findall(r"^│ {24,}\S.*│$", shown, re.M)  # lines that go on
    ]
    assert all(79 - start >= 44 for start in starts)
    assert not re.search(r"[a-z]…", shown)  # nothing was cut off


@pytest.mark.slow
def test_examples_of_the_help_run_one_after_the_other(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
    (tmp_path / "examples").symlink_to(Path(EXAMPLE).resolve().parents[1])
    for command in COMMANDS:
        shown = coalitions(command, "--help", env={**os.environ, "COLUMNS": "300"}).stdout
        for example in re.findall(r"Example: coalitions (.*\S)", shown):
            ended = in_a_process(*example.split(), cwd=tmp_path)
            assert ended.returncode == 0, (example, ended.stderr)


def test_commands_are_in_groups():
    shown = coalitions("--help").stdout
    places = [shown.index(f"─ {group} ─") for group in GROUPS]
    assert places == sorted(places)
    assert "─ More ─" not in shown
    for command in COMMANDS:
        assert f"│ {command} " in shown


def test_without_arguments_the_help_is_printed():
    alone = coalitions()
    assert alone.returncode == 0
    assert alone.stdout == coalitions("--help").stdout


@pytest.mark.parametrize(
    "command",
    [["report", "x" * 5000], ["solve", EXAMPLE, "--output", "x" * 5000]],
)
def test_a_file_name_that_is_too_long_is_said_in_a_sentence(command, tmp_path):
    done = coalitions(*command, cwd=tmp_path)
    assert done.returncode == 2
    assert "is too long; give a shorter one" in done.stderr
    assert len(done.stderr) < 200


def test_a_pipe_that_is_closed_early_is_no_error(large_graph):
    script = f"{COMMAND} solve {EXAMPLE} --solver greedy --json | head -c 1"
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script], capture_output=True, text=True
    )
    assert "Traceback" not in result.stderr
    assert "BrokenPipe" not in result.stderr


def test_a_narrow_terminal_shows_everything():
    result = coalitions("solve", EXAMPLE, "--solver", "greedy", env={**os.environ, "COLUMNS": "60"})
    assert max(map(len, result.stdout.splitlines())) <= 60
    assert "mnist-5" in result.stdout


def test_no_colours_without_a_terminal_or_when_told():
    result = in_a_process("solve", EXAMPLE, "--solver", "greedy")
    assert "\x1b[" not in result.stdout + result.stderr
    forced = in_a_process(
        "solvers", env={**os.environ, "NO_COLOR": "1", "FORCE_COLOR": "1", "TERM": "xterm"}
    )
    assert "\x1b[3" not in forced.stdout  # 30 … 37 are the colours


def test_a_locale_without_utf8():
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    for arguments in (["--help"], ["solvers"], ["solve", "missing.csv"]):
        result = in_a_process(*arguments, env=environment)
        assert "Traceback" not in result.stderr
        assert result.returncode in (0, 2)


@pytest.mark.slow
def test_ctrl_c_while_solving_gives_the_best_so_far(large_graph):
    process = subprocess.Popen(
        [COMMAND, "solve", large_graph, "--solver", "branch-and-cut", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        time.sleep(8)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()  # it would go on for hours
    assert "Traceback" not in err
    assert process.returncode == 130, err
    assert '"optimal": false' in out or "interrupted" in err


def test_ctrl_c_that_compiled_code_ignores_is_heard_a_moment_later():
    script = (
        "import ctypes, sys, time, cli.app\n"
        "@ctypes.CFUNCTYPE(None)\n"
        "def callback(): raise KeyboardInterrupt\n"
        "def app(**_):\n"
        "    callback()\n"
        "    while True: time.sleep(0.01)\n"
        "cli.app._add_commands, cli.app.app = lambda typed: None, app\n"
        "cli.app.main()\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=250
    )
    assert result.returncode == 130
    assert result.stderr.splitlines() == ["coalitions: interrupted"]


def test_ctrl_c_while_modules_are_loaded_is_one_sentence():
    script = (
        "import cli.app\n"
        "def load(typed): raise KeyboardInterrupt\n"
        "cli.app._add_commands = load\n"
        "cli.app.main()\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.returncode == 130
    assert result.stderr.splitlines() == ["coalitions: interrupted"]


def test_messages_do_not_mix_with_json():
    result = in_a_process("solve", EXAMPLE, "--solver", "greedy", "--json")
    assert result.stdout.startswith("{")
    assert result.stderr == ""


def test_the_module_beside_the_data_is_found_as_a_plugin(tmp_path):
    (tmp_path / "my_solver.py").write_text(
        "import numpy as np\n"
        "from dataclasses import dataclass\n"
        "from solvers import SOLVERS, Answer, Solver\n"
        "@SOLVERS.register('everybody')\n"
        "@dataclass(frozen=True)\n"
        "class Everybody(Solver):\n"
        "    exact = False\n"
        "    def search(self, graph, *, limits, warm_start=None, sizes=None):\n"
        "        bound = float(np.maximum(graph.edges.weight, 0).sum())\n"
        "        return Answer(np.zeros(graph.n_players, np.int64), bound)\n"
    )
    result = in_a_process(
        "solve", EXAMPLE, "--plugin", "my_solver", "--solver", "everybody", "--json", cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert '"solver": "everybody"' in result.stdout
