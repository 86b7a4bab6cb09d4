"""Every method that takes demands on coalitions, against all partitions.

Small graphs with all combinations of limits and links. Exact methods find the optimum and prove it;
heuristics find a structure that meets the demands and a bound that holds; where there is none, all
of them say so. What branch-and-price proves is verified.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from coalitions import InfeasibleError
from solvers import Solution, available, solve, solve_game, verify
from solvers.branch_and_price import listed as listing
from tests.reliability.soak import named, parts, tally
from tests.reliability.team_proofs import Question, question

BACK_ENDS = [name for name in ("highs", "cbc", "cp-sat") if available()[name] is True]
HEURISTICS = {"greedy": {}, "local-search": {"effort": 0.05}}
SEARCHED = "branch-and-price that lists nothing"
"""As with more than twenty players: compiled, coalitions are searched for as prices ask."""

OWN = ("branch-and-price", SEARCHED)
EXACT: dict[str, dict[str, Any]] = {
    **{name: {} for name in OWN},
    "brute-force": {},
    "subset-dp": {},
    **{name: {"formulation": "full"} for name in BACK_ENDS},
}


def asked_of(seed: int) -> Question:
    """Return the question of a seed: 3 to 9 players."""
    rng = np.random.default_rng([20261117, 16, seed])
    return question(rng, 3 + seed % 7)


def solved(asked: Question, method: str) -> Solution:
    demands = {**asked.links, **asked.demands}
    if method == "subset-dp":
        return solve_game(asked.graph.game(), **demands)
    if method == SEARCHED:
        with patch.object(listing, "MOST_COALITIONS", 0):
            return solve(asked.graph, "branch-and-price", **demands)
    options = EXACT.get(method) or HEURISTICS.get(method) or {}
    return solve(asked.graph, method, **demands, **options)


def failures(seed: int, method: str) -> list[str]:
    """Return what does not hold for one method on one graph."""
    asked = asked_of(seed)
    best = asked.best()
    about = f"seed {seed} ({len(asked.matrix)} players, {asked.demands} {asked.links}), {method}"
    try:
        solution = solved(asked, method)
    except InfeasibleError:
        return [] if best is None else [f"{about}: called infeasible"]
    except Exception as error:  # whatever ends a solve is what we look for
        return [f"{about}: {error!r}"]
    if best is None:
        return [f"{about}: no structure meets the demands, but {solution.structure} is said to"]
    said = []
    fewest, most = asked.demands.get("n_groups", (1, len(asked.matrix)))
    blocks = solution.structure
    if not (fewest <= len(blocks) <= most and all(map(asked.allows, blocks))):
        said.append("a demand is broken")
    if solution.value != sum(map(asked.worth, blocks)):
        said.append("the value is not that of the structure")
    if solution.bound < best[0]:
        said.append(f"the bound {solution.bound!r} is below the optimum {best[0]}")
    if method in EXACT and (solution.value != best[0] or not solution.optimal):
        said.append(f"not the optimum {best[0]}, or not proven: {solution.value!r}")
    if method in OWN:
        demands = {**asked.links, **asked.demands}
        if not verify(asked.graph, blocks, solution.certificate, **demands).optimal:
            said.append("the certificate does not prove it")
    return [f"{about}: {what}" for what in said]


COUNTED = "teams against all partitions"


def answers(seeds, methods):
    """Give each method chosen for a seed, and what is wrong with its answer."""
    return ((method, failures(seed, method)) for seed in seeds for method in methods(seed))


def test_teams_of_small_graphs_by_every_method(record_property):
    # Back-ends take turns: they are slow to begin.
    def methods(seed: int) -> list[str]:
        turn = [BACK_ENDS[seed % len(BACK_ENDS)]] if BACK_ENDS and seed % 2 else []
        return [*OWN, "brute-force", "subset-dp", *HEURISTICS, *turn]

    tally(answers(range(56), methods), COUNTED, record_property)


def test_some_of_the_questions_have_no_answer_and_some_have():
    none = sum(asked_of(seed).best() is None for seed in range(56))
    assert 10 < none < 46


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seeds", parts(1050, 105), ids=named)
def test_teams_of_a_thousand_graphs_by_every_method(seeds, record_property):
    tally(answers(seeds, lambda _: [*EXACT, *HEURISTICS]), COUNTED, record_property)
