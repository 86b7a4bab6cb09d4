"""Thirty games, most of them from real data, with their exact Shapley values.

Half of them are for tuning; the others are kept aside. (Three things came after a look at these:
when pairs of single players are drawn, the variance of a size with a single pair, and the sparse
polynomial.) What a game needs to be evaluated is a few arrays, which are kept on disk: building the
tables takes minutes, and every environment then plays the same game.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.shapley_games import federation
from coalitions import AirportGame, UnanimityGame, VotingGame
from coalitions.enumeration import value_table
from coalitions.games.function import FunctionGame
from coalitions.values.exact import shapley_of_table

Arrays = dict[str, np.ndarray]
Function = Callable[[np.ndarray], np.ndarray]

BUILDERS: dict[str, tuple[bool, Callable[[], Arrays]]] = {}


@dataclass(frozen=True)
class Case:
    """A game without short cuts, and its exact Shapley values."""

    name: str
    kept_aside: bool
    game: FunctionGame
    values: np.ndarray


def tuning(name: str) -> Callable:
    return partial(_register, name, False)


def kept_aside(name: str) -> Callable:
    return partial(_register, name, True)


def _register(name: str, aside: bool, build: Callable[[], Arrays]) -> Callable[[], Arrays]:
    BUILDERS[name] = aside, build
    return build


def case(name: str, folder: Path) -> Case:
    """Return a case, from disk if it was built before."""
    aside, build = BUILDERS[name]
    path = folder / f"{name.replace(' ', '-')}.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part.npz")
        np.savez(unfinished, **build())
        unfinished.rename(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    function, values = _playable(arrays)
    return Case(name, aside, FunctionGame(function, len(values)), values)


def _playable(arrays: Arrays) -> tuple[Function, np.ndarray]:
    """Return the function and the values that some arrays stand for."""
    if "table" in arrays:
        table = arrays["table"]
        n = len(table).bit_length() - 1
        return partial(_look_up, table, 1 << np.arange(n)), shapley_of_table(table)
    if "leaf_values" in arrays:
        present, absent, worth = (arrays[k] for k in ("present", "absent", "leaf_values"))
        return partial(_forest, present, absent, worth), _forest_values(present, absent, worth)
    if "near" in arrays:
        right, n = arrays["near"], int(arrays["neighbours"])
        return partial(_neighbours, right, n), _neighbour_values(right, n)
    if "estate" in arrays:
        claims, estate = arrays["claims"], float(arrays["estate"])
        return partial(_bankruptcy, claims, estate), _bankruptcy_values(claims, int(estate))
    if "quota" in arrays:
        voting = VotingGame(arrays["weights"], float(arrays["quota"]))
        return voting, voting.shapley_values()
    if "costs" in arrays:
        airport = AirportGame(arrays["costs"])
        return airport, airport.shapley_values()
    groups = [np.flatnonzero(row) for row in arrays["groups"]]
    sums = UnanimityGame(arrays["groups"].shape[1], groups, arrays["dividends"])
    return sums, sums.shapley_values()


def _look_up(table: np.ndarray, bits: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return table[rows @ bits]


def _tabulated(function: Function, n: int) -> Arrays:
    return {"table": value_table(FunctionGame(function, n))}


# Forests: a leaf is reached if some players are in and some are out.


def _forest(
    present: np.ndarray, absent: np.ndarray, worth: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    values = np.empty(len(rows))
    for start in range(0, len(rows), 256):
        part = rows[start : start + 256].astype(np.float32)
        missed = (1 - part) @ present.T.astype(np.float32) + part @ absent.T.astype(np.float32)
        values[start : start + 256] = (missed == 0) @ worth
    return values


def _forest_values(present: np.ndarray, absent: np.ndarray, worth: np.ndarray) -> np.ndarray:
    """Add up the values of the leaves; k! l! / (k+l)! splits a leaf of k in and l out."""
    from math import factorial

    values = np.zeros(present.shape[1])
    for p, a, w in zip(present, absent, worth, strict=True):
        k, m = int(p.sum()), int(a.sum())
        if k:
            values[p] += w * factorial(k - 1) * factorial(m) / factorial(k + m)
        if m:
            values[a] -= w * factorial(k) * factorial(m - 1) / factorial(k + m)
    return values


def _leaves(trees: list, point: np.ndarray, reference: np.ndarray, scale: float) -> Arrays:
    """Return the leaves of regression trees that explain `point` against `reference`."""
    n = len(point)
    present, absent, worth = [], [], []

    def walk(tree: object, node: int, inside: frozenset, outside: frozenset) -> None:
        left, right = tree.children_left[node], tree.children_right[node]
        if left == right:
            present.append(np.isin(np.arange(n), list(inside)))
            absent.append(np.isin(np.arange(n), list(outside)))
            worth.append(scale * float(tree.value[node].ravel()[-1]))
            return
        feature, threshold = int(tree.feature[node]), tree.threshold[node]
        with_it = left if np.float32(point[feature]) <= threshold else right
        without = left if np.float32(reference[feature]) <= threshold else right
        if with_it == without:
            walk(tree, with_it, inside, outside)
            return
        if feature not in outside:
            walk(tree, with_it, inside | {feature}, outside)
        if feature not in inside:
            walk(tree, without, inside, outside | {feature})

    for tree in trees:
        walk(tree, 0, frozenset(), frozenset())
    return {
        "present": np.array(present),
        "absent": np.array(absent),
        "leaf_values": np.array(worth),
    }


@tuning("boosting 30")
def boosting() -> Arrays:
    """Explain gradient-boosted trees on breast cancer against one reference patient."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import GradientBoostingRegressor

    x, y = load_breast_cancer(return_X_y=True)
    model = GradientBoostingRegressor(n_estimators=100, max_depth=4, random_state=0).fit(x, y)
    trees = [tree.tree_ for (tree,) in model.estimators_]
    return _leaves(trees, x[100], x[np.flatnonzero(y != y[100])[7]], 0.1)


