"""`coalitions datasets`: which image sets there are, and how one would be dealt out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.terminal.completion import check_names, completion
from cli.terminal.output import Json, Plugin, Seed, print_json, stdout
from coalitions.errors import InvalidInputError


def datasets_command(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A data set to deal out; without it, all are listed.",
            autocompletion=completion("datasets"),
        ),
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with data files; default $COALITIONS_DATA.")
    ] = None,
    clients: Annotated[int, typer.Option(help="Number of clients.")] = 10,
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
    plot: Annotated[
        Path | None, typer.Option(help="Write a picture of the split (.png .svg .pdf).")
    ] = None,
    seed: Seed = 0,
    json_output: Json = False,
    plugin: Plugin = None,
) -> None:
    """List the data sets and where each comes from; or show how one is dealt out to clients.

    Example: coalitions datasets digits --clients 10 --partition dirichlet:0.1 --plot split.png
    """
    if name is None:
        if plot is not None:
            raise InvalidInputError("--plot draws one data set's split: name the data set first")
        document = _listed(data_dir)
    else:
        check_names({"datasets": name}, plugin)
        document = _dealt(name, data_dir, clients, partition, train_size, poison, plot, seed)
    if json_output:
        print_json(document)
        return
    from rich.table import Table

    if name is None:
        table = Table("data set", "here", "what", box=None, pad_edge=False)
        table.add_column("where from", overflow="fold")
        for key, entry in document.items():
            table.add_row(
                key, "yes" if entry["here"] else "no", entry["description"], entry["origin"]
            )
    else:
        header = ("client", "domain", "train", "validation", "test", "labels")
        table = Table(*header, box=None, pad_edge=False)
        for number, entry in enumerate(document["clients"]):
            labels = ", ".join(f"{label}: {n}" for label, n in entry["labels"].items())
            sizes = (str(entry[part]) for part in ("train", "validation", "test"))
            domain = entry["domain"] + " poisoned" * entry["poisoned"]
            table.add_row(str(number), domain, *sizes, labels)
    stdout().print(table)


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
    from cli.report.data_picture import draw_split, label_counts
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
