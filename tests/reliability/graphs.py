"""Small graphs of all kinds, one for each seed, with demands that can be met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from coalitions import SynergyGraph

FEWEST, MOST = 3, 12
"""Players of a graph: up to twelve, the exact optimum takes milliseconds."""

Rng = np.random.Generator
Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Case:
    """A graph and what is demanded of its structures.

    Attributes
    ----------
    seed
        Everything below follows from it.
    kind
        Which of `KINDS` the weights are.
    graph
        The graph.
    must_link, cannot_link
        Demands, at least one of them. Some structure meets them all.
    """

    seed: int
    kind: str
    graph: SynergyGraph
    must_link: Pairs
    cannot_link: Pairs

    @property
    def links(self) -> dict[str, Pairs]:
        """The demands as arguments of `solve`, `verify` and `exact_optimum`."""
        return {"must_link": self.must_link, "cannot_link": self.cannot_link}


def case(seed: int) -> Case:
    """Return the graph of a seed; kinds take turns."""
    rng = np.random.default_rng([20240607, seed])
    kind = tuple(KINDS)[seed % len(KINDS)]
    n = int(rng.integers(FEWEST, MOST + 1))
    weight = np.asarray(KINDS[kind](rng, n * (n - 1) // 2), float)
    i, j = np.triu_indices(n, 1)
    if rng.random() < 0.2:
        there = weight != 0
        graph = SynergyGraph.from_edges(n, i[there], j[there], weight[there])
    else:
        matrix = np.zeros((n, n))
        matrix[i, j] = matrix[j, i] = weight
        graph = SynergyGraph(matrix)
    return Case(seed, kind, graph, *_links(rng, n))


def _links(rng: Rng, n: int) -> tuple[Pairs, Pairs]:
    """Return pairs that a hidden structure has together, and pairs that it has apart."""
    hidden = rng.integers(0, int(rng.integers(2, n + 1)), n)
    pairs = [(a, b) if rng.random() < 0.5 else (b, a) for a in range(n) for b in range(a)]
    rng.shuffle(pairs)
    together = [pair for pair in pairs if hidden[pair[0]] == hidden[pair[1]]]
    apart = [pair for pair in pairs if hidden[pair[0]] != hidden[pair[1]]]
    few, more = rng.integers(0, 4, 2)
    must, cannot = together[:few], apart[:more]
    if not must and not cannot:
        must, cannot = together[:1], apart[:1]
    return tuple(must), tuple(cannot)


def _normal(mean: float, scale: float = 1.0) -> Callable[[Rng, int], np.ndarray]:
    return lambda rng, m: scale * rng.normal(mean, 1.0, m)


def _steps(most: int, parts: int, scale: float = 1.0) -> Callable[[Rng, int], np.ndarray]:
    """Return decimals k / parts, each the float nearest to it."""
    return lambda rng, m: scale * (rng.integers(-most, most + 1, m) / parts)


def _never(
    weights: Callable[[Rng, int], np.ndarray], exponents: tuple[int, ...]
) -> Callable[[Rng, int], np.ndarray]:
    """Return weights of which some are −10^k: how people write "never"."""

    def drawn(rng: Rng, m: int) -> np.ndarray:
        never = rng.random(m) < rng.choice([0.1, 0.3, 0.6])
        return np.where(never, -(10.0 ** rng.choice(exponents)), weights(rng, m))

    return drawn


def _planted(rng: Rng, m: int) -> np.ndarray:
    n = round((1 + (1 + 8 * m) ** 0.5) / 2)
    block = rng.integers(0, 3, n)
    i, j = np.triu_indices(n, 1)
    return np.where(block[i] == block[j], 0.3, -0.1) + rng.choice([0.1, 0.3]) * rng.normal(size=m)


def _sparse(rng: Rng, m: int) -> np.ndarray:
    return np.where(rng.random(m) < 0.3, rng.normal(0.2, 1.0, m), 0.0)


def _one_positive(rng: Rng, m: int) -> np.ndarray:
    weights = -np.abs(rng.normal(size=m))
    weights[rng.integers(m)] = rng.choice([1e-6, 0.5, 3.0])
    return weights


def _mixed(rng: Rng, m: int) -> np.ndarray:
    return rng.normal(-0.3, 1.0, m) * 10.0 ** rng.uniform(-6, 6, m)


KINDS: dict[str, Callable[[Rng, int], np.ndarray]] = {
    "floats, mean -1": _normal(-1.0),
    "floats, mean -1.5": _normal(-1.5),
    "floats, mean -2": _normal(-2.0),
    "floats, mean 0": _normal(0.0),
    "floats, mean 0.5": _normal(0.5),
    "tenths": _steps(20, 10),
    "hundredths": _steps(99, 100),
    "whole numbers": _steps(9, 1),
    "floats x 1e9": _normal(-0.3, 1e9),
    "whole numbers x 1e9": _steps(9, 1, 1e9),
    "floats x 1e-9": _normal(-0.3, 1e-9),
    "tenths x 1e-9": _steps(20, 10, 1e-9),
    "floats x 1e-11": _normal(-0.3, 1e-11),
    "whole, some -1e3 to -1e8": _never(_steps(5, 1), (3, 6, 8)),
    "whole, some -1e9 to -1e12": _never(_steps(5, 1), (9, 10, 11, 12)),
    "whole, some -1e13 to -1e16": _never(_steps(5, 1), (13, 14, 15, 16)),
    "floats, some -1e3 to -1e8": _never(_normal(-0.3), (3, 6, 8)),
    "floats, some -1e9 to -1e12": _never(_normal(-0.3), (9, 10, 11, 12)),
    "floats, some -1e13 to -1e16": _never(_normal(-0.3), (13, 14, 15, 16)),
    "tenths, some -1e9 to -1e16": _never(_steps(20, 10), (9, 11, 12, 14, 16)),
    "ties": _steps(1, 1),
    "planted": _planted,
    "sparse": _sparse,
    "all negative": lambda rng, m: -np.abs(rng.normal(size=m)),
    "all zero": lambda rng, m: np.zeros(m),
    "one positive": _one_positive,
    "mixed magnitudes": _mixed,
}
