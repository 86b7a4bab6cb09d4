"""The linear program over coalitions: by either way of the simplex method it is worth the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from solvers.branch_and_price.branch_and_price import TeamCase, TeamProblem
from solvers.branch_and_price.column_generation import Master
from solvers.branch_and_price.listed import ListedMaster, all_coalitions
from solvers.demands import Sizes

N, DEAR = 12, 1000.0


def whole_master(seed, kind):
    """A linear program with all coalitions of up to three of twelve players."""
    rng = np.random.default_rng(seed)
    upper = rng.integers(-2, 3, (N, N)) if kind == "ties" else rng.integers(-99, 130, (N, N))
    weights = np.triu(upper, 1).astype(np.int64)
    problem = TeamProblem.of(weights + weights.T, Sizes(np.ones(N, np.int64), 1, 3, 1, N))
    master = Master(problem)
    columns = [c for k in (1, 2, 3) for c in itertools.combinations(range(N), k)]
    members = np.zeros((len(columns), N), np.bool_)
    for place, column in enumerate(columns):
        members[place, list(column)] = True
    master.add(members)
    return master


def by_scipy(master, active):
    """The value of the same linear program, in units of prices."""
    found = linprog(
        -master.worth[active], A_eq=master.members[active].T, b_eq=np.ones(N), method="highs"
    )
    return -found.fun * 2.0**master.problem.bits


@pytest.mark.parametrize("kind", ["ties", "weights"])
@pytest.mark.parametrize("seed", range(12))
def test_a_case_is_worth_the_same_from_its_parents_basis(seed, kind):
    rng = np.random.default_rng((seed, 1))
    master = whole_master(seed, kind)
    case = TeamCase.whole(master.problem)
    active = case.allows(master.members)
    relaxed = master.solve(active, master.start(), DEAR)
    assert relaxed.value == pytest.approx(by_scipy(master, active), rel=1e-6)
    for _ in range(6):
        a, b = rng.choice(N, 2, replace=False).tolist()
        fewer = case.with_together(a, b) if rng.random() < 0.5 else case.with_apart(a, b)
        if fewer.misfit() is not None:
            continue
        case, active = fewer, fewer.allows(master.members)
        basis = master.pinned(relaxed.basis)
        about = master.estimate(active, basis, DEAR, 5)
        relaxed = master.solve(active, basis, DEAR)
        truth = by_scipy(master, active)
        assert relaxed.value == pytest.approx(truth, rel=1e-6, abs=1e-3 * 2.0**master.problem.bits)
        assert relaxed.missing < 1e-4
        # The dual method comes from above.
        assert about >= relaxed.value - 1e-3 * 2.0**master.problem.bits


def test_the_dual_method_removes_what_a_case_does_not_allow():
    master = whole_master(0, "weights")
    whole = TeamCase.whole(master.problem)
    relaxed = master.solve(whole.allows(master.members), master.start(), DEAR)
    first = master.members[relaxed.columns[np.argmax(relaxed.levels)]]
    a, b = np.flatnonzero(first)[:2].tolist()
    apart = whole.with_apart(a, b).allows(master.members)
    basis = master._repaired(apart, relaxed.basis.copy(), DEAR)
    chosen = basis[basis >= 0]
    assert not np.array_equal(basis, relaxed.basis)
    assert apart[chosen].all()


def test_nearest_columns_hold_the_basis():
    master = whole_master(1, "weights")
    active = np.ones(len(master), np.bool_)
    relaxed = master.solve(active, master.start(), DEAR)
    near = master.nearest(active, relaxed.basis, DEAR, 40)
    assert near.sum() == 40
    assert near[relaxed.columns].all()
    assert master.nearest(active, relaxed.basis, DEAR, len(master)).all()


def test_columns_that_are_no_basis_lead_to_the_same_end():
    rng = np.random.default_rng(0)
    upper = np.triu(rng.integers(-9, 10, (6, 6)), 1)
    master = Master(TeamProblem.of(upper + upper.T, Sizes(np.ones(6, np.int64), 1, 6, 1, 6)))
    sets = np.array([[mask >> node & 1 for node in range(6)] for mask in range(1, 64)], bool)
    master.add(sets)
    active = np.ones(len(master), np.bool_)
    right = master.solve(active, master.start(), 100.0)
    twice = np.zeros(6, np.int64)
    assert master.solve(active, twice, 100.0).value == pytest.approx(right.value)
    assert master.pinned(twice).tolist() == master.start().tolist()


@pytest.mark.parametrize("kind", ["ties", "weights"])
def test_a_list_of_coalitions_is_worth_the_same_without_a_compiler(kind):
    for seed in range(6):
        rng = np.random.default_rng((seed, 2))
        master = whole_master(seed, kind)
        listed = ListedMaster(master.problem, all_coalitions(master.problem))
        case = TeamCase.whole(master.problem)
        basis = listed.start()
        for _ in range(6):
            relaxed = listed.solve(case.allows(listed.members), basis, DEAR)
            truth = by_scipy(master, case.allows(master.members))
            unit = 2.0**master.problem.bits
            assert relaxed.value == pytest.approx(truth, rel=1e-6, abs=1e-3 * unit)
            assert relaxed.missing < 1e-4
            basis = listed.pinned(relaxed.basis)
            a, b = rng.choice(N, 2, replace=False).tolist()
            fewer = case.with_together(a, b) if rng.random() < 0.5 else case.with_apart(a, b)
            case = case if fewer.misfit() is not None else fewer


def test_prices_of_an_ascent_pay_for_all_coalitions():
    for seed in range(5):
        problem = whole_master(seed, "weights").problem
        listed = all_coalitions(problem)
        master = ListedMaster(problem, listed)
        paid = listed.sets.added(master._ascent()) * master._unit
        assert (paid >= listed.worth * (1 - 1e-12) - 1e-3).all()
        half_sums = np.sort(np.maximum(problem.units, 0), axis=1)[:, -2:].sum() / 2
        assert master._ascent().sum() * master._unit < 0.95 * half_sums


def test_a_long_linear_program_looks_at_the_clock_and_can_be_ended():
    upper = np.triu(np.random.default_rng(0).integers(-50, 100, (60, 60)), 1)
    problem = TeamProblem.of(upper + upper.T, Sizes(np.ones(60, np.int64), 1, 3, 1, 60))
    glances = 0

    def glance():
        nonlocal glances
        glances += 1
        if glances == 2:
            raise TimeoutError

    master, whole = Master(problem, glance), Master(problem)
    columns = np.zeros((0, 60), np.bool_)
    pairs = np.argwhere(np.triu(upper > 0, 1))
    triples = np.random.default_rng(1).permuted(np.tile(np.arange(60), (2000, 1)), axis=1)[:, :3]
    for some in (np.arange(60)[:, None], pairs, triples):
        rows = np.zeros((len(some), 60), np.bool_)
        rows[np.arange(len(some))[:, None], some] = True
        columns = np.concatenate((columns, rows))
    for each in (master, whole):
        each.add(columns)
    active = np.ones(len(master), np.bool_)
    with pytest.raises(TimeoutError):
        master.solve(active, master.start(), DEAR)
    # It goes on as if nothing had been: the columns and the kept inverse are whole.
    value = whole.solve(active, whole.start(), DEAR).value
    assert master.solve(active, master.start(), DEAR).value == pytest.approx(value)
