"""A comparison in Python: several methods on the same data, over several seeds.

`compare` runs it, `Comparison` is what comes out. The command line prints the same object.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coalitions.errors import InvalidInputError, did_you_mean, with_keywords
from coalitions.extras import needed
from coalitions.results import PublicResult, Row
from learners.algorithm import ALGORITHMS
from learners.data.client_data import FederatedData
from learners.experiments.paired_statistics import (
    CONFIDENCE,
    Difference,
    Standing,
    best_of,
    not_settled,
    ranks,
    standings,
)
from learners.experiments.resumable_runs import Cell, CellWatch, run_cells
from learners.experiments.tuning import Tuned, check_seeds, not_tuned
from learners.experiments.variants import (
    Sweep,
    Variant,
    checked_rows,
    planned_runs,
    poisoned_clients,
    set_options,
    sweep_of,
    swept,
    tabled_variants,
    variant_of,
)
from learners.measures.losses import LossFunction
from learners.measures.metrics import LOSS, METRICS, USUAL, OwnMetric
from learners.measures.scores import (
    RunScore,
    domain_means,
    main_metric,
    record_baseline,
    score_of,
)
from learners.runs.inputs import Clients, Factory, UserInputs
from learners.runs.result import Result
from learners.settings.config import RunConfig, given_settings
from learners.settings.seeding import seeds_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

USUAL_ROWS = ("local", "fedavg")
"""What is compared if nothing is named."""


@dataclass(frozen=True, eq=False)
class Comparison(PublicResult):
    """Several methods on the same data, over several seeds.

    Attributes
    ----------
    results
        The runs of each row, one for each seed. They have no models in memory: with `out=`,
        `learners.load_model` reads these from the folders.
    """

    results: Mapping[str, tuple[Result, ...]]
    _document: Mapping[str, Any]

    @property
    def metric(self) -> str:
        """What the rows are compared by."""
        return str(self._document["metric"])

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds."""
        return tuple(self._document["seeds"])

    @property
    def baseline(self) -> str:
        """The row from which differences are taken."""
        return str(self._document["baseline"])

    @property
    def best(self) -> tuple[str, ...]:
        """The row with the best mean, or all rows that share it."""
        return tuple(self._document["best"])

    @property
    def not_settled(self) -> tuple[str, ...]:
        """The rows that may be as good as the best: 0 is in the interval of the difference."""
        return tuple(self._document["not_settled"])

    @property
    def named(self) -> dict[str, float]:
        """The mean score of each row over the seeds."""
        return {name: row["mean"] for name, row in self._document["algorithms"].items()}

    @property
    def standings(self) -> dict[str, Standing]:
        """Mean, standard deviation, rank and paired difference of each row."""
        return {
            name: Standing(row["mean"], row["sd"], row["rank"], Difference(**row["difference"]))
            for name, row in self._document["algorithms"].items()
        }

    @property
    def differences(self) -> dict[str, Difference]:
        """The paired difference of each row from the baseline, with its 95 % interval."""
        return {name: standing.difference for name, standing in self.standings.items()}

    def to_frame(self, *, runs: bool = False) -> DataFrame:
        """Return a pandas DataFrame with a line for each row.

        Its columns are the mean, the standard deviation, the rank, the paired difference from the
        baseline with both ends of its interval, the worst client, parameters sent, ε and seconds.

        Parameters
        ----------
        runs
            Return a line for each run instead: its row, seed, score, rank, difference from the
            baseline in the same seed, and folder.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        if not runs:
            return super().to_frame()
        needed("pandas")
        import pandas as pd

        keys = ("seed", "score", "rank", "difference", "epsilon", "seconds", "out")
        return pd.DataFrame(
            [
                {"name": name, "algorithm": row["algorithm"], **{key: run[key] for key in keys}}
                for name, row in self._document["algorithms"].items()
                for run in row["runs"]
            ]
        )

    def _rows(self) -> list[Row]:
        return [
            {
                "name": name,
                "algorithm": row["algorithm"],
                "mean": row["mean"],
                "sd": row["sd"],
                "rank": row["rank"],
                "difference": row["difference"]["mean"],
                "low": row["difference"]["low"],
                "high": row["difference"]["high"],
                "worst": row["worst"],
                "up": row["communication"]["up"],
                "down": row["communication"]["down"],
                "epsilon": row["epsilon"],
                "seconds": row["seconds"],
            }
            for name, row in self._document["algorithms"].items()
        ]

    def plot(self, path: str | Path | None = None) -> Figure:
        """Return a matplotlib figure of the comparison.

        After a sweep, it shows the metric by each option that was swept. Otherwise it shows the
        paired differences from the baseline with their 95 % intervals.

        Parameters
        ----------
        path
            Where to write the picture as well: ``.png``, ``.svg`` or ``.pdf``.

        Raises
        ------
        MissingDependencyError
            matplotlib is not installed.
        """
        from coalitions.drawing.pictures import drawn_to_file
        from learners.experiments.comparison_figure import comparison_figure

        return drawn_to_file(lambda: comparison_figure(self._document), path)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values, as ``coalitions compare --json`` prints them."""
        return dict(self._document)

    def __str__(self) -> str:
        """Return the table that ``coalitions compare`` prints."""
        from learners.experiments.comparison_tables import table_text

        return table_text(self._document)


