"""A folder with a Flower app that is ready to deploy: code, keys, scripts, containers."""

from __future__ import annotations

import json
import re
import shutil
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from coalitions.errors import InvalidInputError
from coalitions.files.writing import disk_trouble_named, write_whole
from learners.algorithm import ALGORITHMS

TASKS = ("auto", "classification", "multi-label", "regression")
"""What nodes can learn."""

_SUFFIX = ".template"
_MARK = "app/network.py"
"""A file by which a folder of ours is known."""


def write_project(
    folder: Path,
    *,
    algorithm: str = "pfedsv",
    clients: int = 3,
    rounds: int = 20,
    inputs: int = 64,
    classes: int | None = None,
    task: str = "auto",
    host: str = "127.0.0.1",
    port: int = 8000,
    force: bool = False,
) -> list[str]:
    """Write a Flower app for one of our methods; return the names of its files.

    Parameters
    ----------
    folder
        Where to; it must not exist.
    algorithm, clients, rounds
        What runs, with how many nodes, for how many rounds.
    inputs, classes
        Numbers in an example, and number of labels, ten if not given; with the task ``regression``
        how many numbers are learnt, one if not given.
    task
        ``classification``, ``multi-label`` or ``regression``; ``auto`` is the first.
    host, port
        Where nodes find the SuperLink: the proxy's port. The SuperLink itself has the next one, on
        its own machine only.
    force
        Replace the app that is in `folder`; keys, data and runs there stay.
    """
    ALGORITHMS[algorithm]
    for name, value in (("clients", clients), ("rounds", rounds), ("inputs", inputs)):
        if value < 1:
            raise InvalidInputError(f"{name} is {value}; it must be at least 1")
    if task not in TASKS:
        raise InvalidInputError(f"task is {task!r}; it can be: {', '.join(TASKS)}")
    least = 2 if task in ("auto", "classification") else 1
    if classes is None:
        classes = 1 if task == "regression" else 10
    if classes < least:
        raise InvalidInputError(f"classes is {classes}; there must be at least {least}")
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", host):
        raise InvalidInputError(f"host {host!r} is neither the name nor the address of a machine")
    if not 1 <= port <= 65535:
        raise InvalidInputError(f"port is {port}; ports are from 1 to 65535")
    _check_free(folder, force)
    values: dict[str, str | int] = {
        "ALGORITHM": algorithm,
        "CLIENTS": clients,
        "ROUNDS": rounds,
        "INPUTS": inputs,
        "CLASSES": classes,
        "TASK": task,
        "HOST": host,
        "PORT": port,
        "INNER": _inner(port),
    }
    texts = {name: _filled(file.read_text(), values) for name, file in _templates().items()}
    texts["compose.yaml"] = _compose(clients, port)
    for name, text in sorted(texts.items()):
        path = folder / name
        with disk_trouble_named(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
        if path.suffix == ".sh":
            path.chmod(0o755)
    return sorted(texts)


def _check_free(folder: Path, force: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"{folder} is a file; an app needs a folder of its own")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    if not force:
        raise InvalidInputError(
            f"{folder} exists and has files; choose another folder, or --force to replace the app"
        )
    if not (folder / _MARK).is_file():
        raise InvalidInputError(
            f"{folder} has files but no {_MARK}: it is no app of ours, it stays"
        )
    for name in ("app", "tests"):
        shutil.rmtree(folder / name, ignore_errors=True)


def _templates() -> dict[str, Traversable]:
    """Return the files of the template by the name they are written under."""
    found: dict[str, Traversable] = {}

    def walk(place: Traversable, before: str) -> None:
        for each in place.iterdir():
            if each.is_dir():
                walk(each, f"{before}{each.name}/")
            elif each.name.endswith(_SUFFIX):
                found[before + each.name.removesuffix(_SUFFIX)] = each

    walk(files("learners.flower") / "template", "")
    return found


def _filled(text: str, values: dict[str, str | int]) -> str:
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text


def _inner(port: int) -> int:
    """Return the port of the SuperLink behind the proxy's."""
    return port + 1 if port < 65535 else port - 1


_COMPOSE = """\
# mkdir -p run state memory/0 memory/1     one for each node; docker would make them for root
# docker compose up --build; then, in this order:
# docker compose exec superlink ./register.sh
# docker compose exec superlink ./run.sh
# If `id -u` and `id -g` are not 1000, the file .env needs: FEDERATION_UID=…, FEDERATION_GID=…
x-least: &least
  build: .
  user: "${FEDERATION_UID:-1000}:${FEDERATION_GID:-1000}"
  read_only: true
  cap_drop: [ALL]
  security_opt: ["no-new-privileges:true"]
  restart: unless-stopped
services:
"""


def _compose(clients: int, port: int) -> str:
    """Return a file for `docker compose`: each container has its own keys and data, no other's.

    The SuperLink has no network of its own. It shares that of the proxy, where it listens on
    127.0.0.1, so the proxy is all that nodes reach; they know it as `superlink`.
    """
    services = {
        "proxy": _service(
            ["./proxy.sh"],
            written=["tmp", "federation/.nginx"],
            more=["    networks: {default: {aliases: [superlink]}}"],
            volumes=[_key("ca.pem"), _key("server.pem"), _key("server.key")],
        ),
        "superlink": _service(
            ["./superlink.sh"],
            written=["tmp", "federation/.flwr"],
            more=[
                "    network_mode: service:proxy",
                "    depends_on: {proxy: {condition: service_started, restart: true}}",
            ],
            volumes=[
                *map(_key, ("ca.pem", "server.pem", "server.key")),
                *(_key(f"node-{i}.pub") for i in range(clients)),
                "./state:/federation/state",
                "./run:/federation/run",
            ],
        ),
    }
    for i in range(clients):
        services[f"node-{i}"] = _service(
            ["./supernode.sh", str(i), "/data", f"superlink:{port}"],
            written=["tmp", "federation/.flwr"],
            more=["    depends_on: [proxy]"],
            volumes=[
                _key("ca.pem"),
                _key(f"node-{i}"),
                f"./data/{i}:/data:ro",
                f"./memory/{i}:/federation/memory/{i}",
            ],
        )
    return _COMPOSE + "".join(f"  {name}:\n{text}" for name, text in services.items())


def _key(name: str) -> str:
    return f"./keys/{name}:/federation/keys/{name}:ro"


def _service(command: list[str], *, written: list[str], more: list[str], volumes: list[str]) -> str:
    """Return a service that may write to its volumes and to folders in memory, and nowhere else."""
    owner = "uid=${FEDERATION_UID:-1000},gid=${FEDERATION_GID:-1000},mode=0700"
    lines = ["    <<: *least", f"    command: {json.dumps(command)}", *more, "    tmpfs:"]
    lines += [f"      - /{folder}:{owner}" for folder in written]
    lines += ["    volumes:", *(f"      - {volume}" for volume in volumes)]
    return "\n".join(lines) + "\n"
