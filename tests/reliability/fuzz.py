"""Damaged and hostile files for every reader: what they may do is end in an error of our own.

``cases(reader, count)`` gives the same inputs every time. Each is a small valid file that was
mutated: bytes flipped, cut and repeated, numbers replaced by those that no computation can hold,
brackets by deep nesting. Archives are also taken apart, so that the damage is in an array with a
correct checksum.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import resource
import signal
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from coalitions import CoalitionError, InputWarning, SynergyGraph

SECONDS = 5.0
"""CPU time that one input may take."""

MEMORY = 1 << 30
"""Bytes that the process may grow by, over all inputs."""

TOKENS = [
    b"1e400", b"-1e400", b"1e308", b"5e-324", b"nan", b"NaN", b"inf", b"-Infinity", b"-0",
    b"9" * 400, b"9" * 5000, b"0x" + b"f" * 6000, b"1" + b"0" * 18, b"1000000000", b"0.5", b"-1",
    b"null", b"true", b'""', b'"\\ud800"', b"[]", b"{}", b"[" * 3000, b'{"a":' * 3000, b"a." * 500,
    b"\x00", b"\r", b"\n", b"\xef\xbb\xbf", b"\xff\xfe", b'"', b",", b"\t", b"#", b"=", b"'''",
    b"x" * 200_000, b"<!ENTITY a 'b'>", b"&a;", b"\xe4", b"<f8", b"|O", b"<U4", b"|V8", b"<M8[s]",
]  # fmt: skip
"""What stands in for a number, a name or nothing."""


@dataclass
class Report:
    """How inputs ended, by reader."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(self, reader: str, outcome: str, detail: str = "") -> None:
        self.counts.setdefault(reader, Counter())[outcome] += 1
        if detail and sum(each.startswith(f"{reader}: ") for each in self.failures) < 10:
            self.failures.append(f"{reader}: {detail}")


# -- valid files -----------------------------------------------------------------------------------


def _graph_files(folder: Path) -> dict[str, list[bytes]]:
    matrix = np.array([[0, 2, -1.5, 0], [2, 0, 0.25, 1], [-1.5, 0.25, 0, 3], [0, 1, 3, 0]])
    dense = SynergyGraph(matrix, ["ann", "bob", "cléo", "dan"])
    edges = SynergyGraph.from_edges(4, *dense.edges, labels=dense.labels)
    found: dict[str, list[bytes]] = {}
    for ending in ("csv", "tsv", "npy", "npz", "json", "graphml", "edges"):
        for graph in (dense, edges):
            path = folder / f"graph.{ending}"
            graph.write(path)
            found.setdefault(ending, []).append(path.read_bytes())
    found["csv"] += [b"0,1\n1,0\n", found["csv"][0].decode().encode("utf-16")]
    return found


def _certificates() -> list[bytes]:
    from solvers import solve

    graph = SynergyGraph(np.triu(np.full((5, 5), -1.0), 1) + np.tril(np.full((5, 5), -1.0), -1))
    seeds = []
    for change in (0.0, 2.0, 3.5):
        matrix = np.array(graph.matrix)
        for a, b in ((0, 1), (1, 2), (2, 3), (3, 4), (4, 0)):
            matrix[a, b] = matrix[b, a] = change
        solution = solve(SynergyGraph(matrix), "branch-and-cut", certify=True)
        if solution.certificate is not None:
            seeds.append(json.dumps(solution.certificate.to_json()).encode())
    return seeds


def _images() -> bytes:
    buffer = io.BytesIO()
    pixels, labels = np.zeros((6, 4, 4), np.uint8), np.arange(6, dtype=np.uint8)
    np.savez(buffer, x_train=pixels, y_train=labels, x_test=pixels, y_test=labels)
    return buffer.getvalue()


def _reported_files(folder: Path) -> dict[str, bytes]:
    """Write the folder of an unfinished run, and return the files that are for reports only."""
    folder.mkdir()
    buffer = io.BytesIO()
    np.save(buffer, np.zeros((1, 2, 2)))
    client = {"samples": 3, "labels": [1, 2], "domain": "", "poisoned": False}
    files = {
        "clients.json": json.dumps([client, client]).encode(),
        "structures.jsonl": b'{"round": 1, "coalitions": [[0], [1]]}\n',
        "relevance.npy": buffer.getvalue(),
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "config.toml").write_text("clients = 2\n")
    (folder / "metrics.jsonl").write_text('{"round": 1}\n')
    return files


