"""Rules that every command keeps: its switches, its flags, its JSON and its exit codes.

A new command needs a line in `LINES` and a schema, and is checked by all that is here.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import jsonschema
import pytest
import typer

from cli import app
from cli.terminal.help import group_of
from solvers import warm_up
from tests.cli.games.test_solve import EXAMPLE
from tests.cli.test_json import SCHEMAS
from tests.cli.typed import check_refused, typed

TINY = "--clients 2 --rounds 1 --train-size 20 --test-size 10 --local-epochs 1"

LINES = {
    "solve": "{graph} --output {new}.json --certificate {new}.proof.json",
    "verify": "{graph} {solution} --certificate {proof}",
    "explain": "{graph} {solution} mnist-1 --fragile 0",
    "what-if": "{graph} --together mnist-1,svhn-1",
    "stability": "{graph} {solution} --notion nash",
    "shapley": "{graph}",
    "value": "{graph} --concept interactions --order 2",
    "run": f"{TINY} --out {{new}}",
    "resume": "{run}",
    "predict": "{tables} {patients} --client Ash",
    "show": "{run}",
    "report": "{run} --output {new}.html",
    "datasets": "",
    "algorithms": "",
    "options": "fedprox",
    "attack": "{run} --pictures 1 --steps 2",
    "deploy": "{new}",
    "compare": f"--algorithms local,fedavg --seeds 0,1 {TINY} --out {{new}}",
    "tune": f"--algorithms fedprox --trials 2 --seeds 1 {TINY} --output {{new}}.toml",
    "reproduce": "pfedsv-fig2 --scale smoke --out {new}",
    "list": "solvers",
    "solvers": "",
    "warm-up": "",
    "check-plugin": "coalitions.data_models",
}
"""What each command is tried with."""

MORE = {
    "run --dry-run": f"run {TINY} --dry-run",
    "reproduce --list": "reproduce --list",
    "reproduce --dry-run": "reproduce pfedsv-fig2 --scale smoke --dry-run --out {new}",
    "list (without a kind)": "list",
}
"""Other documents: the name of the schema, and the line."""

PATIENTS = EXAMPLE.with_name("patients.csv")

SWITCHES = {"--json": None, "--quiet": "-q", "--verbose": "-v", "--plugin": None, "--help": "-h"}


@pytest.fixture(scope="module")
def commands():
    app._add_commands(None)
    return typer.main.get_command(app.app).commands


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What commands left that others take."""
    folder = tmp_path_factory.mktemp("files")
    made = {"graph": EXAMPLE, "run": folder / "run"}
    solution = typed(
        "solve", EXAMPLE, "--output", folder / "s.json", "--certificate", folder / "p.json"
    )
    assert solution.returncode == 0, solution.stderr
    run = typed("run", *TINY.split(), "--out", made["run"])
    assert run.returncode == 0, run.stderr
    tables = typed(
        *f"run --dataset {PATIENTS} --target readmitted --client-column hospital".split(),
        *("--rounds", 1, "--out", folder / "tables"),
    )
    assert tables.returncode == 0, tables.stderr
    return made | {
        "solution": folder / "s.json",
        "proof": folder / "p.json",
        "tables": folder / "tables",
        "patients": PATIENTS,
    }


def line_of(text: str, files, new: Path) -> list[str]:
    return text.format(**files, new=new).split()


def test_every_command_is_tried(commands):
    assert set(LINES) == set(commands)


@pytest.mark.parametrize("command", LINES)
def test_a_command_has_the_switches_of_all_and_says_what_it_does(command, commands):
    options = {
        option.opts[0]: option
        for option in commands[command].params
        if option.opts[0].startswith("--")
    }
    for flag, short in SWITCHES.items():
        if flag == "--help":
            continue
        assert flag in options, f"{command} has no {flag}"
        assert (short in options[flag].opts) is (short is not None)
    for flag, option in options.items():
        assert re.fullmatch(r"--[a-z]+(-[a-z0-9]+)*", flag)
        assert (option.help or "").strip(), f"{command} {flag} does not say what it is"
    about = (commands[command].help or "").strip()
    assert about.splitlines()[0].endswith(".")
    assert f"Example: coalitions {command}" in about
    assert group_of(command) != "More"


