"""Tables that scikit-learn brings along: patients, wines, and digits without their pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from learners.data.dataset import DATASETS, DataSet, Table, TableSet
from learners.data.files import bundled
from learners.data.kinds import Targets, classes
from learners.settings.seeding import generator

STRATA = 10
"""Ranges of a regression's target that partitions deal out as they deal out classes."""


class _Bundled(DataSet):
    """A table of scikit-learn.

    There is no official split: every fifth row of a class (or of a tenth of the targets), in a
    fixed random order, is for testing. Columns are scaled to mean 0 and standard deviation 1 of
    the training rows.
    """

    def load(self, folder: Path | None) -> dict[str, TableSet]:
        """Return the one table; `folder` does not matter."""
        values, truth, targets = self.read()
        return {"": _with_fixed_split(values, truth, targets)}

    def read(self) -> tuple[NDArray[np.float64], NDArray[Any], Targets]:
        """Return rows, targets, and what these are."""
        raise NotImplementedError

    def origin(self, folder: Path | None) -> tuple[bool, str]:
        """Tell that scikit-learn brings it."""
        return True, "shipped with scikit-learn"


def _of_csv(name: str) -> tuple[NDArray[np.float64], NDArray[Any], Targets]:
    """Return a table whose last column is a class, and whose first line names the classes."""
    path = bundled("sklearn", "datasets", "data", name)
    with path.open() as file:
        names = tuple(file.readline().strip().split(",")[2:])
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    return table[:, :-1], table[:, -1].astype(np.int64), classes(len(names), names)


@DATASETS.register("breast-cancer")
class BreastCancer(_Bundled):
    """569 tumours, 30 measurements, malignant or benign, shipped with scikit-learn."""

    partition = "dirichlet:1"

    def read(self) -> tuple[NDArray[np.float64], NDArray[Any], Targets]:
        """Return the tumours."""
        return _of_csv("breast_cancer.csv")


@DATASETS.register("wine")
class Wine(_Bundled):
    """178 wines, 13 measurements, three growers, shipped with scikit-learn."""

    partition = "dirichlet:1"

    def read(self) -> tuple[NDArray[np.float64], NDArray[Any], Targets]:
        """Return the wines."""
        return _of_csv("wine_data.csv")


@DATASETS.register("digits-tabular")
class DigitsTabular(_Bundled):
    """1797 handwritten digits as rows of 64 numbers, shipped with scikit-learn."""

    def read(self) -> tuple[NDArray[np.float64], NDArray[Any], Targets]:
        """Return the digits."""
        table = np.loadtxt(bundled("sklearn", "datasets", "data", "digits.csv.gz"), delimiter=",")
        return table[:, :64], table[:, 64].astype(np.int64), classes(10)


@DATASETS.register("diabetes")
class Diabetes(_Bundled):
    """442 patients, 10 measurements, how far the disease went in a year: a regression.

    The target, too, is scaled to mean 0 and standard deviation 1. Partitions deal out tenths of
    it in place of classes.
    """

    partition = "iid"

    def read(self) -> tuple[NDArray[np.float64], NDArray[Any], Targets]:
        """Return the patients."""
        folder = ("sklearn", "datasets", "data")
        rows = np.loadtxt(bundled(*folder, "diabetes_data_raw.csv.gz"))
        truth = np.loadtxt(bundled(*folder, "diabetes_target.csv.gz"))
        return rows, truth, Targets("regression", 1)


def _with_fixed_split(
    values: NDArray[np.float64], truth: NDArray[Any], targets: Targets
) -> TableSet:
    regression = targets.kind == "regression"
    labels = truth
    if regression:
        labels = np.argsort(np.argsort(truth, kind="stable")) * STRATA // len(truth)
    order = generator(0, "training or testing").permutation(len(truth))
    order = order[np.argsort(labels[order], kind="stable")]
    place = np.concatenate([np.arange(n) for n in np.bincount(labels)])
    train, test = np.sort(order[place % 5 != 0]), np.sort(order[place % 5 == 0])
    whole = Table(_scaled(values, train), _scaled(truth, train) if regression else truth, labels)
    n_labels = STRATA if regression else targets.n_outputs
    return TableSet(whole[train], whole[test], targets, n_labels)


def _scaled(values: NDArray[np.float64], train: NDArray[np.int64]) -> NDArray[np.float32]:
    spread = values[train].std(axis=0)
    scaled: NDArray[np.float64] = (values - values[train].mean(axis=0)) / np.where(
        spread > 0, spread, 1.0
    )
    return scaled.astype(np.float32)