def _reported(path: Path) -> object:
    """Read the run a file belongs to; the file is then as it was for the next reader."""
    from learners.runs.reading import read_run

    try:
        return read_run(path.parent)
    finally:
        path.unlink()  # none of these files must be there


def _checkpoints(folder: Path) -> list[bytes]:
    import torch

    from learners.runs.checkpoint import Checkpoint, save_checkpoint

    state = {"model": torch.arange(3.0), "told": np.eye(2), "note": [1, "two"]}
    done = Checkpoint(1, state, {0: {"w": torch.ones(2)}}, np.zeros((2, 2), np.int64), 0.5)
    save_checkpoint(folder, done)
    return [(folder / "round-000001.json").read_bytes()]


def _checkpoint(path: Path) -> object:
    """Load a checkpoint whose checksum is right, whatever else is wrong with it."""
    import torch

    from learners.runs.checkpoint import load_checkpoint

    _, _, text = path.read_bytes().rstrip(b"\n").partition(b"\n")
    path.write_bytes(hashlib.sha256(text).hexdigest().encode() + b"\n" + text + b"\n")
    return load_checkpoint(path, torch.device("cpu"))


# -- readers ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reader:
    """A reader, and small files that it reads without complaint."""

    name: str
    read: Callable[[bytes], object]
    seeds: list[bytes]


def readers(folder: Path) -> list[Reader]:
    """Return every reader of users' files; those that want a path get one in the folder."""
    from cli.terminal.run_options import settings
    from coalitions import TableGame
    from coalitions.files.graphs import READERS
    from coalitions.files.opening import load_json
    from coalitions.graph import Treatment
    from learners.data.files import read_npz
    from learners.runs.folder import RunFolder
    from learners.settings.config import RunConfig
    from solvers import Certificate
    from solvers.solution_file import read_document, structure_of

    graph = SynergyGraph([[0, 1], [1, 0]], ["ann", "bob"])

    def by_path(name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
        def read_bytes(content: bytes) -> object:
            path = folder / name
            path.write_bytes(content)
            return read(path)

        return read_bytes

    def graph_reader(kind: str) -> Callable[[bytes], object]:
        def read(content: bytes) -> object:
            how = None if len(content) % 3 else "mean"
            return READERS[kind](io.BytesIO(content), f"graph.{kind}", Treatment(how))

        return read

    def options(content: bytes) -> object:
        typed = content.decode("utf-8", "surrogateescape").split("\n")
        flags = dict(line.split("=", 1) for line in typed if "=" in line)
        return RunConfig.of(settings(None, flags, [line for line in typed if "=" not in line], []))

    run = folder / "run"
    run.mkdir()
    config = RunConfig().toml().encode()
    (run / "config.toml").write_bytes(config)
    whole = _reported_files(folder / "report")
    line = {"round": 1, "mean_test_accuracy": 0.5, "participants": [0, 1], "seconds": 0.1}
    files = _graph_files(folder)
    return [
        *(Reader(f".{kind}", graph_reader(kind), files[kind]) for kind in files),
        Reader(
            "2^n table",
            lambda content: TableGame.from_document(load_json(content, "t.json"), "t.json"),
            [b'{"values": [0, 1, 2, 4.5], "labels": ["ann", "bob"]}', b'{"values": [0, 1]}'],
        ),
        Reader("certificate", by_path("proof.json", Certificate.read), _certificates()),
        Reader(
            "solution",
            by_path("s.json", lambda path: structure_of(read_document(path), graph, path)),
            [b'{"coalitions": [["ann"], ["bob"]], "value": 0, "bound": 1.5}'],
        ),
        Reader("config.toml", by_path("c.toml", RunConfig.read), [config, b"lr = 0.1\nseed = 3\n"]),
        Reader(
            "options",
            options,
            [b"lr=0.1\nclients=10\nnoise=1\nclip=2\ndp=records\npoison=noise:1", b"epsilon=1"],
        ),
        Reader("NAME.npz", by_path("mnist.npz", lambda path: read_npz(path, 10)), [_images()]),
        Reader(
            "metrics.jsonl",
            by_path("run/metrics.jsonl", lambda path: RunFolder.open(path.parent).history()),
            [b"".join(json.dumps({**line, "round": t}).encode() + b"\n" for t in (1, 2))],
        ),
        Reader(
            "result.json",
            by_path("run/result.json", lambda path: RunFolder.open(path.parent).result()),
            [json.dumps({**line, "communication": {"up": 1, "down": 2}}).encode()],
        ),
        *(
            Reader(name, by_path(f"report/{name}", _reported), [seed])
            for name, seed in whole.items()
        ),
        Reader("checkpoint", by_path("round-000001.json", _checkpoint), _checkpoints(folder)),
    ]


# -- mutations -------------------------------------------------------------------------------------


def _flip(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 8)):
        data[rng.randrange(len(data))] = rng.randrange(256)


