import numpy as np
import pytest
import torch

from coalitions.errors import InvalidInputError
from learners.algorithms.fedfomo import FedFomo, first_order_weights, train_aside, weigh
from learners.client.training import fit, score_model
from tests.learners import literal


def test_weights_and_the_new_model_by_the_papers_formulas():
    one = literal.client("fedfomo")
    before = literal.other_model()
    trained = fit(one, before, epochs=20).model
    others = torch.stack([fit(one, before, epochs=3).model, 10 * literal.other_model(8)])
    one.memory.update(model=before, trained=trained)
    reply = weigh.run(one, {"models": others})

    def loss(row):
        return score_model(one.workspace, row, one.data.validation).loss

    raw = [(loss(before) - loss(row)) / float((row - before).norm()) for row in (trained, *others)]
    assert raw[0] > 0 > raw[2]  # one helps, one hurts
    np.testing.assert_allclose(reply["weights"], raw, rtol=1e-4)
    weights = np.maximum(raw, 0) / np.maximum(raw, 0).sum()
    moved = before.clone()
    for w, row in zip(weights, (trained, *others), strict=True):
        moved += w * (row - before)
    torch.testing.assert_close(one.memory["model"], moved)
    assert "trained" not in one.memory


def test_if_no_model_is_better_the_old_one_stays():
    one = literal.client("fedfomo")
    before = fit(one, one.site.initial, epochs=30).model
    one.memory.update(model=before, trained=20 * literal.other_model())
    reply = weigh.run(one, {"models": 20 * literal.other_model(8)[None]})
    assert (reply["weights"] < 0).all()
    assert torch.equal(one.memory["model"], before)


def test_a_model_equal_to_the_old_one_weighs_nothing():
    one = literal.client("fedfomo")
    before = literal.other_model()
    one.memory.update(model=before, trained=before.clone())
    assert weigh.run(one, {"models": before[None]})["weights"].tolist() == [0.0, 0.0]


def test_without_downloads_and_always_improving_it_is_training_alone_bit_for_bit():
    alone = literal.personal_models("local", sizes=(60, 60), rounds=2)
    own, rounds = literal.play("fedfomo", sizes=(60, 60), rounds=2, k=0)
    for round in rounds:
        assert np.array_equal(round.records["relevance"], np.eye(2))  # every step was taken
    assert all(torch.equal(own.memories()[c]["model"], alone[c]) for c in range(2))
    assert rounds[-1].metrics["down"] == 0


def test_others_models_change_ones_own():
    alone = literal.personal_models("fedfomo", k=0)
    shared = literal.personal_models("fedfomo", k=2)
    assert float((alone[0] - shared[0]).norm()) > 1e-3


def test_the_server_sends_what_was_liked_or_explores():
    affinity, rng = np.array([9.0, 0.0, 3.0, 1.0, 2.0, -1.0]), np.random.default_rng(0)
    liked = FedFomo(k=2).choice(affinity, [1, 2, 3, 4, 5], 0.0, rng)
    assert liked == [2, 4]
    explored = {tuple(FedFomo(k=2).choice(affinity, [1, 2, 3, 4, 5], 1.0, rng)) for _ in range(200)}
    assert len(explored) == 10  # all pairs of five
    tied = {tuple(FedFomo(k=1).choice(np.zeros(4), [1, 2, 3], 0.0, rng)) for _ in range(50)}
    assert tied == {(1,), (2,), (3,)}


def test_a_coin_is_thrown_for_each_download():
    affinity, rng = np.array([0.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0]), np.random.default_rng(0)
    others = [1, 2, 3, 4, 5, 6]
    picks = [set(FedFomo(k=2).choice(affinity, others, 0.5, rng)) for _ in range(4000)]
    # Both coins greedy: {1, 2}. One of two: a random one and the best of the rest, so one coin for
    # both would never give {1, 3} more often than {4, 6}.
    share = {pair: sum(p == set(pair) for p in picks) / 4000 for pair in ((1, 2), (1, 3), (4, 6))}
    # 1/4 + 1/4 (greedy, random: 2 is one of 5 left) · 1/5 + 1/4 (random first: 1 or 2 of 6) · 2/6
    # + 1/4 (both random) / 15, and likewise for the others.
    assert share[1, 2] == pytest.approx(0.25 + 0.25 / 5 + 0.25 * 2 / 6 + 0.25 / 15, abs=0.03)
    assert share[1, 3] == pytest.approx(0.25 / 5 + 0.25 / 6 + 0.25 / 15, abs=0.02)
    assert share[4, 6] == pytest.approx(0.25 / 15, abs=0.01)


def test_all_others_are_downloaded_if_there_are_no_more():
    rng = np.random.default_rng(0)
    assert FedFomo(k=5).choice(np.zeros(4), [1, 2, 3], 0.5, rng) == [1, 2, 3]
    assert FedFomo(k=5).choice(np.zeros(4), [], 0.5, rng) == []


def test_affinity_adds_signed_weights_and_downloads_are_counted():
    federation, rounds = literal.play("fedfomo", sizes=(20,) * 4, rounds=1, k=2)
    affinity = rounds[0].state["affinity"]
    useful = np.maximum(affinity, 0)
    total = useful.sum(axis=1, keepdims=True)
    expected = np.divide(useful, total, out=np.zeros_like(useful), where=total > 0)
    np.testing.assert_allclose(rounds[0].records["relevance"], expected)
    size = literal.LAYOUT.size
    assert (rounds[0].metrics["up"], rounds[0].metrics["down"]) == (4 * size, 4 * 2 * size)
    second = next(iter(federation.rounds(rounds[0].state)))
    assert (second.state["affinity"] != affinity).any()


def test_a_model_that_did_harm_ranks_below_one_that_was_never_tried():
    # Clients 1 and 3 contradict 0 and 2: their models hurt.
    federation, _ = literal.play("fedfomo", sizes=(40,) * 4, rounds=1, k=3, local_epochs=1)
    site = federation._engine._site
    for c in (1, 3):
        for split in (site.data[c].train, site.data[c].validation):
            split.targets.copy_((split.targets + 1) % 3)
    affinity = list(federation.rounds())[-1].state["affinity"]
    assert affinity[0, 1] < 0 < affinity[0, 2]
    untried = affinity[0].copy()
    untried[3] = 0.0
    chosen = FedFomo(k=2).choice(untried, [1, 2, 3], 0.0, np.random.default_rng(0))
    assert chosen == [2, 3]


def test_validation_data_is_needed():
    one = literal.client("fedfomo")
    train_aside.run(one, {})
    empty = one.data.train.with_targets(one.data.train.targets[:0])
    one.site.data = (type(one.data)(one.data.train, empty, one.data.test, "", False),)
    with pytest.raises(InvalidInputError, match="validation_share"):
        weigh.run(one, {"models": literal.other_model()[None]})


def test_a_model_whose_loss_is_no_number_has_no_weight_and_spoils_no_other():
    client = literal.client("fedfomo")
    before = client.site.initial
    good = fit(client, before).model
    broken = torch.full_like(before, 3e38)
    weights = first_order_weights(client, before, torch.stack([good, broken]))
    assert torch.equal(weights, torch.stack([weights[0], torch.tensor(0.0).double()]))
    alone = first_order_weights(client, before, good[None])
    assert float(weights[0]) == float(alone[0])
