"""Who takes part in which round, and whose replies arrive."""

import torch

from learners.settings.config import RunConfig
from learners.settings.participation import missing_in, present_in
from tests.learners import toy


def config(**settings):
    return RunConfig.of({"clients": 12, "rounds": 8, "participation": 0.5} | settings)


def test_fixed_is_always_the_same_half():
    fixed = config(attendance="fixed")
    rounds = {present_in(fixed, t) for t in range(1, 9)}
    assert rounds == {present_in(config(), 1)}
    assert len({present_in(config(), t) for t in range(1, 9)}) > 1


def test_a_day_comes_round_and_everybody_is_there_for_its_share():
    diurnal = config(attendance="diurnal:4")
    there = [present_in(diurnal, t) for t in range(1, 9)]
    assert there[:4] == there[4:]
    assert len(set(there[:4])) > 1
    for client in range(12):
        days = [client in each for each in there[:4]]
        assert sum(days) == 2
        assert days in ([True, True, False, False], [False, True, True, False],
                        [False, False, True, True], [True, False, False, True])  # fmt: skip


def test_replies_are_lost_with_the_probability_and_by_the_seed():
    lossy = config(clients=1000, attendance="dropout:0.2")
    lost = missing_in(lossy, 3)
    assert 150 < len(lost) < 250
    assert lost == missing_in(lossy, 3) != missing_in(lossy, 4)
    assert missing_in(config(), 3) == frozenset()


def test_slow_clients_are_late_often_and_a_later_deadline_spares_more():
    late = [missing_in(config(clients=400, attendance="deadline:1"), t) for t in range(1, 9)]
    assert 150 < len(late[0]) < 250  # half of the clients need less than a unit of time
    often = [sum(c in each for each in late) for c in range(400)]
    assert often.count(8) > 60  # by chance alone: one or two
    assert often.count(0) > 60
    generous = missing_in(config(clients=400, attendance="deadline:2"), 1)
    assert generous < late[0]


def test_a_lost_reply_is_not_averaged_and_the_client_is_not_blamed():
    settings = {"clients": 3, "rounds": 4, "local_epochs": 1, "lr": 0.1, "workers": 1}
    lossy = RunConfig.of(settings | {"attendance": "dropout:0.4", "seed": 1})
    federation = toy.federation(lossy)
    rounds = list(federation.rounds())
    missing = [round.metrics["missing"] for round in rounds]
    assert missing == [sorted(missing_in(lossy, t)) for t in range(1, 5)]
    assert any(missing)
    for round in rounds:
        assert round.metrics["participants"] == [0, 1, 2]
        assert round.metrics["refused"] == round.metrics["strikes"] == {}
        sent = [n > 0 for n in round.metrics["up_per_client"]]
        assert sent == [c not in round.metrics["missing"] for c in range(3)]
        assert all(n > 0 for n in round.metrics["down_per_client"])
    everyone = list(toy.federation(RunConfig.of(settings | {"seed": 1})).rounds())
    same = [
        torch.equal(a.state["model"], b.state["model"])
        for a, b in zip(rounds, everyone, strict=True)
    ]
    first = next(t for t, gone in enumerate(missing) if gone)
    assert same == [True] * first + [False] * (4 - first)


def test_a_round_in_which_no_reply_arrives_changes_nothing():
    settings = {"clients": 3, "rounds": 3, "local_epochs": 1, "workers": 1}
    never = RunConfig.of(settings | {"attendance": "deadline:1e-9"})
    federation = toy.federation(never)
    for round in federation.rounds():
        assert torch.equal(round.state["model"], federation.initial_model)
        assert round.metrics["missing"] == [0, 1, 2]
