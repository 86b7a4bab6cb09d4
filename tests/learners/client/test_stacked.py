"""Clients that train at once end where they would have ended one after the other."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import learners.client.stacked_training as stacked_module  # noqa: E402
from coalitions.errors import CoalitionError, InvalidInputError  # noqa: E402
from learners.algorithm import ALGORITHMS  # noqa: E402
from learners.client.client import Client  # noqa: E402
from learners.client.gradients import LiveMemory  # noqa: E402
from learners.client.lockstep import in_lockstep  # noqa: E402
from learners.client.stacked_training import Stacking, _Drawn, _Stack  # noqa: E402
from learners.client.training import Fit, batches, fit, fit_alone  # noqa: E402
from learners.models.network import build_model, seeded  # noqa: E402
from learners.runs.run import run  # noqa: E402
from learners.server.local_engine import local_engine  # noqa: E402
from learners.settings.config import RunConfig  # noqa: E402
from learners.task import Reveals, Task  # noqa: E402
from tests.learners import toy  # noqa: E402

OURS = [
    name for name in ALGORITHMS if ALGORITHMS[name].__module__.startswith("learners.algorithms.")
]
SIZES = (20, 7, 13, 20)
"""Different numbers of steps, and last batches that are not full."""


@pytest.fixture
def doubles():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def played(compute, sizes=SIZES, module=None, **settings):
    usual = {"clients": len(sizes), "rounds": 2, "local_epochs": 2, "batch_size": 6, "lr": 0.1}
    config = RunConfig(**(usual | {"workers": 1, "compute": compute} | settings))
    federation = toy.federation(config, sizes, **({"module": module} if module else {}))
    rounds = list(federation.rounds())
    return rounds, federation.memories()


def assert_close(one, other):
    """Compare anything a run keeps: numbers to 1e-9, the rest exactly."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_close(one[key], other[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_close(a, b)
    elif isinstance(one, torch.Tensor):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)
    elif isinstance(one, np.ndarray) and one.dtype.kind == "f":
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-9)
    else:
        assert one == other


def told(rounds):
    """Return what rounds tell, without what is about how they were computed."""
    return [
        {k: v for k, v in each.metrics.items() if "seconds" not in k and k != "not_stacked"}
        for each in rounds
    ]


@pytest.fixture
def tests_at_once(monkeypatch):
    for where in ("server.local_engine", "algorithms.fedc2i"):
        monkeypatch.setattr(f"learners.{where}.pays", lambda device: True)


@pytest.mark.parametrize("algorithm", OURS)
def test_every_method_ends_with_the_models_and_scores_of_sequential_training(
    algorithm, doubles, tests_at_once
):
    options = {"width": 5} if algorithm == "pfedhn" else {}
    alone, memories = played("sequential", algorithm=algorithm, options=options)
    stacked, stacked_memories = played("stacked", algorithm=algorithm, options=options)
    assert_close(memories, stacked_memories)
    assert_close([each.state for each in alone], [each.state for each in stacked])
    assert_close(told(alone), told(stacked))
    assert not any("not_stacked" in each.metrics for each in alone)


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("cffl", {"synergy": "cos"}),
        ("cffl", {"synergy": "cos", "cos_on": "validation", "cos_mode": "training"}),
        ("ifca", {"averaging": "gradient"}),
        ("fedc2i", {"variant": "client"}),
        ("fedc2i", {"variant": "class-global"}),
    ],
    ids=str,
)
def test_gradients_and_influences_are_those_of_sequential_rounds(
    algorithm, options, doubles, tests_at_once
):
    alone, memories = played("sequential", algorithm=algorithm, options=options)
    stacked, stacked_memories = played("stacked", algorithm=algorithm, options=options)
    assert_close(memories, stacked_memories)
    assert_close([each.state for each in alone], [each.state for each in stacked])
    assert_close(told(alone), told(stacked))
    assert not any("not_stacked" in each.metrics for each in stacked)


def test_pairs_of_all_clients_are_fine_tuned_as_one_stack(monkeypatch):
    stacks = []
    usual = stacked_module._Stack.__init__

    def noted(self, some, width):
        usual(self, some, width)
        stacks.append((len(some), len(self._pool)))

    monkeypatch.setattr(stacked_module._Stack, "__init__", noted)
    played("stacked", algorithm="cffl", rounds=1)
    n = len(SIZES)
    assert stacks[-1] == (n * (n - 1), sum(SIZES))  # the data of a client are there once


