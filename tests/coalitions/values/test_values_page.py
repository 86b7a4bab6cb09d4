"""What docs/values.md shows is what happens."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "values.md"


def test_the_examples_of_the_page_are_true():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted >= 8
    assert result.failed == 0
