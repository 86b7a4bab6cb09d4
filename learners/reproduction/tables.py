"""A table of the paper's figures beside ours, as Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import statistics
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from coalitions.files.latex import latex_text
from learners.comparisons.paired import CONFIDENCE
from learners.reproduction.claims import Claim
from learners.reproduction.measured import Measured, order_agreement
from learners.reproduction.printed import PaperTable

WIDTH = 118
"""Columns of prose on a page."""


def item(text: str) -> str:
    """Return an item of a Markdown list, in lines of `WIDTH` columns."""
    return textwrap.fill(
        f"- {text}", WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )


def figure_of(values: Sequence[float] | None) -> str:
    """Return mean ± standard deviation over seeds, as tables have it; a dash if there is none.

    Examples
    --------
    >>> figure_of([0.5, 1.5]), figure_of([97.0]), figure_of(None)
    ('1.00 ± 0.71', '97.00', '–')
    """
    if not values:
        return "–"
    mean = statistics.fmean(values)
    if len(values) == 1:
        return f"{mean:.2f}"
    return f"{mean:.2f} ± {statistics.stdev(values):.2f}"


def markdown(found: Measured, printed: PaperTable | None, claims: Sequence[Claim]) -> str:
    """Return the table with the paper's figures in brackets, the orders' agreement, the claims."""
    lines = [f"| {found.unit} | " + " | ".join(found.columns) + " |"]
    lines.append("|---" * (len(found.columns) + 1) + "|")
    for row in found.rows:
        cells = [figure_of(found.get(row, column)) for column in found.columns]
        if printed is not None:
            said = [printed.get(row, column) for column in found.columns]
            cells = [
                ours if theirs is None else f"{ours} ({theirs})"
                for ours, theirs in zip(cells, said, strict=True)
            ]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    agreement = agreements(found, printed)
    if agreement:
        values = ["–" if each is None else f"{each:.2f}" for each in agreement.values()]
        lines.append("| *order of rows, Spearman* | " + " | ".join(values) + " |")
        lines += ["", "In brackets: the paper."]
    for what, told in (
        ("claim", [claim for claim in claims if not claim.added]),
        ("asked beside the paper", [claim for claim in claims if claim.added]),
    ):
        if told:
            lines += ["", *table_head([what, *CLAIM_COLUMNS[1:]])]
            lines += [table_line(claim_cells(claim.document())) for claim in told]
    return "\n".join(lines) + "\n"


def earlier_figures(found: Measured, printed: PaperTable | None, earlier: PaperTable) -> str:
    """Return what an earlier version of a paper printed, where the later one has something else."""
    lines = []
    for row in found.rows:
        said = [
            (None if printed is None else printed.get(row, column), earlier.get(row, column))
            for column in found.columns
        ]
        if any(before is not None and before != now for now, before in said):
            cells = [
                "–" if before is None else "the same" if before == now else str(before)
                for now, before in said
            ]
            lines.append(f"| {row} | " + " | ".join(cells) + " |")
    if not lines:
        return ""
    head = [
        f"{earlier.paper}, {earlier.where},",
        "where its figures differ or the later ones cannot be read:",
        "",
        "| % | " + " | ".join(found.columns) + " |",
        "|---" * (len(found.columns) + 1) + "|",
    ]
    return "\n" + "\n".join([*head, *lines]) + "\n"


def agreements(found: Measured, printed: PaperTable | None) -> dict[str, float | None]:
    """Return Spearman's correlation of the paper's order of rows with ours, by column."""
    if printed is None:
        return {}
    agreement = {}
    for column in found.columns:
        theirs = {row: each[column].mean for row, each in printed.rows.items() if column in each}
        ours = {row: mean for row in found.rows if (mean := found.mean(row, column)) is not None}
        agreement[column] = order_agreement(theirs, ours)
    return agreement if any(each is not None for each in agreement.values()) else {}


def comma_separated(
    found: Measured,
    printed: PaperTable | None,
    seeds: Sequence[int],
    once: Collection[str] = (),
) -> str:
    """Return a line for every row, column and seed; columns in `once` have the first seed alone."""
    file = io.StringIO()
    write = csv.writer(file, lineterminator="\n").writerow
    write(["row", "column", "seed", "value", "paper", "paper_spread"])
    for row, column, seed, value in _figures(found, seeds, once):
        said = printed.get(row, column) if printed else None
        paper = ["", ""] if said is None else [said.mean, said.spread]
        write([row, column, seed, repr(value), *paper])
    return file.getvalue()


def _figures(
    found: Measured, seeds: Sequence[int], once: Collection[str]
) -> Iterator[tuple[str, str, int | str, float]]:
    for row, columns in found.rows.items():
        for column, values in columns.items():
            made = seeds[:1] if column in once else seeds
            # What is counted has one figure, whatever the seeds.
            which: Sequence[int | str] = made if len(values) == len(made) else [""] * len(values)
            for seed, value in zip(which, values, strict=True):
                yield row, column, seed, value


def latex(found: Measured, printed: PaperTable | None) -> str:
    """Return the table for a paper: ours, and the printed figures in lines below."""
    lines = [
        r"\begin{tabular}{l" + "r" * len(found.columns) + "}",
        r"\toprule",
        _latex_line("", found.columns),
        r"\midrule",
    ]
    for row in found.rows:
        lines.append(_latex_line(row, [figure_of(found.get(row, each)) for each in found.columns]))
        said = [printed.get(row, column) if printed else None for column in found.columns]
        if any(said):
            cells = ["" if each is None else str(each) for each in said]
            lines.append(r"\quad " + _latex_line("paper", cells))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _latex_line(row: str, cells: Sequence[str]) -> str:
    return " & ".join(map(latex_text, [row, *cells])) + r" \\"


def claim_cells(claim: Mapping[str, Any]) -> list[str]:
    """Return what tables say of a claim, from its plain values: see `CLAIM_COLUMNS`."""
    paper, ours, interval = "–", "–", "–"
    if claim["paper"] is not None:
        paper = f"{claim['paper']:+.2f}"
        if claim["paper_p"] is not None:
            paper += f" ({_p_value(claim['paper_p'])})"
    if claim["ours"] is not None:
        ours = f"{claim['ours']:+.2f}"
    if claim["interval"] is not None and claim["confidence"] < 1:
        low, high = claim["interval"]
        interval = f"{low:+.2f} … {high:+.2f}"
        if claim["confidence"] != CONFIDENCE:
            interval += f" ({100 * claim['confidence']:.3g} %)"
    return [claim["claim"], paper, ours, interval, claim["verdict"], claim["why"]]


CLAIM_COLUMNS = ("claim", "paper", "here", "95 % interval", "verdict", "why")


def table_head(columns: Sequence[str]) -> list[str]:
    """Return the first two lines of a Markdown table."""
    return ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]


def table_line(cells: Sequence[str]) -> str:
    """Return a line of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def _p_value(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p {p:.2g}"
