"""All experiments of a folder on one page: claim, paper, ours, verdict, and why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from coalitions.files.writing import write_whole
from learners.comparisons.paired import CONFIDENCE
from learners.reproduction.claims import LEVEL
from learners.reproduction.experiment import SECOND_LOOK
from learners.reproduction.tables import (
    CLAIM_COLUMNS,
    claim_cells,
    item,
    table_head,
    table_line,
)

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
        lines += table_head(("experiment", "claim", "paper"))
        lines += [table_line([_link(each), *claim_cells(claim)[:2]]) for each, claim in weak]
    orders = [
        table_line([_link(each), column, f"{value:.2f}"])
        for each in found
        for column, value in each["order"].items()
        if value is not None
    ]
    if orders:
        lines += ["", "## Order of the methods", ""]
        lines += ["Spearman's correlation of the paper's order of the rows with ours.", ""]
        lines += [*table_head(("experiment", "column", "correlation")), *orders]
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
    lines = table_head(("experiment", "scale, seeds", *CLAIM_COLUMNS))
    for each, claim in told:
        how = f"{each['scale']}, {len(each['seeds'])}"
        lines.append(table_line([_link(each), how, *claim_cells(claim)]))
    return lines


def write_summary(folder: Path) -> None:
    """Write the page of a folder, as README.md."""
    write_whole(folder / "README.md", summary_page(outcomes(folder)).encode())


def _link(one: Mapping[str, Any]) -> str:
    return f"[{one['name']}]({one['name']}/table.md)"
