import torch

from learners.algorithms.pfedhn import PFedHN
from learners.client.training import fit
from learners.server.federation import Federation
from tests.learners import literal

SIZES = (20, 9, 14)
OPTIONS = {
    "width": 4, "hidden_layers": 1, "embedding": 2, "server_lr": 0.05, "server_momentum": 0.8,
}  # fmt: skip


def by_hand(weights, embedding, size):
    """Return h(v; φ) of the network 2 → 4 → ReLU → 4 → size, from the flat φ."""
    shapes = [(4, 2), (4,), (4, 4), (4,), (size, 4), (size,)]
    parts = torch.split(weights, [torch.Size(shape).numel() for shape in shapes])
    a, b, c, d, e, f = (part.view(shape) for part, shape in zip(parts, shapes, strict=True))
    return e @ (c @ (a @ embedding + b).relu() + d) + f


def jacobians(phi, embedding, size):
    """Return the derivatives of h(v; φ) by φ and by v."""
    return torch.autograd.functional.jacobian(lambda p, v: by_hand(p, v, size), (phi, embedding))


def change(c, theta, round):
    """Return Δθ: how client `c` changes a model by its local epochs."""
    one = literal.client("pfedhn", c, SIZES, batch_size=6, local_epochs=2, **OPTIONS)
    one.round = round
    return theta - fit(one, theta).model


def test_algorithm_1_client_after_client_with_momentum():
    """φ and v after every single client; the next one gets a model of the new hypernetwork."""
    federation, rounds = literal.play("pfedhn", sizes=SIZES, rounds=2, **OPTIONS)
    size, state = literal.LAYOUT.size, rounds[0].state
    phi, v = state["hypernetwork"].clone(), state["embeddings"].clone()
    u_phi, u_v = state["velocity"].clone(), state["embedding_velocity"].clone()
    assert float(u_phi.norm()) > 0
    for c in federation.rng("turns").permutation(3).tolist():
        theta = by_hand(phi, v[c], size)
        by_phi, by_v = jacobians(phi, v[c], size)
        delta = change(c, theta, 2)
        g_v = torch.zeros_like(v)
        g_v[c] = by_v.T @ delta
        u_phi, u_v = 0.8 * u_phi + by_phi.T @ delta, 0.8 * u_v + g_v
        phi, v = phi - 0.05 * u_phi, v - 0.05 * u_v
    after = rounds[1].state
    torch.testing.assert_close(after["hypernetwork"], phi, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(after["embeddings"], v, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(after["velocity"], u_phi, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(after["embedding_velocity"], u_v, rtol=1e-4, atol=1e-6)


def test_without_turns_it_is_one_step_down_the_mean():
    _, rounds = literal.play("pfedhn", sizes=SIZES, rounds=2, turns=False, **OPTIONS)
    before, after = rounds[0].state, rounds[1].state
    phi, v, size = before["hypernetwork"], before["embeddings"], literal.LAYOUT.size
    g_phi, g_v = torch.zeros_like(phi), torch.zeros_like(v)
    for c in range(3):
        delta = change(c, by_hand(phi, v[c], size), 2)
        by_phi, by_v = jacobians(phi, v[c], size)
        g_phi += by_phi.T @ delta / 3
        g_v[c] = by_v.T @ delta / 3
    u_phi = 0.8 * before["velocity"] + g_phi
    u_v = 0.8 * before["embedding_velocity"] + g_v
    torch.testing.assert_close(after["hypernetwork"], phi - 0.05 * u_phi, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(after["embeddings"], v - 0.05 * u_v, rtol=1e-4, atol=1e-6)
    assert float(g_v.norm(dim=1).min()) > 0


def test_turns_come_in_another_order_in_each_round(monkeypatch):
    asked, ask = [], Federation.ask

    def noted(self, task, messages, *, measuring=False):
        if task.name == "train":
            asked.append(tuple(messages))
        return ask(self, task, messages, measuring=measuring)

    monkeypatch.setattr(Federation, "ask", noted)
    literal.play("pfedhn", sizes=(9,) * 5, rounds=4, **OPTIONS)
    rounds = [sum(asked[i : i + 5], ()) for i in range(0, 20, 5)]
    assert all(sorted(turns) == [0, 1, 2, 3, 4] for turns in rounds)
    assert len(set(rounds)) > 1


def test_newcomers_learn_an_embedding_as_the_equations_say():
    federation, rounds = literal.play("pfedhn", sizes=SIZES, rounds=2, **OPTIONS)
    state, size = rounds[-1].state, literal.LAYOUT.size
    phi, v = state["hypernetwork"], state["embeddings"].mean(0)
    u = torch.zeros_like(v)
    federation.round = 3
    for round in (3, 4):
        theta = by_hand(phi, v, size)
        u = 0.8 * u + jacobians(phi, v, size)[1].T @ change(1, theta, round)
        v = v - 0.05 * u
    found = federation.algorithm.newcomers(federation, state, [1])
    torch.testing.assert_close(found[1]["model"], by_hand(phi, v, size), rtol=1e-4, atol=1e-6)


def test_everybody_starts_at_the_initial_model_and_becomes_different():
    federation, rounds = literal.play("pfedhn", rounds=4)
    method = federation.algorithm
    federation.round = 0
    begin = method.models(method.start(federation), [0, 1, 2])
    assert all(torch.equal(row, federation.initial_model) for row in begin)
    models = method.models(rounds[-1].state, [0, 1, 2])
    assert float((models[0] - models[1]).norm()) > 1e-3


def test_nothing_but_a_bias_is_federated_averaging():
    _, plain = literal.play("fedavg")
    federation, rounds = literal.play(
        "pfedhn", width=0, server_lr=1.0, server_momentum=0.0, turns=False
    )
    models = federation.algorithm.models(rounds[-1].state, [0, 2])
    for row in models:
        torch.testing.assert_close(row, plain[-1].state["model"], rtol=1e-4, atol=1e-6)


def test_only_models_travel_and_the_absent_have_one_too():
    federation, rounds = literal.play("pfedhn", sizes=(20,) * 4, participation=0.5)
    assert rounds[-1].metrics["up"] == rounds[-1].metrics["down"] == 2 * literal.LAYOUT.size
    assert len(federation.algorithm.deployed(federation, rounds[-1].state)["personal"]) == 4


def test_the_layout_of_the_hypernetwork_covers_it():
    layout = PFedHN(width=5, hidden_layers=2).layout(3, 7)
    assert layout.size == (3 + 1) * 5 + 2 * (5 + 1) * 5 + (5 + 1) * 7