@pytest.mark.parametrize("how", [{"momentum": 0.5}, {"optimizer": "adam", "lr": 0.01}])
@pytest.mark.parametrize("algorithm", ["fedprox", "fedrep"])
def test_optimisers_keep_their_state_per_client(algorithm, how, doubles):
    alone, memories = played("sequential", algorithm=algorithm, **how)
    stacked, stacked_memories = played("stacked", algorithm=algorithm, **how)
    assert_close(memories, stacked_memories)
    assert_close(told(alone), told(stacked))
    assert not any("not_stacked" in each.metrics for each in stacked)


@pytest.mark.parametrize("algorithm", ["fedavg", "fedprox", "ditto", "fedrep", "fedem", "apfl"])
def test_rounds_tell_what_was_not_stacked_and_why(algorithm):
    rounds, _ = played("stacked", algorithm=algorithm)
    (reasons,) = {tuple(each.metrics.get("not_stacked", {})) for each in rounds}
    if algorithm in ("fedem", "apfl"):
        (reason,) = reasons
        expected = {
            "fedem": "a loss of its own",
            "apfl": "apfl: only fit, tests and gradients of models are stacked",
        }
        assert expected[algorithm] in reason
    else:
        assert reasons == ()


def test_what_cannot_be_stacked_is_trained_alone_to_the_last_bit():
    alone, _ = played("sequential", module=toy.network(batch_norm=True))
    stacked, _ = played("stacked", module=toy.network(batch_norm=True))
    assert torch.equal(alone[-1].state["model"], stacked[-1].state["model"])
    ((told, count),) = stacked[-1].metrics["not_stacked"].items()
    assert (told.split(":")[0], count) == ("batch norm", len(SIZES))


class Dropping(torch.nn.Module):
    """Drops whole channels first, then numbers, and the same part drops twice."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.head = torch.nn.Conv2d(1, 4, 3), torch.nn.Linear(36, toy.N_CLASSES)
        self.channels, self.numbers = torch.nn.Dropout2d(0.4), torch.nn.Dropout(0.3)

    def forward(self, inputs):
        seen = self.numbers(torch.nn.functional.max_pool2d(self.convolution(inputs), 2))
        return self.head(self.numbers(self.channels(seen).relu().flatten(1)))


@pytest.mark.parametrize("algorithm", ["fedavg", "fedrep"])
def test_dropout_drops_what_a_client_alone_would_drop(algorithm, doubles):
    alone, _ = played("sequential", module=seeded(Dropping, 0), algorithm=algorithm)
    stacked, _ = played("stacked", module=seeded(Dropping, 0), algorithm=algorithm)
    assert_close([each.state for each in alone], [each.state for each in stacked])
    assert_close(told(alone), told(stacked))
    assert not any("not_stacked" in each.metrics for each in stacked)
    other, _ = played("stacked", module=seeded(Dropping, 0), algorithm=algorithm, seed=1)
    assert told(other) != told(stacked)


def test_dropout_of_a_layer_that_draws_by_itself_is_not_stacked():
    (asked,) = fits(1, module=torch.nn.Sequential(torch.nn.LSTM(64, 2, 2, dropout=0.5)))
    assert stacked_module._why_alone(asked) == "dropout inside a layer that draws by itself"


@pytest.mark.parametrize(
    "setting",
    [
        {"weight_decay": 0.1},
        {"weight_decay": 0.1, "optimizer": "adam", "lr": 0.01},
        {"max_gradient_norm": 0.1},
        {"max_gradient_norm": 0.5, "weight_decay": 0.01, "momentum": 0.9},
    ],
    ids=str,
)
@pytest.mark.parametrize("algorithm", ["fedprox", "fedrep", "ditto"])
def test_decay_and_clipping_are_each_clients_own(algorithm, setting, doubles):
    alone, memories = played("sequential", algorithm=algorithm, **setting)
    stacked, stacked_memories = played("stacked", algorithm=algorithm, **setting)
    assert_close(memories, stacked_memories)
    assert_close(told(alone), told(stacked))
    assert not any("not_stacked" in each.metrics for each in stacked)
    free, _ = played("stacked", algorithm=algorithm)
    assert told(free) != told(stacked)


@pytest.mark.parametrize(
    "setting",
    [
        {"augment": "flip"},
        {"optimizer": "adamw"},
    ],
)
def test_settings_that_cannot_be_stacked_are_obeyed(setting):
    alone, _ = played("sequential", **setting)
    stacked, _ = played("stacked", **setting)
    assert torch.equal(alone[-1].state["model"], stacked[-1].state["model"])
    assert list(stacked[-1].metrics["not_stacked"].values()) == [len(SIZES)]


class Branching(torch.nn.Module):
    """Looks at its numbers in Python, which a stack cannot."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(64, toy.N_CLASSES)

    def forward(self, inputs):
        outputs = self.layer(inputs.flatten(1))
        return outputs if outputs.sum() > 0 else 2 * outputs


