"""Flags that several commands share, and messages in the flags that were typed."""

from __future__ import annotations

import functools
import inspect
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cli.terminal.output import (
    WRITTEN,
    Plugin,
    Quiet,
    Verbose,
    check_written,
    loudness,
    stderr,
)
from coalitions.runtime import ready_seconds

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


def with_fixed(command: Command, about: str, **fixed: object) -> Command:
    """Return a command that is another one with some of its flags fixed, and so not there.

    Parameters
    ----------
    command
        The other one.
    about
        What its help says.
    fixed
        Values of the flags that are fixed.
    """
    own = inspect.signature(command, eval_str=True).parameters.values()
    parameters = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own if each.name not in fixed
    ]

    def shortened(**arguments: Any) -> None:  # noqa: ANN401 (what was typed)
        command(**arguments, **fixed)

    shortened.__doc__ = about
    shortened.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    shortened.__annotations__ = {each.name: each.annotation for each in parameters}
    return shortened


# ----------------------------------------------------------------------------------------
# Switches that every command has, whether it has a use for them of its own or not.

_SWITCHES = {"quiet": (Quiet, False), "verbose": (Verbose, False), "plugin": (Plugin, None)}


def with_switches(name: str, command: Command) -> Command:
    """Return a command that also takes --quiet, --verbose and --plugin, each with one meaning.

    A command that does more with one of them has it as an argument. `--json` is for the command
    alone, since it says what is printed. Files that the command would write are checked first.

    Parameters
    ----------
    name
        What the command is called.
    command
        It may have some of the switches already.
    """
    own = list(inspect.signature(command, eval_str=True).parameters.values())
    declared = {each.name for each in own}
    written = {
        each.name: f"--{each.name.replace('_', '-')}"
        for each in own
        if WRITTEN in getattr(each.annotation, "__metadata__", ())
    }
    more = [
        inspect.Parameter(
            switch, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )
        for switch, (annotation, default) in _SWITCHES.items()
        if switch not in declared
    ]

    @functools.wraps(command)
    def switched(**arguments: Any) -> None:  # noqa: ANN401 (what was typed)
        verbose = arguments["verbose"]
        loudness(arguments["quiet"], verbose)
        check_written(arguments, written)
        began = time.monotonic()
        command(**{each: value for each, value in arguments.items() if each in declared})
        if verbose and "verbose" not in declared:
            seconds = time.monotonic() - began
            stderr().print(
                f"{name}: {seconds:.3f} s, {ready_seconds():.3f} s of them to load and compile",
                soft_wrap=True,
            )

    parameters = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY) if more else each for each in own
    ]
    switched.__signature__ = inspect.Signature([*parameters, *more])  # type: ignore[attr-defined]
    switched.__annotations__ = {each.name: each.annotation for each in (*own, *more)}
    return switched
