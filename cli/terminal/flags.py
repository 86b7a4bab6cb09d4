"""Sentences of the Python interface, in the words of the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping

_BEFORE = r"(?<![\w./\\\"'`\-])(?<!\bits )"
_AFTER = r"(?![\w/\\\"'`\-]|\.\w)"
"""Not inside a path or a quotation: those are the user's own words; nor in what a file has of its
own."""


def in_flags(sentence: str, flags: Mapping[str, str]) -> str:
    """Return a sentence with flags for the arguments that it names.

    A name of one word may be a word of the sentence, so it is changed only where it cannot be.

    Examples
    --------
    >>> flags = {"max_size": "--max-size", "gap": "--gap", "missing": "--missing"}
    >>> in_flags("max_size is 0; it must be at least 1", flags)
    '--max-size is 0; it must be at least 1'
    >>> in_flags("a gap remains: missing=0 fills it", flags)
    'a gap remains: --missing 0 fills it'
    >>> in_flags("the wish (gap) is too large", flags)
    'the wish (--gap) is too large'
    """
    for name, flag in sorted(flags.items(), key=lambda item: -len(item[0])):
        sentence = re.sub(rf"{_BEFORE}{name}=(?=\S)", f"{flag} ", sentence)
        if "_" in name:
            sentence = re.sub(rf"{_BEFORE}{name}{_AFTER}", flag, sentence)
        else:
            sentence = re.sub(rf"(^|: |; )({name})(?= is )", rf"\1{flag}", sentence)
            sentence = re.sub(rf"(?<=\bthe wish ){re.escape(f'({name})')}", f"({flag})", sentence)
            sentence = re.sub(rf"(?<=\bwith ){name}(?= (full|rp-star)\b)", flag, sentence)
    return sentence
