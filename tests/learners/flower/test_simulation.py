"""`--engine flower`: Flower's simulation, with the numbers, folder and Ctrl-C of `local`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from torch import nn

import coalitions.extras
from coalitions.errors import CoalitionError, InvalidInputError, MissingDependencyError
from learners.algorithm import ALGORITHMS
from learners.flower.grid_engine import GridEngine, Identity, Patience
from learners.flower.simulation import _SIMULATED, Simulation
from learners.runs.prepare import prepare
from learners.runs.run import begin_or_resume, run
from learners.settings.config import RunConfig

SMALL = {"rounds": 2, "local_epochs": 1, "train_size": 20, "clients": 3, "workers": 2}
ROOT = Path(__file__).resolve().parents[3]


def lines(history):
    return [
        {key: value for key, value in line.items() if not key.endswith("seconds")}
        for line in history
    ]


@pytest.mark.parametrize("missing", ["flwr", "ray"])
def test_without_the_extra_one_sentence_has_the_command(missing, monkeypatch):
    find = coalitions.extras.needed

    def needed(module):
        find("no_such_module" if module == missing else module)

    monkeypatch.setattr("learners.flower.simulation.needed", needed)
    with pytest.raises(MissingDependencyError, match="which is not installed: pip install"):
        run(SMALL | {"engine": "flower"})


def test_what_settings_cannot_hold_is_refused():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    rows = {"who": ["a"] * 8 + ["b"] * 8, "x": range(16), "y": [0, 1] * 8}
    columns = {"target": "y", "client_column": "who"}
    for given in (
        {"model": lambda: nn.Linear(2, 2)},
        {"data": pandas.DataFrame(rows), **columns},
    ):
        with pytest.raises(InvalidInputError, match="flower makes clients from the settings"):
            run(SMALL | {"engine": "flower"}, **given)


def test_a_simulation_without_clients_ends_with_what_it_said_last(monkeypatch):
    program = (
        "import sys; from multiprocessing.connection import Connection\n"
        "pipe = Connection(int(sys.argv[1])); print('there is no room', flush=True)\n"
        "while pipe.recv(): pipe.send(set())"
    )
    monkeypatch.setattr("learners.flower.simulation._PROGRAM", program)
    monkeypatch.setattr("learners.flower.simulation._SIMULATED", Patience(start=1.0, look=0.05))
    words = "had no client ready within 1 s: there is no room"
    with pytest.raises(CoalitionError, match=words):
        run(SMALL | {"engine": "flower"})


@pytest.mark.parametrize(("words", "starts"), [("timed out during startup", 3), ("broken", 1)])
def test_a_simulation_is_started_again_only_if_the_machine_was_too_busy(
    words, starts, tmp_path, monkeypatch
):
    program = f"open({str(tmp_path / 'starts')!r}, 'a').write('x'); print({words!r}, flush=True)"
    monkeypatch.setattr("learners.flower.simulation._PROGRAM", program)
    with pytest.raises(CoalitionError, match=f"ended before the run did: {words}"):
        run(SMALL | {"engine": "flower"})
    assert (tmp_path / "starts").read_text() == "x" * starts


@pytest.mark.slow
def test_when_ray_fails_the_simulation_ends_at_once_with_the_first_cause(monkeypatch):
    program = (
        "import threading, time, flwr.simulation, learners.flower.simulation as simulation\n"
        "def fails(**settings):\n"
        "    threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "    raise RuntimeError('Ending simulation.') from OSError('no space\\nleft')\n"
        "flwr.simulation.run_simulation = fails\n"
        "simulation.serve()"
    )
    monkeypatch.setattr("learners.flower.simulation._PROGRAM", program)
    with pytest.raises(CoalitionError, match="ended before the run did: OSError: no space left"):
        run(SMALL | {"engine": "flower"})


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_method_has_the_numbers_the_models_and_the_ledger_of_local(capsys):
    """One simulation serves all runs: each question says which run it belongs to."""
    simulation = Simulation(prepare(RunConfig.of(SMALL)).site, None)
    done = []
    try:
        for name in ALGORITHMS.names():
            config = SMALL | {"algorithm": name, "participation": 0.67}
            ours = run(config | {"workers": 1})
            engines = []

            def make(site, folder, engines=engines):
                engine = GridEngine(simulation, site, Identity.of(None), _SIMULATED)
                engine.close = lambda: None
                engines.append(engine)
                return engine

            theirs = begin_or_resume(
                prepare(RunConfig.of(config | {"engine": "flower"})), None, make
            )
            assert engines
            assert lines(ours.history) == lines(theirs.history), name
            assert ours.communication == theirs.communication, name
            for client in range(3):
                pairs = zip(
                    ours.model(client).parameters(), theirs.model(client).parameters(), strict=True
                )
                assert all(one.equal(other) for one, other in pairs), name
            done.append(name)
    finally:
        simulation.close()
        with capsys.disabled():
            print(f"{len(done)} methods are the same, bit for bit: {' '.join(done)}")  # noqa: T201
    assert done == ALGORITHMS.names()


def own_processes(folder):
    """Return the commands that name a run's folder, or one where Ray's processes have files."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    marks = (str(folder), "/coalitions-")
    return [line for line in listed.stdout.splitlines() if any(mark in line for mark in marks)]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_ctrl_c_ends_all_of_it_and_resume_ends_with_the_numbers_of_local(tmp_path):
    command = [sys.executable, "-c", "from cli.app import main; main()"]
    settings = ["--algorithm", "pfedsv", "--clients", "3", "--rounds", "4", "--train-size", "20"]
    settings += ["--local-epochs", "1", "--workers", "2"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [*command, "run", *settings, "--engine", "flower", "--out", "stopped"],
        cwd=tmp_path, env=environment, stderr=subprocess.PIPE,
    )  # fmt: skip
    metrics = tmp_path / "stopped" / "metrics.jsonl"
    until = time.monotonic() + 300
    while not (metrics.is_file() and metrics.read_text().count("\n") >= 1):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode == 130
    until = time.monotonic() + 120
    while left := own_processes(tmp_path):
        assert time.monotonic() < until, left
        time.sleep(0.5)
    quiet = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    resumed = subprocess.run([*command, "resume", "stopped", "--json"], check=False, **quiet)
    assert resumed.returncode == 0, resumed.stderr
    whole = subprocess.run(
        [*command, "run", *settings, "--out", "whole", "--json"], check=True, **quiet
    )
    ours, theirs = json.loads(whole.stdout), json.loads(resumed.stdout)
    assert ours["per_client_test_accuracy"] == theirs["per_client_test_accuracy"]
    assert ours["communication"] == theirs["communication"]
    histories = [
        [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("whole", "stopped")
    ]
    assert lines(histories[0]) == lines(histories[1])
    for model in sorted((tmp_path / "whole" / "models").iterdir()):
        assert model.read_bytes() == (tmp_path / "stopped" / "models" / model.name).read_bytes()
    report = subprocess.run([*command, "report", "stopped"], check=False, **quiet)
    assert report.returncode == 0, report.stderr
