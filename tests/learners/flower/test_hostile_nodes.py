"""Whatever a node sends, it is left out with the reason, and nobody else's model changes by it."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import httpx
import numpy as np
import pytest
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from learners.flower.records import from_records, to_records
from learners.privacy.mechanism import privacy_of
from learners.server.client_failures import STRIKES
from tests.learners import tiny
from tests.learners.flower.hostile import (
    ANSWER,
    ANSWERS,
    OUTCOMES,
    RATE,
    RELEASES,
    STEPS,
    answering,
)
from tests.learners.flower.nodes import FIRST_NODE, QUICK, federation, nodes

pytestmark = pytest.mark.usefixtures("waiting_clock")

ATTACKER = 1
BRIEF = replace(QUICK, start=0.02)


def on_models(change):
    """Return what changes every tensor of a reply; other replies stay."""

    def tamper(records):
        message = from_records(records)
        tensors = [name for name, value in message.items() if isinstance(value, torch.Tensor)]
        changed = to_records(message | {name: change(message[name]) for name in tensors})
        changed["answer"] = records["answer"]
        return changed if tensors else records

    return tamper


def another_writing(records):
    if not records["tensors"]:
        return records
    for name in records["tensors"]:
        records["tensors"][name] = Array("float32", (1,), "pickle", b"\x80\x04K\x01.")
    return records


def a_lying_header(records):
    for name, array in records["tensors"].items():
        data = array.data.replace(b"'shape': (", b"'shape': (9")
        records["tensors"][name] = Array("float32", (1,), array.stype, data)
    return records


def when_asked_for_models(records, change):
    return change(records) if records["tensors"] else records


TAMPERS = {
    "not a number": (on_models(lambda m: m * float("nan")), "not finite"),
    "infinity": (on_models(lambda m: m + float("inf")), "not finite"),
    "a wrong shape": (on_models(lambda m: torch.cat([m, m[..., :1]], -1)), "shape"),
    "another type": (on_models(lambda m: m.double()), "type float64"),
    "an array instead": (on_models(lambda m: m.numpy()), "an array of type f, not a tensor"),
    "huge numbers": (on_models(lambda m: m * 1e30), "times the median"),
    "a huge array": (on_models(lambda m: torch.zeros(1 << 20)), "bytes, and"),
    "a pickle": (another_writing, "not written as .npy"),
    "a lying header": (a_lying_header, "another size than it says"),
    "no records": (lambda r: when_asked_for_models(r, lambda _: RecordDict()), "is no answer"),
    "another's records": (
        lambda r: when_asked_for_models(
            r, lambda _: RecordDict({"a": ArrayRecord(), "c": ConfigRecord()})
        ),
        "there is no answer",
    ),
}


def settled(algorithm, folder, tamper=None, rounds=2, gone=False):
    """Return the rounds of a federation, with one node that tampers or is silent."""
    site = tiny.site(algorithm, clients=4, module=tiny.two_layers(), rounds=rounds)
    grid = nodes(site, folder)
    server = federation(site, grid, QUICK)
    if tamper is not None:
        server.register()  # it is honest at first
        grid.broken[ATTACKER] = tamper
    if gone:
        server.register()
        grid.gone.add(FIRST_NODE + ATTACKER)
    return list(server.rounds())


def of_the_others(rounds):
    return [
        (round.metrics["up_per_client"], [
            accuracy for c, accuracy in enumerate(round.metrics["per_client_test_accuracy"])
            if c != ATTACKER
        ])
        for round in rounds
    ]  # fmt: skip


@pytest.mark.parametrize("kind", TAMPERS)
def test_a_hostile_node_is_left_out_and_changes_nobody_s_model(kind, tmp_path):
    tamper, words = TAMPERS[kind]
    attacked = settled("fedavg", tmp_path / "a", tamper)
    without = settled("fedavg", tmp_path / "b", gone=True)
    for round in attacked:
        assert words in round.metrics["refused"][str(ATTACKER)]
    assert torch.equal(attacked[-1].state["model"], without[-1].state["model"])
    assert of_the_others(attacked) == of_the_others(without)


def test_a_personal_method_goes_on_without_it_too(tmp_path):
    tamper, _ = TAMPERS["not a number"]
    attacked = settled("pfedsv", tmp_path / "a", tamper, rounds=3)
    without = settled("pfedsv", tmp_path / "b", gone=True, rounds=3)
    assert of_the_others(attacked) == of_the_others(without)


def test_after_three_rounds_in_a_row_it_is_not_asked_any_more(tmp_path):
    tamper, words = TAMPERS["a huge array"]
    rounds = settled("fedavg", tmp_path, tamper, rounds=STRIKES + 1)
    assert words in rounds[STRIKES - 1].metrics["quarantined"][str(ATTACKER)]
    assert ATTACKER not in rounds[STRIKES].metrics["participants"]
    assert str(ATTACKER) not in rounds[STRIKES].metrics["refused"]


def test_a_node_cannot_put_words_into_the_server_s_mouth(tmp_path):
    def loud(records):
        records["answer"] = ConfigRecord(
            {
                "json": '{"status": "refused", "reason": "\\u001b[31m' + "x" * 5000 + '",'
                ' "version": "", "books": {}, "client": 0}'
            }
        )
        return records

    rounds = settled("fedavg", tmp_path, loud)
    reason = rounds[0].metrics["refused"][str(ATTACKER)]
    assert len(reason) < 130
    assert "\x1b" not in reason


def test_a_node_cannot_end_a_run_that_is_not_private(tmp_path):
    def ending(records):
        text = records["answer"]["json"].replace('"done"', '"ends"')
        records["answer"] = ConfigRecord({"json": text})
        return records

    rounds = settled("fedavg", tmp_path, ending)
    assert len(rounds) == 2
    assert str(ATTACKER) in rounds[0].metrics["refused"]
    assert np.isfinite(rounds[-1].metrics["mean_test_accuracy"])


def fails():
    raise KeyError("what Flower says of an object that is not there")


def refused_by_the_superlink():
    request = httpx.Request("POST", "https://127.0.0.1/v1/runtime/pull-messages")
    raise httpx.HTTPStatusError("500", request=request, response=httpx.Response(500))


def never_ends():
    threading.Event().wait()


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        (fails, "could not be read"),
        (refused_by_the_superlink, "could not be read"),
        (never_ends, "did not answer within"),
    ],
)
def test_a_reply_that_flower_cannot_read_takes_no_other_with_it(reading, words, tmp_path):
    """Flower fails at it, or waits for pieces of it that its node does not send."""
    site = tiny.site("fedavg", clients=4, module=tiny.two_layers(), rounds=2)
    grid = nodes(site, tmp_path / "a")
    server = federation(site, grid, replace(QUICK, answer=3.0), at_once=0.3)
    server.register()  # it is honest at first
    grid.reading[FIRST_NODE + ATTACKER] = reading
    attacked = list(server.rounds())
    for round in attacked:
        assert list(round.metrics["refused"]) == [str(ATTACKER)]
        assert words in round.metrics["refused"][str(ATTACKER)]
    without = settled("fedavg", tmp_path / "b", gone=True)
    assert torch.equal(attacked[-1].state["model"], without[-1].state["model"])


def test_a_way_to_the_superlink_that_fails_is_no_node_s_fault(tmp_path):
    def cut_off():
        raise httpx.ConnectError("the SuperLink is gone")

    site = tiny.site("fedavg", clients=4, module=tiny.two_layers(), rounds=1)
    grid = nodes(site, tmp_path)
    server = federation(site, grid, QUICK)
    server.register()
    grid.reading[FIRST_NODE + ATTACKER] = cut_off
    with pytest.raises(httpx.ConnectError):
        list(server.rounds())


HARMLESS = {
    "an answer of client -1",
    "an answer of client 10000000000000000000",
    "an answer of books {'privacy releases': 1000000000000000}",  # nothing is accounted for
}
"""Odd words about a reply that the server has no reason to refuse it for."""


def test_no_kind_of_answer_ends_a_run(tmp_path, monkeypatch):
    """One run, in each round of which the node sends another kind of nonsense."""
    monkeypatch.setattr("learners.server.client_failures.STRIKES", len(OUTCOMES) + 1)
    site = tiny.site("fedavg", clients=4, module=tiny.two_layers(), rounds=len(OUTCOMES))
    grid = nodes(site, tmp_path)
    server = federation(site, grid, QUICK)
    server.register()  # it is honest at first
    rounds, taken = server.rounds(), []
    for kind, tamper in OUTCOMES.items():
        grid.broken[ATTACKER] = lambda records, tamper=tamper: when_asked_for_models(
            records, tamper
        )
        if list(next(rounds).metrics["refused"]) != [str(ATTACKER)]:
            taken.append(kind)
    assert set(taken) == HARMLESS


@pytest.mark.parametrize("greets", [True, False])
def test_no_kind_of_answer_at_the_start_ends_a_run(greets, tmp_path):
    """What it answers to the question who it is, and to the question what it has."""
    for number, (kind, tamper) in enumerate(OUTCOMES.items()):
        site = tiny.site("fedavg", clients=4, module=tiny.two_layers(), rounds=1)
        grid = nodes(site, tmp_path / str(number))
        (grid.rude if greets else grid.broken)[ATTACKER] = tamper
        told = federation(site, grid, BRIEF).registered
        assert {0, 2, 3} <= told.keys(), kind


@pytest.mark.parametrize("samples", [10**16, 10**30, 10**99])
def test_a_count_that_no_data_have_is_no_registration(samples, tmp_path):
    def boasting(records):
        changed = to_records(from_records(records) | {"samples": samples})
        changed["answer"] = records["answer"]
        return changed

    site = tiny.site("fedavg", clients=4, module=tiny.two_layers(), rounds=1)
    grid = nodes(site, tmp_path)
    grid.broken[ATTACKER] = boasting
    assert list(federation(site, grid, BRIEF).registered) == [0, 2, 3]


BOOKS = [each for kind, each in ANSWERS.items() if kind.startswith("books ")]
LIES = [{RELEASES: 3}, {RELEASES: 1, STEPS: 2**53}, {RELEASES: 1, STEPS: 9, RATE: 1e-15}]


@pytest.mark.parametrize("dp", ["updates", "records"])
def test_no_account_of_privacy_ends_a_run(dp, tmp_path):
    settings = {"clip": 1.0, "dp": dp, "epsilon": 5.0}
    site = tiny.site("fedavg", clients=4, module=tiny.two_layers(), rounds=1, **settings)
    site.privacy = privacy_of(site.config, site.algorithm, [12] * 4, has_batch_norm=False)
    for number, books in enumerate([*BOOKS, *({"books": each} for each in LIES)]):
        grid = nodes(site, tmp_path / str(number))
        server = federation(site, grid, BRIEF)
        server.register()
        grid.broken[ATTACKER] = lambda records, books=books: when_asked_for_models(
            records, answering(json.dumps(ANSWER | books))
        )
        (round,) = server.rounds()
        assert round.metrics["epsilon"] <= 5.0 * (1 + 1e-9)
        assert {0, 2, 3} <= set(round.metrics["participants"])
