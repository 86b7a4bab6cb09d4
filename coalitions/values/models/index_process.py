"""Gaussian processes for interaction indices: for the odd and the even part of a game."""

from __future__ import annotations

from math import comb

import numpy as np

from coalitions.game import FloatMatrix, FloatVector
from coalitions.values.interaction_indices import Parts, binomial_mixture, gathered
from coalitions.values.models.index_models import (
    IndexModel,
    IndexQuestion,
    indices_of_sizes,
    mean_of_signs,
)
from coalitions.values.models.process import (
    JITTER,
    TUNING_PAIRS,
    Covariance,
    chosen,
    gaps,
    posterior,
    size_of,
)

MAX_PAIRS = 2500
"""Most pairs that are fitted."""

MOST_PRODUCTS = 3e9
"""Most multiplications to read the indices off a process; above, it is left out."""

STEPS = 90
"""Most steps of the search for the parameters of the even part."""


def process_parts(asked: IndexQuestion) -> tuple[list[IndexModel], list[IndexModel]]:
    """Return the posterior means of two processes: that of the Shapley value, and an even one.

    The even one has the same players in its interactions and the same roughness of sizes, and
    besides a square of a linear game and a function of the size.
    """
    pool, index = asked.pool, asked.index
    n = pool.n_players
    if not index.has_measure or not pool.odd.any():
        return [], []
    pairs = min(MAX_PAIRS, len(pool.sizes))
    if 2 * pairs * comb(n, index.order) * (n / 2 + index.order) > MOST_PRODUCTS:
        return [], []
    odd = posterior(pool, MAX_PAIRS)
    slopes = odd.covariance
    near, mirrored, level = gaps(n)
    tilt = (slopes.linear + slopes.bend * np.exp(-level / slopes.length)) / n
    bump = slopes.by_size * (np.exp(-near / slopes.length) - np.exp(-mirrored / slopes.length))
    plain = _product_part(asked, slopes.theta, odd.signs, odd.weights, -1.0)
    _add_tilted(asked, plain, odd.signs, odd.weights, tilt)
    _add_by_size(asked, plain, odd.signs, odd.weights, bump)
    odd_model = IndexModel(gathered(index, plain, n), odd.fitted, odd.held_out)
    return _even(asked, slopes), [odd_model]


