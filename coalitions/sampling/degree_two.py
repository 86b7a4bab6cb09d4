"""A model of degree two: a value for every player and for every pair."""

from __future__ import annotations

FITTED_PLAYERS = 48
"""Up to this many players a model of degree two is fitted: 1177 coefficients."""


def n_coefficients(n_players: int) -> int:
    """Return the number of coefficients of a model of degree two."""
    return 1 + n_players * (n_players + 1) // 2


def is_fitted(n_players: int, budget: int) -> bool:
    """Tell whether there are two evaluations for each coefficient, and not too many of these."""
    return n_players <= FITTED_PLAYERS and budget >= 2 * (n_players + n_coefficients(n_players))
