"""A folder with a Flower app that is ready to deploy: code, keys, scripts, containers."""

from __future__ import annotations

import re
import shutil
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from coalitions.errors import InvalidInputError
from coalitions.files.storage import disk_trouble_named
from coalitions.files.writing import write_whole
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
        Where nodes find the SuperLink.
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


def _compose(clients: int, port: int) -> str:
    """Return a file for `docker compose`: each container has its own keys and data, no other's."""
    lines = [
        "# docker compose up --build; then, in this order:",
        "# docker compose exec superlink ./register.sh",
        "# docker compose exec superlink ./run.sh",
        "services:",
        "  superlink:",
        "    build: .",
        f'    command: ["./superlink.sh", "0.0.0.0", "{port}"]',
        "    environment:",
        f"      SUPERLINK: superlink:{port}",
        "    volumes:",
        "      - ./keys/ca.pem:/federation/keys/ca.pem:ro",
        "      - ./keys/server.pem:/federation/keys/server.pem:ro",
        "      - ./keys/server.key:/federation/keys/server.key:ro",
    ]
    for i in range(clients):
        lines.append(f"      - ./keys/node-{i}.pub:/federation/keys/node-{i}.pub:ro")
    lines.append("      - ./run:/federation/run")
    for i in range(clients):
        lines += [
            f"  node-{i}:",
            "    build: .",
            f'    command: ["./supernode.sh", "{i}", "/data", "superlink:{port}"]',
            "    depends_on: [superlink]",
            "    restart: unless-stopped",
            "    volumes:",
            "      - ./keys/ca.pem:/federation/keys/ca.pem:ro",
            f"      - ./keys/node-{i}:/federation/keys/node-{i}:ro",
            f"      - ./data/{i}:/data:ro",
            f"      - ./memory/{i}:/federation/memory/{i}",
        ]
    return "\n".join(lines) + "\n"
