"""With nothing compiled: what is said, what is counted, and that `warm-up` leaves nothing to do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from coalitions import SynergyGraph


def coalitions(arguments: list[str], cache) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from cli.app import main; main()", *arguments],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )


def write_graph(path, n: int) -> str:
    upper = np.triu(np.random.default_rng(n).normal(0.1, 1.0, (n, n)), 1)
    SynergyGraph(upper + upper.T).write(path)
    return str(path)


@pytest.mark.slow
def test_who_waits_for_the_compiler_is_told_and_the_answer_is_the_same(tmp_path):
    graph = write_graph(tmp_path / "graph.npy", 26)
    arguments = ["solve", graph, "--json", "--time-limit", "30"]
    first, second = (coalitions(arguments, tmp_path / "cache") for _ in range(2))
    assert first.stderr.count("Compiling (first use") == 1
    assert second.stderr == ""
    answers = [json.loads(ended.stdout) for ended in (first, second)]
    for answer in answers:
        assert answer.pop("seconds") < 31.0  # what the compiler took is not counted
    assert answers[0] == answers[1]


@pytest.mark.slow
def test_after_a_warm_up_nothing_is_compiled_any_more(tmp_path):
    last = [
        coalitions(["warm-up"], tmp_path / "cache").stderr.strip().splitlines()[-1]
        for _ in range(2)
    ]
    compiling = [float(re.search(r"ready: ([\d.]+) s", line).group(1)) for line in last]
    assert compiling[0] > 10.0
    assert compiling[1] < compiling[0] / 4  # numba itself is imported
    graph = write_graph(tmp_path / "graph.npy", 30)
    proof = str(tmp_path / "proof.json")
    ended = coalitions(["solve", graph, "--certificate", proof], tmp_path / "cache")
    assert ended.stderr == ""
