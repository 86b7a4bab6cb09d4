"""Weight decay, schedules, cut gradients and torch's optimisers, each against plain torch."""

import pytest
import torch
from torch import nn

from learners.client.client import Client
from learners.client.training import fit
from learners.privacy.mechanism import Privacy
from learners.rows.optimizers import optimizer
from learners.rows.parameters import Layout
from learners.settings.config import RunConfig
from learners.settings.schedules import OPTIMIZERS, learning_rate
from tests.learners import toy


def plain_training(client, optimiser_of, *, max_norm=None, mu=0.0):
    """Ordinary torch: a module, an optimiser, a loop; the same order of images."""
    module = toy.network()
    optimiser = optimiser_of(module.parameters())
    start = [p.detach().clone() for p in module.parameters()]
    stream = client.stream("train")
    module.train()
    for _ in range(client.config.local_epochs):
        order = torch.randperm(len(client.data.train), generator=stream)
        for chosen in torch.split(order, client.config.batch_size):
            images, labels = client.data.train.take(chosen)
            loss = nn.functional.cross_entropy(module(images), labels)
            pairs = zip(module.parameters(), start, strict=True)
            loss = loss + mu / 2 * sum((p - q).square().sum() for p, q in pairs)
            optimiser.zero_grad()
            loss.backward()
            if max_norm is not None:
                nn.utils.clip_grad_norm_(module.parameters(), max_norm)
            optimiser.step()
    return Layout.of(module).pack(module)


def client_with(**settings):
    return toy.client(RunConfig(clients=1, local_epochs=2, batch_size=6, **settings))


@pytest.mark.parametrize(("name", "class_name"), OPTIMIZERS.items())
def test_every_optimiser_is_that_of_torch(name, class_name):
    client = client_with(optimizer=class_name, lr=0.01)
    expected = plain_training(client, lambda p: getattr(torch.optim, class_name)(p, lr=0.01))
    fitted = fit(client, client.site.initial).model
    assert not torch.equal(fitted, client.site.initial)
    torch.testing.assert_close(fitted, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_weight_decay_is_that_of_torch_to_the_last_bit(name):
    stream = torch.Generator().manual_seed(0)
    ours = torch.randn(50, generator=stream)
    theirs = nn.Parameter(ours.clone())
    momentum = 0.8 if name == "momentum" else 0.0
    reference = (
        torch.optim.Adam([theirs], lr=0.01, weight_decay=0.3)
        if name == "adam"
        else torch.optim.SGD([theirs], lr=0.01, momentum=momentum, weight_decay=0.3)
    )
    kind = "adam" if name == "adam" else "sgd"
    step = optimizer(ours, kind, 0.01, momentum, weight_decay=0.3)
    for _ in range(10):
        gradient = torch.randn(50, generator=stream)
        theirs.grad = gradient.clone()
        reference.step()
        step(gradient)
    assert torch.equal(ours, theirs.detach())


def test_a_long_gradient_is_cut_as_torch_cuts_it_with_decay_and_a_proximal_term():
    client = client_with(lr=0.5, weight_decay=0.05, max_gradient_norm=0.3)
    expected = plain_training(
        client, lambda p: torch.optim.SGD(p, lr=0.5, weight_decay=0.05), max_norm=0.3, mu=0.7
    )
    fitted = fit(client, client.site.initial, proximal=0.7).model
    torch.testing.assert_close(fitted, expected)
    free = fit(client_with(lr=0.5, weight_decay=0.05), client.site.initial, proximal=0.7).model
    assert not torch.allclose(fitted, free, atol=1e-3)


@pytest.mark.parametrize("how", [{"weight_decay": 0.5}, {"optimizer": "adamw"}])
def test_what_is_frozen_does_not_decay(how):
    client = client_with(lr=0.1, **how)
    head = ("4.weight", "4.bias")
    fitted = fit(client, client.site.initial, only=head).model
    moved = client.workspace.layout.views(fitted - client.site.initial)
    assert all(bool(moved[name].any()) == (name in head) for name in moved)


def scheduler(optimiser, schedule, *, rounds, warmup):
    schedulers = torch.optim.lr_scheduler
    after = {
        "constant": lambda: schedulers.ConstantLR(optimiser, factor=1.0),
        "step:2:0.5": lambda: schedulers.StepLR(optimiser, 2, 0.5),
        "cosine": lambda: schedulers.CosineAnnealingLR(optimiser, rounds - warmup),
    }[schedule]()
    if not warmup:
        return after
    rising = schedulers.LinearLR(optimiser, 1 / (warmup + 1), total_iters=warmup)
    return schedulers.SequentialLR(optimiser, [rising, after], [warmup])


@pytest.mark.parametrize("schedule", ["constant", "step:2:0.5", "cosine"])
@pytest.mark.parametrize("warmup", [0, 3])
def test_schedules_are_those_of_torch(schedule, warmup):
    config = RunConfig(rounds=9, lr=0.2, schedule=schedule, warmup=warmup)
    optimiser = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.2)
    theirs = scheduler(optimiser, schedule, rounds=9, warmup=warmup)
    for t in range(1, 10):
        assert learning_rate(config, t) == pytest.approx(optimiser.param_groups[0]["lr"])
        optimiser.step()
        theirs.step()


def test_a_client_trains_at_the_rate_of_its_round():
    client = client_with(lr=0.1, rounds=4, schedule="step:2:0.5")
    later = Client(client.site, 0, 3)
    assert (client.lr, later.lr) == (0.1, 0.05)
    at_half = plain_training(later, lambda p: torch.optim.SGD(p, lr=0.05))
    assert torch.equal(fit(later, client.site.initial).model, at_half)


def test_private_records_take_decay_and_a_limit_too():
    """A step along a private gradient is cut after the noise: nothing more is revealed."""
    client = client_with(lr=0.1, dp="records", clip=1.0, noise=1.0, max_gradient_norm=1e-3)
    client.site.privacy = Privacy("records", 1.0, 1.0, 1e-5)
    start = client.site.initial
    fitted = fit(client, start, steps=4)
    # Four steps of 0.1 along gradients of a thousandth.
    assert 0 < float((fitted.model - start).norm()) <= 4 * 0.1 * 1e-3 * 1.001
