"""What commands print and write: text, tables, JSON, pictures."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coalitions.errors import InvalidInputError, shown
from coalitions.formatting import decimal, figure, fitting, visible, visible_lines
from coalitions.runtime import when_long

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from coalitions.results import PublicResult
    from coalitions.values.estimate import Estimate, Interactions

# ----------------------------------------------------------------------------------------
# Text and numbers as a terminal shows them.

__all__ = ["decimal", "figure", "fitting", "split_names", "visible", "visible_lines"]


def split_names(given: Sequence[str] | None, flag: str) -> list[str]:
    """Return the names that a flag was given: with commas, in several flags, or both.

    Examples
    --------
    >>> split_names(["local,fedavg", "ditto"], "--algorithms")
    ['local', 'fedavg', 'ditto']
    """
    names = [name.strip() for each in given or () for name in each.split(",") if name.strip()]
    if given and not names:
        raise InvalidInputError(f"{flag} is given without a name; give one, or several with commas")
    return names


# ----------------------------------------------------------------------------------------
# What commands share: options of the same meaning, JSON on stdout, everything else on stderr.

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document, nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print every step on stderr.")]
GraphFile = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="Synergy graph: .csv .tsv .xlsx .npy .npz .json .graphml .edges, or - with --format.",
    ),
]
GameFile = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="Synergy graph (.csv .tsv .xlsx .npy .npz .json .graphml .edges), or .json with the"
        " 2^n values of a game; - with --format.",
    ),
]
Seed = Annotated[int, typer.Option(help="Source of all randomness.", min=0)]
Format = Annotated[
    str | None, typer.Option("--format", help="Format of the file, for standard input (`-`).")
]
Symmetrise = Annotated[
    str | None,
    typer.Option(
        "--symmetrize",
        "--symmetrise",
        metavar="mean|sum|min|max",
        help="Make an asymmetric matrix symmetric: mean, sum, min or max of the two.",
    ),
]


def _threshold(typed: str | None) -> float | str | None:
    """Return the number or the word that was typed."""
    try:
        return typed if typed is None or typed == "mean" else float(typed)
    except ValueError:
        raise InvalidInputError(
            f"--threshold takes a number or mean; it got {shown(typed)}"
        ) from None


Threshold = Annotated[
    str | None,
    typer.Option(
        callback=_threshold,
        metavar="NUMBER|mean",
        help="Subtract a number from every pair, or the mean of all pairs; correlations and"
        " similarities need it.",
    ),
]

Missing = Annotated[
    float | None,
    typer.Option(metavar="NUMBER", help="Value to use for blank cells, for example 0."),
]


def _import_plugins(modules: list[str] | None) -> list[str]:
    """Import the user's modules; only a user who names one has the working folder searched."""
    modules = split_names(modules, "--plugin")
    if modules:
        from coalitions.plugins import import_plugins

        import_plugins(modules, beside=Path.cwd())
    return modules


Plugin = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        callback=_import_plugins,
        is_eager=True,
        metavar="MODULE,…",
        help="Import your own modules of solvers, algorithms, data sets …",
    ),
]


def loudness(quiet: bool, verbose: bool) -> None:
    """Refuse to be quiet and verbose at once; who is quiet does not say what takes long, either."""
    if quiet and verbose:
        raise InvalidInputError("--quiet and --verbose contradict each other: give one")
    if quiet:
        when_long(None)


def stdout() -> Console:
    """Return the console for results."""
    return _literal_console(stderr=False)


def stderr() -> Console:
    """Return the console for messages and progress."""
    return _literal_console(stderr=True)


def tell(line: str) -> None:
    """Say on stderr how a file was understood."""
    stderr().print(line, soft_wrap=True)


def say_loading(quiet: bool) -> None:
    """Say that PyTorch is loaded, which takes seconds, unless it is loaded or not installed."""
    if not quiet and "torch" not in sys.modules and find_spec("torch") is not None:
        stderr().print("Loading PyTorch…", style="dim")


WIDE = 10_000
"""Columns where there is no terminal."""


