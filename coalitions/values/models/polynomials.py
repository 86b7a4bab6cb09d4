"""Models for the Shapley value: additive and symmetric games, sparse polynomials, boosted trees.

A game is a polynomial of signs, +1 for members and −1 for others. The Shapley values of each of
these models are known without a sum over coalitions.
"""

from __future__ import annotations

from math import comb, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coalitions.game import BoolVector, FloatMatrix, FloatVector, IntVector
from coalitions.values.designs import FOLDS, ROUNDING, Pool, Surrogate

# ----------------------------------------------------------------------------------------
# The additive game that fits best

# `python -m benchmarks.values FOLDER` shows what a change of these does to errors on thirty games.

SPARE_PAIRS = 4
"""Pairs over the number of players without which the fit says nothing."""


def additive(pool: Pool) -> tuple[Surrogate, ...]:
    r"""Return the game of values φ, whose odd part is ½ z·φ, with the right sum.

    Pairs are weighed as in the regression whose solution the Shapley value is; what a pair's own
    value adds to the fit there is known, so leaving it out takes no second fit.
    """
    n, s = pool.n_players, pool.sizes[1:]
    if len(s) < n + SPARE_PAIRS:
        return ()
    total = 2 * pool.odd[0]
    signs = pool.signs / 2
    middle = signs.mean(axis=1)
    design = signs - middle[:, None]
    target = pool.odd - middle * total
    halves = np.where(2 * s == n, 0.5, 1.0)
    weights = np.concatenate([[0.0], halves / (s * (n - s)) / pool.taken[s]])
    scaled = design * weights[:, None]
    inverse = np.linalg.pinv(scaled.T @ design, rcond=1e-10, hermitian=True)
    deviation = inverse @ (scaled.T @ target)
    fitted = design @ deviation
    leverage = np.einsum("ij,ij->i", scaled @ inverse, design)
    if leverage.max() > 1 - 1e-6:  # a pair that alone settles a value has no held-out guess
        return ()
    held_out = target - (target - fitted) / (1 - leverage)
    back = middle * total
    return (Surrogate(deviation + total / n, fitted + back, held_out + back),)


# ----------------------------------------------------------------------------------------
# Symmetric games: a value for each number of players


def symmetric(pool: Pool) -> tuple[Surrogate, ...]:
    """Return the game whose odd part is the mean of each size: all players get the same.

    It is what is left to say where a game looks like noise, as a vote does to a small sample.
    """
    n = pool.n_players
    fitted, held_out = means_of_sizes(pool, pool.odd)
    return (Surrogate(np.full(n, 2 * pool.odd[0] / n), fitted, held_out, guarded=True),)


def borders(pool: Pool) -> tuple[Surrogate, ...]:
    r"""Return the additive game of the single players, with a mean of each size besides.

    With all pairs of one player and the others, :math:`\phi_i - \phi_j = u(\{i\}) - u(\{j\})`
    in an additive game. What is left of the odd part is taken for a question of numbers.
    """
    n, alone = pool.n_players, pool.sizes == 1
    if n < 3 or pool.missing[1] > 0.0:
        return ()
    slopes = (pool.signs[alone] > 0).T @ pool.odd[alone]
    slopes += 2 * pool.odd[0] / n - slopes.mean()
    straight = pool.signs @ slopes / 2
    fitted, held_out = means_of_sizes(pool, pool.odd - straight)
    return (Surrogate(slopes, straight + fitted, straight + held_out, guarded=True),)


