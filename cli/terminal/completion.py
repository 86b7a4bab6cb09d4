"""The names there are, read from the source: to complete them, and to know a misspelt one."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

import typer

from coalitions.registry import installed_plugins, unknown_name

_PLACES = {
    "algorithms": ("ALGORITHMS", "learners.algorithms"),
    "aggregations": ("AGGREGATIONS", "learners.server.aggregation"),
    "data_models": ("DATA_MODELS", "coalitions.data_models"),
    "datasets": ("DATASETS", "learners.data.sources"),
    "experiments": ("EXPERIMENTS", "learners.reproduction.experiments"),
    "metrics": ("METRICS", "learners.measures.metrics"),
    "models": ("MODELS", "learners.models"),
    "solvers": ("SOLVERS", "solvers"),
    "estimators": ("ESTIMATORS", "coalitions.values"),
    "semivalues": ("SEMIVALUE_ESTIMATORS", "coalitions.values"),
    "pairs": ("PAIR_ESTIMATORS", "coalitions.values"),
    "interactions": ("INTERACTION_ESTIMATORS", "coalitions.values"),
    "indices": ("INDICES", "coalitions.values.interaction_indices"),
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
    registry, place = _PLACES[kind]
    pattern = re.compile(rf"^@{registry}\.register\(\s*\"([^\"]+)\"", re.MULTILINE)
    return sorted(
        {
            name
            for file in _files(place)
            for name in pattern.findall(file.read_text(encoding="utf-8"))
        }
    )


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
    algorithm = context.params.get("algorithm") or "fedavg"
    for file in _files("learners.algorithms"):
        text = file.read_text(encoding="utf-8")
        if f'@ALGORITHMS.register("{algorithm}")' in text:
            names = re.findall(r"^    (\w+): [^=\n]+ = option\(", text, re.MULTILINE)
            return [f"{name}=" for name in names if name.startswith(incomplete)]
    return []


def _files(place: str) -> Iterator[Path]:
    spec = importlib.util.find_spec(place)
    assert spec is not None
    if spec.submodule_search_locations is None:
        assert spec.origin is not None
        yield Path(spec.origin)
    for folder in spec.submodule_search_locations or ():
        yield from Path(folder).rglob("*.py")
