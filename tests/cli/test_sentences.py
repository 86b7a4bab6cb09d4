"""The sentences that users rely on, in one place: what they search for, what scripts read.

Everywhere else a test asks for what a sentence is about: the name of a flag, a column or a file, a
value, the exit code. So a sentence can be said better without touching many tests.
"""

from __future__ import annotations

import pytest

from tests.cli.typed import typed

SENTENCES = {
    # A result.
    "solve g.csv": (0, "optimal: no structure is worth more"),
    "solve g.csv --max-size 2": (0, "optimal among structures with at most 2 players each"),
    "shapley g.csv": (0, "the game has a closed form"),
    # A name that is not there.
    "solve nowhere.csv": (2, "nowhere.csv: there is no such file"),
    "solve g.csv --solver gredy": (
        2,
        "no solver named 'gredy'; did you mean 'greedy'? there are",
    ),
    "value g.csv --concept banzaf": (2, "no concept named 'banzaf'; did you mean 'banzhaf'? there"),
    "solve g.csv --must-link a,z": (2, "there is no player 'z'"),
    "run --algorithm fedprocks": (2, "no algorithm named 'fedprocks'; did you mean 'fedprox'?"),
    "list solver": (2, "no kind named 'solver'; did you mean 'solvers'? there are: "),
    # What to do about a file.
    "solve one-way.csv": (2, "--symmetrize"),
    "solve blank.csv": (2, "--missing 0"),
    "solve -": (2, "standard input needs a format; give one of"),
    "solve g.csv --output teams.doc": (2, "end the name in .json, .csv, .xlsx, .md or .html"),
    "resume nothing": (2, "nothing"),
    # What contradicts itself, or is out of range.
    "solve g.csv --quiet --verbose": (2, "--quiet and --verbose contradict each other: give one"),
    "run --lr 0": (2, "lr must be a positive number, not 0"),
    "solve g.csv --max-size 0": (2, "--max-size is 0; it must be a whole number from 1 on"),
    "solve g.csv --min-size 3 --max-size 2": (1, "--min-size 3 is larger than --max-size 2"),
    "value g.csv --concept core --budget 9": (2, "core does not take --budget"),
    "what-if g.csv": (2, "there is no wish: give --together a,b or --apart a,b"),
}
"""A command line, its exit code, and what it says: on stdout if it worked, else on stderr."""


@pytest.mark.parametrize("line", SENTENCES)
def test_a_sentence_is_said(line, tmp_path):
    (tmp_path / "g.csv").write_text(",a,b,c\na,0,2,-1\nb,2,0,0.5\nc,-1,0.5,0\n")
    (tmp_path / "one-way.csv").write_text(",a,b\na,0,2\nb,1,0\n")
    (tmp_path / "blank.csv").write_text(",a,b,c\na,0,2,\nb,2,0,0.5\nc,,0.5,0\n")
    code, sentence = SENTENCES[line]
    done = typed(*line.split(), cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert sentence in (done.stderr if code else done.stdout)
    if code:
        assert done.stdout == ""
        assert len(done.stderr.splitlines()) == 1
