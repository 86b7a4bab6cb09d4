"""A real SuperLink and SuperNodes, with TLS and authentication: losses, restarts, strangers."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from learners.flower.project import write_project
from tests.learners.flower.machines import (
    CLIENTS,
    NGINX,
    TRICKS,
    Namespaces,
    children,
    commands,
    free_ports,
    neighbouring_ports,
    own_data,
    until,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed"),
]

ROOT = Path(__file__).resolve().parents[2]
METHODS = ["pfedsv", "cffl"]


class Deployment:
    """What `coalitions deploy` wrote, started on machines that are processes of this one."""

    def __init__(self, folder, algorithm, network):
        self.home = folder / "superlink"
        self.algorithm = algorithm
        self.network = network
        self.host = "10.213.7.1" if network else "127.0.0.1"
        self.port = neighbouring_ports()
        self.node_ports = free_ports(CLIENTS + 1)
        write_project(
            self.home,
            algorithm=algorithm,
            clients=CLIENTS,
            rounds=3,
            host=self.host,
            port=self.port,
        )
        settings = self.home / "pyproject.toml"
        settings.write_text(
            settings.read_text()
            .replace("local-epochs = 2", "local-epochs = 1")
            .replace("wait-for-answer = 3600.0", "wait-for-answer = 300.0")
            .replace("wait-for-clients = 600.0", "wait-for-clients = 300.0")
        )
        self.environment = os.environ | {
            "PATH": f"{commands(folder)}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        }
        self.processes = {}
        subprocess.run(["./keys.sh", self.host], cwd=self.home, check=True, capture_output=True)
        for number in range(CLIENTS):
            self.give(number)

    def give(self, number):
        """Copy the app to a node's machine, with its own key and data and no other's."""
        machine = self.home.parent / f"node-{number}"
        shutil.copytree(self.home, machine, ignore=shutil.ignore_patterns("keys", ".flwr"))
        (machine / "keys").mkdir()
        for name in ("ca.pem", f"node-{number}"):
            shutil.copy(self.home / "keys" / name, machine / "keys" / name)
        own_data(machine / "data", number)

    def command(self, machine, *arguments, **options):
        inside = self.network.inside(machine) if self.network else []
        return subprocess.run(
            [*inside, *map(str, arguments)], env=self.environment, capture_output=True, text=True,
            check=False, **options,
        )  # fmt: skip

    def start(self, name, machine, folder, *arguments):
        inside = self.network.inside(machine) if self.network else []
        with (folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [*inside, *map(str, arguments)],
                cwd=folder, env=self.environment, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        return folder / f"{name}.log"

    def start_superlink(self):
        if "proxy" not in self.processes:
            self.start("proxy", "superlink", self.home, "./proxy.sh")
        log = self.start("superlink", "superlink", self.home, "./superlink.sh")
        seen = log.read_text().count("Uvicorn running")
        until(lambda: log.read_text().count("Uvicorn running") > seen, "the SuperLink's start")

    def start_node(self, number, machine_folder=None):
        folder = machine_folder or self.home.parent / f"node-{number}"
        return self.start(
            folder.name, f"node-{number}", folder, "./supernode.sh", number, folder / "data",
            f"{self.host}:{self.port}", self.node_ports[number],
        )  # fmt: skip

    def begin(self, name="run"):
        return self.start(name, "superlink", self.home, "./run.sh")

    def kill(self, name, how=signal.SIGKILL):
        process = self.processes.pop(name)
        # Flower starts helpers in sessions of their own; nginx replaces a worker that ends first.
        for each in (process.pid, *children(process.pid)):
            with suppress(ProcessLookupError):
                os.kill(each, how)
        process.wait()

    def end(self):
        for name in list(self.processes):
            self.kill(name)

    def metrics(self):
        path = self.home / "run" / "metrics.jsonl"
        if not path.is_file():
            return []
        return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]

    def result(self):
        path = self.home / "run" / "result.json"
        return json.loads(path.read_text()) if path.is_file() else None


@pytest.fixture(scope="module")
def network():
    """Namespaces where the test may make them; else all machines have the address 127.0.0.1."""
    namespaces = Namespaces()
    try:
        namespaces.make(["superlink", *(f"node-{n}" for n in range(CLIENTS + 1))])
    except (OSError, subprocess.CalledProcessError):
        namespaces.remove()
        yield None
        return
    yield namespaces
    namespaces.remove()


@pytest.fixture
def deployed(tmp_path, network, request):
    deployment = Deployment(tmp_path, request.param, network)
    try:
        yield deployment
    finally:
        deployment.end()


def unregistered(deployment):
    """Return the folder of a node with a key of its own making, and its number."""
    folder = deployment.home.parent / "unregistered"
    shutil.copytree(deployment.home.parent / "node-0", folder)
    (folder / "keys" / "node-0").unlink()
    command = ["ssh-keygen", "-q", "-t", "ecdsa", "-b", "384", "-N", ""]
    subprocess.run([*command, "-f", f"keys/node-{CLIENTS}"], cwd=folder, check=True)
    return folder, CLIENTS


def began(deployed, tell):
    """Have all nodes there, and the run in its second round."""
    tell(f"addresses: {'network namespaces, 10.213.7.x' if deployed.network else '127.0.0.1'}")
    deployed.start_superlink()
    registered = deployed.command("superlink", "./register.sh", cwd=deployed.home)
    assert registered.returncode == 0, registered.stdout + registered.stderr
    tell("the SuperLink is up, behind its proxy; three keys are registered")
    for number in range(CLIENTS):
        deployed.start_node(number)
    deployed.begin()
    until(lambda: len(deployed.metrics()) >= 1, "round 1")
    assert deployed.metrics()[0]["refused"] == {}
    tell(f"round 1: accuracies {deployed.metrics()[0]['per_client_test_accuracy']}")


@pytest.mark.parametrize("deployed", METHODS, indirect=True)
def test_a_node_is_killed_and_strangers_are_refused(deployed, tell):
    began(deployed, tell)
    deployed.kill("node-2")
    tell("node 2 is killed in round 2")

    folder, number = unregistered(deployed)
    log = deployed.start_node(number, folder)
    until(lambda: deployed.processes["unregistered"].poll() is not None, "a refusal")
    assert "Failed to activate SuperNode" in log.read_text()
    assert "SuperNode ID" not in log.read_text()
    tell("a node whose key is not registered is refused")

    log = deployed.start(
        "keyless", f"node-{CLIENTS}", folder, "flower-supernode",
        "--superlink", f"{deployed.host}:{deployed.port}", "--root-certificates", "keys/ca.pem",
        "--port", deployed.node_ports[CLIENTS], "--node-config", "partition-id=2",
    )  # fmt: skip
    until(lambda: deployed.processes["keyless"].poll() is not None, "a refusal")
    assert "SuperNode authentication is enabled" in log.read_text()
    assert "SuperNode ID" not in log.read_text()
    tell("a node without any key is refused")

    other = deployed.home.parent / "misled"
    shutil.copytree(deployed.home.parent / "node-2", other)
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "/dev/null"]
    subprocess.run(
        [*command, "-out", "keys/ca.pem", "-subj", "/CN=another"],
        cwd=other, check=True, capture_output=True,
    )  # fmt: skip
    log = deployed.start_node(2, other)
    until(lambda: "certificate verify failed" in log.read_text().lower(), "a refusal")
    assert "SuperNode ID" not in log.read_text()
    deployed.kill("misled")
    tell("a node with a wrong certificate gets no connection")

    until(lambda: deployed.result() is not None, "the end of the run")
    rounds = deployed.metrics()
    assert [line["round"] for line in rounds] == [1, 2, 3]
    assert set(rounds[-1]["refused"]) == {"2"}
    assert rounds[-1]["up_per_client"][2] == 0
    assert all(rounds[-1]["up_per_client"][:2])
    assert [entry["client"] for entry in deployed.result()["left_out"]] == [2]
    tell(f"the run ended with the others; left out: {deployed.result()['left_out']}")

    audit = deployed.home / "state" / "runs.jsonl"
    until(audit.is_file, "the audit's line", 60)
    line = json.loads(audit.read_text())
    assert (line["algorithm"], line["rounds"]) == (deployed.algorithm, 3)
    assert line["result"] == "finished"
    assert len(line["nodes"]) == CLIENTS
    assert len(line["app"]) == 64
    assert [entry["client"] for entry in line["left_out"]] == [2]
    tell(f"audited: {line}")
    state, flower = deployed.home / "state", deployed.home / ".flwr"
    private = [state, flower, *state.iterdir()]
    assert all(path.stat().st_mode & 0o077 == 0 for path in private)


@pytest.mark.parametrize("deployed", METHODS, indirect=True)
def test_the_superlink_is_killed_and_the_run_goes_on(deployed, tell):
    began(deployed, tell)
    # A round's line is written before its checkpoint; without that, the round is made anew.
    kept = deployed.home / "run" / "checkpoints"
    until(lambda: any(kept.glob("round-*.json")), "the checkpoint of round 1")
    deployed.kill("superlink")
    deployed.kill("run")
    before = deployed.metrics()
    assert deployed.result() is None
    tell(f"the SuperLink is killed after round {len(before)}")
    deployed.start_superlink()
    deployed.begin("run-again")
    until(lambda: deployed.result() is not None, "the end of the run")
    rounds = deployed.metrics()
    assert [line["round"] for line in rounds] == [1, 2, 3]
    assert rounds[0] == before[0]
    assert all(line["refused"] == {} for line in rounds)
    assert json.loads((deployed.home / "run" / "flower.json").read_text())["life"] == 2
    tell(f"resumed, and finished: {deployed.result()['per_client_test_accuracy']}")


ATTACK = {
    "pyproject.toml": """\
