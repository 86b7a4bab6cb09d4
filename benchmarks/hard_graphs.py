"""Graphs that took more than a minute: value, bound and CPU-seconds, beside the known optimum.

Run from the repository's root::

    python benchmarks/hard_graphs.py [--limit 60] [--only TEXT …] [--proofs]

The instances are those of ``../shared/instances`` (or ``--instances FOLDER``). The clock of this
process is its CPU time, so a limit is one of CPU-seconds, whatever else runs on the machine;
compilation is not counted. *before* is the bound after 60 CPU-seconds without columns and trial
branches. ``--proofs`` checks the certificate of each, too.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

# This folder comes first on the path, and its files must not hide packages of the same names.
sys.path[:] = [folder for folder in sys.path if Path(folder) != Path(__file__).resolve().parent]

from coalitions import SynergyGraph  # noqa: E402
from coalitions.runtime import ready_seconds  # noqa: E402
from solvers import solve, verify  # noqa: E402

SHARED = Path(__file__).resolve().parents[2] / "shared" / "instances"

BEFORE = {
    "CPn35-1": 8605,
    "CPn45-1": 13422,
    "CPn50-3": 15672,
    "CPn50-4": 16595,
    "neg-c-60": 492,
    "neg-c-10": 752,
    "neg-c-00": 881,
}
"""Bounds after 60 CPU-seconds: of these families, all with up to 50 players that were open then."""


def line(folder, row, limit, proofs):
    with np.load(folder / row["file"]) as file:
        graph = SynergyGraph(file["S"].astype(float))
    began, waited = time.process_time(), ready_seconds()
    found = solve(graph, time_limit=limit)
    spent = time.process_time() - began - (ready_seconds() - waited)
    best = row["best_known"]
    assert best is None or not row["proven"] or found.value <= best <= found.bound
    checked = ""
    if proofs:
        proven = solve(graph, time_limit=limit, certificate=True)
        began = time.process_time()
        shown = verify(graph, proven.structure, proven.certificate)
        checking = time.process_time() - began
        assert best is None or not row["proven"] or shown.bound >= best
        checked = f" | {shown.bound:9.0f} {checking:7.2f}"
    known = "–" if best is None else f"{best}{'' if row['proven'] else '?'}"
    print(
        f"{row['name']:10} {row['n']:4} {known:>7} {BEFORE[row['name']]:8} |"
        f" {found.value:8.0f} {found.bound:8.0f} {100 * found.gap:5.1f} %"
        f" {'proven' if found.optimal else 'open':6} {spent:7.2f}{checked}",
        flush=True,
    )
    return found.optimal


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--only", nargs="*", default=[""], help="parts of names")
    parser.add_argument("--proofs", action="store_true")
    parser.add_argument("--instances", type=Path, default=SHARED)
    asked = parser.parse_args()
    time.monotonic = time.process_time
    rows = {row["name"]: row for row in json.loads((asked.instances / "index.json").read_text())}
    names = [name for name in BEFORE if any(text in name for text in asked.only)]
    print(
        f"{'instance':10} {'n':>4} {'optimum':>7} {'before':>8} |"
        f" {'value':>8} {'bound':>8} {'gap':>7} {'':6} {'CPU s':>7}"
        f"{' | certified   CPU s' if asked.proofs else ''}"
    )
    proven = [line(asked.instances, rows[name], asked.limit, asked.proofs) for name in names]
    print(f"{sum(proven)} of {len(proven)} proven in {asked.limit:g} CPU-seconds")


if __name__ == "__main__":
    main()
