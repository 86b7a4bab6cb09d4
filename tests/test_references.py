"""Every paper cited in a docstring is in docs/references.bib, and everything there is cited."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def cited() -> set[str]:
    sources = (path for layer in ("coalitions", "solvers", "learners", "cli")
               for path in (ROOT / layer).rglob("*.py"))  # fmt: skip
    return {key for path in sources for key in re.findall(r"\[(\w+\d{4}\w?)\]_", path.read_text())}


def listed() -> list[str]:
    return re.findall(r"^@\w+\{(\w+),", (ROOT / "docs" / "references.bib").read_text(), re.M)


def test_every_citation_has_an_entry():
    assert cited() - set(listed()) == set()


def test_every_entry_is_cited_and_listed_once():
    assert set(listed()) - cited() == set()
    assert len(listed()) == len(set(listed()))
