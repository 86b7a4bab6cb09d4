"""The tasks that every client can do, and what it keeps of its best round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from learners.algorithm import Algorithm
from learners.client.client import Client, Samples
from learners.client.gradients import gradients_at
from learners.client.model_games import ModelGame, examined
from learners.client.training import Objective, fit, fit_each, score_predictions
from learners.devices import to_host
from learners.measures.goal import Score
from learners.measures.metrics import Metric
from learners.task import (
    COUNT,
    MOST_COUNTED,
    Asked,
    Flag,
    Message,
    ModelRows,
    Number,
    Numbers,
    Reveals,
    Text,
    each,
    task,
)

# ----------------------------------------------------------------------------------------
# What a client keeps of its best round: all that its model of that round takes to predict.
#
# A model is not always one row of numbers: a method may need what the server sent, what the
# client remembers, and the round's random numbers to make it. So all three are kept, and whoever
# asks for the kept model asks the client as it was.

_ROUND, _LOSS = "kept/round", "kept/loss"
_MESSAGE, _MEMORY = "kept/message/", "kept/memory/"


def kept_round(client: Client) -> int:
    """Return the round that a client keeps; 0 if it keeps none yet."""
    number: int = client.memory.get(_ROUND, 0)
    return number


def is_better(client: Client, loss: float) -> bool:
    """Tell whether a loss is below that of the round the client keeps; one that is no number isn't.

    Of equal rounds the first is kept.
    """
    return bool(loss < client.memory.get(_LOSS, float("inf")))


def keep_now(client: Client, message: Message, loss: float) -> None:
    """Have the client keep this round instead of the one before.

    Parameters
    ----------
    client
        The client.
    message
        What it needs, beside its memory, to use its model.
    loss
        How good that is.
    """
    own = _without_kept(client.memory)
    for name in [name for name in client.memory if name.startswith("kept/")]:
        del client.memory[name]
    client.memory |= {_ROUND: client.round, _LOSS: loss}
    client.memory |= {f"{_MEMORY}{name}": value for name, value in own.items()}
    client.memory |= {f"{_MESSAGE}{name}": value for name, value in message.items()}


def as_kept(client: Client, message: Message) -> tuple[Client, Message]:
    """Return the client as it was in the round it keeps, and its message of that round.

    Entries of `message` that say how to ask, not what to use, stay as they are.
    """
    if not kept_round(client):
        return client, message
    memory = _under(_MEMORY, client.memory)
    asked = {name: message[name] for name in ("metrics", "on") if name in message}
    then = replace(client, round=kept_round(client), memory=memory)
    return then, {**_under(_MESSAGE, client.memory), **asked}


def _under(prefix: str, memory: Message) -> dict[str, object]:
    return {n.removeprefix(prefix): value for n, value in memory.items() if n.startswith(prefix)}


def _without_kept(memory: Message) -> dict[str, object]:
    return {name: value for name, value in memory.items() if not name.startswith("kept/")}


# ----------------------------------------------------------------------------------------
# What every client can be asked.


@task(
    "train",
    by_fit=True,
    model=(Reveals.MODEL, ModelRows(when=lambda asked: asked.message.get("send", True))),
    train_loss=Reveals.PROGRESS,
    samples=Reveals.SIZE,
)
def train(client: Client, message: Message) -> Message:
    """Train the model that was received, with the method's objective, and send it back.

    Parameters
    ----------
    client
        The client.
    message
        `model` to start from; without it, the client trains its own and keeps the result.
        `anchor`: centre of the proximal term, if not the start. `send` (default true): whether
        the result leaves the client. `keep`: whether it stays (default: if it was its own).
        `epochs`, `steps`, `purpose`: see `learners.client.training.fit`.
    """
    algorithm = client.algorithm
    own = "model" not in message
    fitted = fit(
        client,
        client.own_model if own else message["model"],
        purpose=message.get("purpose", "train"),
        epochs=message.get("epochs"),
        steps=message.get("steps"),
        objective=_objective(client),
        proximal=algorithm.proximal,
        anchor=message.get("anchor"),
    )
    if message.get("keep", own):
        client.memory["model"] = fitted.model
    reply = {"train_loss": fitted.loss, "samples": len(client.data.train)}
    return reply | {"model": fitted.model} if message.get("send", True) else reply


def _has_accuracy(asked: Asked) -> bool:
    return asked.targets is None or asked.targets.has_classes


def _measured(asked: Asked) -> bool:
    return "metrics" in asked.message


@task(
    "evaluate",
    watches=True,
    accuracy=(Reveals.METRIC, Number(least=0, most=1, when=_has_accuracy)),
    loss=(Reveals.METRIC, Number()),
    samples=(Reveals.SIZE, COUNT),
    metrics=(Reveals.METRIC, Numbers(each("metrics"), when=_measured)),
    defined=(
        Reveals.METRIC,
        Numbers(each("metrics"), whole=True, least=0, most=1, when=_measured),
    ),
)
def evaluate(client: Client, message: Message) -> Message:
    """Test the model the client would use on its own data (`on`: test, validation or train).

    `metrics` names what else to compute; the reply has a number for each, and whether it is
    `defined` (else the number is 0). With `kept`, the model is that of the round the client keeps.
    """
    if message.get("kept"):
        client, message = as_kept(client, message)
    goal = client.workspace.goal
    metrics = [goal.metric(name) for name in message.get("metrics", ())]
    score = _examined_in_use(client, message, _split(client, message.get("on", "test")), metrics)
    reply: dict[str, Any] = {"loss": score.loss, "samples": score.n}
    if goal.targets.has_classes:
        reply["accuracy"] = score.accuracy
    if "metrics" in message:
        reply["metrics"] = np.array([value or 0.0 for value in score.values])
        reply["defined"] = np.array([value is not None for value in score.values], np.int64)
    return reply


def _examined_in_use(
    client: Client, message: Message, data: Samples, metrics: Sequence[Metric] = ()
) -> Score:
    """Return how good the model is that the client would use."""
    algorithm, workspace = client.algorithm, client.workspace
    model = algorithm.model(client, message)
    if type(algorithm).scores is Algorithm.scores:
        return examined(client, model[None], data, metrics)[0]
    workspace.load(model)
    workspace.module.eval()
    return score_predictions(
        lambda inputs: algorithm.scores(client, message, inputs), data, workspace.goal, metrics
    )


@task("keep", watches=True, round=(Reveals.METRIC, COUNT))
def keep(client: Client, message: Message) -> Message:
    """Keep the model the client would use now, if its validation loss is lower than that kept.

    The reply is the `round` that is kept, 0 if there is none: a client without validation data
    keeps nothing, and uses what it has.
    """
    if len(client.data.validation):
        loss = _examined_in_use(client, message, client.data.validation).loss
        if is_better(client, loss):
            keep_now(client, message, loss)
    return {"round": kept_round(client)}


@task(
    "evaluate-many",
    accuracy=(Reveals.METRIC, Numbers(each("models"), least=0, most=1, when=_has_accuracy)),
    loss=(Reveals.METRIC, Numbers(each("models"))),
)
def evaluate_many(client: Client, message: Message) -> Message:
    """Test many models (`models`, [m, P]) on the client's data (`on`: validation by default)."""
    data = _split(client, message.get("on", "validation"))
    scores = examined(client, message["models"], data)
    reply = {"loss": np.array([score.loss for score in scores])}
    if client.workspace.goal.targets.has_classes:
        reply["accuracy"] = np.array([score.accuracy for score in scores])
    return reply