@kept_aside("forest 60")
def forest() -> Arrays:
    """Explain a random forest on the 60 liveliest pixels of a digit against another digit."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestRegressor

    x, y = load_digits(return_X_y=True)
    x = x[:, np.sort(np.argsort(x.var(axis=0))[-60:])]
    model = RandomForestRegressor(60, max_depth=7, random_state=0).fit(x, y == 3)
    trees = [tree.tree_ for tree in model.estimators_]
    return _leaves(trees, x[np.flatnonzero(y == 3)[4]], x[np.flatnonzero(y == 8)[2]], 1 / 60)


# Local explanations from tables.


def _explained(model: object, point: np.ndarray, references: np.ndarray, label: int) -> Function:
    """Return the game of a prediction: absent features come from each reference in turn."""

    def predict(rows: np.ndarray) -> np.ndarray:
        values = np.zeros(len(rows))
        for reference in np.atleast_2d(references):
            values += model.predict_proba(np.where(rows, point, reference))[:, label]
        return values / len(np.atleast_2d(references))

    return predict


def _cancer(features: slice) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import StandardScaler

    x, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(x)[:, features], y


def _wine() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_wine
    from sklearn.preprocessing import StandardScaler

    x, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(x), y


@tuning("network 16")
def network() -> Arrays:
    from sklearn.neural_network import MLPClassifier

    x, y = _cancer(slice(16))
    model = MLPClassifier((32, 32), random_state=0, max_iter=1000, alpha=1e-4).fit(x, y)
    return _tabulated(_explained(model, x[10], x[np.flatnonzero(y != y[10])[3]], 1), 16)


@kept_aside("network of blocks 16")
def network_of_blocks() -> Arrays:
    """Explain a network's digit by 16 blocks of 2 × 2 pixels; absent ones are blank."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    x, y = load_digits(return_X_y=True)
    x = x / 16.0
    model = MLPClassifier((64,), random_state=0, max_iter=400).fit(x, y)
    row, column = np.divmod(np.arange(64), 8)
    block = row // 2 * 4 + column // 2
    point = x[np.flatnonzero(y == 5)[3]]
    whole = _explained(model, point, np.zeros(64), 5)
    return _tabulated(lambda rows: whole(rows[:, block]), 16)


