"""A comparison as a table for people, and as CSV, JSON, Markdown and LaTeX.

Every format is made of the plain values that `Comparison.to_dict` returns.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coalitions.files.opening import json_text
from coalitions.formatting import csv_table, latex_table, latex_text, markdown_table
from learners.experiments.paired_statistics import Difference, best_sentence, difference_text

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


def columns_of(document: Document, *, by_domain: bool = False) -> list[Column]:
    """Return the columns, those that matter most first: a narrow terminal drops the last ones.

    By domain, there is one for each, and the mean.
    """
    if by_domain:
        return _domain_columns(document)
    rows = document["algorithms"].values()
    baseline = document["algorithms"][document["baseline"]]
    several, n_seeds = len(document["algorithms"]) > 1, len(document["seeds"])
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
                lambda row: "baseline" if row is baseline else _difference(row, n_seeds),
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


def domains_of(document: Document) -> list[str]:
    """Return the domains of all rows."""
    return list(
        dict.fromkeys(each for row in document["algorithms"].values() for each in row["by_domain"])
    )


def _domain_columns(document: Document) -> list[Column]:
    sign = -1 if document["lower_is_better"] else 1

    def column(domain: str) -> Column:
        def mean(row: Row) -> float | None:
            found: float | None = row["by_domain"].get(domain, {}).get("mean")
            return found

        def cell(row: Row) -> str:
            return "" if mean(row) is None else _score(row["by_domain"][domain])

        def best(row: Row) -> float:
            found = mean(row)
            return -math.inf if found is None else sign * found

        return Column(f"domain {domain}", domain, cell, best)

    mean = Column("mean", "mean", _score, lambda row: sign * float(row["mean"]))
    return [*map(column, domains_of(document)), mean]


def legend(document: Document, keys: Sequence[str]) -> list[str]:
    """Return what the columns mean, in sentences."""
    n = len(document["seeds"])
    common = document["settings"]
    seeds = f"{n} seeds" if n > 1 else "1 seed"
    words = {
        "score": f"{document['metric']}: on the clients' own test data, mean"
        + (f" ± standard deviation over {seeds}." if n > 1 else " of 1 seed."),
        "mean": _domain_legend(document),
        "rank": "rank: mean place over seeds." if n > 1 else "rank: its place.",
        "difference": _difference_legend(document),
        "worst": f"worst: {document['metric']} of the worst client.",
        "epsilon": "ε: privacy spent by the worst client of the worst seed.",
        "seconds": "s: seconds of a run.",
        "up": "up, down: model parameters sent by, and to, all clients.",
        "other_model": "other model: what else the method has for its clients.",
        "clients": f"clients +/=/-: better, equal, worse off than with {document['baseline']}.",
    }
    scores = {name: row["per_seed"] for name, row in document["algorithms"].items()}
    best = best_sentence(scores, document["best"], document["not_settled"])
    about = (
        f"{_or_several(common['dataset'], 'several data sets')}, {_or_several(common['clients'])}"
        f" clients, {_or_several(common['partition'], 'several partitions')},"
        f" {_or_several(common['rounds'])} rounds."
    )
    if document["not_tuned"]:
        best += f" Not tuned, while others were: {', '.join(document['not_tuned'])}."
    return [best, about, " ".join(words[key] for key in keys if key in words)]


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


def _domain_legend(document: Document) -> str:
    n = len(document["seeds"])
    over = f" ± standard deviation over {n} seeds" if n > 1 else " of 1 seed"
    return (
        f"Domains: {document['metric']} on the test data of their honest clients, mean{over}. mean:"
        " over all honest clients."
    )


def _or_several(value: object, several: str = "several") -> str:
    return several if value is None else str(value)


def _score(row: Row) -> str:
    deviation = "" if row["sd"] is None else f" ± {row['sd']:.4f}"
    return f"{row['mean']:.4f}{deviation}"


def _difference(row: Row, n_seeds: int) -> str:
    gap = row["difference"]
    return difference_text(Difference(gap["mean"], gap["low"], gap["high"]), n_seeds)


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
                    and top.get(column.key, -math.inf) > -math.inf
                    and round(column.best(row), 12) == top[column.key],
                )
                for column in columns
            ],
        )
        for name, row in rows.items()
    ]


def fitting(
    document: Document, width: int, *, by_domain: bool = False
) -> tuple[list[Column], list[Column]]:
    """Return the columns that fit into a width, and those that do not.

    The first always stays; by domain, the mean does, which is the last.
    """
    columns = columns_of(document, by_domain=by_domain)
    dropped: list[Column] = []
    while len(columns) > 1 and _width(document, columns) > width:
        dropped.insert(0, columns.pop(-2 if by_domain else -1))
    return columns, dropped


def _width(document: Document, columns: Sequence[Column]) -> int:
    rows = document["algorithms"]
    widths = [max(map(len, ["algorithm", *rows]))]
    widths += [max(map(len, [each.head, *map(each.cell, rows.values())])) for each in columns]
    return sum(widths) + 2 * len(columns)


def markdown(document: Document, *, by_domain: bool = False) -> str:
    """Return the table as Markdown, the best in bold."""
    columns = columns_of(document, by_domain=by_domain)
    rows = [
        [f"`{name}`", *(f"**{text}**" if best else text for text, best in cells)]
        for name, cells in cells_of(document, columns)
    ]
    head = ["algorithm", *(column.head for column in columns)]
    lines = markdown_table(head, rows, right=True)
    for sentences in legend(document, [column.key for column in columns]):
        lines += ["", sentences]
    return "\n".join(lines) + "\n"


def latex(document: Document, *, by_domain: bool = False) -> str:
    """Return a booktabs table, the best in bold."""
    columns = columns_of(document, by_domain=by_domain)
    comments = [f"% {sentence}" for sentence in legend(document, [each.key for each in columns])]
    rows = []
    for name, cells in cells_of(document, columns):
        texts = [(latex_text(text), best) for text, best in cells]
        rows.append(
            [latex_text(name), *(rf"\textbf{{{text}}}" if best else text for text, best in texts)]
        )
    table = latex_table(["algorithm", *(latex_text(column.head) for column in columns)], rows)
    return "\n".join([r"% needs \usepackage{booktabs}", *comments, *table]) + "\n"


def csv_text(document: Document) -> str:
    """Return one line per run, with what is said about its method's runs together at the end."""
    rows = document["algorithms"]
    own = list(dict.fromkeys(key for row in rows.values() for key in row["own"]))
    domains = domains_of(document)
    lines: list[list[Any]] = [
        [
            "algorithm", "seed", "mean_test_accuracy", "worst_client_accuracy", "rank",
            "difference", "up", "down", "epsilon", "seconds", "baseline", "mean", "sd", "mean_rank",
            "mean_difference", "difference_low", "difference_high", "method", "metric", "score",
            *(f"own_{key}" for key in own), *(f"domain_{domain}" for domain in domains),
        ]
    ]  # fmt: skip
    baseline = document["baseline"]
    for name, row in rows.items():
        gap = row["difference"]
        for seed, run in enumerate(row["runs"]):
            epsilon = run["epsilon"]
            if epsilon is None and row["private"]:
                epsilon = "inf"
            lines.append(
                [
                    name, run["seed"], run["mean_test_accuracy"], run["worst_client_accuracy"],
                    run["rank"], run["difference"], run["communication"]["up"],
                    run["communication"]["down"], epsilon, run["seconds"], baseline,
                    row["mean"], row["sd"], row["rank"], gap["mean"], gap["low"], gap["high"],
                    row["algorithm"], document["metric"], run["score"],
                    *(row["own"].get(key) for key in own),
                    *(_in_seed(row, domain, seed) for domain in domains),
                ]
            )  # fmt: skip
    return csv_table(lines)


