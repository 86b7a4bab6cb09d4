"""Demands on a structure, from flags and in words: who is kept together, who apart, what sizes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from coalitions.characters import composed, listed, players_by_name, quoted
from coalitions.errors import InvalidInputError

Pairs = Sequence[tuple[int, int]]

MOST_PAIRS = 3
"""So many pairs are named in a sentence; the others are counted."""


def names_in(group: str, labels: Sequence[str] = ()) -> list[str]:
    """Return the names in a list with commas; a name that has one itself stands in quotes.

    Where the list is one of players as it stands, quotes are part of their names.

    Examples
    --------
    >>> names_in("ann, bob"), names_in('"Smith, Ann",Bob')
    (['ann', 'bob'], ['Smith, Ann', 'Bob'])
    """
    import csv

    group = composed(group)
    plain = [name.strip() for name in group.split(",")]
    if '"' not in group or set(plain) <= set(labels):
        return plain
    try:
        return [name.strip() for row in csv.reader([group], skipinitialspace=True) for name in row]
    except csv.Error:  # a line end in a name
        return plain


def pairs_of(groups: list[str] | None, labels: Sequence[str], option: str) -> list[tuple[int, int]]:
    """Return all pairs of players in each comma-separated group of names."""
    pairs: list[tuple[int, int]] = []
    for group in groups or ():
        names = names_in(group, labels)
        if len(names) < 2:
            raise InvalidInputError(
                f"{option} takes two names or more, as in a,b; it got {group!r}"
            )
        pairs += itertools.combinations(players_by_name(names, labels, option), 2)
    return pairs


def structures_in_words(
    labels: Sequence[str],
    must_link: Pairs,
    cannot_link: Pairs,
    n_groups: int | Sequence[int] | None = None,
    min_size: int | None = None,
    max_size: int | None = None,
    weights: Mapping[str, float] | None = None,
    max_weight: float | None = None,
    at_least_one_of: Sequence[Sequence[str]] = (),
) -> str | None:
    """Return which structures meet the demands, in words, or None if all do.

    Examples
    --------
    >>> structures_in_words(["ann", "bob", "cleo"], [(1, 2)], [(0, 1)])
    'structures that keep ann and bob apart, and bob and cleo together'
    >>> structures_in_words(["ann", "bob", "cleo"], [], [], max_size=2)
    'structures with at most 2 players each'
    >>> structures_in_words(["ann", "bob"], [], [], n_groups=[1, 2], at_least_one_of=[["ann"]])
    'structures of 1 to 2 coalitions with one of ann in each'
    """
    words = "structures"
    if n_groups is not None:
        least, largest = (n_groups, n_groups) if isinstance(n_groups, int) else n_groups
        count = str(least) if least == largest else f"{least} to {largest}"
        words += f" of {count} {'coalition' if largest == 1 else 'coalitions'}"
    each = []
    if min_size is not None and max_size is not None:
        count = str(min_size) if min_size == max_size else f"{min_size} to {max_size}"
        each.append(f"{count} players each")
    elif min_size is not None:
        each.append(f"at least {min_size} players each")
    elif max_size is not None:
        each.append(f"at most {max_size} players each")
    if max_weight is not None:
        each.append(f"a weight of at most {max_weight:g} each")
    each += [f"one of {_listed(role)} in each" for role in at_least_one_of]
    if each:
        words += f" with {', '.join(each)}"
    kept = [
        f"{_named(pairs, labels)} {how}"
        for pairs, how in ((cannot_link, "apart"), (must_link, "together"))
        if pairs
    ]
    if kept:
        words += f" that keep {', and '.join(kept)}"
    return None if words == "structures" else words


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_PAIRS
    return listed(names[:MOST_PAIRS]) + (f" and {more} more" if more > 0 else "")


def _named(pairs: Pairs, labels: Sequence[str]) -> str:
    names = ", ".join(f"{quoted(labels[a])} and {quoted(labels[b])}" for a, b in pairs[:MOST_PAIRS])
    more = len(pairs) - MOST_PAIRS
    return names if more <= 0 else f"{names} and {more} more {'pair' if more == 1 else 'pairs'}"


def by_name(pairs: Pairs, labels: Sequence[str]) -> list[list[str]]:
    """Return pairs of players as pairs of names, as files have them."""
    return [[labels[a], labels[b]] for a, b in pairs]
