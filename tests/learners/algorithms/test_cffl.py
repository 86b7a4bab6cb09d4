"""CFFL, algorithm by algorithm, on linear models of six parameters."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from coalitions.errors import CoalitionError, InvalidInputError
from coalitions.structure import CoalitionStructure
from coalitions.structures.partitions import adjusted_rand_index, all_partitions, refines
from learners.algorithm import build_algorithm
from learners.algorithms import cffl
from learners.algorithms._cffl_variants import membership_weights
from learners.data.ground_truth import among, are_separated, true_structure
from learners.rows.parameters import Layout
from tests.learners import tiny


def listened(monkeypatch, **settings):
    federation = tiny.federation("cffl", **settings)
    return federation, tiny.Listener(federation, monkeypatch)


def site_of(federation):
    return federation._engine._site


def one_epoch(federation, client, row):
    """Plain SGD over the client's batches, once: lines 4 to 6 of Algorithm 2."""
    module = tiny.linear()
    layout = Layout.of(module)
    layout.unpack(row, module)
    here = site_of(federation)
    data = here.data[client].train
    stream = tiny.Client(here, client, federation.round).stream("fine-tune")
    order = torch.randperm(len(data), generator=stream)
    for begin in range(0, len(order), here.config.batch_size):
        images, labels = data.take(order[begin : begin + here.config.batch_size])
        module.zero_grad()
        nn.functional.cross_entropy(module(images), labels).backward()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter -= here.config.lr * parameter.grad
    return layout.pack(module)


def full_gradient(federation, client, row, on="train"):
    module = tiny.linear()
    Layout.of(module).unpack(row, module)
    data = getattr(site_of(federation).data[client], on)
    images, labels = data.take(torch.arange(len(data)))
    nn.functional.cross_entropy(module(images), labels).backward()
    return torch.cat([parameter.grad.reshape(-1) for parameter in module.parameters()])


@pytest.mark.parametrize("on", ["validation", "test"])
def test_algorithm_2_ica_is_the_mean_gain_after_one_epoch_from_the_mean_model(monkeypatch, on):
    federation, heard = listened(monkeypatch, clients=4, rounds=2, options={"ica_on": on})
    for done in federation.rounds():
        w = {c: reply["model"] for c, reply in heard.of("train")[-1][1].items()}
        expected = np.zeros((4, 4))
        for i in range(4):
            for j in range(i + 1, 4):
                mean = (w[i] + w[j]) / 2
                gain = []
                for c in (i, j):
                    held_out = getattr(site_of(federation).data[c], on)
                    tuned = one_epoch(federation, c, mean)
                    gain.append(
                        tiny.accuracy(tiny.linear(), tuned, held_out)
                        - tiny.accuracy(tiny.linear(), w[c], held_out)
                    )
                expected[i, j] = expected[j, i] = sum(gain) / 2
        np.testing.assert_allclose(done.records["relevance"], expected, atol=1e-9)


@pytest.mark.parametrize("on", ["train", "validation"])
def test_algorithm_3_cos_is_the_cosine_of_the_gradients_at_the_mean_model(monkeypatch, on):
    options = {"synergy": "cos", "cos_on": on}
    federation, heard = listened(monkeypatch, clients=5, rounds=2, options=options)
    for done in federation.rounds():
        w = {c: reply["model"] for c, reply in heard.of("train")[-1][1].items()}
        for i in range(5):
            assert done.records["relevance"][i, i] == 0
            for j in range(i + 1, 5):
                mean = (w[i] + w[j]) / 2
                one, other = (full_gradient(federation, c, mean, on) for c in (i, j))
                expected = float(one @ other / (one.norm() * other.norm()))
                assert done.records["relevance"][i, j] == pytest.approx(expected, abs=1e-5)
                assert done.records["relevance"][j, i] == done.records["relevance"][i, j]
    assert np.abs(done.records["relevance"]).max() > 0.1