def _in_seed(row: Row, domain: str, seed: int) -> float | None:
    """Return what a domain's honest clients score in one run; None if they have no figure."""
    figures = row["by_domain"].get(domain)
    found: float | None = None if figures is None else figures["per_seed"][seed]
    return found


def _json(document: Document) -> str:
    return f"{json_text(document)}\n"


def table_text(document: Document, *, by_domain: bool = False) -> str:
    """Return the table as plain text, as wide as it is."""
    from rich.console import Console

    file = io.StringIO()
    width = _width(document, columns_of(document, by_domain=by_domain))
    print_table(document, Console(file=file, width=width), by_domain=by_domain)
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


def print_table(document: Document, console: Console, *, by_domain: bool = False) -> None:
    """Print as many columns as fit, the best in bold, and what they mean."""
    from rich.table import Table
    from rich.text import Text

    columns, dropped = fitting(document, console.width, by_domain=by_domain)
    table = Table("algorithm", box=None, pad_edge=False)
    for column in columns:
        table.add_column(Text(_writable(column.head, console)), justify="right", no_wrap=True)
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


TABLES = {"table": table_text, "markdown": markdown, "latex": latex}
"""Formats that show as much as is asked for."""

FORMATS: dict[str, Callable[[Document], str]] = {**TABLES, "csv": csv_text, "json": _json}
