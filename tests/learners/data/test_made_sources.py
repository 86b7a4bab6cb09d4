"""Sets that are made here: what wearables feel, and what speakers say."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")

from learners import run  # noqa: E402
from learners.data.clients import federated_data  # noqa: E402
from learners.data.sources.sequences import ALPHABET, LENGTH, PLACES, SPEAKERS, rendered, spoken  # noqa: E402  # noqa: E402
from learners.settings.seeding import generator  # noqa: E402


def test_a_window_of_the_wearables_has_fifty_steps_of_three_axes():
    data = federated_data("wearables", clients=3, partition="auto", seed=0, train_size=50)
    assert data.shape == (50, 3)
    assert data.targets.names[2] == "running"
    assert [client.domain for client in data.clients] == list(PLACES)
    assert data.clients[0].train.inputs.dtype == torch.float32


def test_windows_are_always_the_same_and_running_shakes_more_than_resting():
    one, same = (rendered("ankle", 100, generator(0, "x")) for _ in range(2))
    assert np.array_equal(one.values, same.values)
    shaking = [one.values[one.truth == k].std(axis=1).sum(axis=1).mean() for k in (0, 2)]
    assert shaking[1] > 5 * shaking[0]


def test_ten_clients_are_the_ten_speakers_and_predict_the_next_character():
    data = federated_data("speeches", clients=10, partition="auto", seed=0)
    assert [client.domain for client in data.clients] == list(SPEAKERS)
    assert data.inputs["inputs"].codes == (len(ALPHABET),)
    first = data.clients[0].test
    assert first.inputs.shape == first.targets.shape == (30, LENGTH)
    assert torch.equal(first.inputs[:, 1:], first.targets[:, :-1])
    assert set(spoken("fool", "train", 2000)) <= set(ALPHABET)


def test_a_character_model_learns_speeches_better_than_chance():
    settings = {"dataset": "speeches", "rounds": 2, "train_size": 40, "workers": 1}
    result = run(settings | {"optimizer": "adam", "lr": 0.02})
    assert result.task == "next-token"
    space = spoken("king", "test", 1200).count(" ") / 1200  # the most usual character
    assert result.mean_test_accuracy > space + 0.05
