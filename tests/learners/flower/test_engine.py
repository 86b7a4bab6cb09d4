"""A question to nodes: the same numbers as `local`, once, in time, or a reason."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from flwr.client.mod import secaggplus_mod

from coalitions.errors import CoalitionError, DamagedFileError
from learners.algorithm import ALGORITHMS
from learners.client.tasks import train
from learners.flower.grid_engine import Identity, Patience
from learners.flower.node import answering
from learners.privacy.mechanism import privacy_of
from learners.server.federation import Federation
from learners.server.local_engine import local_engine
from tests.learners import tiny
from tests.learners.flower.nodes import FIRST_NODE, federation, nodes, pair

pytestmark = pytest.mark.usefixtures("waiting_clock")


def lines(rounds):
    return [
        {key: value for key, value in round.metrics.items() if not key.endswith("seconds")}
        for round in rounds
    ]


def same(one, other):
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    return one == other


@pytest.mark.parametrize("name", ALGORITHMS.names())
def test_the_same_numbers_and_the_same_ledger_as_local(name, tmp_path):
    options = {"options": {"width": 3}} if name == "pfedhn" else {}
    local, flower, _ = pair(name, tmp_path, participation=0.75, **options)
    ours, theirs = list(local.rounds()), list(flower.rounds())
    assert lines(ours) == lines(theirs)
    assert np.array_equal(local.ledger.counts, flower.ledger.counts)
    for one, other in zip(ours, theirs, strict=True):
        assert one.state.keys() == other.state.keys()
        assert all(same(one.state[key], other.state[key]) for key in one.state)
        assert one.records.keys() == other.records.keys()
        records = [key for key in one.records if not key.endswith("seconds")]
        assert all(same(one.records[key], other.records[key]) for key in records)


def test_nodes_keep_their_best_rounds(tmp_path):
    local, flower, _ = pair("fedavg", tmp_path, keep="best", lr=1.0)
    ours = lines(local.rounds())
    assert ours == lines(flower.rounds())
    assert all(ours[-1]["per_client_kept_round"])


def test_a_private_run_counts_the_same_epsilon(tmp_path):
    here = tiny.site("fedavg", rounds=2, noise=1.0, clip=1.0)
    here.privacy = privacy_of(here.config, here.algorithm, [12] * 3, has_batch_norm=False)
    local = Federation(
        here.config,
        here.algorithm,
        local_engine(here, 1),
        here.workspace.layout,
        here.initial,
        here.privacy,
    )
    flower = federation(here, nodes(here, tmp_path))
    ours = lines(local.rounds())
    assert ours[-1]["epsilon"] > 0
    assert ours == lines(flower.rounds())


def test_an_answer_that_was_lost_on_the_way_is_asked_for_again_and_has_one_effect(tmp_path):
    local, flower, grid = pair("pfedsv", tmp_path)
    grid.errors[FIRST_NODE + 1] = [4] * 2
    assert lines(local.rounds()) == lines(flower.rounds())


def test_a_node_that_comes_back_as_another_one_goes_on_with_its_memory(tmp_path):
    local, flower, grid = pair("pfedsv", tmp_path, rounds=3)
    ours = lines(local.rounds())
    theirs = []
    for round in flower.rounds():
        theirs.append(round)
        if round.number == 1:
            grid.restart(2)
    assert lines(theirs) == ours


def test_a_node_that_lost_its_memory_is_named_and_begins_again(tmp_path):
    _, flower, grid = pair("pfedsv", tmp_path, rounds=3)
    rounds = []
    for round in flower.rounds():
        rounds.append(round.metrics)
        if round.number == 1:
            grid.restart(2)
            for file in (tmp_path / "2").rglob("*.safetensors"):
                file.unlink()
    assert rounds[1]["refused"]["2"] == "it lost its memory of the rounds so far"
    assert rounds[2]["refused"] == {}


def test_a_node_that_is_gone_is_left_out_and_the_others_go_on(tmp_path):
    _, flower, grid = pair("fedavg", tmp_path, rounds=2)
    rounds = []
    for round in flower.rounds():
        rounds.append(round.metrics)
        grid.gone.add(FIRST_NODE)
    assert rounds[0]["refused"] == {}
    assert rounds[1]["refused"] == {"0": "its node is not there"}
    assert rounds[1]["up_per_client"][0] == 0
    assert all(rounds[1]["up_per_client"][1:])


def test_a_node_that_comes_back_takes_part_again(tmp_path):
    _, flower, grid = pair("fedavg", tmp_path, rounds=3)
    refused = []
    for round in flower.rounds():
        refused.append(round.metrics["refused"])
        grid.gone ^= {FIRST_NODE}
    assert refused == [{}, {"0": "its node is not there"}, {}]


def test_who_does_not_answer_in_time_is_left_out(tmp_path):
    _, flower, grid = pair("fedavg", tmp_path, rounds=2)
    rounds = []
    for round in flower.rounds():
        rounds.append(round.metrics)
        grid.silent.add(FIRST_NODE + 3)
    assert rounds[1]["refused"] == {"3": "it did not answer within 0.4 s"}


def test_an_answer_that_came_too_late_leaves_no_trace_in_a_client_s_memory(tmp_path):
    _, flower, grid = pair("pfedsv", tmp_path, rounds=2)
    memory = dict(flower.memories())
    next(flower.rounds())
    assert flower.memories() != memory
    before = flower.memories()[1]["version"]
    grid.errors[FIRST_NODE + 1] = [4] * 3  # it computes, and all three answers are lost
    flower.round = 2
    flower.ask(train, {c: {} for c in range(4)})
    assert flower.memories()[1]["version"] == before


def test_without_any_node_the_run_ends_with_a_sentence(tmp_path):
    here = tiny.site("fedavg")
    grid = nodes(here, tmp_path)
    grid.gone = set(grid.contexts)
    with pytest.raises(CoalitionError, match=r"no node of the federation was there within 0.01 s"):
        federation(here, grid, Patience(start=0.01, look=0.001))


def test_a_node_without_a_number_is_told_what_it_lacks(tmp_path):
    here = tiny.site("fedavg", clients=1)
    grid = nodes(here, tmp_path)
    grid.app = answering(lambda *_: here, lambda _: tmp_path)
    grid.contexts[FIRST_NODE].node_config.clear()
    with pytest.raises(CoalitionError, match="a node is told the number of its client"):
        federation(here, grid, Patience(start=0.1, look=0.001))


def test_a_task_that_fails_is_named_with_flower_s_own_words(tmp_path):
    _, flower, grid = pair("fedavg", tmp_path, rounds=1)
    flower.register()  # before it fails
    grid.errors[FIRST_NODE] = [2]
    line = next(flower.rounds()).metrics
    assert line["refused"] == {"0": "its app failed: as the test wants it"}


@pytest.mark.parametrize("text", ["{}", "[]", '{"run": "../..", "life": 1}', '{"run": 1}'])
def test_a_damaged_identity_is_named(text, tmp_path):
    (tmp_path / "flower.json").write_text(text)
    with pytest.raises(DamagedFileError, match="it does not tell the run's id"):
        Identity.of(tmp_path)


def test_a_run_is_known_again_and_lives_once_more(tmp_path):
    first, second = Identity.of(tmp_path), Identity.of(tmp_path)
    assert (first.run, first.life + 1) == (second.run, second.life)


def test_two_nodes_cannot_be_the_same_client(tmp_path):
    _, flower, grid = pair("fedavg", tmp_path, clients=2)
    homes = dict(flower._engine._homes)
    grid.contexts[5000] = type(grid.contexts[FIRST_NODE])(
        7, 5000, {"partition-id": 1}, grid.contexts[FIRST_NODE].state, {}
    )
    list(flower.rounds())
    assert flower._engine._homes == homes


def test_nodes_keep_what_checkpoints_refer_to_and_no_more(tmp_path):
    _, flower, _ = pair("pfedsv", tmp_path, rounds=6)
    seen = []
    for _ in flower.rounds():
        seen.append(flower.memories()[0]["version"])
    there = {path.stem for path in (tmp_path / "0").rglob("*.safetensors")}
    assert set(seen[-2:]) <= there
    assert len(there) <= 6


def test_flower_s_secure_aggregation_leaves_our_messages_as_they_are(tmp_path):
    """Its mod handles messages of type train only: docs/flower.md says that it is not available."""
    here = tiny.site("fedavg", rounds=1)
    plain, modded = nodes(here, tmp_path / "a"), nodes(here, tmp_path / "b")
    app = modded.app

    def through_the_mod(message, context):
        return secaggplus_mod(message, context, app)

    modded.app = through_the_mod
    one, other = (list(federation(here, grid).rounds())[-1] for grid in (plain, modded))
    assert torch.equal(one.state["model"], other.state["model"])
