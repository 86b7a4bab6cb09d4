"""FedC²I: Tables 1 to 4 and Fig. 3, on domains of digits and of office objects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from learners.experiments.paired_statistics import Difference, bootstrap_interval
from learners.reproduction.claims import Claim, Measured, above, best, exact
from learners.reproduction.experiment import (
    EXPERIMENTS,
    AccuracyTable,
    Experiment,
    Key,
    Results,
    Scale,
    TableRow,
    clients_of,
    domain_accuracies,
    mean_accuracy,
    record_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from learners.runs.result import Result

RIVALS = {
    "Local": TableRow("local"),
    "FedAvg": TableRow("fedavg"),
    "FedProx": TableRow("fedprox"),
    "FedRep": TableRow("fedrep"),
    "FedRoD": TableRow("fedrod"),
    "FedProto": TableRow("fedproto"),
}
"""The paper's baselines."""

OURS = "FedC²I"

SEEDS: Mapping[Scale, int] = {"smoke": 1, "small": 3, "paper": 3}
"""Seeds: the paper's three."""

_TRAINING = {"optimizer": "adam", "lr": 0.001, "batch_size": 32, "local_epochs": 2}

_SMOKE = {
    "dataset": "digits-domains", "clients": 3, "train_size": 30, "rounds": 2, "local_epochs": 1,
    "batch_size": 10,
}  # fmt: skip

DOMAINS = {
    "Digit-5": {
        "mnist": "MNIST", "svhn": "SVHN", "usps": "USPS", "synth-digits": "SynthDigits",
        "mnist-m": "MNIST-M",
    },
    "Office-10": {
        "amazon": "Amazon", "caltech": "Caltech", "dslr": "DSLR", "webcam": "WebCam",
    },
}  # fmt: skip
"""How the paper calls our domains."""


def federation(name: str, scale: Scale) -> dict[str, Any]:
    """Return the settings of one of the paper's two federations."""
    if scale == "smoke":
        return dict(_SMOKE)
    if name == "Digit-5":
        # Without validation data, which the paper gives back for the runs it reports.
        digits = {"clients": 5, "train_size": 1000, "test_size": 1000, "validation_share": 0.0}
        if scale == "small":
            return {
                **_TRAINING, **digits, "dataset": "digit-5-32", "model": "lenet-5", "rounds": 20,
                "test_size": 400,
            }  # fmt: skip
        return {**_TRAINING, **digits, "dataset": "digit-5", "model": "lenet-64", "rounds": 20}
    # Everything that is left is for tests: the paper has "a larger set of samples as test set".
    office = {
        "dataset": "office-10", "clients": 4, "model": "lenet-64", "rounds": 40,
        "train_sizes": (200, 200, 118, 197), "test_sizes": (240, 281, 39, 76),
        "validation_share": 0.0,
    }  # fmt: skip
    if scale == "small":
        office |= {"dataset": "office-10-32", "rounds": 20, "evaluate_every": 20}
    return {**_TRAINING, **office}


def _federations(scale: Scale) -> list[str]:
    return list(DOMAINS)[:1] if scale == "smoke" else list(DOMAINS)


def _notes(scale: Scale) -> list[str]:
    if scale == "smoke":
        return ["Digits of scikit-learn in three domains, two rounds: the figures mean nothing."]
    told = [
        "SynthDigits are rendered here, MNIST-M is made from other photographs, and MNIST, SVHN and"
        " USPS are subsets: domains are alike, not the same.",
        "DSLR has 118 training images here, 125 in the paper.",
    ]
    if scale == "small":
        told += [
            "Pictures of 32×32 (paper: 64×64); Digit-5 with LeNet-5, Office-10 for 20 rounds (40)."
        ]
    return told


