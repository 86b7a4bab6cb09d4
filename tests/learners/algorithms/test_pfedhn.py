import torch

from learners.algorithms.pfedhn import PFedHN
from learners.client.training import fit
from tests.learners import literal

OPTIONS = {"width": 4, "hidden_layers": 1, "embedding": 2, "server_lr": 0.05}


def by_hand(weights, embedding, size):
    """Return h(v; φ) of the network 2 → 4 → ReLU → 4 → size, from the flat φ."""
    shapes = [(4, 2), (4,), (4, 4), (4,), (size, 4), (size,)]
    parts = torch.split(weights, [torch.Size(shape).numel() for shape in shapes])
    a, b, c, d, e, f = (part.view(shape) for part, shape in zip(parts, shapes, strict=True))
    return e @ (c @ (a @ embedding + b).relu() + d) + f


def test_one_step_down_the_jacobian():
    _, rounds = literal.play("pfedhn", sizes=(20, 9), rounds=2, **OPTIONS)
    before, after = rounds[0].state, rounds[1].state
    size = literal.LAYOUT.size
    phi, embeddings = before["hypernetwork"], before["embeddings"]
    step_phi, step_v = torch.zeros_like(phi), torch.zeros_like(embeddings)
    for c in range(2):
        theta = by_hand(phi, embeddings[c], size)
        one = literal.client("pfedhn", c, (20, 9), batch_size=6, local_epochs=2, **OPTIONS)
        one.round = 2
        delta = theta - fit(one, theta).model
        for_phi, for_v = torch.autograd.functional.jacobian(
            lambda p, v: by_hand(p, v, size), (phi, embeddings[c])
        )
        step_phi += for_phi.T @ delta / 2
        step_v[c] = for_v.T @ delta / 2
    torch.testing.assert_close(after["hypernetwork"], phi - 0.05 * step_phi, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(
        after["embeddings"], embeddings - 0.05 * step_v, rtol=1e-4, atol=1e-6
    )
    assert float(step_v.norm(dim=1).min()) > 0


def test_everybody_starts_at_the_initial_model_and_becomes_different():
    federation, rounds = literal.play("pfedhn", rounds=4)
    method = federation.algorithm
    federation.round = 0
    begin = method.models(method.start(federation), [0, 1, 2])
    assert all(torch.equal(row, federation.initial_model) for row in begin)
    models = method.models(rounds[-1].state, [0, 1, 2])
    assert float((models[0] - models[1]).norm()) > 1e-2


def test_nothing_but_a_bias_is_federated_averaging():
    _, plain = literal.play("fedavg")
    federation, rounds = literal.play("pfedhn", width=0, server_lr=1.0)
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
