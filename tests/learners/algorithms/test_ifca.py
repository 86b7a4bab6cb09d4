import pytest
import torch

from learners.algorithms.ifca import _closest, choose_cluster
from learners.client.training import fit, score_model
from tests.learners import literal, tiny


def test_a_client_chooses_the_model_of_the_lowest_training_loss():
    one = literal.client("ifca")
    good = fit(one, one.site.initial, epochs=30).model
    models = torch.stack([literal.other_model(), good, literal.other_model(8)])
    losses = [score_model(one.workspace, row, one.data.train).loss for row in models]
    reply = choose_cluster.run(one, {"models": models})
    assert reply["cluster"] == losses.index(min(losses)) == 1
    assert torch.equal(one.memory["model"], good)
    assert torch.equal(one.algorithm.model(one, {"models": models}), good)


def test_model_averaging_takes_the_plain_mean_in_each_cluster():
    federation, (only,) = literal.play("ifca", sizes=(20, 9, 31, 14, 25), rounds=1, k=2)
    clusters = only.state["clusters"]
    assert set(clusters) == {0, 1}  # the seed makes both wanted
    federation.round = 0
    begin = federation.algorithm.start(federation)["models"]
    for j in (0, 1):
        members = [c for c in range(5) if clusters[c] == j]
        trained = []
        for c in members:
            one = literal.client("ifca", c, (20, 9, 31, 14, 25), batch_size=6, local_epochs=2)
            trained.append(fit(one, begin[j]).model)
        torch.testing.assert_close(only.state["models"][j], torch.stack(trained).mean(0))


def test_gradient_averaging_steps_by_the_sum_over_all_clients_of_the_round():
    federation, (only,) = literal.play("ifca", rounds=1, k=2, averaging="gradient")
    federation.round = 0
    begin = federation.algorithm.start(federation)["models"]
    expected = begin.clone()
    for c in range(3):
        one = literal.client("ifca", c, (20, 20, 20))
        j = only.state["clusters"][c]
        images, labels = one.data.train.take(torch.arange(20))
        expected[j] -= literal.LR / 3 * literal.gradient(begin[j], images, labels)
    torch.testing.assert_close(only.state["models"], expected)


@pytest.mark.parametrize("averaging", ["model", "gradient"])
def test_a_cluster_nobody_chose_stays(averaging):
    federation, _ = literal.play("ifca", rounds=1, averaging=averaging)
    state = federation.algorithm.start(federation)
    state["models"][1:] *= 50  # nobody wants these
    after = federation.algorithm.round(federation, state, 1)
    assert after["clusters"] == [0, 0, 0]
    assert torch.equal(after["models"][1:], state["models"][1:])
    assert not torch.equal(after["models"][0], state["models"][0])


def test_one_model_is_federated_averaging_bit_for_bit():
    _, plain = literal.play("fedavg")
    _, single = literal.play("ifca", k=1)
    assert torch.equal(single[-1].state["models"][0], plain[-1].state["model"])


def test_more_models_start_from_different_places_and_matter():
    federation, rounds = literal.play("ifca", k=3)
    begin = federation.algorithm.start(federation)["models"]
    assert torch.equal(begin[0], federation.initial_model)
    assert len({tuple(row.tolist()) for row in begin}) == 3
    _, plain = literal.play("fedavg")
    assert not torch.equal(rounds[-1].state["models"][0], plain[-1].state["model"])


def test_all_models_go_down_one_comes_up_and_the_structure_is_recorded():
    _, rounds = literal.play("ifca", k=3)
    size = literal.LAYOUT.size
    assert (rounds[0].metrics["down"], rounds[0].metrics["up"]) == (3 * 3 * size, 3 * size)
    assert sorted(c for block in rounds[0].records["structure"] for c in block) == [0, 1, 2]


def test_a_model_whose_loss_is_no_number_is_not_chosen():
    client = literal.client("ifca")
    sound = client.site.initial
    for broken in (torch.full_like(sound, 3e38), torch.full_like(sound, torch.nan)):
        for place, models in ((1, [broken, sound]), (0, [sound, broken])):
            assert _closest(client, torch.stack(models))[0] == place


def test_none_named_is_a_model_for_every_client():
    (done,) = tiny.federation("ifca", clients=4, rounds=1, options={"k": 0}).rounds()
    assert len(done.state["models"]) == 4
