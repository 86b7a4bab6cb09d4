"""Explanations, by hand: what a player gives and gets, where else it could be, what is fragile."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings

from coalitions import CoalitionStructure, InfeasibleError, InvalidInputError, SynergyGraph, shapley
from solvers import explain, fragile, solve
from solvers.proofs.proof_demands import TeamDemands
from tests.reliability.exact import exact_value
from tests.solvers.alternatives.test_n_best import all_values, cases

# ann, bob and cleo: 4 + 3 + 1; dan and eve: 5; ann would get 2 with dan and −1 with eve.
TEAM = SynergyGraph(
    [
        [0, 4, 3, 2, -1],
        [4, 0, 1, -6, -6],
        [3, 1, 0, -6, -6],
        [2, -6, -6, 0, 5],
        [-1, -6, -6, 5, 0],
    ],
    labels=["ann", "bob", "cleo", "dan", "eve"],
)


def test_the_numbers_of_ann():
    why = explain(TEAM, solve(TEAM), "ann")
    assert why.coalition == (0, 1, 2)
    assert why.partners == ((1, 4.0), (2, 3.0))
    assert why.inside == 7.0
    assert why.share == 3.5
    assert why.best_alternative == (3, 4)
    assert why.loss == 7.0 - 1.0
    # ann and dan are apart by 6: ann joins dan and eve for 2 − 1 and leaves bob and cleo with 1.
    # Or dan comes over: 5 lost, and 2 − 6 − 6. Or ann and dan go off: 7 + 5 lost, 2 won.
    assert why.fragile[0].exact
    assert why.fragile[0].margin == min(margin for _, margin in by_hand(TEAM, 0))


def by_hand(graph, player):
    """Return the margins of a player's pairs from the values of all structures."""
    values = all_values(graph)
    best = max(values, key=values.get)
    for pair in itertools.combinations(range(graph.n_players), 2):
        if player is not None and player not in pair:
            continue
        together = best.labels[pair[0]] == best.labels[pair[1]]
        other_way = [
            value
            for structure, value in values.items()
            if (structure.labels[pair[0]] == structure.labels[pair[1]]) != together
        ]
        yield pair, values[best] - max(other_way)


def test_the_words_for_ann():
    text = explain(TEAM, solve(TEAM), "ann").text
    assert text.startswith("ann is with bob and cleo; together they are worth 8.")
    assert "ann gives 7 of it: bob 4 and cleo 3." in text
    assert "It gets 3.5" in text
    assert "best other place for ann is with dan and eve: the structure would lose 6." in text
    assert "most fragile pair is" in text
    assert "another structure would be better" in text


def test_a_structure_that_is_exactly_as_good_is_said_to_be():
    ties = SynergyGraph([[0, 0.3, 0.1], [0.3, 0, -5], [0.1, -5, 0]], labels=["a", "b", "c"])
    ties = ties.with_weights(np.array([0.1 + 0.2, 0.3, -5.0]))  # the same but for rounding
    for structure in ([[0, 1], [2]], [[0, 2], [1]]):
        text = explain(ties, CoalitionStructure(structure), "a").text
        assert "is exactly as good: `solve` with all_optimal lists all that are." in text
        assert "the structure would lose nothing" in text
    worse = explain(ties, CoalitionStructure([[0], [1], [2]]), "a").text
    assert "A structure that has a and b together is better, so this one is not the best." in worse


def test_a_share_is_the_shapley_value_of_the_coalition():
    structure = solve(TEAM).structure
    inside = TEAM.subgraph(structure.coalitions[0])
    shares = shapley(inside.game()).values
    names = [explain(TEAM, structure, p, fragile_pairs=False).share for p in (0, 1, 2)]
    np.testing.assert_allclose(names, shares)


def test_to_be_alone_is_a_place_and_whoever_is_alone_has_others():
    structure = CoalitionStructure([[0, 1, 2], [3], [4]])
    dan = explain(TEAM, structure, "dan", fragile_pairs=False)
    assert dan.inside == 0.0
    assert dan.best_alternative == (4,)
    assert dan.loss == -5.0
    assert "dan is alone." in dan.text
    assert "would gain 5, so it is not the best" in dan.text
    bob = explain(TEAM, structure, "bob", fragile_pairs=False)
    assert (bob.best_alternative, bob.loss) == ((), 5.0)
    assert "is alone: the structure would lose 5" in bob.text


