"""Importing a layer must not load what stands to its right, nor anything slow."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

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


def test_every_public_name_can_be_imported():
    import coalitions
    import solvers

    for package in (coalitions, solvers):
        for name in package.__all__:
            assert getattr(package, name) is not None
            assert name in dir(package)
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
            package.nonsense  # noqa: B018