def _cut(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data))
    del data[start : start + rng.choice([1, 2, 8, 64, len(data)])]


def _repeat(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data))
    piece = bytes(data[start : start + rng.randint(1, 64)])
    data[start:start] = piece * rng.choice([1, 2, 50])


def _token(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data) + 1)
    data[start : start + rng.choice([0, 1, 3])] = rng.choice(TOKENS)


def _number(data: bytearray, rng: random.Random) -> None:
    """Replace a digit, and those next to it, by something else."""
    places = [k for k, byte in enumerate(data) if 48 <= byte <= 57]
    if places:
        start = end = rng.choice(places)
        while end < len(data) and 48 <= data[end] <= 57:
            end += 1
        data[start:end] = rng.choice(TOKENS)


def _splice(data: bytearray, rng: random.Random) -> None:
    one, other = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    data[one:one] = data[other:]


MUTATIONS = [_flip, _cut, _repeat, _token, _number, _splice]


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Return a damaged copy."""
    if content[:4] == b"PK\x03\x04" and rng.random() < 0.5:
        return _mutated_archive(content, rng)
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 5])):
        if data:
            rng.choice(MUTATIONS)(data, rng)
    return bytes(data)


def _mutated_archive(content: bytes, rng: random.Random) -> bytes:
    """Return an archive with a damaged array and a correct checksum."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(buffer, "w") as new:
        victim = rng.choice(old.namelist())
        for name in old.namelist():
            array = old.read(name)
            if name == victim:
                if rng.random() < 0.1:
                    continue
                data = bytearray(array)
                rng.choice(MUTATIONS)(data, rng)
                array = bytes(data)
            new.writestr(name, array, rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    return buffer.getvalue()


def cases(reader: Reader, count: int) -> Iterator[bytes]:
    """Yield the inputs of a reader: the same ones every time."""
    for number in range(count):
        rng = random.Random(f"{reader.name} {number}")
        yield mutated(rng.choice(reader.seeds), rng)


# -- the trial -------------------------------------------------------------------------------------


class TooSlow(BaseException):
    """An input took so long that nobody waits for its end."""


def _give_up(*_: object) -> None:
    raise TooSlow


def tried(reader: Reader, inputs: Iterator[bytes] | list[bytes], report: Report) -> None:
    """Read all inputs, and report whatever is not a result or an error of our own."""
    before = signal.signal(signal.SIGALRM, _give_up)
    peak = _peak()
    try:
        for number, content in enumerate(inputs):
            start = time.process_time()
            signal.setitimer(signal.ITIMER_REAL, 12 * SECONDS)
            about = f"input {number} ({len(content)} bytes, {content[:60]!r})"
            try:
                reader.read(content)
                outcome, detail = "read", ""
            except CoalitionError as error:
                sound = len(str(error)) < 1000 and "\n" not in str(error)
                outcome = "refused" if sound else "FAILED"
                detail = "" if sound else f"{about}: not one short sentence: {str(error)[:200]!r}"
            except InputWarning:  # it was read, and something is to be said
                outcome, detail = "read", ""
            except TooSlow:
                outcome, detail = "FAILED", f"{about}: no end"
            except Exception as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                at = f"{os.path.basename(last.filename)}:{last.lineno}"
                detail = f"{about}: {type(error).__name__} at {at}: {str(error)[:100]}"
                outcome = "FAILED"
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            seconds = time.process_time() - start
            if seconds > SECONDS:
                outcome, detail = "FAILED", f"{about}: {seconds:.1f} s of CPU time"
            if _peak() - peak > MEMORY:
                outcome, detail = "FAILED", f"{about}: {(_peak() - peak) >> 20} MiB more memory"
                peak = _peak()
            report.add(reader.name, outcome, detail)
    finally:
        signal.signal(signal.SIGALRM, before)


def _peak() -> int:
    """Return the most memory that this process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
