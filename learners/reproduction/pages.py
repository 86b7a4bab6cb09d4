"""Pages of results: the paper's figures beside ours, and the summary of all experiments."""

from __future__ import annotations

import json
import statistics
import textwrap
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from coalitions.files.writing import write_whole
from coalitions.formatting import csv_table, latex_table, latex_text, markdown_table
from learners.experiments.paired_statistics import CONFIDENCE
from learners.reproduction.claims import LEVEL, Claim, Measured, order_agreement
from learners.reproduction.experiment import SECOND_LOOK
from learners.reproduction.printed import PaperTable

# ----------------------------------------------------------------------------------------
# A table of the paper's figures beside ours, as Markdown, CSV and LaTeX.

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
    rows = []
    for row in found.rows:
        cells = [figure_of(found.get(row, column)) for column in found.columns]
        if printed is not None:
            said = [printed.get(row, column) for column in found.columns]
            cells = [
                ours if theirs is None else f"{ours} ({theirs})"
                for ours, theirs in zip(cells, said, strict=True)
            ]
        rows.append([row, *cells])
    agreement = agreements(found, printed)
    if agreement:
        values = ["–" if each is None else f"{each:.2f}" for each in agreement.values()]
        rows.append(["*order of rows, Spearman*", *values])
    lines = markdown_table([found.unit, *found.columns], rows)
    if agreement:
        lines += ["", "In brackets: the paper."]
    for what, told in (
        ("claim", [claim for claim in claims if not claim.added]),
        ("asked beside the paper", [claim for claim in claims if claim.added]),
    ):
        if told:
            cells_of_claims = [claim_cells(claim.document()) for claim in told]
            lines += ["", *markdown_table([what, *CLAIM_COLUMNS[1:]], cells_of_claims)]
    return "\n".join(lines) + "\n"


def earlier_figures(found: Measured, printed: PaperTable | None, earlier: PaperTable) -> str:
    """Return what an earlier version of a paper printed, where the later one has something else."""
    rows = []
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
            rows.append([row, *cells])
    if not rows:
        return ""
    head = [
        f"{earlier.paper}, {earlier.where},",
        "where its figures differ or the later ones cannot be read:",
        "",
    ]
    return "\n" + "\n".join([*head, *markdown_table(["%", *found.columns], rows)]) + "\n"


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
    rows: list[list[Any]] = [["row", "column", "seed", "value", "paper", "paper_spread"]]
    for row, column, seed, value in _figures(found, seeds, once):
        said = printed.get(row, column) if printed else None
        paper = ["", ""] if said is None else [said.mean, said.spread]
        rows.append([row, column, seed, repr(value), *paper])
    return csv_table(rows)


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
    rows = []
    for row in found.rows:
        ours = [figure_of(found.get(row, each)) for each in found.columns]
        rows.append([*map(latex_text, [row, *ours])])
        said = [printed.get(row, column) if printed else None for column in found.columns]
        if any(said):
            cells = ["" if each is None else str(each) for each in said]
            rows.append([r"\quad paper", *map(latex_text, cells)])
    return "\n".join(latex_table(["", *map(latex_text, found.columns)], rows)) + "\n"


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