def test_links_are_kept_by_whoever_moves():
    solution = solve(TEAM, must_link=[(0, 1)], cannot_link=[(0, 3)])
    ann = explain(TEAM, solution, "ann", fragile_pairs=False)
    assert ann.best_alternative == ()  # not to dan, and bob comes along
    assert ann.loss == 3.0 + 1.0
    assert "(and bob, who must be with it)" in ann.text


def test_sizes_are_kept_by_whoever_moves():
    solution = solve(TEAM, max_size=3)
    eve = explain(TEAM, solution, "eve", fragile_pairs=False, max_size=3)
    assert eve.best_alternative == ()  # the other coalition is full
    assert explain(TEAM, solution, "eve", fragile_pairs=False) == eve  # it knows its sizes
    fixed = explain(TEAM, solve(TEAM, n_groups=1), "eve", fragile_pairs=False, n_groups=1)
    assert fixed.best_alternative is None
    assert math.isinf(fixed.loss)
    assert "leave no other place" in fixed.text


def test_teams_of_fixed_size_offer_the_cheapest_exchange():
    # Six children in teams of exactly three: nobody can just move.
    weight = np.zeros((6, 6))
    pairs = ((0, 1, 3), (0, 2, 2), (1, 2, 4), (3, 4, 5), (3, 5, 1), (4, 5, 2), (0, 5, 2), (0, 3, 1))
    for a, b, synergy in pairs:
        weight[a, b] = weight[b, a] = synergy
    names = ["Zoë", "Ben", "Mia", "Tom", "Eva", "Ida"]
    solution = solve(SynergyGraph(weight, names), min_size=3, max_size=3)
    assert solution.named == (("Zoë", "Ben", "Mia"), ("Tom", "Eva", "Ida"))
    why = explain(solution.graph, solution, "Zoë")
    # In exchange for Ida: 3 + 2 and 1 + 2 are lost, 1 with Tom is won. For Tom it would be 9, for
    # Eva 9.
    assert (why.best_alternative, why.exchange, why.loss) == ((3, 4, 5), (5,), 7.0)
    assert "with Tom and Eva, in exchange for Ida: the structure would lose 7." in why.text
    # Zoë and Ben are a pair now: they change places with two of the other team.
    linked = explain(solution.graph, solution, "Zoë", must_link=[("Zoë", "Ben")])
    assert linked.best_alternative == (3, 4, 5)
    assert len(linked.exchange) == 2


def cheapest_by_hand(graph, structure, player, demands):
    """Return the least loss of all moves and exchanges of a player's unit that keep the demands."""
    n, labels = graph.n_players, structure.labels
    links = demands.get("must_link", ())
    units = [{p} for p in range(n)]
    for a, b in links:
        joined = units[a] | units[b]
        for p in joined:
            units[p] = joined
    unit = tuple(sorted(units[player]))
    home = labels[player]
    kept = TeamDemands.of(graph, **{k: v for k, v in demands.items() if "link" not in k})
    others = {tuple(sorted(each)) for each in units if labels[min(each)] != home}
    groups = {
        tuple(sorted(sum(some, ())))
        for count in range(1, len(unit) + 1)
        for some in itertools.combinations(sorted(others), count)
        if len({labels[each[0]] for each in some}) == 1
        if count == 1 or len(sum(some, ())) == len(unit)
    }
    changes = [(block, ()) for block in range(len(structure) + 1) if block != home]
    changes += [(labels[group[0]], group) for group in groups]
    losses = []
    for block, group in changes:
        moved = labels.copy()
        moved[list(group)] = home
        moved[list(unit)] = block
        after = CoalitionStructure.from_labels(moved)
        if after == structure or kept.broken(after.coalitions, graph.labels):
            continue
        if any(moved[a] == moved[b] for a, b in demands.get("cannot_link", ())):
            continue
        losses.append(exact_value(graph, structure) - exact_value(graph, after))
    return float(min(losses)) if losses else math.inf


