"""Heuristics under demands on coalitions: books in balance, demands met, nothing given away."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from coalitions import (
    CoalitionStructure,
    InfeasibleError,
    InvalidInputError,
    NoSolutionError,
    SynergyGraph,
)
from solvers import Limits, available, solve
from solvers.demands import Sizes, first_structure
from solvers.heuristics._sized_kernels import _strain_of_exchange
from solvers.heuristics.bounds import sized_bound
from solvers.heuristics.sized_search import SizedSearch, improved, repaired
from tests.reliability.exact import partitions

BOTH = pytest.mark.parametrize("name", ["greedy", "local-search"])


def random_matrix(rng, n):
    matrix = np.triu(rng.normal(0.1, 1.0, (n, n)).round(2), 1)
    return matrix + matrix.T


def teams_graph(n):
    return SynergyGraph(random_matrix(np.random.default_rng(n), n))


def random_sizes(rng, n):
    """Return demands of all kinds on n nodes; perhaps no structure meets them."""
    players = rng.integers(1, 3, n) if rng.random() < 0.5 else np.ones(n, np.int64)
    low = int(rng.integers(1, 4))
    fewest = int(rng.integers(1, n // 2 + 1))
    loads = rng.integers(0, 5, n) if rng.random() < 0.5 else np.empty(0, np.int64)
    roles = tuple(
        tuple(np.sort(rng.choice(n, int(rng.integers(1, n)), replace=False)).tolist())
        for _ in range(rng.integers(0, 3))
    )
    pairs = list(itertools.combinations(range(n), 2))
    apart = tuple(pairs[k] for k in rng.permutation(len(pairs))[: rng.integers(0, 4)])
    return Sizes(
        players,
        min_size=low,
        max_size=low + int(rng.integers(0, 4)),
        fewest=fewest,
        most=fewest + int(rng.integers(0, n - fewest + 1)),
        loads=loads,
        max_load=int(rng.integers(4, 10)) if len(loads) else 0,
        roles=roles,
        apart=apart,
    )


def strain(sizes, labels):
    """Return the strain of a structure, added up from its definition."""
    blocks = [np.flatnonzero(labels == c) for c in np.unique(labels)]
    total = max(0, sizes.fewest - len(blocks))
    for block in blocks:
        players = int(sizes.players[block].sum())
        total += max(0, sizes.min_size - players) + max(0, players - sizes.max_size)
        if len(sizes.loads) and (extra := int(sizes.loads[block].sum()) - sizes.max_load) > 0:
            total += 1 + 4 * extra // sizes.max_load
        total += sum(not set(block.tolist()) & set(role) for role in sizes.roles)
    return total + sum(labels[a] == labels[b] for a, b in set(sizes.apart))


def assert_books_balance(search):
    """Everything that is kept up to date equals what it would be if computed afresh."""
    teams, sizes, weights = search.teams, search.sizes, search.weights
    together = teams.slots[:, None] == teams.slots[None, :]
    assert teams.value[0] == pytest.approx((weights * together).sum() / 2, abs=1e-9)
    assert teams.strain[0] == strain(sizes, teams.slots)
    assert teams.used[0] == len(np.unique(teams.slots))
    k = len(teams.nodes)
    np.testing.assert_array_equal(teams.nodes, np.bincount(teams.slots, minlength=k))
    for c in range(k):
        block = np.flatnonzero(teams.slots == c)
        np.testing.assert_allclose(teams.gains[c], weights[:, block].sum(1), atol=1e-9)
        assert teams.players[c] == sizes.players[block].sum()
        ring, node = set(), teams.entry[c]
        while len(block) and node not in ring:
            ring.add(int(node))
            assert teams.before[teams.after[node]] == node
            node = teams.after[node]
        assert ring == set(block.tolist())


@pytest.mark.parametrize("seed", range(20))
def test_what_annealing_and_descent_keep_up_to_date_is_right(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 12))
    search = SizedSearch(random_matrix(rng, n), random_sizes(rng, n), seed)
    search.start_from(rng.integers(0, n, n))
    assert_books_balance(search)
    for step, _ in enumerate(search.cool(0.5, levels=5)):
        if step % 2:
            assert_books_balance(search)
    assert_books_balance(search)
    if search.found:
        assert search.sizes.met_by(search.teams.best_slots)


def test_the_strain_of_an_exchange_is_known_beforehand():
    rng = np.random.default_rng(7)
    for _ in range(200):
        n = int(rng.integers(4, 9))
        search = SizedSearch(random_matrix(rng, n), random_sizes(rng, n), 0)
        search.start_from(rng.integers(0, n, n))
        before = search.teams.slots.copy()
        i, j = rng.choice(n, 2, replace=False).tolist()
        if before[i] == before[j]:
            continue
        partner = j if rng.random() < 0.5 else -1
        said = _strain_of_exchange(search.rules, search.teams, i, partner, before[j])
        after = before.copy()
        after[i] = before[j]
        if partner >= 0:
            after[j] = before[i]
        assert said == strain(search.sizes, after) - strain(search.sizes, before)


def met(sizes):
    """Return the labels of all structures that meet demands."""
    return [labels for labels in partitions(len(sizes.players)) if sizes.met_by(labels)]


def test_a_first_structure_is_found_or_there_is_none():
    rng = np.random.default_rng(3)
    outcomes = []
    for _ in range(150):
        sizes = random_sizes(rng, int(rng.integers(2, 7)))
        there_is_one = bool(met(sizes))
        outcomes.append(there_is_one)
        if there_is_one:
            found = first_structure(sizes)
            assert found is not None
            assert sizes.met_by(found)
            weights = random_matrix(rng, len(found))
            assert sizes.met_by(repaired(weights, sizes, None))
        else:
            with pytest.raises(InfeasibleError):
                first_structure(sizes)
    assert 20 < sum(outcomes) < 130


def test_the_bound_of_best_partners_is_above_every_structure():
    rng = np.random.default_rng(5)
    for _ in range(60):
        n = int(rng.integers(2, 7))
        sizes, graph = (
            random_sizes(rng, n),
            SynergyGraph(random_matrix(rng, n) - 0.5 * (1 - np.eye(n))),
        )
        bound = sized_bound(graph, sizes, limits=Limits())
        for labels in met(sizes):
            assert graph.value(CoalitionStructure.from_labels(labels)) <= bound + 1e-12


@BOTH
def test_a_feasible_warm_start_is_never_lost(name):
    # Sixty players in teams of four: the structure that is offered must not be dropped.
    graph = teams_graph(60)
    start = solve(graph, "local-search", max_size=4, effort=0.2).structure
    warm = graph.value(start)
    solution = solve(graph, name, max_size=4, warm_start=start, time_limit=0.05)
    assert solution.value >= warm
    assert max(len(block) for block in solution.structure) <= 4


@pytest.mark.skipif(available()["highs"] is not True, reason="highs is not installed")
def test_a_back_end_is_never_below_its_warm_start_with_sizes():
    graph = teams_graph(30)
    start = solve(graph, "local-search", max_size=4, effort=0.2).structure
    solution = solve(
        graph, "highs", formulation="full", max_size=4, warm_start=start, time_limit=1.0
    )
    assert solution.value >= graph.value(start)


@pytest.mark.skipif(available()["highs"] is not True, reason="highs is not installed")
def test_a_back_end_begins_with_a_structure_of_its_own_where_sizes_are_demanded():
    # Before, 60 players in 2 s ended without any structure that meets the demands.
    graph = teams_graph(60)
    solution = solve(graph, "highs", formulation="full", max_size=4, time_limit=1.0)
    assert solution.value > 100.0


@BOTH
def test_an_infeasible_warm_start_is_repaired(name):
    graph = teams_graph(20)
    everybody = CoalitionStructure([range(20)])
    solution = solve(graph, name, min_size=3, max_size=5, n_groups=5, warm_start=everybody)
    assert sorted(map(len, solution.structure)) == sorted(
        len(block) for block in solution.structure if 3 <= len(block) <= 5
    )
    assert len(solution.structure) == 5


def test_local_search_finds_good_teams_in_little_time():
    # 127.78 is what column generation reaches; a greedy descent ends at 118.
    solve(teams_graph(8), "local-search", max_size=4)
    graph, began = teams_graph(60), time.process_time()
    solution = solve(graph, "local-search", max_size=4, effort=0.5)
    assert solution.value > 126.0
    assert time.process_time() - began < 10.0


@BOTH
def test_the_same_seed_gives_the_same_teams(name):
    graph = teams_graph(30)
    options = {"effort": 0.1} if name == "local-search" else {}
    one, two = (
        solve(graph, name, max_size=4, n_groups=(8, 10), seed=3, **options) for _ in range(2)
    )
    assert one.structure == two.structure


@BOTH
def test_every_demand_at_once_is_met(name):
    graph, loads = teams_graph(40), [1 + k % 4 for k in range(40)]
    leads = list(range(0, 40, 4))
    solution = solve(
        graph,
        name,
        n_groups=(8, 10),
        min_size=3,
        max_size=6,
        weights=loads,
        max_weight=13,
        at_least_one_of=[leads],
        must_link=[(1, 2), (2, 3)],
        cannot_link=[(0, 4), (5, 6)],
        **({"effort": 0.1} if name == "local-search" else {}),
    )
    labels = solution.structure.labels
    assert 8 <= len(solution.structure) <= 10
    for block in solution.structure:
        assert 3 <= len(block) <= 6
        assert sum(loads[player] for player in block) <= 13
        assert set(block) & set(leads)
    assert labels[1] == labels[2] == labels[3]
    assert labels[0] != labels[4]
    assert labels[5] != labels[6]


@BOTH
@pytest.mark.parametrize(
    ("demands", "words"),
    [
        ({"max_size": 3, "must_link": [(0, 1), (2, 3), (4, 5)], "min_size": 3}, "every way"),
        ({"n_groups": 2, "cannot_link": [(0, 1), (1, 2), (0, 2)]}, "3 players must all be apart"),
        ({"n_groups": (1, 2), "max_size": 2}, "make 3 to 6 coalitions"),
        ({"at_least_one_of": [[0, 1]], "max_size": 2}, "only 2 can have one of"),
        ({"weights": [1, 1, 1, 1, 1, 9], "max_weight": 8}, "the weight of"),
        ({"weights": [3] * 6, "max_weight": 5, "n_groups": 5}, "every way"),
    ],
)
def test_what_nobody_can_meet_is_said_in_a_sentence(name, demands, words):
    with pytest.raises(InfeasibleError, match=words):
        solve(teams_graph(6), name, **demands)


def test_what_is_neither_found_nor_refuted_is_called_neither(monkeypatch):
    # Six nodes of size 2 and teams of 3: there is none, but one step is too few to tell.
    import solvers.heuristics.sized_search as module

    monkeypatch.setattr(module, "first_structure", lambda sizes, **_: first_structure(sizes, 1))
    monkeypatch.setattr(module, "LEVELS", 2)
    sizes = Sizes(np.full(6, 2), min_size=3, max_size=3, fewest=4, most=4)
    with pytest.raises(NoSolutionError, match="nor a proof that there is none"):
        repaired(np.zeros((6, 6)), sizes, None)


def test_an_incumbent_is_improved_and_never_spoiled():
    rng = np.random.default_rng(0)
    weights = random_matrix(rng, 24)
    sizes = Sizes(np.ones(24, np.int64), min_size=2, max_size=4, fewest=6, most=12)
    start = np.arange(24) // 2
    together = start[:, None] == start[None, :]
    best = improved(weights, sizes, start)
    assert sizes.met_by(best)
    assert (weights * (best[:, None] == best[None, :])).sum() > (weights * together).sum()


def test_branch_and_cut_names_who_honours_sizes():
    with pytest.raises(InvalidInputError, match="use branch-and-price or local-search"):
        solve(teams_graph(9), "branch-and-cut", max_size=4)


@BOTH
def test_players_that_no_matrix_holds_are_refused_with_sizes(name):
    graph = SynergyGraph.from_edges(9000, [0, 1], [1, 2], [1.0, 2.0])
    with pytest.raises(InvalidInputError, match="at most 8192 players"):
        solve(graph, name, max_size=4)
