"""Counts of what was checked, printed at the end of a session: the sum over all its tests.

A test hands its counts over by ``record_property("counts: TITLE", {row: {column: number}})``, which
also reaches us from other processes.
"""

from __future__ import annotations

import time
from collections import Counter

import pytest

PREFIX = "counts: "


@pytest.fixture
def tell(capsys):
    """Say at once what a long test has reached, with its seconds."""
    began = time.monotonic()

    def say(what):
        with capsys.disabled():
            print(f"{time.monotonic() - began:6.0f} s  {what}", flush=True)  # noqa: T201

    return say


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tables: dict[str, dict[str, Counter[str]]] = {}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, counts in getattr(report, "user_properties", []):
                if report.when == "call" and name.startswith(PREFIX):
                    table = tables.setdefault(name.removeprefix(PREFIX), {})
                    for row, columns in counts.items():
                        table.setdefault(row, Counter()).update(columns)
    for title, table in tables.items():
        terminalreporter.section(title)
        for line in lines(table):
            terminalreporter.write_line(line)


def lines(table: dict[str, Counter[str]]) -> list[str]:
    """Return a table in the form of a Markdown one."""
    columns = list(dict.fromkeys(column for counts in table.values() for column in counts))
    cells = [["", *columns]]
    cells += [[row, *(str(counts[c]) for c in columns)] for row, counts in table.items()]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    return [
        "| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
