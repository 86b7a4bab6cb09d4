"""Flower's quickstart becomes pFedSV by four lines, and its users' functions serve as they are."""

from __future__ import annotations

import json
import os
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
from tests.learners.flower.machines import commands, free_ports, until
from tests.learners.flower.nodes import Nodes

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "flower_quickstart"


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


def test_no_more_than_five_lines_are_changed():
    patch = (EXAMPLE / "pfedsv.patch").read_text().splitlines()
    new = [line for line in patch if line.startswith("+") and not line.startswith("+++")]
    gone = [line for line in patch if line.startswith("-") and not line.startswith("---")]
    assert len([line for line in new if line.strip("+ ")]) <= 5
    assert len(gone) <= len(new)


def test_the_quickstart_runs_as_pfedsv(quickstart, monkeypatch):
    from quickstart import client_app, server_app
    from quickstart.task import Net

    app = tomllib.loads((quickstart / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    grid = Nodes(client_app.app, 3)
    for context in grid.contexts.values():
        context.node_config["num-partitions"] = 3
        context.run_config.update(app["config"])
    TaskIdentity.node_id = 1
    server_app.app(grid, Context(7, 1, {}, RecordDict(), dict(app["config"])))
    result = json.loads((quickstart / "pfedsv-run" / "result.json").read_text())
    assert (result["algorithm"], result["clients"], result["rounds"]) == ("pfedsv", 3, 3)
    assert result["mean_test_accuracy"] > 0.8
    assert (quickstart / "pfedsv-run" / "relevance.npy").is_file()
    assert len(list((quickstart / "pfedsv-run" / "models").iterdir())) == 3
    with pytest.raises(InvalidInputError, match="a network of its user's own"):
        load_model("pfedsv-run")
    assert isinstance(load_model("pfedsv-run", model=Net), Net)
    monkeypatch.setattr(sys, "argv", ["coalitions", "report", "pfedsv-run"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert (quickstart / "pfedsv-run" / "report.html").is_file()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_flwr_run_simulates_the_quickstart_as_its_readme_says(quickstart, tmp_path):
    port = free_ports(1)[0]
    environment = os.environ | {
        "PATH": f"{commands(tmp_path)}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "FLWR_HOME": str(tmp_path / "flwr"),
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_TELEMETRY_ENABLED": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    (tmp_path / "flwr").mkdir()
    address = f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "127.0.0.1:{port}"\n'
    (tmp_path / "flwr" / "config.toml").write_text(f"{address}insecure = true\n")
    # What `flwr run .` starts by itself, on a port of our own, and without a network.
    command = ["flower-superlink", "--simulation", "--insecure", "--port", str(port)]
    log = tmp_path / "superlink.log"
    with log.open("wb") as file:
        superlink = subprocess.Popen(
            [*command, "--disable-runtime-dependency-installation"],
            cwd=quickstart, env=environment, stdout=file, stderr=file,
        )  # fmt: skip
    try:
        until(lambda: "Uvicorn running" in log.read_text(), "the SuperLink's start")
        ran = subprocess.run(
            ["flwr", "run", ".", "--stream"],
            cwd=quickstart, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
        result = quickstart / "pfedsv-run" / "result.json"
        until(result.is_file, f"a result; flwr run said {ran.stdout[-2000:]}", 60)
    finally:
        superlink.terminate()
        superlink.wait()
    ended = json.loads(result.read_text())
    assert (ended["algorithm"], ended["clients"], ended["left_out"]) == ("pfedsv", 2, [])
    assert ended["mean_test_accuracy"] > 0.8
