"""Shapley values of a Gaussian process that is fitted to pairs of complementary coalitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError
from coalitions.game import FloatMatrix, FloatVector, IntVector
from coalitions.runtime import one_blas_thread
from coalitions.values.budget import Evaluator
from coalitions.values.designs import most_pairs, random_pairs
from coalitions.values.estimator import ESTIMATORS, Estimator, Sampled

JITTER = 1e-9
"""Smallest noise, relative to the prior variance: keeps the Cholesky factor well defined."""

BLOCK_ROWS = 512
"""Rows of the covariance matrix that are computed at a time."""

MAX_STEPS = 200
"""Most evaluations of the likelihood while the parameters are fitted."""


@ESTIMATORS.register("gaussian-process")
@dataclass(frozen=True)
class GaussianProcess(Estimator):
    r"""The Shapley values of the posterior mean of a Gaussian process.

    Only the odd part of a game, :math:`u(S) = \tfrac12 [v(S) - v(N \setminus S)]`, matters for
    its Shapley value, and each pair of complements tells one value of it. It is modelled by a
    Gaussian process, whose covariance of u(S) and u(T) is odd in both and has four parts:

    - a linear game, :math:`a\,\frac{n-2h}{n}` with the distance :math:`h = |S \triangle T|`;
    - interactions, :math:`\frac{\rho^h - \rho^{n-h}}{1 - \rho^n}`, in which the components of odd
      degree d have a variance that falls like :math:`((1-\rho)/(1+\rho))^d`;
    - a function of the size alone, :math:`c\,[e^{-|s-t|/\ell} - e^{-|n-s-t|/\ell}]` with s = |S|
      and t = |T|, which says nothing about single players and takes much of the variance of
      voting or saturating games away;
    - a linear game that changes with the size,
      :math:`b\,\frac{n-2h}{n} e^{-|\min(s,n-s)-\min(t,n-t)|/\ell}`,

    plus noise, for what is rougher than all this. The parameters maximise the marginal likelihood
    times a weak prior; the overall scale has a closed form. Because the Shapley value is linear,
    the posterior of the game turns into the posterior of the values in closed form: the value of
    player i in the game :math:`S \mapsto k(S, T)` is :math:`\pm p_t + q_t`, plus for members of T,
    see `_shares`.

    Attributes
    ----------
    max_pairs
        Most pairs that are evaluated: memory grows with their square, time with their cube.
    tuning_pairs
        Most pairs that the parameters are fitted to.
    """

    max_pairs: int = 5000
    tuning_pairs: int = 300

    unbiased: ClassVar[bool] = False
    axioms: ClassVar[frozenset[str]] = frozenset({"efficiency"})
    stderr_means: ClassVar[str] = (
        "posterior standard deviation under the fitted process: right on average over games like"
        " it, not a guarantee for each, and too small where a game is rough like noise"
    )

    def __post_init__(self) -> None:
        if self.max_pairs < 1 or self.tuning_pairs < 1:
            raise InvalidInputError("max_pairs and tuning_pairs must be at least 1")

    def minimum_budget(self, n_players: int) -> int:
        """Return 4: both ends and one pair."""
        del n_players
        return 4

    def estimate(self, game: Evaluator, *, seed: int) -> Sampled:
        """Return mean and standard deviation of the posterior."""
        import scipy.linalg  # noqa: F401 (before its threads are limited)

        n = game.n_players
        empty, grand = game.ends
        rows = random_pairs(n, min((game.budget - 2) // 2, self.max_pairs), seed)
        values = game(np.concatenate([rows, ~rows])).reshape(2, -1)
        odd = np.concatenate([[grand - empty], values[0] - values[1]]) / 2
        scale = float(np.abs(odd).max())
        if scale == 0.0:
            return Sampled(np.zeros(n), np.zeros(n))
        signs = np.where(np.concatenate([np.ones((1, n), np.bool_), rows]), 1.0, -1.0)
        data = _Data(signs, odd / scale)
        complete = len(rows) == most_pairs(n)  # then every value is known, and there is no noise
        chosen = np.random.default_rng(seed).permutation(len(rows))[: self.tuning_pairs] + 1
        chosen = np.concatenate([[0], np.sort(chosen)])
        with one_blas_thread():
            parameters = _fitted(_Data(signs[chosen], data.odd[chosen]), complete)
            mean, deviation = _posterior(parameters, data)
        # The fit may miss v(N) − v(∅) by a hair (the jitter); efficiency settles it.
        mean += (2 * data.odd[0] - mean.sum()) / n
        return Sampled(mean * scale, deviation * scale, len(odd))


class _Parameters(NamedTuple):
    """The parameters of the covariance at scale 1; interactions have variance 1."""

    linear: float
    rho: float
    noise: float
    by_size: float
    bend: float
    length: float

    @classmethod
    def of_logs(cls, logs: Sequence[float] | FloatVector, complete: bool) -> _Parameters:
        """Return the parameters for a point of the search space."""
        a, rho, noise, c, b, length = np.exp(np.clip(logs, -30.0, 30.0))
        return cls(a, rho / (1 + rho), 0.0 if complete else noise, c, b, length)

    @staticmethod
    def prior(n_players: int) -> tuple[FloatVector, FloatVector]:
        """Return mean and deviation of the weak normal prior on the search space."""
        mean = np.array([0.0, 1.0, -5.0, 1.0, -1.0, np.log(n_players / 3)])
        return mean, np.array([3.0, 2.0, 4.0, 3.0, 3.0, 1.0])

    @property
    def variance(self) -> float:
        """Prior variance of u(N), the largest there is."""
        return 1.0 + self.linear + self.by_size + self.bend


class _Data(NamedTuple):
    """Coalitions as signs ±1 [m, n], and their odd values."""

    signs: FloatMatrix
    odd: FloatVector

    @property
    def sizes(self) -> IntVector:
        """The number of members of each coalition."""
        return np.asarray((self.signs > 0).sum(axis=1), np.int64)

    def blocks(self) -> Iterator[_Block]:
        """Yield what the covariances depend on, some rows at a time: memory holds one matrix."""
        m, n = self.signs.shape
        s, place = np.unique(self.sizes, return_inverse=True)
        for start in range(0, m, BLOCK_ROWS):
            stop = min(m, start + BLOCK_ROWS)
            distance = np.rint((n - self.signs[start:stop] @ self.signs.T) / 2).astype(np.intp)
            yield _Block(start, stop, distance, s, place[start:stop, None] * len(s) + place)


class _Block(NamedTuple):
    """Rows of the covariance matrix: distances [rows, m], the sizes, and which pair of them."""

    start: int
    stop: int
    distance: NDArray[np.intp]
    sizes: IntVector
    pair: NDArray[np.intp]


def _by_size(n: int, s: IntVector, t: IntVector, length: float) -> FloatMatrix:
    """Return the covariance of the part that depends on the size alone, for all sizes s and t."""
    gap = np.abs(s[:, None] - t)
    mirrored = np.abs(n - s[:, None] - t)
    result: FloatMatrix = np.exp(-gap / length) - np.exp(-mirrored / length)
    return result


def _bend(n: int, s: IntVector, t: IntVector, length: float) -> FloatMatrix:
    """Return how the linear game of size s goes with that of size t, for all of them."""
    gap = np.abs(np.minimum(s, n - s)[:, None] - np.minimum(t, n - t))
    result: FloatMatrix = np.exp(-gap / length)
    return result


def _factor(parameters: _Parameters, data: _Data, blocks: Iterable[_Block]) -> FloatMatrix:
    """Return the Cholesky factor of the covariance of the data."""
    from scipy.linalg import cholesky

    m, n = data.signs.shape
    h = np.arange(n + 1)
    a, rho, noise, c, b, length = parameters
    straight = (n - 2 * h) / n
    by_distance = a * straight + (rho**h - rho ** (n - h)) / (1 - rho**n)
    matrix = np.empty((m, m))
    for start, stop, distance, s, pair in blocks:
        rows = by_distance.take(distance)
        rows += (c * _by_size(n, s, s, length)).take(pair)
        rows += straight.take(distance) * (b * _bend(n, s, s, length)).take(pair)
        matrix[start:stop] = rows
    # The first observation is what the values must sum to, so it has no noise.
    matrix.flat[:: m + 1] += noise + JITTER * parameters.variance
    matrix[0, 0] -= noise
    # The transpose is the same matrix, in the order that can be factored in place.
    factor: FloatMatrix = cholesky(matrix.T, lower=True, overwrite_a=True, check_finite=False)
    return factor


def _fitted(data: _Data, complete: bool) -> _Parameters:
    """Return the parameters that maximise marginal likelihood times prior."""
    from scipy.linalg import LinAlgError, solve_triangular
    from scipy.optimize import minimize

    mean, deviation = _Parameters.prior(data.signs.shape[1])
    m = len(data.odd)
    blocks = list(data.blocks())

    def loss(logs: FloatVector) -> float:
        prior = 0.5 * float((((logs - mean) / deviation) ** 2).sum())
        try:
            factor = _factor(_Parameters.of_logs(logs, complete), data, blocks)
        except LinAlgError:
            return 1e10 + prior
        white = solve_triangular(factor, data.odd, lower=True, check_finite=False)
        fit = 0.5 * m * np.log(max(float(white @ white) / m, 1e-300))
        return float(fit + np.log(factor.diagonal()).sum() + prior)

    simplex = np.vstack([mean, mean + 1.5 * np.eye(len(mean))])
    # Steps that overflow are answered by a large loss, not by a warning.
    with np.errstate(all="ignore"):
        answer = minimize(
            loss,
            mean,
            method="Nelder-Mead",
            options={
                "maxfev": MAX_STEPS,
                "xatol": 0.1,
                "fatol": 0.05,
                "initial_simplex": simplex,
                "adaptive": True,
            },
        )
    return _Parameters.of_logs(answer.x, complete)


def _posterior(parameters: _Parameters, data: _Data) -> tuple[FloatVector, FloatVector]:
    """Return mean and standard deviation of the players' Shapley values."""
    from scipy.linalg import solve_triangular

    factor = _factor(parameters, data, data.blocks())
    member, everyone, prior_variance = _shares(parameters, data.signs.shape[1])
    sizes = data.sizes
    functional = data.signs * member[sizes][:, None] + everyone[sizes][:, None]
    white = solve_triangular(factor, data.odd, lower=True, check_finite=False)
    seen = solve_triangular(factor, functional, lower=True, check_finite=False)
    scale = white @ white / len(white)
    variance = scale * np.maximum(0.0, prior_variance - (seen**2).sum(axis=0))
    return white @ seen, np.sqrt(variance)


