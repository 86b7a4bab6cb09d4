"""A comparison as a table for people, and as CSV, JSON, Markdown and LaTeX."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coalitions.files.latex import latex_text
from coalitions.files.text import json_text

if TYPE_CHECKING:
    from rich.console import Console

Document = Mapping[str, Any]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column of the table: its head, what a row shows, and whose cells are the best."""

    key: str
    head: str
    cell: Callable[[Row], str]
    best: Callable[[Row], float] | None = None


def columns_of(document: Document) -> list[Column]:
    """Return the columns, those that matter most first: a narrow terminal drops the last ones."""
    rows = document["algorithms"].values()
    baseline = document["algorithms"][document["baseline"]]
    several = len(document["algorithms"]) > 1
    sign = -1 if document["lower_is_better"] else 1
    columns = [
        Column("score", document["metric"], _score, lambda row: sign * float(row["mean"])),
    ]
    if several:
        columns += [
            Column("rank", "rank", lambda row: f"{row['rank']:.2f}"),
            Column(
                "difference",
                f"vs {document['baseline']}",
                lambda row: "baseline" if row is baseline else _difference(row),
            ),
        ]
    if all(row["worst"] is not None for row in rows):
        columns.append(
            Column(
                "worst",
                "worst",
                lambda row: f"{row['worst']:.4f}",
                lambda row: sign * float(row["worst"]),
            )
        )
    if any(row["private"] for row in rows):
        columns.append(Column("epsilon", "ε", _epsilon))
    columns += [
        Column("seconds", "s", lambda row: f"{row['seconds']:.1f}"),
        Column("up", "up", lambda row: _millions(row["communication"]["up"])),
        Column("down", "down", lambda row: _millions(row["communication"]["down"])),
    ]
    if any(row["other_models"] for row in rows):
        columns.append(Column("other_model", "other model", _other_models))
    if several:
        columns.append(
            Column("clients", "clients +/=/-", lambda row: "" if row is baseline else _clients(row))
        )
    return columns


def legend(document: Document, keys: Sequence[str]) -> list[str]:
    """Return what the columns mean, in sentences."""
    n = len(document["seeds"])
    told = document["settings"]
    seeds = f"{n} seeds" if n > 1 else "1 seed"
    words = {
        "score": f"{document['metric']}: on the clients' own test data, mean"
        + (f" ± standard deviation over {seeds}." if n > 1 else " of 1 seed."),
        "rank": "rank: mean place over seeds." if n > 1 else "rank: its place.",
        "difference": _difference_legend(document),
        "worst": f"worst: {document['metric']} of the worst client.",
        "epsilon": "ε: privacy spent by the worst client of the worst seed.",
        "seconds": "s: seconds of a run.",
        "up": "up, down: model parameters sent by, and to, all clients.",
        "other_model": "other model: what else the method has for its clients.",
        "clients": f"clients +/=/-: better, equal, worse off than with {document['baseline']}.",
    }
    about = (
        f"{_or_several(told['dataset'], 'several data sets')}, {_or_several(told['clients'])}"
        f" clients, {_or_several(told['partition'], 'several partitions')},"
        f" {_or_several(told['rounds'])} rounds. {_best(document)}"
    )
    if document["not_tuned"]:
        about += f" Not tuned, while others were: {', '.join(document['not_tuned'])}."
    return [about, " ".join(words[key] for key in keys if key in words)]


def _best(document: Document) -> str:
    """Say which row is the best, and whether the seeds settle it."""
    best, rivals = ", ".join(document["best"]), document["not_settled"]
    if not rivals:
        return f"Best: {best}."
    why = (
        "one seed says nothing of others"
        if len(document["seeds"]) == 1
        else f"0 is in the {document['confidence']:.0%} interval of the difference"
    )
    return f"Best on average: {best}; not settled against {', '.join(rivals)}: {why}."


def _difference_legend(document: Document) -> str:
    if len(document["seeds"]) == 1:
        return (
            f"vs {document['baseline']}: difference from {document['baseline']}; one seed gives no"
            " interval."
        )
    return (
        f"vs {document['baseline']}: paired difference from {document['baseline']} ± half"
        f" of its {document['confidence']:.0%} interval (Student's t over"
        f" {len(document['seeds'])} seeds)."
    )


def _or_several(value: object, several: str = "several") -> str:
    return several if value is None else str(value)


def _score(row: Row) -> str:
    deviation = "" if row["sd"] is None else f" ± {row['sd']:.4f}"
    return f"{row['mean']:.4f}{deviation}"


def _difference(row: Row) -> str:
    gap = row["difference"]
    # The interval is symmetric: half its width says it all.
    reach = "" if gap["low"] is None else f" ± {(gap['high'] - gap['low']) / 2:.4f}"
    return f"{gap['mean']:+.4f}{reach}"


def _epsilon(row: Row) -> str:
    return "∞" if row["epsilon"] is None else f"{row['epsilon']:.3g}"


def _millions(parameters: int) -> str:
    return f"{parameters / 1e6:.2f} M"


def _other_models(row: Row) -> str:
    return ", ".join(f"{kind} {mean:.4f}" for kind, mean in row["other_models"].items())


def _clients(row: Row) -> str:
    counts = row["clients"]
    if counts is None:  # rows with other numbers of clients
        return ""
    return f"{counts['better']}/{counts['equal']}/{counts['worse']}"


