import os
import signal

import numpy as np
import pytest
import torch

from coalitions.errors import CoalitionError, InvalidInputError, NoSolutionError
from learners.algorithm import Algorithm
from learners.client.client import Client
from learners.client.tasks import describe, fine_tune_pairs, gradient, train
from learners.client.training import fit, gradient_at, score_model
from learners.rows.parameters import Layout
from learners.server.local_engine import local_engine
from learners.settings.config import RunConfig
from learners.task import TASKS, Reveals, task
from tests.learners import toy
from tests.learners.client.test_training import plain_training


def small(**more) -> RunConfig:
    usual = {"clients": 3, "rounds": 3, "local_epochs": 1, "batch_size": 6, "lr": 0.1, "workers": 1}
    return RunConfig(**(usual | more))


def last(federation):
    *_, round = federation.rounds()
    return round


@pytest.fixture
def temporary_task():
    """Registers tasks for one test, before any worker is forked."""
    names = []

    def make(name, **reply):
        names.append(name)
        return task(name, **reply)

    yield make
    for name in names:
        del TASKS._entries[name]


def test_fedavg_with_one_client_is_plain_training_bit_for_bit():
    config = small(clients=1, rounds=4, local_epochs=2)
    round = last(toy.federation(config))
    module = toy.network()
    here = toy.site(config)
    for t in range(1, 5):
        expected = plain_training(Client(here, 0, t), module, epochs=2, lr=0.1)
    assert torch.equal(round.state["model"], expected)


def test_fedavg_is_the_mean_weighted_by_images():
    config = small(rounds=1)
    sizes = (10, 20, 30)
    round = last(toy.federation(config, sizes))
    here = toy.site(config, sizes)
    models = [fit(Client(here, c, 1), here.initial).model for c in range(3)]
    expected = sum(n * model.double() for n, model in zip(sizes, models, strict=True)) / 60
    torch.testing.assert_close(round.state["model"].double(), expected, rtol=1e-6, atol=1e-7)


def test_fedprox_with_mu_zero_is_fedavg_and_with_mu_it_is_not():
    def model(algorithm, **options):
        config = small(algorithm=algorithm, options=options, participation=0.7)
        return last(toy.federation(config)).state["model"]

    fedavg = model("fedavg")
    assert torch.equal(model("fedprox", mu=0.0), fedavg)
    start = toy.site(small()).initial
    near = model("fedprox", mu=5.0)
    assert float((near - start).norm()) < 0.8 * float((fedavg - start).norm())


@pytest.mark.parametrize("algorithm", ["fedavg", "local", "fedavg-ft", "domain"])
def test_any_number_of_workers_gives_the_same_bits(algorithm):
    def outcome(workers):
        config = small(clients=5, algorithm=algorithm, workers=workers, participation=0.8)
        federation = toy.federation(config, (7, 20, 13, 40, 25))
        try:
            rounds = list(federation.rounds())
            metrics = [
                {key: value for key, value in round.metrics.items() if key != "seconds"}
                for round in rounds
            ]
            return metrics, rounds[-1].state, dict(federation.memories())
        finally:
            federation._engine.close()

    metrics, state, memories = outcome(1)
    assert memories or "model" in state or "models" in state
    for workers in (2, 4):
        same = outcome(workers)
        assert same[0] == metrics
        for name, value in state.items():
            assert np.array_equal(same[1][name], value)
        assert same[2].keys() == memories.keys()
        for client, memory in memories.items():
            assert torch.equal(same[2][client]["model"], memory["model"])


@pytest.mark.parametrize("workers", [1, 2])
def test_the_ledger_of_fedavg_is_two_models_per_client_and_round(workers):
    config = small(clients=4, rounds=5, participation=0.5, workers=workers)
    federation = toy.federation(config)
    list(federation.rounds())
    federation._engine.close()
    P = Layout.of(toy.network()).size
    total = federation.ledger.total()
    assert total.up == total.down == P * 2 * 5
    assert total.bytes_down == 4 * P * 2 * 5
    assert total.bytes_up == (4 * P + 2 * 8) * 2 * 5  # the loss and the number of images
    assert sum(federation.ledger.of(t, c).up for t in range(6) for c in range(4)) == total.up
    assert federation.ledger.of(1, federation.present[0]) is not None


