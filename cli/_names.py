"""The names there are, for the shell to complete: read from the source, nothing is imported."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator
from pathlib import Path

_PLACES = {
    "algorithms": ("ALGORITHMS", "learners.algorithms"),
    "aggregations": ("AGGREGATIONS", "learners.aggregation"),
    "datasets": ("DATASETS", "learners.data.sources"),
    "models": ("MODELS", "learners.models"),
    "solvers": ("SOLVERS", "solvers"),
    "estimators": ("ESTIMATORS", "coalitions.estimators"),
}
"""Registries, and where their entries stand; nobody knows those of plugins before the import."""


def registered(kind: str) -> list[str]:
    """Return the registered names of a kind, in alphabetical order.

    Examples
    --------
    >>> registered("aggregations")[:3]
    ['geometric-median', 'krum', 'mean']
    """
    registry, place = _PLACES[kind]
    pattern = re.compile(rf"^@{registry}\.register\(\s*\"([^\"]+)\"", re.MULTILINE)
    return sorted({name for file in _files(place) for name in pattern.findall(file.read_text())})


def completion(kind: str) -> Callable[[str], list[str]]:
    """Return what completes a name of a kind for the shell."""

    def complete(incomplete: str) -> list[str]:
        extra = ["auto"] if kind in ("models", "solvers", "estimators") else []
        return [name for name in extra + registered(kind) if name.startswith(incomplete)]

    return complete


def _files(place: str) -> Iterator[Path]:
    spec = importlib.util.find_spec(place)
    assert spec is not None
    if spec.submodule_search_locations is None:
        assert spec.origin is not None
        yield Path(spec.origin)
    for folder in spec.submodule_search_locations or ():
        yield from Path(folder).rglob("*.py")
