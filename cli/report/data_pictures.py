"""Pictures beside a report: how data is divided among clients, and what an attack recovers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from coalitions.drawing.pictures import picture, plain_style
from coalitions.errors import InvalidInputError
from coalitions.files.writing import atomic_write, write_whole
from learners.attacks.inversion import Inversion, attacked_pictures
from learners.data.client_data import FederatedData
from learners.data.partitions import Counts

# ----------------------------------------------------------------------------------------
# A picture of the split: who has how many training images of which label.

# Okabe and Ito's colours, told apart with any kind of colour vision.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#F0E442", "#000000")
POISONED = "#D55E00"
FORMATS = (".png", ".svg", ".pdf")


def label_counts(data: FederatedData) -> Counts:
    """Return the number of training images of every client and label, int64[clients, classes].

    Images set aside for validation are not counted; poisoned labels are counted as they stand.
    """
    return np.stack([data.targets.counts(c.train.targets).numpy() for c in data.clients])


@plain_style()
def draw_split(data: FederatedData, path: Path) -> None:
    """Write the picture to a .png, .svg or .pdf file: labels × clients, a dot's area is the count.

    Domains have colours; poisoned clients have a ring around their dots.
    """
    from matplotlib import rc_context
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure

    if path.suffix.lower() not in FORMATS:
        raise InvalidInputError(f"{path}: a picture ends in {', '.join(FORMATS)}")
    counts = label_counts(data)
    n_clients, n_classes = counts.shape
    if not n_classes:
        raise InvalidInputError(
            f"the picture shows who has which label, and {data.name} has none: it is a regression"
        )
    # 0.4 inch per dot up to a size that still prints; then the dots get smaller.
    width, height = (min(14.0, 1.8 + 0.4 * n) for n in (n_clients, n_classes))
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    largest = min(300.0, (60 * width / n_clients) ** 2, (60 * height / n_classes) ** 2)
    domains = list(dict.fromkeys(client.domain for client in data.clients))
    for number, domain in enumerate(domains):
        for poisoned in (False, True):
            members = [
                i
                for i, client in enumerate(data.clients)
                if client.domain == domain and client.poisoned == poisoned
            ]
            if not members:
                continue
            client, label = np.nonzero(counts[members])
            axes.scatter(
                np.array(members)[client],
                label,
                s=largest * counts[members][client, label] / max(1, counts.max()),
                color=COLOURS[number % len(COLOURS)],
                edgecolors=POISONED if poisoned else "none",
                linewidths=2 if poisoned else 0,
                label=", ".join(filter(None, [domain, "poisoned" if poisoned else ""])) or None,
            )
    axes.set(
        xlabel="client",
        ylabel="label",
        xlim=(-0.7, n_clients - 0.3),
        ylim=(-0.7, n_classes - 0.3),
    )
    axes.locator_params(integer=True)
    axes.set_axisbelow(True)
    axes.grid(color="0.92")
    figure.suptitle(
        f"{data.name}: training images (largest dot: {counts.max()})",
        x=0.02,
        horizontalalignment="left",
        fontsize="medium",
    )
    if axes.get_legend_handles_labels()[1]:
        legend = axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), frameon=False)
        for handle in legend.legend_handles:
            if isinstance(handle, PathCollection):
                handle.set_sizes([60])
    # No date and no random names in the file: the same split gives the same bytes.
    with rc_context({"svg.hashsalt": "split"}), atomic_write(path) as file:
        metadata = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        suffix = path.suffix.lower()
        figure.savefig(file, format=suffix[1:], dpi=150, metadata=metadata[suffix])


# ----------------------------------------------------------------------------------------
# The picture of an inversion as a file.


def draw_inversion(inversion: Inversion, path: Path) -> None:
    """Write the pictures as a PNG file."""
    figure = attacked_pictures(inversion.pictures, inversion.privacy.noise)
    write_whole(path, picture(figure, "png", dpi=120))
