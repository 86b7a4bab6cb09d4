import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from coalitions.errors import InvalidInputError
from learners.rows.parameters import Layout, cosines, distances, weighted_mean, with_noise
from learners.rows.workspace import Workspace
from tests.learners import toy


def test_a_row_holds_parameters_then_floating_buffers():
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    layout = Layout.of(module)
    assert list(layout.shapes) == [
        "0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var",
    ]  # fmt: skip
    assert (layout.n_parameters, layout.size) == (6 + 3 + 3 + 3, 15 + 6)
    assert layout.columns["1.running_var"] == slice(18, 21)


def test_packing_and_unpacking_are_inverse():
    one, other = toy.network(0, batch_norm=True), toy.network(1, batch_norm=True)
    layout = Layout.of(one)
    row = layout.pack(one)
    assert torch.equal(layout.pack(layout.unpack(row, other)), row)


def test_a_module_is_a_view_of_the_workspaces_row():
    workspace = toy.client().workspace
    workspace.row.zero_()
    assert all(not p.detach().any() for p in workspace.module.parameters())


def test_gradients_stay_views_of_the_flat_gradient():
    workspace = toy.client().workspace
    images = torch.ones(2, *toy.SHAPE)
    workspace.backward(workspace.module(images).square().sum())
    flat = workspace.gradient.clone()
    for _ in range(2):
        assert torch.equal(workspace.backward(workspace.module(images).square().sum()), flat)
    parts = [p.grad.reshape(-1) for p in workspace.module.parameters()]
    assert torch.equal(torch.cat(parts), flat)
    assert float(flat.abs().max()) > 0


def test_columns_of_a_classifier_and_the_rest_cover_a_row_once():
    layout = Layout.of(toy.network(batch_norm=True))
    head = {name for name in layout.shapes if name.startswith("5.")}
    both = torch.cat([layout.columns_of(head), layout.columns_of(set(layout.shapes) - head)])
    assert sorted(both.tolist()) == list(range(layout.size))
    assert len(layout.columns_of(head)) == 18 * 3 + 3


def test_a_row_of_the_wrong_length_is_refused():
    workspace = Workspace(toy.network(), Layout.of(toy.network()), torch.device("cpu"))
    with pytest.raises(InvalidInputError, match="row of 77 numbers"):
        workspace.load(torch.zeros(5))


@given(st.integers(1, 6), st.integers(0, 1000))
def test_weighted_mean_is_the_sum_of_weighted_rows(n, seed):
    rng = np.random.default_rng(seed)
    rows, weights = rng.normal(size=(n, 4)), rng.random(n) + 0.01
    expected = sum(w * row for w, row in zip(weights, rows, strict=True)) / weights.sum()
    found = weighted_mean(torch.from_numpy(rows), torch.from_numpy(weights))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-14)


def test_the_mean_of_one_model_is_that_model_bit_for_bit():
    row = torch.randn(1, 1000, generator=torch.Generator().manual_seed(0))
    assert torch.equal(weighted_mean(row, torch.tensor([7.0])), row[0])


@pytest.mark.parametrize("weights", [[-1.0, 2.0], [0.0, 0.0], [1.0]])
def test_bad_weights_are_refused(weights):
    with pytest.raises(InvalidInputError, match="none negative"):
        weighted_mean(torch.zeros(2, 3), torch.tensor(weights))


def test_distances_of_almost_equal_models_are_not_rounded_away():
    rows = torch.full((2, 1000), 100.0)
    rows[1, 0] += 1e-3
    exact = float(rows[1, 0] - rows[0, 0])
    assert float(distances(rows)[0, 1]) == pytest.approx(exact, rel=1e-6)
    many = torch.randn(30, 5, generator=torch.Generator().manual_seed(1))
    by_hand = (many[:, None] - many[None]).square().sum(-1).sqrt()
    torch.testing.assert_close(distances(many), by_hand)


def test_cosines_by_hand():
    rows = torch.tensor([[3.0, 4.0], [4.0, 3.0], [0.0, 0.0], [-3.0, -4.0]])
    expected = [[1, 0.96, 0, -1], [0.96, 1, 0, -0.96], [0, 0, 1, 0], [-1, -0.96, 0, 1]]
    torch.testing.assert_close(cosines(rows), torch.tensor(expected))


def test_noise_has_its_deviation():
    noisy = with_noise(torch.zeros(1_000_000), 2.5, torch.Generator().manual_seed(3))
    assert float(noisy.std()) == pytest.approx(2.5, rel=5e-3)
    assert float(noisy.mean()) == pytest.approx(0.0, abs=0.01)