class Attending(Branching):
    """Has an operation that torch would carry out for one client after the other."""

    def forward(self, inputs):
        tokens = inputs.reshape(-1, 1, 8, 8)
        seen = torch.nn.functional.scaled_dot_product_attention(tokens, tokens, tokens)
        return self.layer(seen.flatten(1))


@pytest.mark.parametrize("network", [Branching, Attending])
def test_a_network_that_torch_cannot_stack_is_trained_alone(network, recwarn):
    alone, _ = played("sequential", module=seeded(network, 0))
    stacked, _ = played("stacked", module=seeded(network, 0))
    assert not [each for each in recwarn if "performance drop" in str(each.message)]
    assert torch.equal(alone[-1].state["model"], stacked[-1].state["model"])
    (told,) = stacked[-1].metrics["not_stacked"]
    assert "torch cannot stack this network or objective" in told


def fits(n, *, module=None, sizes=SIZES, settings=None, **more):
    """Return what n clients with random pictures are asked."""
    usual = {"local_epochs": 1, "batch_size": 6, "lr": 0.1, "workers": 1}
    config = RunConfig(clients=n, **(usual | (settings or {})))
    here = toy.site(config, tuple(sizes[i % len(sizes)] for i in range(n)), module=module)
    plain = {
        "purpose": "train", "epochs": None, "steps": None, "lr": 0.1, "loss": None,
        "objective": None, "proximal": 0.0, "only": None, "leaves": True,
    }  # fmt: skip
    return [
        Fit(client=c, start=here.initial, data=c.data.train, anchor=here.initial, **(plain | more))
        for c in (Client(here, i, 1) for i in range(n))
    ]


def drawn(asked):
    """Return what clients are asked with their batches, those with the most first."""
    some = [_Drawn(each, tuple(batches(each.client, len(each.data), "train"))) for each in asked]
    return sorted(some, key=lambda each: -len(each.batches))


@pytest.mark.parametrize("name", ["mlp", "lenet-5"])
def test_the_same_bits_whatever_fits_in_memory(name, monkeypatch):
    if name == "lenet-5":
        monkeypatch.setattr(toy, "SHAPE", (1, 28, 28))
    module = build_model(name, shape=toy.SHAPE, n_classes=toy.N_CLASSES, seed=0)
    asked = fits(5, module=module)
    torch.set_num_threads(1)
    chunks = []
    fitted = stacked_module._fitted
    monkeypatch.setattr(
        stacked_module,
        "_fitted",
        lambda some, width: chunks.append(len(some)) or fitted(some, width),
    )
    whole = Stacking().train(asked)
    assert chunks == [5]
    three = 3 * stacked_module._predicted_bytes(
        drawn(asked), stacked_module._trial(drawn(asked)[:2], 6)
    )
    for most, sizes in ((1, [1, 2, 2]), (three, [2, 3])):
        chunks.clear()
        pieces = Stacking(most_bytes=most).train(asked)
        assert chunks == sizes
        for one, other in zip(whole, pieces, strict=True):
            assert torch.equal(one.model, other.model)
            assert one.loss == other.loss
    for one, each in zip(whole, asked, strict=True):
        alone = fit_alone(each)
        torch.testing.assert_close(one.model, alone.model, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "more", "settings"),
    [
        ("mlp", {}, {}),
        ("lenet-5", {"proximal": 0.1}, {"momentum": 0.9}),
        ("cffl-cnn-dropout", {}, {"optimizer": "adam"}),
        ("linear", {"objective": lambda loss, own, received: 2 * loss}, {}),
    ],
)
def test_memory_is_what_was_predicted_within_a_fifth(name, more, settings, monkeypatch):
    monkeypatch.setattr(toy, "SHAPE", (1, 28, 28))
    module = build_model(name, shape=toy.SHAPE, n_classes=toy.N_CLASSES, seed=0)
    asked = fits(12, module=module, sizes=(18,), settings=settings, **more)
    predicted = 12 * stacked_module.predicted_bytes(asked)
    with LiveMemory() as measured:
        Stacking(most_bytes=1 << 40).train(asked)
    assert predicted == pytest.approx(measured.peak, rel=0.2)


