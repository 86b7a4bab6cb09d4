"""Which data is worth how much? Points or sources are players, and a trained model is the judge."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

from coalitions import banzhaf, data_game, knn_shapley, leave_one_out, shapley

rng = np.random.default_rng(0)
X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = X[:240], X[240:800], y[:240].copy(), y[240:800]

# Six sources of forty digits each; the last one has wrong labels.
source = np.repeat(["anna", "ben", "carl", "dora", "emil", "faulty"], 40)
y[source == "faulty"] = rng.integers(0, 10, 40)
model = GaussianNB(var_smoothing=1e-2)
game = data_game(model, X, y, X_test, y_test, units="groups", groups=source)
result = shapley(game)  # all 2^6 coalitions: 64 small trainings
for name, values in [
    ("Shapley", result.values),
    ("Banzhaf", banzhaf(game).values),
    ("leave one out", leave_one_out(game).values),
]:
    print(f"{name:14}", dict(zip(game.labels, values.round(3).tolist(), strict=True)))

# Every single point, for five nearest neighbours: exact in a moment.
points = knn_shapley(X, y, X_test, y_test, k=5)
worst = np.argsort(points)[:20]
print(f"of the 20 worst points {np.sum(source[worst] == 'faulty')} are from the faulty source")

# Trainings that take long: with parallel(stored(game, "values"), workers=4) as game: shapley(game)
