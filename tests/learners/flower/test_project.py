"""What `coalitions deploy` writes: an app that is sound, and that replaces nothing unasked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from flwr.app import Context, RecordDict

from cli.app import main
from coalitions.errors import InvalidInputError, UnknownNameError
from learners.flower.project import write_project
from learners.server.local_engine import one_thread
from tests.learners.flower.machines import CLIENTS, commands, free_ports, own_data, until
from tests.learners.flower.nodes import Nodes

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_the_app_passes_ruff_and_its_own_smoke_test(tmp_path):
    write_project(tmp_path / "app", algorithm="cffl", clients=2, inputs=5, classes=3)
    quiet = {"cwd": tmp_path / "app", "capture_output": True, "text": True, "check": False}
    ruff = Path(sys.executable).parent / "ruff"
    for command in (
        [ruff, "check", "--select", "E,F,I,B,UP,D2,D4,SIM,RUF", "--no-cache", "."],
        [ruff, "format", "--check", "--no-cache", "."],
    ):
        done = subprocess.run(command, **quiet)
        assert done.returncode == 0, done.stdout + done.stderr
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    smoke = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(smoke, env=environment, **quiet)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_flwr_run_simulates_the_app_with_the_numbers_of_nodes_in_this_process(
    tmp_path, monkeypatch
):
    folder = tmp_path / "app"
    write_project(folder, clients=CLIENTS, rounds=2)
    (folder / "data").mkdir()
    for number in range(CLIENTS):
        own_data(folder / "data" / str(number), number)
    port = free_ports(1)[0]
    environment = os.environ | {
        "PATH": f"{commands(tmp_path)}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        ["./simulate.sh", "data", str(port)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.name for path in (folder / "simulated" / "nodes").iterdir()) == list("012")

    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("COALITIONS_NODES", str(tmp_path / "nodes"))
    from app import client, server

    settings = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    told = settings["config"] | {"out": str(tmp_path / "here")}
    grid = Nodes(client.app, CLIENTS)
    for number, context in enumerate(grid.contexts.values()):
        context.node_config["data"] = str(folder / "data" / str(number))
    with one_thread():
        server.app(grid, Context(7, 1, {}, RecordDict(), told))
    for name in [name for name in sys.modules if name.split(".")[0] == "app"]:
        del sys.modules[name]
    there, here = folder / "simulated", tmp_path / "here"
    for model in sorted((here / "models").iterdir()):
        assert model.read_bytes() == (there / "models" / model.name).read_bytes()
    assert len(list((here / "models").iterdir())) == CLIENTS
    results = [json.loads((place / "result.json").read_text()) for place in (there, here)]
    for key in ("per_client_test_accuracy", "communication"):
        assert results[0][key] == results[1][key]
    until(lambda: not _programs_with(str(port)), "the end of all that was started", 60)


def _programs_with(text):
    """Return the command lines that have a text."""
    ps = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in ps.stdout.splitlines() if text in line]


def test_flower_takes_its_pyproject(tmp_path):
    from flwr.common.config import validate_config

    write_project(tmp_path / "app", algorithm="cffl", clients=5, rounds=7)
    config = tomllib.loads((tmp_path / "app" / "pyproject.toml").read_text())
    valid, errors, warnings = validate_config(config, project_dir=tmp_path / "app")
    assert (valid, errors, warnings) == (True, [], [])
    settings = config["tool"]["flwr"]["app"]["config"]
    assert (settings["algorithm"], settings["clients"], settings["rounds"]) == ("cffl", 5, 7)


def test_its_scripts_are_sound_shell_and_can_be_run(tmp_path):
    names = write_project(tmp_path / "app", clients=2)
    scripts = [tmp_path / "app" / name for name in names if name.endswith(".sh")]
    assert len(scripts) == 10
    for script in scripts:
        assert os.access(script, os.X_OK)
        assert "@" not in script.read_text().replace('"$@"', "")
        subprocess.run(["sh", "-n", script], check=True)


def test_keys_of_a_federation_fit_together(tmp_path):
    write_project(tmp_path / "app", clients=2)
    folder = tmp_path / "app"
    quiet = {"cwd": folder, "capture_output": True, "text": True, "check": False}
    assert subprocess.run(["./keys.sh"], **quiet).returncode == 2
    assert (
        subprocess.run(["./keys.sh", "superlink.example.org", "10.1.2.3"], **quiet).returncode == 0
    )
    kept = (folder / "keys" / "ca.key").read_bytes()
    again = subprocess.run(["./keys.sh", "superlink.example.org"], **quiet)
    assert again.returncode == 2
    assert "keys are not replaced" in again.stderr
    assert (folder / "keys" / "ca.key").read_bytes() == kept
    for name in ("superlink.example.org", "localhost"):
        command = ["openssl", "verify", "-CAfile", "keys/ca.pem", "-verify_hostname", name]
        assert subprocess.run([*command, "keys/server.pem"], **quiet).returncode == 0
    command = ["openssl", "verify", "-CAfile", "keys/ca.pem", "-verify_ip", "10.1.2.3"]
    assert subprocess.run([*command, "keys/server.pem"], **quiet).returncode == 0
    wrong = ["openssl", "verify", "-CAfile", "keys/ca.pem", "-verify_hostname", "other.example"]
    assert subprocess.run([*wrong, "keys/server.pem"], **quiet).returncode != 0
    names = {path.name for path in (folder / "keys").iterdir()}
    assert {"node-0", "node-0.pub", "node-1", "node-1.pub"} <= names
    assert (folder / "keys" / "node-0").stat().st_mode & 0o077 == 0


def test_a_new_certificate_has_the_names_of_the_old_one_and_a_new_node_key_is_another(tmp_path):
    folder = tmp_path / "app"
    write_project(folder, clients=2)

    def keys(*words):
        command = ["./keys.sh", *words]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    def names():
        command = ["openssl", "x509", "-in", "keys/server.pem", "-noout", "-ext", "subjectAltName"]
        return subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=True
        ).stdout

    assert keys("superlink.example.org", "10.1.2.3").returncode == 0
    before = {path.name: path.read_bytes() for path in (folder / "keys").iterdir()}
    had = names()
    done = keys("renew")
    assert done.returncode == 0, done.stderr
    assert names() == had
    assert keys("node", "1").returncode == 0
    after = {path.name: path.read_bytes() for path in (folder / "keys").iterdir()}
    new = {name for name in after if after[name] != before.get(name)}
    assert new - {"ca.srl"} == {
        "server.key", "server.pem", "node-1", "node-1.pub", "node-1.old", "node-1.pub.old"
    }  # fmt: skip
    assert after["node-1.old"] == before["node-1"]
    command = ["openssl", "verify", "-CAfile", "keys/ca.pem", "keys/server.pem"]
    assert subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0
    assert keys("renew", "other.example.org").returncode == 0
    assert "other.example.org" in names()
    assert "superlink.example.org" not in names()
    (folder / "keys" / "ca.key").unlink()
    assert keys("renew").returncode == 2
    assert keys("node", "x").returncode == 2


def test_a_container_has_its_own_keys_and_data_and_no_other_s(tmp_path):
    write_project(tmp_path / "app", clients=2, port=65535)
    services = yaml.safe_load((tmp_path / "app" / "compose.yaml").read_text())["services"]
    assert list(services) == ["proxy", "superlink", "node-0", "node-1"]
    mounted = {name: " ".join(service["volumes"]) for name, service in services.items()}
    assert "keys/node-0:" in mounted["node-0"]
    assert "keys/node-1" not in mounted["node-0"]
    assert "ca.key" not in "".join(mounted.values())
    assert "node" not in mounted["proxy"]
    assert "keys/node-0:" not in mounted["superlink"]
    assert "./data/1:/data:ro" in mounted["node-1"]
    for service in services.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert "ports" not in service
    assert services["superlink"]["network_mode"] == "service:proxy"
    assert "--port 65534" in (tmp_path / "app" / "superlink.sh").read_text()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_finds_nothing_wrong_with_the_services(tmp_path):
    write_project(tmp_path / "app")
    for unit in (tmp_path / "app" / "systemd").iterdir():
        there = tmp_path / unit.name.replace("@", "@0")
        there.write_text(unit.read_text().replace("/opt/federation", str(tmp_path / "app")))
        for command in (["verify", "--man=no"], ["security", "--offline=true", "--threshold=20"]):
            done = subprocess.run(
                ["systemd-analyze", *command, there], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr
            assert done.stderr == ""


def test_a_folder_that_exists_stays_unless_it_is_meant(tmp_path):
    folder = tmp_path / "app"
    write_project(folder, clients=2)
    (folder / "keys").mkdir()
    (folder / "keys" / "ca.key").write_text("secret")
    with pytest.raises(InvalidInputError, match="exists and has files"):
        write_project(folder, clients=3)
    write_project(folder, clients=3, force=True)
    assert "clients = 3" in (folder / "pyproject.toml").read_text()
    assert (folder / "keys" / "ca.key").read_text() == "secret"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years")
    with pytest.raises(InvalidInputError, match="it is no app of ours, it stays"):
        write_project(tmp_path / "mine", force=True)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"algorithm": "fedagv"}, "fedavg"),
        ({"clients": 0}, "clients is 0"),
        ({"classes": 1}, "classes is 1"),
        ({"host": "a b; rm"}, "neither the name nor the address"),
        ({"port": 70000}, "port is 70000"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(settings, words, tmp_path):
    with pytest.raises((InvalidInputError, UnknownNameError), match=words):
        write_project(tmp_path / "app", **settings)
    assert not (tmp_path / "app").exists()


def test_the_command_tells_what_it_wrote(tmp_path, monkeypatch, capsys):
    def deploy(*arguments):
        monkeypatch.setattr(
            sys, "argv", ["coalitions", "deploy", str(tmp_path / "app"), *arguments]
        )
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0

    assert deploy("--json") == 0
    assert "app/server.py" in json.loads(capsys.readouterr().out)["files"]
    assert deploy() == 2
    assert capsys.readouterr().err.count("\n") == 1
