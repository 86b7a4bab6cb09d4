"""Digests of results of all kinds: one line for each case, the same for two checkouts that agree.

Run it against any checkout, or compare two of them (exit code 1 if they differ)::

    PYTHONPATH=CHECKOUT python benchmarks/digests.py [--only PATTERN] [--learners] > digests.txt
    PYTHONPATH=CHECKOUT python benchmarks/digests.py --against OTHER_CHECKOUT

A line is ``name  sha256[:16]`` of everything that came back: structures, the bits of floats,
certificates, what was counted. Seconds, sentences and names of private classes do not count. A case
that raised shows the error's name. ``--full`` prints what was digested, to see where two differ.
Only public names are used, so that modules may move.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve()
# This folder comes first on the path, and its files must not hide packages of the same names.
sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != HERE.parent]
# Sums in several threads may be rounded differently.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np  # noqa: E402

import coalitions as co  # noqa: E402
from solvers import Certificate  # noqa: E402

# Last on the path, for the two files of cases; PYTHONPATH says where everything else comes from.
sys.path.append(str(HERE.parent))
import digested_games  # noqa: E402
import digested_graphs  # noqa: E402

VERDICTS, DEMANDED = ("optimal", "gap", "named"), ("must_link", "cannot_link", "sizes")
"""Properties of a solution that are digested like its fields."""

IGNORED = {"seconds", "compile_seconds", "prove", "graph", "reason", "text", "out", "to_json"}
IGNORED |= {"demands"}
"""Fields that say how long something took, or say in words what others say in numbers. Demands are
digested as `must_link`, `cannot_link` and `sizes`, which every checkout has."""


def plain(thing):
    """Return a result as lists, text and whole numbers; a float as its bits."""
    if thing is None or isinstance(thing, bool | str):
        return thing
    if isinstance(thing, int | np.integer | np.bool_):
        return int(thing)
    if isinstance(thing, float | np.floating):
        return float(thing).hex()
    if isinstance(thing, Fraction):
        return [thing.numerator, thing.denominator]
    if isinstance(thing, np.ndarray):
        return [list(thing.shape), [plain(entry) for entry in thing.ravel().tolist()]]
    if isinstance(thing, bytes):
        return hashlib.sha256(thing).hexdigest()
    if isinstance(thing, Mapping):
        return {str(key): plain(thing[key]) for key in thing if not str(key).endswith("seconds")}
    if isinstance(thing, set | frozenset):
        return sorted(map(repr, thing))
    if isinstance(thing, co.SynergyGraph):
        return plain([thing.n_players, thing.labels, thing.is_sparse, *thing.edges])
    if isinstance(thing, co.CoalitionStructure):
        return plain(thing.coalitions)
    if isinstance(thing, Certificate):
        return plain(thing.to_json())
    if isinstance(thing, co.Interactions):
        return plain([thing.coalitions, thing.values, thing.stderr, thing.evaluations])
    if callable(thing) and hasattr(thing, "n_players"):
        return plain(co.value_table(thing))
    if dataclasses.is_dataclass(thing):
        return plain(_fields(thing))
    if isinstance(thing, Iterable):
        return [plain(entry) for entry in thing]
    raise TypeError(f"{type(thing)} has no digest")


def _fields(thing):
    """Return what a result says: its fields, its verdict, and the demands it was proven under."""
    if callable(getattr(thing, "to_json", None)) and isinstance(thing.to_json(), dict):
        return thing.to_json()
    names = [field.name for field in dataclasses.fields(thing)]
    names += [name for name in (*VERDICTS, *DEMANDED) if hasattr(type(thing), name)]
    return {name: getattr(thing, name) for name in names if not _ignored(name)}


def _ignored(name):
    return name in IGNORED or name.startswith("_")


def printed(name, case, full):
    """Return the line of a case."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            document = json.dumps(plain(case()), sort_keys=True)
    except Exception as error:
        return f"{name}  !{type(error).__name__}{f': {error}' if full else ''}"
    shown = document if full else hashlib.sha256(document.encode()).hexdigest()[:16]
    return f"{name}  {shown}"


