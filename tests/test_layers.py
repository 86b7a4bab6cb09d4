"""Layers: what an import loads, and what is public and private."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

OPTIMISERS = ("torch", "torchvision", "ortools", "pulp", "highspy", "gurobipy")
SLOW = ("numba", "scipy", "networkx", "matplotlib", "plotly", "sklearn")


def loaded_after(code: str) -> set[str]:
    script = textwrap.dedent(code) + "\nimport sys\nprint(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in result.stdout.splitlines()[-1].split()}


@pytest.mark.parametrize(
    "code",
    [
        "import coalitions, solvers",
        "from solvers import solve, available; available()",
        "from coalitions import Game, SynergyGraph, CoalitionStructure",
        "import sys; sys.argv = ['coalitions', '--help']\n"
        "from cli.app import main\ntry: main()\nexcept SystemExit: pass",
        "import sys; sys.argv = ['coalitions', 'solvers']\n"
        "from cli.app import main\ntry: main()\nexcept SystemExit: pass",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_used(code):
    assert loaded_after(code).isdisjoint(OPTIMISERS + SLOW)


@pytest.mark.parametrize("name", ["coalitions", "solvers", "learners"])
def test_every_public_name_can_be_imported(name):
    if name == "learners":
        pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
    package = importlib.import_module(name)
    for public in package.__all__:
        assert getattr(package, public) is not None
        assert public in dir(package)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        package.nonsense  # noqa: B018


PACKAGES = ("coalitions", "solvers", "learners", "cli")


def modules() -> list[Path]:
    """Return all modules of the four packages, relative to the root of the repository."""
    found = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return sorted(path.relative_to(ROOT) for path in found)


def imported(path: Path) -> Iterator[str]:
    """Give what a module imports, at its top or anywhere inside, by its full name."""
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} has a relative import"
            yield from (f"{node.module}.{name.name}" for name in node.names)


def private_to_another(folder: str, name: str) -> bool:
    """Tell whether a name leads through a module that is private to another folder."""
    parts = name.split(".")
    return parts[0] in PACKAGES and any(
        part.startswith("_") and not part.startswith("__") and ".".join(parts[:k]) != folder
        for k, part in enumerate(parts)
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_a_module_with_an_underscore_is_imported_in_its_own_folder_only(package):
    assert [
        (str(path), name)
        for path in modules()
        if path.parts[0] == package
        for name in imported(path)
        if private_to_another(".".join(path.parent.parts), name)
    ] == []


def test_what_is_private_to_another_folder_is_noticed():
    assert private_to_another("cli.games", "solvers._solve.solve")
    assert private_to_another("solvers.ilp", "solvers._solve")
    assert private_to_another("solvers", "solvers.proofs._tree.check_part")
    assert not private_to_another("solvers", "solvers._solve.solve")
    assert not private_to_another("solvers.proofs", "solvers.proofs._tree")
    assert not private_to_another("cli", "numpy._core")
    assert not private_to_another("cli", "solvers.__version__")
