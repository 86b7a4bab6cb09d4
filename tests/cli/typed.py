"""Commands as a user types them: in this process, which is quick, or in one of their own."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

import pytest

from cli.app import main
from coalitions.runtime import when_long
from tests.cli.said import but_for_compiling

COMMAND = Path(sys.executable).with_name("coalitions")


def typed(
    *arguments: object,
    stdin: str = "",
    cwd: Path | str = ".",
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command here: to start Python and load torch would take far longer than most do.

    What is read at the start of Python (locales, the module path) or concerns the process as a
    whole (signals, memory, which modules are loaded, plug-ins) needs `in_a_process`.
    """
    out, err, given = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in "123")
    given.write(stdin)
    given.seek(0)
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        enter(contextlib.chdir(cwd))
        enter(contextlib.redirect_stdout(out))
        enter(contextlib.redirect_stderr(err))
        enter(mock.patch.object(sys, "stdin", given))
        enter(mock.patch.object(sys, "argv", ["coalitions", *map(str, arguments)]))
        enter(mock.patch.object(sys, "path", list(sys.path)))
        enter(mock.patch.object(sys, "unraisablehook", sys.unraisablehook))
        enter(mock.patch.dict(os.environ, os.environ if env is None else env, clear=True))
        enter(warnings.catch_warnings())
        warnings.simplefilter("default")  # a user's warnings are no errors
        stack.callback(when_long, None)
        end = enter(pytest.raises(SystemExit))
        main()
    printed, said = ((each.seek(0), each.read())[1] for each in (out, err))
    return subprocess.CompletedProcess(arguments, end.value.code, printed, but_for_compiling(said))


def check_refused(done: subprocess.CompletedProcess[str], *named: str) -> None:
    """Check that a command refused its input as users rely on, and named what is wrong.

    What it says beyond that is its own affair; `test_sentences` has the sentences that matter.
    """
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("coalitions: ")
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for each in named:
        assert each in done.stderr


def in_a_process(
    *arguments: object, stdin: str | None = None, **options: object
) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, with the options of `subprocess.run`."""
    result = subprocess.run(
        [COMMAND, *map(str, arguments)], input=stdin, capture_output=True, text=True, **options
    )
    result.stderr = but_for_compiling(result.stderr)
    return result
