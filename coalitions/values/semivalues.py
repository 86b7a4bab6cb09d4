r"""Semivalues: what a player adds to a random coalition, on average.

A semivalue is given by how likely the player meets k others [Dubey1981]_:

.. math:: \phi_i = \sum_{k=0}^{n-1} q_k \binom{n-1}{k}^{-1}
    \sum_{S \not\ni i, |S| = k} [v(S \cup i) - v(S)]

The Shapley value has :math:`q_k = 1/n`, the Banzhaf value the binomial distribution of a coin that
everybody tosses, and Beta-Shapley the one of a coin whose bias is drawn first.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import ArrayLike

from coalitions.checks import Seed, generator_of, number_in, one_number_each
from coalitions.enumeration import value_table
from coalitions.errors import BudgetError, InvalidInputError, UnknownNameError
from coalitions.game import FloatVector, Game, IntVector, players_of, table_of
from coalitions.games.induced_subgraph import InducedSubgraphGame
from coalitions.one_thread import one_blas_thread
from coalitions.sampling.coins import fair_coalitions, least_squares
from coalitions.sampling.estimator import Estimate
from coalitions.sampling.evaluator import Evaluator
from coalitions.subset_sums import coalition_sizes, sums_with_player
from coalitions.values.shapley import checked_budget, default_budget


def banzhaf(
    game: Game, *, method: str = "auto", budget: int | None = None, seed: Seed = 0
) -> Estimate:
    r"""Return the Banzhaf values: what a player adds if everybody else tosses a coin.

    .. math:: \beta_i = 2^{-(n-1)} \sum_{S \not\ni i} [v(S \cup i) - v(S)]

    They need not add up to v(N) − v(∅) (not normalised; [Banzhaf1965]_).

    Parameters
    ----------
    game
        Any game.
    method
        ``"exact"``: all 2^n coalitions.
        ``"msr"``: maximum sample reuse, the mean value of sampled coalitions with the player minus
        the mean without [WangJ2023]_; every sample counts for every player. The
        samples are balanced: each player is in exactly half of them.
        ``"regression"``: the values are the coefficients of the best linear approximation of v
        [Hammer1992]_, fitted by least squares to the same samples; what the other
        players explain is no noise here. Its bias is of the order of 1 / budget.
        ``"star"``: see `semivalue`.
        ``"auto"``: exact if the budget allows or the game has a table or a closed form, else
        regression, or msr if there are fewer than four samples for each coefficient.
    budget
        Most coalitions to evaluate; 2^n up to 16 players and 100 n above if there is none.
    seed
        Source of all randomness.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> glove = TableGame([0, 0, 0, 1, 0, 1, 0, 1])
    >>> banzhaf(glove).values
    array([0.75, 0.25, 0.25])
    """
    n = players_of(game)
    few = budget is not None and checked_budget(budget, n) < 4 * (n + 1)
    ways = ("msr", "regression") if few else ("regression", "msr")
    method, budget, reason = _choose(game, method, budget, *ways)
    if method == "msr":
        return _maximum_sample_reuse(game, budget, seed, reason)
    if method == "regression":
        return _regression(game, budget, seed, reason)
    sizes = np.array([comb(n - 1, k) / (1 << (n - 1)) for k in range(n)])
    return _semivalue(game, sizes, method, budget, seed, reason)


def beta_shapley(
    game: Game,
    alpha: float,
    beta: float,
    *,
    method: str = "auto",
    budget: int | None = None,
    seed: Seed = 0,
) -> Estimate:
    r"""Return the Beta(α, β)-Shapley values [Kwon2022]_.

    .. math:: q_k = \binom{n-1}{k} \frac{B(k + \beta,\, n - 1 - k + \alpha)}{B(\alpha, \beta)}

    Beta(1, 1) is the Shapley value. A large α looks at small coalitions, a large β at large ones.

    Parameters
    ----------
    game
        Any game.
    alpha, beta
        Positive parameters.
    method, budget, seed
        As in `semivalue`.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> glove = TableGame([0, 0, 0, 1, 0, 1, 0, 1])
    >>> beta_shapley(glove, 1, 1).values.round(6).tolist()
    [0.666667, 0.166667, 0.166667]
    """
    alpha = number_in(alpha, "alpha", 1e-300, 1e300)
    beta = number_in(beta, "beta", 1e-300, 1e300)
    n = players_of(game)
    # Neighbouring terms have a simple ratio; factorials and Beta functions would overflow.
    k = np.arange(n - 1)
    steps = np.log((n - 1 - k) / (k + 1)) + np.log(k + beta) - np.log(n - 2 - k + alpha)
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    sizes = np.exp(logs - logs.max())
    sizes /= sizes.sum()
    method, budget, reason = _choose(game, method, budget)
    return _semivalue(game, sizes, method, budget, seed, reason)


def semivalue(
    game: Game,
    sizes: ArrayLike,
    *,
    method: str = "auto",
    budget: int | None = None,
    seed: Seed = 0,
) -> Estimate:
    """Return the semivalue of a distribution of sizes.

    Parameters
    ----------
    game
        Any game.
    sizes
        Probability q_k that a player meets k others [n]; the coalitions of a size are equally
        likely.
    method
        ``"exact"``: all 2^n coalitions.
        ``"star"``: draw a size and a coalition, and evaluate it together with all coalitions that
        have one player more (or one less, if those are more): a star of coalitions gives as many
        marginals as it has rays, for one evaluation each. Sizes are drawn in proportion to q_k
        over the share of players a star of that size tells about, so that for each player those
        that do follow q. Sizes are spread evenly over the draws, and the mean is taken over as
        many stars as tell about the player, so the bias is of the order of 1 / budget.
        ``"auto"``: exact if the budget allows or the game has a table or a closed form, else star.
    budget
        Most coalitions to evaluate; 2^n up to 16 players and 100 n above if there is none.
    seed
        Source of all randomness.

    Examples
    --------
    >>> from coalitions.games.table import TableGame
    >>> glove = TableGame([0, 0, 0, 1, 0, 1, 0, 1])
    >>> semivalue(glove, [0, 1, 0]).values  # what a player adds to one other
    array([1. , 0.5, 0.5])
    """
    n = players_of(game)
    q = one_number_each(sizes, n, "sizes")
    if not (q >= 0).all() or abs(q.sum() - 1) > 1e-9:
        raise InvalidInputError(
            f"sizes must be {n} probabilities that add up to 1, one for each number of others"
        )
    method, budget, reason = _choose(game, method, budget)
    return _semivalue(game, q, method, budget, seed, reason)


def semivalue_of_table(table: FloatVector, sizes: FloatVector) -> FloatVector:
    r"""Return the semivalue of a game given by its 2^n values, in O(2^n) operations.

    With :math:`p_k = q_k / \binom{n-1}{k}`, a coalition with i counts :math:`p_{|T|-1}` and one
    without :math:`-p_{|T|}`, so

    .. math:: \phi_i = \sum_{T \ni i} (p_{|T|-1} + p_{|T|})\, v(T) - \sum_T p_{|T|}\, v(T).
    """
    n = len(sizes)
    p = np.array([q / comb(n - 1, k) for k, q in enumerate(sizes)])
    without, inside = np.append(p, 0.0), np.append(0.0, p)
    of = coalition_sizes(n)
    values = table - table[0]  # a constant cancels; rounding is relative to what remains
    constant = float((without[of] * values).sum())
    return sums_with_player((without + inside)[of] * values) - constant


def _choose(game: Game, method: str, budget: int | None, *sampled: str) -> tuple[str, int, str]:
    """Return the method, the budget and why; `sampled` comes before star, the best one first."""
    n = game.n_players
    known = ("exact", *sampled, "star")
    if method not in ("auto", *known):
        raise UnknownNameError(
            f"there is no method named {method!r}; there are: auto, {', '.join(known)}"
        )
    if budget is None:
        budget = 1 << n if method == "exact" else default_budget(n)
    budget = checked_budget(budget, n)
    if method != "auto":
        return method, budget, "you asked for it"
    if isinstance(game, InducedSubgraphGame):
        return "exact", budget, "the game has a closed form"
    if table_of(game) is not None:
        return "exact", budget, "the game has a table of its values"
    if 1 << n <= budget:
        return "exact", budget, f"all 2^{n} coalitions are within the budget of {budget}"
    return known[1], budget, f"2^{n} coalitions are more than the budget of {budget}"


def _semivalue(
    game: Game, sizes: FloatVector, method: str, budget: int, seed: Seed, reason: str
) -> Estimate:
    n = game.n_players
    if method == "star":
        return _stars(game, sizes, budget, seed, reason)
    if isinstance(game, InducedSubgraphGame):
        # A player adds the synergies with those met, each of whom is there equally often.
        met = float(np.arange(n) @ sizes) / max(1, n - 1)
        return Estimate(2 * met * game.shapley_values(), np.zeros(n), 0, "exact", reason)
    if 1 << n > budget and table_of(game) is None:
        raise BudgetError(f"exact values of {n} players need 2^{n} evaluations, not {budget}")
    values = semivalue_of_table(value_table(game), sizes)
    return Estimate(values, np.zeros(n), 1 << n, "exact", reason)


def _maximum_sample_reuse(game: Game, budget: int, seed: Seed, reason: str) -> Estimate:
    half = budget // 2
    if half < 2:
        raise BudgetError(f"msr needs a budget of at least 4 evaluations, not {budget}")
    coalitions = fair_coalitions(budget, game.n_players, generator_of(seed))
    evaluator = Evaluator(game, budget)
    values = evaluator(coalitions)
    centred = values - values.mean()
    squares = centred**2
    with one_blas_thread():
        inside = centred @ coalitions / half
        outside = centred @ ~coalitions / half
        spread = (squares @ coalitions + squares @ ~coalitions) / half - inside**2 - outside**2
    # Both halves have sample variances with half − 1 in the denominator.
    stderr = np.sqrt(np.maximum(0.0, spread) / (half - 1))
    return Estimate(
        inside - outside, stderr, evaluator.evaluations, "msr", reason, 2.0 * (half - 1)
    )


def _regression(game: Game, budget: int, seed: Seed, reason: str) -> Estimate:
    coalitions = fair_coalitions(budget, game.n_players, generator_of(seed))
    evaluator = Evaluator(game, budget)
    values = evaluator(coalitions)
    signs = np.where(coalitions, 1.0, -1.0)
    design = np.column_stack([np.ones(len(values)), signs])
    coefficients, errors, freedom = least_squares(design, values)
    # A step from out (−1) to in (+1) is twice the coefficient.
    return Estimate(
        2 * coefficients[1:], 2 * errors[1:], evaluator.evaluations, "regression", reason, freedom
    )


def _stars(game: Game, sizes: FloatVector, budget: int, seed: Seed, reason: str) -> Estimate:
    n = game.n_players
    k = np.arange(n)
    upward = n - k >= k + 1
    rays = np.maximum(n - k, k + 1)
    chance = sizes / rays
    chance = chance / chance.sum()
    n_stars = _affordable(chance, rays + 1, budget)
    rng = generator_of(seed)
    drawn = _systematic(chance, n_stars, float(rng.random()))
    rank = rng.permuted(np.tile(np.arange(n), (n_stars, 1)), axis=1)
    # Stars tell about half of the players or more: two with opposite ranks tell about everybody.
    rank[1::2] = n - 1 - rank[: n_stars - 1 : 2]
    told = rank < rays[drawn][:, None]
    # The centre is everybody else and gains a player, or is those told about and loses one.
    centres = told ^ upward[drawn][:, None]
    star, player = np.nonzero(told)
    ends = centres[star]
    ends[np.arange(len(star)), player] ^= True
    evaluator = Evaluator(game, budget)
    values = evaluator(np.concatenate([centres, ends]))
    sign = np.where(upward[drawn], 1.0, -1.0)
    marginals = sign[star] * (values[n_stars:] - values[:n_stars][star])
    count = np.bincount(player, minlength=n)
    mean = np.bincount(player, marginals, n) / count
    squares = np.bincount(player, (marginals - mean[player]) ** 2, n)
    stderr = np.sqrt(squares / (count - 1) / count)
    return Estimate(mean, stderr, evaluator.evaluations, "star", reason, float(count.min() - 1))


def _affordable(chance: FloatVector, cost: IntVector, budget: int) -> int:
    """Return the largest number of systematic draws that never costs more than the budget."""

    def dearest(n_draws: int) -> int:
        ends = np.cumsum(chance) * n_draws
        offsets = np.concatenate([[0.0], ends % 1, np.nextafter(ends % 1, 1)])
        offsets = offsets[offsets < 1]
        return max(int(cost[_systematic(chance, n_draws, u)].sum()) for u in offsets.tolist())

    dearest_star = int(cost[chance > 0].max())
    affordable = budget // dearest_star
    if affordable < 4:  # so that there are two marginals of each player, and a standard error
        raise BudgetError(f"star needs {4 * dearest_star} evaluations or more, not {budget}")
    step = affordable
    while step:
        if dearest(affordable + step) <= budget:
            affordable += step
        else:
            step //= 2
    return affordable


def _systematic(chance: FloatVector, n_draws: int, offset: float) -> IntVector:
    """Return sorted draws at equal distances: each value comes up its expected number ± 1 times."""
    points = (np.arange(n_draws) + offset) / n_draws
    ends = np.cumsum(chance)
    ends[-1] = np.inf
    return np.searchsorted(ends, points, side="right")