def test_local_training_sends_no_parameters():
    federation = toy.federation(small(algorithm="local"))
    round = last(federation)
    assert (federation.ledger.total().up, federation.ledger.total().down) == (0, 0)
    assert round.metrics["mean_test_accuracy"] > 0


def test_local_training_is_each_client_alone():
    config = small(algorithm="local", rounds=2)
    federation = toy.federation(config)
    last(federation)
    alone = toy.site(config)
    model = alone.initial
    for t in (1, 2):
        model = fit(Client(alone, 2, t), model).model
    assert torch.equal(federation.memories()[2]["model"], model)


def test_participation_draws_the_share_anew_each_round_and_the_same_for_a_seed():
    def drawn(seed):
        federation = toy.federation(small(clients=10, participation=0.3, rounds=6, seed=seed))
        return [round.metrics["participants"] for round in federation.rounds()]

    present = drawn(0)
    assert all(len(set(each)) == 3 for each in present)
    assert len({tuple(each) for each in present}) > 1
    assert drawn(0) == present != drawn(1)


def test_everyone_is_evaluated_also_who_was_absent():
    round = last(toy.federation(small(clients=5, participation=0.2)))
    assert len(round.metrics["per_client_test_accuracy"]) == 5
    assert None not in round.metrics["per_client_test_accuracy"]


def test_means_are_over_honest_clients():
    round = last(toy.federation(small(), poisoned=(1,)))
    accuracies = round.metrics["per_client_test_accuracy"]
    assert round.metrics["mean_test_accuracy"] == pytest.approx((accuracies[0] + accuracies[2]) / 2)


def test_domain_averages_inside_domains_only():
    config = small(clients=4, algorithm="domain", rounds=1)
    federation = toy.federation(config)
    round = last(federation)
    assert round.records["structure"].coalitions == ((0, 2), (1, 3))
    here = toy.site(config)
    models = [fit(Client(here, c, 1), here.initial).model for c in range(4)]
    torch.testing.assert_close(round.state["models"][0], (models[0] + models[2]) / 2)
    torch.testing.assert_close(round.state["models"][1], (models[1] + models[3]) / 2)


def test_fine_tuning_starts_from_the_global_model_and_does_not_feed_back():
    tuned = last(toy.federation(small(algorithm="fedavg-ft", options={"fine_tune_epochs": 0})))
    plain = last(toy.federation(small()))
    assert torch.equal(tuned.state["model"], plain.state["model"])
    accuracies = tuned.metrics["per_client_test_accuracy"]
    assert accuracies == plain.metrics["per_client_test_accuracy"]
    assert accuracies == tuned.metrics["global_per_client_test_accuracy"]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_client_that_sends_rubbish_is_left_out_named_and_unharmed(workers, temporary_task):
    @temporary_task("rubbish", model=Reveals.MODEL)
    def rubbish(client, message):
        client.memory["tries"] = 1
        bad = float("nan") if client.index == 1 else 1.0
        return {"model": bad * message["model"]}

    federation = toy.federation(small(workers=workers))
    sent = {"model": federation.initial_model}
    replies = federation.ask(rubbish, {c: sent for c in range(3)})
    assert sorted(replies) == [0, 2]
    assert federation.failures.refused == {1: "model is not finite"}
    assert sorted(federation.memories()) == [0, 2]
    with pytest.raises(NoSolutionError, match="smaller lr"):
        federation.ask(rubbish, {1: sent})
    federation._engine.close()


def test_training_that_diverges_says_so():
    with pytest.raises(NoSolutionError, match="no client gave a usable answer to 'train'"):
        last(toy.federation(small(lr=1e30)))


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_task_did_not_declare_does_not_leave(workers, temporary_task):
    @temporary_task("leaky", samples=Reveals.METRIC)
    def leaky(client, message):
        return {"samples": 1, "images": client.data.train.targets}

    federation = toy.federation(small(workers=workers))
    with pytest.raises(CoalitionError, match="'images', which it did not declare"):
        federation.ask(leaky, {0: {}})
    federation._engine.close()


