"""What `--help` shows: commands in groups, and options that fit a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
from typer.core import TyperCommand

GROUPS = {
    "Teams and graphs": ["solve", "verify", "explain", "what-if", "stability"],
    "Shares": ["shapley", "value"],
    "Federations": [
        "run", "resume", "predict", "show", "report", "datasets", "algorithms", "options",
        "attack", "deploy",
    ],
    "Experiments": ["compare", "tune", "reproduce"],
    "System": ["list", "solvers", "warm-up", "check-plugin"],
}  # fmt: skip
"""The commands that `coalitions --help` shows in each group, in this order."""

PANELS = {
    "Reading the file": ["format", "file_format", "symmetrise", "missing", "threshold"],
    "Demands": [
        "must_link", "cannot_link", "n_groups", "min_size", "max_size", "weights", "max_weight",
        "at_least_one_of", "together", "apart",
    ],
    "Search": [
        "solver", "formulation", "time_limit", "gap", "warm_start", "n_best", "all_optimal",
        "canonical", "threads",
    ],
    "Value": [
        "concept", "method", "budget", "target_error", "alpha", "beta", "structure", "links",
        "index", "order",
    ],
    "A table of data": ["target", "model", "units", "test_share", "metric"],
    "Result": [
        "output", "plot", "certificate", "out", "force", "resume", "log", "json_output", "quiet",
        "verbose",
    ],
}  # fmt: skip
"""Where the options of a long help page stand, if they do not say it themselves."""

_LONG = 12
"""Options from which a page has panels."""

_WIDEST = 8
"""Columns of the longest placeholder: with a flag of 19 it leaves 44 for the text, of 80."""

_SHORT = {"integer": "N", "float": "NUMBER", "path": "PATH"}
"""Placeholders by type; everything else is TEXT."""


def group_of(command: str) -> str:
    """Return the group of a command.

    Examples
    --------
    >>> group_of("tune")
    'Experiments'
    """
    return next((group for group, commands in GROUPS.items() if command in commands), "More")


def in_order(command: str) -> tuple[int, int]:
    """Return the sort key of a command in the list of commands."""
    for place, commands in enumerate(GROUPS.values()):
        if command in commands:
            return place, commands.index(command)
    return len(GROUPS), 0


def summary(function: Callable[..., None]) -> Callable[[], None]:
    """Return what the list of commands shows of one: to make out its flags would take time."""

    def summarised() -> None: ...

    summarised.__doc__ = function.__doc__
    return summarised


class Command(TyperCommand):
    """A command whose help leaves most of the width to the text."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help page."""
        from typer import rich_utils

        rich_utils.STYLE_OPTIONS_TABLE_PADDING = (0, 1, 0, 0)  # type: ignore[assignment]
        parameters = self.get_params(ctx)
        for parameter in parameters:
            _narrow(parameter)
        if len(parameters) >= _LONG:
            _put_in_panels(parameters)
        super().format_help(ctx, formatter)


def _put_in_panels(parameters: Sequence[Any]) -> None:
    """Name the panel of each option that has none; a panel has at least two."""
    for panel, names in PANELS.items():
        inside = [each for each in parameters if _has_no_panel(each) and each.name in names]
        for parameter in inside if len(inside) > 1 else ():
            parameter.rich_help_panel = panel


def _has_no_panel(parameter: Any) -> bool:  # noqa: ANN401 (typer's option or argument)
    return isinstance(parameter, click.Option) and not getattr(parameter, "rich_help_panel", None)


def _narrow(parameter: Any) -> None:  # noqa: ANN401 (typer's option or argument)
    """Shorten what stands before an option's text; what no longer fits there goes into the text.

    The program ends after its help, so the parameter is never parsed again.
    """
    if isinstance(parameter, click.Argument):
        return
    named = parameter.metavar or ""
    kind = parameter.type.name.removesuffix(" range")
    if parameter.is_flag:
        named = ""
    elif not named or len(named) > _WIDEST:
        if named:
            choices = named.replace("|", ", ")  # a line cannot break at a bar
            parameter.help = f"{(parameter.help or '').rstrip()} [{choices}]"
        named = _SHORT.get(kind, "TEXT")
    parameter.metavar = named or None
    if isinstance(parameter.type, click.IntRange):
        parameter.type = click.INT
    elif isinstance(parameter.type, click.FloatRange):
        parameter.type = click.FLOAT
    aliases = [flag for flag in parameter.opts if flag.startswith("--")][1:]
    if aliases:
        parameter.help = f"{(parameter.help or '').rstrip()} Or {', '.join(aliases)}."
        parameter.opts = [flag for flag in parameter.opts if flag not in aliases]
    if parameter.secondary_opts:
        parameter.help = f"{(parameter.help or '').rstrip()} Or {parameter.secondary_opts[0]}."
        parameter.secondary_opts = []
