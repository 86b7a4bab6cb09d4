"""Nothing that lies in the working folder is imported unless the user names it."""

from __future__ import annotations

import sys
from importlib.metadata import packages_distributions

import pytest

from coalitions import InvalidInputError
from coalitions.plugins import import_plugins
from tests.cli.games.test_solve import EXAMPLE
from tests.cli.typed import in_a_process as coalitions

NAMED = {"scipy", "numpy", "torch", "statistics", "json", "numba", "matplotlib", "plotly", "struct"}
OWN = {"coalitions", "solvers", "learners", "cli", "my_plugin"}
SOLVER = """
import statistics
from dataclasses import dataclass
import numpy as np
from solvers import SOLVERS, Answer, Solver

@SOLVERS.register("everybody")
@dataclass(frozen=True)
class Everybody(Solver):
    exact = False
    def search(self, graph, *, limits, warm_start=None, sizes=None):
        bound = float(np.maximum(graph.edges.weight, 0).sum())
        return Answer(np.zeros(graph.n_players, np.int64), bound)
"""


@pytest.fixture(scope="module")
def trapped(tmp_path_factory):
    """Return a folder with a module for every name that Python or a package of ours has."""
    sprung, folder = (tmp_path_factory.mktemp(name) for name in ("sprung", "data"))
    installed = {name for name in packages_distributions() if name.isidentifier()}
    names = (sys.stdlib_module_names | installed | NAMED | {"sitecustomize", "usercustomize"}) - OWN
    assert names >= NAMED
    for name in names:
        trap = f"open({str(sprung / name)!r}, 'w').close()\nraise SystemExit({name!r})\n"
        (folder / f"{name}.py").write_text(trap)
    (folder / "graph.csv").write_bytes(EXAMPLE.read_bytes())
    # Configuration that packages look for in the working folder.
    (folder / "matplotlibrc").write_text("text.usetex: True\nbackend: module://evil\n")
    (folder / ".numba_config.yaml").write_text(f"cache_dir: {folder / 'cache'}\n")
    return folder, sprung


COMMANDS = {
    "solve": ["solve", "graph.csv", "--plot", "p.png", "--certificate", "c", "--output", "s.json"],
    "cbc": ["solve", "graph.csv", "--solver", "cbc", "--plot", "p.html"],
    "highs": ["solve", "graph.csv", "--solver", "highs"],
    "cp-sat": ["solve", "graph.csv", "--solver", "cp-sat"],
    "shapley": ["shapley", "graph.csv"],
    "options": ["options"],
}
LEARNING = ["run", "--rounds", 1, "--clients", 2, "--train-size", 20, "--local-epochs", 1]


def check(result, sprung):
    assert [path.name for path in sprung.iterdir()] == []
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("what", COMMANDS)
def test_no_module_beside_the_data_is_imported(what, trapped):
    folder, sprung = trapped
    check(coalitions(*COMMANDS[what], cwd=folder), sprung)
    assert not (folder / "cache").exists()


def test_a_run_with_workers_and_its_report_import_nothing_from_here(trapped):
    pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
    folder, sprung = trapped
    check(coalitions(*LEARNING, "--workers", 2, "--out", "run", cwd=folder), sprung)
    check(coalitions("report", "run", "--plots", "figures", cwd=folder), sprung)


def test_a_plugin_is_found_and_what_lies_beside_it_hides_no_installed_module(trapped):
    folder, sprung = trapped
    (folder / "my_plugin.py").write_text(SOLVER)
    command = ["solve", "graph.csv", "--plugin", "my_plugin", "--solver", "everybody"]
    result = coalitions(*command, cwd=folder)
    check(result, sprung)
    assert "everybody" in result.stdout


def test_a_plugin_named_like_an_installed_module_is_not_taken_for_it(trapped):
    folder, sprung = trapped
    for name in ("statistics", "scipy"):
        result = coalitions("solve", "graph.csv", "--plugin", name, cwd=folder)
        assert result.returncode == 2
        assert f"{name}.py of this folder is hidden by an installed module" in result.stderr
        assert list(sprung.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("broken", "1 / 0", "ZeroDivisionError: division by zero"),
        ("unwritten", "def", "SyntaxError"),
        ("lonely", "import no_such_module", "No module named 'no_such_module'"),
    ],
)
def test_a_plugin_that_fails_is_named_in_one_sentence(name, text, words, tmp_path):
    (tmp_path / f"{name}.py").write_text(text)
    result = coalitions("solve", EXAMPLE, "--plugin", name, cwd=tmp_path)
    assert result.returncode == 2
    assert f"plugin {name!r} cannot be imported" in result.stderr
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["", ".", "..x", "a b", "a\0b", "x" * 5000, "a/b"])
def test_what_is_no_modules_name_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(InvalidInputError, match="cannot be imported"):
        import_plugins([name], beside=tmp_path)


def test_a_configuration_alone_does_not_open_the_working_folder(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
    (tmp_path / "payload.py").write_text("open('sprung', 'w').close()\n")
    (tmp_path / "c.toml").write_text('plugins = ["payload"]\nclients = 2\nrounds = 1\n')
    result = coalitions("run", "c.toml", cwd=tmp_path)
    assert result.returncode == 2
    assert "plugin 'payload' cannot be imported" in result.stderr
    assert not (tmp_path / "sprung").exists()


def test_a_package_without_an_init_file_can_be_a_plugin(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "my_things").mkdir()
    (tmp_path / "my_things" / "inner.py").write_text("WAS_HERE = True\n")
    import_plugins(["my_things.inner"], beside=tmp_path)
    assert sys.modules.pop("my_things.inner").WAS_HERE
    del sys.modules["my_things"]
    assert sys.path[-1] == str(tmp_path)
