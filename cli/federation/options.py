"""The federated methods there are, for commands that only tell about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import typer

from cli.terminal.completion import UNLISTED, completion, registered
from cli.terminal.output import Json, Plugin, print_json, stdout
from coalitions.errors import InvalidInputError
from coalitions.registry import installed_plugins, unknown_name
from learners.settings.config import RunConfig
from learners.settings.options import OBSERVABLES, Option, options_of, written


def known_methods(plugins: Sequence[str] | None) -> dict[str, type]:
    """Return the methods by name; where no plug-in may bring more, without loading torch.

    Parameters
    ----------
    plugins
        Modules that the user named.
    """
    if plugins or installed_plugins():
        from learners.algorithm import ALGORITHMS

        return {name: ALGORITHMS[name] for name in ALGORITHMS}
    from learners.settings.declared_options import declared_methods

    return dict(declared_methods())


# ----------------------------------------------------------------------------------------
# `coalitions options`: every setting of a run and every option of an algorithm, from the table.


def options_command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[run|ALGORITHM|all]",
            help="`run` for the settings of a run, an algorithm for its own options, or `all`.",
            autocompletion=completion("algorithms"),
        ),
    ] = "run",
    as_: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="table|markdown",
            help="What to print: a table, or a page as in the documentation.",
        ),
    ] = "table",
    json_output: Json = False,
    plugin: Plugin = None,
) -> None:
    """Explain every option: type, default, range and effect.

    Example: coalitions options pfedsv
    """
    if as_ not in ("table", "markdown"):
        raise InvalidInputError(f"--as is {as_!r}; it can be: table, markdown")
    tables = _tables(name, plugin)
    if json_output:
        print_json(
            {title: {row.name: row.document() for row in rows} for title, rows in tables.items()}
        )
    elif as_ == "markdown":
        typer.echo("\n".join(page(tables)))
    else:
        _print(tables)


def _tables(name: str, plugins: Sequence[str] | None) -> dict[str, list[Option]]:
    """Return the options to show, by who has them."""
    if name == "run":
        return {"run": options_of(RunConfig)}
    methods = known_methods(plugins)
    if name == "all":
        own = {each: options_of(method) for each, method in methods.items()}
        return {"run": options_of(RunConfig)} | own
    if name not in methods:
        raise unknown_name("algorithm", name, methods)
    return {name: options_of(methods[name])}


def _print(tables: Mapping[str, Sequence[Option]]) -> None:
    from rich.table import Table

    console = stdout()
    for title, rows in tables.items():
        if not rows:
            console.print(f"{title} has no options of its own")
            continue
        table = Table("option", "default", "can be", "what it does", box=None, pad_edge=False)
        table.columns[0].no_wrap = True
        for row in rows:
            cells = (row.name, _default(row), _domain(row), f"{row.help} {_condition(row)}".strip())
            table.add_row(*cells)
        if len(tables) > 1:
            console.print(f"\n{title}", style="bold")
        console.print(table)


def page(tables: Mapping[str, Sequence[Option]]) -> Iterator[str]:
    """Yield the lines of the reference."""
    yield "# Options"
    yield ""
    yield "Made by `coalitions options all --as markdown`; a test compares. At the prompt,"
    yield "`coalitions options` shows the settings of a run, `coalitions options NAME` those of an"
    yield "algorithm."
    for title, rows in tables.items():
        yield ""
        if title == "run":
            yield from _settings(rows)
            yield ""
            yield "## Options of the algorithms"
            yield ""
            yield "Given by `--set OPTION=VALUE`, or under `[options]` in a TOML file."
        elif rows:
            yield f"### {title}"
            yield ""
            yield from _markdown(rows)
        else:
            yield f"### {title}"
            yield ""
            yield "No options."


def _settings(rows: Sequence[Option]) -> Iterator[str]:
    yield "## Settings of a run"
    yield ""
    yield "In a TOML file they have these names; as flags of `coalitions run` and `coalitions"
    yield "compare` they have dashes: `--train-size 100`. Flags overrule the file. The flag for"
    yield "`plugins` is `--plugin`."
    for group in dict.fromkeys(row.group for row in rows):
        yield ""
        yield f"### {group}"
        yield ""
        yield from _markdown([row for row in rows if row.group == group])


def _markdown(rows: Sequence[Option]) -> Iterator[str]:
    yield "| option | type | default | range | what it does | what it changes |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        can_be = _domain(row) if row.range or row.choices or row.names in UNLISTED else ""
        cells = (
            f"`{row.name}`",
            row.document()["type"],
            _default(row),
            can_be,
            f"{row.help} {_condition(row)}".strip(),
            OBSERVABLES[row.changes] if row.changes else "",
        )
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(row: Option) -> str:
    if row.default is None or row.default == ():
        return row.unset or "none"
    return written(row.default)


def _domain(row: Option) -> str:
    """Return what an option can be: a range, a choice, names, or just its type."""
    if row.range is not None:
        return str(row.range)
    if row.names in UNLISTED:
        return ", ".join(registered(row.names))
    return row.document()["type"] if row.choices is None else ", ".join(row.choices)


def _condition(row: Option) -> str:
    needs = [
        f"{name} is {' or '.join(map(written, values))}"
        for name, values in row.document()["needs"].items()
    ]
    return f"Only if {' and '.join(needs)}." if needs else ""


COMMANDS = {"options": options_command}
