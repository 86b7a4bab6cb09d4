"""The same bits for any number of BLAS threads, and for any size of batches of our own games."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from coalitions import SynergyGraph, UnanimityGame, VotingGame
from coalitions.runtime import _blas, one_blas_thread

PROGRAM = """
import hashlib
import numpy as np
from coalitions import *
from tests.coalitions.table_games import pairs_of

def curved(n):
    one, two = np.random.default_rng(0).normal(size=(2, n))
    def value(rows):  # no linear algebra, which would have threads of its own
        return np.sqrt(np.abs(np.where(rows, one, 0).sum(1))) + np.where(rows, two, 0).max(1)
    return FunctionGame(value, n)

def show(name, *arrays):
    print(name, hashlib.sha256(b"".join(np.asarray(a).tobytes() for a in arrays)).hexdigest())

for name in ESTIMATORS:
    if name != "exact":
        for n, budget in ((30, 4000), (100, 2000)):
            if name in ("gaussian-process", "portfolio"):
                budget //= 4  # a system of equations as large as the budget has threads enough
            if ESTIMATORS[name]().minimum_budget(n) <= budget:
                found = shapley(curved(n), name, budget)
                show(f"{name} {n}", found.values, found.stderr)
table = TableGame.of(curved(15))
show("exact", shapley(table).values)
show("beta", beta_shapley(table, 2, 1).values)
for method in ("msr", "regression", "star"):
    found = banzhaf(curved(100), method=method, budget=4000)
    show(f"banzhaf {method}", found.values, found.stderr)
for index, methods in (("shapley", ("stratified", "chains")), ("banzhaf", ("regression", "msr"))):
    show(f"pairs {index} exact", pairs_of(table, index).values)
    for method in methods:
        found = pairs_of(curved(24), index, method=method, budget=2500)
        show(f"pairs {index} {method}", found.values, found.stderr)
drawn = interactions(curved(30), "SII", coalitions=[[0, 1], [2, 3, 4]], budget=20000)
show("interaction", drawn.values, drawn.stderr)
links = [(i, (i + step) % 18) for step in (1, 5) for i in range(18)]
show("myerson", myerson(curved(18), links))
show("owen value", owen(curved(15), CoalitionStructure([range(5), *zip(range(5, 15))])))
show("nucleolus", nucleolus(TableGame.of(curved(10)), domain="preimputations").payoff)
rng = np.random.default_rng(1)
rows = rng.random((3000, 300)) < 0.5
weights = np.triu(rng.normal(size=(300, 300)), 1)
show("subgraph", SynergyGraph(weights + weights.T).game()(rows))
show("unanimity", UnanimityGame.random(300, 400)(rows))
show("voting", VotingGame(rng.random(300), 75)(rows))
"""


def lines(threads: int) -> list[str]:
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | dict.fromkeys(variables, str(threads)),
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.splitlines()


def test_the_number_of_threads_changes_not_a_bit():
    assert lines(1) == lines(2)


@pytest.mark.parametrize("n", [8, 20, 61, 300])
def test_a_coalition_is_worth_the_same_in_any_batch(n, rng):
    rows = rng.random((200, n)) < 0.5
    weights = np.triu(rng.normal(size=(n, n)), 1)
    games = [
        SynergyGraph(weights + weights.T).game(),
        UnanimityGame.random(n, 200),
        VotingGame(rng.random(n), n / 4),
    ]
    for game in games:
        together = game(rows)
        for size in (1, 2, 3, 7, 64):
            parts = [game(rows[start : start + size]) for start in range(0, len(rows), size)]
            np.testing.assert_array_equal(np.concatenate(parts), together)


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in _blas("scipy.linalg" in sys.modules).info()]


def test_nobody_gives_threads_back_that_another_counts_on():
    before = blas_threads()
    seen = []

    def compute() -> None:
        for _ in range(200):
            with one_blas_thread(), one_blas_thread():
                seen.append(max(blas_threads(), default=1))

    workers = [threading.Thread(target=compute) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert set(seen) == {1}
    assert blas_threads() == before


def test_threads_are_given_back_after_an_error():
    before = blas_threads()
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        1 / 0  # noqa: B018
    assert blas_threads() == before
