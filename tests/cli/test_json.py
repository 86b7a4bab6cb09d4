"""The schemas of `--json` documents; `test_all_commands` tries every command."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from tests.cli.typed import typed as coalitions

SCHEMAS = json.loads((Path(__file__).parents[2] / "docs" / "schemas.json").read_text())


def document(command, *arguments):
    result = coalitions(command, *arguments, "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    schema = {"$ref": f"#/$defs/{command}", "$defs": SCHEMAS["$defs"]}
    jsonschema.validate(found, schema)
    return found


def test_all_demands(tmp_path):
    path = tmp_path / "pair.csv"
    path.write_text(",a,b\na,0,1\nb,1,0\n")
    loads = ("--weights", "a=1", "--weights", "b=1", "--max-weight", 2)
    found = document("solve", path, "--n-groups", "1-2", "--at-least-one-of", "a,b", *loads)
    assert found["n_groups"] == [1, 2]