def means_of_sizes(pool: Pool, odd: FloatVector) -> tuple[FloatVector, FloatVector]:
    """Return the mean of an odd function at the sizes of all pairs, with and without the pair.

    The mean of a size is borrowed from its neighbours, as much as a pair is near: e^{-|s-t|}. That
    of size n/2 is 0, since a coalition and its complement are of the same size there.
    """
    n = pool.n_players
    s = np.arange(n // 2 + 1)
    near = np.exp(-np.abs(s[:, None] - s))
    inner = np.where(2 * s == n, 0.0, 1.0)
    smaller = np.where(2 * pool.members > n, -odd, odd)  # u of the smaller of the two
    sums = np.bincount(pool.sizes, smaller, minlength=len(s))
    weighted, weight = (near @ sums)[pool.sizes], (near @ pool.taken)[pool.sizes]
    sign = np.where(2 * pool.members > n, -1.0, 1.0) * inner[pool.sizes]
    fitted = sign * weighted / weight
    held_out = sign * (weighted - smaller) / np.maximum(1e-9, weight - 1)
    held_out[0] = fitted[0] = odd[0]
    return fitted, held_out


# ----------------------------------------------------------------------------------------
# Sparse polynomials of odd degree, whose terms are those of fitted trees

PAIRS_PER_TERM = 5.0
"""Pairs that are needed for each term."""

MOST_PRODUCTS = 4e9
"""Most multiplications of a fit, which end the number of terms of large pools."""

RIDGE = 1e-10
"""Smallest ridge, relative to the mean of the diagonal: keeps the Cholesky factor well defined."""

CLEAR = 3.0
"""Standard errors by which a term of several players stands out."""

Terms = NDArray[np.int64]
"""The players of each term [k, depth], filled up with n."""


class Polynomial(NamedTuple):
    """Some terms, the polynomial at all pairs of a pool [m], and its Shapley values [n]."""

    terms: Terms
    fitted: FloatVector
    values: FloatVector


def n_terms(pool: Pool, pairs_per_term: float = PAIRS_PER_TERM) -> int:
    """Return how many terms the pool carries."""
    pairs = len(pool.odd)
    return min(int(pairs / pairs_per_term), int(sqrt(MOST_PRODUCTS / pairs)))


def terms_of_trees(
    features: Any,  # noqa: ANN401
    leaves: Any,  # noqa: ANN401
    n: int,
    parity: int,
    least: int,
) -> tuple[Terms, FloatVector]:
    """Return all terms of some trees of odd (1) or even degree (0), and their coefficients."""
    from coalitions.values.models._tree_kernels import leaf_terms

    depth = (features.shape[1] + 1).bit_length() - 2
    words = np.random.default_rng(n).integers(0, 1 << 63, n, dtype=np.uint64)
    keys, sizes, players = leaf_terms(features, leaves, words, n, depth, parity, least)
    distinct, same = np.unique(keys, return_inverse=True)
    leaf = np.empty(len(distinct), np.intp)
    leaf[same] = np.arange(len(keys))  # any leaf of a term has its players
    coefficients: FloatVector = np.bincount(same, sizes, minlength=len(distinct)).astype(float)
    return players[leaf], coefficients


def largest_terms(features: Any, leaves: Any, n: int, count: int) -> Terms:  # noqa: ANN401
    r"""Return all single players, and the largest terms of odd degree of some trees.

    With signs z, a leaf that is reached if k players are in and l others are out is the product of
    all :math:`\tfrac12 (1 \pm z_i)`: each subset T of them has the coefficient
    :math:`\pm 2^{-k-l}` of :math:`\prod_{i \in T} z_i`. Only odd degrees matter for the Shapley
    value [Fumagalli2026]_.
    """
    found, size = terms_of_trees(features, leaves, n, 1, 3)
    weight, count = np.abs(size), min(len(size), max(0, count - n))
    # Only the last one that is wanted, its equals and those above are sorted.
    least = np.partition(weight, -count)[-count] if count else np.inf
    likely = np.flatnonzero(weight >= least)
    order = likely[np.argsort(-weight[likely], kind="stable")[:count]]
    singles = np.full((n, found.shape[1]), n, np.int64)
    singles[:, 0] = np.arange(n)
    terms: Terms = np.concatenate([singles, found[order]])
    return terms


def polynomial_fits(pool: Pool, terms: Terms, seen: BoolVector) -> list[Polynomial]:
    r"""Return two polynomials: one with all terms, and one with those only that stand out.

    The coefficients β fit the pairs that are seen, weighed as in the regression whose solution
    the Shapley value is. :math:`\phi_i = 2 \sum_{T \ni i} \beta_T / |T|`. A term stands out by
    `CLEAR` standard errors; where a game has few terms, the others are noise in all values.
    """
    n = pool.n_players
    design, weights = signs_of_terms(pool, terms), regression_weights(pool, seen)
    gram = with_ridge(products(pool, terms, weights))
    target = design.T @ (weights * pool.odd)
    beta, variances = coefficients(gram, target)
    whole = Polynomial(terms, design @ beta, values_of_terms(terms, beta, n))
    squares = float(weights[1:] @ (pool.odd - whole.fitted)[1:] ** 2)
    noise = squares / max(1, int(seen.sum()) - 1 - len(terms))
    clear = (beta**2 > CLEAR**2 * noise * variances) | (terms[:, 1] == n)
    some = np.zeros(len(terms))  # without a copy of the columns that are clear
    some[clear] = solution(gram[np.ix_(clear, clear)], target[clear])
    values = values_of_terms(terms[clear], some[clear], n)
    return [whole, Polynomial(terms[clear], design @ some, values)]


def signs_of_terms(pool: Pool, terms: Terms) -> FloatMatrix:
    """Return the products of the signs of each term's players at all pairs [m, k]."""
    signs = np.ones((pool.n_players + 1, len(pool.odd)), np.int8)
    signs[:-1] = pool.signs.T
    design = signs[terms[:, 0]]
    for place in range(1, terms.shape[1]):
        design *= signs[terms[:, place]]
    columns: FloatMatrix = design.astype(float).T
    return columns


def products(pool: Pool, terms: Terms, weights: FloatVector) -> FloatMatrix:
    """Return the weighted sums of the products of any two terms [k, k].

    Terms are ±1, and few weights are different: bits are counted, 64 pairs of one weight at a time.
    """
    from coalitions.values.models._tree_kernels import sums_of_products

    seen = np.flatnonzero(weights)
    each, group, count = np.unique(weights[seen], return_inverse=True, return_counts=True)
    n_words = -(-count // 64)
    order = np.argsort(group, kind="stable")
    first = np.cumsum(64 * n_words) - 64 * n_words - (np.cumsum(count) - count)
    negative = np.zeros((pool.n_players + 1, 64 * n_words.sum()), np.bool_)
    negative[:-1, np.arange(len(seen)) + first[group[order]]] = pool.signs[seen[order]].T < 0
    bits = np.packbits(negative, axis=1).view(np.uint64)
    of_terms = np.bitwise_xor.reduce(bits[terms], axis=1)
    gram: FloatMatrix = sums_of_products(
        np.ascontiguousarray(of_terms.T), np.repeat(each, n_words), float(each @ count)
    )
    return gram


def regression_weights(pool: Pool, seen: BoolVector) -> FloatVector:
    """Return the weights of pairs in the regression whose solution the Shapley value is."""
    n, s = pool.n_players, pool.sizes
    halves = np.where(2 * s == n, 0.5, 1.0)
    weights: FloatVector = halves / np.maximum(1, s * (n - s)) / pool.taken[s] * seen
    weights[0] = 10 * weights.sum()  # (N, ∅) has no error: the values' sum
    return weights


def with_ridge(gram: FloatMatrix) -> FloatMatrix:
    """Return a matrix of products with the smallest ridge."""
    ridged = gram.copy()
    ridged.flat[:: len(gram) + 1] += RIDGE * np.trace(gram) / len(gram)
    return ridged


def coefficients(gram: FloatMatrix, target: FloatVector) -> tuple[FloatVector, FloatVector]:
    """Return the solution, and the variances of its entries if pairs had a variance of 1."""
    from scipy.linalg import cho_solve, cholesky, lapack

    factor = cholesky(gram, lower=True)
    beta: FloatVector = cho_solve((factor, True), target)
    inverse, _ = lapack.dtrtri(factor, lower=1, overwrite_c=1)
    return beta, np.einsum("ij,ij->j", inverse, inverse)


def solution(gram: FloatMatrix, target: FloatVector) -> FloatVector:
    """Return the solution alone, in a third of the time."""
    from scipy.linalg import cho_factor, cho_solve

    beta: FloatVector = cho_solve(cho_factor(gram), target)
    return beta


def values_of_terms(terms: Terms, beta: FloatVector, n: int) -> FloatVector:
    """Return the Shapley values of a polynomial: the players of a term share it."""
    values = np.zeros(n + 1)
    np.add.at(values, terms, (2 * beta / (terms < n).sum(axis=1))[:, None])
    return values[:n]


# ----------------------------------------------------------------------------------------
# A search for the few terms of a game that is a sparse polynomial, as that of a forest is

HOPE = 0.1
"""The search begins if a first polynomial leaves no more than this of the game's deviation."""

STEADY = 0.8
"""It goes on while two rounds leave no more than this of what was left before."""

RARE = 1e-2
"""Pairs whose weight is less than this part of the largest take no part in the search."""

MOST_ROUNDS = 10
"""Most rounds of the search."""

NEW_TERMS = 100
"""Terms that a round adds, or an eighth of the pairs if that is less."""

PAIRS_PER_FOUND_TERM = 2
"""Pairs for each term, without which it proves nothing that all pairs fit."""

LARGER = 5
"""Terms of five players that each known one of three may add."""

REFINEMENTS = 4
"""Corrections of the coefficients, which take the ridge back."""

NEARLY = 1e-7
"""All pairs fit up to the ridge: remaining deviation, relative to the largest value."""


def exact_polynomial(pool: Pool, first: Polynomial) -> Surrogate | None:
    """Return the polynomial that fits all pairs, up to rounding, with few terms; None if not found.

    Each round adds the terms that the residual looks like, fits anew, and keeps those that
    stand out. A polynomial with half as many terms as there are pairs fits them all by no accident:
    it would have said the same of a pair that was left out. A search that does not end so is of no
    use, since its terms were chosen by all pairs.
    """
    n, m = pool.n_players, len(pool.odd)
    scale, terms = float(np.abs(pool.odd).max()), first.terms
    count = min(NEW_TERMS, m // 8)
    if n < 5 or n**3 * m > MOST_PRODUCTS or count < LARGER:
        return None
    weights = regression_weights(pool, np.ones(m, np.bool_))
    uniform = _uniform(pool)
    some = uniform > RARE * uniform.max()
    residual = pool.odd - first.fitted
    left = [_deviation(weights, pool.odd)]
    if _deviation(weights, residual) > max(HOPE * left[0], NEARLY * scale):
        return None
    design, gram = signs_of_terms(pool, terms), products(pool, terms, weights)
    for _ in range(MOST_ROUNDS):
        left.append(_deviation(weights, residual))
        if left[-1] <= NEARLY * scale:
            return _settled(pool, terms, design, weights)
        slow = len(left) > 3 and left[-1] > STEADY * left[-3]
        full = len(terms) + count > m / PAIRS_PER_FOUND_TERM
        if left[-1] > HOPE * left[0] or slow or full:
            return None
        new = _likely(pool.signs[some], terms, (uniform * residual)[some], count)
        terms = np.concatenate([terms, new])
        design, gram = signs_of_terms(pool, terms), products(pool, terms, weights)
        keep = _clear(pool, terms, design, gram, weights)
        terms, design, gram = terms[keep], design[:, keep], gram[np.ix_(keep, keep)]
        beta = solution(with_ridge(gram), design.T @ (weights * pool.odd))
        residual = pool.odd - design @ beta
    return None


def _deviation(weights: FloatVector, residual: FloatVector) -> float:
    """Return the weighted deviation of some residuals; that at (N, ∅) is none."""
    return float(np.sqrt(weights[1:] @ residual[1:] ** 2 / weights[1:].sum()))


def _uniform(pool: Pool) -> FloatVector:
    """Return weights with which pairs are like uniform ones; terms are uncorrelated in these."""
    n = pool.n_players
    existing = np.array([comb(n, s) / 2.0**n for s in range(n // 2 + 1)])
    existing[0] = 0.0
    if n % 2 == 0:
        existing[-1] /= 2
    weights: FloatVector = (existing / np.maximum(1, pool.taken))[pool.sizes]
    return weights


def _likely(signs: FloatMatrix, terms: Terms, target: FloatVector, count: int) -> Terms:
    """Return the new terms of three and of five players whose products with the target are largest.

    Terms of five are known ones of three with two players more: where five meet in a tree, three
    of them do as well.
    """
    n = signs.shape[1]
    threes = np.zeros((n, n, n))
    for i in range(n - 2):
        others = signs[:, i + 1 :]
        threes[i, i + 1 :, i + 1 :] = np.triu((others.T * (target * signs[:, i])) @ others, 1)
    degree = (terms < n).sum(axis=1)
    known = np.sort(terms[degree == 3][:, :3], axis=1)
    threes[tuple(known.T)] = 0.0
    size = np.abs(threes).ravel()
    found: dict[tuple[int, ...], float] = {
        (int(place) // n**2, int(place) // n % n, int(place) % n): float(size[place])
        for place in _largest(size, count)
    }
    old = {tuple(term) for term in np.sort(terms[degree == 5][:, :5], axis=1).tolist()}
    for three in known if terms.shape[1] >= 5 else []:
        size = np.abs(np.triu((signs.T * (target * signs[:, three].prod(axis=1))) @ signs, 1))
        size[three] = size[:, three] = 0.0
        for place in _largest(size.ravel(), LARGER):
            five = tuple(sorted((*three.tolist(), *divmod(int(place), n))))
            if five not in old:
                found[five] = float(size.flat[place])
    chosen = sorted(found, key=lambda term: -found[term])[:count]
    likely: Terms = np.full((len(chosen), terms.shape[1]), n, np.int64)
    for row, term in zip(likely, chosen, strict=True):
        row[: len(term)] = term
    return likely


def _largest(sizes: FloatVector, count: int) -> IntVector:
    """Return the places of the largest sizes, as far as they are above 0."""
    above: IntVector = np.flatnonzero(sizes > 0.0)
    if len(above) > count:
        above = above[np.argpartition(sizes[above], -count)[-count:]]
    return above


def _settled(
    pool: Pool, terms: Terms, design: FloatMatrix, weights: FloatVector
) -> Surrogate | None:
    """Return the polynomial without what is mere rounding, if it still fits and no pair is needed.

    A pair without which a coefficient would be unknown cannot be predicted from the others.
    """
    from scipy.linalg import cho_factor, cho_solve, solve_triangular

    scale = float(np.abs(pool.odd).max())
    gram = products(pool, terms, weights)
    beta = solution(with_ridge(gram), design.T @ (weights * pool.odd))
    some = np.abs(beta) > NEARLY * scale
    terms, design = terms[some], design[:, some]
    factor = cho_factor(with_ridge(gram[np.ix_(some, some)]), lower=True)
    beta = np.zeros(len(terms))
    for _ in range(REFINEMENTS):
        beta += cho_solve(factor, design.T @ (weights * (pool.odd - design @ beta)))
    fitted = design @ beta
    white = solve_triangular(factor[0], design.T, lower=True)
    needed = weights * np.einsum("ij,ij->j", white, white)
    if np.abs(pool.odd - fitted).max() > ROUNDING * scale or needed[1:].max() > 1 - 1e-6:
        return None
    return Surrogate(values_of_terms(terms, beta, pool.n_players), fitted, fitted, guarded=True)


def _clear(
    pool: Pool, terms: Terms, design: FloatMatrix, gram: FloatMatrix, weights: FloatVector
) -> BoolVector:
    """Tell which terms stand out, and which are of single players."""
    beta, variances = coefficients(with_ridge(gram), design.T @ (weights * pool.odd))
    squares = float(weights[1:] @ (pool.odd - design @ beta)[1:] ** 2)
    noise = squares / max(1, len(weights) - 1 - len(terms))
    degree = (terms < pool.n_players).sum(axis=1)
    clear: BoolVector = (beta**2 > CLEAR**2 * noise * variances) | (degree == 1)
    return clear


# ----------------------------------------------------------------------------------------
# Boosted trees, and the polynomials of their largest terms

# `python -m benchmarks.values FOLDER` shows what a change of these does to errors on thirty games.

N_TREES = 200
DEPTH = 6
RATE = 0.1
LEAF_RIDGE = 1.0
"""So many trees, of this depth, each added with this factor. Slow learners tell the terms of a game
from noise: with 100 trees and a factor of 0.3 the polynomial misses some of a forest's."""

PAIRS_PER_TREE_TERM = 2.5
"""Pairs for each term of the polynomial, once there are enough for one at all: with 5 it misses
some of a forest's, with less than 2 it fits noise."""

LEAST_PAIRS = 20
"""Fewer pairs than this are not worth a tree."""


def trees(pool: Pool) -> tuple[Surrogate, ...]:
    r"""Return gradient-boosted trees and two polynomials of their largest terms.

    The trees [Friedman2001]_ are fitted to v(S) and v(N∖S). A leaf that is reached if k players are
    in and l others are out is a game of its own, with the Shapley value
    :math:`\frac{(k-1)!\,l!}{(k+l)!}` for each of the k and :math:`-\frac{k!\,(l-1)!}{(k+l)!}` for
    each of the l; the trees' values are sums of these. The polynomials are fitted anew, with
    the terms of the same trees: they are exact if the game has no more terms than these. Where a
    search for further terms comes to a polynomial that fits all pairs, nothing else is returned.
    """
    if len(pool.odd) < LEAST_PAIRS:
        return ()
    from coalitions.values.models._tree_kernels import tree_values

    n, inside = pool.n_players, (pool.signs > 0).astype(np.uint8)
    rows = np.concatenate([inside, 1 - inside])
    values = np.concatenate([pool.inside, pool.outside]) - pool.outside[0]
    count = n_terms(pool, PAIRS_PER_TREE_TERM) if n_terms(pool) > n else 0

    def fit(seen: BoolVector) -> tuple[Any, Any, list[Polynomial]]:
        both = np.concatenate([seen, seen])
        features, leaves = grown_trees(rows[both], values[both])
        if not count:
            return features, leaves, []
        return (
            features,
            leaves,
            polynomial_fits(pool, largest_terms(features, leaves, n, count), seen),
        )

    features, leaves, smooth = fit(pool.folds < FOLDS)
    exact = exact_polynomial(pool, smooth[1]) if smooth else None
    if exact is not None:
        return (exact,)
    held_out = np.empty((1 + len(smooth), len(inside)))
    for fold in range(FOLDS):
        in_fold = pool.folds == fold
        asked, answers, parts = fit(~in_fold)
        held_out[0, in_fold] = parts_of_trees(asked, answers, inside[in_fold])[1]
        for guess, part in zip(held_out[1:], parts, strict=True):
            guess[in_fold] = part.fitted[in_fold]
    held_out[:, 0] = pool.odd[0]  # all fits see (N, ∅)
    fitted = parts_of_trees(features, leaves, inside)[1]
    return Surrogate(tree_values(features, leaves, n, DEPTH), fitted, held_out[0]), *(
        Surrogate(one.values, one.fitted, guess)
        for one, guess in zip(smooth, held_out[1:], strict=True)
    )


def grown_trees(rows: Any, values: Any) -> Any:  # noqa: ANN401
    """Return the boosted trees for the values of some coalitions, without their mean.

    Splits have a least gain. So the values are divided by a power of two that is about the largest.
    """
    from coalitions.values.models._tree_kernels import boosted

    centred = values - values.mean()
    exponent = np.frexp(np.abs(centred).max())[1]
    features, leaves = boosted(rows, np.ldexp(centred, -exponent), N_TREES, DEPTH, RATE, LEAF_RIDGE)
    return features, np.ldexp(leaves, exponent)


def parts_of_trees(features: Any, leaves: Any, inside: Any) -> FloatMatrix:  # noqa: ANN401
    """Return the even and the odd part of the trees at some coalitions [2, m]."""
    from coalitions.values.models._tree_kernels import predicted

    at_coalition, at_complement = (
        predicted(features, leaves, rows) for rows in (inside, 1 - inside)
    )
    return np.array([(at_coalition + at_complement) / 2, (at_coalition - at_complement) / 2])