def _gradients(asked: Asked) -> tuple[int, int]:
    return asked.rows("models"), asked.layout.n_parameters


@task("gradient", gradients=(Reveals.STATISTIC, ModelRows(_gradients, compared=False)))
def gradient(client: Client, message: Message) -> Message:
    """Differentiate the client's loss at each of `models` [m, P]: `gradients` [m, P].

    `on` names the data: ``train`` (default) or ``validation``; `mode` is ``evaluation`` (default)
    or ``training``, where dropout acts.
    """
    data = client.data.validation if message.get("on") == "validation" else client.data.train
    training = message.get("mode") == "training"
    found = gradients_at(client, message["models"], data=data, training=training)
    return {"gradients": found}


def _players(asked: Asked) -> tuple[int]:
    return (asked.rows("models") + bool(asked.message.get("with_own", True)),)


@task("shapley", values=(Reveals.METRIC, Numbers(_players)), evaluations=Reveals.SIZE)
def shapley(client: Client, message: Message) -> Message:
    """Value the models [m, P] that were received by their Shapley values on the client's data.

    Parameters
    ----------
    client
        The client.
    message
        `models`: the players. `with_own` (default true): whether the client's own model plays, as
        the first one. `metric`: accuracy, loss or another metric, on the validation data.
        `method`, `budget`: see `coalitions.shapley`.
    """
    import coalitions

    rows = message["models"]
    if message.get("with_own", True):
        rows = torch.cat([client.own_model[None], rows])
    game = ModelGame(
        client.workspace,
        rows,
        client.data.validation,
        client=client,
        n_classes=client.site.n_classes,
        metric=message.get("metric", "auto"),
        known=client.data.train.targets,
    )
    result = coalitions.shapley(
        game,
        method=message.get("method", "auto"),
        budget=message.get("budget"),
        seed=client.stream("shapley").initial_seed() % 2**32,
        interruptible=False,  # Ctrl-C ends the run
    )
    return {"values": np.asarray(result.values), "evaluations": int(result.evaluations)}


