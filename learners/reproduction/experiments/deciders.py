"""What may decide open questions: each hypothesis was written down before its first run.

None of them is a table that a paper has in this form. What a hypothesis says stands in the notes of
its page, whatever comes out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from learners.experiments.paired_statistics import paired_difference
from learners.reproduction.claims import Claim, Measured, above, mostly, near
from learners.reproduction.experiment import (
    EXPERIMENTS,
    AccuracyTable,
    Key,
    Results,
    Scale,
    TableRow,
)
from learners.reproduction.experiments import cffl_tables as cffl
from learners.reproduction.experiments import fedacs_tables as fedacs
from learners.reproduction.experiments import pfedsv_tables
from learners.reproduction.experiments.open_settings import APART
from learners.reproduction.printed import paper_table

ALWAYS_IN = "own model always in"


@EXPERIMENTS.register("pfedsv-own-model")
class OwnModel(AccuracyTable):
    """Whether pFedSV gains where the own model is in every coalition, or is weighed otherwise."""

    ours = ALWAYS_IN
    first_seed, settles = APART, True
    seeds: ClassVar[Mapping[Scale, int]] = {"smoke": 1, "small": 10, "paper": 10}

    def methods(self, scale: Scale) -> Mapping[str, TableRow]:
        """Return training alone, pFedSV, another game, and three distances of the own model."""
        distances = {
            f"self-distance {name}": TableRow("pfedsv", {"self_distance": name})
            for name in ("printed", "exclude", "last")
        }
        return {
            "Separate": TableRow("local"),
            "pFedSV": TableRow("pfedsv"),
            ALWAYS_IN: TableRow("pfedsv", {"players": "others"}),
            **distances,
        }

    def federations(self, scale: Scale) -> Mapping[str, Mapping[str, Any]]:
        """Return the columns of Table I."""
        return pfedsv_tables.Table1().federations(scale)

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return that the own model in every coalition helps, and that it beats training alone."""
        pairs = (
            (ALWAYS_IN, "pFedSV"),
            (ALWAYS_IN, "Separate"),
            ("self-distance printed", "Separate"),
            ("self-distance exclude", "pFedSV"),
            ("self-distance last", "pFedSV"),
        )
        return [
            above(found, one, other, column, added=True)
            for column in found.columns
            for one, other in pairs
        ]

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return the hypothesis, and what the rows are."""
        return [
            *pfedsv_tables.notes(scale),
            "Hypothesis, before it ran: in Eq. 4 a model of another task has a positive value even"
            " where mixing it in harms, as v(∅) = 0. So with the own model in every coalition"
            " pFedSV is above itself, and level with training alone: not above it, as nobody here"
            " has the same two labels. With self-distance 'printed' it is level with training"
            " alone, too; 'exclude' is below the default; 'last' and the default are not told"
            " apart. If the first of these fails, the game is not what costs the accuracy.",
            "'own model always in': others are worth v(X ∪ {i}) − v({i}); the own model v({i})."
            " 'printed': the own model has nearly all of the weight; 'exclude': none; 'last': its"
            " distance is that to the model the round began with.",
        ]


SPLITS = {"two labels": "pathological:2", "Dir 0.5": "dirichlet:0.5"}


@EXPERIMENTS.register("fedacs-two-labels")
class TwoLabels(AccuracyTable):
    """By which split FedACS' Table 1 may have been made: two labels a client, or Dirichlet 0.5."""

    ours = "Local"
    first_seed, settles = APART, True

    def methods(self, scale: Scale) -> Mapping[str, TableRow]:
        """Return the rows of Table 1."""
        return fedacs.FedacsTable1().methods(scale)

    def federations(self, scale: Scale) -> Mapping[str, Mapping[str, Any]]:
        """Return both data sets with 50 images a client and either split."""
        return {
            f"{data}, {name}": fedacs.federation(data, split, scale, images=50)
            for data in fedacs.sets(scale)
            for name, split in SPLITS.items()
        }

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return which split is nearer to what is printed, and Table 1's claims on two labels."""
        printed = paper_table("fedacs-table1")
        told = []
        for data, nearer, farther in (
            ("CIFAR-10", "two labels", "Dir 0.5"),
            ("FMNIST", "Dir 0.5", "two labels"),
        ):
            level = printed.get("Local", data)
            near_by, far = (found.get("Local", f"{data}, {split}") for split in (nearer, farther))
            if level is None or near_by is None or far is None:
                continue
            off, other = ([abs(each - level.mean) for each in row] for row in (near_by, far))
            gap = paired_difference(other, off, found.confidence)
            text = f"Local is nearer to the printed {level.mean} with {nearer} ({data})"
            told.append(Claim(text, None, gap, added=True, confidence=found.confidence))
        pairs = (("Ditto-P", "Ditto-G"), ("PerAvg-P", "PerAvg-G"), ("Local", "Ditto-G"))
        told += [
            above(found, one, other, column, added=True)
            for column in found.columns
            if column.endswith("two labels")
            for one, other in pairs
        ]
        return told

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return the hypothesis, and what differs."""
        return [
            *fedacs.notes(scale),
            "Hypothesis, before it ran: the paper says Dirichlet 0.5, but its local accuracy on"
            " CIFAR-10, 77.29 with 50 images, needs two labels a client: there Local is nearer to"
            " it than with Dirichlet 0.5. On FMNIST its 75.98 is nearer with Dirichlet 0.5. With"
            " two labels global models are far below personal ones on both sets, which the paper"
            " prints for CIFAR-10 alone.",
        ]


@EXPERIMENTS.register("cffl-fifteen")
class Fifteen(cffl.CfflTable1):
    """CFFL's Table I with its 15 clients and 200 images, five seeds."""

    seeds: ClassVar[Mapping[Scale, int]] = {"smoke": 1, "small": 5, "paper": 5}
    judged_elsewhere = ()

    def runs(self, scale: Scale) -> Mapping[Key, Mapping[str, Any]]:
        """Return the paper's six methods in the paper's federation."""
        federation = cffl.federation("smoke" if scale == "smoke" else "paper")
        return {(row, "200 images"): each.run(federation) for row, each in cffl.METHODS.items()}

    def measured(self, results: Results, scale: Scale, seeds: Sequence[int]) -> Measured:
        """Return accuracies, and of CFFL whether the last coalitions hold one distribution only."""
        found = super().measured(results, scale, seeds)
        rows = {row: dict(each) for row, each in found.rows.items()}
        for (row, _), runs in results.items():
            if row in ("ICA", "COS"):
                rows[row][PURE] = [100.0 * cffl.is_pure(run) for run in runs]
        return Measured((*found.columns, PURE), rows)

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return the claims of Table I, that ICA's coalitions hold one distribution, and SVHN's."""
        told = list(super().claims(found, results))
        if (pure := found.get("ICA", PURE)) is not None:
            text = "coalitions of ICA hold one distribution only"
            told.append(mostly(text, [each == 100 for each in pure], confidence=found.confidence))
        column = "SV, 200 images"
        level = None if self.printed is None else self.printed.get("Dom", column)
        if level is not None and column in found.columns:
            text = f"Dom is within {PLATEAU:g} points of the printed {level.mean} ({column})"
            row = found.rows["Dom"][column]
            told.append(near(text, row, level.mean, within=PLATEAU, added=True))
        return told

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return the hypothesis, and what differs."""
        return [
            *cffl.notes("smoke" if scale == "smoke" else "paper"),
            "Hypothesis, before it ran: with nine clients (cffl-table1) the model of each domain is"
            " held back by SVHN, where three clients do not leave the plateau in 20 rounds (61 %;"
            f" printed: 74.3). With five clients a domain it comes within {PLATEAU:g} points, and"
            " Dom is level with ICA and COS, not below. ICA and COS are above FA and Loc. ICA over"
            " IFCA, printed as 0.4 points, is not told with five seeds. ICA's last coalitions mix"
            " distributions in most seeds: 50 test images do not tell them apart.",
            f"'{PURE}': 100 for a seed in which every last coalition holds one distribution only.",
            *cffl.AS_PRINTED,
        ]


PURE = "one distribution"
"""The column that is 100 where every coalition holds clients of one distribution only."""

PLATEAU = 5.0
"""How near to the printed accuracy a model has left a plateau that lies 13 points below."""