def _even(asked: IndexQuestion, odd: Covariance) -> list[IndexModel]:
    r"""Return the posterior mean of a process for the even part of the game.

    With signs z and t of n players its covariance has three parts,

    .. math:: \frac{\cosh(\tfrac12 \sum_i \theta_i z_i t_i)}{\cosh(\tfrac12 \sum_i \theta_i)}
        + q\,(z \cdot t / n)^2 + c\,[e^{-|s-t|/\ell} + e^{-|n-s-t|/\ell}],

    where θ and ℓ are those of the odd part, θ times one common factor. The parameters are the
    logarithms of q, of c, of this factor, and of one factor of the noise.
    """
    from scipy.linalg import cho_factor, cho_solve, lapack
    from scipy.optimize import minimize

    pool, n = asked.pool, asked.pool.n_players
    # 1. The values: centred, and scaled to at most 1 for the search.
    target = asked.target(0)
    mean = float(np.average(target, weights=asked.pair_weights))
    scale = float(np.abs(target - mean).max())
    if scale == 0.0:
        return []
    fitted_to = chosen(pool, MAX_PAIRS)
    tuning = chosen(pool, TUNING_PAIRS)
    rough = np.concatenate([[0.0], np.maximum(odd.noise[1:], 1e-10)])

    def covariance(rows: FloatMatrix, others: FloatMatrix, logs: FloatVector) -> FloatMatrix:
        square, by_size, more, _ = np.exp(logs)
        theta = np.minimum(odd.theta * more, 200.0)
        # cosh over cosh, both divided by e^{Σθ/2} so that neither overflows
        exponent = (rows * (theta / 2)) @ others.T
        top = theta.sum()
        total: FloatMatrix = np.exp(exponent - top / 2) + np.exp(-exponent - top / 2)
        total /= 1 + np.exp(-top)
        total += square * (rows @ others.T / n) ** 2
        s, t = (np.rint((r.sum(axis=1) + n) / 2).astype(np.intp) for r in (rows, others))
        total += by_size * _even_bump(odd, n)[s[:, None], t]
        return total

    def noisy(rows: FloatMatrix, logs: FloatVector) -> FloatMatrix:
        matrix = covariance(rows, rows, logs)
        noise = np.exp(logs[3]) * rough[size_of(rows)]
        matrix.flat[:: len(rows) + 1] += noise + JITTER * matrix.diagonal()
        return matrix

    # 2. The parameters: marginal likelihood with the best overall scale, times a weak prior.
    prior = np.array([0.0, 0.0, 0.0, 0.0])

    def loss(logs: FloatVector) -> float:
        logs = np.clip(logs, -12.0, 8.0)
        values = (target[tuning] - mean) / scale
        try:
            factor = cho_factor(noisy(pool.signs[tuning], logs), lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return 1e10
        fit = float(values @ cho_solve(factor, values, check_finite=False))
        value = 0.5 * len(values) * np.log(max(fit, 1e-300) / len(values))
        value += np.log(factor[0].diagonal()).sum() + ((logs - prior) ** 2 / 18).sum()
        return float(value) if np.isfinite(value) else 1e10

    options = {"maxfev": STEPS, "initial_simplex": prior + 1.5 * np.eye(5, 4)}
    answer = minimize(  # type: ignore[call-overload]  # SciPy's stubs want fixed shapes
        loss, prior, method="Nelder-Mead", options=options
    )
    logs = np.clip(answer.x, -12.0, 8.0)

    # 3. The posterior mean, and at each pair the one that has not seen it (`process.posterior`).
    signs = pool.signs[fitted_to]
    values = target[fitted_to] - mean
    matrix = noisy(signs, logs)
    factor, lower = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    weights = cho_solve((factor, lower), values, check_finite=False)
    inverse, _ = lapack.dtrtri(np.tril(factor), lower=1)
    precision = np.einsum("ij,ij->j", inverse, inverse)
    fitted = covariance(pool.signs, signs, logs) @ weights
    held_out = fitted.copy()
    held_out[fitted_to] = values - weights / precision

    # 4. The index of the mean, part by part.
    square, by_size, more, _ = np.exp(logs)
    theta = np.minimum(odd.theta * more, 200.0)
    plain = _product_part(asked, theta, signs, weights, 1.0)
    _add_by_size(asked, plain, signs, weights, by_size * _even_bump(odd, n))
    _add_square(asked, plain, signs, weights * square / n**2)
    if 0 in plain:
        plain[0] += mean
    held_out[0] = fitted[0]
    return [IndexModel(gathered(asked.index, plain, n), fitted + mean, held_out + mean)]


def _even_bump(odd: Covariance, n: int) -> FloatMatrix:
    near, mirrored, _ = gaps(n)
    bump: FloatMatrix = np.exp(-near / odd.length) + np.exp(-mirrored / odd.length)
    return bump


def _product_part(
    asked: IndexQuestion,
    theta: FloatVector,
    signs: FloatMatrix,
    weights: FloatVector,
    parity: float,
) -> Parts:
    r"""Return the integrals of the products' odd (−1) or even part.

    If each player joins with probability p, the mean of :math:`\prod_j e^{\theta_j (z_j t_j -
    1)/2}` is a product of means f_j; in a joint contribution of S the factor of each member is
    :math:`t_i (1 - e^{-\theta_i})` instead.
    """
    n, index = signs.shape[1], asked.index
    decay = np.exp(-theta)
    # The odd or even part is the product at T plus or minus the one at N∖T, over a common norm.
    doubled = np.concatenate([signs, -signs])
    top = float(theta.sum())
    norm = 1 + np.exp(-top) if parity > 0 else -np.expm1(-top)
    each = np.concatenate([weights, parity * weights]) / norm
    step = doubled * (1 - decay)  # what a member of S adds: t_i (1 − e^{−θ_i})
    plain = {size: np.zeros(comb(n, size)) for size in index.sizes()}
    # Sizes that share a point of the measure share its products.
    by_point: dict[float, dict[int, float]] = {}
    for size in index.sizes():
        for point, weight in zip(*index.measure(size, n), strict=True):
            by_point.setdefault(float(point), {})[size] = float(weight)
    for p, shares in by_point.items():
        factors = np.where(doubled > 0, p + (1 - p) * decay, p * decay + (1 - p))
        # Π_{j∉S} f_j Π_{i∈S} step_i = Π_j f_j Π_{i∈S} step_i / f_i
        whole = each * factors.prod(axis=1)
        ratio = step / factors
        for size, share in shares.items():
            plain[size] += share * _contracted(whole, ratio, size)
    return plain


def _contracted(whole: FloatVector, ratio: FloatMatrix, size: int) -> FloatVector:
    """Return Σ_t whole_t Π_{i∈S} ratio_ti for all S of a size, in lexicographic order."""
    n = ratio.shape[1]
    if size == 0:
        return np.array([whole.sum()])
    if size == 1:
        return whole @ ratio
    if size == 2:
        square: FloatMatrix = (ratio.T * whole) @ ratio
        return square[np.triu_indices(n, 1)]
    parts = [_contracted(whole * ratio[:, i], ratio[:, i + 1 :], size - 1) for i in range(n)]
    return np.concatenate(parts)


def _plain_masses(asked: IndexQuestion) -> dict[int, FloatVector]:
    n, index = asked.pool.n_players, asked.index
    return {s: binomial_mixture(index.measure(s, n), n - s) for s in index.sizes()}


def _sums(signs: FloatMatrix, weights: FloatVector, by_size: FloatVector) -> FloatVector:
    """Return each player's Σ_T w_T c_{|T|} t_i."""
    members = np.rint((signs.sum(axis=1) + signs.shape[1]) / 2).astype(np.intp)
    total: FloatVector = (weights * by_size[members]) @ signs
    return total


def _add_by_size(
    asked: IndexQuestion, plain: Parts, signs: FloatMatrix, weights: FloatVector, bump: FloatMatrix
) -> None:
    """Add the part that depends on the sizes alone."""
    n = signs.shape[1]
    members = np.rint((signs.sum(axis=1) + n) / 2).astype(np.intp)
    game = bump[:, members] @ weights
    for size, value in indices_of_sizes(game, _plain_masses(asked)).items():
        plain[size] += value


def _add_tilted(
    asked: IndexQuestion, plain: Parts, signs: FloatMatrix, weights: FloatVector, tilt: FloatMatrix
) -> None:
    r"""Add the linear games :math:`(z \cdot t)\,g(|S|)` that change with the size.

    Over all L of l members of S the sum of the members' signs is :math:`t(S) [2 \binom{s-1}{l-1} -
    \binom sl]`, and the mean of the others' signs is :math:`2r/(n-s) - 1`.
    """
    n = signs.shape[1]
    total = signs.sum(axis=1)
    members = np.rint((total + n) / 2).astype(np.intp)
    for size, mass in _plain_masses(asked).items():
        others = n - size
        r = np.arange(others + 1)
        mean = 2 * r / others - 1 if others else np.zeros(1)
        # By |T|: the factor of t(S), and that of the sum of the other signs, t(N) − t(S).
        own, rest = np.zeros(n + 1), np.zeros(n + 1)
        for inside in range(size + 1):
            sign = (-1.0) ** (size - inside)
            ways = comb(size, inside)
            mine = 2 * comb(size - 1, inside - 1) - ways if inside else -ways
            slope = tilt[r + inside]  # [r, |T|]
            own += sign * (mine * mass) @ slope
            rest += sign * (ways * mass * mean) @ slope
        everyone = float((weights * rest[members]) @ total)
        plain[size] += everyone
        if size:
            each = _sums(signs, weights, own - rest)
            plain[size] += _sum_over_members(each, size)


def _sum_over_members(each: FloatVector, size: int) -> FloatVector:
    from coalitions.values.interaction_indices import coalitions_of_size

    total: FloatVector = each[coalitions_of_size(len(each), size)].sum(axis=1)
    return total


def _add_square(
    asked: IndexQuestion, plain: Parts, signs: FloatMatrix, weights: FloatVector
) -> None:
    r"""Add :math:`(z \cdot t)^2 = n + \sum_{i \ne j} t_i t_j z_i z_j`.

    Joint contributions of three or more players are 0. Those of two are :math:`8 t_i t_j`, as
    :math:`z_i z_j` changes by 4; a single player's are :math:`4 t_i \sum_{j \ne i} t_j z_j`.
    """
    n = signs.shape[1]
    total = signs.sum(axis=1)
    masses = _plain_masses(asked)
    for size in plain:
        if size == 0:
            same = float(mean_of_signs(2, n) @ masses[0])
            plain[0] += float(weights @ (n * masses[0].sum() + (total**2 - n) * same))
        elif size == 1:
            mean = float(mean_of_signs(1, n - 1) @ masses[1])
            plain[1] += 4 * mean * ((weights * total) @ signs - weights.sum())
        elif size == 2:
            pairs = (signs.T * weights) @ signs
            plain[2] += 8 * masses[2].sum() * pairs[np.triu_indices(n, 1)]
