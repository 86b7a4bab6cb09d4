"""Figs. 8-10 of the pFedSV paper: parameters sent by each method for three networks.

Nothing is trained: the counts follow from the networks' sizes and a trace of k, which is that of
games that tell exactly who shares a label (10 clients, two labels each, 20 rounds). The classifier
is cut where the paper must have cut it: all layers after the convolutions.

    python -m benchmarks.traffic [--seeds N] [--figures DIR]    # fig-8.png, fig-8.svg …
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from learners.algorithms.pfedsv import PFedSV
from learners.data.clients import federated_data
from learners.data.ground_truth import label_overlap
from learners.models import build_model
from learners.reproduction.experiments.pfedsv_counts import (
    ModelSize,
    ideal_trace,
    predicted_traffic,
)
from learners.rows.parameters import Cut, Layout

NETWORKS: dict[str, tuple[str, tuple[int, int, int], int, Cut, float]] = {
    # figure: network, picture, classes, cut, the paper's share of the classifier
    "Fig. 8": ("lenet-5", (3, 32, 32), 10, "dense", 0.4957),
    "Fig. 9": ("resnet-34", (3, 32, 32), 1000, "dense", 0.023),
    "Fig. 10": ("vgg-19", (3, 32, 32), 1000, "dense", 0.8974),
}
METHODS = {
    "pfedsv": ("pfedsv", {"dynamic": False}),
    "pfedsv (C)": ("pfedsv", {"dynamic": False, "shared_extractor": True}),
    "pfedsv (D)": ("pfedsv", {}),
    "pfedsv (D+C)": ("pfedsv", {"shared_extractor": True}),
    "fedfomo": ("fedfomo", {"dynamic": False}),  # always its k models, too
    "fedamp": ("fedamp", {}),
    "fedavg": ("fedavg", {}),
}
ROUNDS, CLIENTS = 20, 10


def relevance(seed: int) -> np.ndarray:
    """Return who shares a label with whom, for the paper's random pairs of labels."""
    data = federated_data("digits", clients=CLIENTS, partition="pathological:2", seed=seed)
    counts = [np.bincount(each.train.targets, minlength=10) for each in data.clients]
    return np.asarray(label_overlap(np.stack(counts)), dtype=bool)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--figures", type=Path, help="folder for the bar charts")
    arguments = parser.parse_args()
    for figure, (name, shape, n_classes, cut, theirs) in NETWORKS.items():
        layout = Layout.of(build_model(name, shape=shape, n_classes=n_classes, seed=0))
        size = ModelSize.of(layout, cut)
        print(
            f"\n{figure}: {name}, {n_classes} classes, {size.whole:,} numbers; classifier"
            f" {size.classifier_share:.2%} ({ModelSize.of(layout).classifier_share:.2%} if only the"
            f" last layer), the paper says {theirs:.2%}"
        )
        print(f"{'':14}{'up':>16}{'down':>16}{'both / fedavg':>15}")
        bars: dict[str, float] = {}
        for label, (algorithm, options) in METHODS.items():
            ups, downs = [], []
            for seed in range(arguments.seeds):
                trace = ideal_trace(relevance(seed), ROUNDS, PFedSV(**options), seed=seed)
                up, down = predicted_traffic(
                    algorithm, size, trace, shared_extractor=options.get("shared_extractor", False)
                )
                ups.append(up.sum())
                downs.append(down.sum())
            one_model = 2 * ROUNDS * CLIENTS * size.whole
            bars[label] = float(np.mean(ups) + np.mean(downs))
            print(
                f"{label:14}{np.mean(ups):16,.0f}{np.mean(downs):16,.0f}"
                f"{bars[label] / one_model:15.3f}"
            )
        if arguments.figures:
            title = (
                f"{figure}: {name}, {n_classes} classes\nclassifier {size.classifier_share:.2%} of"
                f" the parameters (the paper: {theirs:.2%})"
            )
            draw(title, bars, arguments.figures / figure.lower().replace(". ", "-"))


def draw(title: str, bars: dict[str, float], path: Path) -> None:
    """Save a bar chart as PNG and SVG; FedAvg's traffic is a line to compare with."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path.parent.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    names = list(bars)[::-1]
    drawn = axes.barh(names, [bars[name] / 1e6 for name in names], color="#4477aa")
    axes.bar_label(drawn, [f"{bars[name] / bars['fedavg']:.2f} ×" for name in names], padding=3)
    axes.axvline(bars["fedavg"] / 1e6, color="0.3", linewidth=1, linestyle="--")
    axes.set_xlim(right=1.12 * max(bars.values()) / 1e6)
    axes.set_title(title, fontsize="medium")
    axes.set_xlabel(
        f"million parameters up and down, {CLIENTS} clients, {ROUNDS} rounds (× FedAvg)"
    )
    for ending in ("png", "svg"):
        metadata = {"Date": None} if ending == "svg" else {}
        figure.savefig(path.with_suffix(f".{ending}"), dpi=150, metadata=metadata)


if __name__ == "__main__":
    main()
