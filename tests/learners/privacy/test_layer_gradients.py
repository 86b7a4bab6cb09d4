"""Clipped gradients from one backward pass are those of one image at a time."""

import pytest
import torch
from torch import nn

from learners.data.client_data import Targets
from learners.measures.goal import goal_of
from learners.models import build_model
from learners.models.network import Network
from learners.privacy.per_sample import (
    clipped_sum_by_layers,
    made_of_plain_layers,
    private_gradient,
)
from learners.rows.parameters import Layout
from learners.rows.workspace import Workspace

N = 6
SHAPE = (2, 9, 9)


def pictures(shape=SHAPE, n_classes=4):
    stream = torch.Generator().manual_seed(0)
    return torch.randn((N, *shape), generator=stream), torch.arange(N) % n_classes


def one_at_a_time(module, images, labels, clip, only=None):
    """Return the same by plain backward passes, in double precision."""
    sums = {name: 0.0 for name, _ in module.named_parameters() if only is None or name in only}
    total = 0.0
    for at in range(len(labels)):
        module.zero_grad()
        loss = nn.functional.cross_entropy(module(images[at : at + 1]), labels[at : at + 1])
        loss.backward()
        total += float(loss.detach())
        grads = {name: dict(module.named_parameters())[name].grad.double() for name in sums}
        norm = sum(each.square().sum() for each in grads.values()).sqrt()
        for name, each in grads.items():
            sums[name] = sums[name] + each * min(1.0, clip / float(norm))
    return sums, total


NETWORKS = {
    "strided and padded": lambda: nn.Sequential(
        nn.Conv2d(2, 3, (3, 2), stride=(2, 1), padding=(1, 2)),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(3, 2, 2, bias=False),
        nn.Sigmoid(),
        nn.Flatten(),
        nn.LazyLinear(4),
    ),
    "linear in several places": lambda: nn.Sequential(
        nn.Linear(9, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 9 * 3, 4, bias=False)
    ),
    "lenet-5": lambda: build_model("lenet-5", shape=SHAPE, n_classes=4, seed=0),
    "mlp": lambda: build_model("mlp", shape=SHAPE, n_classes=4, seed=0),
}


@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0], ids=["all clipped", "half", "none clipped"])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_sum_is_that_of_single_images(name, share):
    torch.manual_seed(0)
    module = NETWORKS[name]()
    images, labels = pictures()
    module(images)  # gives the lazy layer its size
    norms = []
    for at in range(N):
        sums, _ = one_at_a_time(module, images[at : at + 1], labels[at : at + 1], 1e9)
        norms.append(float(sum(each.square().sum() for each in sums.values()).sqrt()))
    clip = sorted(norms)[min(int(share * N), N - 1)] * (0.5 if share == 0 else 1.001)
    assert made_of_plain_layers(module)
    found, loss = clipped_sum_by_layers(module, images, labels, clip, None)
    expected, total = one_at_a_time(module, images, labels, clip)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        torch.testing.assert_close(
            found[key].double(), value.flatten(), rtol=1e-4, atol=1e-6, msg=key
        )
    assert loss == pytest.approx(total, rel=1e-5)


def test_only_some_parameters_are_trained_and_only_they_are_clipped():
    module = build_model("lenet-5", shape=SHAPE, n_classes=4, seed=0)
    images, labels = pictures()
    only = {"head.bias", "features.3.weight"}
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(name in only)
    found, _ = clipped_sum_by_layers(module, images, labels, 0.5, only)
    for parameter in module.parameters():
        parameter.requires_grad_(True)
    expected, _ = one_at_a_time(module, images, labels, 0.5, only)
    assert found.keys() == expected.keys() == only
    for key, value in expected.items():
        torch.testing.assert_close(found[key].double(), value.flatten(), rtol=1e-4, atol=1e-6)


class Twice(Network):
    def forward(self, images):
        return super().forward(images) + self.head(self.represent(images))


class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, images):
        return nn.functional.linear(self.layer(images), self.layer.weight)


def test_networks_that_could_use_a_weight_elsewhere_are_not_taken_for_plain_ones():
    layer = nn.Linear(3, 3)
    assert made_of_plain_layers(nn.Sequential(layer, nn.ReLU()))
    assert not made_of_plain_layers(nn.Sequential(layer, layer))
    assert not made_of_plain_layers(Functional())
    assert not made_of_plain_layers(Twice(nn.Flatten(), nn.Identity(), layer))
    assert not made_of_plain_layers(nn.Sequential(nn.BatchNorm2d(2)))
    assert not made_of_plain_layers(nn.Sequential(nn.Conv2d(2, 2, 3, groups=2)))
    assert not made_of_plain_layers(nn.Sequential(nn.Conv2d(2, 2, 3, padding="same")))
    tied = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    tied[1].weight = tied[0].weight
    assert not made_of_plain_layers(tied)


@pytest.mark.parametrize("kind", ["multi-label", "regression"])
def test_other_losses_are_clipped_sample_by_sample(kind):
    module = build_model("mlp", shape=(5,), n_classes=3, seed=0)
    stream = torch.Generator().manual_seed(0)
    inputs = torch.randn(N, 5, generator=stream)
    truth = (torch.rand(N, 3, generator=stream) < 0.5).float()
    workspace = Workspace(module, Layout.of(module), torch.device("cpu"), goal_of(Targets(kind, 3)))
    assert made_of_plain_layers(module)
    settings = {"expected": 1.0, "clip": 0.3, "noise": 0.0, "stream": torch.Generator()}
    by_layers, loss = private_gradient(workspace, inputs, truth, **settings)
    one_by_one, same = private_gradient(
        workspace, inputs, truth, **settings, objective=lambda value, _: value
    )
    torch.testing.assert_close(by_layers, one_by_one, rtol=1e-4, atol=1e-6)
    assert loss == pytest.approx(same, rel=1e-5)


def test_named_inputs_are_clipped_as_one_tensor_is():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(5, 3)

        def forward(self, *, left, right):
            return self.last(torch.cat([left, right], 1))

    stream = torch.Generator().manual_seed(0)
    inputs, labels = torch.randn(N, 5, generator=stream), torch.arange(N) % 3
    named, plain = Two(), nn.Linear(5, 3)
    plain.load_state_dict(named.last.state_dict())
    settings = {"expected": 1.0, "clip": 0.3, "noise": 0.0, "stream": torch.Generator()}
    found = [
        private_gradient(
            Workspace(module, Layout.of(module), torch.device("cpu")), given, labels, **settings
        )[0]
        for module, given in (
            (named, {"left": inputs[:, :2], "right": inputs[:, 2:]}),
            (plain, inputs),
        )
    ]
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-6)
