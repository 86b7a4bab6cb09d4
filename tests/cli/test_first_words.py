"""What somebody types first: nothing at all, a folder that is not there, -q, decimals."""

from __future__ import annotations

import json

import pytest

from tests.cli.said import but_for_compiling
from tests.cli.typed import typed

DECIMALS = "a,b,111.1\nb,c,222.2\na,c,110.8\nc,d,-3.3\n"


def test_the_bare_command_shows_its_commands_and_no_empty_complaint():
    result = typed()
    assert "Find the best coalition structure" in result.stdout
    assert but_for_compiling(result.stderr) == ""


@pytest.mark.parametrize("command", ["report", "resume", "attack"])
def test_whoever_names_a_folder_that_is_not_there_is_told_so(command, tmp_path):
    if command != "report":
        pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
    result = typed(command, "nodir", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr == "coalitions: there is no folder nodir\n"


def test_quiet_prints_the_result_and_nothing_else(tmp_path):
    (tmp_path / "g.csv").write_text(DECIMALS)
    result = typed("solve", "g.csv", "-q", cwd=tmp_path)
    assert result.stderr == ""
    assert result.stdout.startswith("   coalition")


def test_json_has_decimals_as_a_person_writes_them(tmp_path):
    (tmp_path / "g.csv").write_text(DECIMALS)
    solved = typed("solve", "g.csv", "--json", "--output", "s.json", "--certificate", "c.json",
                   cwd=tmp_path)  # fmt: skip
    checked = typed("verify", "g.csv", "s.json", "--certificate", "c.json", "--json", cwd=tmp_path)
    for result in (solved, checked):
        found = json.loads(result.stdout)
        assert (found["value"], found["bound"]) == (444.1, 444.1)
        assert "444.10000000000" not in result.stdout
