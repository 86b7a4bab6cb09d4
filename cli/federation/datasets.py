"""What would be dealt of a table or folder of the user's: clients, samples, classes, columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.terminal.completion import check_names, completion
from cli.terminal.output import (
    WRITTEN,
    Json,
    Output,
    Plugin,
    Quiet,
    Seed,
    check_output,
    print_json,
    save_output,
    stderr,
    stdout,
)
from coalitions.errors import InvalidInputError, spoken
from coalitions.results import Row, cell_text

PARTS = ("train", "validation", "test")

if TYPE_CHECKING:
    from rich.table import Table

    from learners.data.client_data import FederatedData, Split
    from learners.settings.config import RunConfig


def own_document(config: RunConfig, n_clients: int | None) -> dict[str, Any]:
    """Return what a run with these settings would give its clients, as plain values."""
    from learners.data.own.encode_table import EncodedTable
    from learners.data.own.paths import check_clients, federation_of_outcome, read_own

    outcome = read_own(config)
    if n_clients is not None:
        check_clients(Path(config.dataset), len(outcome.clients), n_clients)
    data = federation_of_outcome(config, outcome)
    table = outcome if isinstance(outcome, EncodedTable) else None
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


def _own_clients(document: Mapping[str, Any]) -> list[Row]:
    counted = document["task"] != "regression"
    return [
        {"client": entry["name"]}
        | {part: entry[part] for part in PARTS}
        | (
            {"labels": _counted(entry["labels"])}
            if counted
            else {"targets": " … ".join(map(spoken, entry["range"]))}
        )
        for entry in document["clients"]
    ]


def _own_columns(document: Mapping[str, Any]) -> list[Row]:
    return [
        {
            "column": column["name"],
            "kind": column["kind"] + (", may be missing" if column.get("missing") else ""),
            "categories": ", ".join(column.get("categories", ())),
        }
        for column in document["schema"]["columns"]
    ] + [
        {"column": name, "kind": "left out", "categories": why}
        for name, why in document["left_out"].items()
    ]


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


# ----------------------------------------------------------------------------------------
# `coalitions datasets`: which data sets there are, and how one would be dealt out.


def datasets_command(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Name of a data set, or path of your own table or folder. Without one, list all"
            " data sets.",
            autocompletion=completion("datasets"),
        ),
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with data files; default $COALITIONS_DATA.")
    ] = None,
    clients: Annotated[
        int | None, typer.Option(help="Number of clients. [default: 10; those of your data]")
    ] = None,
    partition: Annotated[
        str,
        typer.Option(
            help="iid, pathological:K, distinct:K, ring:K, labels:…, dirichlet:A, quantity:A, "
            "domains; auto takes the usual one."
        ),
    ] = "auto",
    train_size: Annotated[
        int | None, typer.Option(help="Training images per client, validation included.")
    ] = None,
    poison: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND:CLIENTS", help="wrong-labels:0,3, swap-1-7:2 or noise:5."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of your table to predict.")
    ] = None,
    client_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column with the client's name.")
    ] = None,
    group_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column with the client's group.")
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="classification or regression. [default: by the target]"),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(help="File with the agreed columns, categories and classes (.json .toml)."),
    ] = None,
    share_statistics: Annotated[
        bool, typer.Option("--share-statistics", help="Scale by pooled sums and counts.")
    ] = False,
    test_size: Annotated[int | None, typer.Option(help="Test samples per client.")] = None,
    output: Output = None,
    plot: Annotated[
        Path | None,
        WRITTEN,
        typer.Option(help="Write a picture of the split (.png .svg .pdf)."),
    ] = None,
    seed: Seed = 0,
    json_output: Json = False,
    quiet: Quiet = False,
    plugin: Plugin = None,
) -> None:
    """List the data sets and their sources, or show how one is split among clients.

    Example: coalitions datasets digits --clients 10 --partition dirichlet:0.1 --plot split.png

    Example: coalitions datasets examples/data/patients.csv --target readmitted --client-column hospital
    """  # noqa: E501 (a line to copy)
    check_output(output)
    own = {
        "target": target,
        "client_column": client_column,
        "group_column": group_column,
        "task": task,
        "schema": None if schema is None else str(schema),
        "share_statistics": share_statistics or None,
        "test_size": test_size,
    }
    own = {key: value for key, value in own.items() if value is not None}
    if name is not None and _is_own(name):
        given = own | {"clients": clients, "train_size": train_size, "poison": poison or ()}
        check_plain(plot, data_dir)
        _show_own(name, partition, seed, given, output, json_output, quiet)
        return
    if own:
        raise InvalidInputError(
            f"--{next(iter(own)).replace('_', '-')} is for a table or folder of yours, by its path"
        )
    if name is None:
        if plot is not None:
            raise InvalidInputError("--plot draws one data set's split: name the data set first")
        document = _listed(data_dir)
    else:
        clients = 10 if clients is None else clients
        check_names({"datasets": name}, plugin)
        document = _dealt(name, data_dir, clients, partition, train_size, poison, plot, seed)
    rows = _rows_of_list(document) if name is None else _rows_of_clients(document)
    if json_output:
        print_json(document)
    else:
        stdout().print(_table(rows))
    what = "data sets" if name is None else "clients"
    save_output(output, {what: rows}, document, title=name or "Data sets")


def _rows_of_list(document: Mapping[str, Any]) -> list[Row]:
    return [
        {
            "data set": name,
            "here": entry["here"],
            "what": entry["description"],
            "where from": entry["origin"],
        }
        for name, entry in document.items()
    ]


def _rows_of_clients(document: Mapping[str, Any]) -> list[Row]:
    return [
        {
            "client": number,
            "domain": entry["domain"] + " poisoned" * entry["poisoned"],
            **{part: entry[part] for part in PARTS},
            "labels": _counted(entry["labels"]),
        }
        for number, entry in enumerate(document["clients"])
    ]


def _counted(labels: Mapping[str, int]) -> str:
    return ", ".join(f"{label}: {n}" for label, n in labels.items())


def _table(rows: Sequence[Row]) -> Table:
    """Return rows as a table for people; a long last column is folded."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for head in rows[0] if rows else ():
        table.add_column(head, overflow="fold" if head == "where from" else "ellipsis")
    for row in rows:
        table.add_row(*map(cell_text, row.values()))
    return table


