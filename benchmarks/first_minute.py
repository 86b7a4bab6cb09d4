"""How long the first call takes after an installation, with nothing compiled, and the next ones.

Run from the repository's root::

    python -m benchmarks.first_minute [--only TEXT]

Each case runs twice in a process of its own: with an empty cache for compiled code, and again with
what the first run left there. Then once more in a process that has done it before. Times are wall
seconds and CPU-seconds of the whole process, start included; in the last column those of the call.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

DEMO = Path(__file__).resolve().parents[1] / "examples" / "data" / "three_domains.csv"

VALUES = """
import numpy as np
from coalitions import VotingGame, shapley
class Votes:
    n_players = {n}
    votes = VotingGame(np.arange(1.0, {n} + 1), {n} ** 2 / 4)
    kernel = votes.kernel
    def __call__(self, coalitions):
        return self.votes(coalitions)
run = lambda: shapley(Votes())
"""

COMMAND = """
import contextlib, io, sys
from cli.app import main
def run():
    sys.argv = ["coalitions", *{arguments!r}]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main()
"""

TWICE = """
import time
run()
{again}
"""

AGAIN = """
took = []
for _ in range(5):
    began = time.process_time()
    run()
    took.append(time.process_time() - began)
print(min(took))
"""


def cases(folder: Path) -> dict[str, str]:
    """Return the programs to run, by what they do."""
    for n in (12, 20, 40):
        upper = np.triu(np.random.default_rng(n).normal(size=(n, n)), 1)
        np.save(folder / f"{n}.npy", upper + upper.T)
    solve = {
        "solve, 12 players": [f"{folder}/12.npy"],
        "solve, 15 players (demo)": [str(DEMO)],
        "solve, 20 players": [f"{folder}/20.npy"],
        "solve, 40 players": [f"{folder}/40.npy"],
        "solve --time-limit 5, 20 players": [f"{folder}/20.npy", "--time-limit", "5"],
        "solve --certificate, 15 players (demo)": [str(DEMO), "--certificate", f"{folder}/proof"],
        "solve --certificate, 20 players": [f"{folder}/20.npy", "--certificate", f"{folder}/proof"],
        "solve --max-size 4, 12 players": [f"{folder}/12.npy", "--max-size", "4"],
    }
    programs = {
        name: COMMAND.format(arguments=["solve", *arguments]) for name, arguments in solve.items()
    }
    for n in (10, 20):
        programs[f"Shapley values of compiled code, {n} players"] = VALUES.format(n=n)
    arguments = ["shapley", f"{folder}/12.npy"]
    programs["shapley, a graph of 12 players"] = COMMAND.format(arguments=arguments)
    return programs


def timed(program: str, cache: str) -> tuple[float, float, str]:
    """Run a program; return wall seconds, CPU-seconds and its last word."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode:
        raise SystemExit(ended.stderr)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, ended.stdout.strip()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose names hold this text")
    only = parser.parse_args().only
    print(f"{'':46}{'nothing compiled':>20}{'compiled before':>20}{'once more':>12}")
    print(f"{'':46}{'wall':>10}{'CPU':>10}{'wall':>10}{'CPU':>10}{'CPU':>12}")
    with tempfile.TemporaryDirectory() as folder:
        for name, program in cases(Path(folder)).items():
            if only not in name:
                continue
            with tempfile.TemporaryDirectory() as cache:
                first = timed(program + TWICE.format(again=""), cache)
                second = timed(program + TWICE.format(again=""), cache)
                again = float(timed(program + TWICE.format(again=AGAIN), cache)[2])
            figures = f"{first[0]:9.2f}s{first[1]:9.2f}s{second[0]:9.2f}s{second[1]:9.2f}s"
            print(f"{name:46}{figures}{again * 1e3:10.1f}ms", flush=True)


if __name__ == "__main__":
    main()
