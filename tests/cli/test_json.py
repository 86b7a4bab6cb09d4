"""Every `--json` document is what docs/schemas.json says."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from tests.cli.games.test_solve import EXAMPLE
from tests.cli.typed import typed as coalitions

SCHEMAS = json.loads((Path(__file__).parents[2] / "docs" / "schemas.json").read_text())


def document(command, *arguments):
    result = coalitions(command, *arguments, "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    schema = {"$ref": f"#/$defs/{command}", "$defs": SCHEMAS["$defs"]}
    jsonschema.validate(found, schema)
    return found


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("solved")
    out, proof = folder / "solution.json", folder / "proof.json"
    document("solve", EXAMPLE, "--output", out, "--certificate", proof)
    return out, proof


def test_solve_and_verify(solved):
    out, proof = solved
    assert document("verify", EXAMPLE, out)["bound_checked"] is False
    assert document("verify", EXAMPLE, out, "--certificate", proof)["optimal"] is True


def test_all_demands(tmp_path):
    path = tmp_path / "pair.csv"
    path.write_text(",a,b\na,0,1\nb,1,0\n")
    loads = ("--weights", "a=1", "--weights", "b=1", "--max-weight", 2)
    found = document("solve", path, "--n-groups", "1-2", "--at-least-one-of", "a,b", *loads)
    assert found["n_groups"] == [1, 2]


@pytest.mark.parametrize("command", ["solvers", "algorithms", "datasets"])
def test_lists(command):
    document(command)


def test_values(solved):
    document("shapley", EXAMPLE)
    document("value", EXAMPLE, "--concept", "banzhaf")
    document("stability", EXAMPLE, solved[0])


def test_a_run_and_its_report(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
    out = tmp_path / "run"
    arguments = ("--clients", 3, "--rounds", 2, "--local-epochs", 1, "--out", out)
    assert document("run", *arguments)["epsilon"] is None
    document("report", out)


def test_an_app_to_deploy(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
    assert "app/client.py" in document("deploy", tmp_path / "app")["files"]


def test_a_tampered_solution_or_proof_is_refused(solved, tmp_path):
    out, proof = solved
    changed = json.loads(out.read_text())
    changed["value"] += 1
    path = tmp_path / "solution.json"
    path.write_text(json.dumps(changed))
    result = coalitions("verify", EXAMPLE, path)
    assert result.returncode != 0
    assert "claims the value" in result.stderr

    broken = json.loads(proof.read_text())
    broken["parts"][0]["bound"] -= 1
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(broken))
    result = coalitions("verify", EXAMPLE, out, "--certificate", path)
    assert result.returncode != 0
    assert "refused" in result.stderr
