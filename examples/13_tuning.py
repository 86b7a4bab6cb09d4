"""Choose options with the same budget for two methods, then compare them on other seeds."""

from learners.experiments.cells import run_cells
from learners.experiments.paired_statistics import standings
from learners.experiments.search_space import declared_space
from learners.experiments.tuning import Search, tune
from learners.experiments.variants import planned_runs, variant_of

SETTINGS = {"clients": 4, "train_size": 40, "rounds": 6, "workers": 1}
METHODS = ("fedprox", "ditto")

if __name__ == "__main__":
    spaces = {name: declared_space(name, lr=0.05) for name in METHODS}
    search = Search(SETTINGS, spaces, seeds=[1000], trials=6, strategy="halving")
    print(f"each method: {search.trials} trials, {search.cost} rounds")
    found = tune(search)  # scored on held-out training samples: test data stay unseen
    for name, best in found.best.items():
        print(f"{name}: {dict(best.values) or 'as it is'}")

    rows = [variant_of(f"{name} tuned", name, found.best[name].values) for name in METHODS]
    rows += [variant_of(name, name, {}) for name in METHODS]
    seeds = [0, 1, 2]  # none that was tuned on
    cells = planned_runs(SETTINGS, rows, seeds)
    results = run_cells(cells, jobs=2)
    scores = {row.name: [] for row in rows}
    for cell, result in zip(cells, results, strict=True):
        scores[cell.name].append(result.mean_test_accuracy)
    for name, row in standings(scores, baseline="fedprox").items():
        print(f"{name:<14} {row.mean:.3f}  {row.difference.mean:+.3f} vs fedprox")
