"""Pages name files and rooms that exist, and the floor plan leaves none out."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("coalitions", "solvers", "learners", "cli")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PLACE = re.compile(rf"(?:{'|'.join(LAYERS)}|benchmarks|tests|examples)/[\w/{{,}}*.-]*\w(?:\.py)?")


def paths(place):
    """Return what a place stands for: {a,b} are two, NAME is any."""
    choice = re.search(r"\{(.*?)\}", place)
    if choice:
        return [place.replace(choice[0], each) for each in choice[1].split(",")]
    return [place.replace("NAME", "*")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_files_that_exist(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.S | re.M)
    quoted = "\n".join(re.findall(r"`([^`\n]+)`", text))
    named = {path for place in PLACE.findall(quoted) for path in paths(place)}
    assert {path for path in named if not any(ROOT.glob(path))} == set()


def test_the_floor_plan_has_every_room():
    plan = (ROOT / "docs" / "architecture.md").read_text()
    rooms = {
        str(path.parent.relative_to(ROOT))
        for layer in LAYERS
        for path in (ROOT / layer).rglob("__init__.py")
    }
    assert {room for room in rooms if f"`{room}`" not in plan} == set()


def test_every_page_is_in_the_site():
    nav = (ROOT / "mkdocs.yml").read_text()
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    linked = [page for page in pages if page.match("reproduction/*/table.md")]  # by their summary
    assert [str(page) for page in pages if f"{page}\n" not in nav and page not in linked] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_is_called_what_the_page_is_called_not_its_file(page):
    texts = re.findall(r"\[([^\]]+)\]\([^)]*\)", page.read_text())
    assert [text for text in texts if text.endswith(".md")] == []


WORDS = ("certificate", "AUROC", "seed", "bound", "gap", "estimator", "epoch", "round", "budget")


def test_the_glossary_has_plain_words_in_order():
    rows = (ROOT / "docs" / "glossary.md").read_text().split("## ")[1].splitlines()
    words = [row.split("|")[1].strip() for row in rows if row.startswith("| ")][1:]
    assert words == sorted(words, key=str.casefold)
    assert set(WORDS) <= set(words)


def test_the_bibtex_entry_is_the_citation_file():
    citation = (ROOT / "CITATION.cff").read_text()
    entry = (ROOT / "docs" / "how-to" / "cite.md").read_text()
    title, version, year, author, licence = (
        re.search(pattern, citation, re.M)[1]
        for pattern in (
            r"^title: (.*)$", r"^version: (.*)$", r"^date-released: (\d+)", r"^  - name: (.*)$",
            r"^license: (.*)$",
        )
    )  # fmt: skip
    assert f"title = {{{title}}}" in entry
    assert f"version = {{{version}}}" in entry
    assert f"year = {{{year}}}" in entry
    assert f"author = {{{{{author}}}}}" in entry
    assert f"note = {{Version {version}, {licence}}}" in entry


@pytest.mark.parametrize("name", ["coalitions", "solvers", "learners"])
def test_the_reference_has_every_public_name_and_no_other(name):
    if name == "learners":
        pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
    package = importlib.import_module(name)
    page = (ROOT / "docs" / "reference" / f"{name}.md").read_text()
    named = {place.rpartition(".")[2] for place in re.findall(r"^::: (\S+)$", page, re.M)}
    own = {"task"} if name == "learners" else set()  # the page says where it is
    assert named - own == set(package.__all__)
    if name == "learners":  # what a method of one's own is handed, and hands back
        assert {"Client", "Fitted"} <= named


@pytest.fixture
def readable():
    pytest.importorskip("griffe", reason="griffe is not installed: pip install .[docs]")
    spec = importlib.util.spec_from_file_location("readable", ROOT / "docs" / "readable.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.readable


def test_a_formula_is_code_on_the_site(readable):
    assert readable("With :math:`n_i +\n1` rows") == "With `n_i + 1` rows"
    assert readable("is\n\n.. math:: a\n\nend") == "is\n\n```tex\na\n```\n\nend"
    several = "is\n\n.. math::\n    a &= b \\\\\n      &+ c\n\nend"
    assert readable(several) == "is\n\n```tex\na &= b \\\\\n  &+ c\n```\n\nend"


def test_a_citation_and_a_page_are_links_on_the_site(readable):
    assert readable("As in [Jia2019b]_.").startswith(
        r'As in \[[Jia 2019b](../references.bib "Efficient task-specific data valuation'
    )
    assert readable("See docs/compare.md.") == "See [Comparing methods](../compare.md)."


def test_no_docstring_is_left_as_it_was_written(readable):
    sources = [path for layer in LAYERS for path in (ROOT / layer).rglob("*.py")]
    nodes = (node for path in sources for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    texts = (readable(ast.get_docstring(node) or "") for node in nodes if isinstance(node, kinds))
    raw = re.compile(r"\.\. math::|:math:|\w\]_(?!\w)")
    assert [text for text in texts if raw.search(text)] == []
