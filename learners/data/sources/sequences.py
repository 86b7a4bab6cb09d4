"""Generated sequences: speeches for a model of characters, and readings of acceleration sensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from learners.data.dataset import DATASETS, DataSet, Table, TableSet
from learners.data.kinds import Targets, classes
from learners.settings.seeding import generator

# ----------------------------------------------------------------------------------------
# Speeches of ten speakers for a model of characters: written by a small grammar, seeded.

ALPHABET = "\n !',.;?abcdefghijklmnopqrstuvwxyz"
LENGTH = 40
N_TRAIN, N_TEST = 120, 30
"""Windows of a speaker."""

WORDS = {
    "court": {
        "noun": "crown throne sword realm honour castle banner traitor army duke",
        "adjective": "royal noble false mighty ancient bloody loyal golden",
        "verb": "command banish crown betray conquer defend summon",
    },
    "garden": {
        "noun": "rose moon heart star kiss river tear summer nightingale dream",
        "adjective": "sweet gentle fair pale tender silver soft lovely",
        "verb": "love kiss adore follow forget beguile sing",
    },
    "tavern": {
        "noun": "ale goose purse knave cheese donkey barrel cook thief breeches",
        "adjective": "fat drunken merry rotten greasy cheap jolly hungry",
        "verb": "drink steal roast swallow cheat tickle pawn",
    },
}
"""What is spoken of where; between words is a space."""

FORMS = (
    "my {adjective} {noun}, i {verb} thee still.",
    "o {noun}, o {adjective} {noun}!",
    "who will {verb} the {noun} of this {noun}?",
    "then {verb} the {adjective} {noun}; or {verb} me.",
    "no {noun} is so {adjective} as the {noun}.",
    "i'll {verb} him with a {adjective} {noun}, sir!",
)

SPEAKERS = {
    "king": "court", "queen": "court", "duke": "court", "herald": "court",
    "juliet": "garden", "poet": "garden", "shepherd": "garden",
    "fool": "tavern", "cook": "tavern", "soldier": "tavern",
}  # fmt: skip


@DATASETS.register("speeches")
class Speeches(DataSet):
    """Lines of ten speakers in the manner of old plays, 40 characters at a time; generated here.

    No package that we install brings a play along. A grammar of six forms writes lines; kings,
    lovers and drunkards speak of different things, and everybody has favourite words and forms.
    A speaker is a domain, so ten clients are the ten speakers. To learn: the next character.
    """

    partition = "domains"

    def load(self, folder: Path | None) -> dict[str, TableSet]:
        """Write all speeches; they are always the same ones."""
        targets = Targets("next-token", len(ALPHABET), tuple(ALPHABET))
        return {
            speaker: TableSet(
                train=windows(spoken(speaker, "train", N_TRAIN * LENGTH + 1)),
                test=windows(spoken(speaker, "test", N_TEST * LENGTH + 1)),
                targets=targets,
                n_classes=1,
                codes=(len(ALPHABET),),
            )
            for speaker in SPEAKERS
        }

    def origin(self, folder: Path | None) -> tuple[bool, str]:
        """Tell that it is made."""
        return True, "generated here"


def spoken(speaker: str, part: str, length: int) -> str:
    r"""Return so many characters of a speaker's lines.

    Examples
    --------
    >>> spoken("king", "train", 30)
    'o throne, o loyal throne!\nmy l'
    """
    words = {kind: some.split(" ") for kind, some in WORDS[SPEAKERS[speaker]].items()}
    taste = generator(0, "speeches: taste", speaker)
    liked = {kind: taste.dirichlet(np.full(len(some), 0.5)) for kind, some in words.items()}
    forms = taste.dirichlet(np.full(len(FORMS), 1.0))
    rng = generator(0, "speeches", speaker, part)
    text = ""
    while len(text) < length:
        line = FORMS[rng.choice(len(FORMS), p=forms)]
        for kind, some in words.items():
            while f"{{{kind}}}" in line:
                word = some[rng.choice(len(some), p=liked[kind])]
                line = line.replace(f"{{{kind}}}", word, 1)
        text += line + "\n"
    return text[:length]


def windows(text: str) -> Table:
    """Return codes int64[N, LENGTH] of characters, and those of the characters after them."""
    codes = np.array([ALPHABET.index(character) for character in text], dtype=np.int64)
    n = (len(codes) - 1) // LENGTH
    inputs, after = (codes[k : k + n * LENGTH].reshape(n, LENGTH) for k in (0, 1))
    return Table(inputs, after, np.zeros(n, dtype=np.int64))


# ----------------------------------------------------------------------------------------
# What people do, as a sensor of acceleration feels it: rendered, for want of one that ships.

STEPS, RATE = 50, 25.0
"""Samples of a window, and how many of them a second has."""

TRAINING_WINDOWS, TEST_WINDOWS = 800, 200

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
                train=rendered(place, TRAINING_WINDOWS, generator(0, "wearables: train", place)),
                test=rendered(place, TEST_WINDOWS, generator(0, "wearables: test", place)),
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
