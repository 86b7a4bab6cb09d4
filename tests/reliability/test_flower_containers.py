"""The services of `compose.yaml`, started as containers are, without docker and its images.

Each service has a root of its own (this machine's, with the app copied into it and nothing under
/tmp), the mounts that the file names, a network namespace (its own, or that of the service it
shares), names of the others as hosts, the user, the read-only root, the capabilities and the limits
on privileges that the file says. What is not tried: building the image, and docker's own network.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from learners.flower.project import write_project
from tests.learners.flower.machines import (
    NGINX,
    TRICKS,
    Namespaces,
    children,
    commands,
    own_data,
    until,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed"),
]

ROOT = Path(__file__).resolve().parents[2]
NODES = 2
INSIDE = Path("/federation")
SHARED = ("/proc", "/dev", "/sys")
USER = 1000
SHARES = "service:"


class Containers:
    """What `docker compose up` and `docker compose exec` do, as far as the file says it."""

    def __init__(self, folder):
        self.home = folder / "app"
        self.programs = commands(folder)
        write_project(self.home, clients=NODES, rounds=1)
        subprocess.run(
            ["./keys.sh", "superlink", "10.213.7.1"], cwd=self.home, check=True, capture_output=True
        )
        (self.home / "data").mkdir()
        for number in range(NODES):
            own_data(self.home / "data" / str(number), number)
        for folder_of_its_own in ("run", "state", *(f"memory/{n}" for n in range(NODES))):
            (self.home / folder_of_its_own).mkdir(parents=True)
        subprocess.run(["chown", "-R", f"{USER}:{USER}", self.home], check=True)
        text = re.sub(r"\$\{\w+:-(\w+)\}", r"\1", (self.home / "compose.yaml").read_text())
        self.services = yaml.safe_load(text)["services"]
        self.places = folder / "containers"
        self.network = Namespaces()
        self.processes = {}

    def up(self):
        self.network.make([name for name in self.services if self.machine(name) == name])
        for name, service in self.services.items():
            self.prepare(name, service)
            self.start(name)

    def machine(self, name):
        """Return the service whose network a service has."""
        return self.services[name].get("network_mode", SHARES + name).removeprefix(SHARES)

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
        machines = [each for each in self.services if self.machine(each) == each]
        hosts = [
            f"10.213.7.{n + 1} {' '.join([host, *self.aliases(host)])}"
            for n, host in enumerate(machines)
        ]
        (changed / "etc/hosts").write_text("\n".join(["127.0.0.1 localhost", *hosts]) + "\n")
        root = place / "root"
        layers = f"lowerdir=/,upperdir={changed},workdir={place / 'work'}"
        for each in (root, place / "work"):
            each.mkdir()
        lines = [f"mount -t overlay overlay -o {layers} {root}"]
        lines += [f"mount --rbind {each} {root}{each}" for each in SHARED]
        lines.append(f"chmod 755 {root}/root")  # this machine's Python may be there
        for each in service["tmpfs"]:
            there, _, how = each.partition(":")
            lines += [f"mkdir -p {root}{there}", f"mount -t tmpfs -o {how} tmpfs {root}{there}"]
        for volume in service["volumes"]:
            there, here, *how = volume.split(":")
            outside, inside = self.home / there, f"{root}{here}"
            made = f"mkdir -p {inside}"
            if outside.is_file():
                made = f"mkdir -p {Path(inside).parent} && touch {inside}"
            lines += [made, f"mount --bind {outside} {inside}"]
            if how == ["ro"]:
                lines.append(f"mount -o remount,bind,ro {inside}")
        if service["read_only"]:
            lines.append(f"mount -o remount,ro {root}")
        command = shlex.join(service["command"])
        as_user = shlex.join(self.limits(name))
        lines.append(
            f"exec chroot {root} {as_user} sh -c {shlex.quote(f'cd {INSIDE} && exec {command}')}"
        )
        (place / "start.sh").write_text("set -eu\n" + "\n".join(lines) + "\n")

    def aliases(self, name):
        return self.services[name].get("networks", {}).get("default", {}).get("aliases", [])

    def limits(self, name):
        """Return the command that starts another as the service's user, with its privileges."""
        service = self.services[name]
        user, group = service["user"].split(":")
        command = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]
        if service["cap_drop"] == ["ALL"]:
            command += ["--inh-caps=-all", "--bounding-set=-all"]
        if "no-new-privileges:true" in service["security_opt"]:
            command.append("--no-new-privs")
        return command

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
                [*self.network.inside(self.machine(name)), *apart, "sh", place / "start.sh"],
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
            ["nsenter", "-t", str(process), "--mount", "--net", "--root", "--wd",
             *self.limits(name), *command],
            env=self.environment(name), capture_output=True, text=True, check=False,
        )  # fmt: skip

    def status(self, name):
        """Return what the kernel says of a service's process."""
        text = Path(f"/proc/{self.processes[name].pid}/status").read_text()
        return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)

    def mounts(self, name):
        text = Path(f"/proc/{self.processes[name].pid}/mounts").read_text()
        return [line.split() for line in text.splitlines()]

    def down(self):
        for process in self.processes.values():
            for each in (process.pid, *children(process.pid)):
                subprocess.run(["kill", "-KILL", str(each)], check=False, capture_output=True)
            process.wait()
        self.network.remove()


@pytest.fixture
def containers(tmp_path):
    missing = [name for name in ("ip", "unshare", "nsenter", "setpriv") if not shutil.which(name)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
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


def asked(containers, name, port, authority):
    """Return what a service is answered for the paths that are no node's."""
    program = (
        "import json, sys\n"
        "from tests.learners.flower.machines import TRICKS, ask_raw\n"
        "def ask(path):\n"
        "    try:\n"
        "        return ask_raw('10.213.7.1', int(sys.argv[1]), sys.argv[2], path)[0]\n"
        "    except ConnectionRefusedError:\n"
        "        return 'refused'\n"
        "print(json.dumps([ask(path) for path in TRICKS]))\n"
    )
    done = subprocess.run(
        [*containers.network.inside(containers.machine(name)), sys.executable, "-c", program,
         str(port), authority],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


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
        assert "SuperNode ID" not in containers.said(node)
    assert "ca.key" not in containers.inside("superlink", "ls", "keys").stdout
    assert "node" not in containers.inside("proxy", "ls", "keys").stdout
    for name in containers.services:
        root = next(line for line in containers.mounts(name) if line[1] == "/")
        assert "ro" in root[3].split(",")
        assert containers.inside(name, "touch", "/tmp/more").returncode == 0
        status = containers.status(name)
        assert set(status["Uid"].split()) == {str(USER)}
        assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
        assert status["NoNewPrivs"] == "1"
    tell("each has its own keys and data, and cannot write where it may only read")
    tell("each is user 1000 with a read-only root, without capabilities or new privileges")

    authority = containers.home / "keys" / "ca.pem"
    port = int(containers.services["node-0"]["command"][-1].split(":")[1])
    statuses = asked(containers, "node-0", port, authority)
    assert statuses == [403] * len(TRICKS)
    assert asked(containers, "node-0", port + 1, authority) == ["refused"] * len(TRICKS)
    tell(f"a node's {len(TRICKS)} other paths: 403 by the proxy; past it there is no way")

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
    assert (
        json.loads((containers.home / "state" / "runs.jsonl").read_text())["result"] == "finished"
    )
    assert (containers.home / "state" / "superlink.db").stat().st_mode & 0o077 == 0
