"""Metrics: how good a client's predictions are, in numbers that people report.

Each is computed on one client's predictions. Where a metric says nothing, as AUROC does of data
that have one class only, it is None for that client. Nothing here needs torch: tables and reports
learn from `METRICS`, too, which metrics there are and which way is better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError
from coalitions.registry import Registry
from learners.data.kinds import IGNORED, Kind, Targets

Floats: TypeAlias = NDArray[np.float64]

OwnMetric: TypeAlias = Callable[[NDArray[Any], Floats], float]
"""A metric of a user's own: targets and outputs as numpy arrays to a number, higher is better."""

_BINS = 15
"""Bins of the calibration error, of equal width."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model gave for some samples, and what would have been right.

    Attributes
    ----------
    kind
        What the targets are.
    outputs
        float64 [M, outputs], the model's own numbers (logits for classes and labels). A row is a
        sample or, for next tokens, a token that counts.
    truth
        int64 [M] of classes or tokens; float64 [M, outputs] of labels or numbers.
    """

    kind: Kind
    outputs: Floats
    truth: NDArray[Any]

    @classmethod
    def of(cls, targets: Targets, outputs: NDArray[Any], truth: NDArray[Any]) -> Predictions:
        """Return predictions as rows, whatever shape outputs and targets came in."""
        rows = outputs.astype(np.float64).reshape(-1, targets.n_outputs)
        if not targets.has_classes:
            return cls(targets.kind, rows, truth.astype(np.float64).reshape(rows.shape))
        right = truth.reshape(-1)
        counted = right != IGNORED
        return cls(targets.kind, rows[counted], right[counted])

    def __len__(self) -> int:
        return len(self.truth)

    @cached_property
    def log_chances(self) -> Floats:
        """Logarithms of the probabilities of classes, [M, classes]."""
        above = self.outputs - self.outputs.max(axis=1, keepdims=True)
        chances: Floats = above - np.log(np.exp(above).sum(axis=1, keepdims=True))
        return chances

    @cached_property
    def chosen(self) -> NDArray[Any]:
        """Classes [M] of the highest output; labels [M, L] that are more likely than not."""
        found: NDArray[Any] = (
            self.outputs > 0 if self.kind == "multi-label" else self.outputs.argmax(axis=1)
        )
        return found

    def against_the_rest(self) -> list[tuple[NDArray[np.bool_], Floats]]:
        """Return truth and scores of each yes-or-no question that the data can decide.

        Two classes are one question, more are one for each class, labels one each. A question
        whose answer is always the same is left out.
        """
        if self.kind == "multi-label":
            questions = [(self.truth[:, c] > 0.5, self.outputs[:, c]) for c in self._columns]
        elif self.outputs.shape[1] == 2:
            questions = [(self.truth == 1, self.outputs[:, 1] - self.outputs[:, 0])]
        else:
            questions = [(self.truth == c, self.log_chances[:, c]) for c in self._columns]
        return [(truth, scores) for truth, scores in questions if 0 < truth.sum() < len(truth)]

    @property
    def _columns(self) -> range:
        return range(self.outputs.shape[1])


@dataclass(frozen=True)
class Metric:
    """A number that tells how good predictions are.

    Attributes
    ----------
    name
        What it is called.
    kinds
        The targets it is for.
    compute
        Maps predictions (at least one) to the number; None if it is not defined for them.
    higher_is_better
        Else it is an error, and lower is better.
    undefined
        When it is not defined, in a few words.
    """

    name: str
    kinds: tuple[Kind, ...]
    compute: Callable[[Predictions], float | None]
    higher_is_better: bool = True
    undefined: str = ""

    def __call__(self, predictions: Predictions) -> float | None:
        """Return the number for some predictions; None if there is none."""
        if not len(predictions):
            return None
        value = self.compute(predictions)
        return value if value is None or np.isfinite(value) else None

    def gain(self, value: float) -> float:
        """Return a value so that higher is better: an error is negated."""
        return value if self.higher_is_better else -value


METRICS: Registry[Metric] = Registry("metric", "learners.measures.metrics")

