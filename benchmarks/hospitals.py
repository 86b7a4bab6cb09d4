"""Three groups of hospitals in one CSV: who finds the groups, and what that is worth.

    python -m benchmarks.hospitals              # the table of docs/measured/data.md, 24 CPU-seconds
    python -m benchmarks.hospitals --seeds 0 --rows 60 --rounds 8
    python -m benchmarks.hospitals --plot docs/assets/hospitals.png      # the README's picture

Twelve hospitals have few patients each. Whether a patient dies follows a logistic model, whose
coefficients are the same in a group of four hospitals and at right angles to those of the other
groups. Nothing in the table says who is in which group.

Methods that validate (CFFL, pFedSV) train on half of a hospital's rows and validate on the rest.
So the others are there twice: with the same rows to train on, and with all of them.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from coalitions import CoalitionStructure, adjusted_rand_index
from learners import run
from learners.data.ground_truth import detection
from learners.experiments.paired_statistics import paired_difference
from learners.runs.reading import read_run

HOSPITALS, GROUPS, COLUMNS, TEST_ROWS = 12, 3, 20, 300
GROUP = np.arange(HOSPITALS) // (HOSPITALS // GROUPS)

METHODS = {
    "local": ("local", {}, 0.5),
    "local, all rows": ("local", {}, 0.0),
    "fedavg": ("fedavg", {}, 0.5),
    "fedavg, all rows": ("fedavg", {}, 0.0),
    "cffl": ("cffl", {"synergy": "cos", "cos_on": "validation"}, 0.5),
    "pfedsv": ("pfedsv", {"utility": "loss"}, 0.5),
}
"""Name in the table, algorithm, its options, and the share of rows for validation."""

SETTINGS = {
    "model": "linear", "metric": ["auroc"], "lr": 0.05, "local_epochs": 1, "batch_size": 10,
    "workers": 1,
}  # fmt: skip


def hospitals(seed, rows, strength=4.0):
    """Return the text of a CSV file with so many training rows for each hospital."""
    rng = np.random.default_rng(seed)
    directions, _ = np.linalg.qr(rng.normal(size=(COLUMNS, GROUPS)))
    lines = ["hospital,split," + ",".join(f"x{k}" for k in range(COLUMNS)) + ",died"]
    for hospital, group in enumerate(GROUP):
        x = rng.normal(size=(rows + TEST_ROWS, COLUMNS))
        chance = 1 / (1 + np.exp(-strength * x @ directions[:, group]))
        died = rng.random(len(x)) < chance
        for number, (values, outcome) in enumerate(zip(x, died, strict=True)):
            part = "train" if number < rows else "test"
            numbers = ",".join(f"{value:.5f}" for value in values)
            lines.append(f"hospital {hospital + 1},{part},{numbers},{int(outcome)}")
    return "\n".join(lines)


def measured(name, table, rounds, seed, folder):
    """Return a method's AUROC, and how well it found the groups if it says anything of them."""
    algorithm, options, share = METHODS[name]
    asked = {"dataset": str(table), "target": "died", "client_column": "hospital"}
    asked |= {"algorithm": algorithm, "options": options, "validation_share": share}
    asked |= {"rounds": rounds, "evaluate_every": rounds, "seed": seed}
    result = run(SETTINGS | asked, folder, force=True)
    found = read_run(folder)
    together = np.equal.outer(GROUP, GROUP)
    index = relevant = None
    if found.structures:
        structure = CoalitionStructure.from_labels(found.structures[-1][1])
        index = adjusted_rand_index(structure, CoalitionStructure.from_labels(GROUP))
    elif "relevance" in found.arrays:
        relevant = detection(found.arrays["relevance"][-1], together)
    return result.metrics["metrics"]["auroc"]["mean"], index, relevant


def spoken(difference):
    return f"{difference.mean:+.4f} [{difference.low:+.4f}, {difference.high:+.4f}]"


def draw(scores, path):
    """Draw the mean of each method, with a point for each seed, from the least to the best."""
    from coalitions.drawing.pictures import new_figure, plain_style

    names = sorted(scores, key=lambda name: np.mean(scores[name]))
    with plain_style():
        figure = new_figure(7, 2.6)
        axes = figure.subplots()
        for place, name in enumerate(names):
            colour = "tab:blue" if name in ("cffl", "pfedsv") else "0.5"
            axes.plot(scores[name], [place] * len(scores[name]), "o", color=colour, alpha=0.5)
            axes.plot([np.mean(scores[name])], [place], "|", color=colour, markersize=22)
        axes.set_yticks(range(len(names)), names)
        axes.set_xlabel("AUROC: a point for each seed, a line at the mean")
        figure.savefig(path, dpi=110)


def main(seeds, rows, rounds, methods, plot):
    start = time.process_time()
    scores, found = {}, {}
    with tempfile.TemporaryDirectory() as place:
        for seed in seeds:
            table = Path(place) / f"hospitals-{seed}.csv"
            table.write_text(hospitals(seed, rows))
            for name in methods:
                score, *groups = measured(name, table, rounds, seed, Path(place) / "run")
                scores.setdefault(name, []).append(score)
                found.setdefault(name, []).append(groups)
    print(
        f"{HOSPITALS} hospitals in {GROUPS} groups, {rows} training rows and {COLUMNS} columns"
        f" each, {rounds} rounds, seeds {', '.join(map(str, seeds))}\n"
    )
    others = [name for name in methods if name not in ("cffl", "pfedsv")]
    print("| method | AUROC | groups found (worst seed) |", *(f"above {o} |" for o in others))
    print("|---|---|---|" + "---|" * len(others))
    for name in methods:
        told = ""
        indices = [index for index, _ in found[name] if index is not None]
        pairs = [pair for _, pair in found[name] if pair is not None]
        if indices:
            told = f"index {np.mean(indices):.3f} ({min(indices):.3f})"
        if pairs:
            precise, recall = ([getattr(p, k) for p in pairs] for k in ("precision", "recall"))
            told = (
                f"precision {np.mean(precise):.3f} ({min(precise):.3f}),"
                f" recall {np.mean(recall):.3f} ({min(recall):.3f})"
            )
        gaps = []
        if name in ("cffl", "pfedsv") and len(seeds) > 1:
            gaps = [spoken(paired_difference(scores[name], scores[other])) for other in others]
        cells = gaps or [""] * len(others)
        print(f"| {name} | {np.mean(scores[name]):.4f} | {told} |", *(f"{c} |" for c in cells))
    print(f"\n{time.process_time() - start:.0f} CPU-seconds")
    if plot:
        draw(scores, plot)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="200,201,202,203,204")
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--methods", default=";".join(METHODS))
    parser.add_argument("--plot", help="a file for a picture")
    given = parser.parse_args()
    seeds = [int(seed) for seed in given.seeds.split(",")]
    main(seeds, given.rows, given.rounds, given.methods.split(";"), given.plot)
