"""What Flower costs: a round on both engines, against the number of clients, and its two starts.

`python -m benchmarks.flower` runs FedAvg on digits with the usual network, two workers. Processor
time is that of all processes that a run started; a crowded machine does not change it much. A round
is the mean of all after the first, a start all before the first. `--starts` compares the two ways
into Flower's simulation, each with three clients and one round: in a process of ours
(`run_simulation`, the engine `flower`), and by `flwr run` (`simulate.sh` of `coalitions deploy`).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from importlib.metadata import entry_points
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK = 0.25
"""Seconds from one look at all processes to the next: who lives less is not seen."""


class Processes:
    """Processor time of this process and of all that it starts, however they detach themselves."""

    def __init__(self) -> None:
        self._mark = f"BENCHMARK_MARK={uuid.uuid4().hex}"
        name, value = self._mark.split("=")
        os.environ[name] = value
        self._began = time.process_time()
        self._seconds: dict[int, float] = {}
        self._earlier = {int(path.name) for path in Path("/proc").glob("[0-9]*")}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def seconds(self) -> float:
        """Return the processor time so far."""
        with self._lock:
            for path in Path("/proc").glob("[0-9]*"):
                process = int(path.name)
                if process in self._earlier:
                    continue
                try:
                    fields = (path / "stat").read_text().rsplit(")", 1)[1].split()
                    if process in self._seconds or self._ours(path, int(fields[1])):
                        self._seconds[process] = (int(fields[11]) + int(fields[12])) / _TICKS
                except OSError:
                    continue
            return time.process_time() - self._began + sum(self._seconds.values())

    def end(self) -> None:
        """Look no more."""
        self._ended.set()

    def _ours(self, path: Path, parent: int) -> bool:
        # A process that was only forked has the environment that its parent began with.
        if parent == os.getpid() or parent in self._seconds:
            return True
        return self._mark.encode() in (path / "environ").read_bytes().split(b"\0")

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK):
            self.seconds()


def measured(engine: str, clients: int, rounds: int) -> dict[str, float]:
    """Return processor and wall seconds of a run's start and of a round."""
    from learners.runs.run import run

    processes = Processes()
    began = time.perf_counter()
    marks: list[tuple[float, float]] = []

    def note(round):
        marks.append((processes.seconds(), time.perf_counter() - began))

    settings = {"clients": clients, "rounds": rounds, "train_size": 20, "workers": 2}
    run(settings | {"engine": engine, "partition": "iid"}, on_round=note)
    processes.end()
    # The mean, since the processor time of others is counted in hundredths of a second.
    processor, wall = ((marks[-1][which] - marks[0][which]) / (rounds - 1) for which in (0, 1))
    return {
        "round": processor, "round, wall": wall,
        "start": marks[0][0] - processor, "start, wall": marks[0][1] - wall,
    }  # fmt: skip


def rounds_table(clients: list[int], rounds: int) -> None:
    """Print what a round costs on both engines."""
    print("| clients | a round, `local` | a round, `flower` | overhead | for each client |"
          " start, `flower` |\n|---|---|---|---|---|---|")  # fmt: skip
    for n in clients:
        ours, theirs = measured("local", n, rounds), measured("flower", n, rounds)
        over = theirs["round"] - ours["round"]
        cells = [
            f"{each['round']:.2f} ({each['round, wall']:.2f}) s" for each in (ours, theirs)
        ] + [f"{over:.2f} s", f"{over / n:.3f} s", f"{theirs['start']:.0f}"
             f" ({theirs['start, wall']:.0f}) s"]  # fmt: skip
        print(f"| {n} | {' | '.join(cells)} |", flush=True)


def starts_table() -> None:
    """Print what one round costs in all, by the two ways into Flower's simulation."""
    print("| three clients, one round | all processes | wall |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name, command in (
            ("in a process of ours: `run_simulation`", _engine_command()),
            ("`flwr run`: `simulate.sh`", _flwr_run_command(folder)),
        ):
            processes, began = Processes(), time.perf_counter()
            path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
            environment = os.environ | {"PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
            subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
            wall = time.perf_counter() - began
            print(f"| {name} | {processes.seconds():.0f} s | {wall:.0f} s |", flush=True)
            processes.end()


def _engine_command() -> list[str]:
    settings = "{'engine': 'flower', 'algorithm': 'fedavg', 'clients': 3, 'rounds': 1,"
    settings += " 'train_size': 20, 'workers': 2}"
    return [sys.executable, "-c", f"from learners.runs.run import run; run({settings})"]


def _flwr_run_command(folder: Path) -> list[str]:
    import numpy as np

    from learners.flower.project import write_project

    write_project(folder / "app", algorithm="fedavg", clients=3, rounds=1)
    rng = np.random.default_rng(0)
    for number in range(3):
        place = folder / "app" / "data" / str(number)
        place.mkdir(parents=True)
        for part in ("train", "test"):
            np.savez(place / part, x=rng.normal(size=(20, 64)), y=rng.integers(0, 10, 20))
    (folder / "bin").mkdir()
    for point in entry_points(group="console_scripts"):
        if point.value.startswith("flwr."):  # by this Python, wherever its programs are
            module, function = point.value.split(":")
            program = folder / "bin" / point.name
            program.write_text(f"#!{sys.executable}\nfrom {module} import {function}\n{function}()")
            program.chmod(0o755)
    return [str(folder / "app" / "simulate.sh")]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--clients", default="3,10,50")
    arguments.add_argument("--rounds", type=int, default=20)
    arguments.add_argument("--starts", action="store_true", help="the two ways into a simulation")
    given = arguments.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; seconds of all"
          " processors (wall)\n")  # fmt: skip
    if given.starts:
        starts_table()
    else:
        rounds_table([int(each) for each in given.clients.split(",")], given.rounds)


if __name__ == "__main__":
    main()
