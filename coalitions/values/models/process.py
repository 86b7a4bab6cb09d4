"""A Gaussian process for the Shapley value: which players matter, and how rough each size is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coalitions.game import FloatMatrix, FloatVector, IntVector
from coalitions.values.designs import FOLDS, Pool, Surrogate

# `python -m benchmarks.values FOLDER` shows what a change of these does to errors on thirty games.

MAX_PAIRS = 5000
"""Most pairs that are fitted: memory grows with their square, time with their cube."""

TUNING_PAIRS = 300
TUNING_SHARE = 10
"""Pairs that the parameters are fitted to: so many, or a tenth of all that are fitted if more."""

MAX_STEPS = 120
"""Most steps of the search for the parameters."""

ROUGH = (9.0, 6.0, 2.0)
"""Where a second search begins, as logarithms of a, c and the noise: a simple game with much noise.
Few pairs often have this explanation and another one."""

SAME = 0.01
"""Two processes that fit a game with no larger difference, relative to its largest value, count as
one."""

UNSEEN_PAIRS = 100
"""Up to so many pairs, the parameters behind a held-out guess have not seen the pair either. Such
pools have hardly more pairs than there are parameters; these then fit some pairs by luck."""

JITTER = 1e-9
"""Smallest noise, relative to the prior variance: keeps the Cholesky factor well defined."""

BLOCK_ROWS = 128
"""Rows of a covariance matrix that are computed at a time: more of them leave the cache."""

SMALLEST_LOG, LARGEST_LOG = -14.0, 12.0
"""Where the logarithms of the parameters end."""


class Posterior(NamedTuple):
    """A process after it has seen a pool.

    Attributes
    ----------
    covariance
        Its parameters.
    signs, weights
        The coalitions T it was fitted to, and the factors of k(·, T) in its mean.
    fitted, held_out
        As in `Surrogate`.
    """

    covariance: Covariance
    signs: FloatMatrix
    weights: FloatVector
    fitted: FloatVector
    held_out: FloatVector


def process(pool: Pool) -> tuple[Surrogate, ...]:
    """Return the posterior mean of the process for the odd part, see `posterior`.

    The Shapley values of the mean are known in closed form. For few pairs there is a second one,
    whose search began elsewhere, if it came to another end.
    """
    fits = [posterior(pool)]
    if len(pool.odd) <= TUNING_PAIRS:
        other = posterior(pool, rough=True)
        difference = float(np.abs(other.fitted - fits[0].fitted).max())
        if difference > SAME * float(np.abs(pool.odd).max()):
            fits.append(other)
    return tuple(
        Surrogate(
            one.covariance.shapley(one.signs).T @ one.weights,
            one.fitted,
            one.held_out,
            guarded=True,
        )
        for one in fits
    )


def posterior(pool: Pool, most: int | None = None, *, rough: bool = False) -> Posterior:
    r"""Return the posterior mean of a Gaussian process for the odd part u of a game.

    The covariance of u(S) and u(T) is odd in both. With signs z and t it has four parts:

    - a linear game, :math:`a\,z \cdot t / n`;
    - interactions, :math:`\sinh(\tfrac12 \sum_i \theta_i z_i t_i) / \sinh(\tfrac12 \sum_i
      \theta_i)`, the odd part of :math:`\prod_i e^{\theta_i z_i t_i / 2}`: players with a small
      θ take part in few of them;
    - a function of the size, :math:`c\,[e^{-|s-t|/\ell} - e^{-|n-s-t|/\ell}]`;
    - a linear game that changes with the size, :math:`b\,(z \cdot t / n)\,
      e^{-|\min(s,n-s)-\min(t,n-t)|/\ell}`,

    and noise of a variance that each size has for itself: games of data are rough where coalitions
    are small, votes where they are of medium size. All parameters maximise the marginal likelihood
    times a weak prior. What it says of a pair that it has not seen follows from the inverse of the
    covariance matrix, without a second fit; but small pools look for the parameters again without
    the fold of the pair. At most `most` pairs are fitted. The search for the parameters begins at
    the prior's mean, or at a `rough` game.
    """
    scale = float(np.abs(pool.odd).max())
    fitted_to = chosen(pool, MAX_PAIRS if most is None else most)
    signs, odd = pool.signs[fitted_to], pool.odd[fitted_to] / scale
    tuning = chosen(pool, max(TUNING_PAIRS, len(odd) // TUNING_SHARE))
    logs = _fitted(pool.signs[tuning], pool.odd[tuning] / scale, rough=rough)
    covariance = Covariance.of(logs, pool.n_players)
    weights, at_fitted, left_out = _conditioned(covariance, signs, odd)
    fitted = np.empty(len(pool.odd))
    fitted[fitted_to] = at_fitted
    others = np.delete(np.arange(len(fitted)), fitted_to)
    for rows in _blocks(len(others)):
        fitted[others[rows]] = covariance.between(pool.signs[others[rows]], signs) @ weights
    held_out = fitted.copy()
    held_out[fitted_to] = left_out
    if len(odd) == len(pool.odd) <= UNSEEN_PAIRS:
        for fold in range(FOLDS):
            fold_pairs = (pool.folds == fold) & (pool.missing[pool.sizes] > 0.0)
            if not fold_pairs.any():
                continue
            rest = ~fold_pairs
            unseen = Covariance.of(_fitted(signs[rest], odd[rest], start=logs), pool.n_players)
            held_out[fold_pairs] = _conditioned(unseen, signs, odd)[2][fold_pairs]
    return Posterior(covariance, signs, weights * scale, fitted * scale, held_out * scale)


def _conditioned(
    covariance: Covariance, signs: FloatMatrix, odd: FloatVector
) -> tuple[FloatVector, FloatVector, FloatVector]:
    """Return the weights of the mean, and the mean at all pairs, with and without the pair."""
    from scipy.linalg import cho_solve, cholesky, lapack

    noise = covariance.noise[size_of(signs)] + JITTER * covariance.variance
    matrix = np.empty((len(odd), len(odd)))  # its upper triangle is all that is read
    for rows in _blocks(len(odd)):
        matrix[rows, rows.start :] = covariance.between(signs[rows], signs[rows.start :])
    matrix.flat[:: len(odd) + 1] += noise
    # The transpose is the same matrix, in the order that can be factored in place.
    factor = cholesky(matrix.T, lower=True, overwrite_a=True, check_finite=False)
    weights = cho_solve((factor, True), odd, check_finite=False)
    # Leave-one-out means from (K⁻¹)_jj, the squared norm of column j of the inverse factor:
    # u_j − (K⁻¹u)_j / (K⁻¹)_jj.
    inverse, _ = lapack.dtrtri(factor, lower=1, overwrite_c=1)
    precision = np.einsum("ij,ij->j", inverse, inverse)
    return weights, odd - noise * weights, odd - weights / precision


def chosen(pool: Pool, most: int) -> IntVector:
    """Return (N, ∅) and a random part of the other pairs."""
    order = np.random.default_rng(pool.seed).permutation(len(pool.odd) - 1)[:most] + 1
    return np.concatenate([[0], np.sort(order)])


def _blocks(m: int) -> Iterator[slice]:
    return (slice(start, min(m, start + BLOCK_ROWS)) for start in range(0, m, BLOCK_ROWS))


def size_of(signs: FloatMatrix) -> IntVector:
    """Return the size of the smaller coalition of each pair."""
    members = np.asarray((signs > 0).sum(axis=1), np.int64)
    smaller: IntVector = np.minimum(members, signs.shape[1] - members)
    return smaller


@dataclass(frozen=True, eq=False)
class Covariance:
    """The parameters of the process; interactions have variance 1.

    Attributes
    ----------
    linear, by_size, bend, length
        a, c, b and ℓ.
    theta
        How much each player takes part in interactions [n].
    noise
        The variance of the noise of pairs of each size 0 … n/2; none at (N, ∅).
    """

    linear: float
    by_size: float
    bend: float
    length: float
    theta: FloatVector
    noise: FloatVector

    @classmethod
    def of(cls, logs: FloatVector, n: int) -> Covariance:
        """Return the parameters for a point of the search space, see `_prior`."""
        logs = np.clip(logs, SMALLEST_LOG, LARGEST_LOG)
        linear, by_size, bend, length, theta, noise = np.exp(logs[:6])
        # layout of `logs`: see `_prior`; the noise of a size is that of size 1 plus all steps to it
        steps = np.cumsum(logs[6 : 6 + _n_steps(n)])
        levels = np.clip(np.log(noise) + np.concatenate([[0.0], steps]), -30.0, LARGEST_LOG)
        by_player = theta * np.exp(logs[6 + _n_steps(n) :])
        return cls(
            linear, by_size, bend, length, by_player, np.concatenate([[0.0], np.exp(levels)])
        )

    @property
    def variance(self) -> float:
        """Prior variance of u(N) or more."""
        return 1.0 + self.linear + self.by_size + self.bend

    def between(self, signs: FloatMatrix, others: FloatMatrix) -> FloatMatrix:
        """Return the covariances of the coalitions of two lists."""
        n = signs.shape[1]
        s = np.rint((signs.sum(axis=1) + n) / 2).astype(np.intp)
        t = np.rint((others.sum(axis=1) + n) / 2).astype(np.intp)
        near, mirrored, level = gaps(n)
        # What depends on the sizes alone is a table [s, t], looked up for each pair.
        of_size = self.by_size * (np.exp(-near / self.length) - np.exp(-mirrored / self.length))
        slope = (self.linear + self.bend * np.exp(-level / self.length)) / n
        total: FloatMatrix = signs @ others.T
        total *= slope[:, t][s]
        total += of_size[:, t][s]
        # sinh(x)/sinh(Σθ/2), both divided by e^{Σθ/2} so that neither overflows
        top = self.theta.sum()
        exponent = (signs * (self.theta / 2)) @ others.T
        total += np.exp(exponent - top / 2) / -np.expm1(-top)
        total -= np.exp(-exponent - top / 2) / -np.expm1(-top)
        return total

    def shapley(self, signs: FloatMatrix) -> FloatMatrix:
        r"""Return the Shapley values of the games :math:`S \mapsto k(S, T)`, T in the rows.

        Let all join with probability (1+x)/2. The interactions give player i

        .. math:: \frac{2 \sinh(\theta_i t_i / 2)}{\sinh(\frac12 \sum_j \theta_j)}
                  \frac12 \int_{-1}^1 \prod_{j \ne i} \big[ \cosh \tfrac{\theta_j}2
                  + t_j x \sinh \tfrac{\theta_j}2 \big]\,dx,

        a polynomial that Gauss' rule with ⌈n/2⌉ nodes integrates exactly. In the linear parts, the
        mean of :math:`z \cdot t` over coalitions of size s without i is
        :math:`-t_i(1 + x_s) + (2|T| - n) x_s`, :math:`x_s = 2s/(n-1) - 1`. A function of the size
        gives everybody the same.
        """
        n = signs.shape[1]
        nodes, areas = np.polynomial.legendre.leggauss((n + 1) // 2)
        # All is divided by e^{½Σθ}, so that nothing overflows: cosh ± x sinh turns into a mean.
        # `inside` and `outside` are the logarithms of the factors of j for t_j = +1 and −1.
        decay, up = np.exp(-self.theta), (1 + nodes)[:, None] / 2
        inside = np.log(up + (1 - up) * decay)
        outside = np.log(up * decay + (1 - up))
        product = ((inside + outside).sum(axis=1) + signs @ (inside - outside).T) / 2
        product = np.exp(product) * (areas / 2)
        # The product over j ≠ i is the whole product over the factor of i.
        others = np.where(signs > 0, product @ np.exp(-inside), product @ np.exp(-outside))
        total: FloatMatrix = others * signs * (2 * (1 - decay) / -np.expm1(-self.theta.sum()))
        # The linear games: `tilt` is x_s, `bend[s, t]` the factor b e^{−…/ℓ}. A player's marginal
        # contribution has a part that goes with t_i (`member`) and one that is equal for all.
        t = np.arange(n + 1)
        near, mirrored, level = gaps(n)
        bend = self.bend * np.exp(-level / self.length)
        tilt = (2 * t[:n] / (n - 1) - 1)[:, None]
        member = ((1 - tilt) * bend[1:] + (1 + tilt) * bend[:-1]).sum(axis=0) / n**2
        everyone = (tilt * (2 * t - n) * (bend[1:] - bend[:-1])).sum(axis=0) / n**2
        # A function of the size: everybody gets (f(n) − f(0)) / n, and f is odd.
        ends = np.exp(-near[n] / self.length) - np.exp(-mirrored[n] / self.length)
        everyone += 2 * self.by_size * ends / n
        size = np.rint((signs.sum(axis=1) + n) / 2).astype(np.intp)
        total += signs * (member[size] + 2 * self.linear / n)[:, None]
        total += everyone[size][:, None]
        return total


def gaps(n: int) -> tuple[FloatMatrix, FloatMatrix, FloatMatrix]:
    """Return |s−t|, |n−s−t| and |min(s, n−s) − min(t, n−t)| for all sizes s and t."""
    s = np.arange(n + 1.0)
    small = np.minimum(s, n - s)
    return (
        np.abs(s[:, None] - s),
        np.abs(n - s[:, None] - s),
        np.abs(small[:, None] - small),
    )


def _n_steps(n: int) -> int:
    """Return how many steps the noise takes from size 1 to size n/2."""
    return max(0, n // 2 - 1)


def _prior(n: int) -> tuple[FloatVector, FloatVector]:
    """Return mean and deviation of the normal prior on the search space.

    It holds the logarithms of a, c, b, ℓ, the usual θ and the noise at size 1; then the steps of
    the logarithm of the noise from size to size, and each player's θ over the usual one.
    """
    steps = _n_steps(n)
    mean = [0.0, 1.0, -1.0, np.log(n / 3), 1.0 + np.log(2 / n), -5.0]
    deviation = [3.0, 3.0, 3.0, 1.0, 1.5, 4.0]
    step = 4.0 / np.sqrt(max(1, steps))
    return (
        np.concatenate([mean, np.zeros(steps + n)]),
        np.concatenate([deviation, np.full(steps, step), np.ones(n)]),
    )


def _fitted(
    signs: FloatMatrix, odd: FloatVector, *, rough: bool = False, start: FloatVector | None = None
) -> FloatVector:
    """Return the point of the search space with the largest likelihood times prior nearby."""
    from scipy.optimize import minimize

    mean, deviation = _prior(signs.shape[1])
    if start is None:
        start = mean.copy()
        if rough:
            start[[0, 1, 5]] = ROUGH
    likelihood = _Likelihood(signs, odd)

    def loss(logs: FloatVector) -> tuple[float, FloatVector]:
        off = (logs - mean) / deviation
        value, slope = likelihood(logs)
        return value + 0.5 * float(off @ off), slope + off / deviation

    options = {"maxiter": MAX_STEPS, "maxfun": MAX_STEPS * 4 // 3}
    with np.errstate(all="ignore"):  # steps that overflow are answered by a large loss
        answer = minimize(  # type: ignore[call-overload]  # SciPy's stubs want fixed shapes
            loss, start, jac=True, method="L-BFGS-B", options=options
        )
    logs: FloatVector = answer.x
    return logs


class _Likelihood:
    """The negative logarithm of the marginal likelihood, up to a constant, and its gradient.

    The overall scale of the covariance is the best one, in closed form.
    """

    def __init__(self, signs: FloatMatrix, odd: FloatVector) -> None:
        n = signs.shape[1]
        members = np.asarray((signs > 0).sum(axis=1), np.intp)
        self.signs, self.odd, self.sizes = signs, odd, size_of(signs)
        self.straight = signs @ signs.T / n
        # What depends on sizes alone is computed once for all pairs of sizes.
        self.pair = members[:, None] * (n + 1) + members
        self.near, self.mirrored, self.level = gaps(n)

    def __call__(self, logs: FloatVector) -> tuple[float, FloatVector]:
        """Return value and gradient; a large value where the covariance cannot be factored."""
        from scipy.linalg import LinAlgError, cho_solve, cholesky, lapack

        # 1. The covariance matrix K, as in `Covariance.between`.
        m, n = self.signs.shape
        k = Covariance.of(logs, n)
        top = k.theta.sum()
        exponent = (self.signs * (k.theta / 2)) @ self.signs.T
        size = -np.expm1(-top)
        up, down = np.exp(exponent - top / 2) / size, np.exp(-exponent - top / 2) / size
        near, mirrored = np.exp(-self.near / k.length), np.exp(-self.mirrored / k.length)
        level = np.exp(-self.level / k.length)
        of_size = (near - mirrored).take(self.pair)
        bend = self.straight * level.take(self.pair)
        matrix = k.linear * self.straight + k.by_size * of_size + k.bend * bend
        matrix += up - down
        noise = k.noise[self.sizes]
        matrix.flat[:: m + 1] += noise + JITTER * k.variance
        # 2. The loss ½ m log(uᵀ K⁻¹ u / m) + ½ log det K, with the best overall scale put in.
        try:
            factor = cholesky(matrix.T, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return 1e10, np.zeros(len(logs))
        white = cho_solve((factor, True), self.odd, check_finite=False)
        scale = max(float(self.odd @ white) / m, 1e-300)
        value = 0.5 * m * np.log(scale) + np.log(factor.diagonal()).sum()
        if not np.isfinite(value):
            return 1e10, np.zeros(len(logs))
        # 3. How the loss changes with each entry of the matrix. It is multiplied by symmetric ones
        # only, so one triangle of the inverse, with half its diagonal, stands for half of it.
        inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
        slope = inverse.T
        slope.flat[:: m + 1] *= 0.5
        slope -= np.outer(0.5 * white, white / scale)
        # 4. The gradient by the logarithm of each parameter. d/dℓ of e^{−g/ℓ} is g/ℓ² e^{−g/ℓ}.
        further = (self.near * near - self.mirrored * mirrored) * (k.by_size / k.length)
        longer = further.take(self.pair)
        longer += self.level.take(self.pair) * bend * (k.bend / k.length)
        sums = slope * (up + down)
        difference = float(np.vdot(slope, up - down))
        # d/dθ_i: the exponents move by ½(z_i t_i ∓ 1), and the divisor 1 − e^{−Σθ} by e^{−Σθ}.
        theta = np.einsum("ai,ai->i", self.signs, sums @ self.signs) / 2
        theta -= difference * (0.5 + np.exp(-top) / size)
        theta *= k.theta
        # A step of the noise counts for its size and all larger ones.
        by_size = np.bincount(self.sizes, slope.diagonal() * noise, minlength=len(k.noise))[1:]
        later = np.cumsum(by_size[::-1])[::-1]
        gradient = [
            k.linear * float(np.vdot(slope, self.straight)),
            k.by_size * float(np.vdot(slope, of_size)),
            k.bend * float(np.vdot(slope, bend)),
            float(np.vdot(slope, longer)),
            theta.sum(),
            later[0],
        ]
        return float(value), np.concatenate([gradient, later[1:], theta])
