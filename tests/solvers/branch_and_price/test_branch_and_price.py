from __future__ import annotations

import subprocess
import sys
import time
from fractions import Fraction
from threading import Timer

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coalitions import CoalitionStructure, InfeasibleError, NoSolutionError, SynergyGraph
from coalitions.runtime import clock
from solvers import Limits, solve
from solvers.branch_and_price import neighbourhood
from solvers.branch_and_price import team_search as tree
from solvers.branch_and_price.branch_and_price import (
    BranchAndPrice,
    TeamCase,
    TeamIncumbent,
    TeamProblem,
)
from solvers.demands import Sizes
from solvers.reductions import integer_weights


def random_graph(n, seed, mean=0.1):
    upper = np.triu(np.random.default_rng(seed).normal(mean, 1, (n, n)).round(2), 1)
    return upper + upper.T


KINDS = {
    "decimals": lambda rng, n: rng.normal(0.1, 1, (n, n)).round(2),
    "floats": lambda rng, n: rng.normal(0, 1, (n, n)),
    "ties": lambda rng, n: rng.integers(-2, 3, (n, n)).astype(float),
    "never": lambda rng, n: np.where(rng.random((n, n)) < 0.3, -1e9, rng.normal(0, 1, (n, n))),
    "losses": lambda rng, n: -np.abs(rng.normal(0, 1, (n, n))),
    "tiny": lambda rng, n: 1e-300 * rng.normal(0, 1, (n, n)),
}


