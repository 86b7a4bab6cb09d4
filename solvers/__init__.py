"""Solvers of synergy graphs and of games: the best coalition structure, with a proof."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    from coalitions.importing import lazy_names
except ImportError as error:
    raise ImportError(
        "the package named coalitions that Python finds is not coalition-kit's; uninstall the other"
        " one, and install coalition-kit again"
    ) from error

if TYPE_CHECKING:
    from solvers._solve import available, solve
    from solvers.alternatives.explanation import Explanation, explain
    from solvers.alternatives.fragile_pairs import FragilePair, fragile
    from solvers.alternatives.wish import WhatIf, what_if
    from solvers.games import solve_game
    from solvers.ilp.back_end import IlpSolver, ProgramAnswer
    from solvers.overlap.overlapping import OverlappingSolution, solve_overlapping
    from solvers.proofs.certificate import Certificate
    from solvers.proofs.verification import Verification, verify
    from solvers.solution import Solution
    from solvers.solver import SOLVERS, Answer, Limits, Solver

_HOME = {
    "solvers.proofs.certificate": ("Certificate",),
    "solvers._solve": ("available", "solve"),
    "solvers.games": ("solve_game",),
    "solvers.ilp.back_end": ("IlpSolver", "ProgramAnswer"),
    "solvers.alternatives.explanation": ("Explanation", "explain"),
    "solvers.alternatives.fragile_pairs": ("FragilePair", "fragile"),
    "solvers.alternatives.wish": ("WhatIf", "what_if"),
    "solvers.overlap.overlapping": ("OverlappingSolution", "solve_overlapping"),
    "solvers.solution": ("Solution",),
    "solvers.solver": ("SOLVERS", "Answer", "Limits", "Solver"),
    "solvers.proofs.verification": ("Verification", "verify"),
}

__all__ = [
    "SOLVERS",
    "Answer",
    "Certificate",
    "Explanation",
    "FragilePair",
    "IlpSolver",
    "Limits",
    "OverlappingSolution",
    "ProgramAnswer",
    "Solution",
    "Solver",
    "Verification",
    "WhatIf",
    "available",
    "explain",
    "fragile",
    "solve",
    "solve_game",
    "solve_overlapping",
    "verify",
    "what_if",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (any public name of the package)
    return lazy_names(__name__, _HOME, name)


def __dir__() -> list[str]:
    return sorted(__all__)
