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


DIFFER = {
    "best": "names in compare, a trial in tune",
    "client": "a number in run, a name in predict",
    "clients": "how many in run, which ones of new_clients, how many gain in compare",
    "default": "of a setting, which has its own type",
    "difference": "with an interval in compare, without for a single seed",
    "n_groups": "one number, or the least and the largest",
    "partition": "whether it is one in verify, which one in compare",
    "ready": "what is in list, whose kernels in warm-up",
    "runs": "folders, results of seeds, and how many",
    "values": "by name, but a list of what compare sweeps",
}
"""Keys with several types in documents of different commands; no other may join them."""


def kinds_of(schema):
    """Return the types that a schema allows, without null."""
    if "anyOf" in schema:
        return set().union(*map(kinds_of, schema["anyOf"]))
    if "enum" in schema:
        return {"string"}
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    return {"number" if each == "integer" else each for each in types} - {"null"}


def keys_of(schema):
    """Return each key in a schema, however deep, with its types."""
    for key, each in schema.get("properties", {}).items():
        yield key, kinds_of(each)
    for each in (schema, *schema.get("properties", {}).values()):
        inner = [each.get("items"), each.get("additionalProperties")]
        inner += [part for word in ("allOf", "anyOf", "oneOf") for part in each.get(word, [])]
        inner += [each] if each is not schema else []
        for part in inner:
            if isinstance(part, dict):
                yield from keys_of(part)


def test_a_key_has_one_type_in_all_documents():
    kinds: dict[str, set[str]] = {}
    for schema in SCHEMAS["$defs"].values():
        for key, types in keys_of(schema):
            kinds.setdefault(key, set()).update(types)
    assert {key for key, types in kinds.items() if len(types) > 1} == {*DIFFER}
