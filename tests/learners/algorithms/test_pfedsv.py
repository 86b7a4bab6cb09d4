"""pFedSV, equation by equation, on linear models of six parameters."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from coalitions.errors import InvalidInputError
from coalitions.values.estimators.permutation import random_orders
from learners.algorithm import build_algorithm
from learners.algorithms.pfedsv import (
    chosen_downloads,
    collaborate,
    collaboration_weights,
    updated_relevance,
)
from learners.data.ground_truth import label_overlap
from learners.rows.parameters import Layout
from learners.settings.config import RunConfig
from tests.learners import tiny


def literal_utility(client, models, metric):
    """Eq. (4): performance of the plain average of the models in X; v of nobody is 0."""

    def value(members):
        if not members:
            return 0.0
        row = sum(models[j] for j in members) / len(members)
        data = client.data.validation
        if metric == "accuracy":
            return tiny.accuracy(tiny.linear(), row, data)
        return math.log(2) - tiny.loss(tiny.linear(), row, data)

    return value


def by_permutations(value, n, orders=None):
    """Eq. (2); with `orders`, Algorithm 2 with strict predecessors."""
    orders = list(itertools.permutations(range(n))) if orders is None else orders
    phi = [0.0] * n
    for order in orders:
        order = list(order)
        for j in range(n):
            before = frozenset(order[: order.index(j)])
            phi[j] += (value(before | {j}) - value(before)) / len(orders)
    return phi


def by_subsets(value, n):
    """Eq. (3)."""
    phi = []
    for i in range(n):
        others = [j for j in range(n) if j != i]
        total = 0.0
        for size in range(n):
            weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
            for chosen in itertools.combinations(others, size):
                total += weight * (value({*chosen, i}) - value(set(chosen)))
        phi.append(total)
    return phi


def game(n_received=3, **options):
    client = tiny.client("pfedsv", options=options)
    models = tiny.rows(n_received + 1, client.site.initial)
    client.memory["model"] = models[0]
    return client, models


@pytest.mark.parametrize("metric", ["accuracy", "loss"])
def test_equations_2_3_and_4_values_of_models_are_shapley_values_of_their_averages(metric):
    client, models = game(utility=metric)
    value = literal_utility(client, models, metric)
    reply = collaborate.run(client, {"models": models[1:]})
    assert reply["evaluations"] == 2**4
    np.testing.assert_allclose(reply["values"], by_permutations(value, 4), atol=1e-6)
    np.testing.assert_allclose(reply["values"], by_subsets(value, 4), atol=1e-6)
    assert np.ptp(reply["values"]) > 0.05


def test_with_the_own_model_in_every_coalition_others_are_worth_what_they_add():
    client, models = game(utility="loss", players="others")
    value = literal_utility(client, models, "loss")
    reply = collaborate.run(client, {"models": models[1:]})

    def added(members):
        return value({0, *(j + 1 for j in members)}) - value({0})

    assert reply["values"][0] == pytest.approx(value({0}))
    np.testing.assert_allclose(reply["values"][1:], by_permutations(added, 3), atol=1e-6)
    assert reply["values"].sum() == pytest.approx(value({0, 1, 2, 3}))
    assert reply["evaluations"] == 2**3 + 1
    everybody = game(utility="loss")[0]
    plain = collaborate.run(everybody, {"models": models[1:]})
    assert np.abs(plain["values"] - reply["values"]).max() > 0.05


def test_a_client_without_downloads_is_worth_its_own_model():
    client, models = game(0, players="others")
    reply = collaborate.run(client, {"models": models[1:]})
    assert reply["values"] == pytest.approx([literal_utility(client, models, "accuracy")({0})])
    assert torch.equal(client.memory["model"], models[0])


def test_the_distance_to_the_last_model():
    client, models = game(self_distance="last")
    for last in (client.site.initial, None):
        last = client.memory["model"] if last is None else last
        client.memory["model"] = models[0]
        value = literal_utility(client, models, "accuracy")
        phi = np.maximum(by_permutations(value, 4), 0.0)
        away = [float((models[0] - row).norm()) for row in (last, *models[1:])]
        weights = phi / away
        collaborate.run(client, {"models": models[1:]})
        expected = sum(w * row for w, row in zip(weights / weights.sum(), models, strict=True))
        torch.testing.assert_close(client.memory["model"], expected.float())


def test_algorithm_2_samples_three_permutations_per_model():
    client, models = game(method="permutation", utility="loss")
    value = literal_utility(client, models, "loss")
    seed = client.stream("shapley").initial_seed() % 2**32
    orders = random_orders(4, 3 * 4, np.random.default_rng(seed))
    reply = collaborate.run(client, {"models": models[1:]})
    np.testing.assert_allclose(reply["values"], by_permutations(value, 4, orders), atol=1e-6)
    assert np.abs(reply["values"] - by_subsets(value, 4)).max() > 1e-4  # an estimate, really


@pytest.mark.parametrize(("received", "exact"), [(6, True), (7, False)])
def test_auto_is_exact_up_to_seven_models(received, exact):
    client, models = game(received)
    reply = collaborate.run(client, {"models": models[1:]})
    assert (reply["evaluations"] == 2 ** (received + 1)) == exact


def test_equation_5_by_hand():
    before = np.array([0.1, -0.2, 0.3, 0.4])
    after = updated_relevance(before, np.array([0, 3]), np.array([0.5, -0.4]), 0.25)
    np.testing.assert_allclose(after, [0.25 * 0.1 + 0.75 * 0.5, -0.2, 0.3, 0.25 * 0.4 - 0.75 * 0.4])
    assert before[0] == 0.1  # a new vector, not the old one changed


@pytest.mark.parametrize(
    ("self_distance", "expected"),
    [
        # φ = 0.4, 0.3, −0.1, 0.2; distances to the others 3, 1, 2: the nearest is 1, the mean 2.
        ("nearest", [0.4 / 1, 0.3 / 3, 0.0, 0.2 / 2]),
        ("mean", [0.4 / 2, 0.3 / 3, 0.0, 0.2 / 2]),
        ("exclude", [0.0, 0.3 / 3, 0.0, 0.2 / 2]),
        ("printed", [0.4 / 1e-6, 0.3 / 3, 0.0, 0.2 / 2]),
    ],
)
def test_equation_6_by_hand(self_distance, expected):
    weights = collaboration_weights(
        np.array([0.4, 0.3, -0.1, 0.2]),
        np.array([0.0, 3.0, 1.0, 2.0]),
        floor=1e-6,
        self_distance=self_distance,
    )
    np.testing.assert_allclose(weights, np.array(expected) / sum(expected))


@pytest.mark.parametrize("self_distance", ["nearest", "mean", "exclude"])
@pytest.mark.parametrize("values", [[-0.1, -0.2, 0.0], [0.0, 0.0, 0.0], [0.7]])
def test_who_gains_from_nobody_keeps_its_model(values, self_distance):
    weights = collaboration_weights(
        np.array(values),
        np.arange(len(values), dtype=float),
        floor=1e-6,
        self_distance=self_distance,
    )
    assert weights.tolist() == [1.0] + [0.0] * (len(values) - 1)


def test_excluded_from_its_own_mean_a_client_with_no_other_positive_keeps_its_model():
    weights = collaboration_weights(
        np.array([0.9, -0.1]), np.array([0.0, 1.0]), floor=1e-6, self_distance="exclude"
    )
    assert weights.tolist() == [1.0, 0.0]


@given(
    st.lists(st.floats(-1, 1), min_size=1, max_size=6),
    st.sampled_from(["nearest", "mean", "exclude"]),
    st.floats(0, 10),
)
def test_weights_are_never_negative_and_sum_to_one(values, self_distance, distance):
    distances = np.full(len(values), distance)
    distances[0] = 0.0
    weights = collaboration_weights(
        np.array(values), distances, floor=1e-6, self_distance=self_distance
    )
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("self_distance", ["nearest", "mean", "exclude"])
def test_equation_7_the_client_keeps_the_weighted_mean(self_distance):
    client, models = game(self_distance=self_distance)
    value = literal_utility(client, models, "accuracy")
    collaborate.run(client, {"models": models[1:]})
    phi = by_subsets(value, 4)
    away = [float((models[0] - models[j]).norm()) for j in range(1, 4)]
    own = {"nearest": min(away), "mean": sum(away) / 3, "exclude": math.inf}[self_distance]
    w = [max(p, 0) / d for p, d in zip(phi, [own, *away], strict=True)]
    expected = sum(w[j] / sum(w) * models[j] for j in range(4))
    torch.testing.assert_close(client.memory["model"], expected)
    assert not torch.equal(client.memory["model"], models[0])
    assert torch.equal(client.memory["trained"], models[0])


def test_identical_models_are_at_a_small_distance_not_at_none():
    client, models = game()
    same = models[0].repeat(3, 1)
    reply = collaborate.run(client, {"models": same})
    assert np.isfinite(reply["values"]).all()
    torch.testing.assert_close(client.memory["model"], models[0])


def test_pairwise_compares_each_model_alone_with_the_one_before_training():
    client, models = game(collaboration="pairwise", utility="loss")
    before = tiny.rows(1, models[0], seed=9)[0]
    client.memory["before"] = before
    reply = collaborate.run(client, {"models": models[1:]})
    data = client.data.validation
    expected = [
        tiny.loss(tiny.linear(), before, data) - tiny.loss(tiny.linear(), row, data)
        for row in models
    ]
    np.testing.assert_allclose(reply["values"], expected, atol=1e-6)
    assert torch.equal(client.memory["before"], client.memory["model"])


def chosen(
    scores, scored, k, rng, *, order="scan", dynamic=True, explore=0.0, keep_scores="positive"
):
    scores = np.asarray(scores, dtype=float)
    return chosen_downloads(
        scores,
        np.asarray(scored),
        np.arange(10, 10 + len(scores)),
        k=k,
        order=order,
        dynamic=dynamic,
        explore=explore,
        keep_scores=keep_scores,
        rng=rng,
    ).tolist()


def test_scan_takes_clients_never_scored_first_then_the_best(rng):
    assert chosen([0.5, 0, 0, -0.3], [1, 0, 0, 1], 2, rng) in ([11, 12], [12, 11])
    assert chosen([0.5, 0.2, 0, -0.3], [1, 1, 0, 1], 3, rng) == [12, 10, 11]


def test_top_k_goes_by_score_and_a_zero_that_was_earned_is_no_sign_of_a_new_client(rng):
    scores, scored = [0.5, 0, 0, -0.3], [1, 0, 1, 1]
    assert chosen(scores, scored, 1, rng, order="top-k") == [10]
    assert chosen(scores, scored, 2, rng, order="top-k") == [10, 11]
    assert chosen(scores, scored, 1, rng) == [11]


def test_dynamic_k_is_the_number_of_positive_scores_once_everyone_is_scored(rng):
    assert chosen([0.5, -0.1, 0.2, 0.0], [1, 1, 1, 1], 5, rng) == [10, 12]
    assert chosen([-0.5, -0.1], [1, 1], 5, rng) == []
    assert len(chosen([0.5, -0.1, 0.2, 0.0], [1, 1, 1, 0], 4, rng)) == 4  # one is still new
    assert chosen([0.5, -0.1, 0.2, 0.0], [1, 1, 1, 1], 3, rng, dynamic=False) == [10, 12, 13]


def test_more_downloads_than_clients_are_all_clients(rng):
    assert sorted(chosen([0, 0], [0, 0], 50, rng)) == [10, 11]
    assert chosen([], [], 5, rng) == []


def test_rejected_clients_come_back_as_often_as_asked(rng):
    always = chosen([0.5, -0.1, 0.0], [1, 1, 1], 5, rng, explore=1.0)
    assert sorted(always) == [10, 11, 12]
    often = [len(chosen([0.5, -0.1], [1, 1], 5, rng, explore=0.3)) - 1 for _ in range(1000)]
    assert 0.25 < np.mean(often) < 0.35


def rounds_to_find(n, m, k, order, rng):
    """Rounds until a client has downloaded its m relevant ones of n, if games tell them apart."""
    relevant = set(rng.permutation(n - 1)[:m].tolist())
    scores, scored = np.zeros(n - 1), np.zeros(n - 1, int)
    for t in range(1, 200):
        for j in chosen_downloads(
            scores,
            scored,
            np.arange(n - 1),
            k=k,
            order=order,
            dynamic=True,
            explore=0.0,
            rng=rng,
        ):
            scores[j] = 0.5 * scores[j] + 0.5 * (0.1 if j in relevant else -0.1)
            scored[j] += 1
        if all(scored[j] for j in relevant):
            return t
    return 200


@given(st.integers(2, 30), st.data())
def test_scan_finds_all_relevant_clients_within_the_bound_of_the_paper(n, data):
    m = data.draw(st.integers(1, n - 1))
    k = data.draw(st.integers(1, n))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    assert rounds_to_find(n, m, k, "scan", rng) <= -(-(n - m - 1) // k) + -(-m // k)


def test_top_k_breaks_that_bound_in_most_runs(rng):
    bound = math.ceil(15 / 5) + math.ceil(4 / 5)
    late = [rounds_to_find(20, 4, 5, "top-k", rng) > bound for _ in range(200)]
    assert np.mean(late) > 0.5
    assert not any(rounds_to_find(20, 4, 5, "scan", rng) > bound for _ in range(50))


def test_the_server_keeps_the_relevance_and_slots_have_no_names(monkeypatch):
    federation = tiny.federation("pfedsv", clients=5, rounds=3, options={"k": 2, "alpha": 0.3})
    heard = tiny.Listener(federation, monkeypatch)
    relevance, scored = np.zeros((5, 5)), np.zeros((5, 5), int)
    orders = []
    for t, done in enumerate(federation.rounds()):
        uploads = {c: reply["model"] for c, reply in heard.of("train")[t][1].items()}
        messages, replies = heard.of("pfedsv-collaborate")[t]
        for i, message in messages.items():
            assert set(message) == {"models"}  # nothing tells whose they are
            slots = [
                next(j for j in uploads if torch.equal(uploads[j], row))
                for row in message["models"]
            ]
            assert i not in slots
            orders.append(slots)
            for j, value in zip([i, *slots], replies[i]["values"], strict=True):
                relevance[i, j] = 0.3 * relevance[i, j] + 0.7 * value
                scored[i, j] += 1
        np.testing.assert_allclose(done.records["relevance"], relevance, atol=1e-12)
        np.testing.assert_array_equal(done.state["scored"], scored)
        assert done.metrics["downloads"] == [len(m["models"]) for m in messages.values()]
    assert (scored[~np.eye(5, dtype=bool)] > 0).all()  # k=2 of 4 others: all seen in two rounds
    longer = [slots for slots in orders if len(slots) > 1]
    assert any(slots != sorted(slots) for slots in longer)
    assert any(slots != sorted(slots, reverse=True) for slots in longer)


def test_slots_are_drawn_anew_in_every_round(monkeypatch):
    """A client that gets everyone's model each time cannot follow anyone by the slot."""
    federation = tiny.federation("pfedsv", clients=5, rounds=6, options={"k": 4, "dynamic": False})
    heard = tiny.Listener(federation, monkeypatch)
    list(federation.rounds())
    orders = {i: [] for i in range(5)}
    for (_, trained), (messages, _) in zip(
        heard.of("train"), heard.of("pfedsv-collaborate"), strict=True
    ):
        for i, message in messages.items():
            orders[i].append(
                tuple(
                    next(j for j in trained if torch.equal(trained[j]["model"], row))
                    for row in message["models"]
                )
            )
    for i, seen in orders.items():
        assert all(sorted(order) == [j for j in range(5) if j != i] for order in seen)
        assert len(set(seen)) >= 4  # 6 of 24 orders: fewer by chance in 1 of 1000 seeds