class _ByDomain(Experiment):
    """Accuracies by domain: one client in each."""

    federation: str
    seeds = SEEDS

    def methods(self) -> Mapping[str, TableRow]:
        """Return the rows: the paper's, and FedAvg after local epochs, which it leaves out."""
        return {**RIVALS, "FedAvg+FT": TableRow("fedavg-ft"), OURS: TableRow("fedc2i")}

    def runs(self, scale: Scale) -> Mapping[Key, Mapping[str, Any]]:
        """Return a run for every method."""
        shared = federation(self.federation, scale)
        return {(row, ""): method.run(shared) for row, method in self.methods().items()}

    def measured(self, results: Results, scale: Scale, seeds: Sequence[int]) -> Measured:
        """Return accuracies by domain and their mean."""
        names = DOMAINS[self.federation]
        rows: dict[str, dict[str, list[float]]] = {}
        for (row, _), runs in results.items():
            found = [domain_accuracies(run) for run in runs]
            columns = {names.get(each, each): [run[each] for run in found] for each in found[0]}
            rows[row] = {**columns, "Avg": [mean_accuracy(run) for run in runs]}
        return Measured(tuple(next(iter(rows.values()))), rows)

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return that FedC²I leads on average, and leads FedAvg and local training."""
        rivals = tuple(row for row in RIVALS if row not in ("FedAvg", "Local"))
        return [
            best(found, OURS, "Avg", self.printed, among=rivals),
            above(found, OURS, "FedAvg", "Avg", self.printed),
            above(found, OURS, "Local", "Avg", self.printed),
            *self.by_domain(found),
            above(found, OURS, "FedAvg+FT", "Avg", added=True),
        ]

    def by_domain(self, found: Measured) -> list[Claim]:
        """Return that FedC²I has the highest mean in at least half of the domains.

        Which mean is the highest depends on the seeds: they are resampled, for all domains alike.
        """
        text = f"{OURS} has the highest mean in at least half of the domains"
        if not {OURS, *RIVALS} <= found.rows.keys():
            return [Claim(text, None, None)]
        domains = [column for column in found.columns if column != "Avg"]
        figures = np.array([[found.rows[row][each] for each in domains] for row in (OURS, *RIVALS)])
        enough = math.ceil(len(domains) / 2) - 0.5

        def led(drawn: NDArray[np.int64]) -> NDArray[np.float64]:
            means = figures[:, :, drawn].mean(axis=3)  # by row, domain and resample
            led: NDArray[np.float64] = (means[0] > means[1:].max(axis=0)).sum(axis=0) - enough
            return led

        n_seeds = figures.shape[2]
        here = float(led(np.arange(n_seeds)[None, :])[0])
        limits = bootstrap_interval(led, n_seeds, found.confidence) or (None, None)
        return [
            Claim(
                f"{text} (here {round(here + enough)} of {len(domains)})",
                None,
                Difference(here, *limits),
                confidence=found.confidence,
                basis=f"domains led, less {enough:g}; bootstrap over seeds",
            )
        ]

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return how the data differ, and why a row was added."""
        return [
            *_notes(scale),
            "FedAvg+FT is no row of the paper: it tells what the last local epochs alone give.",
        ]


@EXPERIMENTS.register("fedc2i-table1")
class Fedc2iTable1(_ByDomain):
    """Seven methods on Digit-5, by domain."""

    source = "fedc2i-table1"
    federation = "Digit-5"

    def by_domain(self, found: Measured) -> list[Claim]:
        """Return that FedC²I leads in half of the domains, and clearly in MNIST-M."""
        told = super().by_domain(found)
        if "MNIST-M" in found.columns:
            told.append(best(found, OURS, "MNIST-M", self.printed, among=tuple(RIVALS)))
        return told


@EXPERIMENTS.register("fedc2i-table2")
class Fedc2iTable2(_ByDomain):
    """Seven methods on Office-10, by domain."""

    source = "fedc2i-table2"
    federation = "Office-10"

    def tried(self, scale: Scale) -> Sequence[str]:
        """Return what a higher resolution gave.

        Commit 3aecd12 has its figures.
        """
        if scale != "small":
            return []
        return [
            "Office-10 was run first with pictures of 64×64, 10 rounds, three seeds and 30 to"
            " 50 test images a domain. Then FedC²I had the highest mean in three of four"
            " domains, and shared it in the fourth. On average it had 67.82, by 3.75 (95 %:"
            " -5.92 … +13.42) more than the best baseline and 4.81 (-0.58 … +10.21) more than"
            " FedAvg+FT. To save time it became 32×32 with 20 rounds, and all remaining images"
            " are for tests: there it has the highest mean in no domain, and 0.34 less than"
            " FedAvg+FT. Neither lead nor loss is settled by its interval. Resolution, rounds"
            " and tests changed at once, so we do not know which of them turned the sign."
        ]


class _BothFederations(AccuracyTable):
    ours = OURS
    seeds = SEEDS

    def federations(self, scale: Scale) -> Mapping[str, Mapping[str, Any]]:
        """Return Digit-5 and Office-10."""
        return {name: federation(name, scale) for name in _federations(scale)}

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return how the data differ."""
        return _notes(scale)


@EXPERIMENTS.register("fedc2i-table3")
class Fedc2iTable3(_BothFederations):
    """What client-level and class-level influence give: ablations."""

    source = "fedc2i-table3"

    def methods(self, scale: Scale) -> Mapping[str, TableRow]:
        """Return the variants."""
        return {
            "Local": RIVALS["Local"],
            "FedAvg": RIVALS["FedAvg"],
            "FedC²I - λ": TableRow("fedc2i", {"variant": "client"}),
            "FedC²I - Λ/l": TableRow("fedc2i", {"variant": "class-local"}),
            "FedC²I - Λ/g": TableRow("fedc2i", {"variant": "class-global"}),
            OURS: TableRow("fedc2i"),
        }

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return that the full method leads its variants, and that client-level influence matters.

        Tables 1 and 2 compare it with training alone and FedAvg.
        """
        others = ("FedC²I - λ", "FedC²I - Λ/g")
        leads = [best(found, OURS, column, self.printed, among=others) for column in found.columns]
        matters = [
            above(found, OURS, "FedC²I - Λ/l", column, self.printed) for column in found.columns
        ]
        return [*leads, *matters]


