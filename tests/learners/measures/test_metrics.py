"""Metrics, held against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
sklearn = pytest.importorskip("sklearn.metrics")

from coalitions.errors import InvalidInputError, UnknownNameError  # noqa: E402
from learners.data.client_data import IGNORED, KINDS, Targets  # noqa: E402
from learners.measures.metrics import (  # noqa: E402
    METRICS,
    USUAL,
    Metric,
    Predictions,
    metrics_of,
    summary,
)


def softmax(logits):
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    return chances / chances.sum(axis=1, keepdims=True)


def of_classes(n_classes, n=60, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    truth = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    logits = rng.normal(size=(n, n_classes)) + 1.5 * np.eye(n_classes)[truth]
    if ties:
        logits = np.round(logits)
    return truth, logits, Predictions.of(Targets("classification", n_classes), logits, truth)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_metrics_of_classes_are_those_of_scikit_learn(n_classes):
    truth, logits, given = of_classes(n_classes)
    chosen, chances = logits.argmax(1), softmax(logits)
    asked = chances[:, 1] if n_classes == 2 else chances
    expected = {
        "accuracy": sklearn.accuracy_score(truth, chosen),
        "balanced-accuracy": sklearn.balanced_accuracy_score(truth, chosen),
        "macro-f1": sklearn.f1_score(truth, chosen, average="macro"),
        "auroc": sklearn.roc_auc_score(truth, asked, multi_class="ovr"),
        "average-precision": sklearn.average_precision_score(truth, asked),
        "log-loss": sklearn.log_loss(truth, chances),
    }
    for name, value in expected.items():
        assert METRICS[name](given) == pytest.approx(value, rel=1e-9), name


def test_ties_count_half_as_in_scikit_learn():
    truth, logits, given = of_classes(2, ties=True)
    scores = logits[:, 1] - logits[:, 0]
    assert len(np.unique(scores)) < 15
    assert METRICS["auroc"](given) == pytest.approx(sklearn.roc_auc_score(truth, scores))
    expected = sklearn.average_precision_score(truth, scores)
    assert METRICS["average-precision"](given) == pytest.approx(expected)


def test_metrics_of_labels_are_those_of_scikit_learn():
    rng = np.random.default_rng(1)
    truth = (rng.random((40, 4)) < 0.4).astype(np.float32)
    logits = rng.normal(size=(40, 4)) + truth
    given = Predictions.of(Targets("multi-label", 4), logits, truth)
    chances = 1 / (1 + np.exp(-logits))
    expected = {
        "macro-f1": sklearn.f1_score(truth, chances > 0.5, average="macro"),
        "auroc": sklearn.roc_auc_score(truth, chances),
        "average-precision": sklearn.average_precision_score(truth, chances),
        "log-loss": np.mean([sklearn.log_loss(truth[:, c], chances[:, c]) for c in range(4)]),
    }
    for name, value in expected.items():
        assert METRICS[name](given) == pytest.approx(value, rel=1e-6), name


@pytest.mark.parametrize("shape", [(30,), (30, 3)])
def test_metrics_of_numbers_are_those_of_scikit_learn(shape):
    rng = np.random.default_rng(2)
    truth = rng.normal(size=shape)
    outputs = (truth + rng.normal(size=shape)).reshape(30, -1)
    given = Predictions.of(Targets("regression", outputs.shape[1]), outputs, truth)
    expected = {
        "rmse": sklearn.root_mean_squared_error(truth, outputs.reshape(shape)),
        "mae": sklearn.mean_absolute_error(truth, outputs.reshape(shape)),
        "r2": sklearn.r2_score(truth, outputs.reshape(shape)),
    }
    for name, value in expected.items():
        assert METRICS[name](given) == pytest.approx(value, rel=1e-9), name


def test_tokens_are_classified_one_by_one_and_padding_does_not_count():
    rng = np.random.default_rng(3)
    truth, logits = rng.integers(0, 4, (5, 7)), rng.normal(size=(5, 7, 4))
    truth[1, 3:] = IGNORED
    given = Predictions.of(Targets("next-token", 4), logits, truth)
    counted = truth != IGNORED
    expected = sklearn.accuracy_score(truth[counted], logits.argmax(2)[counted])
    assert len(given) == 31
    assert METRICS["accuracy"](given) == pytest.approx(expected)


def test_the_calibration_error_is_the_distance_of_confidence_and_accuracy_bin_by_bin():
    truth, logits, given = of_classes(3, n=200)
    confidence, right = softmax(logits).max(1), logits.argmax(1) == truth
    expected = 0.0
    for low in np.arange(15) / 15:
        inside = (confidence >= low) & (confidence < low + 1 / 15)
        if inside.any():
            expected += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    assert METRICS["calibration-error"](given) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["auroc", "average-precision"])
def test_one_class_only_leaves_a_ranking_undefined(name):
    given = Predictions.of(Targets("classification", 3), np.eye(3), np.array([2, 2, 2]))
    assert METRICS[name](given) is None
    assert "one class" in METRICS[name].undefined


def test_a_constant_target_leaves_r2_undefined_and_no_data_leave_all_so():
    given = Predictions.of(Targets("regression", 1), np.arange(3.0), np.ones(3))
    assert METRICS["r2"](given) is None
    nothing = Predictions.of(Targets("regression", 1), np.zeros((0, 1)), np.zeros(0))
    assert METRICS["rmse"](nothing) is None


def test_a_class_that_no_test_sample_has_is_left_out_of_the_ranking():
    truth, logits, given = of_classes(3)
    logits = np.hstack([logits, np.full((60, 1), -50.0)])  # nobody has the fourth class
    wider = Predictions.of(Targets("classification", 4), logits, truth)
    assert METRICS["auroc"](wider) == pytest.approx(METRICS["auroc"](given))


def test_the_summary_has_mean_worst_tenth_and_spread_over_the_clients_that_have_a_value():
    values = [0.5, None, 0.9, 0.7]
    told = summary(METRICS["auroc"], values, [0, 1, 2, 3])
    assert told["mean"] == pytest.approx(0.7)
    assert told["worst_decile"] == 0.5
    assert told["spread"] == pytest.approx(np.std([0.5, 0.9, 0.7]))
    assert told["per_client"] == values
    assert told["undefined"] == {"1": "the data have one class only"}
    errors = summary(METRICS["rmse"], list(range(20)), list(range(20)))
    assert errors["worst_decile"] == pytest.approx(18.5)  # of errors, the largest are the worst
    assert summary(METRICS["rmse"], [None], [0])["mean"] is None


def test_every_kind_has_a_usual_metric_that_is_for_it():
    for kind in KINDS:
        assert metrics_of((), Targets(kind, 2))[0].name == USUAL[kind]


def test_wrong_names_are_refused_in_a_sentence():
    with pytest.raises(InvalidInputError, match="rmse is not for classification; there are: acc"):
        metrics_of(["rmse"], Targets("classification", 2))
    with pytest.raises(UnknownNameError, match="no metric named 'auc'"):
        metrics_of(["auc"], Targets("classification", 2))
    with pytest.raises(InvalidInputError, match="mae is named twice"):
        metrics_of(["mae", "mae"], Targets("regression", 1))


def test_a_function_is_a_metric_too():
    def share_of_ones(truth, outputs):
        return (outputs.argmax(1) == 1).mean()

    (own,) = metrics_of([share_of_ones], Targets("classification", 3))
    assert isinstance(own, Metric)
    assert own.name == "share_of_ones"
    _, logits, given = of_classes(3)
    assert own(given) == (logits.argmax(1) == 1).mean()
