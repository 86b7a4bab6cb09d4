"""Who does the arithmetic of a dual: compiled kernels, or NumPy where groups are few."""

from __future__ import annotations

from types import ModuleType
from typing import TypeAlias

from solvers.branch_and_cut.plain import FEW_GROUPS

Tools: TypeAlias = ModuleType
"""`kernels` or `plain`: the same functions with the same arguments."""


def tools_for(n_groups: int, *, hurry: bool) -> Tools:
    """Return what a search with so many groups at its root uses all the way down.

    Without a `hurry`, which is where the best structure is known or time is up, the search will be
    a long one, and worth a wait for kernels.
    """
    if hurry and n_groups <= FEW_GROUPS:
        from solvers.branch_and_cut.dual import plain

        return plain
    from solvers.branch_and_cut.dual import kernels

    return kernels
