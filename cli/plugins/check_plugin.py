"""`coalitions check-plugin`: check that plug-ins keep the contract of their kind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import isclass, isroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.terminal.output import Json, print_json, stdout
from coalitions.registry import Checks, Registry

_ESTIMATOR = "coalitions.values.estimator"
_PARTS = "learners.plugin_checks"


def check_plugin_command(
    module: Annotated[
        str,
        typer.Argument(help="A module, as in import: installed, or a file of the working folder."),
    ],
    json_output: Json = False,
) -> None:
    """Check that your own solvers, estimators, algorithms and other plug-ins keep their contracts.

    The exit code is 1 if a check fails.

    Example: coalitions check-plugin learners.algorithms.fedavg
    """
    from coalitions.errors import InvalidInputError
    from coalitions.plugins import import_plugins

    import_plugins([module], beside=Path.cwd())
    found = list(_registered(module))
    if not found:
        raise InvalidInputError(
            f"{module} registers nothing that can be checked; decorate a class or a function, for"
            ' example with @SOLVERS.register("name") or @ALGORITHMS.register("name")'
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


KINDS = {
    "solver": ("solvers.solver:SOLVERS", "solvers.solver_checks:solver_checks"),
    "estimator": (f"{_ESTIMATOR}:ESTIMATORS", f"{_ESTIMATOR}_checks:estimator_checks"),
    "semivalue estimator": (
        f"{_ESTIMATOR}:SEMIVALUE_ESTIMATORS",
        f"{_ESTIMATOR}_checks:semivalue_checks",
    ),
    "pair estimator": (f"{_ESTIMATOR}:PAIR_ESTIMATORS", f"{_ESTIMATOR}_checks:pair_checks"),
    "interaction estimator": (
        f"{_ESTIMATOR}:INTERACTION_ESTIMATORS",
        f"{_ESTIMATOR}_checks:interaction_checks",
    ),
    "index": ("coalitions.values.interaction_indices:INDICES", "coalitions.contracts:index_checks"),
    "synergy": ("coalitions.synergy:SYNERGIES", "coalitions.contracts:synergy_checks"),
    "data model": ("coalitions.data_models:DATA_MODELS", "coalitions.contracts:data_model_checks"),
    "notion": ("coalitions.structures.stability:NOTIONS", "coalitions.contracts:notion_checks"),
    "algorithm": ("learners.algorithm:ALGORITHMS", "learners.method_checks:algorithm_checks"),
    "data set": ("learners.data.dataset:DATASETS", f"{_PARTS}:data_set_checks"),
    "network": ("learners.models.network:MODELS", f"{_PARTS}:network_checks"),
    "loss": ("learners.measures.losses:LOSSES", f"{_PARTS}:loss_checks"),
    "metric": ("learners.measures.metrics:METRICS", f"{_PARTS}:metric_checks"),
    "aggregation": ("learners.server.aggregation:AGGREGATIONS", f"{_PARTS}:aggregation_checks"),
    "partition": ("learners.data.partitions:PARTITIONS", f"{_PARTS}:partition_checks"),
    "task": ("learners.task:TASKS", f"{_PARTS}:task_checks"),
    "engine": ("learners.server.engine:ENGINES", f"{_PARTS}:engine_checks"),
    "experiment": ("learners.reproduction.experiment:EXPERIMENTS", f"{_PARTS}:experiment_checks"),
}
"""The registry of each kind of plug-in and the function that gives its checks."""


def _registered(module: str) -> Iterator[tuple[str, str, Checks]]:
    """Give kind, name and checks of what the module has registered.

    A module that registers something has imported the registry, so no other registry is looked at:
    torch stays away from a plug-in that does without it.
    """
    for kind, (registry, checks) in KINDS.items():
        if registry.partition(":")[0] in sys.modules:
            for name in _of(module, resolved(registry)):
                yield kind, name, resolved(checks)(name)


def resolved(place: str) -> Any:  # noqa: ANN401 (a registry, or a function)
    """Return what stands at a place of `KINDS`."""
    home, _, name = place.partition(":")
    return getattr(import_module(home), name)


def _of(module: str, registry: Registry[Any]) -> list[str]:
    """Return the names of what the module, or a module in it, has registered."""
    return [name for name in registry if f"{_home(registry[name])}.".startswith(f"{module}.")]


def _home(plugin: Any) -> str:  # noqa: ANN401 (of any kind)
    """Return the module of a class or a function, or of the function in a task or a metric."""
    for part in (plugin, getattr(plugin, "run", None), getattr(plugin, "compute", None)):
        if isclass(part) or isroutine(part):
            return part.__module__
    return type(plugin).__module__


COMMANDS = {"check-plugin": check_plugin_command}
