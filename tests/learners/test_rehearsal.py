"""Rounds on a device that is not there: nothing crosses but by to_host and to_device."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")

from learners.algorithm import ALGORITHMS  # noqa: E402
from learners.algorithms.fedavg import FedAvg  # noqa: E402
from learners.devices import seeded_draws, to_device, to_host  # noqa: E402
from learners.settings.seeding import stream  # noqa: E402
from tests.learners.rehearsal import CrossingError, rehearse, rehearsing  # noqa: E402

OURS = [
    name for name in ALGORITHMS if ALGORITHMS[name].__module__.startswith("learners.algorithms.")
]


def options(algorithm):
    return {"options": {"width": 5}} if algorithm == "pfedhn" else {}


@pytest.mark.parametrize("algorithm", OURS)
def test_no_method_crosses_unseen_on_cuda(algorithm):
    seen = rehearse(algorithm, **options(algorithm))
    assert seen.operations > 500
    assert seen.reads > 0


@pytest.mark.parametrize("device", ["cuda", "mps"])
@pytest.mark.parametrize(
    ("algorithm", "more"),
    [
        ("cffl", {"options": {"synergy": "cos"}}),
        ("cffl", {"options": {"synergy": "cos", "cos_mode": "training"}}),
        ("ifca", {"options": {"averaging": "gradient"}}),
        ("fedc2i", {"options": {"variant": "class-global"}}),
    ],
    ids=str,
)
def test_gradients_and_influences_stay_on_the_device(algorithm, more, device):
    assert not rehearse(algorithm, device=device, **more).not_stacked


@pytest.mark.parametrize("algorithm", ["fedacs", "fedem", "fedfomo"])
def test_methods_that_compute_in_double_precision_do_so_on_the_host(algorithm):
    rehearse(algorithm, device="mps")


@pytest.mark.slow
@pytest.mark.parametrize("compute", ["stacked", "sequential"])
@pytest.mark.parametrize("algorithm", OURS)
def test_no_method_crosses_unseen_on_mps(algorithm, compute):
    rehearse(algorithm, device="mps", compute=compute, **options(algorithm))


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", OURS)
@pytest.mark.parametrize(
    "settings",
    [
        {"compute": "sequential"},
        {"optimizer": "adam", "augment": "flip"},
        {"loss": "balanced-cross-entropy"},
        {"model": "cffl-cnn-dropout"},
    ],
    ids=str,
)
def test_no_setting_crosses_unseen_on_cuda(algorithm, settings):
    if algorithm == "fedrod" and "loss" in settings:
        pytest.skip("fedrod has a loss of its own")
    rehearse(algorithm, **(settings | options(algorithm)))


class Peeking(FedAvg):
    """Looks at a model on the host, past `to_host`."""

    def round(self, federation, state, t):
        state = super().round(federation, state, t)
        federation.record(norm=float(state["model"].cpu().norm()))
        return state


def test_a_method_that_copies_a_model_to_the_host_is_found(monkeypatch):
    monkeypatch.setattr("tests.learners.rehearsal.build_algorithm", lambda *_: Peeking())
    with pytest.raises(CrossingError, match=r"_to_copy.* has tensors on the host and on cuda"):
        rehearse("fedavg")


def test_a_client_that_copies_in_a_thread_of_its_own_is_found(monkeypatch):
    monkeypatch.setattr(FedAvg, "model", lambda self, client, message: message["model"].cpu())
    with pytest.raises(CrossingError, match="on the host and on cuda"):
        rehearse("fedavg")


CROSSINGS = {
    "a copy to the host": lambda there: there.cpu(),
    "a copy to the device": lambda there: torch.ones(2).to("cuda"),
    "a copy like a tensor there": lambda there: torch.ones(2).to(there),
    "a copy into a tensor there": lambda there: there.copy_(torch.ones(3)),
    "both sides in one operation": lambda there: there + torch.ones(3),
    "a number": lambda there: float(there.sum()),
    "a condition": lambda there: bool((there > 0).all()),
    "a shape that depends on numbers": lambda there: there[there > 0],
    "numpy": lambda there: there.cpu().numpy(),
    "a draw": lambda there: torch.randn(3, generator=stream(0), device="cuda"),
}


@pytest.mark.parametrize("crossing", CROSSINGS.values(), ids=CROSSINGS)
def test_what_crosses_is_refused(crossing):
    with rehearsing():
        there = to_device(torch.ones(3), torch.device("cuda"))
        assert there.device == torch.device("cuda", 0)
        with pytest.raises(CrossingError):
            crossing(there)


def test_what_stays_on_its_side_is_not_refused():
    with rehearsing() as seen:
        there = to_device(torch.ones(3, 2), torch.device("cuda"))
        assert (there @ torch.zeros(2, 2, device="cuda")).device.type == "cuda"
        assert (there * torch.tensor(2.0)).device.type == "cuda"  # a single number may
        assert float(torch.ones(3).sum()) == 3.0  # the host has numbers
        brought = to_host(there)
        assert brought.shape == (3, 2)
        assert brought.isfinite().all()
    assert (seen.reads, seen.bytes_read, seen.writes) == (1, 24, 1)


@pytest.mark.parametrize("double", [torch.Tensor.double, lambda t: t.mean(0, dtype=torch.float64)])
def test_mps_has_no_double_precision(double):
    with rehearsing("cuda"):
        double(to_device(torch.ones(3), torch.device("cuda")))
    with rehearsing("mps"), pytest.raises(CrossingError, match="double precision"):
        double(to_device(torch.ones(3), torch.device("mps")))


def test_draws_follow_a_seed_and_leave_the_generators_as_they_were():
    before = torch.random.get_rng_state()
    drawn = []
    for _ in range(2):
        with seeded_draws(3, torch.device("cpu")):
            drawn.append(torch.rand(2))
    assert torch.equal(*drawn)
    assert torch.equal(before, torch.random.get_rng_state())