def test_many_pairs_are_asked_for_in_batches_with_the_same_result(monkeypatch):
    at_once = tiny.federation("cffl", clients=5, rounds=1, options={"synergy": "cos"})
    (whole,) = at_once.rounds()
    monkeypatch.setattr(cffl, "GRADIENTS_AT_ONCE", 1)
    federation, heard = listened(monkeypatch, clients=5, rounds=1, options={"synergy": "cos"})
    (done,) = federation.rounds()
    assert len(heard.of("gradient")) == 2  # ten pairs, five at a time
    np.testing.assert_array_equal(done.records["relevance"], whole.records["relevance"])


@pytest.mark.parametrize("synergy", ["ica", "cos"])
@pytest.mark.parametrize("solver", ["auto", "highs", "cbc", "brute-force", "local-search"])
def test_algorithm_1_best_structure_then_plain_means(monkeypatch, synergy, solver):
    federation, heard = listened(
        monkeypatch, clients=4, rounds=3, options={"synergy": synergy, "solver": solver}
    )
    last = CoalitionStructure.grand(4)
    for done in federation.rounds():
        messages, replies = heard.of("train")[-1]
        for block in last:  # line 3: everyone starts from its coalition's model
            for c in block:
                assert torch.equal(messages[c]["model"], messages[block[0]]["model"])
        structure = done.records["structure"]
        s = done.records["relevance"]

        def value(partition, s=s):
            return sum(s[i, j] for block in partition for i in block for j in block if i < j)

        best = max(value(partition) for partition in all_partitions(4))
        assert value(structure) == pytest.approx(best, abs=1e-9)
        assert done.metrics["structure_value"] == pytest.approx(best, abs=1e-9)
        for number, block in enumerate(structure):  # line 10
            mean = sum(replies[c]["model"] for c in block) / len(block)
            torch.testing.assert_close(done.state["models"][number], mean)
            assert all(done.state["labels"][c] == number for c in block)
        last = structure
    assert done.metrics["model"] == "coalition"


def test_the_first_round_is_that_of_the_grand_coalition(monkeypatch):
    federation, heard = listened(monkeypatch, clients=3, rounds=1, options={"synergy": "cos"})
    list(federation.rounds())
    messages, _ = heard.of("train")[0]
    assert all(torch.equal(m["model"], federation.initial_model) for m in messages.values())


def test_each_solve_starts_from_the_last_structure(monkeypatch):
    starts = []
    solve = cffl.solve

    def watched(graph, solver, *, warm_start, **more):
        starts.append(warm_start)
        return solve(graph, solver, warm_start=warm_start, **more)

    monkeypatch.setattr(cffl, "solve", watched)
    federation = tiny.federation("cffl", clients=4, rounds=3, options={"synergy": "cos"})
    structures = [done.records["structure"] for done in federation.rounds()]
    assert starts == [CoalitionStructure.grand(4), *structures[:-1]]


@pytest.mark.parametrize("synergy", ["ica", "cos"])
@pytest.mark.parametrize(
    "settings", [{"clients": 1}, {"clients": 2}, {"clients": 4, "participation": 0.25}]
)
def test_alone_or_nearly_so(synergy, settings):
    federation = tiny.federation("cffl", rounds=3, options={"synergy": synergy}, **settings)
    for done in federation.rounds():
        assert np.isfinite(done.records["relevance"]).all()
        assert torch.isfinite(done.state["models"]).all()
        assert math.isfinite(done.metrics["mean_test_accuracy"])
        assert done.records["structure"].n_players == settings["clients"]


def test_absent_clients_keep_their_model_and_their_old_companions(monkeypatch):
    federation, _ = listened(
        monkeypatch, clients=6, rounds=6, participation=0.5, options={"synergy": "cos"}
    )
    models = dict.fromkeys(range(6), federation.initial_model)
    for done in federation.rounds():
        present = set(done.metrics["participants"])
        now = {c: done.state["models"][done.state["labels"][c]] for c in range(6)}
        for c in set(range(6)) - present:
            assert torch.equal(now[c], models[c])
            assert not done.records["relevance"][c].any()
        labels = done.records["structure"].labels
        for a in range(6):
            for b in range(6):
                assert (labels[a] == labels[b]) <= torch.equal(now[a], now[b])
        assert are_separated(done.records["structure"], present)
        models = now


