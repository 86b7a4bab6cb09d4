"""Sentences that name Python's arguments come to the command line in its own words."""

from __future__ import annotations

import pytest

from cli.terminal.flags import in_flags

NAMES = ("time_limit", "n_groups", "max_size", "min_size", "must_link", "cannot_link", "gap",
         "symmetrise", "missing", "formulation", "seed", "output")  # fmt: skip
FLAGS = {name: "--" + name.replace("_", "-") for name in NAMES}


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("max_size is 0; it must be at least 1", "--max-size is 0; it must be at least 1"),
        ("cannot honour n_groups, min_size or max_size (its",
         "cannot honour --n-groups, --min-size or --max-size (its"),
        ("choose symmetrise=mean, min or max", "choose --symmetrise mean, min or max"),
        ("say what it is worth: missing=0", "say what it is worth: --missing 0"),
        ("gap is 2; it must be below 1", "--gap is 2; it must be below 1"),
        ("or cbc with formulation full", "or cbc with --formulation full"),
        ("together (cannot_link), but", "together (--cannot-link), but"),
        ("a gap of 3 is missing", "a gap of 3 is missing"),
        ("/tmp/max_size/n_groups.csv: there is no such file",
         "/tmp/max_size/n_groups.csv: there is no such file"),
        ("there is no player 'max_size'; did", "there is no player 'max_size'; did"),
        ('s.json: "max_size" must be a whole number', 's.json: "max_size" must be a whole number'),
        ("local-seed0 was made with seed 3, not 4", "local-seed0 was made with seed 3, not 4"),
    ],
)  # fmt: skip
def test_arguments_become_flags_and_other_words_stay(said, heard):
    assert in_flags(said, FLAGS) == heard
