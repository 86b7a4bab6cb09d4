"""The first minute after an installation: few players need no compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from coalitions import SynergyGraph

LOADED = """
import sys
from cli.app import main
try:
    main()
finally:
    assert "numba" not in sys.modules, "numba was imported"
"""


def run(arguments: list[str], cache: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({} if cache is None else {"NUMBA_CACHE_DIR": cache})}
    return subprocess.run(
        [sys.executable, "-c", LOADED, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def write_graph(path, n: int) -> str:
    upper = np.triu(np.random.default_rng(n).normal(size=(n, n)), 1)
    SynergyGraph(upper + upper.T).write(path)
    return str(path)


@pytest.mark.parametrize("n", [12, 20])
@pytest.mark.parametrize("flags", [[], ["--time-limit", "60"], ["--certificate", "proof.json"]])
def test_few_players_are_solved_and_proven_without_importing_numba(tmp_path, n, flags):
    graph = write_graph(tmp_path / "graph.npy", n)
    flags = [str(tmp_path / flag) if flag.endswith(".json") else flag for flag in flags]
    ended = run(["solve", graph, "--json", *flags])
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["optimal"]
    assert ended.stderr == ""  # and nothing is said about compiling


def test_a_first_answer_is_that_of_every_later_one(tmp_path):
    graph = write_graph(tmp_path / "graph.npy", 14)
    answers = []
    for cache in (str(tmp_path / "empty"), None):
        proof = tmp_path / "proof.json"
        ended = run(["solve", graph, "--json", "--certificate", str(proof)], cache)
        assert ended.returncode == 0, ended.stderr
        answer = json.loads(ended.stdout)
        del answer["seconds"]
        answers.append((answer, proof.read_text()))
    assert answers[0] == answers[1]
