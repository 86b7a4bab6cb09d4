"""What can be known of `--compute stacked` without a GPU, for every method.

python -m benchmarks.at_once [--algorithms fedavg,cffl:synergy=cos] [--seeds 3]

Digits, an MLP, tests and gradients stacked, too. An option of a method stands behind its name. The
columns of the table:

- *models*: largest relative difference to sequential training after a round, in float64, of all
  that server and clients keep; *same after 5*: whether accuracies and structures are the same;
- *mean*, *client*: largest difference in float32 after five rounds, of the mean accuracy and of a
  client's, over the seeds;
- *step*, *test*, *gradient*: torch operations of a step, of a pass of tests or other outputs, and
  of one of gradients, with 4 and with 16 clients;
- *reads*: tensors that the host waits for in two rounds of three clients, with tests, and their
  bytes, on a device that is not there (`tests.learners.rehearsal`); *mps*: whether it passes there;
- *memory*: predicted over measured, tensors of the largest stack on the CPU;
- *alone*: what is not stacked.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import learners.algorithms.fedc2i as fedc2i
import learners.server.local_engine as local
from learners.algorithm import ALGORITHMS, build_algorithm
from learners.client import gradients
from learners.client import stacked_testing as examination
from learners.client import stacked_training as stacked
from learners.client.client import Site
from learners.client.gradients import LiveMemory
from learners.client.stacked_training import Stacking
from learners.measures.goal import goal_of
from learners.models.network import build_model
from learners.rows.parameters import Layout
from learners.rows.workspace import Workspace
from learners.runs.prepare import data_of
from learners.runs.run import run
from learners.server.federation import Federation, Round
from learners.settings.config import RunConfig
from tests.learners.rehearsal import rehearse

SMALL = {"clients": 5, "train_size": 40, "local_epochs": 1, "workers": 1}


def rounds_of(row: str, compute: str, **settings: Any) -> list[Round]:
    """Return the rounds of a small run."""
    algorithm, options = _named(row)
    seen: list[Round] = []
    run(
        SMALL | {"algorithm": algorithm, "compute": compute, "options": options} | settings,
        on_round=seen.append,
    )
    return seen


def _named(row: str) -> tuple[str, dict[str, Any]]:
    """Return the method of a row, and its options."""
    algorithm, _, option = row.partition(":")
    name, _, value = option.partition("=")
    small: dict[str, Any] = {"width": 5} if algorithm == "pfedhn" else {}
    return algorithm, small | ({name: value} if option else {})


@contextmanager
def doubles() -> Iterator[None]:
    """Have networks made in double precision."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def in_float64(algorithm: str) -> tuple[float, bool]:
    """Return the largest relative difference after a round, and whether five end alike."""
    with doubles():
        alone, at_once = (_doubled(algorithm, each) for each in ("sequential", "stacked"))
    apart = max(
        (float((a - b).norm() / a.norm().clamp(min=1e-300)) for a, b in _tensors(alone, at_once)),
        default=0.0,
    )
    same = all(
        one.metrics["per_client_test_accuracy"] == other.metrics["per_client_test_accuracy"]
        and one.records.get("structure") == other.records.get("structure")
        for one, other in zip(alone, at_once, strict=True)
    )
    return apart, same


def _doubled(row: str, compute: str) -> list[Round]:
    """Return five rounds in double precision, which no run has."""
    algorithm, options = _named(row)
    config = RunConfig.of(
        SMALL | {"algorithm": algorithm, "compute": compute, "options": options, "rounds": 5}
    )
    data = data_of(config)
    module = build_model("mlp", shape=data.shape, n_classes=data.n_classes, seed=0)
    workspace = Workspace(module, Layout.of(module), torch.device("cpu"), goal_of(data.targets))
    site = Site(config, build_algorithm(algorithm, config.options), workspace, data)
    federation = Federation(
        config,
        site.algorithm,
        local.local_engine(site, 1),
        workspace.layout,
        site.initial,
        goal=workspace.goal,
    )
    rounds = []
    for each in federation.rounds():
        kept = copy.deepcopy(federation.memories())
        rounds.append(replace(each, state={**each.state, "kept": kept}))
    return rounds


