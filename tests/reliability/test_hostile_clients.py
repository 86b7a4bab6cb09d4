"""Whatever one client sends, the run ends with a result, and the client is named."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from coalitions import InvalidInputError, NoSolutionError
from learners.algorithm import ALGORITHMS, build_algorithm
from learners.runs.run import resume, run
from learners.server.client_failures import STRIKES
from learners.server.engine import Replies
from learners.settings.config import RunConfig
from learners.task import LARGEST, TASKS, Form
from tests.learners import tiny, toy
from tests.reliability.hostile import BEHAVIOURS, CLAIMS, absent, flipped, hostile

NAMES = ALGORITHMS.names()
ATTACKER = 1


def played(algorithm, rounds=2, **settings):
    """Return what every round of a tiny federation left behind, without the clients' memories."""
    settings = {"clients": 4, "module": tiny.two_layers(), "rounds": rounds} | settings
    if algorithm == "pfedhn":
        settings["options"] = {"width": 3}
    return list(tiny.federation(algorithm, **settings).rounds())


def seen_by_the_honest(rounds):
    """Return all that the attacker has no part in: the server's state, the others' accuracies."""
    outcome = []
    for round in rounds:
        scores = round.metrics["per_client_test_accuracy"]
        outcome.append([score for c, score in enumerate(scores) if c != ATTACKER])
        for value in round.state.values():
            outcome.append(value.tolist() if isinstance(value, torch.Tensor) else value)
    return json.dumps(outcome, default=lambda each: np.asarray(each).tolist())


@pytest.fixture(scope="module")
def without_attacker():
    """What comes out where the attacker is not there at all, by method."""
    found = {}

    def outcome(name):
        if name not in found:
            with pytest.MonkeyPatch.context() as patch:
                absent(patch, (ATTACKER,))
                found[name] = seen_by_the_honest(played(name))
        return found[name]

    return outcome


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_reply_to_the_question_is_left_out_and_named(
    name, without_attacker, monkeypatch
):
    for behaviour, tamper in BEHAVIOURS.items():
        hostile(monkeypatch, {ATTACKER: tamper})
        rounds = played(name)
        for round in rounds:
            assert list(round.metrics["refused"]) == [str(ATTACKER)], behaviour
        assert seen_by_the_honest(rounds) == without_attacker(name), behaviour


@pytest.mark.parametrize("name", NAMES)
def test_claims_of_images_that_were_not_registered_are_left_out_and_named(name, monkeypatch):
    for claim, n in CLAIMS.items():
        hostile(monkeypatch, {ATTACKER: lambda reply, n=n: {**reply, "samples": n}})
        for round in played(name):
            assert list(round.metrics["refused"]) == [str(ATTACKER)], claim


@pytest.mark.parametrize("name", [n for n in NAMES if n != "local"])
def test_models_far_larger_than_the_others_are_left_out_and_named(name, monkeypatch):
    hostile(monkeypatch, {ATTACKER: flipped(100.0)})
    by_gradient = [{"averaging": "gradient"}] if name == "ifca" else []
    for options in ({}, *by_gradient):
        for round in played(name, options=options):
            assert list(round.metrics["refused"]) == [str(ATTACKER)]
            assert " times " in round.metrics["refused"][str(ATTACKER)]


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("name", ["fedavg", "domain", "pfedsv", "fedproto"])
def test_also_who_registers_with_rubbish_does_not_end_the_run(name, behaviour, monkeypatch):
    hostile(monkeypatch, {ATTACKER: BEHAVIOURS[behaviour]}, watching=True)
    options = {"told": True} if name == "pfedsv" else {}
    rounds = played(name, options=options)
    for round in rounds:
        assert round.metrics["per_client_test_accuracy"][ATTACKER] is None
        assert ATTACKER not in round.metrics["participants"]
        assert "did not register" in round.metrics["quarantined"][str(ATTACKER)]
        assert list(round.metrics["quarantined"]) == [str(ATTACKER)]
        assert 0 < round.metrics["mean_test_accuracy"] <= 1


