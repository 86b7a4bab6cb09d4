"""What the parts of a run promise: data sets, networks, losses, metrics, aggregations and others.

`learners.method_checks` has what federated methods promise. `coalitions check-plugin` and the
contract tests go through these checks.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from coalitions.errors import InvalidInputError
from coalitions.registry import Checks, Registry
from learners.data.dataset import DATASETS, ImageSet
from learners.data.kinds import ONLY, Input, Kind, Targets, classes
from learners.data.partitions import PARTITIONS
from learners.measures.losses import LOSSES
from learners.measures.metrics import METRICS, Predictions
from learners.method_checks import SMALL
from learners.models import MODELS
from learners.models.network import network_for
from learners.reproduction.experiment import EXPERIMENTS, SEEDS
from learners.runs.run import run
from learners.server.aggregation import AGGREGATIONS
from learners.server.engine import ENGINES
from learners.task import TASKS

N = 6
"""Samples, or clients, of a check."""

TARGETS: Mapping[Kind, Targets] = {
    "classification": Targets("classification", 3),
    "multi-label": Targets("multi-label", 3),
    "regression": Targets("regression", 1),
    "next-token": Targets("next-token", 3),
}
"""Targets of each kind."""


def described(registry: Registry[Any], name: str) -> str | None:
    """Return that an implementation has no docstring; None if it has one."""
    document = registry[name].__doc__ or ""
    return None if document.strip() else "it has no docstring"


def _batch(kind: Kind) -> tuple[Tensor, Tensor]:
    """Return outputs and targets of a kind, the same in each call."""
    source = torch.Generator().manual_seed(5)
    if kind == "next-token":
        outputs = torch.randn(N, 4, 3, generator=source)
        return outputs, torch.randint(3, (N, 4), generator=source)
    outputs = torch.randn(N, TARGETS[kind].n_outputs, generator=source)
    if kind == "classification":
        return outputs, torch.arange(N) % 3
    if kind == "multi-label":
        return outputs, (torch.randn(N, 3, generator=source) > 0).float()
    return outputs, torch.randn(N, 1, generator=source)


# ----------------------------------------------------------------------------------------
# Losses and metrics


def loss_checks(name: str) -> Checks:
    """Give what is checked of the loss that is registered by this name."""
    yield "says what it is, and for which targets", lambda: _loss_described(name)
    for kind in LOSSES[name].kinds:
        yield f"{kind}: one finite number, with a gradient", partial(_loss, name, kind)
        yield f"{kind}: padding changes nothing", partial(_loss_masked, name, kind)


def _loss_described(name: str) -> str | None:
    kinds = LOSSES[name].kinds
    if not kinds or not set(kinds) <= TARGETS.keys():
        return f"its kinds are {kinds}, and must be among {', '.join(TARGETS)}"
    return described(LOSSES, name)


def _loss(name: str, kind: Kind) -> str | None:
    outputs, targets = _batch(kind)
    outputs.requires_grad_()
    loss = LOSSES[name]().for_client(targets, TARGETS[kind].n_outputs)
    if loss.each(outputs, targets).shape != (N,):
        return f"`each` has the shape {tuple(loss.each(outputs, targets).shape)}, not ({N},)"
    value = loss.mean(outputs, targets)
    if value.shape != () or not value.isfinite():
        return f"the loss of a batch is {value}"
    value.backward()  # type: ignore[no-untyped-call]
    if outputs.grad is None or not outputs.grad.isfinite().all() or not outputs.grad.any():
        return "its gradient is zero or not finite"
    return None


def _loss_masked(name: str, kind: Kind) -> str | None:
    outputs, targets = _batch(kind)
    loss = LOSSES[name]().for_client(targets, TARGETS[kind].n_outputs)
    real = (torch.arange(N) < N - 2).float()
    padded = loss.masked(outputs, targets, real)
    alone = loss.mean(outputs[: N - 2], targets[: N - 2])
    if not torch.allclose(padded, alone, rtol=1e-4, atol=1e-6):
        return f"with two samples of padding it is {padded:.6g}, and {alone:.6g} without"
    return None


def metric_checks(name: str) -> Checks:
    """Give what is checked of the metric that is registered by this name."""
    yield "says for which targets it is", lambda: _metric_described(name)
    for kind in METRICS[name].kinds:
        yield f"{kind}: right answers are best", partial(_metric, name, kind)


def _metric_described(name: str) -> str | None:
    metric = METRICS[name]
    if not metric.kinds or not set(metric.kinds) <= TARGETS.keys():
        return f"its kinds are {metric.kinds}, and must be among {', '.join(TARGETS)}"
    return None if metric.name == name else f"it calls itself {metric.name!r}"


def _metric(name: str, kind: Kind) -> str | None:
    outputs, truth = _batch(kind)
    if kind == "regression":
        best = truth
    elif kind == "multi-label":
        best = truth * 40 - 20
    else:
        best = nn.functional.one_hot(truth, 3) * 40.0
    gains = []
    for answers in (outputs, best):
        given = Predictions.of(TARGETS[kind], answers.numpy(), truth.numpy())
        value = METRICS[name](given)
        if value is None:
            return "it is not defined for a few samples of every class"
        if METRICS[name](given) != value:
            return "two calls with the same predictions differ"
        gains.append(METRICS[name].gain(value))
    if gains[1] < gains[0] - 1e-9:
        return f"right answers get {gains[1]:.6g} and random ones {gains[0]:.6g} (more is better)"
    return None


# ----------------------------------------------------------------------------------------
# Aggregations and partitions


def aggregation_checks(name: str) -> Checks:
    """Give what is checked of the aggregation that is registered by this name."""
    yield "says what it is", lambda: described(AGGREGATIONS, name)
    yield "equal models stay as they are", lambda: _equal_rows(name)
    yield "the order of clients changes nothing", lambda: _order_of_rows(name)


def _aggregated(name: str, rows: Tensor, weights: Tensor) -> Tensor:
    rule = AGGREGATIONS[name]
    liars = (1,) if "liars" in inspect.signature(rule).parameters else ()
    return rule(rows, weights, *liars)


def _rows() -> tuple[Tensor, Tensor]:
    return torch.randn(N, 5, generator=torch.Generator().manual_seed(2)), torch.arange(1.0, N + 1)


def _equal_rows(name: str) -> str | None:
    rows, weights = _rows()
    same = rows[:1].expand(N, 5).clone()
    found = _aggregated(name, same, weights)
    if found.shape != (5,) or not torch.allclose(found, rows[0], atol=1e-5):
        return f"{N} equal rows of 5 numbers become {found}"
    return None if (same == rows[:1]).all() else "it writes to the rows it is given"


def _order_of_rows(name: str) -> str | None:
    rows, weights = _rows()
    turned = _aggregated(name, rows.flip(0), weights.flip(0))
    same = torch.allclose(_aggregated(name, rows, weights), turned, atol=1e-5)
    return None if same else "with the clients in reverse order the result is another"


PARAMETERS = ("", "1", "2", "0.5", "0,1,2,3/0,1,2,3/0,1,2,3")
"""Texts after the colon that a partition is tried with; it may refuse some."""


def partition_checks(name: str) -> Checks:
    """Give what is checked of the partition that is registered by this name."""
    yield "says what it is", lambda: described(PARTITIONS, name)
    yield "clients share every class that someone has", lambda: _shares(name)
    yield "the same seed gives the same shares", lambda: _same_shares(name)


def _dealt(name: str, seed: int) -> Iterator[np.ndarray[Any, np.dtype[np.float64]]]:
    """Give the shares of four classes and three clients, for each parameter it accepts."""
    refusals: list[str] = []
    for parameter in PARAMETERS:
        rng = np.random.default_rng(seed)
        try:
            yield PARTITIONS[name](np.array([40, 30, 30, 20]), 3, parameter, rng)
        except InvalidInputError as error:
            refusals.append(str(error))
    if len(refusals) == len(PARAMETERS):
        raise InvalidInputError(f"it refuses 120 samples for three clients: {refusals[0]}")


def _shares(name: str) -> str | None:
    for shares in _dealt(name, 0):
        if shares.shape != (3, 4) or not np.isfinite(shares).all() or shares.min() < 0:
            return f"the shares [clients, classes] are {shares.tolist()}"
        totals = shares.sum(axis=0)
        if not (np.isclose(totals, 1) | (totals == 0)).all():
            return f"the shares of classes sum to {totals.tolist()}; each sum is 1, or 0 for nobody"
    return None


def _same_shares(name: str) -> str | None:
    pairs = zip(_dealt(name, 3), _dealt(name, 3), strict=True)
    same = all((one == other).all() for one, other in pairs)
    return None if same else "two calls with one seed differ: take all chance from the given rng"


# ----------------------------------------------------------------------------------------
# Data sets and networks


def data_set_checks(name: str) -> Checks:
    """Give what is checked of the data set that is registered by this name."""
    yield "says what it is", lambda: described(DATASETS, name)
    yield "training and test samples, the same in each call", lambda: _loads_twice(name)


def _loads_twice(name: str) -> str | None:
    found, place = DATASETS[name]().origin(None)
    if not found:
        return f"its files are not here, so its samples were not checked: {place}"
    first, second = (DATASETS[name]().load(None) for _ in range(2))
    if not first or first.keys() != second.keys():
        return f"its domains are {list(first)}, and then {list(second)}"
    for domain, source in first.items():
        for which in ("train", "test"):
            one, other = getattr(source, which), getattr(second[domain], which)
            if not len(one):
                return f"the domain {domain!r} has no {which} samples"
            values = "pixels" if isinstance(source, ImageSet) else "values"
            same = np.array_equal(getattr(one, values), getattr(other, values))
            if not same or not np.array_equal(one.labels, other.labels):
                return f"two calls of load have different {which} samples: fix the split"
    return None


NEXT_TOKENS = "next tokens"

INPUTS: Mapping[str, tuple[dict[str, Input], Targets]] = {
    "pictures": ({ONLY: Input((3, 32, 32))}, classes(4)),
    "grey pictures": ({ONLY: Input((1, 28, 28))}, classes(4)),
    "rows of a table": ({ONLY: Input((7,))}, classes(4)),
    NEXT_TOKENS: ({ONLY: Input((9,), (4,))}, Targets("next-token", 4)),
}
"""What a network is tried on; it must take one of these. Next tokens come last: they are only for
networks that take nothing else."""


def network_checks(name: str) -> Checks:
    """Give what is checked of the network that is registered by this name."""
    yield "says what it is", lambda: described(MODELS, name)
    yield "one row of finite outputs for each sample", lambda: _outputs(name)
    yield "the same seed gives the same weights", lambda: _same_weights(name)


def _networks(name: str, seed: int) -> Iterator[tuple[str, nn.Module]]:
    """Give the network for each kind of inputs that it takes."""
    refusals: list[str] = []
    for kind, (inputs, targets) in INPUTS.items():
        if kind == NEXT_TOKENS and len(refusals) < len(INPUTS) - 1:
            return
        try:
            yield kind, network_for(name, inputs, targets, seed=seed)
        except InvalidInputError as error:
            refusals.append(str(error))
    if len(refusals) == len(INPUTS):
        raise InvalidInputError(f"it takes none of {', '.join(INPUTS)}: {refusals[0]}")


def _outputs(name: str) -> str | None:
    for kind, network in _networks(name, 0):
        shape, codes = INPUTS[kind][0][ONLY].shape, INPUTS[kind][0][ONLY].codes
        batch = torch.zeros(2, *shape, dtype=torch.long if codes else torch.float32)
        with torch.no_grad():
            found = network.eval()(batch)
        wanted = (2, *shape, 4) if codes else (2, 4)
        if found.shape != wanted or not found.isfinite().all():
            return f"two samples ({kind}) of 4 classes have outputs {tuple(found.shape)}"
    return None


def _same_weights(name: str) -> str | None:
    for (kind, one), (_, other) in zip(_networks(name, 7), _networks(name, 7), strict=True):
        pairs = zip(one.parameters(), other.parameters(), strict=True)
        if not all(torch.equal(first, second) for first, second in pairs):
            return f"two networks with seed 7 ({kind}) differ: draw weights by torch's generator"
    return None


# ----------------------------------------------------------------------------------------
# Tasks, engines and experiments


def task_checks(name: str) -> Checks:
    """Give what is checked of the task that is registered by this name."""
    yield "says what it is", lambda: _task_described(name)
    yield "forms are of entries of its reply", lambda: _task_forms(name)


def _task_described(name: str) -> str | None:
    task = TASKS[name]
    if task.name != name:
        return f"it calls itself {task.name!r}"
    return None if (task.run.__doc__ or "").strip() else "its function has no docstring"


def _task_forms(name: str) -> str | None:
    unknown = sorted(TASKS[name].forms.keys() - TASKS[name].reply.keys())
    return f"it has forms of {', '.join(unknown)}, which its reply has not" if unknown else None


def engine_checks(name: str) -> Checks:
    """Give what is checked of the engine that is registered by this name."""
    yield "says what it is", lambda: described(ENGINES, name)
    yield "a run has the numbers of the local engine", lambda: _same_run(name)


def _same_run(name: str) -> str | None:
    one, other = (run(SMALL | {"clients": 2, "engine": each}) for each in (name, "local"))
    found, wanted = (result.history[-1]["mean_test_loss"] for result in (one, other))
    return None if found == wanted else f"the last loss is {found}, and {wanted} in this process"


def experiment_checks(name: str) -> Checks:
    """Give what is checked of the experiment that is registered by this name."""
    yield "says what it shows", lambda: described(EXPERIMENTS, name)
    yield "every scale has seeds and settings of runs", lambda: _experiment_runs(name)


def _experiment_runs(name: str) -> str | None:
    for scale in SEEDS:
        experiment = EXPERIMENTS[name]()
        if experiment.seeds[scale] < 1:
            return f"the scale {scale} has no seed"
        for key, settings in experiment.runs(scale).items():
            if "algorithm" not in settings:
                return f"the run {key} of the scale {scale} names no algorithm"
    return None
