"""A light base: what is not installed is one sentence with the command that brings it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coalitions.extras import _PACKAGES
from tests.cli.games.test_solve import EXAMPLE
from tests.cli.typed import in_a_process as coalitions

OPTIONAL = sorted({"cbcbox", *(module for modules in _PACKAGES.values() for module in modules)})


@pytest.fixture
def base(tmp_path):
    """An environment in which the packages of all extras are missing."""
    folder = tmp_path / "base"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "from importlib.machinery import PathFinder\n"
        "find = PathFinder.find_spec\n"
        "def find_spec(name, path=None, target=None):\n"
        f"    return None if name.split('.')[0] in {OPTIONAL} else find(name, path, target)\n"
        "PathFinder.find_spec = find_spec\n"
    )
    # No path, either: a system may have a CBC of its own.
    return {**os.environ, "PYTHONPATH": str(folder), "PATH": str(folder)}


def python(code, env, cwd=None):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd=cwd)


def test_the_base_solves_proves_and_shares(base, tmp_path):
    solution, proof = tmp_path / "solution.json", tmp_path / "proof.json"
    done = coalitions(
        "solve", EXAMPLE, "--output", solution, "--certificate", proof, env=base, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    checked = coalitions("verify", EXAMPLE, solution, "--certificate", proof, env=base)
    assert checked.returncode == 0, checked.stderr
    for command in (["shapley", EXAMPLE], ["value", EXAMPLE], ["solvers"], ["--help"]):
        assert coalitions(*command, env=base).returncode == 0


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (["solve", EXAMPLE, "--solver", "highs"], "ilp"),
        (["solve", EXAMPLE, "--solver", "cbc"], "ilp"),
        (["solve", EXAMPLE, "--solver", "cp-sat"], "ilp"),
        (["solve", EXAMPLE, "--plot", "plot.html"], "report"),
        (["solve", EXAMPLE, "--plot", "plot.png"], "report"),
        (["run", "--rounds", "1"], "learners"),
    ],
)
def test_what_is_missing_is_named_with_its_command(base, tmp_path, command, extra):
    done = coalitions(*command, env=base, cwd=tmp_path)
    assert done.returncode == 2
    assert f"pip install '.[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_python_says_it_too(base):
    done = python("from learners import run", base)
    assert "MissingDependencyError" in done.stderr
    assert "pip install '.[learners]'" in done.stderr.splitlines()[-1]


def test_a_foreign_package_of_our_name_is_noticed(tmp_path):
    (tmp_path / "learners.py").write_text("")
    done = python("import coalitions", dict(os.environ), cwd=tmp_path)
    assert done.returncode == 0
    assert "which is not coalition-kit's" in done.stderr
    (tmp_path / "coalitions").mkdir()
    (tmp_path / "coalitions" / "__init__.py").write_text("")
    root = str(Path(__file__).resolve().parents[1])
    # An editable installation has a finder of its own, which finds parts of a package that is not
    # ours; an ordinary one has not.
    ordinary = "sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(f).lower()]"
    code = f"import sys; {ordinary}; sys.path.append({root!r}); import solvers"
    done = python(code, dict(os.environ), cwd=tmp_path)
    assert "is not coalition-kit's" in done.stderr.splitlines()[-1]


def test_an_installed_package_brings_a_solver_by_an_entry_point(tmp_path):
    (tmp_path / "my_solver.py").write_text(
        "from dataclasses import dataclass\n"
        "import numpy as np\n"
        "from solvers import SOLVERS, Answer, Solver\n"
        "@SOLVERS.register('everybody-alone')\n"
        "@dataclass(frozen=True)\n"
        "class Alone(Solver):\n"
        "    exact = False\n"
        "    def search(self, graph, *, limits, warm_start=None, sizes=None):\n"
        "        gains = float(graph.edges.weight.clip(0).sum())\n"
        "        return Answer(np.arange(graph.n_players), gains)\n"
    )
    info = tmp_path / "my_solver-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-solver\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[coalitions.plugins]\nmine = my_solver\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = python(
        "from solvers import solve; print(solve([[0, 1], [1, 0]], 'everybody-alone').named)", env
    )
    assert "(('0',), ('1',))" in done.stdout, done.stderr
    (tmp_path / "my_solver.py").write_text("1 / 0")
    done = python("from solvers import available; available()", env)
    assert "pip uninstall my-solver" in done.stderr.splitlines()[-1]
