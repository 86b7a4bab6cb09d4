"""`coalitions list`: what there is of each kind, and whether it can be used here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from cli.plugins.check_plugin import KINDS, resolved
from cli.terminal.completion import first_sentence, kinds, summaries
from cli.terminal.output import Json, Plugin, print_json, stdout
from coalitions.errors import UnknownNameError, did_you_mean
from coalitions.extras import install_command
from coalitions.registry import installed_plugins

_PLUGIN_KINDS = {
    "algorithms": "algorithm",
    "aggregations": "aggregation",
    "data-models": "data model",
    "datasets": "data set",
    "estimators": "estimator",
    "experiments": "experiment",
    "indices": "index",
    "interactions": "interaction estimator",
    "losses": "loss",
    "metrics": "metric",
    "models": "network",
    "notions": "notion",
    "pairs": "pair estimator",
    "partitions": "partition",
    "semivalues": "semivalue estimator",
    "solvers": "solver",
    "synergies": "synergy",
}
"""What one of each kind is called in `check_plugin.KINDS`."""

_NEEDS = {"data-models": "sklearn"} | dict.fromkeys(
    ("algorithms", "aggregations", "experiments", "losses", "metrics", "models", "partitions"),
    "torch",
)
"""Packages without which nothing of a kind can be used."""


def list_command(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]",
            help=f"{', '.join(kinds())}. Without one, they are counted.",
            autocompletion=lambda incomplete: [k for k in kinds() if k.startswith(incomplete)],
        ),
    ] = None,
    json_output: Json = False,
    plugin: Plugin = None,
) -> None:
    """List all of a kind: its name, whether it is ready to use here, and what it is.

    Example: coalitions list solvers
    """
    if kind is not None and kind not in kinds():
        hint = did_you_mean(kind, kinds())
        raise UnknownNameError(
            f"there is no kind named {kind!r}; {hint}there are: {', '.join(kinds())}"
        )
    document: Mapping[str, Any] = (
        {each: len(_summaries(each, plugin)) for each in kinds()}
        if kind is None
        else _entries(kind, plugin)
    )
    if json_output:
        print_json(document)
        return
    from rich.table import Table

    headings = ("kind", "how many") if kind is None else ("name", "ready", "what")
    table = Table(*headings, box=None, pad_edge=False)
    for name, entry in document.items():
        if kind is None:
            table.add_row(name, str(entry))
        else:
            table.add_row(name, "yes" if entry["ready"] is True else entry["ready"], entry["what"])
    stdout().print(table)


def _entries(kind: str, plugins: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """Return of each name what it is, and whether it is ready: True, or what is missing."""
    ready: Mapping[str, object] = {}
    if kind == "solvers":
        from solvers import available

        ready = available()
    elif kind == "datasets":
        from learners.data.dataset import DATASETS
        from learners.data.files import data_folder

        here = {name: DATASETS[name]().origin(data_folder(None)) for name in DATASETS}
        ready = {name: found or f"not here: {origin}" for name, (found, origin) in here.items()}
    package = _NEEDS.get(kind)
    missing = package is not None and find_spec(package) is None
    usual = install_command(package) if package and missing else True
    return {
        name: {"what": what, "ready": ready.get(name, usual)}
        for name, what in _summaries(kind, plugins).items()
    }


def _summaries(kind: str, plugins: Sequence[str] | None) -> Mapping[str, str]:
    """Return each name with its first sentence; with those of plug-ins, where there are some."""
    if not plugins and not installed_plugins():
        return summaries(kind)
    registry = resolved(KINDS[_PLUGIN_KINDS[kind]][0])
    return {name: first_sentence(registry[name].__doc__ or "") for name in registry}


COMMANDS = {"list": list_command}