LOSS = "loss"
"""What every run has beside its metrics; lower is better, whatever the loss is."""


def lower_is_better(name: str) -> bool:
    """Tell which way a metric is better, by its name; of a user's own, higher is.

    Examples
    --------
    >>> lower_is_better("rmse"), lower_is_better("auroc"), lower_is_better("loss")
    (True, False, True)
    """
    return name == LOSS or (name in METRICS and not METRICS[name].higher_is_better)


USUAL: dict[Kind, str] = {
    "classification": "accuracy",
    "multi-label": "macro-f1",
    "regression": "rmse",
    "next-token": "accuracy",
}
"""The metric of a run that names none."""

_CLASSES: tuple[Kind, ...] = ("classification", "next-token")
_ONE_CLASS = "the data have one class only"


def _metric(
    *kinds: Kind, higher_is_better: bool = True, undefined: str = ""
) -> Callable[[Callable[[Predictions], float | None]], Metric]:
    """Return what makes a metric of a function, called as the function is."""

    def make(compute: Callable[[Predictions], float | None]) -> Metric:
        name = compute.__name__.replace("_", "-")
        return Metric(name, kinds, compute, higher_is_better, undefined)

    return make


@METRICS.register("accuracy")
@_metric(*_CLASSES)
def accuracy(given: Predictions) -> float:
    """Share of samples (or tokens) that are right."""
    return float((given.chosen == given.truth).mean())


@METRICS.register("balanced-accuracy")
@_metric(*_CLASSES)
def balanced_accuracy(given: Predictions) -> float:
    """Mean over the classes that occur of the share of each that is right."""
    right = given.chosen == given.truth
    return float(np.mean([right[given.truth == c].mean() for c in np.unique(given.truth)]))


@METRICS.register("macro-f1")
@_metric(*_CLASSES, "multi-label")
def macro_f1(given: Predictions) -> float:
    """Mean over classes (or labels) of the harmonic mean of precision and recall."""
    if given.kind == "multi-label":
        truth, chosen = given.truth.T > 0.5, given.chosen.T
        pairs = list(zip(truth, chosen, strict=True))
    else:
        there = np.union1d(given.truth, given.chosen)
        pairs = [(given.truth == c, given.chosen == c) for c in there]
    scores = []
    for truth, chosen in pairs:
        both = int((truth & chosen).sum())
        scores.append(2 * both / max(1, int(truth.sum()) + int(chosen.sum())))
    return float(np.mean(scores))


@METRICS.register("auroc")
@_metric(*_CLASSES, "multi-label", undefined=_ONE_CLASS)
def auroc(given: Predictions) -> float | None:
    """Area under the ROC curve: how often a positive outranks a negative; ties count half."""
    areas = [_area(truth, scores) for truth, scores in given.against_the_rest()]
    return float(np.mean(areas)) if areas else None


def _area(truth: NDArray[np.bool_], scores: Floats) -> float:
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[place]
    positives = int(truth.sum())
    above = ranks[truth].sum() - positives * (positives + 1) / 2
    return float(above / (positives * (len(truth) - positives)))


@METRICS.register("average-precision")
@_metric(*_CLASSES, "multi-label", undefined=_ONE_CLASS)
def average_precision(given: Predictions) -> float | None:
    """Precision at every threshold, weighted by the recall it adds."""
    found = [_precision(truth, scores) for truth, scores in given.against_the_rest()]
    return float(np.mean(found)) if found else None


def _precision(truth: NDArray[np.bool_], scores: Floats) -> float:
    order = np.argsort(-scores, kind="stable")
    ranked, sorted_scores = truth[order], scores[order]
    last = np.append(np.flatnonzero(np.diff(sorted_scores)), len(scores) - 1)  # of equal scores
    hits = np.cumsum(ranked)[last]
    precision = hits / (last + 1)
    recall = hits / ranked.sum()
    return float((precision * np.diff(recall, prepend=0.0)).sum())


@METRICS.register("log-loss")
@_metric(*_CLASSES, "multi-label", higher_is_better=False)
def log_loss(given: Predictions) -> float:
    """Mean of −ln of the probability given to what is right."""
    if given.kind == "multi-label":
        signed = np.where(given.truth > 0.5, given.outputs, -given.outputs)
        return float(np.logaddexp(0.0, -signed).mean())
    return float(-given.log_chances[np.arange(len(given)), given.truth].mean())


