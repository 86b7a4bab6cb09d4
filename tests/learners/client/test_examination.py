"""Clients that test at once find what they would have found one after the other."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import learners.client.stacked_testing as examination  # noqa: E402
from learners.client.client import Client, Samples, Site  # noqa: E402
from learners.client.model_games import Exam, Outputs  # noqa: E402
from learners.client.stacked_training import Stacking  # noqa: E402
from learners.data.client_data import (  # noqa: E402
    IGNORED,
    ClientData,
    FederatedData,
    Split,
    Targets,
    of_pictures,
)
from learners.measures.goal import goal_of  # noqa: E402
from learners.rows.parameters import Layout  # noqa: E402
from learners.rows.workspace import Workspace  # noqa: E402
from learners.settings.config import RunConfig  # noqa: E402
from tests.learners import toy  # noqa: E402
from tests.learners.client.test_stacked import Branching  # noqa: E402

SIZES = (20, 7, 13, 20, 1)


@pytest.fixture
def doubles():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def exams(n_models=1, *, sizes=SIZES, module=None, metrics=(), watched=False):
    """Return what clients are asked about models of their own, on data of their own."""
    here = toy.site(RunConfig(clients=len(sizes)), sizes, module=module)
    here.workspace.goal = goal_of(Targets("classification", toy.N_CLASSES))
    stream = torch.Generator().manual_seed(0)
    chosen = tuple(here.workspace.goal.metric(name) for name in metrics)
    return [
        Exam(
            client,
            here.initial + torch.randn((n_models, len(here.initial)), generator=stream),
            client.data.train,
            chosen,
        )
        for client in (Client(here, i, 1, watched=watched) for i in range(len(sizes)))
    ]


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert (one.correct, one.counted, one.n) == (other.correct, other.counted, other.n)
        assert one.loss == pytest.approx(other.loss, rel=1e-9)
        assert one.values == pytest.approx(other.values, rel=1e-9, nan_ok=True)


@pytest.mark.parametrize("samples_at_once", [1 << 15, 16])
@pytest.mark.parametrize("n_models", [1, 4])
def test_scores_are_those_of_clients_alone(n_models, samples_at_once, doubles, monkeypatch):
    monkeypatch.setattr(examination, "SAMPLES_AT_ONCE", samples_at_once)
    asked = exams(n_models, metrics=("accuracy", "macro-f1"))
    stacking = Stacking()
    for found, exam in zip(stacking.carry_out(asked), asked, strict=True):
        assert_same(found, exam.alone())
    assert not stacking.alone


@pytest.mark.parametrize("samples_at_once", [1 << 15, 16])
@pytest.mark.parametrize("part", [None, "4"])
@pytest.mark.parametrize("n_models", [1, 4])
def test_outputs_are_those_of_clients_alone(n_models, part, samples_at_once, doubles, monkeypatch):
    monkeypatch.setattr(examination, "SAMPLES_AT_ONCE", samples_at_once)
    asked = [Outputs(each.client, each.models, each.data, part) for each in exams(n_models)]
    expected = [each.alone() for each in asked]
    for most in (1 << 30, 1):
        for found, wanted in zip(Stacking(most_bytes=most).carry_out(asked), expected, strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_models", [1, 3])
def test_memory_for_two_clients_gives_the_same_scores(n_models, doubles):
    asked = exams(n_models)
    for found, exam in zip(Stacking(most_bytes=1).carry_out(asked), asked, strict=True):
        assert_same(found, exam.alone())


def test_one_model_for_everyone_is_not_copied(doubles, monkeypatch):
    asked = exams()
    model = asked[0].models
    asked = [Exam(each.client, model, each.data) for each in asked]
    seen = []
    named = examination._Sitting._named
    monkeypatch.setattr(
        examination._Sitting,
        "_named",
        lambda self, rows: seen.append(len(rows)) or named(self, rows),
    )
    for found, exam in zip(Stacking().carry_out(asked), asked, strict=True):
        assert_same(found, exam.alone())
    assert seen == [1]


class Tokens(torch.nn.Module):
    """Scores for each of eight tokens, of the rows of a picture."""

    def __init__(self) -> None:
        super().__init__()
        self.head = torch.nn.Linear(8, 4)

    def forward(self, inputs):
        return self.head(inputs[:, 0])


@pytest.mark.parametrize("kind", ["next-token", "regression", "multi-label"])
def test_tokens_numbers_and_labels_are_counted_alike(kind, doubles):
    rng = np.random.default_rng(0)
    targets = Targets(kind, 4 if kind != "regression" else 1)

    def some(n):
        inputs = torch.from_numpy(rng.normal(size=(n, *toy.SHAPE)))
        if kind == "next-token":
            wanted = torch.from_numpy(rng.integers(0, 4, (n, 8)))
            wanted[:, 6:] = IGNORED
        elif kind == "regression":
            wanted = torch.from_numpy(rng.normal(size=n))
        else:
            wanted = torch.from_numpy(rng.integers(0, 2, (n, 4))).double()
        return Split(inputs, wanted)

    clients = tuple(ClientData(some(n), some(3), some(3)) for n in SIZES)
    data = FederatedData("some", clients, of_pictures(toy.SHAPE), targets)
    module = (
        Tokens()
        if kind == "next-token"
        else torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, targets.n_outputs))
    )
    workspace = Workspace(module, Layout.of(module), torch.device("cpu"), goal_of(targets))
    here = Site(RunConfig(clients=len(SIZES)), None, workspace, data)
    asked = [
        Exam(Client(here, i, 1), torch.stack([here.initial, -here.initial]), here.data[i].train)
        for i in range(len(SIZES))
    ]
    for found, exam in zip(Stacking().carry_out(asked), asked, strict=True):
        assert_same(found, exam.alone())


class Counter(TorchDispatchMode):
    """Counts operations."""

    n = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.n += 1
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("n_models", [1, 7])
@pytest.mark.parametrize("question", [Exam, Outputs])
def test_operations_do_not_grow_with_the_number_of_clients(n_models, question, monkeypatch):
    # What is handed to each client is a view of what was found for all, which is no work.
    monkeypatch.setattr(
        examination._Sitting, "outputs", lambda self: [self._pass(0, 10, len(self._some))] * 40
    )
    counts = []
    for n_clients in (2, 40):
        asked = [
            question(each.client, each.models, each.data)
            for each in exams(n_models, sizes=(10,) * n_clients)
        ]
        with Counter() as counted:
            Stacking().carry_out(asked)
        counts.append(counted.n)
    assert counts[1] == pytest.approx(counts[0], rel=0.1)


def test_what_cannot_be_stacked_is_tested_alone_and_counted_unless_watched():
    asked = exams(module=Branching())
    stacking = Stacking()
    assert stacking.carry_out(asked) == [None] * len(asked)
    ((reason, count),) = stacking.alone.items()
    assert "torch cannot stack this network" in reason
    assert count == len(asked)
    stacking = Stacking()
    stacking.carry_out(exams(module=Branching(), watched=True))
    assert not stacking.alone


def test_a_client_without_data_is_not_in_the_stack():
    asked = exams()
    nothing = Samples(Split(torch.empty(0, *toy.SHAPE), torch.empty(0).long()), torch.device("cpu"))
    asked[2] = Exam(asked[2].client, asked[2].models, nothing)
    given = Stacking().carry_out(asked)
    assert given[2] is None
    assert asked[2].alone()[0].accuracy == 0.0
    assert all(each is not None for number, each in enumerate(given) if number != 2)
