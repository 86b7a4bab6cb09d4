"""The table of commands, and the one place where errors become exit codes.

Exit codes: 0 it ran; 1 it ran and failed, the demands cannot be met, or a claim is false; 2 bad
input, said in one sentence; 130 interrupted.
"""

from __future__ import annotations

import _thread
import errno
import importlib
import os
import pkgutil
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer

import cli.experiments
import cli.federation
import cli.games
import cli.plugins
from cli.terminal.flags import in_flags, with_switches
from cli.terminal.help import Command, group_of, in_order, summary
from cli.terminal.output import visible
from coalitions import __version__
from coalitions.runtime import when_long

HELP = ["-h", "--help"]

app = typer.Typer(
    name="coalitions",
    help="Find the best teams with a proof, share values fairly, and train personalised models.",
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": HELP},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"coalitions {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Find the best teams with a proof, share values fairly, and train personalised models."""


def _add_commands(typed: str | None) -> None:
    """Add the `COMMANDS` of every module in the rooms; a new file is found by itself.

    If a module has the name of the command that was typed, it is the only one that is loaded.
    """
    modules = {
        module.name: f"{room.__name__}.{module.name}"
        for room in (cli.games, cli.federation, cli.experiments, cli.plugins)
        for module in pkgutil.iter_modules(room.__path__)
        if not module.name.startswith("_")
    }
    app.registered_commands.clear()  # those of an earlier call of `main`
    wanted = (typed or "").replace("-", "_")
    commands: dict[str, Callable[..., None]] = {}
    for name in [wanted] if wanted in modules else modules:
        commands |= importlib.import_module(modules[name]).COMMANDS
    for name in sorted(commands, key=in_order):
        add = app.command(name, cls=Command, rich_help_panel=group_of(name))
        add(summary(commands[name]) if typed in HELP else with_switches(name, commands[name]))


def main() -> None:
    """Run the command line; every way to fail ends in a sentence and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a locale without UTF-8 must not end in a traceback
            stream.reconfigure(errors="replace")
    warnings.showwarning = _own_words(warnings.showwarning)
    sys.unraisablehook = _heard_again(sys.unraisablehook)
    odd = next((typed for typed in sys.argv[1:] if _unreadable(typed)), None)
    if odd is not None:
        sys.exit(_complain(f"the argument {odd[:60]!r} is not text that a system can take", 2))
    for name in ("NUMBA_CACHE_DIR", "NUMBA_CACHE_LOCATOR_CLASSES"):
        # A .numba_config.yaml in the working folder must not say where compiled code comes from;
        # an empty value is numba's default, and what the user has set stays.
        os.environ.setdefault(name, "")
    when_long(_say_what_takes_long)
    try:
        if len(sys.argv) == 1 and "_COALITIONS_COMPLETE" not in os.environ:  # not from the shell
            sys.argv.append("--help")
        _add_commands(sys.argv[1] if len(sys.argv) > 1 else None)
        code = _exit_code()
    except KeyboardInterrupt:  # while modules are loaded
        code = _complain("interrupted", 130)
    sys.exit(code)


def _say_what_takes_long() -> None:
    sys.stderr.write(
        "Compiling (first use on this machine, up to 30 s)…"
        " `coalitions warm-up` compiles everything at once.\n"
    )
    sys.stderr.flush()


def _heard_again(shown: Callable[[Any], object]) -> Callable[[Any], None]:
    """Return how to treat an error that nobody can catch: Ctrl-C comes again, a moment later.

    While kernels are compiled or loaded, C code calls Python and ignores what it raises.
    """

    def hook(unraisable: Any) -> None:  # noqa: ANN401 (the interpreter's own type)
        if unraisable.exc_type is KeyboardInterrupt:
            again = threading.Timer(0.05, _thread.interrupt_main)
            again.daemon = True
            again.start()
        else:
            shown(unraisable)

    return hook


def _unreadable(typed: str) -> bool:
    """Tell whether an argument could be no file's name: a shell gives none such, programs may."""
    try:
        return "\0" in typed or not isinstance(os.fsencode(typed), bytes)
    except UnicodeEncodeError:
        return True


def _exit_code() -> int:
    from coalitions.errors import BudgetError, CoalitionError, InvalidInputError, RefusedError
    from coalitions.extras import install_command
    from coalitions.files.writing import storage_error

    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except RefusedError as error:
        return _complain(_in_flags(error), 1)
    except (InvalidInputError, BudgetError) as error:
        return _complain(_in_flags(error), 2)
    except CoalitionError as error:
        return _complain(_in_flags(error), 1)
    except ModuleNotFoundError as error:
        command = install_command(error.name or "")
        if command is None:
            raise
        return _complain(f"this needs {error.name}, which is not installed: {command}", 2)
    except KeyboardInterrupt:
        return _complain("interrupted", 130)
    except BrokenPipeError:
        _close_output()  # the reader has enough
        return 0
    except MemoryError:
        return _complain("there is not enough memory for this", 1)
    except Exception as error:
        # The parser's word for Ctrl-C is Abort; inside a compiled function it is a SystemError.
        if type(error).__name__ == "Abort" or isinstance(error.__cause__, KeyboardInterrupt):
            return _complain("interrupted", 130)
        if hasattr(error, "format_message"):  # the parser's own complaints
            said = error.format_message()
            return _complain(said, 2) if said else 2  # without a command, help was all it said
        if isinstance(error, OSError):
            if error.errno == errno.ENAMETOOLONG:
                name = str(error.filename)
                return _complain(f"the file name {name[:40]}… is too long; give a shorter one", 2)
            told = storage_error(error, error.filename or "the output")
            if told is not None:
                _close_output()
                return _complain(told, 1)
        if os.environ.get("COALITIONS_DEBUG"):
            raise
        return _complain(
            f"Internal error ({type(error).__name__}: {error}). Please report it;"
            " COALITIONS_DEBUG=1 shows the traceback",
            1,
        )
    return code if isinstance(code, int) else 0


def _close_output() -> None:
    """Write what stdout still holds, or drop it if it cannot be written.

    Python would try once more at its end, and exit with 120.
    """
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _in_flags(error: Warning | Exception | str) -> str:
    """Return what an error or a warning says, in the flags of the command that was typed."""
    typed = sys.argv[1] if len(sys.argv) > 1 else ""
    command = getattr(typer.main.get_command(app), "commands", {}).get(typed)
    options = () if command is None else command.params
    flags = {
        option.name: option.opts[0]
        for option in options
        if option.name and option.opts[0].startswith("--")
    }
    return in_flags(str(error), flags)


def _own_words(shown: Callable[..., None]) -> Callable[..., None]:
    """Return how to show a warning: ours is a sentence, others are shown as they were."""
    from coalitions.errors import DamagedFileWarning, InputWarning

    def show(message: Warning | str, category: type[Warning], *more: Any, **named: Any) -> None:  # noqa: ANN401 (as it comes)
        if issubclass(category, DamagedFileWarning | InputWarning):
            _complain(_in_flags(message), 0)
        else:
            shown(message, category, *more, **named)

    return show


def _complain(message: object, code: int) -> int:
    text = visible(" ".join(str(message).split()))  # it may repeat what a file holds
    print(f"coalitions: {text}", file=sys.stderr)  # noqa: T201
    return code
