"""All experiments of a folder on one page: claim, paper, ours, verdict."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coalitions.files.writing import write_whole

PAPERS = {"cffl": "CFFL", "fedacs": "FedACS", "fedc2i": "FedC²I", "pfedsv": "pFedSV"}
"""What papers are called, by how names of experiments begin."""

VERDICTS = ("holds", "does not hold", "cannot be told")


def outcomes(folder: Path) -> list[dict[str, Any]]:
    """Return what came out of every experiment that is kept in a folder, by name."""
    return [
        json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*/experiment.json"))
    ]


def summary_page(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the page: how many claims hold, then each with its figures.

    What was asked beside the papers has a table of its own, and is not counted.
    """
    papers = [each for each in found if not each.get("settles")]
    told = [_with_claims(each, added=False) for each in papers]
    asked = [_with_claims(each, added=True) for each in papers]
    asked += [dict(each) for each in found if each.get("settles")]
    verdicts = Counter(claim["verdict"] for each in told for claim in each["claims"])
    counted = (
        f"{verdicts['holds']} hold, {verdicts['does not hold']} do not,"
        f" {verdicts['cannot be told']} cannot be told"
    )
    lines = [
        "# What the papers claim, and what comes out here",
        "",
        f"{len(told)} experiments, {sum(verdicts.values())} claims: {counted}.",
        "A claim holds if the 95 % interval of the paired difference over seeds lies above zero,"
        " and does not if it lies below.",
        "One that names several rivals holds if it does of each.",
        "With one seed there is no interval, and nothing can be told.",
        "",
        *_by_paper(told),
        "",
        *_claims(told),
    ]
    orders = [
        f"| {_link(each['name'])} | {column} | {value:.2f} |"
        for each in told
        for column, value in each["order"].items()
        if value is not None
    ]
    if orders:
        lines += [
            "",
            "Order of the methods, Spearman's correlation with the paper's:",
            "",
            "| experiment | column | correlation |",
            "|---|---|---|",
            *orders,
        ]
    if any(each["claims"] for each in asked):
        lines += [
            "",
            "What no paper claims: asked beside the tables, or, to settle what a paper leaves open,"
            " on seeds of its own:",
            "",
            *_claims(asked),
        ]
    return "\n".join(lines) + "\n"


def _with_claims(one: Mapping[str, Any], *, added: bool) -> dict[str, Any]:
    """Return an experiment with its paper's claims alone, or with the others alone."""
    claims = [claim for claim in one["claims"] if claim.get("added", False) == added]
    return {**one, "claims": claims}


def _by_paper(found: Sequence[Mapping[str, Any]]) -> list[str]:
    counts: dict[str, Counter[str]] = {}
    for each in found:
        paper = each["name"].partition("-")[0]
        counted = counts.setdefault(PAPERS.get(paper, paper), Counter())
        counted.update(claim["verdict"] for claim in each["claims"])
    lines = ["| paper | holds | does not hold | cannot be told |", "|---|---|---|---|"]
    for paper, verdicts in counts.items():
        lines.append(f"| {paper} | " + " | ".join(str(verdicts[each]) for each in VERDICTS) + " |")
    return lines


def _claims(found: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [
        "| experiment | scale, seeds | claim | paper | here | interval | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in found:
        how = f"{each['scale']}, {len(each['seeds'])}"
        for claim in each["claims"]:
            cells = [_link(each["name"]), how, claim["claim"], *_figures(claim), claim["verdict"]]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def write_summary(folder: Path) -> None:
    """Write the page of a folder, as README.md."""
    write_whole(folder / "README.md", summary_page(outcomes(folder)).encode())


def _link(name: str) -> str:
    return f"[{name}]({name}/table.md)"


def _figures(claim: Mapping[str, Any]) -> list[str]:
    interval = claim["interval"]
    return [
        "–" if claim["paper"] is None else f"{claim['paper']:+.2f}",
        "–" if claim["ours"] is None else f"{claim['ours']:+.2f}",
        "–" if interval is None else f"{interval[0]:+.2f} … {interval[1]:+.2f}",
    ]
