"""What the papers leave open, tried out: settings that the tables at the small scale rest on.

None of them is a table of a paper. They run on seeds of their own, so that no table is made with
settings that were chosen on its own seeds.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from learners.reproduction.claims import Claim, Measured, above, mostly, near
from learners.reproduction.experiment import (
    EXPERIMENTS,
    AccuracyTable,
    Experiment,
    Key,
    Results,
    Scale,
    TableRow,
    domain_accuracies,
    mean_accuracy,
)
from learners.reproduction.experiments import cffl_tables as cffl
from learners.reproduction.experiments import fedacs_tables as fedacs
from learners.reproduction.experiments import fedc2i_tables as fedc2i
from learners.reproduction.experiments import pfedsv_tables
from learners.reproduction.printed import paper_table

APART = 100
"""The first of their seeds: tables begin at 0."""


WHOLE = "lenet-64, 64×64"
"""The column with the paper's pictures and network."""


@EXPERIMENTS.register("fedc2i-influence")
class Influence(AccuracyTable):
    """Whether influence adds anything over the local epochs after it."""

    ours = "γ = 5"
    first_seed, settles = APART, True

    def methods(self, scale: Scale) -> Mapping[str, TableRow]:
        """Return influence, equal weights (γ = 0), and FedAvg before and after local epochs."""
        return {
            "Local": TableRow("local"),
            "FedAvg": TableRow("fedavg"),
            "FedAvg+FT": TableRow("fedavg-ft"),
            "γ = 0": TableRow("fedc2i", {"gamma": 0.0}),
            "γ = 5": TableRow("fedc2i", {"gamma": 5.0}),
        }

    def federations(self, scale: Scale) -> Mapping[str, Mapping[str, Any]]:
        """Return Digit-5 at 32×32, and at the paper's 64×64 with its network."""
        small = {"LeNet-5, 32×32": fedc2i.federation("Digit-5", scale)}
        if scale == "smoke":
            return small
        whole = fedc2i.federation("Digit-5", "paper")
        short = {"rounds": 5, "test_size": 400} if scale == "small" else {}
        return {**small, WHOLE: {**whole, **short}}

    def once(self, scale: Scale) -> frozenset[str]:
        """Return the paper's pictures: a run of them takes minutes."""
        return frozenset({WHOLE} if scale == "small" else ())

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return that influence beats the global model, equal weights, and local epochs alone."""
        return [
            above(found, "γ = 5", rival, column, added=True)
            for column in found.columns
            for rival in ("FedAvg", "FedAvg+FT", "γ = 0")
        ]

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return what is compared."""
        told = ["γ = 0 weighs everyone the same. FedAvg+FT is FedAvg after the last local epochs."]
        if scale == "small":
            told.append("64×64 once, for 5 rounds (paper: 20).")
        return told


PRINTED_SEPARATE = 96.11
"""Separate on MNIST, Table I of pFedSV: by it the number of images is told."""


@EXPERIMENTS.register("pfedsv-images")
class ImagesSetting(AccuracyTable):
    """How many images a client of pFedSV's Table I has, and what pFedSV gives then."""

    ours = "pFedSV"
    first_seed, settles = APART, True

    def methods(self, scale: Scale) -> Mapping[str, TableRow]:
        """Return local training, one model for all, and both models of pFedSV."""
        return {
            "Separate": TableRow("local"),
            "FedAvg": TableRow("fedavg"),
            "pFedSV": TableRow("pfedsv"),
            "pFedSV, trained": TableRow("pfedsv", tested="trained"),
        }

    def federations(self, scale: Scale) -> Mapping[str, Mapping[str, Any]]:
        """Return numbers of images with LeNet-5, then two learning rates with McMahan's CNN."""
        shared = pfedsv_tables.federation("MNIST", 10, "two", scale)
        if scale == "smoke":
            return {"12 images": shared}
        half = {**shared, "validation_share": 0.5}
        columns = {
            f"{n} images": {**half, "train_size": 2 * n, "model": "lenet-5", "lr": 0.05}
            for n in (10, 20, 40, 100, 200)
        }
        slow = {
            f"CNN, lr {lr:g}": {**half, "train_size": 40, "model": "cnn", "lr": lr}
            for lr in (0.01, 0.05)
        }
        return columns | slow

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return where Separate agrees with the paper, and where pFedSV beats it."""
        told = []
        for column in found.columns:
            text = f"Separate is within a point of the paper's {PRINTED_SEPARATE} ({column})"
            separate = found.rows["Separate"][column]
            told.append(near(text, separate, PRINTED_SEPARATE, within=1.0, added=True))
            told.append(above(found, "pFedSV", "Separate", column, added=True))
            told.append(above(found, "pFedSV, trained", "Separate", column, added=True))
        return told

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return how images are counted."""
        return [
            "Images to train on; pFedSV has as many again for validation, and so have others.",
            "The CNN has 20, with which LeNet-5 agrees with the paper.",
        ]