def test_identical_clients_have_cosine_one_and_stay_together():
    (data,) = tiny.site("cffl", clients=1).data
    same = tiny.ClientData(
        *(
            tiny.Split(*part.take(torch.arange(len(part))))
            for part in (data.train, data.validation, data.test)
        ),
        domain="",
        poisoned=False,
    )
    federation = tiny.federation(
        "cffl", clients=3, rounds=2, data=[same] * 3, batch_size=12, options={"synergy": "cos"}
    )
    for done in federation.rounds():
        off = done.records["relevance"][~np.eye(3, dtype=bool)]
        np.testing.assert_allclose(off, 1.0, atol=1e-5)
        assert done.records["structure"] == CoalitionStructure.grand(3)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([3.0, 4.0], [4.0, 3.0], 24 / 25),
        ([1.0, 0.0], [-2.0, 0.0], -1.0),
        ([0.0, 0.0], [1.0, 1.0], 0.0),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([1e-30, 0.0], [1e-30, 0.0], 1.0),  # a float32 would square this to zero
    ],
)
def test_cosine_by_hand_and_of_a_zero_gradient(one, other, expected):
    assert cffl.cosine(torch.tensor(one), torch.tensor(other)) == pytest.approx(expected)


def test_a_client_with_zero_gradient_has_no_synergy():
    # All points at the origin and both classes alike often: at a model without bias the gradient
    # of the weights is zero, and that of the biases cancels.
    module = nn.Sequential(nn.Flatten(), nn.Linear(2, 2, bias=False))
    origin = tiny.Split(torch.zeros(4, 1, 1, 2), torch.tensor([0, 1, 0, 1]))
    flat = tiny.ClientData(origin, origin, origin, domain="", poisoned=False)
    other = tiny.ClientData(
        *(tiny.points(12, seed) for seed in range(3)), domain="", poisoned=False
    )
    federation = tiny.federation(
        "cffl",
        clients=3,
        rounds=1,
        data=[flat, other, other],
        module=module,
        options={"synergy": "cos"},
    )
    (done,) = federation.rounds()
    assert done.records["relevance"][0].tolist() == [0, 0, 0]
    assert done.records["relevance"][1, 2] == pytest.approx(1.0, abs=1e-5)


def test_what_is_wrong_is_said_before_training():
    with pytest.raises(CoalitionError, match="solver"):
        build_algorithm("cffl", {"solver": "simplexx"})
    with pytest.raises(InvalidInputError, match="time_limit"):
        build_algorithm("cffl", {"time_limit": 0.0})
    with pytest.raises(InvalidInputError, match="ica, cos"):
        build_algorithm("cffl", {"synergy": "cosine"})


def test_structures_are_judged_by_the_true_domains():
    domains = ["a", "a", "b", "b", "b"]
    truth = true_structure(domains)
    pure = CoalitionStructure([[0, 1], [2, 3], [4]])
    mixed = CoalitionStructure([[0, 1, 2], [3, 4]])
    assert adjusted_rand_index(truth, truth) == 1.0
    assert adjusted_rand_index(pure, truth) > adjusted_rand_index(mixed, truth)
    assert refines(pure, truth)
    assert not refines(mixed, truth)
    assert not are_separated(mixed, [3])
    assert are_separated(pure, [4])
    assert among(pure, [0, 2, 3]) == CoalitionStructure([[0], [1, 2]])


