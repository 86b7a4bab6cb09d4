"""A comparison as plain values: what `--json` prints, and what every other format is made of."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from learners.experiments.scores import RunScore
    from learners.experiments.variants import Variant
    from learners.runs.run import Result


def comparison_document(
    variants: Sequence[Variant],
    results: Mapping[str, Sequence[Result]],
    seeds: Sequence[int],
    baseline: str | None,
    domains: Mapping[str, Sequence[str]],
    metric: str | None = None,
) -> dict[str, Any]:
    """Return what `--json` prints.

    Parameters
    ----------
    variants
        The rows.
    results
        Their results by name, one per seed.
    seeds
        The seeds.
    baseline
        Row to take differences from; the best if None.
    domains
        The clients' domains in each row.
    metric
        What they are compared by; what the runs are judged by if None.
    """
    from learners.experiments.paired_statistics import (
        CONFIDENCE,
        best_of,
        not_settled,
        ranks,
        standings,
    )
    from learners.experiments.scores import main_metric, score_of
    from learners.experiments.variants import poisoned_clients

    documents = {name: [run.document() for run in runs] for name, runs in results.items()}
    metric = metric or main_metric(next(iter(documents.values()))[0])
    found = {name: [score_of(each, metric) for each in told] for name, told in documents.items()}
    scores = {name: [score.mean for score in each] for name, each in found.items()}
    lower = next(iter(found.values()))[0].lower_is_better
    best = best_of(scores, lower_is_better=lower)
    baseline = baseline or best[0]
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
            "clients": _gains(found[name], found[baseline], liars),
            "worst": _mean([score.worst for score in found[name]]),
            "by_domain": _by_domain(
                found[name], domains[name], poisoned_clients(runs[0].config.poison)
            ),
            **_means(runs, documents[name]),
            "runs": [
                {
                    "seed": seed,
                    "score": score.mean,
                    "mean_test_accuracy": told.get("mean_test_accuracy"),
                    "worst_client_accuracy": told.get("worst_client_accuracy"),
                    "per_client_test_accuracy": told.get("per_client_test_accuracy"),
                    "rank": place,
                    "difference": score.mean - other,
                    "communication": {way: run.communication[way] for way in ("up", "down")},
                    "epsilon": run.epsilon,
                    "seconds": run.seconds,
                    "out": None if run.out is None else str(run.out),
                }
                for seed, run, told, score, place, other in zip(
                    seeds,
                    runs,
                    documents[name],
                    found[name],
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
        "best": best,
        "not_settled": not_settled(scores, lower_is_better=lower),
        "confidence": CONFIDENCE,
        "algorithms": rows,
        "swept": _swept(variants, rows),
    }


def _shared(runs: Sequence[Result]) -> dict[str, Any]:
    """Return the settings that are told above the table, None where rows differ."""
    told = {}
    for key in ("dataset", "clients", "partition", "rounds"):
        values = {getattr(run.config, key) for run in runs}
        told[key] = values.pop() if len(values) == 1 else None
    return told


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
        "worst_client_accuracy": _mean([told.get("worst_client_accuracy") for told in documents]),
        "communication": {
            way: round(statistics.fmean(run.communication[way] for run in runs))
            for way in ("up", "down")
        },
        "private": runs[0].privacy is not None,
        "epsilon": _most([run.epsilon for run in runs]),
        "seconds": statistics.fmean(run.seconds for run in runs),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    there = [each for each in values if each is not None]
    return statistics.fmean(there) if there and len(there) == len(values) else None


def _by_domain(
    scores: Sequence[RunScore], domains: Sequence[str], liars: Collection[int]
) -> dict[str, dict[str, Any]]:
    """Return what the honest clients of each domain score on average, in every seed and over seeds.

    Empty where there are no domains, or no figures of single clients.
    """
    from learners.experiments.scores import domain_means

    if not all(score.per_client for score in scores):
        return {}
    poisoned = [client in liars for client in range(len(domains))]
    found = [domain_means(score.per_client, domains, poisoned) for score in scores]
    told = {}
    for domain in dict.fromkeys(domains):
        per_seed = [means.get(domain) for means in found]
        there = [each for each in per_seed if each is not None]
        if domain and there:
            whole = 1 < len(there) == len(per_seed)
            told[domain] = {
                "mean": _mean(per_seed),
                "sd": statistics.stdev(there) if whole else None,
                "per_seed": per_seed,
            }
    return told


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
    finite = [each for each in spent if each is not None]
    return max(finite) if len(finite) == len(spent) else None


_ACCURACY = "_mean_test_accuracy"


def _other_models(result: Result) -> list[str]:
    """Return what else a method has for its clients: the global model besides personal ones."""
    return [key.removesuffix(_ACCURACY) for key in result.metrics if key.endswith(_ACCURACY)]