def test_a_shared_extractor_is_the_mean_of_all_and_classifiers_stay_personal(monkeypatch):
    module = tiny.two_layers()
    federation = tiny.federation(
        "pfedsv", clients=3, rounds=1, module=module, options={"shared_extractor": True, "k": 1}
    )
    heard = tiny.Listener(federation, monkeypatch)
    (done,) = federation.rounds()
    uploads = {c: reply["model"] for c, reply in heard.of("train")[0][1].items()}
    (messages, replies) = heard.of("pfedsv-collaborate")[0]
    extractor = (uploads[0][:4] + uploads[1][:4] + uploads[2][:4]) / 3  # 12 points each
    memories = federation.memories()
    for i, message in messages.items():
        torch.testing.assert_close(message["extractor"], extractor)
        (classifier,) = message["classifiers"]
        own = uploads[i][4:]
        # Two models: with values φ and one distance d for both, Eq. (6) leaves φ⁺ alone.
        phi = np.maximum(replies[i]["values"], 0)
        share = phi / phi.sum() if phi.sum() else np.array([1.0, 0.0])
        kept = memories[i]["model"]
        torch.testing.assert_close(kept[:4], extractor)
        torch.testing.assert_close(kept[4:], float(share[0]) * own + float(share[1]) * classifier)
        models = [torch.cat([extractor, own]), torch.cat([extractor, classifier])]
        validation = federation._engine._site.data[i].validation
        values = by_subsets(
            lambda X, models=models, data=validation: (
                tiny.accuracy(tiny.two_layers(), sum(models[j] for j in X) / len(X), data)
                if X
                else 0.0
            ),
            2,
        )
        np.testing.assert_allclose(replies[i]["values"], values, atol=1e-6)
    assert done.metrics["up_per_client"] == [10, 10, 10]
    assert done.metrics["down_per_client"] == [4 + 6, 4 + 6, 4 + 6]


