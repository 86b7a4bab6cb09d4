"""Choose options with the same budget for two methods, then compare them on other seeds."""

from learners import compare, tune

SETTINGS = {"clients": 4, "train_size": 40, "rounds": 6, "workers": 1}
METHODS = ("fedprox", "ditto")

if __name__ == "__main__":
    # Models are scored on held-out training samples: test data stay unseen.
    found = tune(SETTINGS, algorithms=METHODS, trials=6, strategy="halving", seeds=[1000])
    print(f"each method: {found.search.trials} trials, {found.search.cost} rounds")
    print(found)

    rows = {
        f"{name} tuned": {"algorithm": name, **values} for name, values in found.settings.items()
    }
    comparison = compare(
        SETTINGS,
        algorithms=METHODS,
        variants=rows,
        seeds=[0, 1, 2],  # none that was tuned on
        baseline="fedprox",
        jobs=2,
    )
    print(comparison)  # or comparison.to_frame(), comparison.plot("differences.png")
    for name, gap in comparison.differences.items():
        print(f"{name:<14} {gap.mean:+.3f} vs {comparison.baseline}")
