"""`coalitions solve` as a user types it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.typed import check_refused, in_a_process
from tests.cli.typed import typed as coalitions

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "data" / "three_domains.csv"


@pytest.mark.parametrize("solver", ["auto", "cbc", "cp-sat", "highs"])
def test_the_example_is_solved_and_proven(solver):
    result = coalitions("solve", EXAMPLE, "--solver", solver, "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert set(document) >= {
        "coalitions",
        "value",
        "bound",
        "gap",
        "optimal",
        "seconds",
        "solver",
        "players",
    }
    domains = [{name.split("-")[0] for name in block} for block in document["coalitions"]]
    assert all(len(domain) == 1 for domain in domains)
    assert document["optimal"] is True
    assert document["gap"] == pytest.approx(0)
    assert document["players"] == 15
    assert document["value"] == pytest.approx(7.711, abs=1e-9)


def test_people_get_a_table_and_a_verdict():
    result = coalitions("solve", EXAMPLE, "--solver", "highs")
    assert result.returncode == 0
    assert "mnist-1" in result.stdout
    assert "optimal: no structure is worth more" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("name", "text", "arguments", "sentence"),
    [
        (None, "", [], "there is no such file"),
        ("empty.csv", "", [], "is empty"),
        ("wide.csv", "0,1,2\n1,0,2\n", [], "must be square"),
        ("skew.csv", ",a,b\na,0,1\nb,2,0\n", [], "not symmetric: 'a'–'b' is 1 but 'b'–'a' is 2"),
        ("nan.csv", "0,nan\nnan,0\n", [], "say what it is worth: --missing 0"),
        ("inf.csv", "0,inf\ninf,0\n", [], "(row 1, column 2) is inf"),
        ("twice.csv", ",a,a\na,0,1\na,1,0\n", [], "the label 'a' is used twice"),
        ("word.csv", "0,1\none,0\n", [], "line 2, column 1: 'one' is not a number"),
        ("what.xyz", "0", [], "the format 'xyz' is unknown"),
        ("old.ods", "0", [], "save the sheet as .xlsx or .csv"),
        ("ok.csv", "0,1\n1,0\n", ["--solver", "hihgs"], "did you mean 'highs'? there are: "),
        ("ok.csv", "0,1\n1,0\n", ["--time-limit", "-1"], "--time-limit is -1"),
        ("ok.csv", "0,1\n1,0\n", ["--time-limit", "soon"], "'soon' is not a valid float"),
        ("ok.csv", "0,1\n1,0\n", ["--must-link", "0"], "--must-link takes two names"),
        ("ok.csv", "0,1\n1,0\n", ["--must-link", "0,7"], "there is no player '7'"),
        ("ok.csv", "0,1\n1,0\n", ["--sovler", "highs"], "No such option"),
        ("ok.csv", "0,1\n1,0\n", ["--plugin", "no.such"], "plugin 'no.such' cannot be imported"),
        ("ok.csv", "0,1\n1,0\n", ["--output", "no/such/dir.json"], "there is no folder no/such"),
        ("ok.csv", "0,1\n1,0\n", ["--output", "."], "--output: . is a folder; give the name"),
        ("ok.csv", "0,1\n1,0\n", ["--certificate", "no/such/dir.json"], "cannot be written"),
        (
            "ok.csv",
            "0,1\n1,0\n",
            ["--certificate", "proof.json", "--solver", "highs"],
            "highs gives no certificate; use branch-and-cut",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(tmp_path, name, text, arguments, sentence):
    path = tmp_path / (name or "missing.csv")
    if name is not None:
        path.write_text(text)
    result = coalitions("solve", path, *arguments, cwd=tmp_path)
    check_refused(result)
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("coalitions: ")
    assert sentence in lines[0]


def test_an_asymmetric_matrix_is_accepted_on_request(tmp_path):
    path = tmp_path / "skew.csv"
    path.write_text(",a,b\na,0,1\nb,2,0\n")
    for how, value in (("mean", 1.5), ("sum", 3.0), ("min", 1.0), ("max", 2.0)):
        result = coalitions("solve", path, "--symmetrize", how, "--solver", "highs", "--json")
        assert json.loads(result.stdout)["value"] == value


def test_infeasible_demands_are_exit_code_1():
    result = coalitions("solve", EXAMPLE, "--n-groups", "16")
    assert result.returncode == 1
    assert "--n-groups is 16" in result.stderr


def test_standard_input_output_file_and_links(tmp_path):
    out = tmp_path / "solution.json"
    result = coalitions(
        "solve", "-", "--format", "csv", "--solver", "highs", "--output", out, "--json",
        "--must-link", "mnist-1,svhn-1", "--cannot-link", "usps-1,usps-2",
        stdin=EXAMPLE.read_text(),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    document = json.loads(out.read_text())
    assert document == json.loads(result.stdout)
    blocks = {name: k for k, block in enumerate(document["coalitions"]) for name in block}
    assert blocks["mnist-1"] == blocks["svhn-1"]
    assert blocks["usps-1"] != blocks["usps-2"]
    warm = coalitions("solve", EXAMPLE, "--warm-start", out, "--solver", "highs", "--json")
    assert json.loads(warm.stdout)["optimal"]


def test_sizes_from_the_prompt():
    result = coalitions(
        "solve", EXAMPLE, "--solver", "cp-sat", "--formulation", "full", "--max-size", "4", "--json"
    )
    assert result.returncode == 0, result.stderr
    assert max(map(len, json.loads(result.stdout)["coalitions"])) <= 4


def test_a_locale_without_utf8_gets_no_traceback(tmp_path):
    path = tmp_path / "skew.csv"
    path.write_text(",ä,b\nä,0,1\nb,2,0\n", encoding="utf-8")
    result = in_a_process("solve", path, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    check_refused(result)


def test_solvers_are_listed():
    result = coalitions("solvers", "--json")
    states = json.loads(result.stdout)
    assert states["cbc"] is states["cp-sat"] is states["highs"] is True
    assert "brute-force" in states
    assert coalitions("solvers").returncode == 0


def test_version_and_help():
    assert in_a_process("--version").stdout.startswith("coalitions ")
    assert "solve" in in_a_process("--help").stdout
    assert "Example" in coalitions("solve", "--help").stdout


def test_verbose_says_who_solved_it_and_what_was_counted():
    result = coalitions("solve", EXAMPLE, "--solver", "highs", "--verbose", "--json")
    assert result.returncode == 0, result.stderr
    assert "highs  " in result.stderr.splitlines()[-1]
    assert "rows " in result.stderr.splitlines()[-1]
    assert '"optimal": true' in result.stdout
    assert coalitions("solve", EXAMPLE, "--solver", "highs", "--quiet").stderr == ""


def test_what_was_understood_of_a_spreadsheet_is_one_line_on_stderr(tmp_path):
    path = tmp_path / "excel.csv"
    path.write_bytes(";Änne;Bob\r\nÄnne;;31,7\r\nBob;31,7;\r\n".encode("cp1252"))
    result = coalitions("solve", path, "--solver", "greedy", "--json")
    assert json.loads(result.stdout)["value"] == 31.7
    assert result.stderr == (
        f"{path}: read as 2 players, Windows text (cp1252, not UTF-8: look at the names),"
        " semicolons, decimal commas, a blank diagonal\n"
    )
    assert coalitions("solve", path, "--solver", "greedy", "--quiet").stderr == ""
    path.write_text("a;b;x\n", encoding="utf-8")
    assert coalitions("solve", path).returncode == 2


def test_the_diagonal_of_a_correlation_matrix_is_ignored_and_said_once(tmp_path):
    path = tmp_path / "correlation.csv"
    path.write_text(",a,b\na,1,0.5\nb,0.5,1\n")
    result = coalitions("solve", path, "--solver", "greedy", "--json")
    assert json.loads(result.stdout)["value"] == 0.5
    (line,) = result.stderr.splitlines()
    assert line.startswith("coalitions: the diagonal is ignored: 'a' has 1 with itself")
    assert coalitions("solve", path, "--solver", "greedy", "--quiet").stderr == ""


def test_a_name_that_cannot_be_written_is_told_before_the_search(tmp_path):
    for option in ("--output", "--plot", "--certificate"):
        result = coalitions("solve", tmp_path / "none.csv", option, "no/such/x.png", cwd=tmp_path)
        check_refused(result, option, "no/such/x.png")


def test_the_result_is_printed_though_writing_fails_after_the_search(tmp_path):
    full = tmp_path / "full.json"
    full.symlink_to("/dev/full")
    result = coalitions("solve", EXAMPLE, "--solver", "greedy", "--json", "--output", full)
    assert result.returncode == 1
    assert json.loads(result.stdout)["players"] == 15
    assert "full.json cannot be written: the disk is full" in result.stderr


def test_a_table_is_not_wrapped_in_a_pipe(tmp_path):
    names = [f"a very long name of player number {k}" for k in range(6)]
    rows = [",".join([name, *("0" if a == b else "1.5" for b in range(6))])
            for a, name in enumerate(names)]  # fmt: skip
    path = tmp_path / "long.csv"
    path.write_text("\n".join([",".join(["", *names]), *rows]))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    result = coalitions("solve", path, "--solver", "greedy", env=environment)
    assert ", ".join(names) in result.stdout
    assert "22.5" in result.stdout


def test_a_name_with_a_comma_is_put_in_quotes(tmp_path):
    path = tmp_path / "staff.csv"
    path.write_text(',"Smith, Ann",Bob\n"Smith, Ann",0,2\nBob,2,0\n')
    result = coalitions(
        "solve", path, "--solver", "greedy", "--json", "--cannot-link", '"Smith, Ann",Bob'
    )
    assert json.loads(result.stdout)["coalitions"] == [["Smith, Ann"], ["Bob"]]


CORRELATIONS = ",a,b,c,d\na,1,.9,.2,.1\nb,.9,1,.3,.2\nc,.2,.3,1,.8\nd,.1,.2,.8,1\n"


@pytest.mark.parametrize(("threshold", "recorded"), [("0.5", 0.5), ("mean", "mean")])
def test_every_command_takes_the_same_threshold(tmp_path, threshold, recorded):
    (tmp_path / "c.csv").write_text(CORRELATIONS)
    files = ("--output", "s.json", "--certificate", "p.json")
    flags = ("--threshold", threshold)
    solved = coalitions("solve", "c.csv", *flags, *files, "--json", cwd=tmp_path)
    document = json.loads(solved.stdout)
    assert document["coalitions"] == [["a", "b"], ["c", "d"]]
    assert document["threshold"] == recorded
    (line,) = solved.stderr.splitlines()
    assert line.startswith("c.csv: ")
    assert line.endswith("was subtracted from every one of 6 pairs")
    for command in (
        ("verify", "c.csv", "s.json", "--certificate", "p.json"),
        ("explain", "c.csv", "s.json", "a"),
        ("stability", "c.csv", "s.json", "--notion", "nash"),
    ):
        assert coalitions(*command, *flags, cwd=tmp_path).returncode == 0
        for others in ((), ("--threshold", "0.25")):
            refused = coalitions(*command, *others, cwd=tmp_path)
            assert refused.returncode == 2  # after a word on the diagonal
            assert "s.json" in refused.stderr
            assert f"--threshold {recorded}" in refused.stderr
    wish = coalitions("what-if", "c.csv", "--apart", "a,b", *flags, "--json", cwd=tmp_path)
    assert json.loads(wish.stdout)["base_value"] == document["value"]
    for command in (("shapley",), ("value", "--concept", "shapley")):
        shares = coalitions(command[0], "c.csv", *command[1:], *flags, "--json", cwd=tmp_path)
        assert sum(json.loads(shares.stdout)["values"].values()) == pytest.approx(
            2.5 - 6 * (0.5 if threshold == "0.5" else 2.5 / 6), abs=1e-12
        )


def test_a_correlation_matrix_is_told_of_the_threshold(tmp_path):
    (tmp_path / "c.csv").write_text(CORRELATIONS)
    (line,) = coalitions("solve", "c.csv", "--json", cwd=tmp_path).stderr.splitlines()
    assert "--threshold mean" in line
    (tmp_path / "few.edges").write_text("a b 1\nb c 2\n")
    (tmp_path / "t.json").write_text('{"values": [0, 1, 1, 2]}')
    for command, sentence in (
        (("solve", "c.csv", "--threshold", "high"), "--threshold takes a number or mean"),
        (("solve", "c.csv", "--threshold", "nan"), "--threshold is nan"),
        (("solve", "few.edges", "--threshold", "1"), "only 2 of 3 pairs are listed"),
        (("shapley", "t.json", "--threshold", "1"), "are for synergy graphs"),
        (("value", "c.csv", "--target", "a", "--threshold", "1"), "are for synergy graphs"),
    ):
        refused = coalitions(*command, cwd=tmp_path)
        check_refused(refused, sentence)


def test_wishes_of_one_direction_are_summed_and_told_of(tmp_path):
    (tmp_path / "w.csv").write_text("from,to,points\na,b,3\nb,a,1\na,c,2\n")
    command = ("solve", "w.csv", "--symmetrise", "sum", "--output", "s.json")
    result = coalitions(*command, cwd=tmp_path)
    assert "w.csv: 1 of 2 pairs are one-way (the other direction is 0): each counts in full" in (
        result.stderr
    )
    assert coalitions(*command, "--quiet", cwd=tmp_path).stderr == ""
    assert json.loads((tmp_path / "s.json").read_text())["symmetrise"] == "sum"
    refused = coalitions("solve", "w.csv", "--symmetrise", "Sum", cwd=tmp_path)
    check_refused(refused, "--symmetrize", "'Sum'", "mean")
    refused = coalitions("verify", "w.csv", "s.json", "--symmetrise", "mean", cwd=tmp_path)
    assert (refused.returncode, "was made with --symmetrize sum" in refused.stderr) == (2, True)


@pytest.mark.parametrize("limits", [{}, {"max_size": 3}, {"n_groups": 4}])
def test_what_is_printed_is_the_result_as_text(limits):
    import solvers

    path = "examples/data/three_domains.csv"
    flags = [
        word for key, value in limits.items() for word in (f"--{key}".replace("_", "-"), value)
    ]
    printed = coalitions("solve", path, *flags).stdout.splitlines()
    written = str(solvers.solve(path, **limits)).splitlines()
    assert [line.rstrip() for line in printed[:-1]] == written[:-1]
    assert printed[-1].partition(",")[0] == written[-1].partition(",")[0]  # without the seconds
