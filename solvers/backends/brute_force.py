"""All partitions, one after the other: the reference every other method is checked against."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from coalitions.errors import InfeasibleError, InvalidInputError, NoSolutionError
from coalitions.game import BoolVector, IntVector
from coalitions.graph import SynergyGraph, matrix_of_pairs
from solvers.demands import Sizes, first_structure
from solvers.optimality import rounded_up
from solvers.reductions import integer_weights
from solvers.solver import SOLVERS, Answer, Limits, Solver

MAX_PLAYERS = 12
"""12 players have 4 213 597 partitions; each further player multiplies that by about six."""

DIGIT_BITS = 40
"""Sums of 66 numbers of 40 bits, and what is carried, fit in int64."""

AT_ONCE = 100_000
"""Structures that grow, or whose exact values are held, between two looks at the clock."""

Labels = np.ndarray[tuple[int, int], np.dtype[np.int8]]


@SOLVERS.register("brute-force")
@dataclass(frozen=True)
class BruteForce(Solver):
    """Values every partition; for tests and tiny graphs."""

    @property
    def takes_sizes(self) -> bool:
        """Whatever is enumerated can be counted."""
        return True

    def search(
        self,
        graph: SynergyGraph,
        *,
        limits: Limits,
        warm_start: IntVector | None = None,
        sizes: Sizes | None = None,
    ) -> Answer:
        """Grow all restricted-growth strings by one player at a time, with their values."""
        n = graph.n_players
        if n > MAX_PLAYERS:
            raise InvalidInputError(
                f"brute-force takes at most {MAX_PLAYERS} players, but there are {n};"
                " use the solver branch-and-cut"
            )
        # Whole numbers add up without roundings.
        i, j, weight = graph.edges
        scaled = integer_weights(weight)
        matrix = matrix_of_pairs(n, i, j, scaled.integers)
        labels = np.zeros((1, 1), np.int8)
        values = np.zeros(1, np.int64)
        for player in range(1, n):
            grown = []
            for first in range(0, len(labels), AT_ONCE):
                if first and limits.expired:
                    return _unfinished(graph, labels, values, warm_start, sizes)
                some = slice(first, first + AT_ONCE)
                grown.append(_grown(labels[some], values[some], matrix[player, :player]))
            labels = np.concatenate([each[0] for each in grown])
            values = np.concatenate([each[1] for each in grown])
        if sizes is not None:
            allowed = _allowed(labels, sizes)
            if not allowed.any():
                first_structure(sizes)  # it says why, where that is plain
                raise InfeasibleError("no structure meets the demands")
            labels, values = labels[allowed], values[allowed]
        # On a grid nearby values may change places: those that may be the best are added exactly.
        off = sum(
            (
                abs(Fraction(w) - scaled.unit * k)
                for w, k in zip(weight.tolist(), scaled.integers.tolist(), strict=True)
            ),
            Fraction(0),
        )
        near = np.flatnonzero(values >= int(values.max()) - 2 * math.ceil(off / scaled.unit))
        if not off:
            near = near[:1]
        best, value = _best(labels, near, graph)
        return Answer(labels[best].astype(np.int64), rounded_up(value), {"partitions": len(values)})


def _grown(labels: Labels, values: IntVector, weights: IntVector) -> tuple[Labels, IntVector]:
    """Return the structures with one more player, and their values."""
    # It may join any of the blocks used so far, or open the next one.
    n_blocks = labels.max(axis=1) + 1
    choices = n_blocks + 1
    parent = np.repeat(np.arange(len(labels)), choices)
    start = np.repeat(np.cumsum(choices) - choices, choices)
    block = (np.arange(len(parent)) - start).astype(np.int8)
    joined = labels[parent] == block[:, None]
    longer: Labels = np.concatenate((labels[parent], block[:, None]), axis=1)
    return longer, values[parent] + joined @ weights


def _unfinished(
    graph: SynergyGraph,
    labels: Labels,
    values: IntVector,
    start: IntVector | None,
    sizes: Sizes | None,
) -> Answer:
    """Return the answer where time was up when structures of the first players were known.

    With sizes that is any structure that meets them, else the best of these, the others alone.
    """
    bound = graph.positive_weight
    if sizes is not None:
        found = start if start is not None and sizes.met_by(start) else first_structure(sizes)
        if found is None:
            raise NoSolutionError("no structure was found that meets the demands in the time given")
        return Answer(found, bound, {"partitions": len(values)})
    first = labels[int(values.argmax())].astype(np.int64)
    best = np.concatenate((first, np.arange(len(first), graph.n_players)))
    i, j, weight = graph.edges
    if start is not None:
        best = max(start, best, key=lambda each: float(weight[each[i] == each[j]].sum()))
    return Answer(best, bound, {"partitions": len(values)})


def _best(labels: Labels, candidates: IntVector, graph: SynergyGraph) -> tuple[int, Fraction]:
    """Return which of some structures is worth most, and how much, without any rounding.

    Floats are whole multiples of a power of two. Their digits to the base 2^40 are added column by
    column, and carried at the end.
    """
    i, j, weight = graph.edges
    exact = [Fraction(w) for w in weight.tolist()]
    denominator = max((w.denominator for w in exact), default=1)  # powers of two
    whole = [int(w * denominator) for w in exact]
    n_digits = -(-max((abs(w).bit_length() for w in whole), default=0) // DIGIT_BITS) + 1
    digits = np.array([_digits(w, n_digits) for w in whole], np.int64).reshape(-1, n_digits)
    found: list[tuple[int, int]] = []
    for first in range(0, len(candidates), AT_ONCE):
        some = candidates[first : first + AT_ONCE]
        total = (labels[some][:, i] == labels[some][:, j]) @ digits
        for place in range(n_digits - 1):
            total[:, place + 1] += total[:, place] >> DIGIT_BITS
            total[:, place] &= (1 << DIGIT_BITS) - 1
        left = np.arange(len(some))
        for place in reversed(range(n_digits)):
            left = left[total[left, place] == total[left, place].max()]
        sums = total[left[0]].tolist()
        worth = sum(digit << DIGIT_BITS * place for place, digit in enumerate(sums))
        found.append((worth, -int(some[left[0]])))
    worth, best = max(found)  # of equal ones the first
    return -best, Fraction(worth, denominator)


def _digits(number: int, n_digits: int) -> list[int]:
    """Return the digits of a number, lowest first, all with its sign."""
    sign, size = (-1, -number) if number < 0 else (1, number)
    mask = (1 << DIGIT_BITS) - 1
    return [sign * (size >> DIGIT_BITS * place & mask) for place in range(n_digits)]


def _allowed(labels: Labels, sizes: Sizes) -> BoolVector:
    n_blocks = labels.max(axis=1) + 1
    allowed: BoolVector = (sizes.fewest <= n_blocks) & (n_blocks <= sizes.most)
    for block in range(labels.shape[1]):
        inside = labels == block
        players = inside @ sizes.players
        good = (sizes.min_size <= players) & (players <= sizes.max_size)
        if len(sizes.loads):
            good &= inside @ sizes.loads <= sizes.max_load
        for role in sizes.roles:
            good &= inside[:, list(role)].any(axis=1)
        allowed &= good | (players == 0)
    for a, b in sizes.apart:
        allowed &= labels[:, a] != labels[:, b]
    return allowed
