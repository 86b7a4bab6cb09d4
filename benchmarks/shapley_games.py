"""The games on which estimators of Shapley values are ranked, with their exact values.

Closed-form games have 30 players and more; the machine-learning games are small enough for their
exact values (a table of 2^n values, or a closed form tree by tree).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from coalitions import AirportGame, FunctionGame, TableGame, UnanimityGame, VotingGame
from coalitions.values.exact import shapley_of_table


@dataclass(frozen=True)
class Case:
    """A game without short cuts, and its exact Shapley values."""

    name: str
    game: FunctionGame
    values: np.ndarray


def cases() -> list[Case]:
    """Return all cases; building them takes a few seconds."""
    return [build() for build in (voting, airport, unanimity, boosting, mlp, federated_digits)]


def voting() -> Case:
    rng = np.random.default_rng(1)
    weights = rng.integers(1, 21, 30)
    game = VotingGame(weights, quota=weights.sum() // 2 + 1)
    return _closed_form("voting", game)


def airport() -> Case:
    return _closed_form("airport", AirportGame(np.random.default_rng(2).random(40) * 10))


def unanimity() -> Case:
    return _closed_form("unanimity sums", UnanimityGame.random(30, 150, seed=3))


def boosting() -> Case:
    """Explain one prediction of gradient-boosted trees, against one reference patient."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import GradientBoostingRegressor

    x, y = load_breast_cancer(return_X_y=True)
    model = GradientBoostingRegressor(n_estimators=100, max_depth=4, random_state=0).fit(x, y)
    point, reference = x[100], x[np.flatnonzero(y != y[100])[7]]

    def predict(rows: np.ndarray) -> np.ndarray:
        return model.predict(np.where(rows, point, reference))

    values = np.zeros(x.shape[1])
    for (tree,) in model.estimators_:
        # A tree looks at few features: its exact values come from the coalitions of these alone.
        features = np.unique(tree.tree_.feature[tree.tree_.feature >= 0])
        features = features[point[features] != reference[features]]
        k = len(features)
        masks = np.arange(1 << k)
        inputs = np.tile(reference, (1 << k, 1))
        for position, feature in enumerate(features):
            inputs[masks >> position & 1 == 1, feature] = point[feature]
        if k:
            values[features] += model.learning_rate * shapley_of_table(tree.predict(inputs))
    return Case("gradient boosting", FunctionGame(predict, x.shape[1]), values)


def mlp() -> Case:
    """Explain one prediction of a small neural network on 16 of the breast-cancer features."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    x, y = load_breast_cancer(return_X_y=True)
    x = StandardScaler().fit_transform(x)[:, :16]
    model = MLPClassifier((32, 32), random_state=0, max_iter=1000, alpha=1e-4).fit(x, y)
    point, reference = x[10], x[np.flatnonzero(y != y[10])[3]]

    def predict(rows: np.ndarray) -> np.ndarray:
        return model.predict_proba(np.where(rows, point, reference))[:, 1]

    return _tabulated("MLP", predict, 16)


def federated_digits() -> Case:
    start, rng = np.random.default_rng(7), np.random.default_rng(0)
    return _tabulated("federated digits", federation(16, start, rng, classes=3, loss=False), 16)


def federation(
    n: int, start: np.random.Generator, rng: np.random.Generator, *, classes: int, loss: bool
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the game of the mean of clients' models on the data of three of them (pFedSV's).

    `start` draws the first weights, `rng` the clients' classes and data. A coalition is worth its
    accuracy, or, with `loss`, its log likelihood.
    """
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    x = x / 16.0
    hidden = 32
    first = (
        start.normal(0, 0.3, (64, hidden)),
        np.zeros(hidden),
        start.normal(0, 0.3, (hidden, 10)),
        np.zeros(10),
    )
    owned = [rng.choice(10, classes, replace=False) for _ in range(n)]

    def draw(client: int, count: int) -> np.ndarray:
        return np.concatenate([rng.choice(np.flatnonzero(y == k), count) for k in owned[client]])

    models = []
    for client in range(n):
        chosen = draw(client, 25)
        inputs, target = x[chosen], np.eye(10)[y[chosen]]
        models.append(_trained(first, inputs, target))
    stacked = [np.stack([model[k] for model in models]) for k in range(4)]
    chosen = np.concatenate([draw(client, 10) for client in range(3)])
    inputs, labels = x[chosen], y[chosen]

    def quality(rows: np.ndarray) -> np.ndarray:
        values = np.empty(len(rows))
        for start in range(0, len(rows), 512):
            part = rows[start : start + 512].astype(float)
            shares = part / np.maximum(1, part.sum(axis=1, keepdims=True))
            w0, b0, w1, b1 = (np.tensordot(shares, layer, axes=1) for layer in stacked)
            active = np.maximum(inputs @ w0 + b0[:, None, :], 0)
            logits = active @ w1 + b1[:, None, :]
            if loss:
                logits = logits - np.logaddexp.reduce(logits, axis=2)[:, :, None]
                right = logits[:, np.arange(len(labels)), labels]
            else:
                right = logits.argmax(axis=2) == labels
            values[start : start + 512] = right.mean(axis=1)
        values[~rows.any(axis=1)] = -np.log(10) if loss else 0.0
        return values

    return quality


def _trained(
    first: Sequence[np.ndarray], inputs: np.ndarray, target: np.ndarray
) -> list[np.ndarray]:
    """Return the weights of a network of one hidden layer after sixty steps from the first."""
    weights = [part.copy() for part in first]
    for _ in range(60):
        active = np.maximum(inputs @ weights[0] + weights[1], 0)
        logits = active @ weights[2] + weights[3]
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        error = (odds / odds.sum(axis=1, keepdims=True) - target) / len(inputs)
        back = (error @ weights[2].T) * (active > 0)
        gradients = inputs.T @ back, back.sum(0), active.T @ error, error.sum(0)
        weights = [w - 0.5 * g for w, g in zip(weights, gradients, strict=True)]
    return weights


def _closed_form(name: str, game: VotingGame | AirportGame | UnanimityGame) -> Case:
    return Case(name, FunctionGame(game, game.n_players), game.shapley_values())


def _tabulated(name: str, function: Callable[[np.ndarray], np.ndarray], n: int) -> Case:
    """Return a case that looks its values up: the game itself would take most of the time."""
    table = TableGame.of(FunctionGame(function, n))
    return Case(name, FunctionGame(table, n), shapley_of_table(table.table))
