"""Files that earlier versions wrote are still read: solutions, certificates, runs, checkpoints.

They are in ``kept/`` and never written again. A new format gets new files beside them. Each pair
came from ``coalitions solve GRAPH FLAGS --output NAME.json --certificate NAME.proof.json``. The
folder ``run`` is one of two rounds, and ``begun`` is the same run, stopped after its first round.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from coalitions import SynergyGraph
from solvers import Certificate, Solution, verify
from tests.cli.typed import typed as coalitions

torch = pytest.importorskip("torch")
from learners import load_model, resume  # noqa: E402

KEPT = Path(__file__).parent / "kept"

PLAYERS = ("Ann", "Ben", "Chloë", "Dan", "Eve", "Fay", "Gus", "Hal", "Ida")
LOADS = " ".join(f"--weights {name}={1 + i % 3 / 2}" for i, name in enumerate(PLAYERS))
LINKS = "--must-link Ann,Eve --must-link Ben,Dan --cannot-link Gus,Fay,Ben"
SOLVED = {
    "plain": ("team.csv", "", 9.5),
    "links": ("team.csv", LINKS, 5.3),
    "groups": ("team.csv", "--n-groups 2", 7.1),
    "range": ("team.csv", "--n-groups 5-7 --max-size 6", 8.3),
    "sizes": ("team.csv", "--min-size 2 --max-size 3", 8.4),
    "loads": ("team.csv", f"{LOADS} --max-weight 4", 6.9),
    "roles": ("team.csv", "--at-least-one-of Ann,Ben,Hal --at-least-one-of Eve,Gus,Ida", 9.2),
    "all": ("team.csv", f"{LINKS} {LOADS} --max-weight 6.5 --max-size 4 --n-groups 3-4", 5.3),
    "never": ("never.csv", "", 11.3834004560672),
    "never-sizes": ("never.csv", "--max-size 3", 7.99977468052635),
    "conflicts": ("conflicts.edges", "", 3713),
    "sides": ("sides.csv", "", 84),
}
"""Graph, demands and optimum of each pair of files."""


@pytest.mark.parametrize("name", SOLVED)
def test_a_kept_solution_is_read_and_its_certificate_proves_it(name):
    file, _, optimum = SOLVED[name]
    graph = SynergyGraph.read(KEPT / file)
    solution = Solution.read(KEPT / f"{name}.json", graph)
    certificate = Certificate.read(KEPT / f"{name}.proof.json")
    links = {"must_link": solution.must_link, "cannot_link": solution.cannot_link}
    checked = verify(graph, solution.structure, certificate, **links, **solution.sizes)
    assert checked.optimal
    assert checked.value == solution.value == pytest.approx(optimum, abs=1e-9)


@pytest.mark.parametrize("name", SOLVED)
def test_the_command_line_verifies_kept_files(name):
    files = KEPT / SOLVED[name][0], KEPT / f"{name}.json"
    shown = coalitions("verify", *files, "--certificate", KEPT / f"{name}.proof.json", "--json")
    assert shown.returncode == 0
    assert json.loads(shown.stdout)["optimal"] is True


@pytest.mark.parametrize("name", SOLVED)
def test_a_kept_certificate_would_be_written_as_it_was(name):
    path = KEPT / f"{name}.proof.json"
    assert Certificate.read(path).to_json() == json.loads(path.read_text())


def test_every_version_of_certificates_and_every_demand_is_kept():
    proofs = [json.loads((KEPT / f"{name}.proof.json").read_text()) for name in SOLVED]
    assert {proof["version"] for proof in proofs} == {1, 2, 3, 4}
    assert {demand for proof in proofs for demand in proof.get("demands", ())} == {
        "n_groups", "min_size", "max_size", "weights", "max_weight", "at_least_one_of"
    }  # fmt: skip
    assert any(proof["must_link"] and proof["cannot_link"] for proof in proofs)


def test_a_kept_run_is_read():
    result = resume(KEPT / "run")
    assert result.mean_test_accuracy == pytest.approx(1 / 3)
    assert result.client_names == ("client 0", "client 1", "client 2")
    assert len(result.history) == result.config.rounds == 2
    pixels = torch.zeros(2, 1, 8, 8)
    scores = [load_model(KEPT / "run", client)(pixels) for client in range(3)]
    assert all(score.shape == (2, 10) for score in scores)
    assert not torch.equal(scores[0], scores[1])


def test_a_kept_checkpoint_is_resumed_to_the_same_end(tmp_path):
    shutil.copytree(KEPT / "begun", tmp_path / "begun")
    resumed, kept = resume(tmp_path / "begun"), resume(KEPT / "run")
    assert len(resumed.history) == 2
    assert resumed.communication == kept.communication
    # Another processor may round the last bits of a model differently.
    for measure in ("train_loss", "mean_test_loss"):
        assert resumed.metrics[measure] == pytest.approx(kept.metrics[measure], rel=1e-3)
    for client in range(3):
        ends = (load_model(folder, client) for folder in (tmp_path / "begun", KEPT / "run"))
        for one, other in zip(*(end.parameters() for end in ends), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


def test_a_kept_run_is_reported(tmp_path):
    shutil.copytree(KEPT / "run", tmp_path / "run")
    assert (
        coalitions("report", tmp_path / "run", "--output", tmp_path / "page.html").returncode == 0
    )
    assert "pfedsv" in (tmp_path / "page.html").read_text(encoding="utf-8")