def _is_own(name: str) -> bool:
    from learners.data.own.paths import is_path

    if not is_path(name, ()):
        return False
    from learners.data.dataset import DATASETS  # with those of plug-ins

    return name not in DATASETS


def _show_own(
    path: str,
    partition: str,
    seed: int,
    given: Mapping[str, Any],
    output: Path | None,
    json_output: bool,
    quiet: bool,
) -> None:
    """Print what would be dealt of a table or folder."""
    from learners.settings.config import RunConfig

    values = {key: value for key, value in given.items() if value is not None}
    config = RunConfig.of({"dataset": path, "partition": partition, "seed": seed} | values)
    document = own_document(config, given["clients"])
    tables = {"clients": _own_clients(document)}
    if document["schema"] is not None:
        tables["columns"] = _own_columns(document)
    if json_output:
        print_json(document)
    else:
        if not quiet:
            stderr().print(document["told"], style="dim", soft_wrap=True)
        for number, rows in enumerate(tables.values()):
            if number:
                stdout().print()
            stdout().print(_table(rows))
    save_output(output, tables, document, title=Path(path).name, said=document["told"])


def _listed(data_dir: Path | None) -> dict[str, Any]:
    from learners.data.dataset import DATASETS
    from learners.data.files import data_folder

    folder = data_folder(data_dir)
    document = {}
    for name in DATASETS:
        source = DATASETS[name]()
        here, origin = source.origin(folder)
        summary = (source.__doc__ or name).strip().splitlines()[0]
        document[name] = {
            "here": here,
            "origin": origin,
            "description": summary.split(" [")[0].rstrip("."),
            "partition": source.partition,
            "train_size": source.train_size,
        }
    return document


def _dealt(
    name: str,
    data_dir: Path | None,
    clients: int,
    partition: str,
    train_size: int | None,
    poison: list[str] | None,
    plot: Path | None,
    seed: int,
) -> dict[str, Any]:
    from cli.report.data_pictures import draw_split, label_counts
    from learners.data.clients import federated_data

    data = federated_data(
        name,
        clients=clients,
        partition=partition,
        seed=seed,
        train_size=train_size,
        poison=poison or (),
        data_dir=data_dir,
    )
    if plot is not None:
        draw_split(data, plot)
    return {
        "dataset": name,
        "task": data.targets.kind,
        "shape": list(data.shape),
        "n_classes": data.n_classes,
        "clients": [
            {
                "domain": client.domain,
                "poisoned": client.poisoned,
                "train": len(client.train),
                "validation": len(client.validation),
                "test": len(client.test),
                "labels": {str(label): int(n) for label, n in enumerate(row) if n},
            }
            for client, row in zip(data.clients, label_counts(data), strict=True)
        ],
    }


COMMANDS = {"datasets": datasets_command}
