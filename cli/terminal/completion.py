"""Names read from the source: to list and complete them, and to know a misspelt one."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from pathlib import Path

import typer

from coalitions.registry import declared, installed_plugins, unknown_name

_PLACES = {
    "algorithms": ("ALGORITHMS", "learners.algorithms"),
    "aggregations": ("AGGREGATIONS", "learners.server.aggregation"),
    "data-models": ("DATA_MODELS", "coalitions.data_models"),
    "datasets": ("DATASETS", "learners.data.sources"),
    "experiments": ("EXPERIMENTS", "learners.reproduction.experiments"),
    "losses": ("LOSSES", "learners.measures.losses"),
    "metrics": ("METRICS", "learners.measures.metrics"),
    "models": ("MODELS", "learners.models"),
    "notions": ("NOTIONS", "coalitions.structures.stability"),
    "partitions": ("PARTITIONS", "learners.data.partitions"),
    "solvers": ("SOLVERS", "solvers"),
    "estimators": ("ESTIMATORS", "coalitions.values"),
    "semivalues": ("SEMIVALUE_ESTIMATORS", "coalitions.values"),
    "pairs": ("PAIR_ESTIMATORS", "coalitions.values"),
    "interactions": ("INTERACTION_ESTIMATORS", "coalitions.values"),
    "indices": ("INDICES", "coalitions.values.interaction_indices"),
    "synergies": ("SYNERGIES", "coalitions.synergy"),
}
"""Registries, and where their entries stand; nobody knows those of plugins before the import."""

UNLISTED = ("models", "metrics")
"""Kinds that no command lists; the help of their options does."""


def registered(kind: str) -> list[str]:
    """Return the registered names of a kind, in alphabetical order.

    Examples
    --------
    >>> registered("aggregations")[:3]
    ['geometric-median', 'krum', 'mean']
    """
    return list(declared(*_PLACES[kind]))


def kinds() -> list[str]:
    """Return what there are names of."""
    return sorted(_PLACES)


def summaries(kind: str) -> dict[str, str]:
    """Return the registered names of a kind, each with the first sentence of its docstring.

    Examples
    --------
    >>> summaries("data-models")["forest"]
    'Return a random forest'
    """
    return {
        name: first_sentence(ast.get_docstring(entry.definition) or "")
        for name, entry in declared(*_PLACES[kind]).items()
    }


def first_sentence(docstring: str) -> str:
    """Return the first line of a docstring, without its citation and its full stop."""
    line = docstring.strip().partition("\n")[0]
    return line.partition(" [")[0].removesuffix(".")


SPOKEN = {
    "algorithms": "algorithm",
    "datasets": "data set",
    "models": "model",
    "metrics": "metric",
}
"""What one of a kind is called, where looking it up loads torch."""


def check_names(names: Mapping[str, str], plugins: Collection[str] | None) -> None:
    """Refuse misspelt names, by kind, before torch is loaded to look them up.

    Whatever a plug-in may bring, or may be a path, is left to the registries.
    """
    if plugins or "torch" in sys.modules:
        return
    for kind, name in names.items():
        known = registered(kind)
        if name not in (*known, "auto") and re.fullmatch(r"[\w-]+", name):
            if Path(name).exists() or installed_plugins():
                return
            raise unknown_name(SPOKEN[kind], name, known)


def completion(kind: str, *, several: bool = False) -> Callable[[str], list[str]]:
    """Return what completes a name of a kind for the shell, or the last of several, with commas."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
        extra = ["auto"] if kind in ("models", "solvers", "estimators") else []
        names = [name for name in extra + registered(kind) if name.startswith(last)]
        return [f"{before}{comma}{name}" for name in names]

    return complete


def complete_option(context: typer.Context, incomplete: str) -> list[str]:
    """Return the options that --set can give the algorithm that was typed before it."""
    from learners.settings.declared_options import declared_methods

    method = declared_methods().get(context.params.get("algorithm") or "fedavg")
    names = [] if method is None else [f"{option.name}=" for option in fields(method)]
    return [name for name in names if name.startswith(incomplete)]
