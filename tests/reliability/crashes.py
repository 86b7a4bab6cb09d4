"""Real processes that are killed, run out of disk, or meet: shared by the tests of this folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path

import pytest

SETTINGS = {
    "--clients": 3,
    "--rounds": 4,
    "--local-epochs": 1,
    "--train-size": 30,
    "--workers": 1,
    "--participation": 0.7,
}
TIMES = ("seconds", "solve_seconds", "structure_seconds", "out")
CHANGED_BY_EVERY_START = ("environment.json", "clients.json", "config.toml")


def flags(algorithm, **more):
    settings = SETTINGS | {f"--{key.replace('_', '-')}": value for key, value in more.items()}
    return ["--algorithm", algorithm, *(str(each) for pair in settings.items() for each in pair)]


@dataclass
class Ended:
    """How a command ended."""

    code: int
    stderr: str
    seconds: float

    @property
    def in_one_sentence(self):
        """Whether it failed, and said so in one line that is meant for people."""
        lines = self.stderr.splitlines()
        return (
            self.code in (1, 2)
            and len(lines) == 1
            and lines[0].startswith("coalitions: ")
            and "Internal error" not in self.stderr
            and "Traceback" not in self.stderr
        )


class Command:
    """`coalitions …` in a process of its own, which has everything imported already.

    Parameters
    ----------
    arguments
        What was typed.
    largest_file
        Bytes that a file of this process may have; None for no limit.
    dies_at
        Number of the operation on the file system before which it kills itself; 0 for never.
    """

    def __init__(self, *arguments, largest_file=None, dies_at=0):
        self._read, write = os.pipe()
        self._began = time.perf_counter()
        self._process = get_context("fork").Process(
            target=_life, args=(arguments, write, largest_file, dies_at)
        )
        self._process.start()
        os.close(write)

    def kill(self):
        os.kill(self._process.pid, signal.SIGKILL)

    def end(self):
        with os.fdopen(self._read, "rb") as pipe:
            told = pipe.read().decode()
        self._process.join()
        return Ended(self._process.exitcode, told, time.perf_counter() - self._began)


def command(*arguments, **how):
    return Command(*arguments, **how).end()


def _life(arguments, write, largest_file, dies_at):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(write, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    warnings.resetwarnings()
    if largest_file is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    if dies_at:
        _die_before_operation(dies_at)
    from cli.app import main

    sys.argv = ["coalitions", *map(str, arguments)]
    main()


def _die_before_operation(number):
    changing = {"os.rename", "os.remove", "os.mkdir", "os.link", "os.truncate", "os.chmod"}
    count, own = 0, os.getpid()

    def watch(event, details):
        nonlocal count
        writes = event == "open" and isinstance(details[2], int) and details[2] & 3
        if writes or event in changing:
            count += 1
            if count == number and os.getpid() == own:  # not one of its workers
                os.kill(own, signal.SIGKILL)

    sys.addaudithook(watch)


def outcome(folder):
    """All that a finished run left, but for the time it took: names and checksums."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = str(path.relative_to(folder))
        if name == ".lock" or name.startswith("checkpoints/round-"):
            continue  # one that nobody holds is no lock; where it went on, it left a checkpoint
        if path.suffix in (".jsonl", ".json") and path.parent == folder:
            lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
            found[name] = [_without_times(json.loads(line)) for line in lines]
        elif name in ("SHA256SUMS.timed", "config.toml"):
            found[name] = "there"  # the checksum of a time, too
        else:
            found[name] = sha256(path.read_bytes()).hexdigest()
    for name in CHANGED_BY_EVERY_START:
        found[name] = "there" if name in found else "missing"
    return found


def _without_times(document):
    if not isinstance(document, dict):
        return document
    return {key: value for key, value in document.items() if key not in TIMES}


@contextmanager
def small_disk(place, size, inodes=0):
    """Give a disk of a size, and how to change its options; skip where nobody may mount."""
    place.mkdir()
    options = f"size={size}" + (f",nr_inodes={inodes}" if inodes else "")
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a disk that is full needs the right to mount a tmpfs")

    def remount(options):
        other = ["mount", "-o", f"remount,{options}", str(place)]
        subprocess.run(other, check=True, capture_output=True)

    try:
        yield remount
    finally:
        subprocess.run(["umount", str(place)], check=True)


def used(folder):
    """Bytes that the files of a folder take, in whole pages."""
    sizes = {
        path.stat().st_ino: path.stat().st_size
        for path in Path(folder).rglob("*")
        if path.is_file()
    }
    return sum(-(-size // 4096) * 4096 for size in sizes.values())