PLACES = {
    "GRAPH": "a graph", "FILE": "a graph, a game or a table", "SOLUTION": "of solve --output",
    "PLAYER": "", "DIR": "a folder", "DIR…": "folders", "DIR|FILE": "a folder or a solution",
    "ROWS": "a table of new rows", "CONFIG": "settings", "NAME": "", "[NAME]…": "", "[KIND]": "",
    "[run|ALGORITHM|all]": "", "MODULE": "",
}  # fmt: skip
"""What arguments are called: one name for one kind of thing."""


def test_an_argument_is_called_by_what_it_is(commands):
    called = {
        argument.metavar or argument.name.upper()
        for command in commands.values()
        for argument in command.params
        if argument.param_type_name == "argument"
    }
    assert called == set(PLACES)


def test_flags_are_in_american_spelling_and_promised_ones_are_taken_as_well(commands):
    options = [option for command in commands.values() for option in command.params]
    assert not [each for each in options if re.search(r"(?<!no)is(e|ed|ing)$|our$", each.opts[0])]
    both = [each.opts for each in options if "--symmetrise" in each.opts]
    assert len(both) == 7
    assert all(each == ["--symmetrize", "--symmetrise"] for each in both)


DIFFER = {
    "--missing": "a number; for a table of data it may be a word",
    "--weights": "of players, or of a network",
}
"""Flags of two types, and why."""


def test_a_flag_is_of_one_type_in_all_commands(commands):
    types: dict[str, dict[str, list[str]]] = {}
    for name, command in commands.items():
        for option in command.params:
            if option.opts[0].startswith("--"):
                kind = f"{option.type.name.removesuffix(' range')}{' …' * option.multiple}"
                types.setdefault(option.opts[0], {}).setdefault(kind, []).append(name)
    assert {flag: kinds for flag, kinds in types.items() if len(kinds) > 1}.keys() == DIFFER.keys()


def checked(schema: str, line: list[str]) -> None:
    done = typed(*line, "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    document = json.loads(done.stdout)
    jsonschema.validate(document, {"$ref": f"#/$defs/{schema}", "$defs": SCHEMAS["$defs"]})


@pytest.mark.parametrize("command", LINES)
def test_json_is_all_that_is_printed_and_is_as_its_schema_says(
    command, files, tmp_path, monkeypatch
):
    monkeypatch.setattr(warm_up, "TASKS", {"nothing": lambda: None})  # compiling is for others
    checked(command, [command, *line_of(LINES[command], files, tmp_path / "new")])


@pytest.mark.parametrize("schema", MORE)
def test_other_documents_are_as_their_schemas_say(schema, files, tmp_path):
    checked(schema, line_of(MORE[schema], files, tmp_path / "new"))


@pytest.mark.parametrize("command", LINES)
@pytest.mark.parametrize(
    ("mistake", "named"),
    [
        ("--no-such-flag", "--no-such-flag"),
        ("--quiet --verbose", "--verbose"),
        ("--plugin no_such_module_at_all", "no_such_module_at_all"),
    ],
)
def test_a_mistake_is_one_sentence_with_exit_code_2(command, mistake, named, files, tmp_path):
    arguments = line_of(LINES[command], files, tmp_path / "new")
    done = typed(command, *arguments, *mistake.split())
    assert done.returncode == 2
    assert done.stdout == ""
    assert named in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "new").exists()


# ----------------------------------------------------------------------------------------
# Files that are written.

RESULTS = ("solve", "explain", "what-if", "stability", "shapley", "value", "datasets")
"""Commands whose `--output` takes every ending."""

