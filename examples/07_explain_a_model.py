"""Why does a model say what it says? Features are players; related ones may be one player."""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

from coalitions import feature_game, feature_games, shapley

data = load_diabetes(as_frame=True)
X, y = data.data, data.target
model = RandomForestRegressor(30, random_state=0).fit(X[:400], y[:400])
background = X[:30]  # what is usual: unknown features are taken from these rows

# One patient: how far each feature moves the prediction away from the average.
patient = X.iloc[420]
game = feature_game(model.predict, patient, background)
result = shapley(game, budget=200)
average, prediction = game([[False] * 10, [True] * 10])
print(f"average {average:.0f}, this patient {prediction:.0f}; because of")
for player in np.argsort(-np.abs(result.values))[:4]:
    print(f"  {game.labels[player]:4} {result.values[player]:+6.1f} ± {result.stderr[player]:.1f}")

# The six blood values are one player; four others: all 2^5 coalitions are evaluated.
blood = {"blood": ["s1", "s2", "s3", "s4", "s5", "s6"], **{k: [k] for k in X.columns[:4]}}
game = feature_game(model.predict, patient, background, groups=blood)
values = shapley(game).values.round(1)
print("with the blood values as one:", dict(zip(game.labels, values.tolist(), strict=True)))

# Many patients: which features matter on the whole?
games = feature_games(model.predict, X[420:424], background, groups=blood)
table = np.array([shapley(game).values for game in games])
print("mean size of the effects:", np.abs(table).mean(axis=0).round(1).tolist())

# to_shap([results], games) and to_shapiq(result, game) hand these to the plots of shap and shapiq.
