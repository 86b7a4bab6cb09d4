"""Every registered method keeps what federated methods promise, whoever wrote it."""

from __future__ import annotations

import pytest

from learners.algorithm import ALGORITHMS
from learners.method_checks import algorithm_checks, finite
from learners.settings.config import RunConfig
from tests.learners import toy

NAMES = ALGORITHMS.names()


@pytest.mark.parametrize("promise", [promise for promise, _ in algorithm_checks(NAMES[0])])
@pytest.mark.parametrize("name", NAMES)
def test_a_promise_is_kept(name, promise):
    assert dict(algorithm_checks(name))[promise]() is None


@pytest.mark.parametrize("name", NAMES)
def test_a_network_with_batch_norm_and_clients_of_any_size(name):
    config = RunConfig(
        algorithm=name, clients=3, rounds=2, local_epochs=1, batch_size=6, lr=0.05, workers=1
    )
    federation = toy.federation(config, (1, 13, 40), module=toy.network(batch_norm=True))
    for round in federation.rounds():
        assert finite(dict(round.state))
        assert finite(round.metrics)