def test_three_rounds_in_a_row_and_a_client_is_not_asked_any_more(monkeypatch):
    sent = []

    def tamper(reply):
        sent.append(1)
        return {} if len(sent) != 2 else reply  # its second reply is sound

    hostile(monkeypatch, {ATTACKER: tamper})
    rounds = played("fedavg", rounds=8)
    refused = [str(ATTACKER) in round.metrics["refused"] for round in rounds]
    assert refused == [True, False, True, True, True, False, False, False]
    assert [round.metrics["strikes"].get("1", 0) for round in rounds] == [1, 0, 1, 2, 3, 3, 3, 3]
    assert len(sent) == 2 + STRIKES
    for round in rounds[:5]:
        assert ATTACKER in round.metrics["participants"]
    for round in rounds[5:]:
        assert round.metrics["participants"] == [0, 2, 3]
        assert round.metrics["quarantined"] == {"1": "model is missing"}
        assert round.metrics["per_client_test_accuracy"][ATTACKER] is not None  # still measured


def test_a_client_that_is_alone_in_a_round_cannot_end_the_run(monkeypatch):
    hostile(monkeypatch, {ATTACKER: lambda reply: {}})
    rounds = played("fedavg", rounds=12, clients=4, participation=0.25)
    alone = [round for round in rounds if round.metrics["refused"]]
    assert len(alone) == STRIKES  # drawn so often, at least
    for round in alone:
        before = rounds[round.number - 2].state["model"] if round.number > 1 else None
        assert before is None or torch.equal(round.state["model"], before)
    assert not torch.equal(rounds[-1].state["model"], rounds[0].state["model"])


def test_where_nobody_is_left_the_run_ends_with_a_sentence(monkeypatch):
    hostile(monkeypatch, dict.fromkeys(range(4), lambda reply: {}))
    with pytest.raises(NoSolutionError, match=r"no client gave a usable answer to 'train'"):
        played("fedavg", rounds=12, participation=0.5)


def test_an_engine_that_forgets_a_client_has_it_named():
    federation = tiny.federation("fedavg", clients=3)
    ask = federation._engine.ask

    def forgetful(task, messages, round):
        replies = ask(task, messages, round).replies
        return Replies({c: reply for c, reply in replies.items() if task.watches or c != 2})

    federation._engine.ask = forgetful
    *_, last = federation.rounds()
    assert last.metrics["refused"] == {} != last.metrics["quarantined"]
    assert last.metrics["quarantined"] == {"2": "it did not answer"}


def test_any_number_of_workers_gives_the_same_bits_with_an_attacker(monkeypatch):
    def outcome(workers, tamper):
        hostile(monkeypatch, {ATTACKER: tamper})
        config = RunConfig(clients=5, rounds=3, local_epochs=1, batch_size=6, workers=workers)
        federation = toy.federation(config)
        try:
            rounds = list(federation.rounds())
        finally:
            federation._engine.close()
        return [
            ({**round.metrics, "seconds": 0}, round.state["model"].tolist()) for round in rounds
        ]

    for behaviour in ("text", "3e38"):
        one = outcome(1, BEHAVIOURS[behaviour])
        assert one == outcome(2, BEHAVIOURS[behaviour]) == outcome(3, BEHAVIOURS[behaviour])
        assert one[-1][0]["quarantined"].keys() == {str(ATTACKER)}


def test_resuming_remembers_who_is_in_quarantine(monkeypatch, tmp_path):
    hostile(monkeypatch, {ATTACKER: BEHAVIOURS["text"]})
    config = {
        "clients": 4, "rounds": 6, "local_epochs": 1, "train_size": 20, "workers": 1,
    }  # fmt: skip
    whole = run(config, tmp_path / "whole")

    class Stop(Exception):  # noqa: N818
        pass

    for last in (2, 4):

        def stop(round, last=last):
            if round.number == last:
                raise Stop

        with pytest.raises(Stop):
            run(config, tmp_path / str(last), on_round=stop)
        resumed = resume(tmp_path / str(last))
        assert resumed.to_dict()["left_out"] == whole.to_dict()["left_out"]
        for one, other in zip(resumed.history, whole.history, strict=True):
            assert {**one, "seconds": 0} == {**other, "seconds": 0}
    assert json.loads((tmp_path / "whole" / "result.json").read_text())["left_out"] == [
        {
            "client": ATTACKER,
            "rounds": 3,
            "reason": "model is text, not a tensor",
            "quarantined": 4,
        }
    ]


SMALL_OPTIONS = {"pfedhn": {"width": 5}, "ifca": {"averaging": "gradient"}}


@pytest.mark.parametrize("name", NAMES)
def test_honest_clients_are_never_left_out_however_different_their_data(name):
    config = {
        "algorithm": name, "clients": 5, "rounds": 3, "local_epochs": 1, "train_size": 15,
        "partition": "dirichlet:0.05", "workers": 1, "options": SMALL_OPTIONS.get(name, {}),
    }  # fmt: skip
    for line in run(config).history:
        assert line["refused"] == {}


