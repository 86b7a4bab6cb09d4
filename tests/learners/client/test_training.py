import pytest
import torch
from torch import nn

from coalitions.errors import InvalidInputError
from learners.client.training import batches, fit, gradient_at, score_model
from learners.rows.optimizers import optimizer
from learners.rows.parameters import Layout
from learners.settings.config import RunConfig
from tests.learners import toy


def plain_training(client, module, *, epochs, lr, momentum=0.0, adam=False, mu=0.0):
    """Ordinary torch: a module, an optimiser, a loop; the same order of images."""
    settings = client.config
    optimiser = (
        torch.optim.Adam(module.parameters(), lr=lr)
        if adam
        else torch.optim.SGD(module.parameters(), lr=lr, momentum=momentum)
    )
    start = [p.detach().clone() for p in module.parameters()]
    stream = client.stream("train")
    module.train()
    for _ in range(epochs):
        order = torch.randperm(len(client.data.train), generator=stream)
        for begin in range(0, len(order), settings.batch_size):
            images, labels = client.data.train.take(order[begin : begin + settings.batch_size])
            loss = nn.functional.cross_entropy(module(images), labels)
            if mu:
                pairs = zip(module.parameters(), start, strict=True)
                loss = loss + mu / 2 * sum((p - q).square().sum() for p, q in pairs)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return Layout.of(module).pack(module)


@pytest.mark.parametrize(
    "how", [{}, {"momentum": 0.9}, {"optimizer": "adam"}], ids=["sgd", "momentum", "adam"]
)
def test_fit_is_plain_training_bit_for_bit(how):
    config = RunConfig(clients=1, local_epochs=3, batch_size=6, lr=0.05, **how)
    client = toy.client(config, sizes=(20,))
    expected = plain_training(
        client,
        toy.network(),
        epochs=3,
        lr=0.05,
        momentum=how.get("momentum", 0.0),
        adam="optimizer" in how,
    )
    fitted = fit(client, client.site.initial)
    assert torch.equal(fitted.model, expected)
    assert not torch.equal(fitted.model, client.site.initial)


def test_batch_norm_buffers_are_part_of_what_is_learnt():
    client = toy.client(module=toy.network(batch_norm=True))
    expected = plain_training(client, toy.network(batch_norm=True), epochs=2, lr=0.1)
    fitted = fit(client, client.site.initial)
    assert torch.equal(fitted.model, expected)
    running = client.workspace.layout.columns["1.running_mean"]
    assert float(fitted.model[running].abs().sum()) > 0


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_optimisers_compute_what_torch_computes(name):
    stream = torch.Generator().manual_seed(0)
    ours = torch.randn(50, generator=stream)
    theirs = nn.Parameter(ours.clone())
    momentum = 0.8 if name == "momentum" else 0.0
    reference = (
        torch.optim.Adam([theirs], lr=0.01)
        if name == "adam"
        else torch.optim.SGD([theirs], lr=0.01, momentum=momentum)
    )
    step = optimizer(ours, "adam" if name == "adam" else "sgd", 0.01, momentum)
    for _ in range(20):
        gradient = torch.randn(50, generator=stream)
        theirs.grad = gradient.clone()
        reference.step()
        step(gradient)
    assert torch.equal(ours, theirs.detach())


def test_the_proximal_term_is_its_autograd_self():
    client = toy.client()
    expected = plain_training(client, toy.network(), epochs=2, lr=0.1, mu=0.7)
    fitted = fit(client, client.site.initial, proximal=0.7)
    torch.testing.assert_close(fitted.model, expected)
    free = fit(client, client.site.initial).model
    start = client.site.initial
    assert float((fitted.model - start).norm()) < float((free - start).norm())


def test_an_objective_hook_reaches_the_gradient():
    client = toy.client()

    def objective(loss, params, received):
        return loss + 0.35 * sum((params[n] - received[n]).square().sum() for n in params)

    hooked = fit(client, client.site.initial, objective=objective).model
    torch.testing.assert_close(hooked, fit(client, client.site.initial, proximal=0.7).model)


def test_the_anchor_is_what_the_proximal_term_pulls_to():
    client = toy.client()
    anchor = torch.zeros_like(client.site.initial)
    # One step of size lr with a huge μ: w − lr·(g + μ w), so the pull dominates.
    pulled = fit(client, client.site.initial, steps=1, lr=0.01, proximal=100.0, anchor=anchor)
    assert float(pulled.model.norm()) < 0.1 * float(client.site.initial.norm())


def test_only_the_chosen_parameters_move():
    client = toy.client()
    layout = client.workspace.layout
    head = {"4.weight", "4.bias"}
    fitted = fit(client, client.site.initial, only=head, proximal=0.5)
    moved = (fitted.model != client.site.initial).nonzero().flatten().tolist()
    assert moved
    assert set(moved) <= set(layout.columns_of(head).tolist())
    everything = fit(client, client.site.initial).model  # and nothing stays frozen afterwards
    assert float((everything - client.site.initial)[layout.columns["0.weight"]].abs().sum()) > 0


def test_steps_and_epochs_count_what_they_say():
    client = toy.client()
    assert len(list(batches(client, 20, "x", epochs=2))) == 2 * 4  # 6 + 6 + 6 + 2
    assert len(list(batches(client, 20, "x", steps=7))) == 7
    assert [len(b) for b in batches(client, 20, "x", epochs=1)] == [6, 6, 6, 2]
    assert list(batches(client, 0, "x", steps=3)) == []
    with pytest.raises(InvalidInputError, match="not both"):
        list(batches(client, 20, "x", epochs=1, steps=1))


def test_every_image_is_seen_once_in_a_pass():
    client = toy.client()
    assert sorted(torch.cat(list(batches(client, 20, "x", epochs=1))).tolist()) == list(range(20))


def test_a_lone_last_image_is_left_out_with_batch_norm_only():
    config = RunConfig(clients=1, batch_size=6)
    with_norm = toy.client(config, module=toy.network(batch_norm=True))
    assert [len(b) for b in batches(with_norm, 13, "x", epochs=1)] == [6, 6]
    assert [len(b) for b in batches(toy.client(config), 13, "x", epochs=1)] == [6, 6, 1]


def test_dropout_is_seeded_and_leaves_torchs_generator_alone():
    client = toy.client(module=toy.network(dropout=0.5))
    before = torch.random.get_rng_state()
    first = fit(client, client.site.initial).model
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.rand(5)
    assert torch.equal(fit(client, client.site.initial).model, first)
    client.round = 2
    assert not torch.equal(fit(client, client.site.initial).model, first)


def test_gradient_is_that_of_the_mean_loss_over_all_training_data():
    client = toy.client(sizes=(431,))  # more than two chunks
    module = toy.network()
    images, labels = client.data.train.take(torch.arange(431))
    nn.functional.cross_entropy(module(images), labels).backward()
    expected = torch.cat([p.grad.reshape(-1) for p in module.parameters()])
    torch.testing.assert_close(gradient_at(client, client.site.initial), expected)


def test_scores_are_those_of_a_single_pass():
    client = toy.client()
    module = toy.network().eval().requires_grad_(False)
    images, labels = client.data.test.take(torch.arange(12))
    score = score_model(client.workspace, client.site.initial, client.data.test)
    assert score.correct == int((module(images).argmax(1) == labels).sum())
    assert score.loss == pytest.approx(float(nn.functional.cross_entropy(module(images), labels)))