[project]
name = "attack"
version = "1.0.0"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "stranger"

[tool.flwr.app.components]
serverapp = "evil.server:app"
clientapp = "evil.client:app"

[tool.flwr.app.config]
""",
    "evil/__init__.py": "",
    "evil/server.py": """\
import os
from pathlib import Path
from flwr.serverapp import ServerApp

app = ServerApp()

@app.main()
def main(grid, context):
    Path(os.environ["LOOT"]).write_text("\\n".join(os.listdir("keys")))
""",
    "evil/client.py": "from flwr.clientapp import ClientApp\n\napp = ClientApp()\n",
}
"""An app of somebody who may not start any: it tells which keys the SuperLink has."""


class Stranger:
    """A machine with what a node has, `ca.pem` and its key, and with plans of its own."""

    def __init__(self, deployed, port):
        self.deployed = deployed
        self.folder = deployed.home.parent / "stranger"
        for name, text in ATTACK.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        shutil.copytree(deployed.home.parent / "node-0" / "keys", self.folder / "keys")
        (self.folder / ".flwr").mkdir()
        (self.folder / ".flwr" / "config.toml").write_text(
            f'[superlink]\ndefault = "x"\n[superlink.x]\naddress = "{deployed.host}:{port}"\n'
            f'root-certificates = "{self.folder}/keys/ca.pem"\n'
        )
        keys = ["ssh-keygen", "-q", "-t", "ecdsa", "-b", "384", "-N", "", "-f", "own"]
        subprocess.run(keys, cwd=self.folder, check=True)

    def flwr(self, *arguments):
        home = f"FLWR_HOME={self.folder / '.flwr'}"
        return self.deployed.command(
            f"node-{CLIENTS}", "env", home, "FLWR_TELEMETRY_ENABLED=0", "flwr", *arguments,
            cwd=self.folder,
        )  # fmt: skip

    def attacks(self, run):
        return {
            "register a node": self.flwr("supernode", "register", "own.pub", "x"),
            "list nodes": self.flwr("supernode", "list", "x"),
            "start a run": self.flwr("run", ".", "x"),
            "list runs": self.flwr("list", "x"),
            "stop a run": self.flwr("stop", run, "x"),
        }


def runs_of(deployed):
    """Return Flower's list of runs, as it is on the SuperLink's machine."""
    home = f"FLWR_HOME={deployed.home / '.flwr'}"
    listed = deployed.command(
        "superlink", "env", home, "flwr", "list", "federation", "--format", "json",
        cwd=deployed.home,
    )  # fmt: skip
    assert listed.returncode == 0, listed.stdout + listed.stderr
    return json.loads(listed.stdout[listed.stdout.index("{") :])["runs"]


def begun(deployed):
    """Return the id of a run of ours, which waits for nodes."""
    deployed.begin()
    until(lambda: runs_of(deployed), "a run")
    return str(runs_of(deployed)[0]["run-id"])


@pytest.mark.parametrize("deployed", METHODS[:1], indirect=True)
def test_a_node_s_machine_can_neither_register_nodes_nor_start_list_or_stop_runs(deployed, tell):
    loot = deployed.home.parent / "loot"
    deployed.environment["LOOT"] = str(loot)
    deployed.start_superlink()
    assert deployed.command("superlink", "./register.sh", cwd=deployed.home).returncode == 0
    stranger = Stranger(deployed, deployed.port)
    for what, done in stranger.attacks(begun(deployed)).items():
        said = done.stdout + done.stderr
        assert done.returncode != 0, said
        assert "403" in said, said
        tell(f"{what}: {next(line for line in said.splitlines() if '403' in line).strip('│ ')}")
    assert len(runs_of(deployed)) == 1
    assert runs_of(deployed)[0]["status"] != "finished:stopped"
    assert not loot.exists()

    program = (
        "import sys; from tests.learners.flower.machines import *; "
        "print([ask_raw(*sys.argv[1:2], int(sys.argv[2]), sys.argv[3], t)[0] for t in TRICKS])"
    )
    asked = deployed.command(
        f"node-{CLIENTS}", sys.executable, "-c", program,
        deployed.host, deployed.port, stranger.folder / "keys" / "ca.pem", cwd=ROOT,
    )  # fmt: skip
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout) == [403] * len(TRICKS)
    tell(f"{len(TRICKS)} paths with .., %2e%2e, // and the like: 403")
    if deployed.network:
        shutil.rmtree(stranger.folder)
        past = Stranger(deployed, deployed.port + 1).flwr("list", "x")
        assert past.returncode != 0
        said = [line for line in (past.stdout + past.stderr).splitlines() if "rror" in line]
        tell(f"past the proxy: {said[-1].strip('│ ') if said else 'no answer'}")


@pytest.mark.parametrize("deployed", METHODS[:1], indirect=True)
def test_without_the_proxy_a_node_s_machine_can_do_all_of_it(deployed, tell):
    """What the proxy is for: the SuperLink listens on all addresses here."""
    loot = deployed.home.parent / "loot"
    deployed.environment["LOOT"] = str(loot)
    script = deployed.home / "superlink.sh"
    script.write_text(script.read_text().replace("--host 127.0.0.1", "--host 0.0.0.0"))
    deployed.start_superlink()
    assert deployed.command("superlink", "./register.sh", cwd=deployed.home).returncode == 0
    stranger = Stranger(deployed, deployed.port + 1)
    for what, done in stranger.attacks(begun(deployed)).items():
        assert done.returncode == 0, done.stdout + done.stderr
        tell(f"{what}: done")
    until(loot.is_file, "the stranger's program at the SuperLink", 120)
    assert {"ca.key", "server.key"} <= set(loot.read_text().split())
    tell(f"the stranger's program at the SuperLink read: {loot.read_text().split()}")


@pytest.mark.parametrize("deployed", METHODS[:1], indirect=True)
def test_a_revoked_node_is_refused_and_its_new_key_is_taken(deployed, tell):
    """What the page for operators shows."""
    deployed.start_superlink()
    assert deployed.command("superlink", "./register.sh", "1", cwd=deployed.home).returncode == 0
    log = deployed.start_node(1)
    until(lambda: "SuperNode ID" in log.read_text(), "the node's connection")
    node = Path(f"/proc/{deployed.processes['node-1'].pid}/status")
    if shutil.which("setpriv"):
        assert "NoNewPrivs:\t1" in node.read_text()
        tell("the node can get no new privileges")
    revoked = deployed.command("superlink", "./revoke.sh", "1", cwd=deployed.home)
    assert revoked.returncode == 0, revoked.stdout + revoked.stderr
    until(lambda: deployed.processes["node-1"].poll() is not None, "the node's end", 120)
    tell(f"revoked; the node ended: {log.read_text().strip().splitlines()[-1]}")

    deployed.start_node(1)
    until(lambda: deployed.processes["node-1"].poll() is not None, "a refusal", 120)
    assert log.read_text().count("SuperNode ID") == 1
    again = deployed.command("superlink", "./register.sh", "1", cwd=deployed.home)
    assert again.returncode != 0
    assert "is not registered" in again.stderr
    tell(f"the old key cannot come back: {again.stderr.strip().splitlines()}")

    deployed.command("superlink", "./keys.sh", "node", "1", cwd=deployed.home)
    assert deployed.command("superlink", "./register.sh", "1", cwd=deployed.home).returncode == 0
    shutil.copy(deployed.home / "keys" / "node-1", deployed.home.parent / "node-1" / "keys")
    deployed.start_node(1)
    until(lambda: log.read_text().count("SuperNode ID") == 2, "the node's connection")
    well = deployed.command("superlink", "./health.sh", cwd=deployed.home)
    assert well.returncode == 0, well.stdout + well.stderr
    deployed.kill("superlink")
    ill = deployed.command("superlink", "./health.sh", cwd=deployed.home)
    assert ill.returncode == 1
    assert "the SuperLink does not answer" in ill.stderr
    tell("the node is back with its new key; health.sh says so, and says that a SuperLink is gone")


def typed(title):
    """Return the commands of each block in a section of the page for operators."""
    page = (ROOT / "docs" / "how-to" / "operate-a-federation.md").read_text()
    section = page.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="sqlite3 is not installed")
@pytest.mark.parametrize("deployed", METHODS[:1], indirect=True)
def test_a_backup_and_a_new_certificate_are_taken_as_the_page_for_operators_says(deployed, tell):
    def types(commands):
        done = deployed.command("superlink", "sh", "-euc", commands, cwd=deployed.home)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    back_up, restore = typed("Back up and restore")
    (renew,) = typed("Renew the certificate")
    deployed.start_superlink()
    types("./register.sh")
    types(back_up)
    assert (deployed.home / "backup" / "superlink.db").stat().st_mode & 0o077 == 0
    deployed.kill("superlink")
    for path in (deployed.home / "state").glob("superlink.db*"):
        path.write_bytes(b"lost")
    types(restore)
    deployed.start_superlink()
    ids = [path.read_text().strip() for path in (deployed.home / "state" / "nodes").iterdir()]
    listed = types("./health.sh")
    assert len(ids) == CLIENTS
    assert all(each[:6] in listed for each in ids), listed
    tell("backed up while it ran, lost and restored: health.sh lists the nodes")

    before = (deployed.home / "keys" / "server.pem").read_text()
    types(renew)
    assert (deployed.home / "keys" / "server.pem").read_text() != before
    types("./health.sh")
    deployed.kill("superlink")
    deployed.start_superlink()
    types("./health.sh")
    log = deployed.start_node(0)
    until(lambda: "SuperNode ID" in log.read_text(), "the node's connection")
    tell("a new certificate is taken by the proxy at once, by the SuperLink when it starts")