@with_keywords()
def compare(
    config: Mapping[str, Any] | RunConfig | str | Path | None = None,
    out: str | Path | None = None,
    *,
    algorithms: str | Sequence[str] | None = None,
    seeds: int | str | Sequence[int] | None = None,
    variants: Mapping[str, Mapping[str, Any]] | None = None,
    sweep: Mapping[str, Iterable[Any]] | None = None,
    tuned: Tuned | None = None,
    baseline: str | None = None,
    by: str | None = None,
    jobs: int = 1,
    data: Clients | FederatedData | None = None,
    model: Factory | None = None,
    loss: str | LossFunction | None = None,
    metrics: Sequence[str | OwnMetric] = (),
    target: str | None = None,
    client_column: str | None = None,
    force: bool = False,
    tell: Callable[[str], None] | None = None,
    watch: CellWatch | None = None,
) -> Comparison:
    """Return the comparison of several methods, with the same data for all in each seed.

    Everything is checked before the first run. With `out`, the same call continues where it was
    interrupted, and it reads runs that are finished.

    Parameters
    ----------
    config
        Settings of all runs, see `RunConfig`. If it names an algorithm, that is a row, and its
        options hold for every row of that algorithm. If it names a seed, that is the only one,
        unless `seeds` says otherwise.
    out
        Folder with a folder ``NAME-seedN`` for each run; None keeps nothing.
    algorithms
        Methods by name, a row each; ``"all"`` for all of them. Without algorithms, variants, sweep
        and tuned methods, these are local and fedavg.
    seeds
        How many seeds, from 0 on, or which ones; 3 unless given.
    variants
        More rows by name: each has its ``algorithm``, and options or settings of its own.
    sweep
        Values of an option by ``"ROW.OPTION"``, or by ``"OPTION"`` for all rows. Each value
        becomes a row, and several sweeps give all combinations.
    tuned
        What `tune` returned. The rows of these methods take what was found for them. The seeds
        must be other ones.
    baseline
        The row from which differences are taken; the best one if None.
    by
        The metric to compare by; the first metric of the runs if None.
    jobs
        Runs at a time, each a process with one thread; 0 for one on each core. Results do not
        depend on it.
    data, model, loss, metrics, target, client_column
        As for `run`, and the same for all runs.
    force
        Replace runs in `out` that have other settings.
    tell
        Called with what there is to say of the data; see `run`.
    watch
        Is told how far the runs are.

    Examples
    --------
    >>> settings = {"clients": 3, "rounds": 1, "train_size": 20, "workers": 1}
    >>> found = compare(settings, algorithms=["local", "fedavg"], seeds=2, baseline="local")
    >>> found.differences["local"].mean
    0.0
    """
    shared = given_settings(config)
    algorithm, options = shared.pop("algorithm", None), shared.pop("options", {})
    seed = shared.pop("seed", None)
    if options and algorithm is None:
        raise InvalidInputError("the options are those of a method; name it as algorithm, too")
    if algorithms == "all":
        algorithms = ALGORITHMS.names()
    elif isinstance(algorithms, str):
        algorithms = [algorithms]
    rows = comparison_rows(
        algorithms=algorithms,
        variants=tabled_variants(variants or {}),
        sweeps=[sweep_of(key, values) for key, values in (sweep or {}).items()],
        tuned={} if tuned is None else tuned.settings,
        algorithm=algorithm,
        options=options,
    )
    check_row("baseline", baseline, rows)
    numbers = seeds_of((3 if seed is None else [seed]) if seeds is None else seeds)
    if tuned is not None:
        check_seeds(numbers, tuned.seeds)
    inputs = UserInputs(data, model, loss, tuple(metrics), target, client_column)
    folder = None if out is None else Path(out)
    cells = planned_runs(shared, rows, numbers, folder, force=force, tell=tell, inputs=inputs)
    return compared(
        rows, cells, folder, baseline=baseline, metric=by, jobs=jobs, watch=watch,
        untuned=[] if tuned is None else not_tuned(rows, tuned.settings),
    )  # fmt: skip


