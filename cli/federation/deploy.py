"""`coalitions deploy`: a Flower app for machines that are not this one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.terminal.completion import completion
from cli.terminal.output import Json, print_json, stdout


def deploy_command(
    folder: Annotated[Path, typer.Argument(help="Folder to write, which must not exist.")],
    algorithm: Annotated[
        str, typer.Option(help="Federated method.", autocompletion=completion("algorithms"))
    ] = "pfedsv",
    clients: Annotated[int, typer.Option(help="Number of nodes.")] = 3,
    rounds: Annotated[int, typer.Option(help="Number of rounds.")] = 20,
    inputs: Annotated[
        int, typer.Option(help="Numbers in an example: columns of a table, pixels of a picture.")
    ] = 64,
    classes: Annotated[
        int | None,
        typer.Option(
            help="Number of labels, which are 0, 1, …; of numbers to learn in a regression.",
            show_default="10, or 1 in a regression",
        ),
    ] = None,
    task: Annotated[
        str,
        typer.Option(
            help="What is learnt: classification, multi-label or regression.",
            show_default="classification",
        ),
    ] = "auto",
    host: Annotated[
        str, typer.Option(help="Name or address under which nodes find the SuperLink.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(help="Port of its proxy; the SuperLink has the next, on its machine only."),
    ] = 8000,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the app; keys, data and runs stay.")
    ] = False,
    json_output: Json = False,
) -> None:
    """Write a Flower app: server, nodes with their own data, keys, proxy, services, containers.

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
