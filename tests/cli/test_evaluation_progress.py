"""The line that says how far an estimate is: late, rarely in a pipe, and gone at the end."""

from __future__ import annotations

import io

import pytest

from cli.terminal.progress import EvaluationLine
from coalitions import Evaluations


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def written():
    """Report 10, 20 … 100 of 100 evaluations, some seconds apart, and return what was written."""

    def report(stream, seconds, **options):
        at = 0.0

        def clock():
            return at

        with EvaluationLine(stream=stream, clock=clock, **options) as line:
            for done in range(10, 101, 10):
                at += seconds
                line(Evaluations(done, 100))
        return stream.getvalue()

    return report


def test_what_is_soon_done_says_nothing(written):
    assert written(Terminal(), 0.1) == ""


def test_a_terminal_has_one_line_which_is_gone_at_the_end(written):
    text = written(Terminal(), 5.0)
    assert "\r\x1b[K40 of 100 evaluations, about 30 s left" in text
    assert "\n" not in text
    assert text.endswith("\r\x1b[K")


def test_elsewhere_there_is_a_line_now_and_then(written):
    assert written(io.StringIO(), 20.0).splitlines() == [
        "10 of 100 evaluations",
        "30 of 100 evaluations, about 2 min left",
        "50 of 100 evaluations, about 2 min left",
        "70 of 100 evaluations, about 1 min left",
        "90 of 100 evaluations, about 20 s left",
    ]


def test_who_is_quiet_says_nothing(written):
    assert written(Terminal(), 5.0, quiet=True) == ""