# ----------------------------------------------------------------------------------------
# The steps of a comparison, which the command line takes one by one.


def comparison_rows(
    *,
    algorithms: Sequence[str] | None,
    variants: Sequence[Variant] = (),
    sweeps: Sequence[Sweep] = (),
    tuned: Mapping[str, Mapping[str, Any]] | None = None,
    algorithm: str | None = None,
    options: Mapping[str, Any] | None = None,
    settings: Sequence[str] = (),
) -> list[Variant]:
    """Return the rows: methods, variants, and a row for each combination of swept values.

    Parameters
    ----------
    algorithms
        Methods that are named; None takes `algorithm`, and those that were tuned.
    variants, sweeps
        More rows, and what is swept.
    tuned
        What was found for each method.
    algorithm, options
        The method of the shared settings, and its options: they hold for all rows of it that do
        not say otherwise.
    settings
        ``[NAME.]OPTION=VALUE``, see `set_options`.
    """
    tuned = tuned or {}
    if algorithms is None:
        algorithms = list(dict.fromkeys([*([] if algorithm is None else [algorithm]), *tuned]))
        if not algorithms and not variants and not any(sweep.row for sweep in sweeps):
            algorithms = USUAL_ROWS
    methods = [variant_of(name, name, tuned.get(name, {})) for name in algorithms]
    rows = checked_rows([*methods, *variants])
    for sweep in sweeps:  # a method that is only swept has a row, too
        if sweep.row in ALGORITHMS and sweep.row not in [row.name for row in rows]:
            rows.append(variant_of(sweep.row, sweep.row, {}))
    rows = checked_rows(swept(set_options(rows, settings), sweeps))
    return [
        replace(row, options={**(options or {}), **row.options})
        if row.algorithm == algorithm
        else row
        for row in rows
    ]


def check_row(option: str, name: str | None, rows: Sequence[Variant]) -> None:
    """Raise if an option names a row that there is not."""
    names = [row.name for row in rows]
    if name is not None and name not in names:
        raise InvalidInputError(
            f"{option} {name!r} is unknown; {did_you_mean(name, names)}there are:"
            f" {', '.join(names)}"
        )


def check_metric(metric: str | None, cells: Sequence[Cell], remedy: str = "metric={!r}") -> None:
    """Raise, before the first run, if no run will have a metric that is known."""
    if metric not in METRICS or metric in (LOSS, *USUAL.values()):
        return  # a metric of the user's own is looked for after the first run
    measured = all(metric in (*cell.config.metric, *cell.inputs.metrics) for cell in cells)
    if not measured:
        raise InvalidInputError(f"the runs have no metric {metric!r}; add {remedy.format(metric)}")


