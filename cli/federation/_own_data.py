"""What would be dealt of a table or folder of the user's: clients, samples, classes, columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coalitions.errors import InvalidInputError, spoken

if TYPE_CHECKING:
    from rich.table import Table

    from learners.data.contents import FederatedData, Split
    from learners.settings.config import RunConfig


def own_document(config: RunConfig, n_clients: int | None) -> dict[str, Any]:
    """Return what a run with these settings would give its clients, as plain values."""
    from learners.data.doors.settings import check_clients, federation_of_outcome, read_own
    from learners.data.tables.dealing import DealtTable

    outcome = read_own(config)
    if n_clients is not None:
        check_clients(Path(config.dataset), outcome, n_clients)
    data = federation_of_outcome(config, outcome)
    table = outcome if isinstance(outcome, DealtTable) else None
    return {
        "dataset": config.dataset,
        "told": data.told,
        "task": data.targets.kind,
        "classes": list(data.targets.names),
        "inputs": {key: each.document() for key, each in data.inputs.items()},
        "left_out": {} if table is None else dict(table.dropped),
        "schema": None if table is None else table.schema.document(),
        "clients": [
            {
                "name": name,
                **({"group": client.domain} if client.domain else {}),
                "train": len(client.train),
                "validation": len(client.validation),
                "test": len(client.test),
                "labels": _counts(data, client.train),
                "range": _range(data, client.train),
            }
            for name, client in zip(data.names, data.clients, strict=True)
        ],
    }


def own_table(document: Mapping[str, Any]) -> Table:
    """Return the clients as a table for people."""
    from rich.table import Table

    counted = document["task"] != "regression"
    header = ("client", "train", "validation", "test", "labels" if counted else "targets")
    table = Table(*header, box=None, pad_edge=False)
    for entry in document["clients"]:
        sizes = (str(entry[part]) for part in ("train", "validation", "test"))
        labels = ", ".join(f"{label}: {n}" for label, n in entry["labels"].items())
        told = labels if counted else " … ".join(map(spoken, entry["range"]))
        table.add_row(entry["name"], *sizes, told)
    return table


def columns_table(document: Mapping[str, Any]) -> Table | None:
    """Return the columns of a table for people; None if clients have something else."""
    from rich.table import Table

    if document["schema"] is None:
        return None
    table = Table("column", "", "categories", box=None, pad_edge=False)
    for column in document["schema"]["columns"]:
        missing = ", may be missing" if column.get("missing") else ""
        names = ", ".join(column.get("categories", ()))
        table.add_row(column["name"], column["kind"] + missing, names)
    for name, why in document["left_out"].items():
        table.add_row(name, "left out", why)
    return table


def check_plain(plot: object, data_dir: object) -> None:
    """Refuse what is for data sets by name."""
    if plot is not None:
        raise InvalidInputError("--plot draws data sets that have a name, not data by path")
    if data_dir is not None:
        raise InvalidInputError("--data-dir is for data sets that have a name, not data by path")


def _counts(data: FederatedData, split: Split) -> dict[str, int]:
    """Return the number of training samples of each class or label that is there."""
    if data.targets.kind not in ("classification", "multi-label"):
        return {}
    import numpy as np

    targets = split.targets.numpy()
    n = data.targets.n_outputs
    one_each = targets.ndim == 1
    counts = np.bincount(targets, minlength=n) if one_each else targets.sum(0).astype(int)
    names = data.targets.names or [str(k) for k in range(n)]
    return {name: int(count) for name, count in zip(names, counts, strict=True) if count}


def _range(data: FederatedData, split: Split) -> list[float] | None:
    if data.targets.kind != "regression":
        return None
    return [round(float(split.targets.min()), 4), round(float(split.targets.max()), 4)]
