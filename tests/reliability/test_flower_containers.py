"""The services of `compose.yaml`, started as containers are, without docker and its images.

Each service has a root of its own (this machine's, with the app copied into it and nothing under
/tmp), the mounts that the file names, a network namespace, and names of the others as hosts. What
is not tried: building the image, and docker's own network.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from learners.flower.project import write_project
from tests.learners.flower.machines import Namespaces, children, commands, own_data, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

ROOT = Path(__file__).resolve().parents[2]
NODES = 2
INSIDE = Path("/federation")
SHARED = ("/proc", "/dev", "/sys")


class Containers:
    """What `docker compose up` and `docker compose exec` do, as far as the file says it."""

    def __init__(self, folder):
        self.home = folder / "app"
        self.programs = commands(folder)
        write_project(self.home, clients=NODES, rounds=1)
        subprocess.run(["./keys.sh", "superlink"], cwd=self.home, check=True, capture_output=True)
        (self.home / "data").mkdir()
        for number in range(NODES):
            own_data(self.home / "data" / str(number), number)
        self.services = yaml.safe_load((self.home / "compose.yaml").read_text())["services"]
        self.places = folder / "containers"
        self.network = Namespaces()
        self.processes = {}

    def up(self):
        self.network.make(self.services)
        for name, service in self.services.items():
            self.prepare(name, service)
            self.start(name)

    def prepare(self, name, service):
        """Write what a container's root differs by from this machine's."""
        place = self.places / name
        changed = place / "changed"
        left_out = [line for line in (self.home / ".dockerignore").read_text().split() if line]
        shutil.copytree(
            self.home, changed / INSIDE.relative_to("/"), ignore=shutil.ignore_patterns(*left_out)
        )
        shutil.copytree(self.programs, changed / "usr/local/bin")
        (changed / "etc").mkdir()
        hosts = [f"10.213.7.{n + 1} {host}" for n, host in enumerate(self.services)]
        (changed / "etc/hosts").write_text("\n".join(["127.0.0.1 localhost", *hosts]) + "\n")
        root = place / "root"
        layers = f"lowerdir=/,upperdir={changed},workdir={place / 'work'}"
        for each in (root, place / "work"):
            each.mkdir()
        lines = [f"mount -t overlay overlay -o {layers} {root}"]
        lines += [f"mount --rbind {each} {root}{each}" for each in SHARED]
        lines += [f"mount -t tmpfs tmpfs {root}/tmp"]
        for volume in service["volumes"]:
            there, here, *how = volume.split(":")
            outside, inside = self.home / there, f"{root}{here}"
            made = f"mkdir -p {inside}"
            if outside.is_file():
                made = f"mkdir -p {Path(inside).parent} && touch {inside}"
            else:
                outside.mkdir(parents=True, exist_ok=True)
            lines += [made, f"mount --bind {outside} {inside}"]
            if how == ["ro"]:
                lines.append(f"mount -o remount,bind,ro {inside}")
        command = shlex.join(service["command"])
        lines.append(f"exec chroot {root} sh -c {shlex.quote(f'cd {INSIDE} && exec {command}')}")
        (place / "start.sh").write_text("set -eu\n" + "\n".join(lines) + "\n")

    def environment(self, name):
        return os.environ | {
            "PATH": f"/usr/local/bin{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": "/root",
            **self.services[name].get("environment", {}),
        }

    def start(self, name):
        place = self.places / name
        apart = ["unshare", "--mount", "--propagation", "private"]
        with (place / "log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [*self.network.inside(name), *apart, "sh", place / "start.sh"],
                env=self.environment(name), stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def tend(self):
        """Start again what ended, where the file says so."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                assert self.services[name].get("restart") == "unless-stopped", self.said(name)
                self.start(name)

    def said(self, name):
        return (self.places / name / "log").read_text()

    def inside(self, name, *command):
        process = self.processes[name].pid
        return subprocess.run(
            ["nsenter", "-t", str(process), "--mount", "--net", "--root", "--wd", *command],
            env=self.environment(name), capture_output=True, text=True, check=False,
        )  # fmt: skip

    def down(self):
        for process in self.processes.values():
            for each in (*children(process.pid), process.pid):
                subprocess.run(["kill", "-KILL", str(each)], check=False, capture_output=True)
            process.wait()
        self.network.remove()


@pytest.fixture
def containers(tmp_path):
    allowed = subprocess.run(
        ["unshare", "--mount", "--net", "true"], check=False, capture_output=True
    )
    if allowed.returncode:
        pytest.skip("this machine lets the test make no namespaces")
    made = Containers(tmp_path)
    try:
        yield made
    finally:
        made.down()


def test_the_services_of_the_compose_file_run_together(containers, tell):
    containers.up()
    until(lambda: "Uvicorn running" in containers.said("superlink"), "the SuperLink's start")
    tell("the SuperLink is up, by the command of its service")

    def named(node):
        containers.tend()
        return containers.inside(node, "ls", "keys").returncode == 0

    for number in range(NODES):
        node = f"node-{number}"
        until(lambda node=node: named(node), "a node's start", 120)
        assert containers.inside(node, "ls", "keys").stdout.split() == ["ca.pem", node]
        assert containers.inside(node, "ls", "/data").stdout.split() == ["test.npz", "train.npz"]
        assert containers.inside(node, "touch", "/data/more").returncode != 0
    assert "ca.key" not in containers.inside("superlink", "ls", "keys").stdout
    tell("each has its own keys and data, and cannot write where it may only read")

    registered = containers.inside("superlink", "./register.sh")
    assert registered.returncode == 0, registered.stdout + registered.stderr
    tell("the nodes are registered by `exec superlink ./register.sh`")

    def connected():
        containers.tend()
        return all("SuperNode ID" in containers.said(f"node-{n}") for n in range(NODES))

    until(connected, "the nodes' connections")
    tell("both nodes are connected; who was refused before was started again")

    ran = containers.inside("superlink", "./run.sh")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    result = json.loads((containers.home / "run" / "result.json").read_text())
    assert (result["rounds"], result["clients"], result["left_out"]) == (1, NODES, [])
    for number in range(NODES):
        assert list((containers.home / "memory" / str(number)).rglob("*.safetensors"))
    tell(f"`exec superlink ./run.sh`: {result['per_client_test_accuracy']}")