def compared(
    rows: Sequence[Variant],
    cells: Sequence[Cell],
    out: Path | None,
    *,
    baseline: str | None = None,
    metric: str | None = None,
    jobs: int = 1,
    watch: CellWatch | None = None,
    untuned: Sequence[str] = (),
) -> Comparison:
    """Return the comparison of planned runs: read, resumed or run.

    Parameters
    ----------
    rows, cells
        The rows, and their runs; see `planned_runs`.
    out
        The folder of the runs.
    baseline
        The row from which differences are taken; the best one if None.
    metric
        What to compare by; the first metric of the runs if None.
    jobs, watch
        See `run_cells`.
    untuned
        Rows that were not tuned while others were.
    """
    check_metric(metric, cells)
    if out is not None:
        record_baseline(out, baseline)
    results: dict[str, list[Result]] = {}
    for cell, result in zip(cells, run_cells(cells, jobs=jobs, watch=watch), strict=True):
        results.setdefault(cell.name, []).append(replace(result, _models=(), _network=None))
    seeds = list(dict.fromkeys(cell.config.seed for cell in cells))
    domains = {cell.name: cell.domains for cell in cells}
    return Comparison(
        {name: tuple(runs) for name, runs in results.items()},
        _document_of(rows, results, seeds, baseline, domains, metric, untuned),
    )


def _document_of(
    variants: Sequence[Variant],
    results: Mapping[str, Sequence[Result]],
    seeds: Sequence[int],
    baseline: str | None,
    domains: Mapping[str, Sequence[str]],
    metric: str | None,
    untuned: Sequence[str],
) -> dict[str, Any]:
    """Return the comparison as plain values: what every table, file and picture is made of."""
    documents = {name: [run.to_dict() for run in runs] for name, runs in results.items()}
    metric = metric or main_metric(next(iter(documents.values()))[0])
    run_scores = {
        name: [score_of(line, metric) for line in lines] for name, lines in documents.items()
    }
    scores = {name: [score.mean for score in each] for name, each in run_scores.items()}
    lower = next(iter(run_scores.values()))[0].lower_is_better
    best = best_of(scores, lower_is_better=lower)
    chosen, baseline = baseline is not None, baseline or best[0]
    standing = standings(scores, baseline, lower_is_better=lower)
    places = ranks(scores, lower_is_better=lower)
    liars = poisoned_clients(results[baseline][0].config.poison)
    rows = {}
    for variant in variants:
        name, runs = variant.name, results[variant.name]
        own = standing[name]
        rows[name] = {
            "algorithm": variant.algorithm,
            "own": {key: str(value) for key, value in variant.own.items()},
            "mean": own.mean,
            "mean_test_accuracy": _mean([run.get("mean_test_accuracy") for run in documents[name]]),
            "sd": own.sd,
            "per_seed": scores[name],
            "rank": own.rank,
            "difference": asdict(own.difference),
            "clients": _gains(run_scores[name], run_scores[baseline], liars),
            "worst": _mean([score.worst for score in run_scores[name]]),
            "by_domain": _by_domain(
                run_scores[name], domains[name], poisoned_clients(runs[0].config.poison)
            ),
            **_means(runs, documents[name]),
            "runs": [
                {
                    "seed": seed,
                    "score": score.mean,
                    "mean_test_accuracy": line.get("mean_test_accuracy"),
                    "worst_client_accuracy": line.get("worst_client_accuracy"),
                    "per_client_test_accuracy": line.get("per_client_test_accuracy"),
                    "rank": place,
                    "difference": score.mean - other,
                    "communication": {way: run.communication[way] for way in ("up", "down")},
                    "epsilon": run.epsilon,
                    "seconds": run.seconds,
                    "out": None if run.out is None else str(run.out),
                }
                for seed, run, line, score, place, other in zip(
                    seeds,
                    runs,
                    documents[name],
                    run_scores[name],
                    places[name],
                    scores[baseline],
                    strict=True,
                )
            ],
        }
    return {
        "settings": _shared([runs[0] for runs in results.values()]),
        "metric": metric,
        "lower_is_better": lower,
        "seeds": list(seeds),
        "baseline": baseline,
        "baseline_chosen": chosen,
        "best": best,
        "not_settled": not_settled(scores, lower_is_better=lower),
        "confidence": CONFIDENCE,
        "algorithms": rows,
        "swept": _swept(variants, rows),
        "not_tuned": list(untuned),
    }