@EXPERIMENTS.register("cffl-settings")
class Settings(Experiment):
    """CFFL's training settings by local accuracies, and how many images ICA needs."""

    first_seed, settles = APART, True

    def runs(self, scale: Scale) -> Mapping[Key, Mapping[str, Any]]:
        """Return local training over a grid, then ICA and COS as the tables have them and plain.

        Clients that train alone do not meet: one of each domain, tested on many images, tells as
        much of a setting as five.
        """
        shared = cffl.federation(scale)
        smoke = scale == "smoke"
        grid = itertools.product((10, 32), (0.0, 0.5, 0.9), (False, True), (0.01, 0.05))
        if smoke:
            grid = itertools.product((10,), (0.0, 0.5), (False,), (0.01,))
        alone = shared if smoke else {**shared, "clients": 3, "test_size": 400}
        runs: dict[Key, Mapping[str, Any]] = {}
        for batch, momentum, dropout, lr in grid:
            dropped = ", dropout" if dropout else ""
            row = f"Loc, batch {batch}, momentum {momentum:g}, lr {lr:g}{dropped}"
            network = {"model": f"cffl-cnn{'-dropout' if dropout else ''}"}
            settings = {"batch_size": batch, "momentum": momentum, "lr": lr}
            runs[row, ""] = TableRow("local").run(
                {**alone, **settings, **(network if not smoke else {})}
            )
        few, many, plain = "50 test images", "400 test images", "as printed"
        printed = {"momentum": 0.0, **({} if smoke else {"model": "cffl-cnn"})}
        crowds: dict[str, dict[str, Any]] = {
            few: {},
            many: {} if smoke else {"test_size": 400},
            plain: printed,
        }
        # Cosines are of training data: more test images change nothing for them.
        for name, told in (("ICA", (few, many, plain)), ("COS", (few, plain))):
            for each in told:
                runs[f"{name}, {each}", ""] = cffl.METHODS[name].run({**shared, **crowds[each]})
        return runs

    def measured(self, results: Results, scale: Scale, seeds: Sequence[int]) -> Measured:
        """Return accuracies by domain, how far they are from the paper's, and the structures'."""
        rows: dict[str, dict[str, list[float]]] = {}
        for (row, _), runs in results.items():
            columns = rows.setdefault(row, {})
            found = [domain_accuracies(run) for run in runs]
            for domain in found[0]:
                columns[cffl.DOMAINS.get(domain, domain)] = [each[domain] for each in found]
            columns["mean"] = [mean_accuracy(run) for run in runs]
            if not row.startswith("Loc"):
                columns["index"] = [100 * cffl.ending(run)[0] for run in runs]
            elif scale != "smoke":
                columns["off the paper"] = [off_the_paper(each) for each in found]
        return Measured(tuple(dict.fromkeys(itertools.chain(*rows.values()))), rows)

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return what helps to find the domains, and whether other settings are nearer."""
        ours = "ICA, 50 test images"
        pairs = (
            ("ICA, 400 test images", ours),
            ("ICA, 400 test images", "COS, 50 test images"),
            (ours, "ICA, as printed"),
            ("COS, 50 test images", "COS, as printed"),
        )
        told = [above(found, one, other, "index", added=True, points=False) for one, other in pairs]
        first = results.get((ours, ""))
        per_domain = (first[0].config.clients if first else 9) // len(cffl.DOMAINS)
        told += [
            mostly(
                f"coalitions of ICA hold one distribution only, {images} test images",
                [
                    may_be_pure(each / 100, len(cffl.DOMAINS), per_domain)
                    for each in found.rows[f"ICA, {images} test images"]["index"]
                ],
                added=True,
                confidence=found.confidence,
            )
            for images in (50, 400)
            if f"ICA, {images} test images" in found.rows
        ]
        distances = {
            row: columns["off the paper"]
            for row, columns in found.rows.items()
            if "off the paper" in columns
        }
        if TABLES not in distances:
            return told
        nearest = min(distances, key=lambda row: statistics.fmean(distances[row]))
        if nearest != TABLES:
            text = f"the tables' settings are farther off the paper than {nearest}"
            gap = found.gap(TABLES, nearest, "off the paper")
            told.append(Claim(text, None, gap, added=True, confidence=found.confidence))
        return told

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return how a setting is chosen."""
        return [
            "'Loc': one client of each domain, tested on 400 images. 'off the paper': mean distance"
            " by domain from the paper's local accuracies with 200 images; of MM the one that its"
            " mean implies (66.1), as the printed one (81.0) contradicts it. The tables have the"
            " nearest row with the paper's learning rate, 0.01: others count only if they are"
            " nearer beyond doubt. Structures have no say in it.",
            "'as printed': without momentum and dropout, which the paper does not mention.",
            "'index': adjusted Rand index of the last structure and the domains, × 100. Where every"
            " coalition holds one distribution only, it has one of few values: a seed counts as"
            " such if its index is one of them.",
        ]


