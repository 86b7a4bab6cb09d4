"""Tables of scikit-learn, dealt out like pictures."""

from __future__ import annotations

import numpy as np
import pytest

from coalitions.errors import InvalidInputError
from learners.data.client_data import Input
from learners.data.clients import federated_data
from learners.data.dataset import DATASETS
from learners.runs.result import load_model
from learners.runs.run import run

datasets = pytest.importorskip("sklearn.datasets")

LOADERS = {
    "breast-cancer": lambda: datasets.load_breast_cancer(),
    "wine": lambda: datasets.load_wine(),
    "digits-tabular": lambda: datasets.load_digits(),
    "diabetes": lambda: datasets.load_diabetes(scaled=False),
}


@pytest.mark.parametrize("name", LOADERS)
def test_rows_are_those_of_scikit_learn_scaled_by_the_training_rows(name):
    ours, theirs = DATASETS[name]().load(None)[""], LOADERS[name]()
    values = np.concatenate([ours.train.values, ours.test.values])
    assert values.shape == theirs.data.shape
    assert len(ours.test) == pytest.approx(len(values) / 5, abs=12)
    np.testing.assert_allclose(ours.train.values.mean(axis=0), 0, atol=1e-4)
    spread = ours.train.values.std(axis=0)
    np.testing.assert_allclose(spread[spread > 0], 1, atol=1e-3)
    truth = np.concatenate([ours.train.truth, ours.test.truth])
    expected = np.corrcoef(theirs.data[:, 2], theirs.target)[0, 1]
    assert np.corrcoef(values[:, 2], truth)[0, 1] == pytest.approx(expected, abs=1e-5)


def test_patients_are_dealt_out_and_named():
    data = federated_data("breast-cancer", clients=5, partition="auto", seed=0)
    assert data.inputs == {"inputs": Input((30,))}
    assert data.targets.names == ("malignant", "benign")
    assert sum(len(c.train) + len(c.validation) for c in data.clients) == 454


def test_tenths_of_a_target_are_dealt_out_like_classes():
    apart = federated_data("diabetes", clients=5, partition="ring:1", seed=0)
    alike = federated_data("diabetes", clients=5, partition="iid", seed=0)
    means = [
        np.std([float(c.train.targets.mean()) for c in data.clients]) for data in (apart, alike)
    ]
    assert means[0] > 3 * means[1]


def test_a_regression_runs_and_its_model_comes_back(tmp_path):
    settings = {"dataset": "diabetes", "clients": 3, "rounds": 8, "lr": 0.02, "workers": 1}
    result = run(settings | {"metric": ["r2", "rmse"]}, tmp_path / "run")
    assert result.metrics["metrics"]["r2"]["mean"] > 0.2
    assert load_model(tmp_path / "run").head.out_features == 1


def test_what_is_for_pictures_says_so():
    with pytest.raises(InvalidInputError, match="the poison noise is for pictures"):
        federated_data("wine", clients=3, partition="iid", seed=0, poison=["noise:1"])
    with pytest.raises(InvalidInputError, match="network lenet-5 is for pictures"):
        run({"dataset": "wine", "clients": 3, "model": "lenet-5"})
    poisoned = federated_data("wine", clients=3, partition="iid", seed=0, poison=["swap-0-1:2"])
    assert poisoned.clients[2].poisoned
