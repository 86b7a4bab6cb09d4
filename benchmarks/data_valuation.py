"""Data Shapley of 100 points with logistic regression, beside pyDVL: error and time.

python -m benchmarks.data_valuation [--seeds 3] [--budgets 1000 4000] [--truth 10] [--methods …]

Both get the same game and may evaluate as many distinct coalitions: `data_game` with
scikit-learn's LogisticRegression on 100 rows of the breast cancer data, the accuracy on 300 others.
pyDVL's utility asks that game, so the numbers differ by the estimators alone. The truth is the mean
of ten runs of antithetic permutations with 100 000 evaluations each, of the same regressions fitted
many at a time by Newton's method; that they are the same is checked, and the error of the truth
itself is printed. Errors are the mean squared error over the variance of the true values. Times are
CPU-seconds, the trainings included.

pyDVL wants numpy 1: make an environment of its own, and give it this folder as PYTHONPATH.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from coalitions import FunctionGame, cached, data_game, knn_shapley, shapley


def the_game():
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression

    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order][:, :10], y[order]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = LogisticRegression(solver="newton-cholesky", tol=1e-9)
    parts = X[:100], y[:100], X[100:400], y[100:400]
    return data_game(model, *parts), quick(*parts)


def quick(X, y, X_test, y_test):
    """Return the same game with the regressions of many coalitions fitted at once."""
    X, X_test = (np.column_stack([part, np.ones(len(part))]) for part in (X, X_test))
    d = X.shape[1]
    squares = np.einsum("mi,mj->mij", X, X).reshape(len(X), d * d)
    ridge = np.diag([1.0] * (d - 1) + [0.0])  # the intercept is free

    def value(rows):
        rows = rows.astype(float)
        positive, size = rows @ y, rows.sum(axis=1)
        mixed = (positive > 0) & (positive < size)
        answers = np.where(size > 0, positive > 0, y.mean() > 0.5)[:, None]
        predicted = np.repeat(answers, len(X_test), axis=1)
        weights = np.zeros((int(mixed.sum()), d))
        own = rows[mixed]
        for _ in range(30):
            p = 1 / (1 + np.exp(-weights @ X.T))
            gradient = (own * (p - y)) @ X + weights @ ridge
            hessian = ((own * p * (1 - p)) @ squares).reshape(-1, d, d) + ridge
            step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
            weights -= step * np.minimum(1, 5 / (1e-12 + np.linalg.norm(step, axis=1)))[:, None]
            if np.abs(gradient).max(initial=0.0) < 1e-9:
                break
        assert np.abs(gradient).max(initial=0.0) < 1e-6
        predicted[mixed] = weights @ X_test.T > 0
        return (predicted == y_test).mean(axis=1)

    return FunctionGame(value, len(X))


def theirs(game):
    """Return pyDVL's estimators as functions of budget and seed."""
    from pydvl.utils.status import Status
    from pydvl.valuation.dataset import Dataset
    from pydvl.valuation.methods.gt_shapley import GroupTestingShapleyValuation
    from pydvl.valuation.methods.shapley import (
        ShapleyValuation,
        StratifiedShapleyValuation,
        TMCShapleyValuation,
    )
    from pydvl.valuation.samplers import (
        AntitheticPermutationSampler,
        MSRSampler,
        PermutationSampler,
    )
    from pydvl.valuation.stopping import StoppingCriterion
    from pydvl.valuation.utility.base import UtilityBase

    n = game.n_players

    class Utility(UtilityBase):
        def __init__(self):
            self.memory = cached(game)

        def __call__(self, sample):
            row = np.zeros((1, n), np.bool_)
            if sample is not None:
                row[0, sample.subset] = True
            return float(self.memory(row)[0])

    class Spent(StoppingCriterion):
        """Ends when the next sample would exceed the budget."""

        def __init__(self, utility, budget, each):
            super().__init__()
            self.utility, self.budget, self.each = utility, budget, each

        def _check(self, result):
            over = self.utility.memory.evaluations + self.each > self.budget
            self._converged = np.full(len(result.values), over)
            return Status.Converged if over else Status.Pending

    points = Dataset(np.zeros((n, 1)), np.zeros(n))

    def fitted(make, each):
        def run(budget, seed):
            utility = Utility()
            method = make(utility, Spent(utility, budget, each), seed, budget)
            method.fit(points)
            found = np.zeros(n)
            found[method.result.indices] = method.result.values
            return found, utility.memory.evaluations

        return run

    return {
        "pyDVL permutation": fitted(
            lambda u, stop, seed, _: ShapleyValuation(u, PermutationSampler(seed=seed), stop), n
        ),
        "pyDVL antithetic": fitted(
            lambda u, stop, seed, _: ShapleyValuation(
                u, AntitheticPermutationSampler(seed=seed), stop
            ),
            n,
        ),
        "pyDVL TMC": fitted(
            lambda u, stop, seed, _: TMCShapleyValuation(u, is_done=stop, seed=seed), n
        ),
        "pyDVL stratified": fitted(
            lambda u, stop, seed, _: StratifiedShapleyValuation(u, stop, seed=seed), 2
        ),
        "pyDVL MSR": fitted(
            lambda u, stop, seed, _: ShapleyValuation(u, MSRSampler(seed=seed), stop), 1
        ),
        "pyDVL group testing": fitted(
            lambda u, stop, seed, budget: GroupTestingShapleyValuation(
                u, budget - 2, epsilon=0.1, progress=False, seed=seed
            ),
            1,
        ),
    }


