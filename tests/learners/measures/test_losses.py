"""Losses: those of torch, of single samples as well as of batches."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")

from torch.nn import functional  # noqa: E402

from coalitions.errors import InvalidInputError  # noqa: E402
from learners.data.client_data import IGNORED, Targets  # noqa: E402
from learners.measures.losses import criterion_of  # noqa: E402

STREAM = torch.Generator().manual_seed(0)
SCORES = torch.randn(9, 4, generator=STREAM)
LABELS = torch.randint(0, 4, (9,), generator=STREAM)
SEVERAL = (torch.rand(9, 4, generator=STREAM) < 0.5).float()
NUMBERS = torch.randn(9, 4, generator=STREAM)
TOKENS = torch.randint(0, 4, (3, 5), generator=STREAM)
TOKEN_SCORES = torch.randn(3, 5, 4, generator=STREAM)

CASES = {
    "cross-entropy": (Targets("classification", 4), SCORES, LABELS, functional.cross_entropy),
    "bce": (
        Targets("multi-label", 4),
        SCORES,
        SEVERAL,
        functional.binary_cross_entropy_with_logits,
    ),
    "mse": (Targets("regression", 4), SCORES, NUMBERS, functional.mse_loss),
    "huber": (Targets("regression", 4), SCORES, NUMBERS, functional.huber_loss),
}


@pytest.mark.parametrize("name", CASES)
def test_a_loss_is_torchs_and_the_mean_of_its_samples(name):
    targets, outputs, truth, expected = CASES[name]
    loss = criterion_of(name, targets)
    torch.testing.assert_close(loss.mean(outputs, truth), expected(outputs, truth))
    alone = [expected(outputs[i : i + 1], truth[i : i + 1]) for i in range(9)]
    torch.testing.assert_close(loss.each(outputs, truth), torch.stack(alone))
    torch.testing.assert_close(loss.total(outputs, truth), torch.stack(alone).sum())


def test_one_number_may_come_as_a_column():
    loss = criterion_of("mse", Targets("regression", 1))
    found = loss.mean(NUMBERS[:, :1], NUMBERS[:, 1])
    torch.testing.assert_close(found, functional.mse_loss(NUMBERS[:, 0], NUMBERS[:, 1]))


def test_tokens_that_are_padding_do_not_count():
    truth = TOKENS.clone()
    truth[0, 2:] = IGNORED
    loss = criterion_of("auto", Targets("next-token", 4))
    kept = truth != IGNORED
    expected = functional.cross_entropy(TOKEN_SCORES[kept], truth[kept])
    torch.testing.assert_close(loss.mean(TOKEN_SCORES, truth), expected)
    first = functional.cross_entropy(TOKEN_SCORES[0, :2], truth[0, :2])
    torch.testing.assert_close(loss.each(TOKEN_SCORES, truth)[0], first)


def test_a_rare_class_weighs_as_much_as_a_frequent_one():
    known = torch.tensor([0, 0, 0, 2])
    loss = criterion_of("balanced-cross-entropy", Targets("classification", 4))
    own = loss.for_client(known, 4)
    weights = torch.tensor([4 / 6, 0.0, 2.0, 0.0])
    truth = torch.tensor([0, 2, 2, 0, 0, 0, 0, 0, 0])
    torch.testing.assert_close(
        own.mean(SCORES, truth), functional.cross_entropy(SCORES, truth, weights)
    )
    plain = functional.cross_entropy(SCORES, truth)
    torch.testing.assert_close(loss.mean(SCORES, truth), plain)  # what results report


def test_a_function_of_the_users_may_give_one_number_or_one_for_each_sample():
    targets = Targets("classification", 4)
    batch = criterion_of(functional.cross_entropy, targets)
    single = criterion_of(
        lambda outputs, truth: functional.cross_entropy(outputs, truth, reduction="none"), targets
    )
    plain = criterion_of("auto", targets)
    for own in (batch, single):
        torch.testing.assert_close(own.mean(SCORES, LABELS), plain.mean(SCORES, LABELS))
        torch.testing.assert_close(own.each(SCORES, LABELS), plain.each(SCORES, LABELS))


def test_a_loss_for_other_targets_is_refused():
    with pytest.raises(InvalidInputError, match="mse is not for classification; there are: bal"):
        criterion_of("mse", Targets("classification", 4))
