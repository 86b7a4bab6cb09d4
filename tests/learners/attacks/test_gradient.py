"""Inversion of uploads: what a step of SGD gives away, and noise takes back."""

import pytest
import torch
from torch import nn

from learners.attacks.gradient_inversion import (
    gradient_from_upload,
    inferred_label,
    invert,
    likeness,
    total_variation_of,
)
from learners.client.client import answer
from learners.client.tasks import train
from learners.models import build_model
from learners.privacy.mechanism import Privacy
from learners.rows.parameters import Layout
from learners.settings.config import RunConfig
from tests.learners import tiny, toy

SHAPE = (1, 10, 10)


@pytest.fixture
def scene():
    """Return a network, its model, a smooth picture with its label, and its gradient."""
    module = build_model("lenet-dlg", shape=SHAPE, n_classes=4, seed=1)
    layout = Layout.of(module)
    at = torch.linspace(-1, 1, 10)
    image = (at[:, None] * at + 0.3 * at)[None, None].clamp(-1, 1)
    label = torch.tensor([2])
    loss = nn.functional.cross_entropy(module(image), label)
    parts = torch.autograd.grad(loss, list(module.parameters()))
    return module, layout.pack(module), image, label, torch.cat([p.reshape(-1) for p in parts])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("method", "steps"), [("dlg", 15), ("cosine", 300)])
def test_a_picture_is_recovered_from_its_gradient_and_not_from_a_noisy_one(scene, method, steps):
    module, model, image, label, gradient = scene
    assert inferred_label(gradient, Layout.of(module)) == 2
    found = {}
    for noise in (0.0, 1.0):
        noisy = gradient + noise * torch.randn(
            len(gradient), generator=torch.Generator().manual_seed(0)
        )
        given = invert(
            module, model, noisy, SHAPE, label, method=method, steps=steps, bounds=(-1, 1),
            total_variation=1e-4,
        )  # fmt: skip
        found[noise] = likeness(image[0], given.images[0], 2.0)[0]
    assert found[0.0] > 18
    assert found[1.0] < 12


def test_what_a_client_uploads_after_one_step_is_its_gradient():
    here = toy.site(RunConfig(clients=1, lr=0.5, batch_size=50, local_epochs=1))
    received = here.initial
    sent = answer(here, train, 0, 1, {"model": received}, {}).reply["model"]
    gradient = gradient_from_upload(received, sent, 0.5, here.workspace.layout)
    images, labels = here.data[0].train.take(torch.arange(20))
    here.workspace.load(received)
    loss = nn.functional.cross_entropy(here.workspace.module(images), labels)
    torch.testing.assert_close(gradient, here.workspace.backward(loss), rtol=1e-3, atol=1e-5)


def test_a_private_upload_is_not_the_gradient():
    here = tiny.site("fedavg", batch_size=50)
    plain = answer(here, train, 0, 1, {"model": here.initial}, {}).reply["model"]
    here.privacy = Privacy("updates", 1.0, 1.0, 1e-5)
    noisy = answer(here, train, 0, 1, {"model": here.initial}, {}).reply["model"]
    assert float((noisy - plain).norm()) > float((plain - here.initial).norm())


def test_likeness_of_a_picture_with_itself_and_with_a_shifted_one():
    image = torch.rand(1, 12, 12, generator=torch.Generator().manual_seed(0))
    psnr, ssim = likeness(image, image + 0.1, 1.0)
    assert psnr == pytest.approx(20.0, abs=1e-4)  # 10 log10(1 / 0.01)
    assert ssim < 1
    assert likeness(image, image.flip(1), 1.0)[1] < 0.5


def test_total_variation_counts_both_directions():
    assert float(total_variation_of(torch.zeros(1, 1, 3, 3))) == 0
    steps = torch.tensor([[[[0.0, 1.0], [2.0, 3.0]]]])
    assert float(total_variation_of(steps)) == 3.0
