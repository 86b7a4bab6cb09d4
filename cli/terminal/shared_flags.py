"""Flags that several commands have: written once, and given to a command by a decorator."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
