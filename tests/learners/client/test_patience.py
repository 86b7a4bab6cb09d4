"""Clients that stop when their own validation data say so."""

import numpy as np
import pytest
import torch

from coalitions.errors import InvalidInputError
from learners.algorithm import ALGORITHMS, build_algorithm
from learners.client.client import Client
from learners.client.training import fit, score_model
from learners.runs.prepare import prepare
from learners.runs.run import run
from learners.server.local_engine import one_thread
from learners.settings.config import RunConfig

RNG = np.random.default_rng(0)


def noise(n):
    """Classes that nothing tells: whoever learns them by heart is wrong elsewhere."""
    return RNG.normal(size=(n, 8)).astype(np.float32), RNG.integers(0, 2, n)


DATA = {name: (noise(40), noise(20)) for name in ("north", "south")}
LONG = {"rounds": 1, "local_epochs": 12, "lr": 0.5, "workers": 1, "model": "tabular"}


def client_of(**settings):
    from learners.runs.inputs import UserInputs

    prepared = prepare(RunConfig.of(LONG | settings), UserInputs(DATA))
    return Client(prepared.site, 0, 1), prepared.site.initial


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_the_model_of_the_best_epoch_is_kept_and_training_ends_after_patience(optimizer):
    rate = {"optimizer": optimizer, "lr": 0.5 if optimizer == "sgd" else 0.01}
    client, start = client_of(**rate)
    with one_thread():
        # The same training, cut off after every number of epochs: batches come in the same order.
        rows = [fit(client, start, epochs=e).model for e in range(1, 13)]
        scores = [score_model(client.workspace, row, client.data.validation) for row in rows]
        losses = [score.loss for score in scores]
        for patience in (1, 3):
            lowest, best = np.inf, 0
            for epoch, loss in enumerate(losses):
                if loss < lowest:
                    lowest, best = loss, epoch
                if epoch - best >= patience:
                    break
            stopping, _ = client_of(patience=patience, **rate)
            assert torch.equal(fit(stopping, start).model, rows[best])
    assert int(np.argmin(losses)) < 11  # there was something to stop for


def test_it_changes_nothing_but_what_it_stops():
    plain = run(LONG | {"local_epochs": 2}, data=DATA)
    patient = run(LONG | {"local_epochs": 2, "patience": 2, "evaluate_every": 1}, data=DATA)
    assert plain.communication == patient.communication
    stacked = run(LONG | {"patience": 1, "compute": "stacked"}, data=DATA)
    alone = run(LONG | {"patience": 1}, data=DATA)
    assert stacked.metrics["mean_test_loss"] == alone.metrics["mean_test_loss"]
    assert alone.metrics["mean_test_loss"] < run(LONG, data=DATA).metrics["mean_test_loss"]


def test_where_it_cannot_be_is_said():
    with pytest.raises(InvalidInputError, match="patience has no effect on 1 local epoch"):
        RunConfig(patience=1, local_epochs=1)
    with pytest.raises(InvalidInputError, match="patience and --dp records do not go together"):
        RunConfig(patience=1, dp="records", clip=1.0, noise=1.0)
    with pytest.raises(InvalidInputError, match="patience measures models on validation data"):
        run(LONG | {"patience": 1, "validation_share": 0.0}, data=DATA)
    with pytest.raises(InvalidInputError, match="pfedme does not train a client's model by epochs"):
        run(LONG | {"patience": 1, "algorithm": "pfedme"}, data=DATA)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGORITHMS.names())
def test_every_method_stops_early_or_says_that_it_cannot(name):
    options = {"width": 4, "embedding": 2} if name == "pfedhn" else {}
    settings = LONG | {"algorithm": name, "options": options}
    if not build_algorithm(name, options).traits.stops_early:
        with pytest.raises(InvalidInputError, match="patience has nothing to stop"):
            run(settings | {"patience": 1}, data=DATA)
        return
    stopped, whole = (run(settings | more, data=DATA) for more in ({"patience": 1}, {}))
    assert stopped.metrics["mean_test_loss"] != whole.metrics["mean_test_loss"]