def may_be_pure(index: float, domains: int, clients: int) -> bool:
    """Return whether an index is one that coalitions of one domain each can have.

    Such coalitions have pairs of clients of the same domain alone. Of all T pairs of clients, P are
    of the same domain. With A of them in coalitions, the adjusted Rand index is
    A (1 − P/T) / ((A + P)/2 − A P/T).

    Parameters
    ----------
    index
        The adjusted Rand index of a structure and the domains.
    domains, clients
        Number of domains, and of clients in each.

    Examples
    --------
    >>> [may_be_pure(index, 3, 3) for index in (1.0, 0.84, -0.05)]
    [True, True, False]
    """
    pairs, everyone = domains * math.comb(clients, 2), math.comb(domains * clients, 2)
    return any(
        math.isclose(
            index,
            inside * (1 - pairs / everyone) / ((inside + pairs) / 2 - inside * pairs / everyone),
            abs_tol=1e-9,
        )
        for inside in range(pairs + 1)
    )


TABLES = "Loc, batch 10, momentum 0.5, lr 0.01, dropout"
"""The row with the settings of CFFL's tables."""


def off_the_paper(accuracies: Mapping[str, float]) -> float:
    """Return how far local accuracies by domain are from the paper's with 200 images, on average.

    The paper's MM contradicts its own mean, which agrees with the other figures: MM follows from
    the mean.

    Examples
    --------
    >>> round(off_the_paper({"mnist": 91.4, "svhn": 55.2, "mnist-m": 66.1}), 6)
    0.0
    """
    printed = paper_table("cffl-table1").rows["Loc"]
    mt, sv, mean = (printed[f"{name}, 200 images"].mean for name in ("MT", "SV", "mean"))
    wanted = {"mnist": mt, "svhn": sv, "mnist-m": 3 * mean - mt - sv}
    return statistics.fmean(abs(accuracies[domain] - wanted[domain]) for domain in wanted)


RATES = (0.01, 0.05)


