"""Flower's quickstart becomes pFedSV by five lines, and its users' functions serve as they are."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from flwr.app import Context, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from cli.app import main
from coalitions.errors import InvalidInputError
from learners import load_model
from tests.learners.flower.nodes import Nodes

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "flower_quickstart"


@pytest.fixture
def quickstart(tmp_path, monkeypatch):
    """The example after its patch, importable, in a folder of its own."""
    project = tmp_path / "flower_quickstart"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("__pycache__"))
    patch = [shutil.which("patch") or pytest.skip("there is no program `patch`"), "-p1"]
    subprocess.run([*patch, "-i", "pfedsv.patch"], cwd=project, check=True, capture_output=True)
    monkeypatch.chdir(project)
    monkeypatch.syspath_prepend(str(project))
    monkeypatch.setenv("HOME", str(tmp_path))
    yield project
    for name in [name for name in sys.modules if name.split(".")[0] == "quickstart"]:
        del sys.modules[name]


def test_five_lines_are_changed():
    new = [line for line in (EXAMPLE / "quickstart" / "pfedsv.py").read_text().split("\n") if line]
    patch = (EXAMPLE / "pfedsv.patch").read_text().splitlines()
    changed = [line for line in patch if line.startswith("+") and not line.startswith("+++")]
    assert len(new) + len(changed) <= 5


def test_the_quickstart_runs_as_pfedsv(quickstart, monkeypatch):
    from quickstart import pfedsv

    app = tomllib.loads((quickstart / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    assert app["components"] == {
        "serverapp": "quickstart.pfedsv:server",
        "clientapp": "quickstart.pfedsv:client",
    }
    grid = Nodes(pfedsv.client, 3)
    for context in grid.contexts.values():
        context.node_config["num-partitions"] = 3
        context.run_config.update(app["config"])
    TaskIdentity.node_id = 1
    pfedsv.server(grid, Context(7, 1, {}, RecordDict(), dict(app["config"])))
    result = json.loads((quickstart / "pfedsv-run" / "result.json").read_text())
    assert (result["algorithm"], result["clients"], result["rounds"]) == ("pfedsv", 3, 3)
    assert result["mean_test_accuracy"] > 0.8
    assert (quickstart / "pfedsv-run" / "relevance.npy").is_file()
    assert len(list((quickstart / "pfedsv-run" / "models").iterdir())) == 3
    with pytest.raises(InvalidInputError, match="a network of its user's own"):
        load_model("pfedsv-run")
    assert isinstance(load_model("pfedsv-run", model=pfedsv.Net), pfedsv.Net)
    monkeypatch.setattr(sys, "argv", ["coalitions", "report", "pfedsv-run"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert (quickstart / "pfedsv-run" / "report.html").is_file()