CHANGES = {"seconds"}
"""What differs from one run to the next."""

OUTPUT = {name: re.sub(r" --output \S+", "", LINES[name]) for name in LINES}
"""The lines, without a file to write."""


def of_line(name, files, new) -> list[str]:
    return [name, *line_of(OUTPUT[name], files, new)]


@pytest.mark.parametrize("command", RESULTS)
def test_output_is_what_was_printed_by_the_ending_of_its_name(command, files, tmp_path):
    pytest.importorskip("openpyxl", reason="openpyxl is not installed: pip install .[tables]")
    texts = {}
    for ending in ("json", "csv", "md", "html", "xlsx"):
        path = tmp_path / f"result.{ending}"
        path.write_text("an older file is replaced")
        done = typed(*of_line(command, files, tmp_path / "new"), "--output", path, "--json", "-q")
        assert done.returncode == 0, done.stderr
        texts[ending] = path.read_bytes()
    kept, printed = (json.loads(text) for text in (texts["json"], done.stdout))
    assert {name: kept[name] for name in kept.keys() - CHANGES} == {
        name: printed[name] for name in printed.keys() - CHANGES
    }
    heads, *rows = csv.reader(texts["csv"].decode("utf-8-sig").splitlines())
    assert rows
    assert {len(row) for row in rows} == {len(heads)}
    assert texts["md"].startswith(b"# ")
    assert texts["html"].startswith(b"<!doctype html>")
    assert texts["xlsx"].startswith(b"PK")


@pytest.mark.parametrize("command", RESULTS)
def test_another_ending_is_refused_before_the_work(command, files, tmp_path):
    done = typed(*of_line(command, files, tmp_path / "new"), "--output", tmp_path / "result.txt")
    check_refused(done, "result.txt", ".xlsx")
    assert not list(tmp_path.iterdir())


def test_every_command_that_writes_a_file_keeps_one_rule(commands, files, tmp_path):
    for name, command in commands.items():
        flags = {option.opts[0] for option in command.params}
        for flag in flags & {"--output", "--plot"}:
            line = of_line(name, files, tmp_path / "new")
            for bad in (tmp_path, tmp_path / "nowhere" / "file.json"):
                check_refused(typed(*line, flag, bad), flag, str(bad))
            for at, typed_word in enumerate(line[1:], 1):
                if Path(typed_word).is_file():
                    shutil.copy(typed_word, read := tmp_path / Path(typed_word).name)
                    before = read.read_bytes()
                    again = [*line[:at], read, *line[at + 1 :]]
                    check_refused(typed(*again, flag, read), flag, read.name)
                    assert read.read_bytes() == before
        if flags >= {"--output", "--plot"}:
            both = tmp_path / "both.html"
            done = typed(*line, "--output", both, "--plot", both)
            check_refused(done, "--output", "--plot", "both.html")
            assert not both.exists()


def test_a_false_claim_ends_with_1_and_what_cannot_be_read_with_2(files, tmp_path):
    changed = json.loads(files["solution"].read_text())
    (tmp_path / "false.json").write_text(json.dumps(changed | {"value": changed["value"] + 1}))
    proof = json.loads(files["proof"].read_text())
    proof["parts"][0]["bound"] -= 1
    (tmp_path / "false.proof").write_text(json.dumps(proof))
    (tmp_path / "cut.json").write_text(files["solution"].read_text()[:-9])
    for code, line in (
        (0, (files["solution"],)),
        (1, (tmp_path / "false.json",)),
        (1, (files["solution"], "--certificate", tmp_path / "false.proof")),
        (2, (tmp_path / "cut.json",)),
        (2, (tmp_path / "nowhere.json",)),
        (2, (files["solution"], "--certificate", tmp_path / "cut.json")),
    ):
        done = typed("verify", EXAMPLE, *line)
        assert done.returncode == code, line
        assert len(done.stderr.splitlines()) == (code > 0)
