"""What docs/problems.md shows is what happens."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "problems.md"


def test_the_examples_of_the_page_are_true():
    pytest.importorskip("sklearn")
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted >= 25
    assert result.failed == 0