def _shares(parameters: _Parameters, n: int) -> tuple[FloatVector, FloatVector, float]:
    r"""Return p and q [n+1] with Shapley values ±p_t + q_t of the game k(·, T), and their variance.

    For the interactions, let all but i join with probability x. The distance of the coalition to
    T∖i is then a sum of independent bits, so with :math:`g_t = E[k(h) - k(h+1)]`, |T∖i| = t,

    .. math:: g_t = \frac{2(1-\rho)}{1-\rho^n} \int_0^1
              (\rho + (1-\rho)x)^t\,(1 - (1-\rho)x)^{n-1-t}\,dx,

    a polynomial that Gauss' rule with ⌈n/2⌉ nodes integrates exactly. A member of T gets
    :math:`g_{t-1}`, another player :math:`-g_t`. In the linear parts, the mean of
    :math:`z_S \cdot z_T` over coalitions of size s without i is
    :math:`-z_i(1 + x_s) + (2t - n) x_s`, :math:`x_s = 2s/(n-1) - 1`. A function of the size
    gives everybody the same.

    The variance of the value applies the functional a second time: the mean over the sizes t of
    T∌i of the value in k(·, T∪i) less that in k(·, T).
    """
    a, rho, _, c, b, length = parameters
    t = np.arange(n + 1)
    nodes, areas = np.polynomial.legendre.leggauss((n + 1) // 2)
    x = ((nodes + 1) / 2)[:, None]
    inside = (rho + (1 - rho) * x) ** t[:n] * (1 - (1 - rho) * x) ** (n - 1 - t[:n])
    gain = np.zeros(n + 2)
    gain[1:-1] = (1 - rho) / (1 - rho**n) * (areas @ inside)
    member = (gain[:-1] + gain[1:]) / 2 + 2 * a / n
    everyone = (gain[:-1] - gain[1:]) / 2
    bend = b * _bend(n, t, t, length)
    tilt = (2 * t[:n] / (n - 1) - 1)[:, None]
    member += ((1 - tilt) * bend[1:] + (1 + tilt) * bend[:-1]).sum(axis=0) / n**2
    everyone += (tilt * (2 * t - n) * (bend[1:] - bend[:-1])).sum(axis=0) / n**2
    everyone += 2 * c * _by_size(n, t[n:], t, length)[0] / n
    variance = (member[1:] + everyone[1:] + member[:-1] - everyone[:-1]).sum() / n
    return member, everyone, float(variance)