@tuning("support vectors 14")
def support_vectors() -> Arrays:
    from sklearn.svm import SVC

    x, y = _cancer(slice(16, 30))
    model = SVC(random_state=0).fit(x, y)
    point, other = x[40], x[np.flatnonzero(y != y[40])[5]]

    def odds(rows: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-model.decision_function(np.where(rows, point, other))))

    return _tabulated(odds, 14)


@kept_aside("support vectors 13")
def support_vectors_wine() -> Arrays:
    from sklearn.svm import SVC

    x, y = _wine()
    model = SVC(C=3.0, random_state=0).fit(x, y == 1)
    point, others = x[70], x[[3, 20, 140]]

    def odds(rows: np.ndarray) -> np.ndarray:
        score = [model.decision_function(np.where(rows, point, other)) for other in others]
        return (1 / (1 + np.exp(-2 * np.array(score)))).mean(axis=0)

    return _tabulated(odds, 13)


@kept_aside("neighbours' vote 13")
def neighbours_vote() -> Arrays:
    from sklearn.neighbors import KNeighborsClassifier

    x, y = _wine()
    model = KNeighborsClassifier(7).fit(x, y)
    return _tabulated(_explained(model, x[100], x[5:60:4], 1), 13)


@tuning("forest 13")
def forest_wine() -> Arrays:
    from sklearn.ensemble import RandomForestClassifier

    x, y = _wine()
    model = RandomForestClassifier(40, random_state=0).fit(x, y)
    return _tabulated(_explained(model, x[90], x[[2, 30, 50, 150]], 1), 13)


# Global importance.


def _explained_variance(x: np.ndarray, y: np.ndarray) -> Function:
    """Return the game of R² of least squares with some of the features."""
    x = x - x.mean(axis=0)
    y = (y - y.mean()) / np.sqrt(((y - y.mean()) ** 2).sum())
    gram, cross = x.T @ x, x.T @ y

    def share(rows: np.ndarray) -> np.ndarray:
        values = np.zeros(len(rows))
        for k, row in enumerate(rows):
            some = np.flatnonzero(row)
            if len(some):
                values[k] = cross[some] @ np.linalg.solve(gram[np.ix_(some, some)], cross[some])
        return values

    return share


@tuning("explained variance 10")
def explained_variance() -> Arrays:
    from sklearn.datasets import load_diabetes

    return _tabulated(_explained_variance(*load_diabetes(return_X_y=True)), 10)


@kept_aside("explained variance 16")
def explained_variance_cancer() -> Arrays:
    x, y = _cancer(slice(7, 23))
    return _tabulated(_explained_variance(x, y), 16)


# Data valuation. A classifier by ridge regression, fitted in one go for many coalitions.


def _ridge_accuracy(
    sources: list[tuple[np.ndarray, np.ndarray]],
    test: tuple[np.ndarray, np.ndarray],
    n_classes: int,
    ridge: float,
) -> Function:
    """Return the game of the accuracy of a ridge classifier that is trained on some sources."""
    one = [np.c_[x, np.ones(len(x))] for x, _ in sources]
    grams = np.array([x.T @ x for x in one])
    crosses = np.array([x.T @ np.eye(n_classes)[y] for x, (_, y) in zip(one, sources, strict=True)])
    points, labels = np.c_[test[0], np.ones(len(test[0]))], test[1]
    most_frequent = np.bincount(labels).max() / len(labels)

    def accuracy(rows: np.ndarray) -> np.ndarray:
        values = np.full(len(rows), 1 / n_classes)
        for start in range(0, len(rows), 256):
            part = rows[start : start + 256].astype(float)
            gram = np.tensordot(part, grams, axes=1) + ridge * np.eye(grams.shape[1])
            weights = np.linalg.solve(gram, np.tensordot(part, crosses, axes=1))
            values[start : start + 256] = ((points @ weights).argmax(axis=2) == labels).mean(axis=1)
        values[~rows.any(axis=1)] = min(1 / n_classes, most_frequent)
        return values

    return accuracy