def ours(game):
    def by(method):
        def run(budget, seed):
            found = shapley(game, method, budget, seed=seed)
            return found.values, found.evaluations

        return run

    return {"ours, auto": by("auto"), "ours, antithetic": by("antithetic")}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budgets", type=int, nargs="+", default=[1000, 4000])
    parser.add_argument("--truth", type=int, default=10, help="runs of 100 000 evaluations")
    parser.add_argument("--methods", nargs="+", help="those that run; all if there is none")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # pyDVL's, of budgets that end before its own rules
    game, same = the_game()
    rng = np.random.default_rng(0)
    rows = rng.random((300, 100)) < rng.random((300, 1))
    agree = np.abs(game(rows) - same(rows)) < 1e-12
    runs = [
        shapley(same, "antithetic", 100_000, seed=10**6 + k, batch_size=2000)
        for k in range(options.truth)
    ]
    truth = np.mean([run.values for run in runs], axis=0)
    scale = float(truth.var())
    own = float(np.mean([run.stderr**2 for run in runs])) / len(runs) / scale
    print(f"truth: {len(runs)} runs, its own error {own:.2g};", end=" ")
    print(f"the quick game is the same on {agree.sum()} of {len(agree)} coalitions\n", flush=True)
    methods = ours(game)
    try:
        methods |= theirs(game)
    except ModuleNotFoundError as error:
        print(f"without pyDVL: {error}")
    print(
        "| method | budget | evaluations | error | CPU-seconds |\n|---|---|---|---|---|", flush=True
    )
    shapley(game, budget=100)  # compiles
    for budget in options.budgets:
        for name, run in methods.items():
            if options.methods and name not in options.methods:
                continue
            errors, counts, seconds = [], [], []
            try:
                for seed in range(options.seeds):
                    start = time.process_time()
                    values, count = run(budget, seed)
                    seconds.append(time.process_time() - start)
                    errors.append(float(((values - truth) ** 2).mean()) / scale)
                    counts.append(count)
            except Exception as error:  # a peer's own trouble is its row
                print(
                    f"| {name} | {budget} | – | {type(error).__name__}: {error} | – |", flush=True
                )
                continue
            print(
                f"| {name} | {budget} | {np.mean(counts):.0f} | {np.mean(errors):.3g} |"
                f" {np.mean(seconds):.1f} |",
                flush=True,
            )
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(11_000, 10)), rng.integers(0, 2, 11_000)
    start = time.process_time()
    knn_shapley(X[:10_000], y[:10_000], X[10_000:], y[10_000:])
    print(f"\nknn_shapley, 10 000 points, 1000 for the test: {time.process_time() - start:.2f} s")


if __name__ == "__main__":
    main()