def federated():
    """List runs of small federations: the result, the history and the bytes of all models."""
    small = {"clients": 4, "rounds": 2, "train_size": 40, "test_size": 20, "workers": 1}
    options = {
        "pfedsv": {},
        "pfedsv/workers": {"workers": 2},
        "pfedsv/partly": {"clients": 6, "participation": 0.5, "attendance": "dropout:0.2"},
        "cffl": {},
        "fedc2i": {"clients": 5},
        "fedacs": {"clients": 5, "model": "cnn"},
        "fedavg/median": {"aggregation": "median", "partition": "dirichlet:0.5", "momentum": 0.5},
        "fedavg/stacked": {"compute": "stacked", "optimizer": "adam", "lr": 0.01},
        "fedavg/poison": {"poison": ["wrong-labels:1"], "aggregation": "krum", "clients": 6},
        "fedavg/updates": {"noise": 0.5, "clip": 1.0},
        "fedavg/records": {"dp": "records", "noise": 0.8, "clip": 1.0, "local_epochs": 1},
        "ditto": {"new_clients": 1, "patience": 1, "keep": "best"},
        "ifca": {"clients": 6, "schedule": "cosine", "warmup": 1},
    }
    for name, chosen in options.items():
        config = {"algorithm": name.split("/")[0], **small, **chosen}
        yield f"run/{name}", partial(_run, config)
    patients = HERE.parents[1] / "examples" / "data" / "patients.csv"
    table = {"dataset": str(patients), "target": "readmitted", "client_column": "hospital"}
    for method in ("fedavg", "pfedsv"):
        yield f"run/{method}/table", partial(_run, {"algorithm": method, "rounds": 2, **table})


def _run(config):
    from learners import load_model, run

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "run")
        result = run({"workers": 1, **config}, out)
        lines = (out / "metrics.jsonl").read_text().splitlines()
        network = load_model(out, config.get("clients", 1) - 1)
        return [
            json.loads((out / "result.json").read_text(), object_hook=_timeless),
            [json.loads(line, object_hook=_timeless) for line in lines],
            {path.name: path.read_bytes() for path in sorted((out / "models").iterdir())},
            result.mean_test_accuracy,
            [tensor.numpy() for tensor in network.state_dict().values()][-1],
        ]


def _timeless(entries):
    """Return what does not depend on the clock and on where files are."""
    return {
        key: value for key, value in entries.items() if key not in ("seconds", "out", "dataset")
    }


def cases(learners):
    graphs, games = digested_graphs, digested_games
    parts = (graphs.solving, graphs.demanding, graphs.asking, graphs.files)
    parts += (games.valuing, games.models, games.structures)
    if learners:
        parts = (federated,)
    return itertools.chain.from_iterable(part() for part in parts)


def lines_of(checkout, options):
    """Return the lines that this program prints with the packages of another checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        [sys.executable, str(HERE), *options, "--from", str(checkout)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        sys.exit(f"the program ended with exit code {done.returncode} on {checkout}, see above")
    return done.stdout.splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="PATTERN", help="cases whose name has it")
    parser.add_argument("--learners", action="store_true", help="federated runs instead")
    parser.add_argument("--full", action="store_true", help="print what was digested, too")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="print what differs there")
    parser.add_argument("--from", type=Path, dest="origin", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    root = Path(co.__file__).resolve().parents[1]
    if asked.origin and root != asked.origin.resolve():
        sys.exit(f"coalitions comes from {root}, not from {asked.origin}")
    ours = []
    for name, case in cases(asked.learners):
        if re.search(asked.only, name):
            ours.append(printed(name, case, asked.full))
            if asked.against is None:
                print(ours[-1], flush=True)
    if not ours:
        sys.exit(f"no case has a name with {asked.only!r}")
    if asked.against is None:
        return
    options = ["--only", asked.only, *(["--learners"] * asked.learners), *(["--full"] * asked.full)]
    theirs = lines_of(asked.against.resolve(), options)
    here, there = (dict(line.split("  ", 1) for line in lines) for lines in (ours, theirs))
    differ = [name for name in here | there if here.get(name) != there.get(name)]
    for name in differ:
        print(f"{name}\n  {root}: {here.get(name)}\n  {asked.against}: {there.get(name)}")
    print(f"{len(differ)} of {len(here | there)} cases differ")
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
