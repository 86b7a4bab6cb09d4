r"""Proofs by prices, checked in exact integers: every coalition must be paid for.

In a leaf, players that are known to be together are one *group*. Sets of groups grow in a fixed
order, many at a time. With e(S) what a set S is worth beyond its prices, and g_j what group j would
add to that, no set that has S and up to q groups more is above

.. math:: e(S) + \sum_{\text{best } q} \max\Bigl(0,\ g_j +
   \tfrac12 \sum_{\text{best } q-1} \max(0, w_{jk})\Bigr),

so sets for which this is not above the price of a coalition grow no further. Where many groups must
be apart, the inner sum has only those that may join S as well, if that is less. Everything is
doubled, so that halves are whole.

Prices also close a branch of a proof by multipliers whose groups are few, and many of them in
conflict. The branch knows nodes to be together, and groups of them to be apart. The proof has
groups of its own, each inside one of the branch's: it compares more structures, so what it proves
holds there. With :math:`P_i` what group i can gain from those it is not known to be apart from, a
pair with :math:`w_{ij} \le -\min(P_i, P_j)` is in *conflict*: in a structure that has them together
one of the two loses nothing by being alone. So some best structure has them apart, and only
coalitions without a conflict must be paid for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from coalitions.game import BoolMatrix, FloatMatrix, IntMatrix, IntVector
from solvers.proofs._weights import Whole
from solvers.proofs.proof_demands import refuse_unless
from solvers.proofs.teams import MOST_BITS, Fork, GroupPrices, Leaf, TeamsProof

ROOM_BITS = 59
"""Weights and prices stay below 2^59 in sum, so that doubled ones and their sums fit in int64."""

NOTHING = -1
"""What a group promises that cannot be added: only what is positive counts."""

CELLS_AT_ONCE = 500_000
"""Sets times groups that are held at a time."""

MANY_CONFLICTS = 0.05
"""Part of the pairs apart from which on it pays to look who of a group's friends still fits."""

EXACT_IN_FLOATS = 1 << 53
"""Sums of whole numbers below this are exact in floats, which are multiplied faster."""

MOST_CELLS = 200_000_000_000
"""Sets times groups that are looked at in all. Proofs of our solver for 100 players take less than
a hundredth; without a limit a short file could ask for days."""


@dataclass(frozen=True, eq=False)
class CoalitionRules:
    """What every coalition of nodes must keep to.

    Attributes
    ----------
    fewest, most
        Number of coalitions.
    players, min_size, max_size
        Players behind each node, and in a coalition.
    loads, max_load
        Load of each node, and of a coalition; whole numbers.
    holds
        Whether a node has a role [n, roles].
    apart
        Whether two nodes must be apart [n, n].
    """

    fewest: int
    most: int
    players: IntVector
    min_size: int
    max_size: int
    loads: IntVector
    max_load: int
    holds: BoolMatrix
    apart: BoolMatrix


def check_teams(
    proof: TeamsProof, one: IntVector, two: IntVector, weights: Whole, rules: CoalitionRules
) -> None:
    """Refuse a proof unless no structure that keeps to the rules is worth more than its bound.

    Parameters
    ----------
    proof
        The proof. Its nodes go by their places.
    one, two, weights
        Pairs of nodes with a weight, each once, and their whole numbers.
    rules
        The demands.

    Raises
    ------
    InvalidInputError
        The proof does not show it.
    """
    n = len(proof.nodes)
    refuse_unless(abs(proof.bits) <= MOST_BITS, f"prices are more than {MOST_BITS} bits finer")
    _check_tree(proof, n)
    matrix = np.zeros((n, n), np.int64)
    matrix[one, two] = matrix[two, one] = _trimmed(weights, proof.bits)
    budget = [MOST_CELLS]
    for leaf, together, apart in _leaves(proof):
        _check_prices(leaf, n)
        total = sum(leaf.prices.tolist()) + sum(leaf.triple_prices.tolist())
        total += max(rules.most * leaf.count_price, rules.fewest * leaf.count_price)
        proven = total >> proof.bits if proof.bits >= 0 else total << -proof.bits
        refuse_unless(proven <= proof.bound, "the prices of a leaf add up to more than its bound")
        _check_leaf(_Groups.of(leaf, matrix, rules, together, apart), budget)


def _check_tree(proof: TeamsProof, n: int) -> None:
    """Refuse what is no tree: each entry but the first is the case of one fork before it, once."""
    tree, named = proof.tree, []
    refuse_unless(tree, "it has no tree")
    for index, case in enumerate(tree):
        if isinstance(case, Fork):
            i, j = case.pair
            refuse_unless(0 <= i < n and 0 <= j < n and i != j, "a fork is on no pair")
            for number in (case.together, case.apart):
                refuse_unless(index < number < len(tree), "a fork has not its two cases")
                named.append(number)
    refuse_unless(len(set(named)) == len(named), "two forks lead to one case")
    refuse_unless(len(named) == len(tree) - 1, "no fork leads to a case")


