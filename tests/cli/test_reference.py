"""The page of commands is what the commands say of themselves.

`python -m tests.cli.test_reference` writes it.
"""

from __future__ import annotations

import re
from pathlib import Path

import typer

from cli import app

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"

HEAD = """# Commands

`coalitions COMMAND --help` says the same in the terminal.
Results go to stdout, everything else to stderr.

| exit code | means |
|---|---|
| 0 | it ran |
| 1 | it ran and failed, the demands cannot be met, or a claim is false |
| 2 | bad input, said in one sentence |
| 130 | interrupted (Ctrl-C); what is known so far is printed where there is something |

`--json` prints one JSON document and nothing else.
Every command takes `--json`, `--quiet`, `--verbose` and `--plugin`.
[schemas.json](../schemas.json) has the schema of each.
Settings of a run (`--rounds`, `--lr` …) are explained in [options](../options.md).
"""


def page() -> str:
    """Return the page, from the flags and docstrings of all commands."""
    app._add_commands(None)
    commands = typer.main.get_command(app.app).commands
    return HEAD + "".join(_section(name, commands[name]) for name in sorted(commands))


def _section(name, command) -> str:
    text = re.sub(r"\n +", "\n", command.help or "").strip()
    about, _, example = text.partition("Example: ")
    lines = [f"\n## {name}\n\n{about.strip()}\n"]
    if example:
        commands = (line.removeprefix("Example: ") for line in example.splitlines() if line)
        lines += ["\n```sh\n", *(f"{command}\n" for command in commands), "```\n"]
    lines.append("\n| | |\n|---|---|\n")
    for option in command.params:
        if getattr(option, "hidden", False) or option.name == "help":
            continue
        flags = ", ".join(f"`{flag}`" for flag in option.opts if flag.startswith("-"))
        said = " ".join((option.help or "").split()).replace("|", "\\|")
        lines.append(f"| {flags or f'`{(option.metavar or option.name).upper()}`'} | {said} |\n")
    return "".join(lines)


def test_the_page_of_commands_is_what_they_say():
    assert PAGE.read_text() == page()


if __name__ == "__main__":
    PAGE.write_text(page())
