"""Domains: which client lives in which."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from coalitions.errors import InvalidInputError


def domain_of_clients(domains: Sequence[str], n_clients: int, layout: str = "") -> list[str]:
    """Return the domain of every client: blocks of equal size, or as `layout` says.

    Parameters
    ----------
    layout
        ``NAME=CLIENTS,…`` in the order of the clients; a domain may come more than once.

    Examples
    --------
    >>> domain_of_clients(["a", "b"], 5)
    ['a', 'a', 'a', 'b', 'b']
    >>> domain_of_clients(["a", "b"], 4, "b=1,a=2,b=1")
    ['b', 'a', 'a', 'b']
    """
    if not layout:
        blocks = np.array_split(np.arange(n_clients), len(domains))
        return [name for name, block in zip(domains, blocks, strict=True) for _ in block]
    assigned: list[str] = []
    for part in layout.split(","):
        match = re.fullmatch(r"(.+)=([0-9]+)", part)
        if match is None or match[1] not in domains:
            raise InvalidInputError(
                f"domains:NAME=CLIENTS,… takes the names {', '.join(domains)}, not {part!r}"
            )
        assigned += [match[1]] * int(match[2])
    if len(assigned) != n_clients:
        raise InvalidInputError(
            f"domains:{layout} places {len(assigned)} clients, but there are {n_clients}"
        )
    return assigned
