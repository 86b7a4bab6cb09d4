"""Clients that cannot be judged by what was asked are named before anything is trained."""

import numpy as np
import pytest

from coalitions.errors import InputWarning, InvalidInputError
from learners.runs.run import run

TINY = {"rounds": 2, "local_epochs": 1, "workers": 1}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3)).astype(np.float32)
Y = np.arange(20) % 2


def clients(**odd):
    usual = {"train": (X, Y), "test": (X[:8], Y[:8])}
    given = {"north": usual, "south": usual, "odd": usual | odd}
    return {name: (each["train"], each["test"]) for name, each in given.items()}


@pytest.mark.parametrize("metric", ["auroc", "average-precision"])
def test_a_metric_without_a_value_is_refused_with_the_client(metric):
    rounds = []
    words = f"the metric {metric} is not defined on the test data of client 'odd': the data have"
    with pytest.raises(InvalidInputError, match=words):
        run(
            TINY,
            data=clients(test=(X[:8], 0 * Y[:8])),
            metrics=["accuracy", metric],
            on_round=rounds.append,
        )
    assert not rounds
    everyone = {name: ((X, Y), (X[:8], 0 * Y[:8])) for name in ("north", "south", "east")}
    with pytest.raises(InvalidInputError, match="of client 'north' and of 2 more: "):
        run(TINY, data=everyone, metrics=[metric])


def test_r2_of_a_constant_test_target_is_refused_with_the_client():
    numbers = {"train": (X, X[:, 0]), "test": (X[:8], np.ones(8, np.float32))}
    data = {"a": ((X, X[:, 0]), (X[:8], X[:8, 1])), "odd": tuple(numbers.values())}
    with pytest.raises(InvalidInputError, match="r2 is not defined on the test data of client 'od"):
        run(TINY, data=data, metrics=["r2"])
    assert run(TINY, data=data, metrics=["rmse"]).metrics["metrics"]["rmse"]["mean"] > 0


@pytest.mark.parametrize("name", ["cffl", "fedproto", "fedrod", "pfedsv"])
def test_one_class_to_train_on_is_a_client_like_others(name):
    told = []
    data = clients(train=(X, 0 * Y))
    result = run(TINY | {"algorithm": name}, data=data, metrics=["auroc"], tell=told.append)
    assert told == ["a client has one class only in the training data: 'odd' (0)"]
    assert all(0 <= each <= 1 for each in result.metrics["metrics"]["auroc"]["per_client"])
    assert not result.history[-1]["refused"]


def test_one_class_to_test_on_does_not_matter_where_the_metric_has_a_value():
    data = clients(train=(X, 0 * Y), test=(X[:8], 0 * Y[:8]))
    with pytest.warns(InputWarning, match=r"^a client has one class only .*: 'odd' \(0\)$") as seen:
        result = run(TINY, data=data, metrics=["accuracy", "balanced-accuracy", "log-loss"])
    assert [each.filename for each in seen] == [__file__]  # it is the caller's line that is named
    assert None not in result.per_client_test_accuracy


def test_what_a_partition_made_has_no_value_and_says_so():
    """Nobody can leave out a client of a data set by name, so its metric is null."""
    settings = TINY | {"clients": 2, "partition": "labels:0/0,1", "train_size": 20}
    told = run(settings | {"metric": ["auroc"]}).metrics["metrics"]["auroc"]
    assert told["per_client"][0] is None
    assert told["undefined"] == {"0": "the data have one class only"}