def test_traffic_of_whole_models_is_what_was_downloaded():
    federation = tiny.federation("pfedsv", clients=4, rounds=3, options={"k": 2})
    for done in federation.rounds():
        assert done.metrics["down_per_client"] == [6 * k for k in done.metrics["downloads"]]


def test_told_clients_download_those_with_whom_they_share_a_label(monkeypatch):
    data = []
    for c, labels in enumerate([(0, 1), (1,), (0,), (1,)]):
        splits = []
        for part in range(3):
            split = tiny.points(30, 10 * c + part)
            mine = torch.isin(split.targets, torch.tensor(labels))
            splits.append(tiny.Split(split.inputs[mine], split.targets[mine]))
        data.append(tiny.ClientData(*splits, domain="", poisoned=False))
    federation = tiny.federation("pfedsv", clients=4, data=data, rounds=2, options={"told": True})
    for done in federation.rounds():
        assert done.metrics["downloads"] == [3, 2, 1, 2]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    "settings", [{"clients": 1}, {"clients": 4, "participation": 0.25}, {"clients": 2}]
)
def test_alone_or_nearly_so(settings, shared):
    federation = tiny.federation(
        "pfedsv",
        rounds=3,
        module=tiny.two_layers(),
        options={"shared_extractor": shared},
        **settings,
    )
    for done in federation.rounds():
        assert np.isfinite(done.records["relevance"]).all()
        assert math.isfinite(done.metrics["mean_test_accuracy"])
        if settings["clients"] != 2:
            assert sum(done.metrics["downloads"]) == 0
    for memory in federation.memories().values():
        assert torch.isfinite(memory["model"]).all()
        if not shared and settings["clients"] != 2:  # who sees no one keeps what it trained
            assert torch.equal(memory["model"], memory["trained"])