def _p_value(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p {p:.2g}"


# ----------------------------------------------------------------------------------------
# All experiments of a folder on one page: claim, paper, ours, verdict, and why.

PAPERS = {"cffl": "CFFL", "fedacs": "FedACS", "fedc2i": "FedC²I", "pfedsv": "pFedSV"}
"""What papers are called, by how names of experiments begin."""

VERDICTS = {
    "holds": "hold",
    "does not hold": "do not hold",
    "level": "level",
    "cannot be told": "cannot be told",
}
"""Verdicts, and how several claims have them."""

FAILS = "does not hold"

ALPHA = 0.05
"""A paper's own difference with a larger p is not significant."""

UNKNOWN: Mapping[str, Any] = {
    "paper_p": None, "confidence": CONFIDENCE, "why": "", "caveat": "", "added": False,
}  # fmt: skip
"""What an earlier version did not write of a claim."""

Told = tuple[Mapping[str, Any], Mapping[str, Any]]
"""An experiment and one of its claims, both as plain values."""


def outcomes(folder: Path) -> list[dict[str, Any]]:
    """Return what came out of every experiment that is kept in a folder, by name.

    Earlier versions wrote less of claims; what is missing is not known.
    """
    found = []
    for path in sorted(folder.glob("*/experiment.json")):
        kept = json.loads(path.read_text("utf-8"))
        claims = [{**UNKNOWN, **claim} for claim in kept["claims"]]
        found.append({"tried": [], "seeds_added": False, **kept, "claims": claims})
    return found


def summary_page(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the page: what came out in short, a table for each paper, and what was tried.

    What was asked beside the papers has a table of its own, and is not counted.
    """
    told = list(_claims(found, added=False))
    lines = [
        "# What the papers claim, and what comes out here",
        "",
        *map(item, _in_short(found, told)),
    ]
    for paper, claims in _by_paper(told).items():
        lines += ["", f"## {paper}", "", *_table(claims)]
    weak = _weak(told)
    if weak:
        lines += ["", "## Not significant in the papers", ""]
        lines += [f"By Welch's test of the printed figures, two-sided, p is above {ALPHA:g}."]
        lines += ["What stands behind the ± is read as the standard deviation of the paper's runs:"]
        lines += [
            "three in FedC²I, five in the others. A negative difference contradicts the text."
        ]
        lines += [""]
        rows = [[_link(each), *claim_cells(claim)[:2]] for each, claim in weak]
        lines += markdown_table(("experiment", "claim", "paper"), rows)
    orders = [
        [_link(each), column, f"{value:.2f}"]
        for each in found
        for column, value in each["order"].items()
        if value is not None
    ]
    if orders:
        lines += ["", "## Order of the methods", ""]
        lines += ["Spearman's correlation of the paper's order of the rows with ours.", ""]
        lines += markdown_table(("experiment", "column", "correlation"), orders)
    tried = [item(f"{_link(each)}: {text}") for each in found for text in each["tried"]]
    asked = list(_claims(found, added=True))
    if tried or asked:
        lines += ["", "## What was tried", "", *tried]
    if asked:
        lines += [""] * bool(tried)
        lines += ["No paper claims these. They are not counted above.", "", *_table(asked)]
    return "\n".join(lines) + "\n"


def _in_short(found: Sequence[Mapping[str, Any]], told: Sequence[Told]) -> Iterator[str]:
    """Yield what came out, one thought a line."""
    experiments = len({each["name"] for each, _ in told})
    yield f"{experiments} experiments, {len(told)} claims: {_counted(told)}."
    for paper, claims in _by_paper(told).items():
        failed = {_link(each): None for each, claim in claims if claim["verdict"] == FAILS}
        yield f"{paper}: {_counted(claims)}." + f" Not: {', '.join(failed)}." * bool(failed)
    yield (
        "A claim **holds** if the interval of the paired difference over seeds is above zero, and"
        " **does not hold** if it is not above zero. It is **level** if the interval is within"
        f" ±{LEVEL:g} point of accuracy, or leaves out the lead that the paper prints. Else it"
        " **cannot be told**: there are too few seeds, or none."
    )
    missing = sum(claim["ours"] is None for _, claim in told)
    if missing:
        yield f"Not measured at this scale, and so not told: {missing}."
    added = [_link(each) for each in found if each["seeds_added"]]
    if added:
        yield (
            f"Seeds were added after a first look, so intervals are of {100 * SECOND_LOOK:g} %:"
            f" {', '.join(added)}."
        )
    own = sum(claim["paper_p"] is not None for _, claim in told)
    if own:
        yield (
            f"Of {own} of these claims the papers print the difference with a ±. Of those"
            f" {len(_weak(told))} are not significant in the papers themselves:"
            " [which](#not-significant-in-the-papers)."
        )
    unfair = sorted({str(claim["caveat"]) for _, claim in told if claim["caveat"]})
    for text in unfair:
        where = {_link(each): None for each, claim in told if claim["caveat"] == text}
        yield f"Unfair comparison: {text}, in {', '.join(where)}."


def _claims(found: Sequence[Mapping[str, Any]], *, added: bool) -> Iterator[Told]:
    """Yield the papers' claims alone, or the others alone."""
    for each in found:
        for claim in each["claims"]:
            if claim["added"] == added:
                yield each, claim


def _weak(told: Sequence[Told]) -> list[Told]:
    """Return the claims whose difference a paper prints, but does not settle by its own ±."""
    return [(each, claim) for each, claim in told if claim["paper_p"] and claim["paper_p"] > ALPHA]


def _by_paper(told: Sequence[Told]) -> dict[str, list[Told]]:
    papers: dict[str, list[Told]] = {}
    for each, claim in told:
        paper = each["name"].partition("-")[0]
        papers.setdefault(PAPERS.get(paper, paper), []).append((each, claim))
    return papers


def _counted(told: Sequence[Told]) -> str:
    counts = Counter(claim["verdict"] for _, claim in told)
    return ", ".join(f"{counts[verdict]} {several}" for verdict, several in VERDICTS.items())


def _table(told: Sequence[Told]) -> list[str]:
    rows = [
        [_link(each), f"{each['scale']}, {len(each['seeds'])}", *claim_cells(claim)]
        for each, claim in told
    ]
    return markdown_table(("experiment", "scale, seeds", *CLAIM_COLUMNS), rows)


def write_summary(folder: Path) -> None:
    """Write the page of a folder, as README.md."""
    write_whole(folder / "README.md", summary_page(outcomes(folder)).encode())


def _link(one: Mapping[str, Any]) -> str:
    return f"[{one['name']}]({one['name']}/table.md)"