def _literal_console(*, stderr: bool) -> Console:
    """Return a console that shows every string as it is: no mark-up, no emoji, no escapes."""
    from rich.console import Console, ConsoleDimensions

    class Literal(Console):
        def render_str(self, text: str, **options: Any) -> Text:  # noqa: ANN401 (rich's own)
            return super().render_str(visible_lines(text), **options)

    console = Literal(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=False)
    if not stderr and not console.is_terminal and "COLUMNS" not in os.environ:
        console.size = ConsoleDimensions(WIDE, 25)  # a program reads it: a row is a line
    return console


# ----------------------------------------------------------------------------------------
# Files that commands write. A file is replaced, once the new one is complete; never one that the
# command reads, and never a folder.

WRITTEN = "a file that the command writes"
"""Stands in the annotation of an argument, so that `check_written` finds it."""

Output = Annotated[
    Path | None,
    WRITTEN,
    typer.Option(
        metavar="FILE.json|.csv|.xlsx|.md|.html",
        help="Write the result to a file as well; the ending says how.",
    ),
]


def check_written(typed: Mapping[str, object], written: Mapping[str, str]) -> None:
    """Refuse files that cannot be written, or that the command takes for something else as well.

    It is asked of every command before any work.

    Parameters
    ----------
    typed
        The arguments of the command.
    written
        The flags of those that are files to write.
    """
    others = [(name, each) for name, value in typed.items() for each in _paths(value)]
    for name, flag in written.items():
        path = typed.get(name)
        if not isinstance(path, Path):
            continue
        _check_writable(path, flag)
        for other, each in others:
            if other != name and _same_file(path, each, both_written=other in written):
                use = f"{written[other]} writes" if other in written else "the command reads"
                raise InvalidInputError(f"{flag}: {path} is what {use}; give another name")


def _paths(value: object) -> list[Path]:
    """Return what may be a file among the values of an argument."""
    each = value if isinstance(value, list | tuple) else [value]
    return [Path(one) for one in each if isinstance(one, str | Path)]


def _same_file(one: Path, other: Path, *, both_written: bool) -> bool:
    try:
        if one.exists():  # a device may be written twice
            return one.is_file() and other.exists() and one.samefile(other)
        return both_written and one.absolute() == other.absolute()
    except OSError:  # no name of a file
        return False


def _check_writable(path: Path, flag: str) -> None:
    folder = path.parent
    if path.is_dir():
        reason = "is a folder; give the name of a file"
    elif not folder.is_dir():
        reason = f"cannot be written: there is no folder {folder}"
    elif not os.access(path if path.exists() else folder, os.W_OK):
        reason = "cannot be written: permission denied"
    else:
        return
    raise InvalidInputError(f"{flag}: {path} {reason}")


def check_output(path: Path | None) -> None:
    """Refuse an ending that does not say what to write; asked before a long search."""
    if path is not None:
        from coalitions.files.result_files import check_result_path

        check_result_path(path)


def save_output(
    path: Path | None,
    tables: Mapping[str, PublicResult | Sequence[Mapping[str, object]]],
    document: Mapping[str, Any],
    *,
    title: str,
    said: str = "",
) -> None:
    """Write what was printed to a file, if there is one; see `write_tables`."""
    if path is not None:
        from coalitions.files.result_files import table_of, write_tables

        made = {name: table_of(each) for name, each in tables.items()}
        write_tables(path, made, document, title=title, said=said)


def print_json(document: Any) -> None:  # noqa: ANN401 (any JSON value)
    """Print a document as JSON."""
    from coalitions.files.opening import json_text

    typer.echo(json_text(document))


# ----------------------------------------------------------------------------------------
# `--plot` of values: bars with intervals, or a network of interactions.

Plot = Annotated[
    Path | None,
    WRITTEN,
    typer.Option(
        metavar="FILE.html|.png|.svg|.pdf",
        help="Draw the values as bars with 95 % intervals, interactions as a network.",
    ),
]


def check_plot(path: Path | None, *, network: bool = False) -> None:
    """Refuse a name under which nothing can be drawn; asked before a long run."""
    if path is not None:
        from coalitions.drawing.figures import check_values_path

        check_values_path(path, network=network)


def draw(values: Estimate | Interactions, path: Path | None) -> None:
    """Draw values if there is a path."""
    if path is not None:
        from coalitions.drawing.figures import draw_values

        draw_values(values, path)