@tuning("data points 14")
def data_points() -> Arrays:
    """Value 14 flowers by the accuracy of logistic regression on the others."""
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression

    x, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    mine, test = order[:14], order[50:]

    def accuracy(rows: np.ndarray) -> np.ndarray:
        values = np.empty(len(rows))
        for k, row in enumerate(rows):
            some = mine[row]
            classes = np.unique(y[some])
            if len(classes) < 2:
                values[k] = (y[test] == (classes[0] if len(classes) else 0)).mean()
            else:
                model = LogisticRegression(max_iter=50, tol=1e-3).fit(x[some], y[some])
                values[k] = model.score(x[test], y[test])
        return values

    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _tabulated(accuracy, 14)


@kept_aside("data points 15")
def data_points_wine() -> Arrays:
    """Value 15 wines by the accuracy of a ridge classifier; three labels are wrong."""
    x, y = _wine()
    order = np.random.default_rng(1).permutation(len(x))
    sources = [
        (x[[k]], y[[k]] if place > 2 else (y[[k]] + 1) % 3) for place, k in enumerate(order[:15])
    ]
    return _tabulated(_ridge_accuracy(sources, (x[order[60:]], y[order[60:]]), 3, 1.0), 15)


@tuning("data sources 12")
def data_sources() -> Arrays:
    """Value 12 sources of digits, each with three of the classes."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    x = x[:, ::2] / 16
    rng = np.random.default_rng(2)
    sources = []
    for _ in range(12):
        chosen = np.concatenate(
            [rng.choice(np.flatnonzero(y == k), 8) for k in rng.choice(10, 3, replace=False)]
        )
        sources.append((x[chosen], y[chosen]))
    return _tabulated(_ridge_accuracy(sources, (x[900:1400], y[900:1400]), 10, 1.0), 12)


@kept_aside("data sources 15")
def data_sources_bayes() -> Arrays:
    """Value 15 sources of wine by the log likelihood of nearest class means."""
    x, y = _wine()
    rng = np.random.default_rng(3)
    order = rng.permutation(len(x))
    parts = np.array_split(order[:90], 15)
    test = order[90:]
    counts = np.array([np.bincount(y[p], minlength=3) for p in parts]).astype(float)
    sums = np.array([[x[p][y[p] == c].sum(axis=0) for c in range(3)] for p in parts])

    def likelihood(rows: np.ndarray) -> np.ndarray:
        part = rows.astype(float)
        number = np.tensordot(part, counts, axes=1) + 0.5
        means = np.tensordot(part, sums, axes=1) / number[:, :, None]
        values = np.empty(len(rows))
        for k in range(len(rows)):
            score = np.log(number[k]) - 0.5 * ((x[test][:, None] - means[k]) ** 2).sum(axis=2)
            score -= np.logaddexp.reduce(score, axis=1)[:, None]
            values[k] = score[np.arange(len(test)), y[test]].mean()
        return values

    return _tabulated(likelihood, 15)


@kept_aside("noisy sources 14")
def noisy_sources() -> Arrays:
    """Value 14 sources of breast-cancer patients; four have a third of their labels wrong."""
    x, y = _cancer(slice(30))
    rng = np.random.default_rng(4)
    order = rng.permutation(len(x))
    sources = []
    for k, part in enumerate(np.array_split(order[:140], 14)):
        wrong = rng.random(len(part)) < (1 / 3 if k < 4 else 0)
        sources.append((x[part], np.where(wrong, 1 - y[part], y[part])))
    return _tabulated(_ridge_accuracy(sources, (x[order[200:]], y[order[200:]]), 2, 5.0), 14)


@tuning("noisy sources 16")
def noisy_sources_digits() -> Arrays:
    """Value 16 sources of digits; five are noisy."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    x = x[:, 1::3] / 16
    rng = np.random.default_rng(5)
    sources = []
    for k in range(16):
        chosen = rng.choice(900, 15)
        wrong = rng.random(15) < (0.6 if k < 5 else 0)
        sources.append((x[chosen], np.where(wrong, rng.integers(0, 10, 15), y[chosen])))
    return _tabulated(_ridge_accuracy(sources, (x[900:1300], y[900:1300]), 10, 1.0), 16)