def test_overlapping_coalitions_give_every_client_its_own_mixture(monkeypatch):
    matrix = np.array([[0, 3, 1, -1], [3, 0, -4, -1], [1, -4, 0, -1], [-1, -1, -1, 0]]) / 10
    monkeypatch.setattr(cffl.CFFL, "synergies", lambda *_: matrix)
    federation, heard = listened(monkeypatch, clients=4, rounds=2, options={"overlap": 2})
    for done in federation.rounds():
        w = {c: reply["model"] for c, reply in heard.of("train")[-1][1].items()}
        assert done.records["memberships"] == [[0, 1], [0, 2]]
        assert done.records["structure_value"] == pytest.approx(0.4)
        assert done.records["structure_optimal"]
        models = [done.state["models"][label] for label in done.state["labels"]]
        one, two = (w[0] + w[1]) / 2, (w[0] + w[2]) / 2
        # Client 0 has three times as much from the first coalition as from the second.
        expected = [0.75 * one + 0.25 * two, one, two, w[3]]
        for model, right in zip(models, expected, strict=True):
            torch.testing.assert_close(model, right)


def test_with_overlap_absent_clients_keep_their_model():
    federation = tiny.federation(
        "cffl", clients=6, rounds=5, participation=0.5, options={"synergy": "cos", "overlap": 2}
    )
    models = dict.fromkeys(range(6), federation.initial_model)
    for done in federation.rounds():
        present = set(done.metrics["participants"])
        now = {c: done.state["models"][done.state["labels"][c]] for c in range(6)}
        assert all(torch.equal(now[c], models[c]) for c in set(range(6)) - present)
        members = [c for block in done.records["memberships"] for c in block]
        assert set(members) <= present
        assert all(members.count(c) <= 2 for c in present)
        models = now


def test_membership_weights_are_shares_of_the_synergy():
    row = np.array([0.0, 2.0, -3.0, 1.0])
    assert membership_weights(row, [(0, 1), (0, 2), (1, 2)], 0) == {0: 1.0, 1: 0.0}
    assert membership_weights(row, [(0, 2), (0, 2, 3)], 0) == {0: 0.5, 1: 0.5}
    assert membership_weights(row, [(1, 2)], 0) == {}


def test_overlap_learns_the_digits_in_overlapping_coalitions():
    from learners import run

    result = run(
        {
            "algorithm": "cffl",
            "dataset": "digits",
            "partition": "ring:2",
            "clients": 5,
            "rounds": 3,
            "options": {"overlap": 2, "synergy": "cos"},
        }
    )
    assert result.mean_test_accuracy > 0.6


def test_overlap_that_cannot_be_is_refused_before_training():
    from learners import run

    settings = {"algorithm": "cffl", "clients": 63, "options": {"overlap": 2}}
    with pytest.raises(InvalidInputError, match="at most 62 clients; there are 63"):
        run(settings)
    with pytest.raises(InvalidInputError, match="solver"):
        build_algorithm("cffl", {"overlap": 2, "solver": "cbc"})


@pytest.mark.parametrize("solver", ["auto", "highs", "cbc", "cp-sat"])
def test_ties_are_settled_by_the_finest_structure_wherever_the_search_starts(solver, monkeypatch):
    tied = np.array([[0, 1, 0.5, -0.5], [1, 0, -0.5, 0.5], [0.5, -0.5, 0, 1], [-0.5, 0.5, 1, 0]])
    monkeypatch.setattr(cffl.CFFL, "synergies", lambda *_: tied)
    for labels in ([0, 0, 0, 0], [0, 1, 2, 3]):
        federation = tiny.federation("cffl", clients=4, rounds=1, options={"solver": solver})
        start = {"labels": labels, "models": federation.initial_model.repeat(4, 1)}
        (done,) = federation.rounds(start)
        assert done.state["labels"] == [0, 0, 1, 1]


def test_what_was_trained_is_tested_beside_the_coalitions_model():
    (done,) = tiny.federation("cffl", clients=3, rounds=1).rounds()
    assert done.metrics["model"] == "coalition"
    assert any("trained" in key for key in done.metrics)