def _most_gain(asked: Asked) -> float | None:
    """Return the most that an accuracy can gain; what other metrics can is not known."""
    by_accuracy = asked.message.get("metric", "auto") in ("auto", "accuracy")
    return 1.0 if by_accuracy and _has_accuracy(asked) else None


def _least_gain(asked: Asked) -> float | None:
    most = _most_gain(asked)
    return None if most is None else -most


@task(
    "fine-tune-pairs",
    gains=(Reveals.METRIC, Numbers(each("models"), least=_least_gain, most=_most_gain)),
)
def fine_tune_pairs(client: Client, message: Message) -> Message:
    """Measure what the client gains from joining each of some peers.

    For every peer's model of `models` [m, P], the average with the client's own is fine-tuned
    on the client's data (`epochs`, default 1), and the gain is its accuracy there minus that of
    the own model (`on`: validation by default). `model`: the own model, if not in memory.
    `metric`: another metric than the usual one; an error is negated, and where it is not defined
    there is no gain.
    """
    own = message.get("model", client.own_model)
    data = _split(client, message.get("on", "validation"))
    metric = client.workspace.goal.metric(message.get("metric", "auto"))

    by_accuracy = metric.name == "accuracy"

    def worth(score: Score) -> float | None:
        if by_accuracy:
            return score.accuracy
        (value,) = score.values
        return None if value is None else metric.gain(value)

    fitted = fit_each(
        client,
        (own + message["models"]) / 2,
        purpose="fine-tune",
        epochs=message.get("epochs", 1),
    )
    models = torch.stack([own, *(each.model for each in fitted)])
    scores = examined(client, models, data, [] if by_accuracy else [metric])
    alone, *pairs = map(worth, scores)
    gains = [0.0 if pair is None or alone is None else pair - alone for pair in pairs]
    return {"gains": np.array(gains)}


@task(
    "describe",
    watches=True,
    samples=(Reveals.SIZE, COUNT),
    labels=(
        Reveals.METRIC,
        Numbers(lambda asked: (asked.counted,), whole=True, least=0, most=MOST_COUNTED),
    ),
    domain=(Reveals.METRIC, Text()),
    poisoned=(Reveals.METRIC, Flag()),
)
def describe(client: Client, message: Message) -> Message:
    """Tell what the client has: for oracles, and to judge a method by the truth.

    `labels` counts its training samples of each class, of each label, or its tokens; it is empty
    in a regression.
    """
    data = client.data
    return {
        "samples": len(data.train),
        "labels": client.site.targets.counts(to_host(data.train.targets)).numpy(),
        "domain": data.domain,
        "poisoned": data.poisoned,
    }


@task("deploy", watches=True, model=Reveals.MODEL)
def deploy(client: Client, message: Message) -> Message:
    """Hand out the model the client would use now: for the run's folder, not for a method.

    With `kept`, it is that of the round the client keeps.
    """
    if message.get("kept"):
        client, message = as_kept(client, message)
    return {"model": client.algorithm.model(client, message)}


def _objective(client: Client) -> Objective | None:
    """Return the method's objective; None if it minimises the loss as it is."""
    method = client.algorithm
    return None if type(method).objective is Algorithm.objective else method.objective


def _split(client: Client, name: str) -> Samples:
    splits = {
        "train": client.data.train,
        "validation": client.data.validation,
        "test": client.data.test,
    }
    return splits[name]
