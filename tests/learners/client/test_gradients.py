"""Gradients that are found at once are those that clients find one after the other."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import learners.client.gradients as gradients  # noqa: E402
import learners.client.training as training  # noqa: E402
from learners.client.client import Client  # noqa: E402
from learners.client.gradients import (  # noqa: E402
    Gradients,
    LiveMemory,
)
from learners.client.stacked_training import Stacking  # noqa: E402
from learners.measures.goal import goal_of  # noqa: E402
from learners.models.network import build_model, seeded  # noqa: E402
from learners.settings.config import RunConfig  # noqa: E402
from tests.learners import toy  # noqa: E402
from tests.learners.client.test_stacked import Branching, Dropping  # noqa: E402

SIZES = (20, 7, 13, 20, 1)
COUNTS = (3, 1, 2, 1, 4)
"""Samples and models of each client."""


@pytest.fixture
def doubles():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def questions(sizes=SIZES, counts=COUNTS, *, module=None, training=False, loss="auto"):
    """Return what clients are asked at models of their own."""
    here = toy.site(RunConfig(clients=len(sizes)), sizes, module=module)
    here.workspace.goal = goal_of(here.targets, loss)
    stream = torch.Generator().manual_seed(0)
    return [
        Gradients(
            client,
            here.initial + torch.randn((counts[i], len(here.initial)), generator=stream) / 4,
            client.data.train,
            training,
        )
        for i, client in enumerate(Client(here, i, 1) for i in range(len(sizes)))
    ]


@pytest.mark.parametrize("chunk", [200, 8])
@pytest.mark.parametrize("batch_norm", [False, True])
def test_gradients_are_those_of_clients_alone(chunk, batch_norm, doubles, monkeypatch):
    monkeypatch.setattr(gradients, "EVALUATION_CHUNK", chunk)
    monkeypatch.setattr(training, "EVALUATION_CHUNK", chunk)
    asked = questions(module=toy.network(batch_norm=True) if batch_norm else None)
    stacking = Stacking()
    for found, each in zip(stacking.carry_out(asked), asked, strict=True):
        torch.testing.assert_close(found, each.alone(), rtol=1e-9, atol=1e-12)
    assert not stacking.alone


@pytest.mark.parametrize("name", ["mlp", "lenet-5"])
def test_the_same_bits_whatever_fits_in_memory(name, monkeypatch):
    if name == "lenet-5":
        monkeypatch.setattr(toy, "SHAPE", (1, 28, 28))
    module = build_model(name, shape=toy.SHAPE, n_classes=toy.N_CLASSES, seed=0)
    asked = questions(module=module)
    torch.set_num_threads(1)
    whole = Stacking().carry_out(asked)
    for one, other in zip(whole, Stacking(most_bytes=1).carry_out(asked), strict=True):
        assert torch.equal(one, other)


class Counter(TorchDispatchMode):
    """Counts operations."""

    n = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.n += 1
        return function(*args, **(kwargs or {}))


def test_operations_of_a_pass_do_not_grow_with_clients_or_models():
    counts = []
    for n, models in ((2, 1), (40, 1), (12, 5)):
        asked = questions((10,) * n, (models,) * n)
        stack = gradients._stack(gradients._entries(asked), 10)
        with Counter() as counted:
            stack.slopes(0)
        counts.append(counted.n)
    assert counts[0] > 20
    assert counts[1:] == pytest.approx([counts[0]] * 2, rel=0.1)


def test_memory_is_what_was_predicted_within_a_fifth(monkeypatch):
    monkeypatch.setattr(toy, "SHAPE", (1, 28, 28))
    module = build_model("lenet-5", shape=toy.SHAPE, n_classes=toy.N_CLASSES, seed=0)
    asked = questions((18,) * 6, (2,) * 6, module=module)
    entries = gradients._entries(asked)
    predicted = 12 * gradients.Differentiation(1)._bytes_of_one(entries)
    stacking = Stacking(most_bytes=1 << 40)
    stacking.carry_out(asked)
    with LiveMemory() as measured:
        stacking.carry_out(asked)
    assert predicted == pytest.approx(measured.peak, rel=0.2)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"module": seeded(Dropping, 0), "training": True}, "gradients with dropout"),
        ({"module": toy.network(batch_norm=True), "training": True}, "batch norm"),
        ({"loss": "balanced-cross-entropy"}, "the loss balanced-cross-entropy"),
        ({"module": seeded(Branching, 0)}, "torch cannot stack this network"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_stacked_is_found_alone_and_counted(more, reason):
    asked = questions(**more)
    stacking = Stacking()
    assert stacking.carry_out(asked) == [None] * len(asked)
    ((told, count),) = stacking.alone.items()
    assert told.startswith(reason)
    assert count == len(asked)
    assert all(len(each.alone()) == n for each, n in zip(asked, COUNTS, strict=True))


def test_on_the_cpu_gradients_are_found_alone_by_choice():
    stacking = Stacking(tests=False)
    assert stacking.carry_out(questions()) == [None] * len(SIZES)
    assert sum(stacking.alone.values()) == len(SIZES)


def test_a_single_model_is_nobodys_stack():
    stacking = Stacking()
    assert stacking.carry_out(questions(SIZES[:1], (1,))) == [None]
    assert not stacking.alone
