"""Whether any structure meets demands on its coalitions: one that does, or that there is none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coalitions.errors import InfeasibleError
from coalitions.game import BoolMatrix, IntVector
from solvers.sizes import Sizes

MOST_STEPS = 200_000
"""Placements tried before the question is left open: half a second or, with many nodes, more."""

STEPS_AT_ONCE = 500
"""Placements between two looks at the clock: each looks at all nodes, so 0.1 s with 300 of them."""

MOST_STARTS = 50
"""Nodes from which sets of nodes that must all be apart are grown."""


def first_structure(
    sizes: Sizes, most_steps: int = MOST_STEPS, expired: Callable[[], bool] = lambda: False
) -> IntVector | None:
    """Return a structure that meets the demands, None if `most_steps` placements leave that open.

    Nodes are placed one by one, the largest first, into every coalition there is and into one more,
    and never where the rest could not make up for it. The question is also left open when time has
    `expired`.

    Raises
    ------
    InfeasibleError
        There is none.

    Examples
    --------
    >>> first_structure(Sizes(np.array([2, 1, 1]), min_size=2, max_size=2, fewest=1, most=3))
    array([0, 1, 1])
    """
    crowd = _all_apart(sizes, expired)
    if crowd > sizes.most:
        raise InfeasibleError(
            f"{crowd} players must all be apart from each other (cannot_link), but there can be at"
            f" most {sizes.most} coalitions"
        )
    even = _evenly(sizes)
    if even is not None:
        return even
    search = _Placement(sizes)
    n = len(sizes.players)
    choice = [0] * n  # the coalition to try next for the node at each depth
    depth = steps = 0
    while depth >= 0:
        if depth == n:
            return search.labels.copy()
        if steps == most_steps:
            return None
        steps += 1
        if steps % STEPS_AT_ONCE == 0 and expired():
            return None
        node, block = search.order[depth], choice[depth]
        if block > min(search.n_blocks, sizes.most - 1):
            choice[depth] = 0
            depth -= 1
            if depth >= 0:
                search.remove(search.order[depth])
            continue
        choice[depth] += 1
        if search.accepts(node, block):
            search.place(node, block)
            if search.can_be_completed():
                depth += 1
            else:
                search.remove(node)
    raise InfeasibleError(
        "no structure meets the demands: every way to place the players was tried"
    )


def _evenly(sizes: Sizes) -> IntVector | None:
    """Return coalitions of nearly the same size where sizes are all that is demanded."""
    n = len(sizes.players)
    if len(sizes.loads) or sizes.roles or sizes.apart or (sizes.players != 1).any():
        return None
    labels = np.arange(n) * sizes.fewest // n
    return labels if sizes.met_by(labels) else None


class _Placement:
    """Some nodes placed in coalitions, and what the others can still bring."""

    def __init__(self, sizes: Sizes) -> None:
        n = len(sizes.players)
        self.sizes = sizes
        self.loads = sizes.loads.tolist() if len(sizes.loads) else [0] * n
        self.max_load = sizes.max_load if len(sizes.loads) else 1 << 62
        self.players = sizes.players.tolist()
        self.roles = [tuple(r for r, role in enumerate(sizes.roles) if i in role) for i in range(n)]
        self.rivals: list[set[int]] = [set() for _ in range(n)]
        for a, b in sizes.apart:
            self.rivals[a].add(b)
            self.rivals[b].add(a)
        self.order = sorted(
            range(n), key=lambda i: (-self.players[i], -len(self.rivals[i]), -self.loads[i], i)
        )
        self.labels = np.full(n, -1, np.int64)
        self.blocks: list[list[int]] = []
        self.left = set(range(n))

    @property
    def n_blocks(self) -> int:
        return len(self.blocks)

    def accepts(self, node: int, block: int) -> bool:
        """Tell whether a node may be in a coalition, one that is there or the next one."""
        members = self.blocks[block] if block < self.n_blocks else []
        return (
            not self.rivals[node].intersection(members)
            and self.players[node] + self._sum(self.players, members) <= self.sizes.max_size
            and self.loads[node] + self._sum(self.loads, members) <= self.max_load
        )

    def place(self, node: int, block: int) -> None:
        """Put a node into a coalition, one that is there or the next one."""
        if block == self.n_blocks:
            self.blocks.append([])
        self.blocks[block].append(node)
        self.labels[node] = block
        self.left.remove(node)

    def remove(self, node: int) -> None:
        """Take back the node that was placed last."""
        members = self.blocks[self.labels[node]]
        members.pop()
        if not members:
            self.blocks.pop()
        self.labels[node] = -1
        self.left.add(node)

    def can_be_completed(self) -> bool:
        """Tell whether those who are left could, one by one demand, make up what is missing."""
        sizes, missing = self.sizes, max(0, self.sizes.fewest - self.n_blocks)
        free = sizes.most - self.n_blocks
        in_blocks = [self._sum(self.players, members) for members in self.blocks]
        wanted = sum(max(0, sizes.min_size - count) for count in in_blocks)
        coming = self._sum(self.players, self.left)
        if len(self.left) < missing or coming < wanted + missing * sizes.min_size:
            return False
        if coming > sum(sizes.max_size - count for count in in_blocks) + free * sizes.max_size:
            return False
        carried = sum(self.max_load - self._sum(self.loads, members) for members in self.blocks)
        if self._sum(self.loads, self.left) > carried + free * self.max_load:
            return False
        for role in range(len(sizes.roles)):
            lacking = sum(all(role not in self.roles[i] for i in block) for block in self.blocks)
            if sum(role in self.roles[i] for i in self.left) < lacking + missing:
                return False
        return True

    @staticmethod
    def _sum(numbers: list[int], members: list[int] | set[int]) -> int:
        return sum(numbers[i] for i in members)


def _all_apart(sizes: Sizes, expired: Callable[[], bool]) -> int:
    """Return how many nodes, chosen greedily, must all be apart from each other."""
    if not sizes.apart:
        return 0
    n = len(sizes.players)
    apart: BoolMatrix = np.zeros((n, n), np.bool_)
    a, b = np.array(sizes.apart).T
    apart[a, b] = apart[b, a] = True
    rivals = apart.sum(axis=1)
    largest = 0
    for node in np.argsort(-rivals, kind="stable")[: min(MOST_STARTS, np.count_nonzero(rivals))]:
        candidates, size = np.flatnonzero(apart[node]), 1
        among = apart[np.ix_(candidates, candidates)]
        while len(candidates) and not (size % 10 == 0 and expired()):
            # Of those that leave the most candidates, the first.
            left = np.flatnonzero(among[among.sum(axis=1).argmax()])
            candidates, among, size = candidates[left], among[np.ix_(left, left)], size + 1
        largest = max(largest, size)
        if expired():
            break
    return largest