def _shared(runs: Sequence[Result]) -> dict[str, Any]:
    """Return the settings that stand above the table; None where rows differ."""
    common = {}
    for key in ("dataset", "clients", "partition", "rounds"):
        values = {getattr(run.config, key) for run in runs}
        common[key] = values.pop() if len(values) == 1 else None
    return common


def _swept(variants: Sequence[Variant], rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what was swept: per row and option its values, and the cells that have each."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for variant in variants:
        for target, value in variant.swept.items():
            found.setdefault(target, {}).setdefault(value, []).append(variant.name)
    return [
        {"row": row, "option": key, "values": list(cells), "cells": list(cells.values())}
        for (row, key), cells in found.items()
    ]


def _means(runs: Sequence[Result], documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of a row besides what it is compared by, over its seeds."""
    return {
        "model": runs[0].metrics["model"],
        "other_models": {
            kind: statistics.fmean(run.metrics[f"{kind}{_ACCURACY}"] for run in runs)
            for kind in _other_models(runs[0])
        },
        "worst_client_accuracy": _mean([line.get("worst_client_accuracy") for line in documents]),
        "communication": {
            way: round(statistics.fmean(run.communication[way] for run in runs))
            for way in ("up", "down")
        },
        "private": runs[0].privacy is not None,
        "epsilon": _most([run.epsilon for run in runs]),
        "seconds": statistics.fmean(run.seconds for run in runs),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else None


def _by_domain(
    scores: Sequence[RunScore], domains: Sequence[str], liars: Collection[int]
) -> dict[str, dict[str, Any]]:
    """Return what the honest clients of each domain score on average, in every seed and over seeds.

    Empty where there are no domains, or no figures of single clients.
    """
    if not all(score.per_client for score in scores):
        return {}
    poisoned = [client in liars for client in range(len(domains))]
    by_seed = [domain_means(score.per_client, domains, poisoned) for score in scores]
    figures = {}
    for domain in dict.fromkeys(domains):
        per_seed = [means.get(domain) for means in by_seed]
        known = [mean for mean in per_seed if mean is not None]
        if domain and known:
            whole = 1 < len(known) == len(per_seed)
            figures[domain] = {
                "mean": _mean(per_seed),
                "sd": statistics.stdev(known) if whole else None,
                "per_seed": per_seed,
            }
    return figures


def _gains(
    ours: Sequence[RunScore], theirs: Sequence[RunScore], liars: Collection[int]
) -> dict[str, int] | None:
    """Count the honest clients of all seeds that are better, equally and worse off with ours.

    None if the rows have other numbers of clients, so that there are no pairs.
    """
    counts = {"better": 0, "equal": 0, "worse": 0}
    for one, other in zip(ours, theirs, strict=True):
        if len(one.per_client) != len(other.per_client):
            return None
        for client, (a, b) in enumerate(zip(one.per_client, other.per_client, strict=True)):
            if a is not None and b is not None and client not in liars:
                gain = (b - a) if one.lower_is_better else (a - b)
                counts["better" if gain > 0 else "equal" if gain == 0 else "worse"] += 1
    return counts


def _most(spent: Sequence[float | None]) -> float | None:
    """Return the ε of the worst seed; None if one has no finite ε."""
    finite = [epsilon for epsilon in spent if epsilon is not None]
    return max(finite) if len(finite) == len(spent) else None


_ACCURACY = "_mean_test_accuracy"


def _other_models(result: Result) -> list[str]:
    """Return what else a method has for its clients: the global model besides personal ones."""
    return [key.removesuffix(_ACCURACY) for key in result.metrics if key.endswith(_ACCURACY)]