@EXPERIMENTS.register("fedacs-rates")
class Rates(AccuracyTable):
    """The learning rates of the methods in FedACS' tables, chosen on validation data."""

    ours = "FedACS"
    first_seed, settles = APART, True
    seeds: ClassVar[Mapping[Scale, int]] = {"smoke": 1, "small": 3, "paper": 3}

    def methods(self, scale: Scale) -> Mapping[str, TableRow]:
        """Return all methods with either rate."""
        rows = {row: method for row, method in fedacs.METHODS.items() if "p =" not in row}
        return {
            f"{row}, lr {lr:g}": replace(method, settings={"lr": lr})
            for row, method in rows.items()
            for lr in RATES
        }

    def federations(self, scale: Scale) -> Mapping[str, Mapping[str, Any]]:
        """Return both data sets with 50 images, and with validation data in place of test data."""
        held = {"validation_share": 0.2, "evaluate_on": "validation"}
        return {
            data: {**fedacs.federation(data, "dirichlet:0.5", scale, images=50), **held}
            for data in fedacs.sets(scale)
        }

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return that the higher rate, which the tables had first, is the better one."""
        rows = dict.fromkeys(row.rpartition(",")[0] for row in found.rows)
        slow, fast = (f"lr {lr:g}" for lr in RATES)
        return [
            above(found, f"{row}, {fast}", f"{row}, {slow}", column, added=True)
            for row in rows
            for column in found.columns
        ]

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return the rule, and what is shown."""
        return [
            "Accuracy on validation data: a fifth of a client's images.",
            "Rule, before it ran: a method's rows in fedacs-fig1a, -fig1b and -table1 have the rate"
            " with the higher mean over both data sets. Expected: 0.01 for PerAvg, whose global"
            " model collapsed at 0.05, and 0.05 for the others.",
            *fedacs.notes(scale),
        ]


@EXPERIMENTS.register("fedacs-quantile")
class Quantile(AccuracyTable):
    """FedACS' quantile p and its cosine, chosen on validation data."""

    ours = "p = 0.5"
    first_seed, settles = APART, True

    def methods(self, scale: Scale) -> Mapping[str, TableRow]:
        """Return four quantiles with either cosine."""
        quantiles = (0.5, 0.8, 0.9, 0.95) if scale != "smoke" else (0.5, 0.9)
        plain = {f"p = {p:g}": TableRow("fedacs", {"p": p}) for p in quantiles}
        learned = {
            f"p = {p:g}, updates": TableRow("fedacs", {"p": p, "similarity": "updates"})
            for p in quantiles
        }
        return {"Local": TableRow("local"), **plain, **learned}

    def federations(self, scale: Scale) -> Mapping[str, Mapping[str, Any]]:
        """Return three splits of Fashion-MNIST, with validation data in place of test data."""
        splits = ("pathological:2", "dirichlet:0.5", "dirichlet:0.1")
        held: dict[str, Any] = {"validation_share": 0.2, "evaluate_on": "validation"}
        if scale == "small":
            # With 20, p = 0.95 cuts off all but clients' similarities with themselves.
            held |= {"clients": 50, "test_size": 20}
        return {
            split: {**fedacs.federation("FMNIST", split, scale, images=50), **held}
            for split in (splits if scale != "smoke" else splits[:1])
        }

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return that the best row, on average over the splits, beats the default and local."""
        rows = [row for row in found.rows if row != "Local"]
        means = {
            row: float(np.mean([found.mean(row, column) for column in found.columns]))
            for row in rows
        }
        best = max(means, key=lambda row: means[row])
        rivals = [row for row in ("p = 0.5", "Local") if row != best]
        return [
            above(found, best, row, column, added=True)
            for row in rivals
            for column in found.columns
        ]

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return what is shown."""
        less = [*fedacs.notes("paper"), "50 clients (paper: 100), LeNet-5, 15 rounds."]
        return [
            "Accuracy on validation data: a fifth of a client's images.",
            "'updates': the cosine of what was learned since the first model.",
            *(less if scale == "small" else fedacs.notes(scale)),
        ]