@pytest.mark.parametrize("never", [False, True])
def test_the_best_place_is_the_cheapest_of_all_moves_and_exchanges(never):
    exchanged = 0
    for seed in range(40):
        rng = np.random.default_rng([seed, never])
        n = int(rng.integers(4, 9))
        weight = rng.normal(0, 1, (n, n))
        if never:
            weight[rng.random((n, n)) < 0.2] = -1e16
        graph = SynergyGraph(np.triu(weight, 1) + np.triu(weight, 1).T)
        demands = [
            {"n_groups": 2, "min_size": n // 2},
            {"max_size": 3},
            {"weights": rng.integers(1, 5, n).tolist(), "max_weight": 8},
            {"at_least_one_of": [[0, 1, 2], [2, 3]]},
        ][seed % 4]
        if seed % 3 == 0:
            demands["must_link"] = [(0, 3)]
        if seed % 3 == 1:
            demands["cannot_link"] = [(1, 2)]
        try:
            solution = solve(graph, **demands)
        except InfeasibleError:
            continue
        for player in range(n):
            why = explain(graph, solution, player, fragile_pairs=False)
            assert why.loss == cheapest_by_hand(graph, solution.structure, player, demands)
            exchanged += len(why.exchange) > 0
    assert exchanged > 20


@settings(max_examples=15, deadline=None)
@given(cases(6))
def test_margins_are_those_of_all_partitions(case):
    graph, _ = case
    if graph.n_players < 2:
        return
    found = fragile(graph, solve(graph))
    # With ties the structure is one of several, so its own margins are compared.
    values = all_values(graph)
    best = solve(graph).structure
    for each in found:
        a, b = each.pair
        other_way = [
            value
            for structure, value in values.items()
            if (structure.labels[a] == structure.labels[b]) != (best.labels[a] == best.labels[b])
        ]
        assert each.exact
        assert each.margin == each.at_most == values[best] - max(other_way)
        assert each.together == (best.labels[a] == best.labels[b])
    assert [each.margin for each in found] == sorted(each.margin for each in found)


def test_margins_are_exact_beside_a_pair_that_must_be_together_at_minus_1e16():
    matrix = np.zeros((4, 4))
    for a, b, weight in ((0, 1, -1e16), (0, 2, 5e-12), (0, 3, 3e-12), (2, 3, -1.0)):
        matrix[a, b] = matrix[b, a] = weight
    graph = SynergyGraph(matrix)
    found = fragile(graph, solve(graph, must_link=[(0, 1)]), 0)
    margins = {each.pair: each.margin for each in found}
    assert margins[0, 2] == margins[0, 3] == 5e-12 - 3e-12


def test_a_synergy_may_change_by_its_margin_and_no_further():
    solution = solve(TEAM)
    for each in fragile(TEAM, solution):
        a, b = each.pair
        sign = -1 if each.together else 1
        for step, same in ((0.99, True), (1.01, False)):
            matrix = TEAM.matrix.copy()
            matrix[a, b] = matrix[b, a] = each.synergy + sign * each.margin * step
            again = solve(SynergyGraph(matrix))
            assert (again.structure == solution.structure) == same


def test_the_sizes_of_a_solution_hold_for_its_margins():
    graph = SynergyGraph([[0, 3, 2, 1], [3, 0, 4, 1], [2, 4, 0, 1], [1, 1, 1, 0]])
    solution = solve(graph, max_size=2)
    known = fragile(graph, solution)
    assert known == fragile(graph, solution.structure, max_size=2)
    assert min(each.margin for each in known) > 0
    assert fragile(graph, solution, max_size=3) == fragile(graph, solution.structure, max_size=3)


def test_a_pair_that_links_hold_never_breaks():
    solution = solve(TEAM, must_link=[(0, 1)])
    held = next(each for each in fragile(TEAM, solution) if each.pair == (0, 1))
    assert held.exact
    assert math.isinf(held.margin)
    assert held.alternative is None


def test_where_time_is_short_margins_are_bounds_and_say_so(rng):
    matrix = np.triu(rng.normal(0.1, 1, (60, 60)), 1)
    graph = SynergyGraph(matrix + matrix.T)
    solution = solve(graph, "local-search", time_limit=0.5)
    why = explain(graph, solution, 3, time_limit=0.5)
    assert not why.fragile[0].exact
    assert why.fragile[0].margin <= why.fragile[0].at_most
    assert "as far as the time allowed" in why.text or "There was no time" in why.text


def test_a_lone_player_has_nothing_to_explain():
    why = explain(SynergyGraph([[0.0]], labels=["ann"]), CoalitionStructure([[0]]), "ann")
    assert (why.inside, why.best_alternative, why.fragile) == (0.0, None, ())


@pytest.mark.parametrize("wrong", ["dan ", 5, -1, None])
def test_a_player_who_is_not_there_is_refused(wrong):
    with pytest.raises(InvalidInputError, match="explain names"):
        explain(TEAM, solve(TEAM), wrong)


def test_the_structure_of_another_graph_is_refused():
    with pytest.raises(InvalidInputError, match="the structure has 2 players, the graph 5"):
        explain(TEAM, CoalitionStructure([[0, 1]]), "ann")
