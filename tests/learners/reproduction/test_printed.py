"""What we say the papers print, held against the papers' text where it is at hand."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

from learners.reproduction.experiments.cffl_tables import with_spreads
from learners.reproduction.printed import paper_table

PAPERS = Path(__file__).resolve().parents[4] / "shared" / "papers"

SOURCES = {
    "pfedsv": "pfedsv_tmc2024.txt", "cffl": "cffl_wiiat2022.txt", "fedc2i": "fedc2i.txt",
    "fedacs": "fedacs.txt",
}  # fmt: skip

TABLES = sorted(
    path.name.removesuffix(".json")
    for path in resources.files("learners.reproduction").joinpath("papers").iterdir()
)


def text_of(name: str) -> Path:
    """Return where the text of a table's paper would be."""
    if name.endswith("-arxiv"):
        return PAPERS / "pfedsv_arxiv2022.txt"
    return PAPERS / SOURCES[name.partition("-")[0]]


def written(number: float) -> re.Pattern[str]:
    """Return what finds a number in a text: 95.6 may be printed 95.60, but is not in 195.6."""
    return re.compile(rf"(?<![\d.]){re.escape(f'{number:g}')}0*(?!\d)")


def test_the_means_of_cffls_table_1_with_200_images_are_those_of_table_2():
    once, again = paper_table("cffl-table1"), with_spreads(paper_table("cffl-table1"))
    column = "mean, 200 images"
    for row in once.rows:
        assert once.get(row, column).mean == again.get(row, column).mean
        assert again.get(row, column).spread is not None


def test_which_of_pfedsvs_leads_over_the_runner_up_are_significant_in_the_paper():
    table = paper_table("pfedsv-table1")
    significant = []
    for column in table.columns:
        runner_up = table.runner_up("pFedSV", column)
        if table.p_value("pFedSV", runner_up, column) < 0.05:
            significant.append((column, runner_up))
    assert significant == [("MNIST, 100 clients", "pFedHN"), ("FMNIST, 10 clients", "pFedHN")]


@pytest.mark.parametrize("name", TABLES)
def test_every_figure_stands_in_the_paper(name):
    path = text_of(name)
    if not path.is_file():
        pytest.skip(f"the papers are not here: {PAPERS}")
    text = path.read_text("utf-8").replace("79. \\pm", "79.0 \\pm")
    table = paper_table(name)
    missing = [
        (row, column, number)
        for row, figures in table.rows.items()
        for column, figure in figures.items()
        for number in (figure.mean, figure.spread)
        if number is not None and not written(number).search(text)
    ]
    assert missing == []


@pytest.mark.parametrize("name", [name for name in TABLES if name != "cffl-table1"])
def test_figures_of_a_row_stand_in_the_papers_order(name):
    """Means of a row come one after the other, unless the paper sets several rows in one cell.

    CFFL's Table I prints a row in two blocks, with its mean first.
    """
    path = text_of(name)
    if not path.is_file():
        pytest.skip(f"the papers are not here: {PAPERS}")
    text = path.read_text("utf-8")
    table = paper_table(name)
    in_order = 0
    for figures in table.rows.values():
        means = [figure.mean for figure in figures.values()]
        pattern = r"(?:(?!\n).)*?".join(written(mean).pattern for mean in means)
        in_order += bool(re.search(pattern, text))
    assert in_order >= 1
