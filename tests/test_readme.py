"""What a reader copies from the README, or from any page, works and prints what is said.

Blocks of a page run one after the other, in an empty folder that has `examples/` in it:

- `console`: each line that begins with `$ coalitions` is run; what follows it is what it prints.
  A line that ends in a backslash goes on.
- `python` with `>>>`: a doctest; a page's examples share their names.
- `python` with a file's name as a comment in its first line: the file, for commands below it.
- `python`, and `text` in the line below it: the text is what the program prints.
- anything else (`sh`, `text`, `python` with nothing below it) is there to be read.
"""

from __future__ import annotations

import contextlib
import doctest
import gc
import io
import itertools
import os
import re
import shlex
import sys
import types
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

from coalitions.registry import Registry
from tests.cli.typed import typed

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SLOW = {"docs/add.md", "docs/tutorial.md", "docs/how-to/privacy-budget.md"}
"""Pages whose blocks take long: run by hand, with -m slow."""

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FILE = re.compile(r"# (\w+\.py)\b.*\n")


@dataclass(frozen=True)
class Block:
    """A piece of a page that can be run; `expected` is what it says that it prints."""

    kind: str
    code: str
    expected: str
    line: int


def blocks(page: Path) -> list[Block]:
    """Return what of a page can be run, in its order."""
    text = page.read_text()
    fences = [*re.finditer(r"^( *)```(\w*)\n(.*?)^ *```\n", f"{text}\n", re.S | re.M), None]
    runs = []
    for fence, after in itertools.pairwise(fences):
        kind, code = fence[2], re.sub(rf"^{fence[1]}", "", fence[3], flags=re.M)
        line = text.count("\n", 0, fence.start())
        if kind == "console":
            for command in re.split(r"^(?=\$ )", code.replace("\\\n", " "), flags=re.M):
                if command.startswith("$ coalitions"):
                    first, _, rest = command.partition("\n")
                    runs.append(Block("command", first.removeprefix("$ coalitions"), rest, line))
        elif kind == "python" and ">>>" in code:
            runs.append(Block("doctest", code, "", line))
        elif kind == "python" and FILE.match(code):
            runs.append(Block("file", code, "", line))
        elif kind == "python" and after and (after.start(), after[2]) == (fence.end(), "text"):
            runs.append(Block("program", code, after[3], line))
    return runs


RUNNABLE = [
    pytest.param(
        page,
        id=str(page.relative_to(ROOT)),
        marks=[pytest.mark.slow] if str(page.relative_to(ROOT)) in SLOW else [],
    )
    for page in PAGES
    if blocks(page)
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder with the examples; what a page registers is gone after it."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    registries = [each for each in gc.get_objects() if type(each) is Registry]
    before = [(each, dict(each._entries)) for each in registries]
    modules = set(sys.modules)
    yield tmp_path
    for registry, entries in before:
        for name in registry._entries.keys() - entries.keys():
            home = getattr(registry._entries[name], "__module__", "")
            if home in ("page", "__main__") or (tmp_path / f"{home}.py").exists():
                del registry._entries[name]
    for name in set(sys.modules) - modules:
        if (tmp_path / f"{name}.py").exists():
            del sys.modules[name]


def same(expected: str, printed: str) -> bool:
    return doctest.OutputChecker().check_output(expected, printed, FLAGS)


def run_command(line: str, expected: str) -> None:
    """Run a line of a console; one that says nothing of its output has to end well."""
    words = shlex.split(line, comments=True)
    target = None
    if ">" in words:
        words, (target,) = words[: words.index(">")], words[words.index(">") + 1 :]
    result = typed(*words, env={**os.environ, "COLUMNS": "100"})
    if target is not None:
        Path(target).write_text(result.stdout)
    if "coalitions: " in expected:
        assert result.returncode != 0
        assert same(expected, result.stderr), result.stderr
        return
    assert result.returncode == 0, result.stderr
    if expected:  # a terminal shows both
        whole = result.stderr + result.stdout
        assert same(expected, result.stdout) or same(expected, whole), whole


def run_program(code: str, expected: str) -> None:
    page = types.ModuleType("page")
    printed = io.StringIO()
    sys.modules["page"] = page  # a dataclass looks its module up
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "page", "exec"), vars(page))
    finally:
        del sys.modules["page"]
    assert same(expected, printed.getvalue()), printed.getvalue()


def run_doctest(code: str, names: dict[str, object], line: int) -> None:
    test = doctest.DocTestParser().get_doctest(code, names, "page", "page", line)
    said = io.StringIO()
    with warnings.catch_warnings():
        failed, _ = doctest.DocTestRunner(optionflags=FLAGS).run(
            test, out=said.write, clear_globs=False
        )
    names.update(test.globs)
    assert not failed, said.getvalue()


@pytest.mark.parametrize("page", RUNNABLE)
def test_a_page_does_what_it_says(page, folder):
    names: dict[str, object] = {"__name__": "page"}
    text = page.read_text()
    if "learners" in text or re.search(r"coalitions (run|compare|tune|datasets)", text):
        pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
    for block in blocks(page):
        try:
            if block.kind == "command":
                run_command(block.code, block.expected)
            elif block.kind == "doctest":
                run_doctest(block.code, names, block.line)
            elif block.kind == "file":
                (folder / FILE.match(block.code)[1]).write_text(block.code)
            else:
                run_program(block.code, block.expected)
        except Exception as error:
            error.add_note(f"{page.relative_to(ROOT)}, line {block.line + 1}:\n{block.code}")
            raise


def test_every_kind_of_block_is_there():
    kinds = {block.kind for page in PAGES for block in blocks(page)}
    assert kinds == {"command", "doctest", "file", "program"}
    assert {block.kind for block in blocks(ROOT / "README.md")} >= {"command", "program"}