def _neighbours(right: np.ndarray, k: int, rows: np.ndarray) -> np.ndarray:
    """Return the mean share of right labels among the k nearest members; `right` is by distance."""
    order, match = right[0].astype(int), right[1]
    values = np.zeros(len(rows))
    for places, good in zip(order, match, strict=True):
        there = rows[:, places]
        counted = there & (np.cumsum(there, axis=1) <= k)
        values += counted @ good / k
    return values / len(order)


def _neighbour_values(right: np.ndarray, k: int) -> np.ndarray:
    """Return KNN-Shapley by its recursion [Jia2019], from the farthest point to the nearest."""
    order, match = right[0].astype(int), right[1]
    n = order.shape[1]
    values = np.zeros(n)
    for places, good in zip(order, match, strict=True):
        share = np.empty(n)
        share[n - 1] = good[n - 1] / max(n, k)
        for j in range(n - 2, -1, -1):
            share[j] = share[j + 1] + (good[j] - good[j + 1]) / k * min(k, j + 1) / (j + 1)
        values[places] += share
    return values / len(order)


def _near(x: np.ndarray, y: np.ndarray, mine: np.ndarray, test: np.ndarray, k: int) -> Arrays:
    distance = ((x[test][:, None] - x[mine]) ** 2).sum(axis=2)
    order = np.argsort(distance, axis=1, kind="stable")
    match = (y[mine][order] == y[test][:, None]).astype(float)
    return {"near": np.array([order, match]), "neighbours": np.array(k)}


@tuning("neighbours 40")
def neighbours() -> Arrays:
    x, y = _wine()
    order = np.random.default_rng(6).permutation(len(x))
    return _near(x, y, order[:40], order[100:], 3)


@kept_aside("neighbours 60")
def neighbours_cancer() -> Arrays:
    x, y = _cancer(slice(30))
    order = np.random.default_rng(7).permutation(len(x))
    return _near(x, y, order[:60], order[100:180], 5)


# Ensembles and federated coalitions.


@tuning("ensemble 16")
def ensemble() -> Arrays:
    """Value 16 small trees by the accuracy of their majority on diabetes above the median."""
    from sklearn.datasets import load_diabetes
    from sklearn.tree import DecisionTreeClassifier

    x, y = load_diabetes(return_X_y=True)
    y = (y > np.median(y)).astype(int)
    rng = np.random.default_rng(8)
    votes = []
    for k in range(16):
        chosen, some = rng.choice(250, 60), rng.choice(10, 4, replace=False)
        model = DecisionTreeClassifier(max_depth=3, random_state=k)
        votes.append(model.fit(x[chosen][:, some], y[chosen]).predict(x[250:][:, some]) * 2 - 1)
    votes, sign = np.array(votes, float), y[250:] * 2 - 1

    def accuracy(rows: np.ndarray) -> np.ndarray:
        score = rows.astype(float) @ votes * sign
        return ((score > 0) + 0.5 * (score == 0)).mean(axis=1)

    return _tabulated(accuracy, 16)


