"""What is searched, what is drawn, and what models are scored on meanwhile."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from learners import ALGORITHMS, RunConfig
from learners.experiments.search_space import (
    Dimension,
    TuningSearch,
    declared_space,
    drawn,
    given_dimension,
)
from learners.experiments.tuning import points
from learners.runs.prepare import data_of
from learners.runs.run import completed

SHARED = {"clients": 3, "train_size": 50, "rounds": 9, "workers": 1}


@pytest.mark.parametrize("name", [*ALGORITHMS])
def test_every_method_has_a_space_whose_points_can_be_run(name, rng):
    space = declared_space(name, 0.05)
    assert "lr" in space
    # What tells a method the truth, or looks at test data, is not chosen by how well it does.
    assert not {"told", "ica_on", "separate_poisoned", "solver", "time_limit"} & set(space)
    for _ in range(10):
        point = drawn(name, space, rng)
        options = {key: value for key, value in point.items() if key != "lr"}
        ALGORITHMS[name](**options)
        assert 0.005 <= point["lr"] <= 0.5


def test_log_scales_draw_as_many_from_every_decade(rng):
    drawn_ones = [Dimension(ends=(0.001, 1.0)).draw(rng) for _ in range(3000)]
    counts = np.histogram(np.log10(drawn_ones), bins=[-3, -2, -1, 0])[0]
    assert counts.min() > 900
    wholes = [Dimension(ends=(1, 4), whole=True).draw(rng) for _ in range(4000)]
    assert np.bincount(wholes)[1:].min() > 900


def test_options_that_others_leave_without_effect_are_not_drawn(rng):
    space = {
        "attention": given_dimension("fedamp", "attention", "distance,cosine"),
        "self_weight": given_dimension("fedamp", "self_weight", "0.1..0.9"),
    }
    drawn_ones = [drawn("fedamp", space, rng) for _ in range(30)]
    assert {each["attention"] for each in drawn_ones} == {"distance", "cosine"}
    assert all(("self_weight" in each) == (each["attention"] == "cosine") for each in drawn_ones)


def test_points_depend_on_the_seed_and_the_method_alone():
    spaces = {name: declared_space(name, 0.05) for name in ("fedprox", "ditto")}
    both = points(TuningSearch(SHARED, spaces, [5], 4))
    alone = points(TuningSearch(SHARED, {"ditto": spaces["ditto"]}, [6], 4))
    assert both["ditto"] == alone["ditto"]
    other = points(TuningSearch(SHARED, spaces, [5], 4, seed=1))
    assert other["ditto"][1:] != both["ditto"][1:]
    assert len({str(trial.values) for trial in both["fedprox"]}) == 4


def test_every_method_gets_as_many_rounds():
    assert TuningSearch(SHARED, {}, [0, 1], 10, "halving").rungs == [(10, 1), (3, 3), (1, 9)]
    assert TuningSearch(SHARED, {}, [0, 1], 10, "halving").cost == 2 * (10 + 9 + 9)
    assert TuningSearch(SHARED, {}, [0, 1], 10).cost == 2 * 90


def test_held_out_samples_are_trained_on_by_nobody_and_test_data_stay_unseen():
    usual = completed({**SHARED, "algorithm": "pfedsv"})
    tuning = RunConfig.of(usual.values() | {"evaluate_on": "validation"})
    for plain, held in zip(data_of(usual).clients, data_of(tuning).clients, strict=True):
        rows = {name: {tuple(row) for row in getattr(held, name).inputs.flatten(1).tolist()}
                for name in ("train", "validation", "test")}  # fmt: skip
        assert rows["test"].isdisjoint(rows["train"] | rows["validation"])
        pool = torch.cat([plain.train.inputs, plain.validation.inputs]).flatten(1).tolist()
        assert set().union(*rows.values()) == set(map(tuple, pool))
        assert len(held.test) == 10
        assert len(held.validation) == 8
        assert rows["test"].isdisjoint(map(tuple, plain.test.inputs.flatten(1).tolist()))
