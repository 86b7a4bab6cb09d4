"""What is shipped: four typed packages and a command, and no tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("coalitions", "solvers", "learners", "cli")


@pytest.fixture
def copy(tmp_path):
    """A copy of what is shipped, so that nothing is built or broken in the checkout."""
    for name in LAYERS:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(
        ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__")
    )
    return tmp_path


def test_the_wheel_holds_the_four_packages_and_no_tests(copy):
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
         "--wheel-dir", "dist", "."],
        cwd=copy, check=True,
    )  # fmt: skip
    (wheel,) = (copy / "dist").glob("coalition_kit-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == set(LAYERS)
    for layer in LAYERS:
        assert f"{layer}/py.typed" in names
        kinds = (".py", ".pyi")  # a package's public names are in its stub
        shipped = {name for name in names if name.startswith(f"{layer}/") and name.endswith(kinds)}
        written = {str(path.relative_to(ROOT)) for path in (ROOT / layer).rglob("*.py*")}
        written = {name for name in written if name.endswith(kinds)}
        assert shipped == written
    template = {path.name for path in (ROOT / "learners" / "flower" / "template").rglob("*.*")}
    assert template <= {name.rsplit("/", 1)[-1] for name in names}
    entry_points = next(name for name in names if name.endswith("entry_points.txt"))
    assert b"coalitions = cli.app:main" in zipfile.ZipFile(wheel).read(entry_points)


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("solvers/solution.py", "import torch\n"),
        ("coalitions/structure.py", "import solvers\n"),
        ("learners/__init__.py", "import highspy\n"),
        ("solvers/solver.py", "import learners\n"),
    ],
)
def test_an_import_across_the_layers_is_found(copy, module, line):
    path = copy / module
    path.write_text(path.read_text() + "\n" + line)
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    result = subprocess.run(command, cwd=copy, capture_output=True, text=True)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "BROKEN" in result.stdout
