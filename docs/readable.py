"""What the site rewrites: docstrings (an extension of griffe) and the start page (a hook).

The start page is the README. In docstrings, formulas become code, citations and pages become links.
Docstrings are written in reStructuredText, pages in Markdown. Nothing is fetched for it, neither
when the site is built nor when it is read, so a formula stays LaTeX.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import griffe

DOCS = Path(__file__).parent

BLOCK = re.compile(r"^( *)\.\. math::(.*(?:\n\1 +\S.*|\n *(?=\n\1 +\S))*)", re.M)
ROLE = re.compile(r":math:`([^`]+)`")
CITATION = re.compile(r"\[(([A-Za-z]+)(\d{4}\w?))\]_")
PAGE = re.compile(r"docs/([\w/-]+)\.md")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:  # noqa: ANN401 (mkdocs' own)
    """Return the README for the start page, with its links as the site has them."""
    if page.file.src_uri != "index.md":
        return markdown
    readme = (DOCS.parent / "README.md").read_text("utf-8")
    readme = re.sub(r'(\]\(|src=")docs/', r"\1", readme)
    return re.sub(r"\[([^\]]*)\]\([A-Z]+\.md\)", r"\1", readme)  # files that the site has not


class Readable(griffe.Extension):
    """Rewrites every docstring that is read."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:  # noqa: ANN401 (griffe's own)
        """Rewrite the docstring of an object, if it has one."""
        if obj.docstring:
            obj.docstring.value = readable(obj.docstring.value)


def readable(text: str) -> str:
    """Return a docstring in Markdown, for a page in a folder beside the other pages."""
    text = BLOCK.sub(_formula, text)
    text = ROLE.sub(lambda role: f"`{' '.join(role[1].split())}`", text)
    text = CITATION.sub(_citation, text)
    return PAGE.sub(lambda page: f"[{heading(page[1])}](../{page[1]}.md)", text)


def _formula(block: re.Match[str]) -> str:
    first, _, rest = block[2].partition("\n")
    formula = f"{first.strip()}\n{dedent(rest)}".strip("\n")
    return indent(f"```tex\n{formula}\n```", block[1])


def _citation(key: re.Match[str]) -> str:
    return rf'\[[{key[2]} {key[3]}](../references.bib "{titles()[key[1]]}")\]'


@cache
def titles() -> dict[str, str]:
    """Return the title of every paper by its key."""
    entries = (DOCS / "references.bib").read_text("utf-8")
    found = re.findall(r"^@\w+\{(\w+),.*?\btitle=\{(.*?)\}, \w+=", entries, re.M)
    return {key: re.sub(r'[{}\\"]', "", title) for key, title in found}


@cache
def heading(page: str) -> str:
    """Return what a page is called."""
    return (DOCS / f"{page}.md").read_text("utf-8").partition("\n")[0].removeprefix("# ")
