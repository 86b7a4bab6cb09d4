"""Tables for a paper: pdflatex knows every letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from coalitions.formatting import latex_text
from learners.reproduction.claims import Measured
from learners.reproduction.experiment import EXPERIMENTS
from learners.reproduction.pages import latex

KEPT = Path(__file__).parents[3] / "docs" / "reproduction"


@pytest.mark.parametrize("name", EXPERIMENTS.names())
def test_names_of_rows_and_columns_are_letters_that_pdflatex_knows(name):
    experiment, names = EXPERIMENTS[name](), set()
    for scale in ("smoke", "small", "paper"):
        names |= {part for key in experiment.runs(scale) for part in key}
    if experiment.printed is not None:
        names |= {*experiment.printed.columns, *experiment.printed.rows}
    figures = {column: [-0.5, 1.5] for column in names}
    found = Measured(tuple(names), dict.fromkeys(names, figures))
    text = latex(found, experiment.printed)
    assert text.isascii(), {letter for letter in text if not letter.isascii()}


def test_symbols_are_mathematics_and_what_would_be_a_command_is_a_letter():
    told = "‖θ_i − θ_j‖² ≥ λ·ε, Λ/l: 50 % of {a|b} ± ∞ – …"
    assert latex_text(told) == (
        r"$\Vert$$\theta$\_i $-$ $\theta$\_j$\Vert$$^{2}$ $\geq$ $\lambda$$\cdot$$\varepsilon$,"
        r" $\Lambda$/l: 50 \% of \{a$|$b\} $\pm$ $\infty$ -- \ldots{}"
    )
    assert latex_text("pFedSV (D+C), a-1") == "pFedSV (D+C), a-1"
