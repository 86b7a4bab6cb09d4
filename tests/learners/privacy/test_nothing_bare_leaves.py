"""Whatever training data a client has, a private run hears the same, once only noise is sent.

The signal is taken out of the two mechanisms and their noise is left in. What then still differs
between two runs whose clients have different training data left a client without noise.
"""

import numpy as np
import pytest
import torch

import learners.client.training
import learners.privacy.mechanism
from coalitions.errors import InvalidInputError
from learners.algorithm import ALGORITHMS, build_algorithm
from learners.client.client import Site
from learners.data.client_data import ClientData
from learners.privacy.mechanism import Privacy, privacy_of
from learners.server.federation import Federation
from learners.server.local_engine import local_engine
from learners.settings.config import RunConfig
from learners.task import TASKS, Reveals
from tests.learners import tiny

N_CLIENTS = 3


def clients(seed):
    """Return clients whose training data depend on the seed; validation and test data do not."""
    return [
        ClientData(
            tiny.points(12, 1000 * seed + c),
            tiny.points(10, 100 * c + 1),
            tiny.points(10, 100 * c + 2),
            domain="ab"[c % 2],
            poisoned=False,
        )
        for c in range(N_CLIENTS)
    ]


def heard(algorithm, privacy, seed, monkeypatch, options=None):
    """Return all that a server hears in three rounds, task by task, client by client."""
    here = tiny.site(
        algorithm,
        module=tiny.two_layers(),
        data=clients(seed),
        rounds=3,
        options=options or {},
    )
    site = Site(here.config, here.algorithm, here.workspace, _Dealt(here), privacy)
    site.data = here.data
    federation = Federation(
        site.config, site.algorithm, local_engine(site, 1), here.workspace.layout, site.initial,
        privacy,
    )  # fmt: skip
    listener = tiny.Listener(federation, monkeypatch)
    list(federation.rounds())
    return [
        (task, client, name, value)
        for task, _, replies in listener.calls
        for client, reply in replies.items()
        for name, value in reply.items()
    ]


class _Dealt:
    """Stands for data that are on the site already."""

    clients = names = ()

    def __init__(self, site):
        self.targets, self.n_classes = site.targets, site.n_classes


def take_the_signal_out(monkeypatch):
    with_noise, gradient = (
        learners.privacy.mechanism.with_noise,
        learners.client.training.private_gradient,
    )

    def noise_alone(rows, deviation, stream):
        return with_noise(torch.zeros_like(rows), deviation, stream)

    def gradient_of_noise(workspace, images, labels, **more):
        return gradient(workspace, images[:0], labels[:0], **more)

    monkeypatch.setattr(learners.privacy.mechanism, "with_noise", noise_alone)
    monkeypatch.setattr(learners.client.training, "private_gradient", gradient_of_noise)


def is_private(algorithm, dp, options=None):
    config = RunConfig(algorithm=algorithm, dp=dp, noise=1.0, clip=1.0, options=options or {})
    try:
        method = build_algorithm(algorithm, config.options)
        privacy_of(config, method, [12] * config.clients, has_batch_norm=False)
    except InvalidInputError:
        return False
    return True


def differences(one, other):
    """Return which entries of which tasks are not the same."""
    assert [entry[:3] for entry in one] == [entry[:3] for entry in other]
    return {
        (task, name)
        for (task, _, name, a), (*_, b) in zip(one, other, strict=True)
        if not np.array_equal(np.asarray(a), np.asarray(b))
    }


CASES = [
    (algorithm, dp, {})
    for algorithm in sorted(ALGORITHMS)
    for dp in ("updates", "records")
    if is_private(algorithm, dp)
] + [
    ("pfedsv", "updates", {"shared_extractor": True}),
    ("pfedsv", "updates", {"utility": "loss", "method": "permutation"}),
    ("pfedsv", "updates", {"method": "truncated"}),
    ("pfedsv", "records", {"collaboration": "pairwise"}),
    ("fedrep", "records", {"head_epochs": 2}),
]


@pytest.mark.parametrize(("algorithm", "dp", "options"), CASES)
def test_what_a_server_hears_is_noise_and_validation_data(algorithm, dp, options, monkeypatch):
    take_the_signal_out(monkeypatch)
    privacy = Privacy(dp, 1.0, 1.0, 1e-5)
    one, other = (heard(algorithm, privacy, seed, monkeypatch, options) for seed in (1, 2))
    assert differences(one, other) == set()
    if algorithm != "local":
        assert any(TASKS[task].reply[name] is Reveals.MODEL for task, _, name, _ in one)


def test_the_walk_notices_what_is_sent_bare(monkeypatch):
    for dp in ("updates", "records"):  # with the signal in it, a model tells of its data
        privacy = Privacy(dp, 1.0, 1.0, 1e-5)
        one, other = (heard("fedavg", privacy, seed, monkeypatch) for seed in (1, 2))
        assert differences(one, other) == {("train", "model")}
    take_the_signal_out(monkeypatch)  # and without noise, the training loss is sent
    bare = Privacy("updates", 0.0, 1.0, 1e-5)
    one, other = (heard("fedavg", bare, seed, monkeypatch) for seed in (1, 2))
    assert ("train", "train_loss") in differences(one, other)


def test_all_methods_are_in_the_walk_or_refused():
    walked = {algorithm for algorithm, _, _ in CASES}
    refused = set(ALGORITHMS) - walked
    assert refused == {"cffl", "domain", "fedc2i", "fedproto", "ifca"}
    for name in refused:
        replies = [TASKS[task].reply for task in build_algorithm(name, {}).traits.asks]
        assert any(
            reveals in learners.privacy.mechanism._BARE
            for reply in replies
            for reveals in reply.values()
        )
