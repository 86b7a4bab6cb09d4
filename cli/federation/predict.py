"""`coalitions predict`: what a client's model says of new rows."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.terminal.output import WRITTEN, Json, figure, print_json, stdout, visible
from coalitions.errors import InvalidInputError

if TYPE_CHECKING:
    from learners.runs.predictions import PredictedRows


def predict_command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The run's folder.")],
    rows: Annotated[
        Path,
        typer.Argument(
            metavar="ROWS", help="Table with the columns of the training data; no target is needed."
        ),
    ],
    client: Annotated[
        str, typer.Option(metavar="NAME", help="Whose model predicts: its name, or its number.")
    ],
    output: Annotated[
        Path | None,
        WRITTEN,
        typer.Option(metavar="FILE.csv|.json", help="Write the predictions to a file as well."),
    ] = None,
    json_output: Json = False,
) -> None:
    """Predict the target of new rows by the model of one client, after a run on a table.

    Example: coalitions predict runs/hospitals new_patients.csv --client Ash
    """
    if output is not None and output.suffix.lower() not in (".csv", ".json"):
        raise InvalidInputError(f"--output {output}: end its name in .csv or .json")
    from learners.runs.predictions import predict

    found = predict(directory, client, rows)
    if output is not None:
        from coalitions.files.writing import write_json, write_whole

        if output.suffix.lower() == ".json":
            write_json(output, found.to_dict())
        else:
            write_whole(output, _csv(found).encode())
    if json_output:
        print_json(found.to_dict())
        return
    from rich.table import Table

    heading, *lines = _rows(found)
    table = Table(*map(str, heading), box=None, pad_edge=False)
    for line in lines:
        table.add_row(*[visible(cell) if isinstance(cell, str) else figure(cell) for cell in line])
    stdout().print(table)


def _rows(found: PredictedRows) -> list[list[str | float]]:
    """Return a heading, then the line, the prediction and the probabilities of each row."""
    chances = found.probabilities or {}
    heading: list[str | float] = ["line", found.target, *(f"p({name})" for name in chances)]
    return [
        heading,
        *(
            [str(line), said, *(float(column[row]) for column in chances.values())]
            for row, (line, said) in enumerate(zip(found.lines, found.predictions, strict=True))
        ),
    ]


def _csv(found: PredictedRows) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(_rows(found))
    return file.getvalue()


COMMANDS = {"predict": predict_command}