@pytest.mark.slow
@pytest.mark.parametrize("partition", ["pathological:1", "dirichlet:0.05", "quantity:0.3"])
@pytest.mark.parametrize("name", NAMES)
def test_honest_clients_are_never_left_out_with_larger_steps(name, partition):
    config = {"algorithm": name, "clients": 8, "rounds": 4, "workers": 1, "train_size": 24}
    for more in ({}, {"options": SMALL_OPTIONS.get(name, {}), "lr": 0.2, "local_epochs": 5}):
        for line in run(config | {"partition": partition} | more).history:
            assert line["refused"] == {}


def test_a_closer_limit_leaves_out_more():
    loose = run({"clients": 4, "rounds": 1, "train_size": 20, "workers": 1})
    close = run({"clients": 4, "rounds": 1, "train_size": 20, "workers": 1, "norm_limit": 1.0})
    assert loose.history[0]["refused"] == {}
    assert 1 <= len(close.history[0]["refused"]) <= 2
    with pytest.raises(InvalidInputError, match="norm_limit must be 1 or more"):
        RunConfig(norm_limit=0.9)


def test_every_task_of_ours_says_what_its_replies_look_like():
    for name in TASKS:
        task = TASKS[name]
        if task.run.__module__.startswith("learners."):
            for entry in task.reply:
                assert type(task.form(entry)) is not Form, (name, entry)


def test_a_name_of_the_attackers_own_making_cannot_speak_to_the_terminal(monkeypatch):
    hostile(monkeypatch, {ATTACKER: lambda reply: {**reply, "\x1b]0;gone\x07" + "x" * 999: 1}})
    (round,) = played("fedavg", rounds=1)
    reason = round.metrics["refused"][str(ATTACKER)]
    assert reason.isprintable()
    assert len(reason) < 100


def test_numbers_that_would_not_fit_when_added_up_are_left_out(monkeypatch):
    for huge in (LARGEST * 10, 10**5000):
        hostile(monkeypatch, {ATTACKER: lambda reply, huge=huge: {**reply, "train_loss": huge}})
        for round in played("fedavg"):
            assert "train_loss is" in round.metrics["refused"][str(ATTACKER)]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", NAMES)
def test_the_whole_matrix_on_digits(name, monkeypatch):
    """Every method × every behaviour, in runs of ten clients, measured replies included."""
    config = {"algorithm": name, "rounds": 4, "local_epochs": 1, "workers": 1, "train_size": 40}
    config |= {"options": {"width": 5} if name == "pfedhn" else {}, "partition": "dirichlet:0.5"}
    claims = {
        claim: (lambda reply, n=n: {**reply, **({"samples": n} if "samples" in reply else {})})
        for claim, n in CLAIMS.items()
    }
    larger = {} if name == "local" else {"turned round, a hundredfold": flipped(100.0)}
    for watching, tampers in ((False, BEHAVIOURS | claims | larger), (True, BEHAVIOURS)):
        for behaviour, tamper in tampers.items():
            hostile(monkeypatch, {3: tamper}, watching=watching)
            result = run(config)
            (entry,) = result.to_dict()["left_out"]
            assert entry["client"] == 3, behaviour
            assert entry["quarantined"] in ({1, 4} if watching else {4}), behaviour
            assert len(result.history) == 4


AVERAGING = [name for name in NAMES if build_algorithm(name, {}).traits.averages]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", AVERAGING)
def test_a_robust_rule_keeps_the_honest_within_two_points(name, monkeypatch):
    """One of ten turns its models round, which no gate can see; the mean of five seeds."""
    lost = []
    for seed in range(5):
        config = {
            "algorithm": name, "aggregation": "multi-krum", "partition": "iid", "seed": seed,
            "rounds": 8, "evaluate_every": 8, "train_size": 60, "workers": 1,
        }  # fmt: skip
        absent(monkeypatch, (ATTACKER,))
        without = honest_mean(run(config))
        hostile(monkeypatch, {ATTACKER: flipped(1.0)})
        lost.append(without - honest_mean(run(config)))
    assert np.mean(lost) <= 0.02


def honest_mean(result):
    scores = result.per_client_test_accuracy
    return float(np.mean([score for c, score in enumerate(scores) if c != ATTACKER]))
