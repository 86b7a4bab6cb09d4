"""What `coalitions reproduce` says before it starts: runs that are left, and how long they take."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")

from cli.experiments import _progress as _cost
from cli.experiments._progress import costs
from coalitions.errors import NoSolutionError
from learners.experiments.resumable_runs import planned_cell
from learners.reproduction.carry_out import carry_out, plan


@pytest.fixture
def rehearsed(monkeypatch):
    """Replace rehearsals by 60 s a round, each after 4 s of a clock; return whose were asked."""
    asked = []
    monkeypatch.setattr(_cost, "time", SimpleNamespace(monotonic=lambda: 4.0 * len(asked)))

    def forecast(config):
        asked.append(config.algorithm)
        return SimpleNamespace(seconds=60.0 * config.rounds)

    monkeypatch.setattr("learners.runs.forecast.forecast", forecast)
    return asked


def test_each_kind_of_run_is_rehearsed_once_and_all_are_summed(tmp_path, rehearsed):
    plans = [plan(name, "smoke", tmp_path, seeds=3) for name in ("pfedsv-fig7", "fedc2i-table3")]
    assert list(costs(plans, 1, math.inf)) == [
        "pfedsv-fig7: 6 runs, about 12 min on this machine",
        "fedc2i-table3: 18 runs, about 36 min on this machine",
        "in all: 24 runs, about 48 min on this machine",
    ]
    assert len(rehearsed) < 24
    (both, _, _) = costs(plans, 2, math.inf)
    assert both == "pfedsv-fig7: 6 runs, about 6 min on this machine"


def test_runs_are_not_shared_among_more_processes_than_there_are_runs(tmp_path, rehearsed):
    (told,) = costs([plan("pfedsv-fig7", "smoke", tmp_path)], 8, math.inf)
    assert told == "pfedsv-fig7: 2 runs, about 2 min on this machine"


def test_what_two_have_in_common_counts_once(tmp_path, rehearsed):
    table, figure = (plan(name, "smoke", tmp_path) for name in ("fedc2i-table3", "fedc2i-fig3"))
    told = list(costs([table, figure], 1, math.inf))
    assert told[1] == "fedc2i-fig3: 1 run, 1 of them are also earlier ones'"
    assert told[2].startswith("in all: 6 runs, about 12 min")


def test_a_begun_run_is_priced_by_the_rounds_it_has_left(tmp_path, rehearsed):
    planned = plan("pfedsv-fig7", "smoke", tmp_path)
    folder = planned.cells[0].folder
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "config.toml").write_text(planned.cells[0].config.toml())
    (folder / "checkpoints" / "round-000001.json").touch()
    (told,) = costs([planned.as_it_stands()], 1, math.inf)
    assert told == "pfedsv-fig7: 2 runs, about 3 min on this machine"


def test_patience_ends_rehearsals_and_the_others_take_as_long_as_their_like(tmp_path, rehearsed):
    planned = plan("pfedsv-table1", "smoke", tmp_path)
    (told,) = costs([planned], 1, 10.0)
    minutes = 2 * len(planned.cells)
    assert told == f"pfedsv-table1: {len(planned.cells)} runs, about {minutes} min on this machine"
    assert len(rehearsed) == 3


def test_nothing_is_rehearsed_without_patience_nor_for_finished_runs(tmp_path, rehearsed):
    assert list(costs([plan("pfedsv-fig7", "smoke", tmp_path)], 1, 0.0)) == ["pfedsv-fig7: 2 runs"]
    carry_out(plan("pfedsv-fig7", "smoke", tmp_path))
    (told,) = costs([plan("pfedsv-fig7", "smoke", tmp_path)], 1, math.inf)
    assert told == "pfedsv-fig7: 2 runs, 2 of them are there"
    assert not rehearsed


def test_a_rehearsal_whose_models_do_not_stay_finite_stops_nothing(tmp_path, monkeypatch):
    def forecast(config):
        raise NoSolutionError("not finite")

    monkeypatch.setattr("learners.runs.forecast.forecast", forecast)
    told = list(costs([plan("pfedsv-fig7", "smoke", tmp_path)], 1, math.inf))
    assert told == ["pfedsv-fig7: 2 runs"]


def test_a_real_rehearsal_tells_a_time(tmp_path):
    planned = plan("pfedsv-fig7", "smoke", tmp_path)
    longer = {
        key: tuple(planned_cell(c.name, replace(c.config, rounds=100_000), None) for c in cells)
        for key, cells in planned.runs.items()
    }
    (told,) = costs([replace(planned, runs=longer)], 1, 0.001)
    assert " on this machine" in told


def test_what_is_done_beside_runs_is_said(tmp_path):
    planned = plan("pfedsv-fig11", "smoke", tmp_path, seeds=2)
    assert list(costs([planned], 1, 0.0)) == ["pfedsv-fig11: 2 pictures to recover"]
    carry_out(plan("pfedsv-fig11", "smoke", tmp_path))
    told = list(costs([planned], 1, 0.0))
    assert told == ["pfedsv-fig11: 2 pictures to recover, 1 of them are there"]
