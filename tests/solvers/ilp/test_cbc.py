"""CBC: what it says is believed only as far as it can be."""

from __future__ import annotations

import os

import pytest

from coalitions import InfeasibleError, SynergyGraph
from solvers import available, solve
from solvers.backends import cbc

pytestmark = [
    pytest.mark.skipif(available()["cbc"] is not True, reason="there is no CBC here"),
    pytest.mark.skipif(os.name != "posix", reason="a shell script takes the place of CBC"),
]

GRAPH = SynergyGraph([[0, 1, -2], [1, 0, 1], [-2, 1, 0]])


@pytest.fixture
def sees_nothing_feasible(tmp_path, monkeypatch):
    """Put in CBC's place a program that takes a while and then calls any model infeasible."""
    script = tmp_path / "cbc"
    script.write_text(
        "#!/bin/sh\ntrap '' INT\nsleep $SECONDS_TO_TAKE\n"
        'for last; do :; done\necho "Infeasible - objective value 0" > "$last"\n'
    )
    script.chmod(0o755)
    monkeypatch.setattr(cbc, "_executable", lambda: str(script))

    def after(seconds: float):
        monkeypatch.setenv("SECONDS_TO_TAKE", str(seconds))

    return after


def test_a_model_that_cbc_calls_infeasible_when_time_is_up_is_not(sees_nothing_feasible):
    sees_nothing_feasible(after := 0.5)
    solution = solve(GRAPH, "cbc", time_limit=after - 0.1)
    assert solution.value == solve(GRAPH, "greedy").value
    assert solution.bound >= solution.value


def test_a_model_that_cbc_calls_infeasible_in_time_is_infeasible(sees_nothing_feasible):
    sees_nothing_feasible(0)
    with pytest.raises(InfeasibleError, match="no structure"):
        solve(GRAPH, "cbc")