@METRICS.register("calibration-error")
@_metric(*_CLASSES, higher_is_better=False)
def calibration_error(given: Predictions) -> float:
    """Mean distance of confidence from accuracy over 15 bins of confidence, by their sizes."""
    confidence = np.exp(given.log_chances.max(axis=1))
    right = given.chosen == given.truth
    bins = np.minimum((confidence * _BINS).astype(np.int64), _BINS - 1)
    apart = np.bincount(bins, confidence - right, minlength=_BINS)
    return float(np.abs(apart).sum() / len(given))


@METRICS.register("rmse")
@_metric("regression", higher_is_better=False)
def rmse(given: Predictions) -> float:
    """Root of the mean squared error; the mean over the numbers of a target."""
    return float(np.sqrt(((given.outputs - given.truth) ** 2).mean(axis=0)).mean())


@METRICS.register("mae")
@_metric("regression", higher_is_better=False)
def mae(given: Predictions) -> float:
    """Mean absolute error."""
    return float(np.abs(given.outputs - given.truth).mean())


@METRICS.register("r2")
@_metric("regression", undefined="the targets are all the same")
def r2(given: Predictions) -> float | None:
    """Share of the targets' variance that is explained; below 0 it is worse than their mean."""
    spread = ((given.truth - given.truth.mean(axis=0)) ** 2).sum(axis=0)
    if not (spread > 0).all():
        return None
    missed = ((given.outputs - given.truth) ** 2).sum(axis=0)
    return float((1 - missed / spread).mean())


def metrics_of(names: Sequence[str | OwnMetric], targets: Targets) -> tuple[Metric, ...]:
    """Return metrics by name, or functions of the user's; the usual one if none is named.

    Examples
    --------
    >>> [metric.name for metric in metrics_of((), Targets("regression", 1))]
    ['rmse']
    """
    found: dict[str, Metric] = {}
    for each in names or (USUAL[targets.kind],):
        metric = _own(each, targets.kind) if callable(each) else METRICS[each]
        if targets.kind not in metric.kinds:
            fitting = [name for name in METRICS.names() if targets.kind in METRICS[name].kinds]
            raise InvalidInputError(
                f"the metric {metric.name} is not for {targets.kind}; there are:"
                f" {', '.join(fitting)}"
            )
        if metric.name in found:
            raise InvalidInputError(f"the metric {metric.name} is named twice; once is enough")
        found[metric.name] = metric
    return tuple(found.values())


def _own(function: OwnMetric, kind: Kind) -> Metric:
    name = getattr(function, "__name__", type(function).__name__)
    if name in METRICS:
        raise InvalidInputError(f"there is a metric {name!r} already; give yours another name")
    return Metric(name, (kind,), lambda given: float(function(given.truth, given.outputs)))


def summary(
    metric: Metric, values: Sequence[float | None], counted: Sequence[int]
) -> dict[str, Any]:
    """Return what a federation's results say about a metric.

    Parameters
    ----------
    metric
        The metric.
    values
        Of each client; None where it is not defined, or the client gave none.
    counted
        The clients that means are taken over.

    Returns
    -------
    dict
        `mean`, `worst_decile` (mean of the worst tenth of the clients, at least one) and `spread`
        (standard deviation over clients); None if no client has a value.
    """
    there = np.array([values[c] for c in counted if values[c] is not None], np.float64)
    sign = 1.0 if metric.higher_is_better else -1.0
    worst = np.sort(sign * there)[: max(1, round(len(there) / 10))]
    missing = [c for c in counted if values[c] is None]
    return {
        "mean": float(there.mean()) if len(there) else None,
        "worst_decile": sign * float(worst.mean()) if len(there) else None,
        "spread": float(there.std()) if len(there) else None,
        "per_client": list(values),
        "higher_is_better": metric.higher_is_better,
        "undefined": {str(c): metric.undefined or "there is no value" for c in missing},
    }
