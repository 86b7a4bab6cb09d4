"""Pictures that are mirrored or moved in training, and only there."""

import pytest
import torch

from coalitions.errors import InvalidInputError
from learners.client.randomness import taking, varied
from learners.client.training import batches, fit, score_model
from learners.runs.prepare import prepare
from learners.settings.config import RunConfig
from tests.learners import toy


def pictures(n=40, height=16, width=8):
    return torch.arange(n * 2 * height * width).float().reshape(n, 2, height, width)


def test_a_flip_is_a_mirror_for_about_half():
    before = pictures()
    after = varied(before, {"flip"}, torch.Generator().manual_seed(0))
    mirrored = [torch.equal(a, b.flip(-1)) for a, b in zip(after, before, strict=True)]
    kept = [torch.equal(a, b) for a, b in zip(after, before, strict=True)]
    assert all(a != b for a, b in zip(mirrored, kept, strict=True))
    assert 10 < sum(mirrored) < 30


def test_a_crop_is_a_window_of_the_picture_with_repeated_edges():
    before = pictures()
    after = varied(before, {"crop"}, torch.Generator().manual_seed(0))
    wide = torch.nn.functional.pad(before, (1, 1, 2, 2), mode="replicate")
    found = set()
    for k in range(len(before)):
        windows = {
            (dy, dx): wide[k, :, dy : dy + 16, dx : dx + 8] for dy in range(5) for dx in range(3)
        }
        (window,) = (at for at, each in windows.items() if torch.equal(each, after[k]))
        found.add(window)
    assert len(found) > 8  # of 15


def client_with(**settings):
    return toy.client(RunConfig(clients=1, local_epochs=1, batch_size=6, lr=0.1, **settings))


def test_training_sees_augmented_batches_in_a_seeded_order_and_tests_do_not():
    client = client_with(augment="flip,crop")
    take = taking(client, client.data.train, "train")
    workspace = client.workspace
    workspace.load(client.site.initial)
    workspace.module.train()
    for chosen in batches(client, 20, "train"):
        inputs, labels = take(chosen)
        plain, _ = client.data.train.take(chosen)
        assert not torch.equal(inputs, plain)
        workspace.descend(torch.nn.functional.cross_entropy(workspace.module(inputs), labels), 0.1)
    expected = workspace.saved()
    assert torch.equal(fit(client, client.site.initial).model, expected)
    plain = client_with()
    assert not torch.equal(fit(plain, client.site.initial).model, expected)
    scores = [score_model(each.workspace, expected, each.data.test) for each in (client, plain)]
    assert scores[0].loss == scores[1].loss


def test_data_other_than_pictures_are_refused():
    with pytest.raises(InvalidInputError, match="augment is for pictures"):
        prepare(RunConfig.of({"dataset": "wine", "clients": 2, "augment": "flip"}))