def test_gradients_as_in_training_feel_the_dropout():
    found = {}
    for mode in ("evaluation", "training"):
        network = nn.Sequential(nn.Flatten(), nn.Linear(2, 4), nn.Dropout(), nn.Linear(4, 2))
        federation = tiny.federation(
            "cffl", clients=3, rounds=1, module=network,
            options={"synergy": "cos", "cos_mode": mode},
        )  # fmt: skip
        (done,) = federation.rounds()
        found[mode] = done.records["relevance"]
    assert not np.allclose(found["evaluation"], found["training"])


class Scripted:
    """A federation of four members and newcomer 4, whose answers were worked out by hand.

    Models are numbers: the newcomer's is 0, members 0 and 1 have 2, members 2 and 3 have −2.
    """

    clients = range(4)

    def __init__(self, gains, samples, wanted):
        self.gains, self.samples, self.wanted, self.asked = gains, samples, wanted, []

    def ask(self, task, messages, *, measuring):
        assert measuring
        self.asked.append(task.name)
        return {c: self.answer(task.name, c, message) for c, message in messages.items()}

    def answer(self, name, client, message):
        if name == "train":
            return {"model": torch.zeros(1)}
        if name == "deploy":
            return {"model": torch.tensor([2.0 if client < 2 else -2.0])}
        if name == "evaluate":
            return {"samples": self.samples, "accuracy": 0.5, "loss": 0.0}
        if name == "evaluate-many":
            return {"loss": (message["models"][:, 0] - self.wanted).abs().numpy()}
        return {"gains": np.array(self.gains if client == 4 else [0.0])}

    def combine(self, models, weights):
        return models.mean(dim=0)


def joined(gains, samples, wanted, **options):
    federation = Scripted(gains, samples, wanted)
    state = {"labels": [0, 0, 1, 1], "models": torch.tensor([[2.0], [-2.0]])}
    found = build_algorithm("cffl", options).newcomers(federation, state, [4])
    return float(found[4]["model"]), federation.asked


def test_a_newcomer_with_enough_samples_joins_the_best_synergy():
    # With 0 and 1 together (1/4 + 0) / 2 = 1/8, with 2 and 3 (1/4 + 1/4) / 2 = 1/4. A step is
    # 2 / (2 × 100) = 1/100 with either, so the second is better: (0 − 2 − 2) / 3.
    model, asked = joined([0.25, 0.0, 0.25, 0.25], samples=100, wanted=2.0)
    assert model == pytest.approx(-4 / 3)
    assert "evaluate-many" not in asked
    # Nobody helps by more than a step, and all but nobody harms: it stays alone.
    assert joined([-0.5, -0.5, -0.25, -0.25], samples=100, wanted=2.0)[0] == 0.0


def test_with_few_samples_the_loss_decides_between_what_a_sample_cannot_tell():
    # The same with 4 samples: a step is 2 / (2 × 4) = 1/4. All three choices are within it of
    # 1/4: alone (0), the first (1/8) and the second. Their models are 0, 4/3 and −4/3.
    few = {"gains": [0.25, 0.0, 0.25, 0.25], "samples": 4}
    assert joined(**few, wanted=2.0)[0] == pytest.approx(4 / 3)
    assert joined(**few, wanted=-2.0)[0] == pytest.approx(-4 / 3)
    assert joined(**few, wanted=0.1)[0] == 0.0
    # (1/2 + 1/2) / 2 = 1/2 is more than a step above the others, whatever the loss says.
    assert joined([0.25, 0.0, 0.5, 0.5], samples=4, wanted=2.0)[0] == pytest.approx(-4 / 3)


def test_a_gain_that_has_no_value_leaves_the_choice_to_the_loss():
    nothing = {"gains": [0.0] * 4, "samples": 4, "gain": "auroc"}
    assert joined(**nothing, wanted=2.0)[0] == pytest.approx(4 / 3)
    some = {"gains": [0.0, 0.0, 0.01, 0.0], "samples": 4, "gain": "auroc"}
    model, asked = joined(**some, wanted=2.0)
    assert model == pytest.approx(-4 / 3)  # no step is known of this metric: more is better
    assert "evaluate" not in asked
