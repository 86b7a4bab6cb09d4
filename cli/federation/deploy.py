"""`coalitions deploy`: a Flower app for machines that are not this one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.terminal.completion import completion
from cli.terminal.output import Json, print_json, stdout


def deploy_command(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder to write, which must not exist.")
    ],
    algorithm: Annotated[
        str, typer.Option(help="Federated method.", autocompletion=completion("algorithms"))
    ] = "pfedsv",
    clients: Annotated[int, typer.Option(help="Number of nodes.")] = 3,
    rounds: Annotated[int, typer.Option(help="Number of rounds.")] = 20,
    inputs: Annotated[
        int, typer.Option(help="Inputs of the network: columns of a table, or pixels of a picture.")
    ] = 64,
    classes: Annotated[
        int | None,
        typer.Option(
            help="Number of classes 0, 1, …, or of targets in a regression.",
            show_default="10, or 1 in a regression",
        ),
    ] = None,
    task: Annotated[
        str,
        typer.Option(
            help="What to learn: classification, multi-label or regression.",
            show_default="classification",
        ),
    ] = "auto",
    host: Annotated[
        str, typer.Option(help="Name or address of the SuperLink's machine.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            help="Port of the proxy; the SuperLink uses the next one, on its own machine only."
        ),
    ] = 8000,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the app; keys, data and runs stay.")
    ] = False,
    json_output: Json = False,
) -> None:
    """Write a Flower app for real sites: server, nodes, keys, proxy, services and containers.

    Example: coalitions deploy federation --algorithm cffl --clients 3 --host superlink.example.org
    """
    from learners.flower.project import write_project

    written = write_project(
        folder,
        algorithm=algorithm,
        clients=clients,
        rounds=rounds,
        inputs=inputs,
        classes=classes,
        task=task,
        host=host,
        port=port,
        force=force,
    )
    if json_output:
        print_json({"folder": str(folder), "files": written})
        return
    console = stdout()
    for name in written:
        console.print(str(folder / name), markup=False, highlight=False)
    console.print(f"next: {folder / 'README.md'}", markup=False, highlight=False)


COMMANDS = {"deploy": deploy_command}
