"""`coalitions check-plugin`: hold a module of the user's against what every plug-in promises."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.terminal.output import Json, print_json, stdout
from coalitions.registry import Checks


def check_plugin_command(
    module: Annotated[
        str,
        typer.Argument(help="A module, as in import: installed, or a file of the working folder."),
    ],
    json_output: Json = False,
) -> None:
    """Check that your own solvers, estimators and algorithms keep their contracts.

    The exit code is 1 if a check fails.

    Example: coalitions check-plugin learners.algorithms.fedavg
    """
    from coalitions.errors import InvalidInputError
    from coalitions.plugins import import_plugins

    import_plugins([module], beside=Path.cwd())
    found = list(_registered(module))
    if not found:
        raise InvalidInputError(
            f"{module} registers no solver, estimator or algorithm; decorate a class with"
            ' @SOLVERS.register("name"), @ESTIMATORS.register("name") or'
            ' @ALGORITHMS.register("name")'
        )
    lines = []
    for kind, name, checks in found:
        for promise, fault_of in checks:
            fault = _fault(fault_of)
            lines.append({"kind": kind, "name": name, "check": promise, "fault": fault})
            if not json_output:
                stdout().print(
                    f"{kind} {name}: {promise}: {'ok' if fault is None else fault}",
                    markup=False,
                    highlight=False,
                )
    failed = sum(line["fault"] is not None for line in lines)
    if json_output:
        print_json({"module": module, "checks": lines, "ok": not failed})
    else:
        stdout().print(f"{len(lines) - failed} of {len(lines)} checks passed", highlight=False)
    if failed:
        raise typer.Exit(1)


def _fault(fault_of: Callable[[], str | None]) -> str | None:
    try:
        return fault_of()
    except Exception as error:  # the user's code may fail in any way
        return f"{type(error).__name__}: {error}"


def _registered(module: str) -> Iterator[tuple[str, str, Checks]]:
    """Give kind, name and checks of what the module has registered."""
    from coalitions.values.estimator import ESTIMATORS
    from coalitions.values.estimator_checks import estimator_checks
    from solvers.solver import SOLVERS
    from solvers.solver_checks import solver_checks

    for name in _of(module, SOLVERS):
        yield "solver", name, solver_checks(name)
    for name in _of(module, ESTIMATORS):
        yield "estimator", name, estimator_checks(name)
    if "learners.algorithm" in sys.modules:  # whoever registers a method has imported it
        from learners.algorithm import ALGORITHMS
        from learners.contract import algorithm_checks

        for name in _of(module, ALGORITHMS):
            yield "algorithm", name, algorithm_checks(name)


def _of(module: str, registry: Any) -> list[str]:  # noqa: ANN401 (registries of several kinds)
    homes = {name: registry[name].__module__ for name in registry.names()}
    return [name for name, home in homes.items() if f"{home}.".startswith(f"{module}.")]


COMMANDS = {"check-plugin": check_plugin_command}
