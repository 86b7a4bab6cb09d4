"""A base installation, without torch, does what it can and says what to install for the rest."""

from __future__ import annotations

import os

import pytest

from tests.cli.games.test_solve import EXAMPLE
from tests.cli.report.test_report import write_run
from tests.cli.typed import in_a_process as coalitions


@pytest.fixture
def without_torch(tmp_path):
    """An environment in which importing torch fails as if it were not installed."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('torch', 'torchvision', 'sklearn', 'safetensors'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
    )
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def test_graphs_and_games_do_not_need_torch(without_torch):
    assert coalitions("solve", EXAMPLE, "--solver", "highs", env=without_torch).returncode == 0
    assert coalitions("shapley", EXAMPLE, env=without_torch).returncode == 0
    assert coalitions("datasets", env=without_torch).returncode == 0


def test_a_run_is_reported_without_torch(without_torch, tmp_path):
    run = write_run(tmp_path / "run")
    done = coalitions("report", run, env=without_torch)
    assert done.returncode == 0, done.stderr
    assert (run / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize("command", ["run", "compare"])
def test_learning_says_what_to_install(without_torch, command, tmp_path):
    result = coalitions(command, env=without_torch, cwd=tmp_path)
    assert result.returncode == 2
    assert "pip install '.[learners]'" in result.stderr
    assert len(result.stderr.splitlines()) == 1
