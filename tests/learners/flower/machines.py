"""Machines that are processes of this one: Flower's programs, ports, data and waiting."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

NGINX = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/local/sbin:/usr/sbin")
"""The proxy, looked for where proxy.sh looks: None if it is not installed."""

CLIENTS = 3
PATIENCE = 900.0


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def neighbouring_ports():
    """Return a free port whose next one is free too: the proxy's and the SuperLink's."""
    for _ in range(100):
        port = free_ports(1)[0]
        with suppress(OSError), socket.socket() as following:
            following.bind(("127.0.0.1", port + 1))
            return port
    pytest.fail("no two free ports side by side")


TRICKS = [
    "/v1/control/start-run",
    "/v1/control/register-node",
    "/v1/runtime/acquire-task",
    "/health",
    "/docs",
    "/openapi.json",
    "/",
    "/v1/fleet",
    "/v1/fleet/",
    "/v1/fleet/../control/start-run",
    "/v1/fleet/%2e%2e/control/start-run",
    "/v1/fleet/..%2fcontrol/start-run",
    "/v1/fleet/..%2Fcontrol%2Fstart-run",
    "/v1/fleet/%2e%2e%2fcontrol%2fstart-run",
    "/v1/fleet/.%2e/control/start-run",
    "/v1/fleet//../control/start-run",
    "/v1/fleet/x/../../control/start-run",
    "//v1/control/start-run",
    "/v1//control/start-run",
    "/v1/./control/start-run",
    "/v1/fleet/%252e%252e/control/start-run",
    "/v1/fleet/..;/control/start-run",
    "/v1/fleet/..\\control\\start-run",
    "/v1/fleet/..%5ccontrol%5cstart-run",
    "/v1/%63ontrol/start-run",
    "/V1/control/start-run",
    "/v1/control/start-run?/v1/fleet/pull-messages",
    "/v1/control/start-run#/v1/fleet/pull-messages",
    "/v1/control/start-run%3f/../../fleet/pull-messages",
    "/v1/control/start-run/../../fleet/pull-messages",
    "/v1/control/start-run/%2e%2e/%2e%2e/fleet/pull-messages",
    "/v1//fleet/pull-messages",
    "/v1/fleet/pull-messages?x",
    "/v1/fleet/pull-messages/",
    "/v1/fleet/pull-messages%0a",
    "/v1/fleet/pull-messages%0d%0aX:%20y",
    "/v1/fleet/Pull-messages",
    "/v1/FLEET/pull-messages",
    "/v1/fleet/..%c0%afcontrol/start-run",
    "/v1/fleet/pull-messages;/../../control/start-run",
    "/api/v1/control/start-run",
    "/flwr.proto.Control/StartRun",
    "https://localhost/v1/control/start-run",
    "https://localhost/v1/fleet/../control/start-run",
]
"""Paths that are no node's, or that two programs may read in two ways."""


def ask_raw(host, port, authority, path, method="POST", body=b""):
    """Return the status and the text for a path that is sent as it is, not tidied."""
    context = ssl.create_default_context(cafile=authority)
    plain = socket.create_connection((host, port), timeout=30)
    with context.wrap_socket(plain, server_hostname=host) as end:
        end.sendall(
            f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
        )
        with suppress(OSError):  # who refuses may close before the whole body came
            end.sendall(body)
        answer = b"".join(iter(lambda: end.recv(65536), b""))
    head, _, text = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), text.decode(errors="replace")


def until(condition, what, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.5)
    pytest.fail(f"{what} did not happen within {seconds:g} s")


def children(process):
    """Return a process's children, and theirs."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found = []
    waiting = [process]
    while waiting:
        for child in parents.get(waiting.pop(), []):
            found.append(child)
            waiting.append(child)
    return found


def commands(folder):
    """Return a folder with Flower's commands, run by this very Python."""
    place = folder / "bin"
    place.mkdir(exist_ok=True)
    for point in entry_points(group="console_scripts"):
        if point.value.startswith("flwr."):
            module, function = point.value.split(":")
            program = f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n"
            (place / point.name).write_text(f"#!{sys.executable}\n{program}")
            (place / point.name).chmod(0o755)
    return place


def own_data(folder, number):
    x, y = load_digits(return_X_y=True)
    mine = np.flatnonzero(np.isin(y % CLIENTS, [number, (number + 1) % CLIENTS]))
    mine = np.random.default_rng(number).permutation(mine)[:120]
    folder.mkdir()
    for part, some in (("train", mine[:90]), ("test", mine[90:])):
        np.savez(folder / f"{part}.npz", x=x[some] / 8 - 1, y=y[some])


class Namespaces:
    """A bridge and a network namespace with an address of its own for every machine."""

    def __init__(self):
        self.tag = f"cf{os.getpid() % 10000}"
        self.made = []

    def ip(self, *arguments):
        subprocess.run(["ip", *map(str, arguments)], check=True, capture_output=True)

    def make(self, machines):
        bridge = f"{self.tag}b"
        self.ip("link", "add", bridge, "type", "bridge")
        self.made.append(("link", "del", bridge))
        self.ip("link", "set", bridge, "up")
        for number, machine in enumerate(machines):
            name, ours, theirs = f"{self.tag}-{machine}", f"{self.tag}o{number}", "eth0"
            self.ip("netns", "add", name)
            self.made.append(("netns", "del", name))
            self.ip("link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", name)
            self.ip("link", "set", ours, "master", bridge, "up")
            self.ip("-n", name, "addr", "add", f"10.213.7.{number + 1}/24", "dev", theirs)
            self.ip("-n", name, "link", "set", theirs, "up")
            self.ip("-n", name, "link", "set", "lo", "up")

    def remove(self):
        for command in reversed(self.made):
            subprocess.run(["ip", *command], check=False, capture_output=True)

    def inside(self, machine):
        return ["ip", "netns", "exec", f"{self.tag}-{machine}"]
