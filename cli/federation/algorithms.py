"""`coalitions algorithms`: which federated methods there are, and their options."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from cli.federation.options import known_methods
from cli.terminal.output import Json, Plugin, print_json, stdout


def algorithms_command(json_output: Json = False, plugin: Plugin = None) -> None:
    """List the federated methods and their options for --set.

    Example: coalitions algorithms --json
    """
    methods = {name: _described(method) for name, method in known_methods(plugin).items()}
    if json_output:
        print_json(methods)
        return
    from rich.table import Table

    table = Table("algorithm", "what it is", "options", box=None, pad_edge=False)
    for name, about in methods.items():
        options = " ".join(f"{option}={value}" for option, value in about["options"].items())
        table.add_row(name, about["summary"], options)
    stdout().print(table)


def _described(method: type) -> dict[str, Any]:
    first = (method.__doc__ or "").strip().splitlines()[0]
    options = {
        each.name: each.default if isinstance(each.default, (bool, int, float, str)) else None
        for each in fields(method)
    }
    return {"summary": first.split(" [")[0].rstrip("."), "options": options}


COMMANDS = {"algorithms": algorithms_command}
