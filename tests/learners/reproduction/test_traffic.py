"""What a run sends can be told before it: held against the ledger of real runs."""

import numpy as np
import pytest

from coalitions.errors import InvalidInputError
from learners import build_model, run
from learners.algorithms.pfedsv import PFedSV
from learners.reproduction.experiments.pfedsv_counts import (
    ABSENT,
    ModelSize,
    ideal_trace,
    predicted_traffic,
    trace_of,
)
from learners.rows.parameters import Layout

RUN = {"clients": 6, "rounds": 5, "train_size": 20, "workers": 1, "participation": 0.7}


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("fedavg", {}),
        ("fedamp", {}),
        ("fedfomo", {"k": 2}),
        ("fedfomo", {"k": 9}),
        ("pfedsv", {"k": 2, "dynamic": False}),
        ("pfedsv", {"k": 2}),
        ("pfedsv", {"k": 2, "dynamic": False, "shared_extractor": True}),
        ("pfedsv", {"k": 2, "shared_extractor": True, "classifier": "dense"}),
    ],
)
def test_ledger_and_prediction_agree_exactly_on_a_real_run(algorithm, options):
    result = run(RUN | {"algorithm": algorithm, "options": options})
    network = result.model(0)
    size = ModelSize.of(Layout.of(network), options.get("classifier", "head"))
    k = None if algorithm == "pfedsv" else options.get("k", 1)
    up, down = predicted_traffic(
        algorithm,
        size,
        trace_of(result.history, 6, k),
        shared_extractor=options.get("shared_extractor", False),
    )
    assert up.tolist() == [line["up_per_client"] for line in result.history]
    assert down.tolist() == [line["down_per_client"] for line in result.history]
    assert result.communication["up"] == up.sum() > 0
    assert result.communication["down"] == down.sum()


def ring(n):
    """Return who is relevant if everyone shares a label with its two neighbours."""
    apart = (np.arange(n)[:, None] - np.arange(n)) % n
    return (apart == 1) | (apart == n - 1)


def test_the_ideal_trace_tries_everyone_then_keeps_the_relevant():
    trace = ideal_trace(ring(10), 6, PFedSV(k=5))
    assert trace[:2].tolist() == [[5] * 10] * 2  # nine others at five a round
    assert trace[2:].tolist() == [[2] * 10] * 4
    assert (ideal_trace(ring(10), 4, PFedSV(k=5, dynamic=False)) == 5).all()


@pytest.mark.parametrize("n_classes", [10, 100, 1000])
def test_figure_9_extractor_and_dynamic_downloads_cost_resnet_34_little_more_than_fedavg(n_classes):
    layout = Layout.of(build_model("resnet-34", shape=(3, 32, 32), n_classes=n_classes, seed=0))
    size = ModelSize.of(layout)
    trace = ideal_trace(ring(10), 20, PFedSV(k=5))
    ours = sum(map(np.sum, predicted_traffic("pfedsv", size, trace, shared_extractor=True)))
    plain = sum(map(np.sum, predicted_traffic("pfedsv", size, trace)))
    fedavg = sum(map(np.sum, predicted_traffic("fedavg", size, trace)))
    assert 1 <= ours / fedavg < 1.15
    assert plain / fedavg > 1.5


@pytest.mark.parametrize(
    ("name", "classes", "cut", "share"),
    [("resnet-34", 1000, "head", 0.0235), ("lenet-5", 10, "dense", 0.9537)],
)
def test_shares_of_the_classifier(name, classes, cut, share):
    layout = Layout.of(build_model(name, shape=(3, 32, 32), n_classes=classes, seed=0))
    assert ModelSize.of(layout, cut).classifier_share == pytest.approx(share, abs=5e-5)


def test_who_is_absent_sends_nothing_and_other_methods_are_refused():
    up, down = predicted_traffic("fedavg", ModelSize(3, 2), np.array([[ABSENT, 0]]))
    assert up.tolist() == down.tolist() == [[0, 5]]
    with pytest.raises(InvalidInputError, match="cannot be predicted"):
        predicted_traffic("cffl", ModelSize(3, 2), np.array([[0]]))