def test_absent_clients_are_not_downloaded_and_keep_their_model(monkeypatch):
    federation = tiny.federation("pfedsv", clients=5, rounds=4, participation=0.6)
    heard = tiny.Listener(federation, monkeypatch)
    before = {}
    for done in federation.rounds():
        present = set(done.metrics["participants"])
        messages, _ = heard.of("pfedsv-collaborate")[-1]
        assert set(messages) == present
        assert all(len(message["models"]) <= 2 for message in messages.values())
        after = {c: memory["model"] for c, memory in federation.memories().items()}
        assert all(torch.equal(after[c], before[c]) for c in before if c not in present)
        before = after


def test_trained_is_what_was_combined_a_round_ago_after_the_local_epochs():
    federation = tiny.federation("pfedsv", clients=3, rounds=1)
    (done,) = federation.rounds()
    trained = federation.memories()[0]["trained"]
    data = federation._engine._site.data[0].test
    expected = tiny.accuracy(tiny.linear(), trained, data)
    assert done.metrics["trained_per_client_test_accuracy"][0] == pytest.approx(expected)
    assert done.metrics["model"] == "personal"


@pytest.mark.parametrize(
    "options", [{"k": -1}, {"alpha": 1.5}, {"explore": -0.1}, {"permutations": 0}]
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(InvalidInputError, match="pfedsv must be"):
        build_algorithm("pfedsv", options)


def test_ground_truth_of_a_ring_is_its_neighbours():
    counts = np.zeros((10, 10), int)
    for i in range(10):
        counts[i, [i, (i + 1) % 10]] = 100
    truth = label_overlap(counts)
    assert truth.sum(axis=1).tolist() == [2] * 10
    assert truth[0, [1, 9]].all()


@pytest.mark.parametrize("kind", ["similarity", "cosine"])
def test_similar_models_weigh_more_without_a_look_at_the_data(kind):
    client, models = game(collaboration=kind)
    reply = collaborate.run(client, {"models": models[1:]})
    away = [float((models[0] - row).norm()) for row in models]
    cosines = [float(models[0] @ row / (models[0].norm() * row.norm())) for row in models]
    expected = {"similarity": [1 / d for d in [min(away[1:]), *away[1:]]], "cosine": cosines}[kind]
    np.testing.assert_allclose(reply["values"], expected, rtol=1e-5)
    weights = [max(value, 0.0) / sum(max(each, 0.0) for each in expected) for value in expected]
    mean = sum(weight * row for weight, row in zip(weights, models, strict=True))
    torch.testing.assert_close(client.memory["model"], mean)
    assert reply["evaluations"] == 0


def test_equation_6_as_printed_leaves_nearly_all_to_the_own_model():
    weights = collaboration_weights(
        np.array([0.1, 0.5]), np.array([0.0, 2.0]), floor=1e-6, self_distance="printed"
    )
    np.testing.assert_allclose(weights, [1e5 / (1e5 + 0.25), 0.25 / (1e5 + 0.25)])


def test_mixed_takes_known_good_ones_first_and_always_somebody_new(rng):
    scores, scored = [0.5, 0, 0, -0.3, 0.2, 0], [1, 0, 0, 1, 1, 0]
    taken = chosen(scores, scored, 3, rng, order="mixed")
    assert taken[:2] == [10, 14]
    assert taken[2] in (11, 12, 15)
    assert len(chosen(scores, scored, 1, rng, order="mixed")) == 3  # both good ones, one new
    assert chosen([0.5, -0.1, 0.2], [1, 1, 1], 5, rng, order="mixed") == [10, 12]
    assert chosen([0.5, -0.1, 0.2], [1, 1, 1], 1, rng, order="mixed", dynamic=False) == [10]


def test_an_earned_zero_stays_if_non_negative_scores_do(rng):
    assert chosen([0.5, -0.1, 0.0], [1, 1, 1], 5, rng, keep_scores="non-negative") == [10, 12]
    assert chosen([0.5, -0.1, 0.0], [1, 1, 1], 5, rng) == [10]


@pytest.mark.parametrize(("participation", "order"), [(1.0, "scan"), (0.5, "mixed")])
def test_the_order_follows_from_how_many_take_part(participation, order):
    shared = {"clients": 6, "rounds": 4, "participation": participation}
    auto, said = (
        list(tiny.federation("pfedsv", **shared, options={"k": 2, **more}).rounds())
        for more in ({}, {"order": order})
    )
    for one, other in zip(auto, said, strict=True):
        np.testing.assert_array_equal(one.records["relevance"], other.records["relevance"])


@pytest.mark.parametrize("own", [False, True])
def test_a_client_may_go_on_with_its_noised_model(own):
    client, models = game(noise_own=own)
    noised = models[0] + 0.1
    client.memory["published model"] = noised
    collaborate.run(client, {"models": models[1:]})
    assert torch.equal(client.memory["trained"], noised if own else models[0])


def test_noise_of_ones_own_needs_noise():
    method = build_algorithm("pfedsv", {"noise_own": True})
    layout = Layout.of(tiny.linear())
    with pytest.raises(InvalidInputError, match="noise_own of pfedsv has no effect"):
        method.check(RunConfig(algorithm="pfedsv"), layout)
    method.check(RunConfig(algorithm="pfedsv", noise=1.0, clip=1.0), layout)
