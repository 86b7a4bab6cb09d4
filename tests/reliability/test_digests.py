"""The program that compares two checkouts is deterministic, and sees a difference."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
QUICK = (
    "^(solve/(brute-force|greedy)/ties|demands/verify/|files/(json|edges)|partitions|values/vot)"
)


def digests(only, *options, seed="0"):
    return subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "digests.py", "--only", only, *options],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
    )


def test_two_processes_print_the_same_and_no_case_fails_by_mistake():
    one, other = (digests(QUICK, seed=seed) for seed in "01")
    assert one.returncode == 0, one.stderr
    assert one.stdout == other.stdout
    lines = dict(line.split("  ") for line in one.stdout.splitlines())
    assert len(lines) > 20
    failed = {digest for digest in lines.values() if digest.startswith("!")}
    assert failed == {"!RefusedError"}  # of structures that the verifier refuses


def test_a_checkout_that_answers_otherwise_is_found_out(tmp_path):
    for package in ("coalitions", "solvers"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)
    with (tmp_path / "coalitions" / "__init__.py").open("a") as file:
        file.write("\n\ndef bell_number(n_players):\n    return 0\n")
    compared = digests("^(partitions|files/edges)", "--against", str(tmp_path))
    assert compared.returncode == 1, compared.stderr
    assert compared.stdout.startswith("partitions\n")
    assert "\n1 of " in compared.stdout