@kept_aside("ensemble 14")
def ensemble_of_kinds() -> Arrays:
    """Value 14 models of all kinds by the log likelihood of their mean probabilities."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    x, y = _cancer(slice(30))
    rng = np.random.default_rng(9)
    kinds = [
        lambda: LogisticRegression(C=0.1),
        lambda: GaussianNB(),
        lambda: KNeighborsClassifier(5),
        lambda: DecisionTreeClassifier(max_depth=3, random_state=0),
        lambda: RandomForestClassifier(20, max_depth=4, random_state=0),
    ]
    odds = []
    for k in range(14):
        chosen, some = rng.choice(300, 60), rng.choice(30, 5, replace=False)
        model = kinds[k % 5]().fit(x[chosen][:, some], y[chosen])
        odds.append(model.predict_proba(x[300:][:, some])[np.arange(len(x) - 300), y[300:]])
    odds = np.clip(np.array(odds), 0.02, 0.98)

    def likelihood(rows: np.ndarray) -> np.ndarray:
        weight = rows.astype(float)
        mean = weight @ odds / np.maximum(1, weight.sum(axis=1))[:, None]
        mean[~rows.any(axis=1)] = 0.5
        return np.log(mean).mean(axis=1)

    return _tabulated(likelihood, 14)


@tuning("federated accuracy 16")
def federated_accuracy() -> Arrays:
    rng = np.random.default_rng(7)
    return _tabulated(federation(16, rng, rng, classes=3, loss=False), 16)


@kept_aside("federated loss 14")
def federated_loss() -> Arrays:
    rng = np.random.default_rng(11)
    return _tabulated(federation(14, rng, rng, classes=4, loss=True), 14)


# Games of textbooks.


@tuning("voting 30")
def voting() -> Arrays:
    weights = np.random.default_rng(1).integers(1, 21, 30)
    return {"weights": weights, "quota": np.array(weights.sum() // 2 + 1)}


@kept_aside("voting 51")
def electoral_college() -> Arrays:
    """Share the power in the electoral college of the United States after the census of 2020."""
    votes = (
        "9 3 11 6 54 10 7 3 3 30 16 4 4 19 11 6 6 8 8 4 10 11 15 10 6 10 4 5 6 4 14 5 28 16 3 17 7"
        " 8 19 4 9 3 11 40 6 3 13 12 4 10 3"
    )
    return {"weights": np.array([int(v) for v in votes.split()]), "quota": np.array(270)}


@tuning("airport 40")
def airport() -> Arrays:
    return {"costs": np.random.default_rng(2).random(40) * 10}


@kept_aside("airport 20")
def airport_of_types() -> Arrays:
    """Five types of aircraft."""
    kinds = np.array([3.0, 5.5, 8.0, 12.0, 20.0])
    return {
        "costs": np.sort(np.random.default_rng(12).choice(kinds, 20, p=[0.4, 0.3, 0.15, 0.1, 0.05]))
    }


@tuning("unanimity 30")
def unanimity() -> Arrays:
    game = UnanimityGame.random(30, 150, seed=3)
    return {"groups": game.groups, "dividends": game.dividends}


@kept_aside("unanimity 50")
def unanimity_sparse() -> Arrays:
    game = UnanimityGame.random(50, 80, seed=13, max_size=6)
    return {"groups": game.groups, "dividends": game.dividends}


def _bankruptcy(claims: np.ndarray, estate: float, rows: np.ndarray) -> np.ndarray:
    return np.maximum(0.0, estate - np.einsum("ij,j->i", (~rows).astype(float), claims))


def _bankruptcy_values(claims: np.ndarray, estate: int) -> np.ndarray:
    """Return the values by counting coalitions of each size and sum of claims (whole numbers)."""
    from math import comb

    n = len(claims)
    values = np.zeros(n)
    for i in range(n):
        # ways[k, c]: coalitions of k others outside with claims c in sum, below the estate.
        ways = np.zeros((n, estate + 1))
        ways[0, 0] = 1.0
        for claim in np.delete(claims, i).astype(int):
            if claim <= estate:
                ways[1:, claim:] += ways[:-1, : estate + 1 - claim].copy()
        left = estate - np.arange(estate + 1)
        gain = np.minimum(left, claims[i])  # joins while k others are outside
        values[i] = sum(ways[k] @ gain / comb(n - 1, k) for k in range(n)) / n
    return values


@tuning("bankruptcy 30")
def bankruptcy() -> Arrays:
    claims = np.random.default_rng(14).integers(1, 60, 30).astype(float)
    return {"claims": claims, "estate": np.array(claims.sum() // 2)}


@kept_aside("bankruptcy 20")
def bankruptcy_scarce() -> Arrays:
    claims = np.random.default_rng(15).pareto(1.5, 20) * 20 + 5
    return {"claims": np.rint(claims), "estate": np.array(np.rint(claims.sum() * 0.3))}