def test_a_worker_that_dies_is_a_sentence_not_a_hang(temporary_task):
    @temporary_task("die")
    def die(client, message):
        os.kill(os.getpid(), signal.SIGKILL)
        return {}

    federation = toy.federation(small(workers=2))
    with pytest.raises(CoalitionError, match=r"ended without an answer \(exit code -9\)"):
        federation.ask(die, {0: {}})
    federation._engine.close()


def test_an_error_in_a_worker_shows_where(temporary_task):
    @temporary_task("broken")
    def broken(client, message):
        raise KeyError("no such thing")

    federation = toy.federation(small(workers=2))
    with pytest.raises(CoalitionError, match="no such thing"):
        federation.ask(broken, {0: {}, 1: {}})
    federation._engine.close()


def test_messages_larger_than_the_mailbox_go_through_the_pipe(temporary_task, monkeypatch):
    @temporary_task("echo", model=Reveals.MODEL)
    def echo(client, message):
        client.memory["kept"] = message["model"][:3]
        return {"model": message["model"] + client.index}

    monkeypatch.setattr("learners.server.local_engine._MAILBOX_LEAST", 4096)
    monkeypatch.setattr("learners.server.local_engine._MAILBOX_MODELS", 0)
    federation = toy.federation(small(workers=2))
    large = torch.arange(10_000.0)
    for _ in range(2):
        replies = federation.ask(echo, {c: {"model": large} for c in range(3)})
        for c in range(3):
            assert torch.equal(replies[c]["model"], large + c)
            assert torch.equal(federation.memories()[c]["kept"], large[:3])
    federation._engine.close()


def test_asking_a_client_that_is_not_there_is_refused():
    with pytest.raises(InvalidInputError, match="there is no client 3"):
        toy.federation(small()).ask(describe, {3: {}})


def test_workers_are_refused_where_they_cannot_be(monkeypatch):
    here = toy.site(small())
    monkeypatch.setattr("learners.server.local_engine.sys.platform", "darwin")
    with pytest.raises(InvalidInputError, match="--workers 1"):
        local_engine(here, 2)
    assert type(local_engine(here, 0)).__name__ == "_InProcess"


def test_gradients_are_asked_for_at_given_models():
    federation = toy.federation(small())
    rows = torch.stack([federation.initial_model, federation.initial_model * 2])
    replies = federation.ask(gradient, {1: {"models": rows}})
    client = Client(toy.site(small()), 1, 0)
    for row, found in zip(rows, replies[1]["gradients"], strict=True):
        assert torch.equal(found, gradient_at(client, row))
    assert federation.ledger.total().up == 2 * len(rows[0])


def test_the_gain_from_a_peer_is_by_the_book():
    config = small(local_epochs=3)
    federation = toy.federation(config)
    trained = federation.ask(train, {c: {"keep": True} for c in range(3)})
    peers = torch.stack([trained[1]["model"], trained[2]["model"]])
    gains = federation.ask(fine_tune_pairs, {0: {"models": peers}})[0]["gains"]
    here = toy.site(config)
    client = Client(here, 0, 0)
    own = trained[0]["model"]
    alone = score_model(here.workspace, own, client.data.validation).accuracy
    for peer, gain in zip(peers, gains, strict=True):
        joint = fit(client, (own + peer) / 2, purpose="fine-tune", epochs=1).model
        joined = score_model(here.workspace, joint, client.data.validation).accuracy
        assert gain == joined - alone


def test_a_method_that_changes_only_its_objective_says_only_that():
    class Shrinking(Algorithm):
        def objective(self, loss, params, received):
            return loss + 2.0 * sum(p.square().sum() for p in params.values())

    config = small()
    shrunk = last(toy.federation(config, algorithm=Shrinking())).state["model"]
    plain = last(toy.federation(config)).state["model"]
    assert float(shrunk.norm()) < 0.7 * float(plain.norm())