def test_models_of_one_client_share_its_data_in_the_prediction(monkeypatch):
    monkeypatch.setattr(toy, "SHAPE", (1, 28, 28))
    module = build_model("linear", shape=toy.SHAPE, n_classes=toy.N_CLASSES, seed=0)
    one, other = fits(2, module=module, sizes=(60,))
    asked = [*[one] * 6, *[other] * 6]
    stacking = Stacking(most_bytes=1 << 40)
    stacking.train(asked)
    with LiveMemory() as measured:
        stacking.train(asked)
    assert stacking.models_of_a_client == 6
    assert 12 * stacking.bytes_of_a_client == pytest.approx(measured.peak, rel=0.2)
    chunks = []
    fitted = stacked_module._fitted
    monkeypatch.setattr(
        stacked_module,
        "_fitted",
        lambda some, width: chunks.append(len(some)) or fitted(some, width),
    )
    Stacking(most_bytes=int(0.6 * measured.peak)).train(asked)
    assert chunks == [6, 6]


def test_memory_that_is_given_back_does_not_count():
    kept = torch.ones(1000)
    with LiveMemory() as seen:
        for _ in range(3):
            twice = torch.ones(100).view(10, 10) * 2
        kept.add_(1)
    assert seen.peak == 3 * 400  # the last result, and the two of the next turn
    assert twice.sum() == 200


class Counter(TorchDispatchMode):
    """Counts operations."""

    n = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.n += 1
        return function(*args, **(kwargs or {}))


def operations_of_a_step(n_clients, **more):
    asked = fits(n_clients, sizes=(20,), **more)
    stack = _Stack(drawn(asked), 6)
    with Counter() as counted:
        stack.step(0)
    return counted.n


@pytest.mark.parametrize("more", [{}, {"proximal": 0.1}])
def test_operations_of_a_step_do_not_grow_with_the_number_of_clients(more):
    few, many = operations_of_a_step(2, **more), operations_of_a_step(40, **more)
    assert few > 10
    assert many == pytest.approx(few, rel=0.1)
    (alone,) = fits(1, sizes=(20,), steps=1, **more)
    with Counter() as counted:
        fit_alone(alone)
    assert many < 3 * counted.n


def test_digits_with_an_mlp_are_learnt_as_well():
    settings = {"clients": 5, "rounds": 3, "local_epochs": 1, "train_size": 60, "workers": 1}
    alone, stacked = (run(settings | {"compute": each}) for each in ("sequential", "stacked"))
    assert stacked.mean_test_accuracy == pytest.approx(alone.mean_test_accuracy, abs=0.01)
    for one, other in zip(
        alone.per_client_test_accuracy, stacked.per_client_test_accuracy, strict=True
    ):
        assert one == pytest.approx(other, abs=0.06)


@pytest.mark.parametrize("compute", ["sequential", "stacked"])
def test_torch_may_be_asked_for_deterministic_operations(compute, tmp_path):
    settings = {"clients": 3, "rounds": 1, "train_size": 20, "workers": 1, "compute": compute}
    usual = run(settings, out=tmp_path / "usual")
    torch.use_deterministic_algorithms(True)
    try:
        asked = run(settings, out=tmp_path / "asked")
        assert torch.are_deterministic_algorithms_enabled()  # it is not ours to change
    finally:
        torch.use_deterministic_algorithms(False)
    assert asked.per_client_test_accuracy == usual.per_client_test_accuracy
    told = [
        json.loads((tmp_path / each / "environment.json").read_text())["deterministic"]
        for each in ("usual", "asked")
    ]
    assert told == [False, True]


def test_a_failing_client_ends_the_question_and_leaves_no_thread():
    def run_task(client, message):
        fit(client, client.site.initial)
        if client.index == 1:
            raise CoalitionError("client 1 has had enough")
        fit(client, client.site.initial)
        return {"samples": 1}

    fails = Task("fails in the middle", run_task, {"samples": Reveals.SIZE})
    config = RunConfig(clients=4, batch_size=6, local_epochs=1, compute="stacked")
    engine = local_engine(toy.site(config, SIZES), config.workers)
    before = threading.active_count()
    with pytest.raises(CoalitionError, match="client 1 has had enough"):
        engine.ask(fails, {c: {} for c in range(4)}, 1)
    assert threading.active_count() == before


def test_workers_are_for_sequential_training():
    settings = {"clients": 2, "rounds": 1, "train_size": 20, "compute": "stacked", "workers": 2}
    with pytest.raises(InvalidInputError, match="choose --workers 1, or --compute sequential"):
        run(settings)


def test_an_interrupted_meeting_leaves_no_thread():
    def interrupted(fits):
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        in_lockstep([lambda ask, one=one: ask([one]) for one in fits(3)], interrupted)
    assert threading.active_count() == before