@st.composite
def tasks(draw, most_players=8):
    """A graph of some kind, and demands of every kind, which may contradict each other."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(2, most_players))
    upper = np.triu(KINDS[draw(st.sampled_from(sorted(KINDS)))](rng, n), 1)
    player = st.integers(0, n - 1)
    pair = st.tuples(player, player).filter(lambda p: p[0] != p[1])
    count = st.integers(1, n)
    demands = {
        "max_size": count,
        "min_size": st.integers(1, 3),
        "n_groups": count | st.tuples(count, count).map(sorted),
        "weights": st.lists(st.integers(0, 5), min_size=n, max_size=n),
        "at_least_one_of": st.lists(
            st.sets(player, min_size=1, max_size=4).map(sorted), max_size=2
        ),
        "must_link": st.lists(pair, max_size=2),
        "cannot_link": st.lists(pair, max_size=3),
    }
    asked = draw(st.sets(st.sampled_from(sorted(demands)), min_size=1))
    chosen = {name: draw(demands[name]) for name in sorted(asked)}
    if "weights" in chosen:
        chosen["max_weight"] = draw(st.integers(4, 14))
    if not {"max_size", "min_size", "n_groups", "weights"} & asked:
        chosen["max_size"] = draw(count)
    return upper + upper.T, chosen


@settings(max_examples=80, deadline=None)
@given(task=tasks())
def test_it_is_as_good_as_brute_force_whatever_is_demanded(task):
    matrix, demands = task
    try:
        best = solve(matrix, "brute-force", **demands)
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            solve(matrix, "branch-and-price", **demands)
        return
    found = solve(matrix, "branch-and-price", **demands)
    assert found.optimal
    stake = best.positive_weight + best.losses
    assert abs(Fraction(found.value) - Fraction(best.value)) <= Fraction(2e-9) * Fraction(stake)


def test_twenty_players_are_worth_what_another_solver_proves():
    # Values proven by HiGHS on the full formulation in 12 and 25 s, too.
    matrix = random_graph(20, 20)
    assert solve(matrix, max_size=4).value == pytest.approx(26.56)
    assert solve(matrix, min_size=3, max_size=5, n_groups=5).value == pytest.approx(28.72)


def plain(n, low, high, fewest=None, most=None, **more):
    players = np.ones(n, np.int64)
    return Sizes(players, low, high, fewest or -(-n // high), most or n // low, **more)


def test_auto_takes_it_where_sizes_are_demanded():
    solution = solve(random_graph(12, 0), max_size=3)
    assert solution.solver == "branch-and-price"
    assert solution.optimal


@pytest.mark.parametrize("seed", range(3))
def test_sixty_players_in_teams_are_proven(seed, monkeypatch):
    monkeypatch.setattr(time, "monotonic", time.process_time)  # the machine may be busy
    for demands in ({"max_size": 4}, {"min_size": 3, "max_size": 5, "n_groups": 15}):
        solution = solve(random_graph(60, seed), time_limit=60, **demands)
        assert solution.optimal
        sizes = [len(team) for team in solution.structure.coalitions]
        assert max(sizes) <= demands["max_size"]
        assert min(sizes) >= demands.get("min_size", 1)
        assert len(sizes) == demands.get("n_groups", len(sizes))


def test_reports_never_claim_too_little_or_lose_what_was_found(monkeypatch):
    monkeypatch.setattr("solvers.branch_and_price.branch_and_price.REPORT_EVERY", 0.0)
    reports = []
    solution = solve(random_graph(60, 2), max_size=4, progress=reports.append)
    assert solution.optimal
    assert len(reports) > 10
    assert all(r.bound >= solution.value - 1e-9 for r in reports)
    assert all(r.bound >= r.value for r in reports)
    values, bounds = [r.value for r in reports], [r.bound for r in reports]
    assert values == sorted(values)
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > bounds[-1]


def test_a_feasible_warm_start_is_never_lost():
    matrix = random_graph(40, 3)
    best = solve(matrix, max_size=4)
    again = solve(matrix, max_size=4, time_limit=1e-3, warm_start=best.structure)
    assert again.value == pytest.approx(best.value)
    assert again.bound >= again.value


def test_a_warm_start_that_breaks_a_demand_is_no_answer():
    everybody = CoalitionStructure([list(range(12))])
    solution = solve(random_graph(12, 1), max_size=3, warm_start=everybody)
    assert max(map(len, solution.structure.coalitions)) <= 3
    assert solution.optimal


def test_a_gap_is_enough_if_it_is_asked_for():
    matrix = random_graph(60, 2)
    rough, exact = solve(matrix, max_size=4, gap=0.02), solve(matrix, max_size=4)
    assert rough.gap <= 0.02
    assert rough.stats["nodes"] < exact.stats["nodes"]
    assert rough.bound >= exact.value - 1e-9


@pytest.mark.parametrize("demands", [{"max_size": 40}, {"n_groups": 3}, {"min_size": 20}])
def test_large_coalitions_keep_to_the_time_and_have_a_bound(demands, monkeypatch):
    monkeypatch.setattr(time, "monotonic", time.process_time)  # the machine may be busy
    matrix = random_graph(80, 5)
    began = clock()
    solution = solve(matrix, time_limit=2, **demands)
    assert clock() - began < 4
    assert solution.bound >= solution.value > 0
    sizes = [len(team) for team in solution.structure.coalitions]
    assert max(sizes) <= demands.get("max_size", 80)
    assert min(sizes) >= demands.get("min_size", 1)
    assert len(sizes) == demands.get("n_groups", len(sizes))


def test_ctrl_c_ends_the_search_with_what_is_known(monkeypatch):
    monkeypatch.setattr(time, "monotonic", time.process_time)  # the machine may be busy
    limits = Limits()
    Timer(0.5, limits.interrupted.set).start()
    began = clock()
    answer = BranchAndPrice().search(
        SynergyGraph(random_graph(150, 0)), limits=limits, sizes=plain(150, 1, 6)
    )
    assert clock() - began < 10
    assert answer.bound > 0
    assert plain(150, 1, 6).met_by(answer.labels)


def test_parts_that_are_solved_anew_leave_the_other_teams_alone(monkeypatch):
    monkeypatch.setattr(neighbourhood, "NEAR", 24)
    monkeypatch.setattr(tree, "FIRST_NEARBY", 60)
    monkeypatch.setattr(tree, "NEARBY", 0.0)
    n = 84
    weights = (100 * random_graph(n, 3)).round().astype(np.int64)
    problem = TeamProblem.of(weights, Sizes(np.ones(n, np.int64), 1, 4, 21, n))
    best = TeamIncumbent(problem, seed=0, expired=lambda: False)
    best.begin(None)
    search = tree.TeamSearch(problem, best, allowed=lambda value: value, check=lambda: None)
    search.add_structure(best.labels)
    root = search._bounded(0, TeamCase.whole(problem), search.master.start())
    offered = []
    best.offer = lambda labels: offered.append(labels) or TeamIncumbent.offer(best, labels)
    search._search_nearby(root)
    assert len(offered) >= 2
    assert all(problem.sizes.met_by(labels) for labels in offered)


def test_where_nothing_better_is_near_another_structure_has_its_turn():
    n = 84
    weights = (100 * random_graph(n, 3)).round().astype(np.int64)
    problem = TeamProblem.of(weights, Sizes(np.ones(n, np.int64), 1, 4, 21, n))
    best = TeamIncumbent(problem, seed=0, expired=lambda: False)
    best.begin(None)
    good, value = best.labels, best.value
    poor = np.arange(n) // 4
    members = good == np.unique(good)[:, None]
    asked, begun = [], []

    def in_vain(part, incumbent):
        asked.append(incumbent.value)
        return 1

    def elsewhere():
        begun.append(len(asked))
        return poor

    search = neighbourhood.Nearby(problem, best, in_vain, np.random.default_rng(0))
    for _ in range(4 * neighbourhood.STUCK):
        assert search.improve(members, np.ones(len(members)), elsewhere) is None
    # The best, another, the best again, another again; the best is as it was.
    assert begun == [neighbourhood.STUCK, 3 * neighbourhood.STUCK]
    assert search.rounds == 4 * neighbourhood.STUCK
    assert best.value == value
    mean = [np.mean(asked[k : k + neighbourhood.STUCK]) for k in range(0, len(asked), 10)]
    assert min(mean[0], mean[2]) > max(mean[1], mean[3])


def test_what_is_better_elsewhere_becomes_the_best():
    n = 84
    weights = (100 * random_graph(n, 3)).round().astype(np.int64)
    problem = TeamProblem.of(weights, Sizes(np.ones(n, np.int64), 1, 4, 21, n))
    best, good = (TeamIncumbent(problem, seed=0, expired=lambda: False) for _ in range(2))
    best.offer(np.arange(n) // 4)
    good.begin(None)
    members = good.labels == np.unique(good.labels)[:, None]
    search = neighbourhood.Nearby(problem, best, lambda *_: 1, np.random.default_rng(0))
    for _ in range(neighbourhood.STUCK):
        search.improve(members, np.ones(len(members)), lambda: None)

    def better(part, incumbent):
        whole = tree.TeamSearch(
            part, incumbent, allowed=lambda value: value, check=lambda: None, most_cases=20
        )
        whole.run()
        return whole.rounds

    search._solved = better
    found = [search.improve(members, np.ones(len(members)), lambda: good.labels) for _ in range(10)]
    taken = [labels for labels in found if labels is not None]
    assert taken
    assert problem.value(taken[-1]) == best.value >= good.value


def test_one_seed_one_answer():
    matrix = random_graph(50, 4)
    first, second = (solve(matrix, min_size=2, max_size=4, seed=3) for _ in range(2))
    assert first.structure == second.structure
    assert first.bound == second.bound
    assert first.stats["nodes"] == second.stats["nodes"]


def test_what_cannot_be_is_said_and_proven():
    # Twelve players, teams of three, but one half of them must not meet the other: 5 and 7.
    pairs = [(a, b) for a in range(5) for b in range(5, 12)]
    with pytest.raises(InfeasibleError):
        solve(random_graph(12, 0), min_size=3, max_size=3, cannot_link=pairs)
    # Loads that fit in sum, but not in any way: 3 bins of 10 for five loads of 6.
    with pytest.raises(InfeasibleError):
        solve(random_graph(10, 0), n_groups=3, weights=[6] * 5 + [0] * 5, max_weight=10)


def test_no_time_and_no_structure_is_an_error_not_a_wrong_answer():
    rng = np.random.default_rng(0)
    loads = rng.integers(40, 60, 60).tolist()
    try:
        solution = solve(
            random_graph(60, 0), time_limit=1e-3, n_groups=20, weights=loads, max_weight=153
        )
    except NoSolutionError:
        return
    for team in solution.structure.coalitions:
        assert sum(loads[i] for i in team) <= 153


def test_records_prove_the_bound():
    from solvers.proofs.teams import Fork

    for seed in range(6):
        rng = np.random.default_rng(seed)
        matrix = random_graph(11, seed)
        i, j = np.triu_indices(11, 1)
        whole = np.zeros((11, 11), np.int64)
        whole[i, j] = whole[j, i] = integer_weights(matrix[i, j]).integers
        loads = rng.integers(1, 5, 11)
        sizes = plain(11, 1, 4, loads=loads, max_load=9, apart=((0, 1),), roles=(tuple(range(9)),))
        problem = TeamProblem.of(whole, sizes)
        incumbent = TeamIncumbent(problem, seed=0, expired=lambda: False)
        search = tree.TeamSearch(
            problem, incumbent, allowed=lambda value: value, check=lambda: None
        )
        search.run()
        record = search.record()
        assert record.bound == incumbent.value
        columns = np.array(
            [[mask >> node & 1 for node in range(11)] for mask in range(1, 1 << 11)], bool
        )
        fine = (columns.sum(axis=1) <= 4) & (columns @ loads <= 9) & ~columns[:, :2].all(axis=1)
        columns = columns[fine & columns[:, :9].any(axis=1)]
        worth = problem.worth(columns) << record.bits

        def check(place, allowed, record=record, columns=columns, worth=worth, sizes=sizes):
            case = record.tree[place]
            if isinstance(case, Fork):
                a, b = case.pair
                check(case.together, allowed & (columns[:, a] == columns[:, b]))
                check(case.apart, allowed & ~(columns[:, a] & columns[:, b]))
                return
            held = (columns[:, case.triples].sum(axis=2) >= 2) @ case.triple_prices
            paid = columns @ case.prices + case.count_price + held
            assert (case.triple_prices >= 0).all()
            assert (paid >= worth)[allowed].all()
            counts = max(sizes.fewest * case.count_price, sizes.most * case.count_price)
            total = int(case.prices.sum()) + counts + int(case.triple_prices.sum())
            assert total >> record.bits <= record.bound

        check(0, np.ones(len(columns), bool))


def test_with_and_without_a_compiler_the_best_is_worth_the_same(monkeypatch):
    for seed in range(5):
        matrix = random_graph(14, seed)
        demands = {"min_size": 2, "max_size": 4, "n_groups": (4, 6)}
        plain_one = solve(matrix, "branch-and-price", **demands)
        with monkeypatch.context() as patch:
            patch.setattr("solvers.branch_and_price.listed.MOST_NODES", 0)
            compiled = solve(matrix, "branch-and-price", **demands)
        assert plain_one.optimal
        assert compiled.optimal
        assert plain_one.value == pytest.approx(compiled.value)


def test_twenty_players_need_no_compiler():
    program = """
import sys
import numpy as np
from solvers import solve
upper = np.triu(np.random.default_rng(0).normal(0.1, 1, (20, 20)).round(2), 1)
assert solve(upper + upper.T, max_size=4).optimal
assert "numba" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_it_needs_no_optional_package():
    program = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"highspy", "ortools", "pulp", "cbcbox", "gurobipy"}:
            raise ImportError(name)
sys.meta_path.insert(0, Blocked())
import numpy as np
from solvers import solve
upper = np.triu(np.random.default_rng(0).normal(0.1, 1, (30, 30)).round(2), 1)
solution = solve(upper + upper.T, max_size=4)
assert solution.optimal and solution.solver == "branch-and-price"
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