def cells_of(
    document: Document, columns: Sequence[Column]
) -> list[tuple[str, list[tuple[str, bool]]]]:
    """Return (name, [(text, whether it is the best), …]) for each row."""
    rows = document["algorithms"]
    top = {
        column.key: max(round(column.best(row), 12) for row in rows.values())
        for column in columns
        if column.best is not None and len(rows) > 1
    }
    return [
        (
            name,
            [
                (
                    column.cell(row),
                    column.best is not None
                    and column.key in top
                    and round(column.best(row), 12) == top[column.key],
                )
                for column in columns
            ],
        )
        for name, row in rows.items()
    ]


def fitting(document: Document, width: int) -> tuple[list[Column], list[Column]]:
    """Return the columns that fit into a width, and those that do not; the first always stays."""
    columns = columns_of(document)
    n = len(columns)
    while n > 1 and _width(document, columns[:n]) > width:
        n -= 1
    return columns[:n], columns[n:]


def _width(document: Document, columns: Sequence[Column]) -> int:
    rows = document["algorithms"]
    widths = [max(map(len, ["algorithm", *rows]))]
    widths += [max(map(len, [each.head, *map(each.cell, rows.values())])) for each in columns]
    return sum(widths) + 2 * len(columns)


def markdown(document: Document) -> str:
    """Return the table as Markdown, the best in bold."""
    columns = columns_of(document)

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    lines = [
        line(["algorithm", *(column.head for column in columns)]),
        line(["---", *["---:"] * len(columns)]),
    ]
    for name, cells in cells_of(document, columns):
        lines.append(line([f"`{name}`", *(f"**{t}**" if best else t for t, best in cells)]))
    for sentences in legend(document, [column.key for column in columns]):
        lines += ["", sentences]
    return "\n".join(lines) + "\n"


def latex(document: Document) -> str:
    """Return a booktabs table, the best in bold."""
    columns = columns_of(document)
    heads = " & ".join(["algorithm", *(latex_text(column.head) for column in columns)])
    lines = [
        r"% needs \usepackage{booktabs}",
        *(f"% {sentence}" for sentence in legend(document, [column.key for column in columns])),
        rf"\begin{{tabular}}{{l{'r' * len(columns)}}}",
        r"\toprule",
        rf"{heads} \\",
        r"\midrule",
    ]
    for name, cells in cells_of(document, columns):
        texts = [(latex_text(text), best) for text, best in cells]
        bold = [rf"\textbf{{{text}}}" if best else text for text, best in texts]
        lines.append(" & ".join([latex_text(name), *bold]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def csv_text(document: Document) -> str:
    """Return one line per run, with what is said about its method's runs together at the end."""
    lines = io.StringIO()
    import csv

    writer = csv.writer(lines, lineterminator="\n")
    rows = document["algorithms"]
    own = list(dict.fromkeys(key for row in rows.values() for key in row["own"]))
    writer.writerow(
        [
            "algorithm", "seed", "mean_test_accuracy", "worst_client_accuracy", "rank",
            "difference", "up", "down", "epsilon", "seconds", "baseline", "mean", "sd", "mean_rank",
            "mean_difference", "difference_low", "difference_high", "method", "metric", "score",
            *(f"own_{key}" for key in own),
        ]
    )  # fmt: skip
    baseline = document["baseline"]
    for name, row in document["algorithms"].items():
        gap = row["difference"]
        for run in row["runs"]:
            epsilon = run["epsilon"]
            if epsilon is None and row["private"]:
                epsilon = "inf"
            writer.writerow(
                [
                    name, run["seed"], run["mean_test_accuracy"], run["worst_client_accuracy"],
                    run["rank"], run["difference"], run["communication"]["up"],
                    run["communication"]["down"], epsilon, run["seconds"], baseline,
                    row["mean"], row["sd"], row["rank"], gap["mean"], gap["low"], gap["high"],
                    row["algorithm"], document["metric"], run["score"],
                    *(row["own"].get(key) for key in own),
                ]
            )  # fmt: skip
    return lines.getvalue()


def _json(document: Document) -> str:
    return f"{json_text(document)}\n"


def table_text(document: Document) -> str:
    """Return the table as plain text, as wide as it is."""
    from rich.console import Console

    file = io.StringIO()
    print_table(document, Console(file=file, width=_width(document, columns_of(document))))
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


def print_table(document: Document, console: Console) -> None:
    """Print as many columns as fit, the best in bold, and what they mean."""
    from rich.table import Table
    from rich.text import Text

    columns, dropped = fitting(document, console.width)
    table = Table("algorithm", box=None, pad_edge=False)
    for column in columns:
        table.add_column(_writable(column.head, console), justify="right", no_wrap=True)
    for name, cells in cells_of(document, columns):
        texts = (Text(_writable(t, console), style="bold" if best else "") for t, best in cells)
        table.add_row(Text(name), *texts)
    console.print(table)
    sentences = legend(document, [column.key for column in columns])
    if dropped:
        sentences.append(
            f"No room here for: {', '.join(column.head for column in dropped)}; --json has all."
        )
    console.print(Text(_writable("\n".join(["", *sentences]), console)))


def _writable(text: str, console: Console) -> str:
    """Return text with the few special letters in ASCII where the terminal has no others."""
    try:
        "±ε∞".encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return text.replace("±", "+-").replace("ε", "eps").replace("∞", "inf")
    return text


FORMATS: dict[str, Callable[[Document], str]] = {
    "table": table_text,
    "csv": csv_text,
    "json": _json,
    "markdown": markdown,
    "latex": latex,
}
ENDINGS = {".txt": "table", ".csv": "csv", ".json": "json", ".md": "markdown", ".tex": "latex"}
"""What the name of a file says about its format."""