@EXPERIMENTS.register("fedc2i-table4")
class Fedc2iTable4(_BothFederations):
    """How strongly losses tell clients apart: γ."""

    source = "fedc2i-table4"

    def methods(self, scale: Scale) -> Mapping[str, TableRow]:
        """Return the values of γ, with 0, which weighs everyone the same."""
        return {
            f"γ = {gamma:g}": TableRow("fedc2i", {"gamma": gamma})
            for gamma in (0, 0.5, 1, 2, 5, 10)
        }

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return that 5 is best, and that influence adds something at all."""
        printed = ("γ = 0.5", "γ = 1", "γ = 2", "γ = 10")
        leads = [
            best(found, "γ = 5", column, self.printed, among=printed) for column in found.columns
        ]
        adds = [above(found, "γ = 5", "γ = 0", column, added=True) for column in found.columns]
        return [*leads, *adds]


@EXPERIMENTS.register("fedc2i-fig3")
class Fedc2iFig3(Experiment):
    """Client-level influence in early and late rounds."""

    shown: ClassVar[Mapping[str, tuple[int, ...]]] = {
        "Digit-5": (1, 2, 10, 20),
        "Office-10": (1, 4, 10, 40),
    }
    seeds = SEEDS

    def runs(self, scale: Scale) -> Mapping[Key, Mapping[str, Any]]:
        """Return a run on each federation."""
        method = TableRow("fedc2i")
        return {("", name): method.run(federation(name, scale)) for name in _federations(scale)}

    def measured(self, results: Results, scale: Scale, seeds: Sequence[int]) -> Measured:
        """Return how much of its influence a client has on itself, and how it grows."""
        rows: dict[str, dict[str, list[float]]] = {"own": {}, "equal share": {}, "asymmetry": {}}
        for (_, name), runs in results.items():
            last = [_influences(run)[-1] for run in runs]
            rows["own"][name] = [float(np.diag(each).mean()) for each in last]
            rows["equal share"][name] = [1 / len(each) for each in last]
            rows["asymmetry"][name] = [float(np.abs(each - each.T).mean()) for each in last]
            domains = clients_of(runs[0]).domains
            if TWO.issubset(domains):
                pairs = [influence_of_two(domains, each) for each in last]
                rows[ALIKE] = {name: [on_each_other for on_each_other, _ in pairs]}
                rows[OTHERS] = {name: [on_them for _, on_them in pairs]}
        return Measured(tuple(name for _, name in results), rows, unit="λ, last round")

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return that influence is that of oneself and similar clients, and not symmetric."""
        told = [above(found, "own", "equal share", column) for column in found.columns]
        told += [above(found, ALIKE, OTHERS, column) for column in found.rows.get(ALIKE, {})]
        # "Not always symmetric", the paper says. A mean of sizes is never below zero: what counts
        # is that no seed has a symmetric matrix.
        odd = [
            exact(
                f"influence is not always symmetric: it is so with no seed ({column})",
                min(found.rows["asymmetry"][column]),
            )
            for column in found.columns
        ]
        return [*told, *odd]

    def figures(self, found: Measured, results: Results, scale: Scale) -> Mapping[str, Figure]:
        """Return λ of four rounds for each federation."""
        from learners.reproduction.pictures import matrices

        drawn = {}
        for (_, name), runs in results.items():
            influences = _influences(runs[0])
            wanted = [t for t in self.shown[name] if t <= len(influences)] or [len(influences)]
            panels = {f"round {t}": influences[t - 1] for t in wanted}
            drawn[name.lower()] = matrices(panels, f"λ, {name}")
        return drawn

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return how the data differ."""
        return _notes(scale)


TWO = {"svhn", "synth-digits"}
"""Domains with similar fonts, by which the paper shows who influences whom."""

ALIKE, OTHERS = "SVHN and SynthDigits, on each other", "others, on these two"


def influence_of_two(domains: Sequence[str], influence: NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean influence of the two similar domains on each other, and of others on them.

    Row i of `influence` says who influences client i.
    """
    two = np.isin(domains, list(TWO))
    between = influence[np.ix_(two, two)]
    on_each_other = between[~np.eye(len(between), dtype=bool)]
    return float(on_each_other.mean()), float(influence[np.ix_(two, ~two)].mean())


def _influences(run: Result) -> NDArray[np.float64]:
    return record_of(run).arrays["relevance"]
