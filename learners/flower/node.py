"""A node's side: a Flower client app that answers our questions with the node's own data."""

from __future__ import annotations

import inspect
import os
import tomllib
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from coalitions.errors import CoalitionError, InvalidInputError, NoSolutionError
from coalitions.extras import needed
from learners.client.client import Site, answer
from learners.data.client_data import ClientData, FederatedData, Split
from learners.data.kinds import ONLY, Input, Targets
from learners.data.own.frames import holds_frame
from learners.flower.questions import (
    BOOKS,
    DONE,
    ENDS,
    GREETING,
    HELLO,
    LOST,
    REFUSED,
    NodeQuestion,
    Outcome,
)
from learners.flower.records import NOTHING, NodeMemory, UnreadableError, Version
from learners.runs.inputs import examples_of
from learners.runs.prepare import node_site
from learners.server.local_engine import one_thread
from learners.settings.config import RunConfig
from learners.settings.seeding import generator
from learners.task import TASKS

if TYPE_CHECKING:
    from flwr.app import Context
    from flwr.app import Message as FlowerMessage
    from flwr.clientapp import ClientApp

SiteOf = Callable[[str, "Context"], Site]
"""Maps a run's settings and a node to what the node computes with."""

FolderOf = Callable[["Context"], Path]
"""Maps a node to where it keeps what it remembers."""

_SITES = 64
"""Runs of nodes whose network and data a process keeps at hand; a simulation has many nodes."""


def client_app(
    data: Callable[..., Any],
    model: Callable[[], nn.Module],
    *,
    folder: str | Path | None = None,
    app: ClientApp | None = None,
) -> ClientApp:
    """Return a Flower client app that takes part in any of our methods.

    What a method needs to know (rates, epochs, options) comes from the server with each question.
    The node's number is `partition-id` in its node-config.

    Parameters
    ----------
    data
        Returns the node's own data as (train, test), each a data loader, a data set, or a pair of
        inputs and labels. It is called with those of `partition_id`, `num_partitions`, `context`
        and the keys of run-config and node-config that it has parameters for.
    model
        Returns the network.
    folder
        Where nodes keep what they remember, node I in the folder I there. Without it, a node's
        folder is `memory` of its node-config, else I in ``$COALITIONS_NODES``, else I in
        ``~/.coalitions/nodes``.
    app
        An app to add to; it keeps all that it does so far.
    """
    needed("flwr")

    name = uuid.uuid4().hex

    def site_of(settings: str, context: Context) -> Site:
        return _site(_SiteKey(name, settings, _configured(context), data, model, context))

    def folder_of(context: Context) -> Path:
        own = context.node_config.get("memory")
        if folder is None and own is not None:
            return Path(str(own)).expanduser()
        # One app may serve many nodes, as in a simulation: each has a folder of its own there.
        home = folder or os.environ.get("COALITIONS_NODES") or Path.home() / ".coalitions" / "nodes"
        return Path(home).expanduser() / str(number_of(context))

    return answering(site_of, folder_of, app)


@dataclass(frozen=True)
class _SiteKey:
    """What a node's site is known again by, and, not compared, what it is made from.

    An app is known by a name, since Flower's simulation pickles it anew for each message.
    """

    app: str
    settings: str
    configured: tuple[Any, ...]
    data: Callable[..., Any] = field(compare=False)
    model: Callable[[], nn.Module] = field(compare=False)
    context: Context = field(compare=False)


def _configured(context: Context) -> tuple[Any, ...]:
    return tuple(sorted(context.node_config.items())), tuple(sorted(context.run_config.items()))


@lru_cache(_SITES)
def _site(key: _SiteKey) -> Site:
    config = replace(RunConfig.of(tomllib.loads(key.settings)), plugins=())

    def data(targets: Targets) -> FederatedData:
        return as_federated(called_for(key.data, key.context), config, targets)

    return node_site(config, key.model, data)


def answering(site_of: SiteOf, folder_of: FolderOf, app: ClientApp | None = None) -> ClientApp:
    """Return a client app that answers our questions.

    Parameters
    ----------
    site_of
        What a node computes with.
    folder_of
        Where a node keeps what it remembers.
    app
        An app to add to.
    """
    from flwr.app import Message
    from flwr.clientapp import ClientApp

    app = ClientApp() if app is None else app

    @app.query("coalitions")
    def answered(message: FlowerMessage, context: Context) -> FlowerMessage:
        outcome = _outcome(site_of, folder_of, message, context)
        return Message(outcome.records(), reply_to=message)

    return app


def number_of(context: Context) -> int:
    """Return the number of a node's client, which its node-config has."""
    number = context.node_config.get("partition-id")
    if type(number) is not int or number < 0:
        raise InvalidInputError(
            "a node is told the number of its client, from 0 on: --node-config 'partition-id=0 …'"
        )
    return number


def _outcome(
    site_of: SiteOf, folder_of: FolderOf, message: FlowerMessage, context: Context
) -> Outcome:
    """Return what came of a question; what goes wrong is said, and never ends the node."""
    try:
        question = NodeQuestion.read(message.content)
        if question.task == GREETING:
            return Outcome(HELLO, client=number_of(context))
        memory = NodeMemory(folder_of(context), question.run, context.state)
        return _answered(site_of, memory, question, context)
    except NoSolutionError as error:
        return Outcome(ENDS, reason=str(error))
    except CoalitionError as error:
        return Outcome(REFUSED, reason=str(error))