def _tensors(alone: list[Round], at_once: list[Round]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield what is kept after the first round, and the losses."""
    found = [
        [each for each in tree_leaves(dict(rounds[0].state)) if isinstance(each, Tensor)]
        + [torch.tensor([rounds[0].metrics["mean_test_loss"]])]
        for rounds in (alone, at_once)
    ]
    yield from zip(*found, strict=True)


def in_float32(algorithm: str, seeds: int) -> tuple[float, float]:
    """Return the largest difference of the mean accuracy, and of a client's."""
    of_mean, of_client = 0.0, 0.0
    for seed in range(seeds):
        one, other = (
            np.array(rounds_of(algorithm, each, rounds=5, seed=seed)[-1].metrics[PER_CLIENT])
            for each in ("sequential", "stacked")
        )
        of_mean = max(of_mean, abs(float(one.mean() - other.mean())))
        of_client = max(of_client, float(np.abs(one - other).max()))
    return of_mean, of_client


WITH_OPTIONS = ("cffl:synergy=cos", "ifca:averaging=gradient")
"""Rows beside those of all methods: what has gradients at given models."""

PER_CLIENT = "per_client_test_accuracy"


class Counter(TorchDispatchMode):
    """Counts operations."""

    n = 0

    def __torch_dispatch__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        self.n += 1
        return function(*args, **(kwargs or {}))


COUNTED: tuple[tuple[type, str], ...] = (
    (stacked._Stack, "step"),
    (examination._Sitting, "_pass"),
    (gradients._Stack, "slopes"),
)


def operations(algorithm: str, clients: int) -> list[float | None]:
    """Return the mean number of operations of what is `COUNTED`; None of what does not occur."""

    def counting(function: Callable[..., Any], counts: list[int]) -> Callable[..., Any]:
        def counted(*args: Any) -> Any:
            with Counter() as seen:
                given = function(*args)
            counts.append(seen.n)
            return given

        return counted

    usual = [getattr(kind, name) for kind, name in COUNTED]
    counts: list[list[int]] = [[] for _ in COUNTED]
    for (kind, name), function, seen in zip(COUNTED, usual, counts, strict=True):
        setattr(kind, name, counting(function, seen))
    try:
        rounds_of(algorithm, "stacked", rounds=2, clients=clients, partition="iid")
    finally:
        for (kind, name), function in zip(COUNTED, usual, strict=True):
            setattr(kind, name, function)
    return [float(np.mean(seen)) if seen else None for seen in counts]


def memory(algorithm: str) -> float | None:
    """Return the memory of the largest stack, predicted over measured; None if there is none."""
    found: list[tuple[int, int]] = []
    usual = Stacking.train

    def measured(self: Stacking, fits: Sequence[Any]) -> Any:
        self.bytes_of_a_client = 0
        usual(self, fits)  # the trial's memory does not count
        with LiveMemory() as seen:
            given = usual(self, fits)
        n = sum(each is not None for each in given)
        if n:
            found.append((seen.peak, n * self.bytes_of_a_client))
        return given

    Stacking.train = measured  # type: ignore[method-assign]
    try:
        rounds_of(algorithm, "stacked", rounds=1, clients=8, partition="iid")
    finally:
        Stacking.train = usual  # type: ignore[method-assign]
    if not found:
        return None
    real, predicted = max(found)
    return predicted / real


def row(algorithm: str, seeds: int) -> str:
    """Return a line of the table."""
    apart, same = in_float64(algorithm)
    of_mean, of_client = in_float32(algorithm, seeds)
    few_and_many = zip(operations(algorithm, 4), operations(algorithm, 16), strict=True)
    counts = " | ".join(
        "–" if few is None or many is None else f"{few:.0f}, {many:.0f}"
        for few, many in few_and_many
    )
    name, options = _named(algorithm)
    seen = rehearse(name, options=options)
    rehearse(name, device="mps", options=options)
    ratio = memory(algorithm)
    alone = ", ".join(sorted({reason.split(":")[0] for reason in seen.not_stacked})) or "nothing"
    return (
        f"| {algorithm} | {apart:.0e} | {'yes' if same else 'no'} | {of_mean:.3f} |"
        f" {of_client:.3f} | {counts} | {seen.reads} ({seen.bytes_read}) | yes |"
        f" {'–' if ratio is None else f'{ratio:.2f}'} | {alone} |"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--algorithms", default=",".join([*ALGORITHMS.names(), *WITH_OPTIONS]))
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    local.pays = fedc2i.pays = lambda device: True  # tests at once, also where they would not be
    print(
        "| method | models | same after 5 | mean | client | step: 4, 16 | test: 4, 16 |"
        " gradient: 4, 16 | reads (bytes) | mps | memory | alone |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for algorithm in asked.algorithms.split(","):
        print(row(algorithm, asked.seeds), flush=True)


if __name__ == "__main__":
    main()
