"""Flags that several commands share, and messages in the flags that were typed."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# ----------------------------------------------------------------------------------------
# Sentences of the Python interface, in the words of the command line.

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


# ----------------------------------------------------------------------------------------
# Flags that several commands have: written once, and given to a command by a decorator.

Command = Callable[..., None]


def with_flags(
    argument: str,
    flags: Sequence[inspect.Parameter],
    gather: Callable[[Mapping[str, Any]], Any],
) -> Callable[[Command], Command]:
    """Return a decorator that puts flags in the place of one argument of a command.

    Parameters
    ----------
    argument
        The command's argument for all of the flags.
    flags
        A parameter for each flag, as typer reads them.
    gather
        Makes the argument of what was typed, by name.
    """

    def decorate(command: Command) -> Command:
        own = list(inspect.signature(command, eval_str=True).parameters.values())
        place = [each.name for each in own].index(argument)
        parameters = [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for each in (*own[:place], *flags, *own[place + 1 :])
        ]

        @functools.wraps(command)
        def decorated(*values: Any, **arguments: Any) -> None:  # noqa: ANN401 (what was typed)
            arguments |= zip((each.name for each in own), values, strict=False)
            typed = {flag.name: arguments.pop(flag.name, flag.default) for flag in flags}
            command(**{argument: gather(typed)}, **arguments)

        decorated.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        decorated.__annotations__ = {each.name: each.annotation for each in parameters}
        return decorated

    return decorate
