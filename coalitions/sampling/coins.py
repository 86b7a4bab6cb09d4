"""Coalitions by tossing coins, and what least squares reads off them."""

from __future__ import annotations

import numpy as np

from coalitions.errors import BudgetError
from coalitions.game import BoolMatrix, FloatMatrix, FloatVector
from coalitions.one_thread import one_blas_thread


def fair_coalitions(budget: int, n_players: int, rng: np.random.Generator) -> BoolMatrix:
    """Return coalitions of fair coins, every player in exactly half of them.

    Each column is half ones in random order, independently of the others: a row is a fair toss of
    n coins. An odd budget leaves one evaluation over.
    """
    column = np.repeat([[True], [False]], budget // 2, axis=0)
    return rng.permuted(column.repeat(n_players, axis=1), axis=0)


@one_blas_thread()
def least_squares(design: FloatMatrix, values: FloatVector) -> tuple[FloatVector, FloatVector, int]:
    """Return the coefficients of the best fit, their standard errors and degrees of freedom.

    The errors are White's, with the small-sample factor: what the fit leaves over is not noise
    but the higher orders of the game, and its size may depend on the coalition.
    """
    m, n_coefficients = design.shape
    freedom = m - n_coefficients
    if freedom < 1:
        raise BudgetError(
            f"a fit of {n_coefficients} coefficients needs more than {m} evaluations; allow twice"
            " as many as coefficients"
        )
    lengths, axes = np.linalg.eigh(design.T @ design / m)
    if lengths[0] < 1e-9:
        raise BudgetError(
            f"{m} evaluations do not tell all {n_coefficients} coefficients apart; allow twice as"
            " many as coefficients"
        )
    inverse = (axes / lengths) @ axes.T / m
    coefficients = inverse @ (design.T @ values)
    residual = values - design @ coefficients
    weighted = (design @ inverse) * residual[:, None]
    stderr = np.sqrt((weighted**2).sum(axis=0) * m / freedom)
    return coefficients, stderr, freedom