def _leaves(
    proof: TeamsProof,
) -> Iterator[tuple[Leaf, list[tuple[int, int]], list[tuple[int, int]]]]:
    """Give each leaf with the pairs that are together, and apart, on the way to it."""
    together: list[tuple[int, int]] = []
    apart: list[tuple[int, int]] = []
    # A number is an entry to visit; a list is the one from which to take the last pair back.
    waiting: list[int | list[tuple[int, int]] | tuple[list[tuple[int, int]], int]] = [0]
    while waiting:
        step = waiting.pop()
        if isinstance(step, list):
            step.pop()
        elif isinstance(step, tuple):
            pairs, number = step
            case = proof.tree[number]
            assert isinstance(case, Fork)
            pairs.append(case.pair)
            waiting += [pairs, case.together if pairs is together else case.apart]
        else:
            case = proof.tree[step]
            if isinstance(case, Fork):
                waiting += [(apart, step), (together, step)]
            else:
                yield case, together, apart


def _trimmed(weights: Whole, bits: int) -> IntVector:
    """Return weights times 2^bits, rounded up, with the lowest raised until their sum fits.

    What is raised only asks for more, so a proof for it is one for the weights themselves. The
    weights of whoever made the proof fit, and it raised no more than this.
    """
    numbers = [
        int(weight) << bits if bits >= 0 else -(-int(weight) >> -bits)
        for weight in weights.tolist()
    ]
    room = 1 << ROOM_BITS
    refuse_unless(
        sum(number for number in numbers if number > 0) < room,
        "its unit is so fine that weights do not fit",
    )
    losses = [-number for number in numbers if number < 0]
    if sum(losses) > room:
        low, high = 0, room
        while low < high:
            middle = (low + high + 1) // 2
            if sum(min(loss, middle) for loss in losses) <= room:
                low = middle
            else:
                high = middle - 1
        numbers = [max(number, -low) for number in numbers]
    return np.array(numbers, np.int64)


def _check_prices(leaf: Leaf, n: int) -> None:
    refuse_unless(len(leaf.prices) == n, "a leaf has not a price for each node")
    prices = [*leaf.prices.tolist(), *leaf.triple_prices.tolist(), leaf.count_price]
    refuse_unless(
        sum(map(abs, prices)) <= 1 << (ROOM_BITS + 1), "the prices of a leaf are too large"
    )
    refuse_unless((leaf.triple_prices >= 0).all(), "the price of a triple is negative")
    triples = np.sort(leaf.triples, axis=1)
    refuse_unless(
        not len(triples)
        or (triples.min() >= 0 and triples.max() < n and (triples[:, :-1] < triples[:, 1:]).all()),
        "a triple is not three different nodes",
    )


