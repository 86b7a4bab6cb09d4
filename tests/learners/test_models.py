"""The networks: sizes from the papers, parts, seeds."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from coalitions.errors import InvalidInputError, MissingDependencyError, UnknownNameError
from learners.data.sources.torchvision_sets import torchvision_module
from learners.models import MODELS, Network, build_model, classifier_parameters
from learners.models.convolutional import pooled_convolution

SMALL = ["mlp", "lenet-5", "cnn", "cffl-cnn", "lenet-64"]


def size(module: nn.Module, names: frozenset[str] | None = None) -> int:
    return sum(p.numel() for name, p in module.named_parameters() if names is None or name in names)


@pytest.mark.parametrize(
    ("name", "shape", "n_parameters"),
    [
        ("mlp", (1, 28, 28), 199_210),  # McMahan et al. 2017, section 3: "199,210 total parameters"
        ("cnn", (1, 28, 28), 1_663_370),  # the same: "1,663,370 total parameters"
        ("lenet-5", (1, 28, 28), 61_706),
        ("lenet-5", (1, 32, 32), 61_706),  # the original's 32×32 has the same layers
        ("cffl-cnn", (3, 28, 28), 760 + 5_020 + 321 * 50 + 51 * 10),
        ("cffl-cnn-dropout", (3, 28, 28), 760 + 5_020 + 321 * 50 + 51 * 10),
        ("lenet-64", (3, 64, 64), 4_864 + 102_464 + 10_817 * 384 + 385 * 192 + 193 * 10),
    ],
)
def test_golden_parameter_counts(name, shape, n_parameters):
    assert size(build_model(name, shape=shape, n_classes=10, seed=0)) == n_parameters


def test_golden_geometry_of_the_papers():
    cffl = build_model("cffl-cnn", shape=(3, 28, 28), n_classes=10, seed=0)
    layers = [part for part in cffl.modules() if isinstance(part, nn.Linear)]
    assert [(p.in_features, p.out_features) for p in layers] == [(320, 50), (50, 10)]
    lenet = build_model("lenet-64", shape=(3, 64, 64), n_classes=10, seed=0)
    layers = [part for part in lenet.modules() if isinstance(part, nn.Linear)]
    assert [(p.in_features, p.out_features) for p in layers] == [
        (64 * 13 * 13, 384),
        (384, 192),
        (192, 10),
    ]


@pytest.mark.parametrize("name", ["resnet-34", "vgg-19"])
def test_torchvisions_networks_have_torchvisions_sizes(name):
    models = torchvision_module("models")
    with torch.device("meta"):  # sizes without numbers
        ours = MODELS[name]((3, 224, 224), 1000)
        theirs = getattr(models, name.replace("-", ""))(weights=None)
    assert size(ours) == size(theirs)
    assert size(ours) == {"resnet-34": 21_797_672, "vgg-19": 143_667_240}[name]


def test_classifier_shares_of_the_pfedsv_paper():
    # It states 2.3 % for ResNet-34 and 89.74 % for VGG-19, with 1000 classes.
    with torch.device("meta"):
        resnet, vgg = (MODELS[name]((3, 224, 224), 1000) for name in ("resnet-34", "vgg-19"))
    assert size(resnet, classifier_parameters(resnet)) / size(resnet) == pytest.approx(
        0.0235, abs=1e-4
    )
    dense = classifier_parameters(vgg, cut="dense")
    assert size(vgg, dense) / size(vgg) == pytest.approx(0.8606, abs=1e-4)


def test_resnet_computes_what_torchvisions_does():
    ours = build_model("resnet-34", shape=(3, 32, 32), n_classes=10, seed=0).eval()
    theirs = torchvision_module("models").resnet34(weights=None, num_classes=10).eval()
    theirs.load_state_dict(dict(zip(theirs.state_dict(), ours.state_dict().values(), strict=True)))
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(ours(images), theirs(images))


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 16, 16), (3, 28, 28), (3, 32, 32), (2, 9, 30)])
def test_networks_take_pictures_of_any_shape(name, shape):
    model = build_model(name, shape=shape, n_classes=7, seed=0)
    images = torch.zeros(3, *shape)
    assert model(images).shape == (3, 7)
    assert isinstance(model, Network)
    assert torch.equal(model.head(model.represent(images)), model(images))


def test_resnet_takes_small_grey_pictures():
    model = build_model("resnet-34", shape=(1, 8, 8), n_classes=4, seed=0)
    assert model(torch.zeros(2, 1, 8, 8)).shape == (2, 4)


@pytest.mark.slow
def test_vgg_takes_small_grey_pictures():
    model = build_model("vgg-19", shape=(1, 28, 28), n_classes=4, seed=0)
    assert model(torch.zeros(2, 1, 28, 28)).shape == (2, 4)


@pytest.mark.parametrize("name", SMALL)
def test_the_seed_decides_the_weights_and_nothing_else_is_touched(name):
    def made(seed: int) -> list[torch.Tensor]:
        return list(build_model(name, shape=(1, 8, 8), n_classes=3, seed=seed).parameters())

    torch.manual_seed(7)
    before = torch.get_rng_state()
    one = made(0)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(3)  # another state of the global generator
    assert all(torch.equal(a, b) for a, b in zip(one, made(0), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(one, made(1), strict=True))


def test_pool_before_relu_is_exactly_relu_before_pool(rng):
    convolution, pool, relu = pooled_convolution(3, 8, 2)
    images = torch.from_numpy(rng.standard_normal((4, 3, 12, 12))).float().requires_grad_()
    values = convolution(images)
    cheap, usual = relu(pool(values)), pool(relu(values))
    assert torch.equal(cheap, usual)
    one, other = (
        torch.autograd.grad(y.square().sum(), images, retain_graph=True)[0] for y in (cheap, usual)
    )
    assert torch.equal(one, other)


@pytest.mark.parametrize("name", SMALL)
def test_features_and_classifier_are_all_of_the_network(name):
    model = build_model(name, shape=(1, 28, 28), n_classes=10, seed=0)
    head, dense = classifier_parameters(model), classifier_parameters(model, cut="dense")
    assert head == {"head.weight", "head.bias"}
    assert head < dense
    assert dense <= set(model.state_dict())
    assert model.head.weight.shape[0] == model.head.bias.shape[0] == 10  # one vector per class


def test_dropout_drops_channels_and_hidden_units_in_training_only():
    plain, dropping = (
        build_model(name, shape=(3, 28, 28), n_classes=10, seed=0)
        for name in ("cffl-cnn", "cffl-cnn-dropout")
    )
    plain.load_state_dict(
        dict(zip(plain.state_dict(), dropping.state_dict().values(), strict=True))
    )
    images = torch.randn(50, 3, 28, 28, generator=torch.Generator().manual_seed(0))
    assert torch.equal(plain.eval()(images), dropping.eval()(images))

    dropping.train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        maps, whole = dropping.features(images), plain.features(images)
        units = dropping.hidden(whole)
    kept = maps.reshape(50, 20, 16).ne(0).any(2)
    assert torch.equal(maps, (2 * whole.reshape(50, 20, 16) * kept[..., None]).flatten(1))
    alive = plain.hidden(whole) > 0
    assert 0.4 < units.ne(0)[alive].float().mean() < 0.6
    # Half of the channels, drawn for each image anew.
    assert 0.4 < kept.float().mean() < 0.6
    assert not torch.equal(kept[0], kept[1])


def test_the_classifier_of_any_module_is_its_last_linear_layer():
    own = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    assert classifier_parameters(own) == {"3.weight", "3.bias"}
    assert classifier_parameters(nn.Linear(2, 2)) == {"weight", "bias"}
    with pytest.raises(InvalidInputError, match="no linear layer"):
        classifier_parameters(nn.Sequential(nn.Conv2d(1, 1, 1)))
    with pytest.raises(InvalidInputError, match="not a learners"):
        classifier_parameters(own, cut="dense")


def test_bad_demands_get_one_sentence():
    with pytest.raises(UnknownNameError, match="did you mean 'lenet-5'"):
        build_model("lenet5", shape=(1, 28, 28), n_classes=10, seed=0)
    with pytest.raises(InvalidInputError, match="positive"):
        build_model("mlp", shape=(1, 28, 28), n_classes=0, seed=0)
    with pytest.raises(InvalidInputError, match="too small"):
        build_model("cnn", shape=(1, 1, 8), n_classes=2, seed=0)


def test_a_missing_torchvision_is_said_in_one_sentence():
    with pytest.raises(MissingDependencyError, match="pip install torchvision"):
        torchvision_module("no_such_module")
