"""What a client's model says of new rows, which need not have a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError, UnknownNameError, did_you_mean
from coalitions.files.records import with_days
from learners.data.own.columns import all_rows
from learners.data.own.encode_table import EncodedTable
from learners.data.own.paths import has_own_data, path_settings, read_own, table_question
from learners.data.own.table_files import read_table
from learners.rows.workspace import predicted
from learners.runs.folder import RunFolder
from learners.runs.result import load_model


@dataclass(frozen=True, eq=False)
class PredictedRows:
    """Predictions of new rows, in the order of the rows.

    Attributes
    ----------
    client, target
        Whose model predicts, and which column.
    lines
        Where each row stands in its file.
    predictions
        A class by its name, or a number in the unit of the target's column.
    probabilities
        Of each class, by its name: an array with a number for each row; None for numbers.
    """

    client: str
    target: str
    lines: tuple[int, ...]
    predictions: tuple[str | float, ...]
    probabilities: Mapping[str, NDArray[np.float64]] | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as ``coalitions predict --json`` prints them."""
        chances = self.probabilities or {}
        return {
            "client": self.client,
            "target": self.target,
            "lines": list(self.lines),
            "predictions": list(self.predictions),
            "probabilities": None
            if self.probabilities is None
            else [
                {name: float(column[row]) for name, column in chances.items()}
                for row in range(len(self.lines))
            ],
        }


def predict(out: Path, client: str, rows: Path) -> PredictedRows:
    """Return what a client's model predicts of the rows in a file.

    Parameters
    ----------
    out
        The run's folder. The table it was trained on must still be where it was: numbers are
        scaled by the client's own training rows.
    client
        Its name, or its number.
    rows
        A table with the columns of the training data; that of the target may be missing.
    """
    config = RunFolder.open(out).config()
    if not has_own_data(config):
        raise InvalidInputError(
            f"{out} was trained on {config.dataset}, a data set by name; new rows are for tables"
        )
    table = read_own(config)
    if not isinstance(table, EncodedTable):
        raise InvalidInputError(f"{config.dataset} is no table, so it has no rows to predict")
    names = list(table.encoders)
    if client not in names and client.isdecimal() and int(client) < len(names):
        client = names[int(client)]
    if client not in names:
        raise UnknownNameError(
            f"there is no client {client!r}; {did_you_mean(client, names)}there are:"
            f" {', '.join(names)}"
        )
    schema = table.schema
    asked = table_question(path_settings(config), schema.target, config.client_column or "")
    new = all_rows(with_days(read_table(rows), asked.names))
    if not len(new):
        raise InvalidInputError(f"{rows}: has no rows")
    encoder = table.encoders[client]
    tensors = {name: torch.from_numpy(each) for name, each in encoder.inputs(new).items()}
    inputs = next(iter(tensors.values())) if len(tensors) == 1 else tensors
    with torch.no_grad():
        outputs = predicted(load_model(out, names.index(client)), inputs).double().numpy()
    lines = tuple(map(int, new.table.lines[new.chosen]))
    if schema.task == "regression":
        found = outputs.reshape(len(new)) * encoder.target.unit + encoder.target.centre
        return PredictedRows(client, schema.target, lines, tuple(found.tolist()), None)
    chances = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    best = chances.argmax(axis=1).tolist()
    return PredictedRows(
        client,
        schema.target,
        lines,
        tuple(schema.classes[k] for k in best),
        {name: chances[:, k] for k, name in enumerate(schema.classes)},
    )
