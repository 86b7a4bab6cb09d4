"""`coalitions attack`: recover a client's pictures from what it would upload in a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.terminal.output import Json, Quiet, print_json, stderr, stdout

if TYPE_CHECKING:
    from learners.attacks.inversion import Attacked

PICTURE, FIGURES = "inversion.png", "inversion.json"
"""What it leaves in the run's folder."""


def attack_command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The run's folder.")],
    client: Annotated[
        str,
        typer.Option(metavar="NAME", help="Whose training pictures to attack: name or number."),
    ] = "0",
    pictures: Annotated[
        int, typer.Option(help="How many of them; each is uploaded alone.", min=1)
    ] = 4,
    method: Annotated[
        str,
        typer.Option(help="features, dlg or cosine; auto takes the one that suits the network."),
    ] = "auto",
    steps: Annotated[
        int | None, typer.Option(help="Steps of the attack. [default: the attack's own]", min=1)
    ] = None,
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try to recover pictures from uploads: after one step, with noise, and after a whole round.

    Writes inversion.png (original, recovered, recovered under noise) and inversion.json into
    the run's folder. The noise is the run's own; if it has none, --noise 1 --clip 1. Half a
    minute or more for each picture.

    Example: coalitions attack runs/first --pictures 1
    """
    from cli.report.data_pictures import draw_inversion
    from coalitions.files.writing import write_json
    from learners.attacks.inversion import inversion_of
    from learners.runs.folder import RunFolder

    folder = RunFolder.open(directory)

    def tell(number: int, found: Attacked) -> None:
        if not quiet:
            stderr().print(
                f"picture {number}: {found.likeness[0]:.1f} dB recovered,"
                f" {found.noised_likeness[0]:.1f} dB under noise",
                soft_wrap=True,
            )

    found = inversion_of(
        folder.config(),
        client=_number(directory, client),
        pictures=pictures,
        method=_known(method),  # type: ignore[arg-type]
        steps=steps,
        on_picture=tell,
    )
    document = found.document() | {"picture": str(directory / PICTURE)}
    draw_inversion(found, directory / PICTURE)
    write_json(directory / FIGURES, document)
    if json_output:
        print_json(document)
        return
    about = found.privacy
    lines = {
        "attack": f"{found.method}, {pictures} pictures of client {client}, one step each",
        "recovered": f"{document['median_psnr']:.1f} dB (median)",
        "under noise": f"{document['median_noised_psnr']:.1f} dB (σ = {about.noise:.4g} in"
        f" {about.mode} clipped to {about.clip:g})",
        "after a real round": f"{max(found.round_psnr):.1f} dB at best, of"
        f" {len(found.round_psnr)} pictures",
        "picture": document["picture"],
    }
    for key, value in lines.items():
        stdout().print(f"{key:<22}{value}", soft_wrap=True)


def _number(directory: Path, client: str) -> int:
    """Return the number of a client that goes by its name or its number."""
    from coalitions.errors import UnknownNameError, did_you_mean
    from learners.runs.reading import read_result

    if client.isdecimal():
        return int(client)
    names = list((read_result(directory) or {}).get("client_names", ()))
    if client not in names:
        raise UnknownNameError(
            f"there is no client {client!r}; {did_you_mean(client, names)}there are:"
            f" {', '.join(names)}"
        )
    return names.index(client)


def _known(method: str) -> str:
    from coalitions.errors import InvalidInputError

    known = ("auto", "features", "dlg", "cosine")
    if method not in known:
        raise InvalidInputError(f"there is no attack {method!r}; there are: {', '.join(known)}")
    return method


COMMANDS = {"attack": attack_command}
