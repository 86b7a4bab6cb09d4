"""Speeches of ten speakers for a model of characters: written by a small grammar, seeded."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from learners.data.dataset import DATASETS, DataSet, Table, TableSet
from learners.data.kinds import Targets
from learners.settings.seeding import generator

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
