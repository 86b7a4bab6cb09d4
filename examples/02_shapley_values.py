"""How much does each feature matter to a score? Any function of coalitions is a game."""

import numpy as np

from coalitions import FunctionGame, cached, shapley

rng = np.random.default_rng(0)
weights, pairs = rng.normal(size=24), rng.normal(size=(24, 24)) / 5


def score(rows: np.ndarray) -> np.ndarray:
    """Return one value for each row: row k says which of the 24 features are switched on."""
    on = rows.astype(float)
    return np.tanh(on @ weights + ((on @ pairs) * on).sum(axis=1))


game = cached(FunctionGame(score, 24))

# 2^24 coalitions are too many: 500 of them give estimates with errors.
result = shapley(game, budget=500, seed=1)
print(f"{result.method}, {result.evaluations} evaluations ({result.reason})")
low, high = result.interval(0.95)
for player in np.argsort(-np.abs(result.values))[:5]:
    interval = f"[{low[player]:+.3f}, {high[player]:+.3f}]"
    print(f"feature {player:2}: {result.values[player]:+.3f}  {interval}")
print(f"all of them sum to {result.values.sum():.6f}")

# An unbiased method, stopped as soon as no standard error is larger than 0.05.
sampled = shapley(game, "antithetic", budget=20_000, target_error=0.05)
print(f"{sampled.method}: {sampled.evaluations} evaluations, error {sampled.stderr.max():.3f}")
print("largest difference of the two:", np.abs(sampled.values - result.values).max().round(3))
