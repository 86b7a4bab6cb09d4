"""A picture is read off the first dense layer, or found behind convolutions with soft maxima."""

import pytest
import torch
from torch import nn

from cli.report.data_pictures import draw_inversion
from coalitions.errors import InvalidInputError
from learners.attacks.gradient_inversion import _softened, invert_features, likeness
from learners.attacks.inversion import inversion_of
from learners.models import build_model
from learners.models.network import Network
from learners.rows.parameters import Layout
from learners.settings.config import RunConfig

SHAPE = (1, 8, 8)


def gradient_of(module, image, label=1):
    loss = nn.functional.cross_entropy(module(image), torch.tensor([label]))
    parts = torch.autograd.grad(loss, list(module.parameters()))
    return torch.cat([part.reshape(-1) for part in parts])


@pytest.fixture
def image():
    at = torch.linspace(-1, 1, 8)
    return (at[:, None] * at + 0.3 * at)[None, None].clamp(-1, 1)


def test_a_dense_first_layer_gives_the_picture_away(image):
    module = build_model("mlp", shape=SHAPE, n_classes=4, seed=0)
    model = Layout.of(module).pack(module)
    found = invert_features(module, model, gradient_of(module, image), SHAPE)
    torch.testing.assert_close(found.images, image, rtol=1e-4, atol=1e-4)


def test_a_picture_is_found_behind_a_convolution_a_pool_and_a_relu(image):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = Network(
            nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten()),
            nn.Identity(),
            nn.Linear(8 * 16, 4),
        )
    model = Layout.of(module).pack(module)
    gradient = gradient_of(module, image)
    found = invert_features(module, model, gradient, SHAPE, steps=150, attempts=4, stages=2)
    psnr = likeness(image[0], found.images[0], 2.0)[0]
    assert psnr > 20
    noise = torch.randn(len(gradient), generator=torch.Generator().manual_seed(0))
    blind = invert_features(module, model, gradient + noise, SHAPE, steps=50, attempts=2, stages=1)
    assert likeness(image[0], blind.images[0], 2.0)[0] < psnr - 6


def test_sharp_maxima_are_the_networks_own(image):
    module = build_model("lenet-5", shape=SHAPE, n_classes=4, seed=0)
    soft, sharpen = _softened(module.features)
    sharpen(1e4)
    torch.testing.assert_close(soft(image), module.features(image), rtol=1e-3, atol=1e-4)
    sharpen(1.0)
    assert not torch.allclose(soft(image), module.features(image), atol=1e-2)


def test_networks_without_features_to_read_are_refused(image):
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 4))
    with pytest.raises(InvalidInputError, match=r"learners\.models\.Network only"):
        invert_features(module, Layout.of(module).pack(module), torch.zeros(260), SHAPE)
    bare = Network(nn.Flatten(), nn.Identity(), nn.Linear(64, 4, bias=False))
    with pytest.raises(InvalidInputError, match="with a bias"):
        invert_features(bare, Layout.of(bare).pack(bare), torch.zeros(256), SHAPE)


def test_an_attack_in_the_setting_of_a_run_and_its_picture(tmp_path):
    config = RunConfig(clients=2, model="mlp", train_size=20, local_epochs=2, partition="iid")
    seen = []
    found = inversion_of(
        config, pictures=2, steps=30, on_picture=lambda at, each: seen.append((at, each))
    )
    about = found.document()
    assert [at for at, _ in seen] == [0, 1]
    assert about["method"] == "features"
    assert min(about["psnr"]) > 60
    assert max(about["noised_psnr"]) < 12
    assert len(about["round_psnr"]) == 10  # after a real round, as it is
    assert (about["mode"], about["noise"], about["clip"]) == ("updates", 1.0, 1.0)
    draw_inversion(found, tmp_path / "inversion.png")
    assert (tmp_path / "inversion.png").read_bytes()[:4] == b"\x89PNG"


def test_the_noise_is_the_runs_own():
    config = RunConfig(
        clients=2, model="mlp", train_size=20, partition="iid", dp="records", noise=3.0, clip=0.5,
        local_epochs=1,
    )  # fmt: skip
    found = inversion_of(config, pictures=1, steps=5)
    assert (found.privacy.mode, found.privacy.noise, found.privacy.clip) == ("records", 3.0, 0.5)
    assert found.document()["noised_psnr"][0] < 12


@pytest.mark.parametrize(
    ("settings", "arguments", "words"),
    [
        ({"optimizer": "adam"}, {}, "off a step of sgd"),
        ({"weight_decay": 0.1}, {}, "the run has weight_decay 0.1"),
        ({"augment": "flip"}, {}, "the run has augment flip"),
        ({}, {"client": 7}, "there is no client 7"),
        ({}, {"pictures": 1000}, "1000 of them cannot"),
    ],
)
def test_attacks_that_cannot_be(settings, arguments, words):
    with pytest.raises(InvalidInputError, match=words):
        inversion_of(RunConfig(clients=2, train_size=20, **settings), **arguments)
