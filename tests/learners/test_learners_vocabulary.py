"""The rules of `tests/test_vocabulary.py` for federated runs, comparisons and searches."""

from __future__ import annotations

import inspect
import json
import pickle

import pandas as pd
import pytest
import torch

import learners
from coalitions import InvalidInputError, PublicResult, UnknownKeywordError
from learners import compare, run, tune

SMALL = {
    "algorithm": "fedavg",
    "clients": 2,
    "rounds": 2,
    "train_size": 20,
    "test_size": 10,
    "workers": 1,
}


@pytest.fixture(scope="module")
def results():
    comparison = compare(SMALL, algorithms=["local", "fedavg"], seeds=1)
    return {"run": run(SMALL), "compare": comparison}


@pytest.mark.parametrize("name", ["run", "compare"])
def test_results_are_plain_tables_and_pickles(results, name):
    result = results[name]
    assert isinstance(result, PublicResult)
    assert json.loads(result.to_json()) == json.loads(json.dumps(result.to_dict()))
    assert str(result).strip()
    assert result._repr_html_().startswith("<table>")
    assert isinstance(result.to_frame(), pd.DataFrame)
    assert result.named
    assert pickle.loads(pickle.dumps(result)).to_json() == result.to_json()
    assert result.plot().axes


def test_models_survive_pickling(results):
    result = results["run"]
    again = pickle.loads(pickle.dumps(result))
    for one, other in zip(
        result.model(1).state_dict().values(), again.model(1).state_dict().values(), strict=True
    ):
        assert torch.equal(one, other)


def test_a_result_names_its_clients(results):
    result = results["run"]
    assert list(result.named) == list(result.client_names)
    assert list(result.named.values()) == result.per_client_test_accuracy
    assert set(result.to_frame()["metric"]) == {"accuracy"}


def test_a_run_takes_a_path(tmp_path, results):
    path = tmp_path / "run.toml"
    path.write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in SMALL.items()))
    expected = results["run"].to_dict() | {"seconds": 0}
    for config in (path, str(path)):
        assert run(config).to_dict() | {"seconds": 0} == expected
    with pytest.raises(InvalidInputError, match=r"nowhere\.toml"):
        run("nowhere.toml")


@pytest.mark.parametrize(
    ("setting", "meant"),
    [
        ("learning_rate", "lr"),
        ("epochs", "local_epochs"),
        ("random_state", "seed"),
        ("n_clients", "clients"),
        ("n_jobs", "workers"),
        ("round", "rounds"),
    ],
)
def test_settings_that_others_call_differently_are_understood_and_said(setting, meant):
    with pytest.raises(InvalidInputError, match=f"did you mean '{meant}'"):
        run({setting: 3})


def test_an_option_among_the_settings_is_told_where_it_belongs():
    with pytest.raises(InvalidInputError, match=r"mu is an option of .*fedprox.* options"):
        run({"mu": 0.1})


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in dir(learners)
        if inspect.isfunction(getattr(learners, name))
        and any(
            each.kind in (each.KEYWORD_ONLY, each.VAR_KEYWORD)
            for each in inspect.signature(getattr(learners, name)).parameters.values()
        )
    ],
)
def test_unknown_keywords_are_refused_in_a_sentence(name):
    with pytest.raises(UnknownKeywordError, match="no_such_thing"):
        getattr(learners, name)(no_such_thing=1)


def one_call(function, settings, **brought):
    more = {run: {}, compare: {"seeds": 1}, tune: {"seeds": 1, "trials": 2, "space": {"lr": [0.1]}}}
    return function(SMALL | {"rounds": 1} | settings, **more[function], **brought)


@pytest.mark.parametrize("function", [run, compare, tune])
def test_a_setting_and_an_argument_do_not_replace_each_other(function):
    with pytest.raises(InvalidInputError, match="metric = macro-f1, and metrics= brings accuracy"):
        one_call(function, {"metric": ["macro-f1"]}, metrics=["accuracy"])
    with pytest.raises(InvalidInputError, match="loss = bce, and loss= brings cross-entropy"):
        one_call(function, {"loss": "bce"}, loss="cross-entropy")


@pytest.mark.parametrize("function", [run, compare, tune])
def test_the_same_may_be_said_twice(function):
    found = one_call(function, {"metric": ["macro-f1"]}, metrics=["macro-f1"])
    assert "macro-f1" in found.to_json()


def test_searches_are_results():
    assert issubclass(learners.Tuned, PublicResult)
    assert issubclass(learners.Reproduced, PublicResult)
    with pytest.raises(UnknownKeywordError, match="did you mean 'seeds'"):
        tune(SMALL, seed=3)