def _answered(
    site_of: SiteOf, memory: NodeMemory, question: NodeQuestion, context: Context
) -> Outcome:
    again = memory.version(question.name)
    if again is not None:
        return _done(again)
    before: Version | None = Version(NOTHING, {}, {})
    if question.builds_on != NOTHING:
        before = memory.version(question.builds_on)
    if before is None:
        return Outcome(LOST)
    if question.task not in TASKS:
        raise UnreadableError(f"this node knows no task {question.task!r}")
    site = site_of(question.settings, context)
    with one_thread():
        given = answer(
            site,
            TASKS[question.task],
            number_of(context),
            question.round,
            question.message,
            before.memory,
        )
    if given.reply is None:
        return Outcome(REFUSED, reason=given.reason or "no reason was given")
    after = Version(before.name, before.memory, given.reply)
    if given.memory is not None:
        after = Version(question.name, given.memory, given.reply)
        memory.keep(after)
    if question.kept is not None:
        memory.forget_others((*question.kept, after.name))
    return _done(after)


def _done(version: Version) -> Outcome:
    books = {key: version.memory[key] for key in BOOKS if key in version.memory}
    return Outcome(DONE, version.reply, version=version.name, books=books)


# ----------------------------------------------------------------------------------------
# A node's own data, in the forms that Flower projects have it.


def called_for(load: Callable[..., Any], context: Context) -> tuple[Any, Any]:
    """Return (train, test) from a project's own function, called with what it has parameters for.

    Parameters
    ----------
    load
        The function.
    context
        The node: `partition_id` and `num_partitions`, its node-config and its run-config.
    """
    config = {**context.run_config, **context.node_config, "context": context}
    known = {key.replace("-", "_"): value for key, value in config.items()}
    arguments = {}
    for name, parameter in inspect.signature(load).parameters.items():
        if name in known:
            arguments[name] = known[name]
        elif parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            raise InvalidInputError(
                f"the function that loads data has a parameter {name}, and neither node-config nor"
                f" run-config has {name.replace('_', '-')}"
            )
    loaded = load(**arguments)
    if not isinstance(loaded, (tuple, list)) or len(loaded) != 2:
        raise InvalidInputError("the function that loads data must return (train, test)")
    return loaded[0], loaded[1]


def as_federated(loaded: tuple[Any, Any], config: RunConfig, targets: Targets) -> FederatedData:
    """Return one node's data as that of a federation with a single client.

    A part of the training data is set aside for validation, the same one at every call.

    Parameters
    ----------
    loaded
        (train, test).
    config
        The run: its seed and its share for validation.
    targets
        What is learnt.
    """
    train, test = _split(loaded[0], "training", targets), _split(loaded[1], "test", targets)
    order = generator(config.seed, "node", "validation").permutation(len(train))
    held_out = int(config.validation_share * len(train))
    chosen = [torch.from_numpy(np.sort(part)) for part in (order[held_out:], order[:held_out])]
    inputs = train.named[ONLY]
    parts = [Split(inputs[at], train.targets[at]) for at in chosen]
    client = ClientData(parts[0], parts[1], test)
    shape = {ONLY: Input(tuple(inputs.shape[1:]))}
    return FederatedData("own", (client,), shape, targets)


def _split(given: Any, what: str, targets: Targets) -> Split:  # noqa: ANN401 (whatever there is)
    if holds_frame(given):
        raise InvalidInputError(
            f"the {what} data has a data frame, and a node cannot encode one: it does not know the"
            " categories of others; scale and encode it in the function that loads data, in the"
            " same way at each node, and return arrays (frame.to_numpy())"
        )
    pair = given
    if not isinstance(given, tuple) or len(given) != 2:
        examples = examples_of(given, f"the {what} data")
        pair = [np.array([np.asarray(each) for each in part]) for part in examples]
    inputs, labels = (torch.as_tensor(np.asarray(each)) for each in pair)
    if len(inputs) != len(labels) or not len(labels):
        raise InvalidInputError(
            f"the {what} data has {len(inputs)} inputs and {len(labels)} labels; there must be as"
            " many of both, and at least one"
        )
    inputs = inputs.to(torch.float32)
    if not bool(torch.isfinite(inputs).all()):
        raise InvalidInputError(f"the {what} data has numbers that are not finite")
    if targets.kind == "classification":
        return Split(inputs, _classes(labels, what, targets.n_outputs))
    return Split(inputs, _numbers(labels, what, targets))


def _classes(labels: Tensor, what: str, n_classes: int) -> Tensor:
    """Return labels as classes, or say that they are none; a table has them as 3.0, too."""
    whole = labels.to(torch.int64)
    if labels.dim() != 1 or int(whole.min()) < 0 or not torch.equal(whole, labels):
        raise InvalidInputError(f"the labels of the {what} data must be whole numbers from 0 on")
    largest = int(whole.max())
    if largest >= n_classes:
        raise InvalidInputError(
            f"the data has the label {largest}, and the network tells {n_classes} classes apart,"
            f" 0 … {n_classes - 1}"
        )
    return whole


def _numbers(truth: Tensor, what: str, targets: Targets) -> Tensor:
    """Return targets that are numbers, as many for each sample as the network gives."""
    truth = truth.to(torch.float32)
    width = truth[0].numel()
    if truth.dim() > 2 or width != targets.n_outputs:
        raise InvalidInputError(
            f"the {what} data has {width} numbers to learn for each sample, and the network gives"
            f" {targets.n_outputs}"
        )
    if not bool(torch.isfinite(truth).all()):
        raise InvalidInputError(f"the {what} data has targets that are not finite")
    if targets.kind == "multi-label" and not bool(((truth == 0) | (truth == 1)).all()):
        raise InvalidInputError(f"the labels of the {what} data must be zeros and ones")
    return truth
