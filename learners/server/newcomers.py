"""Clients that come when training is over: they get a model by what the method defines."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from learners.algorithm import State
from learners.measures.metrics import summary
from learners.server.federation import Federation, NobodyAnsweredError
from learners.task import Message


def welcomed(federation: Federation, state: State) -> tuple[dict[str, Any], dict[int, Message]]:
    """Have the held-out clients personalised, and test them on their own test data.

    Returns
    -------
    tuple
        What `result.json` says about them; and what each needs to use its model, by client.
        A newcomer without a sound answer has no accuracy, and no message.
    """
    newcomers = federation.newcomers
    method = federation.algorithm
    messages: dict[int, Message] = {}
    replies: dict[int, Message] = {}
    try:
        federation.admit(newcomers)
        federation.round = federation.config.rounds + 1
        messages = method.newcomers(federation, state, list(newcomers))
        replies = federation.evaluated(messages)
    except NobodyAnsweredError:
        pass  # the run itself is sound; the newcomers' results say that there is none
    registered = federation.registered
    honest = [
        k for k, c in enumerate(newcomers) if c in registered and not registered[c]["poisoned"]
    ]
    honest = honest or list(range(len(newcomers)))

    def numbers(name: str) -> list[float | None]:
        return [replies.get(c, {}).get(name) for c in newcomers]

    def mean(name: str) -> float | None:
        values = [value for k in honest if (value := numbers(name)[k]) is not None]
        return float(np.mean(values)) if values else None

    document: dict[str, Any] = {
        "clients": list(newcomers),
        "how": (inspect.getdoc(method.newcomers) or "").split("\n")[0],
        "mean_test_accuracy": mean("accuracy"),
        "per_client_test_accuracy": numbers("accuracy"),
        "mean_test_loss": mean("loss"),
    }
    if federation.goal is not None:
        document["metrics"] = {}
        for place, metric in enumerate(federation.goal.metrics):
            values = [
                float(replies[c]["metrics"][place])
                if c in replies and replies[c]["defined"][place]
                else None
                for c in newcomers
            ]
            document["metrics"][metric.name] = summary(metric, values, honest)
    return document, {c: messages[c] for c in replies}