@dataclass(frozen=True, eq=False)
class _Groups:
    """The groups of a leaf that some coalition can hold, in the order in which sets grow.

    Attributes
    ----------
    own
        Twice what a group is worth by itself beyond its prices.
    between
        Twice what two groups are worth together.
    half
        For each number t of others, what a group can have with its best t, once [g, t].
    friends
        What two groups can gain together, once [g, g]; None where few groups must be apart.
    players, loads, holds, apart
        As in `CoalitionRules`, for groups.
    counts, triple_prices
        How many nodes of a triple a group has [g, triples], and twice the prices.
    price
        Twice the price of a coalition.
    """

    own: IntVector
    between: IntMatrix
    half: IntMatrix
    friends: FloatMatrix | None
    players: IntVector
    loads: IntVector
    holds: BoolMatrix
    apart: BoolMatrix
    counts: IntMatrix
    triple_prices: IntVector
    price: int
    rules: CoalitionRules

    @classmethod
    def of(
        cls,
        leaf: Leaf,
        matrix: IntMatrix,
        rules: CoalitionRules,
        together: list[tuple[int, int]],
        apart: list[tuple[int, int]],
    ) -> _Groups:
        n = len(matrix)
        group = np.arange(n)
        for a, b in together:
            group[group == group[b]] = group[a]
        member = (group == np.unique(group)[:, None]).astype(np.int64)
        forbidden = rules.apart.copy()
        for a, b in apart:
            forbidden[a, b] = forbidden[b, a] = True
        clash = (member @ forbidden.astype(np.int64) @ member.T) > 0
        worth = member @ matrix @ member.T
        players, loads = member @ rules.players, member @ rules.loads
        own = worth.diagonal() - 2 * (member @ leaf.prices)
        between = 2 * worth
        between[clash] = 0
        np.fill_diagonal(between, 0)
        # Whatever no coalition can hold is not there.
        there = (players <= rules.max_size) & (loads <= rules.max_load) & ~clash.diagonal()
        friends = -np.sort(-np.maximum(between[there][:, there] // 2, 0), axis=1)
        half = np.concatenate((np.zeros((len(friends), 1), np.int64), friends.cumsum(axis=1)), 1)
        counts = np.zeros((n, len(leaf.triples)), np.int64)
        counts[leaf.triples, np.arange(len(leaf.triples))[:, None]] = 1
        # The best first: what is left for later is soon too little.
        order = np.flatnonzero(there)
        most = min(len(order), rules.max_size)
        rank = np.argsort(-(own[there] + half[:, most - 1] if most else own[there]), kind="stable")
        order, half = order[rank], half[rank]
        shared = np.maximum(between[np.ix_(order, order)] // 2, 0)
        many = np.count_nonzero(clash) > MANY_CONFLICTS * clash.size
        sharp = many and shared.sum() < EXACT_IN_FLOATS
        return cls(
            own=own[order],
            between=between[np.ix_(order, order)],
            half=half,
            friends=shared.astype(np.float64) if sharp else None,
            players=players[order],
            loads=loads[order],
            holds=(member @ rules.holds.astype(np.int64) > 0)[order],
            apart=clash[np.ix_(order, order)],
            counts=(member @ counts)[order],
            triple_prices=2 * leaf.triple_prices,
            price=2 * leaf.count_price,
            rules=rules,
        )

    def paid(self, members: IntMatrix) -> IntVector:
        """Return twice what sets of groups pay for triples."""
        if not len(self.triple_prices):
            return np.zeros(len(members), np.int64)
        inside = self.counts[members].sum(axis=1) >= 2
        paid: IntVector = inside.astype(np.int64) @ self.triple_prices
        return paid


@dataclass(frozen=True, eq=False)
class _Sets:
    """Sets of groups that may grow.

    Attributes
    ----------
    members
        The groups of each [m, depth].
    worth
        Twice what each is worth beyond the prices of nodes.
    gains
        Twice what each group would add to that [m, g].
    fits
        Which groups may be added [m, g]: later ones that the rules allow.
    """

    members: IntMatrix
    worth: IntVector
    gains: IntMatrix
    fits: BoolMatrix


def _check_leaf(groups: _Groups, budget: list[int]) -> None:
    """Refuse a leaf in which a coalition is worth more than its prices."""
    g = len(groups.own)
    if not g:
        return
    nobody = _Sets(
        np.zeros((1, 0), np.int64),
        np.zeros(1, np.int64),
        groups.own[None, :],
        np.ones((1, g), np.bool_),
    )
    growing = [_grown(groups, nobody, budget)]
    while growing:
        sets = next(growing[-1], None)
        if sets is None:
            growing.pop()
        else:
            growing.append(_grown(groups, sets, budget))


def _grown(groups: _Groups, sets: _Sets, budget: list[int]) -> Iterator[_Sets]:
    """Give the sets with one group more that may still grow; refuse what is not paid for."""
    rules, g, depth = groups.rules, len(groups.own), sets.members.shape[1]
    at_once = max(1, CELLS_AT_ONCE // (g + len(groups.triple_prices)))
    room = _places(groups, depth)
    more = _places(groups, depth + 1)
    promise = _promise(groups, sets, room)
    best = sets.worth - groups.paid(sets.members) + _best(promise, room - 1)
    rows, news = np.nonzero(sets.fits & (best[:, None] + promise > groups.price))
    for first in range(0, len(rows), at_once):
        row, new = rows[first : first + at_once], news[first : first + at_once]
        budget[0] -= len(row) * (g + len(groups.triple_prices))
        refuse_unless(budget[0] > 0, "it takes too long to check")
        members = np.concatenate((sets.members[row], new[:, None]), axis=1)
        worth = sets.worth[row] + sets.gains[row, new]
        excess = worth - groups.paid(members) - groups.price
        players = groups.players[members].sum(axis=1)
        complete = (players >= rules.min_size) & np.all(groups.holds[members].any(axis=1), axis=1)
        refuse_unless(not (complete & (excess > 0)).any(), "a coalition is worth more than it pays")
        if more < 1:
            continue
        fits = sets.fits[row] & (np.arange(g) > new[:, None]) & ~groups.apart[new]
        fits &= groups.players <= (rules.max_size - players)[:, None]
        fits &= groups.loads <= (rules.max_load - groups.loads[members].sum(axis=1))[:, None]
        grown = _Sets(members, worth, sets.gains[row] + groups.between[new], fits)
        alive = np.flatnonzero(excess + _best(_promise(groups, grown, more), more) > 0)
        if len(alive):
            yield _Sets(members[alive], worth[alive], grown.gains[alive], fits[alive])


def _places(groups: _Groups, depth: int) -> int:
    """Return how many groups can at most be added to a set of `depth`."""
    least = np.sort(groups.players)
    taken = int(least[:depth].sum())
    return min(len(least) - depth, (groups.rules.max_size - taken) // int(least[0]))


def _promise(groups: _Groups, sets: _Sets, room: int) -> IntMatrix:
    """Return twice what each group can add at most, together with up to `room` − 1 others."""
    most = groups.half[:, max(0, room - 1)]
    if groups.friends is not None:
        most = np.minimum(most, (sets.fits @ groups.friends).astype(np.int64))
    return np.where(sets.fits, sets.gains + most, NOTHING)


def _best(promise: IntMatrix, many: int) -> IntVector:
    """Return the sum of the largest `many` positive numbers of each row."""
    g = promise.shape[1]
    if many < 1:
        return np.zeros(len(promise), np.int64)
    if many < g:
        promise = np.partition(promise, g - many, axis=1)[:, g - many :]
    best: IntVector = np.maximum(promise, 0).sum(axis=1)
    return best


# ----------------------------------------------------------------------------------------
# Prices that close a branch of a proof by multipliers.

MOST_GROUPS = 200
"""Most groups that prices may be for: ours are for 80 at most."""


def check_prices(
    prices: GroupPrices,
    known: IntVector,
    apart: IntVector,
    one: IntVector,
    two: IntVector,
    weights: Whole,
    bound: int,
    name: str,
) -> None:
    """Refuse prices unless no structure of a branch is worth more than a bound.

    Parameters
    ----------
    prices
        The proof.
    known
        Nodes that are together in the branch have the same number [n].
    apart
        Pairs of nodes that are apart there, and all that are together with them [k, 2].
    one, two, weights
        Pairs of nodes with a weight, each once, and their whole numbers.
    bound
        What is claimed.
    name
        What the part is called in a complaint.

    Raises
    ------
    InvalidInputError
        The proof does not show it.
    """
    group = _groups(prices, known, name)
    m = len(prices.groups)
    a, b = group[one], group[two]
    matrix = np.zeros((m, m), weights.dtype)
    np.add.at(matrix, (a, b), weights)
    inside = int(matrix.diagonal().sum())
    np.fill_diagonal(matrix, 0)
    matrix = matrix + matrix.T
    forbidden = _conflicts(matrix, _apart(prices, known, apart))
    first, second = np.nonzero(np.triu(~forbidden, 1))
    rules = CoalitionRules(
        fewest=1,
        most=m,
        players=np.ones(m, np.int64),
        min_size=1,
        max_size=m,
        loads=np.zeros(m, np.int64),
        max_load=0,
        holds=np.zeros((m, 0), np.bool_),
        apart=forbidden,
    )
    proof = TeamsProof(prices.groups, Fraction(1), prices.bits, bound - inside, prices.tree)
    check_teams(proof, first, second, matrix[first, second], rules)


def _groups(prices: GroupPrices, known: IntVector, name: str) -> IntVector:
    """Return the group of each node, if every node is in one and none goes too far."""
    refuse_unless(
        len(prices.groups) <= MOST_GROUPS, f"{name} has prices of more than {MOST_GROUPS} groups"
    )
    nodes = [node for members in prices.groups for node in members]
    refuse_unless(
        all(prices.groups) and sorted(nodes) == list(range(len(known))),
        f"{name} has prices of groups that are not all nodes, each once",
    )
    group = np.empty(len(known), np.int64)
    for number, members in enumerate(prices.groups):
        group[list(members)] = number
        refuse_unless(
            len(set(known[list(members)].tolist())) == 1,
            f"{name} has a price of nodes that need not be together",
        )
    return group


def _apart(prices: GroupPrices, known: IntVector, apart: IntVector) -> BoolMatrix:
    """Return which groups are known to be apart [m, m]."""
    names, numbers = np.unique(known, return_inverse=True)
    between = np.zeros((len(names), len(names)), np.bool_)
    between[numbers[apart[:, 0]], numbers[apart[:, 1]]] = True
    of = numbers[[members[0] for members in prices.groups]]
    found: BoolMatrix = (between | between.T)[np.ix_(of, of)]
    return found


def _conflicts(matrix: Whole, apart: BoolMatrix) -> BoolMatrix:
    """Return the pairs that some best structure has apart, of those that keep to `apart`."""
    m = len(matrix)
    found = apart | np.eye(m, dtype=np.bool_)
    while True:
        gains = np.where(found, 0, np.maximum(matrix, 0)).sum(axis=1)
        least = np.minimum(gains[:, None], gains)
        more = (matrix <= -least).astype(np.bool_) & ~found
        if not more.any():
            np.fill_diagonal(found, False)
            return found
        # With these apart there is less to gain, so that others may follow.
        found |= more
