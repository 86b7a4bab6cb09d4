"""What people do, as a sensor of acceleration feels it: rendered, for want of one that ships."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from learners.data.dataset import DATASETS, DataSet, Table, TableSet
from learners.data.kinds import classes
from learners.settings.seeding import generator

STEPS, RATE = 50, 25.0
"""Samples of a window, and how many of them a second has."""

N_TRAIN, N_TEST = 800, 200

ACTIVITIES = ("resting", "walking", "running", "stairs", "cycling")
CADENCE = (0.0, 1.9, 2.8, 1.5, 1.2)
"""Steps or turns a second."""

PLACES = {
    "wrist": (0.05, 0.5, 1.3, 0.4, 0.1),
    "pocket": (0.02, 0.35, 0.9, 0.45, 0.5),
    "ankle": (0.02, 1.0, 1.8, 0.8, 0.9),
}
"""How hard each activity shakes a sensor there, in g."""


@DATASETS.register("wearables")
class Wearables(DataSet):
    """Two seconds of acceleration, 50×3, five activities at wrist, pocket and ankle; rendered here.

    Gravity pulls in a direction that differs from window to window; a movement has a cadence, two
    harmonics and a direction; the sensor adds noise. Nothing was recorded: it is a set to try
    methods for time series with, not to learn about people from.
    """

    partition = "domains"

    def load(self, folder: Path | None) -> dict[str, TableSet]:
        """Render all windows; they are always the same ones."""
        return {
            place: TableSet(
                train=rendered(place, N_TRAIN, generator(0, "wearables: train", place)),
                test=rendered(place, N_TEST, generator(0, "wearables: test", place)),
                targets=classes(len(ACTIVITIES), ACTIVITIES),
                n_classes=len(ACTIVITIES),
            )
            for place in PLACES
        }

    def origin(self, folder: Path | None) -> tuple[bool, str]:
        """Tell that it is made."""
        return True, "rendered here"


def rendered(place: str, n: int, rng: np.random.Generator) -> Table:
    """Return windows float32[n, STEPS, 3] in g, as many of each activity."""
    labels = np.arange(n) % len(ACTIVITIES)
    time = np.arange(STEPS) / RATE
    cadence = np.array(CADENCE)[labels] * rng.normal(1, 0.08, n)
    strength = np.array(PLACES[place])[labels] * rng.lognormal(0, 0.2, n)
    turns = 2 * np.pi * (cadence[:, None] * time + rng.random((n, 1)))
    # A step is sharper than a sine: harmonics say how sharp.
    sharpness = np.where(labels == ACTIVITIES.index("running"), 0.7, 0.4) * rng.random(n)
    wave = np.sin(turns) + sharpness[:, None] * np.sin(2 * turns + rng.random((n, 1)))
    down, along = _directions(place, n, rng), _directions(place[::-1], n, rng)
    noise = rng.normal(0, 0.08, (n, STEPS, 3))
    felt = down[:, None] + (strength[:, None] * wave)[..., None] * along[:, None] + noise
    order = rng.permutation(n)
    return Table(felt[order].astype(np.float32), labels[order], labels[order])


def _directions(name: str, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return unit vectors [n, 3] around the one that belongs to a name."""
    main = generator(0, "wearables: direction", name).normal(size=3)
    some = main / np.linalg.norm(main) + rng.normal(0, 0.35, (n, 3))
    return np.asarray(some / np.linalg.norm(some, axis=1, keepdims=True))
