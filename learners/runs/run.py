"""A federated run from its configuration to its result: begin it, or go on with it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from coalitions.errors import (
    InvalidInputError,
    UnknownKeywordError,
    shown,
    warn_caller,
    with_keywords,
)
from learners.algorithm import ALGORITHMS, State
from learners.client.tasks import deploy
from learners.data.client_data import FederatedData
from learners.loggers import Callback
from learners.measures.losses import LossFunction
from learners.measures.metrics import OwnMetric, summary
from learners.runs.checkpoint import Checkpoint
from learners.runs.folder import RunFolder
from learners.runs.inputs import Clients, Factory, LastData, UserInputs
from learners.runs.prepare import CheckedRun, PreparedRun, checked, prepare
from learners.runs.result import Result, finished_result
from learners.server.engine import ENGINES, MakeEngine
from learners.server.federation import Federation, NobodyAnsweredError, Round
from learners.server.local_engine import compute, n_workers, one_thread
from learners.settings.config import RunConfig
from learners.task import Message

OnRound = Callable[[Round], None]
"""Called after each round."""


@with_keywords()
def run(
    config: Mapping[str, Any] | RunConfig | str | Path,
    out: str | Path | None = None,
    *,
    data: Clients | FederatedData | None = None,
    model: Factory | None = None,
    loss: str | LossFunction | None = None,
    metrics: Sequence[str | OwnMetric] = (),
    target: str | None = None,
    client_column: str | None = None,
    force: bool = False,
    on_round: OnRound | None = None,
    callbacks: Sequence[Callback] = (),
    tell: Callable[[str], None] | None = None,
) -> Result:
    """Return the result of a federated run.

    Parameters
    ----------
    config
        Settings by name, see `RunConfig`, or the path of a TOML file that has them; what is not
        given has its default.
    out
        Folder to write to, which must not exist; None keeps everything in memory.
    data
        Data of your own instead of a data set: what each client trains on and is tested on, in
        order or by name. Both are ``(inputs, targets)`` of arrays or tensors, a torch `Dataset` or
        `DataLoader`, or a data frame. Or one data frame with the rows of all clients. Frames are
        treated as files are: scaled, filled in and encoded. Validation data are set aside from
        what a client trains on.
    model
        A network of your own: a class or function that makes it without being given anything.
        Several inputs are handed to it by their names.
    loss
        Name of a loss, or a function of outputs and targets.
    metrics
        What models are judged by: names, or functions of targets and outputs (numpy arrays) where
        higher is better. Settings that name another `metric` are refused, as for model and loss.
    target
        The column to predict, if data are tables. The configuration may name it, too.
    client_column
        The column with the client's name, if one table has the rows of all clients. The
        configuration may name it, too.
    force
        Replace the run that is in `out`.
    on_round
        Called after each round.
    callbacks
        Told when the run begins, after each round and when it is finished, such as loggers.
    tell
        Called before the first one with a sentence on what was done with data of your own. Without
        it, the part that nobody should miss, who has one class only, is an `InputWarning`.

    Examples
    --------
    >>> result = run({"algorithm": "fedavg", "clients": 3, "rounds": 1, "workers": 1})
    >>> len(result.per_client_test_accuracy)
    3
    """
    own = UserInputs(data, model, loss, tuple(metrics), target, client_column)
    try:
        asked = RunConfig.of(config)
    except UnknownKeywordError:
        if isinstance(config, Mapping):
            _tell_of_options(config)
        raise
    prepared = prepare(asked, own)
    say(prepared, tell)
    folder = None if out is None else Path(out)
    return begin(prepared, folder, force=force, on_round=on_round, callbacks=callbacks)


def _tell_of_options(values: Mapping[str, Any]) -> None:
    """Say of a key that is an option of an algorithm where options stand."""
    known = {each.name for each in fields(RunConfig)}
    for key in values:
        name = str(key).replace("-", "_")
        owners = [each for each in ALGORITHMS if name in ALGORITHMS[each]().options()]
        if name not in known and owners:
            raise UnknownKeywordError(
                f"{name} is an option of {', '.join(owners)}, and no setting; give it among the"
                f' options: {{"options": {{"{name}": {shown(values[key])}}}}}'
            )


def begin(
    prepared: PreparedRun,
    out: Path | None,
    *,
    force: bool = False,
    on_round: OnRound | None = None,
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Return the result of a run that is prepared; the rest is as of `run`."""
    if out is None:
        return _carry_out(prepared, None, None, on_round, callbacks)
    with RunFolder.create(out, prepared.config, force=force) as folder:
        return _carry_out(prepared, folder, None, on_round, callbacks)


def begin_or_resume(
    prepared: PreparedRun, out: Path | None, make: MakeEngine, on_round: OnRound | None = None
) -> Result:
    """Return the result of a run on an engine of the caller's, which may have begun before.

    Parameters
    ----------
    prepared
        The run.
    out
        Its folder: one that has this very run is gone on with. None keeps everything in memory.
    make
        Makes the engine.
    on_round
        Called after each round.
    """
    if out is None:
        return _carry_out(prepared, None, None, on_round, (), make)
    if not (out / "config.toml").is_file():
        with RunFolder.create(out, prepared.config) as folder:
            return _carry_out(prepared, folder, None, on_round, (), make)
    folder = RunFolder.open(out)
    if folder.result() is not None:
        raise InvalidInputError(f"the run in {out} is finished; choose another folder")
    with folder.alone():
        checkpoint = folder.resume_from(prepared.config, prepared.site.workspace.device)
        return _carry_out(prepared, folder, checkpoint, on_round, (), make)


@with_keywords()
def resume(
    out: str | Path,
    *,
    data: Clients | FederatedData | None = None,
    model: Factory | None = None,
    loss: str | LossFunction | None = None,
    metrics: Sequence[str | OwnMetric] = (),
    target: str | None = None,
    client_column: str | None = None,
    on_round: OnRound | None = None,
    callbacks: Sequence[Callback] = (),
    workers: int | None = None,
) -> Result:
    """Return the result of the run in a folder, going on where it was interrupted.

    A run that was killed at any moment ends with the same numbers as one that was not. A
    finished run is returned as it is.

    Parameters
    ----------
    out
        The run's folder.
    data, model, loss, metrics
        What was given to `run` beside the configuration must be given again.
    target, client_column
        Need not be given again: the run's configuration has them.
    on_round
        Called after each round.
    callbacks
        Told what is left of the run, as by `run`; of a finished one, nothing.
    workers
        Worker processes, if not as many as the run began with; no number depends on them.
    """
    own = UserInputs(data, model, loss, tuple(metrics), target, client_column)
    return go_on(Path(out), own, on_round=on_round, callbacks=callbacks, workers=workers)


def go_on(
    out: Path,
    own: UserInputs,
    last: LastData | None = None,
    *,
    on_round: OnRound | None = None,
    callbacks: Sequence[Callback] = (),
    workers: int | None = None,
) -> Result:
    """Return the result of the run in a folder; `last` is as of `prepare`, the rest of `resume`."""
    folder = RunFolder.open(out)
    config = folder.config()
    finished = finished_result(folder, config)
    if finished is not None:
        return finished
    if workers is not None:
        config = replace(config, workers=workers)
    prepared = prepare(config, own, last)
    with folder.alone():
        device = prepared.site.workspace.device
        checkpoint = folder.resume_from(prepared.config, device)
        return _carry_out(prepared, folder, checkpoint, on_round, callbacks)


def completed(
    config: Mapping[str, Any] | RunConfig, tell: Callable[[str], None] | None = None
) -> RunConfig:
    """Return a configuration with everything decided that was left open, as a run's folder has it.

    The network, the partition and the method's options get their values. What the run would
    refuse is refused here, before any work is done. `tell` is that of `run`.
    """
    prepared = checked(RunConfig.of(config))
    say(prepared, tell)
    return prepared.config


def say(prepared: PreparedRun | CheckedRun, tell: Callable[[str], None] | None) -> None:
    """Tell what there is to say of a run's data, or warn whoever called what calls this."""
    if tell is not None:
        if prepared.remark:
            tell(prepared.remark)
    elif prepared.notice:
        warn_caller(prepared.notice)


def _carry_out(
    prepared: PreparedRun,
    folder: RunFolder | None,
    checkpoint: Checkpoint | None,
    on_round: OnRound | None,
    callbacks: Sequence[Callback],
    make: MakeEngine | None = None,
) -> Result:
    config, site = prepared.config, prepared.site
    make = ENGINES[config.engine] if make is None else make
    engine = make(site, folder.path if folder else None)
    try:
        with one_thread():
            federation = Federation(
                config,
                site.algorithm,
                engine,
                site.workspace.layout,
                site.initial,
                site.privacy,
                site.workspace.goal,
            )
            if folder is not None:
                place = {
                    "device": str(site.workspace.device),
                    "engine": config.engine,
                    "compute": compute(site),
                    "workers": n_workers(site, config.workers),
                    "deterministic": torch.are_deterministic_algorithms_enabled(),
                }
                names = prepared.client_names[: config.members]
                registered = zip(federation.said_at_the_start(), names, strict=True)
                clients = [dict(client) | {"name": name} for client, name in registered]
                folder.write_circumstances(clients, place, site.targets.names)
            seconds, state, done = 0.0, None, 0
            if checkpoint is not None:
                federation.restore(checkpoint.memories)
                federation.ledger.counts[:] = checkpoint.traffic
                seconds, state, done = checkpoint.seconds, checkpoint.state, checkpoint.round
            history = folder.history() if folder else []
            if history:
                federation.recall(history[-1])
            for callback in callbacks:
                callback.on_begin(config, folder.path if folder else None, history)
            for round in federation.rounds(state, after=done):
                state = round.state
                seconds += round.metrics["seconds"]
                history.append(round.metrics)
                if folder is not None:
                    _write(folder, federation, round, seconds)
                if on_round is not None:
                    on_round(round)
                for callback in callbacks:
                    callback.on_round(round)
            models = _deployed_models(federation, state or {})
            new_clients = None
            if federation.newcomers:
                new_clients, rows = _welcomed(
                    federation, state or {}, [each.name for each in site.data]
                )
                models += rows
    finally:
        engine.close()
    traffic = federation.ledger.total()
    result = Result(
        config=config,
        metrics=history[-1],
        communication=vars(traffic),
        seconds=seconds,
        history=tuple(history),
        out=folder.path if folder else None,
        privacy=None if site.privacy is None else site.privacy.document(),
        client_names=tuple(each.name for each in site.data[: config.members]),
        task=site.targets.kind,
        new_clients=new_clients,
        _models=() if folder else models,
        _network=prepared.network,
    )
    if folder is not None:
        folder.write_models(models, site.workspace.layout, prepared.about)
        folder.write_result(result.to_dict())
        folder.sweep()
    for callback in callbacks:
        callback.on_end(result)
    return result


def _write(folder: RunFolder, federation: Federation, round: Round, seconds: float) -> None:
    config = federation.config
    folder.write_round(round, config.rounds)
    if round.number % config.checkpoint_every == 0 or round.number == config.rounds:
        folder.save(
            Checkpoint(
                round.number,
                round.state,
                federation.memories(),
                federation.ledger.counts,
                seconds,
                config.toml(),
            )
        )


def _deployed_models(federation: Federation, state: Mapping[str, Any]) -> tuple[Tensor | None, ...]:
    """Return the row each client ended with, None if it is not sound; equal ones are one tensor."""
    messages = next(iter(federation.in_use(state).values()))
    replies = federation.ask(deploy, messages, measuring=True)
    rows: list[Tensor | None] = []
    last: Tensor | None = None
    for client in federation.clients:
        row: Tensor | None = replies[client]["model"] if client in replies else None
        if row is not None and last is not None and torch.equal(last, row):
            row = last
        rows.append(row)
        last = row if row is not None else last
    return tuple(rows)


def _welcomed(
    federation: Federation, state: Mapping[str, Any], names: Sequence[str]
) -> tuple[dict[str, Any], tuple[Tensor | None, ...]]:
    """Return what is said about the newcomers, and their models."""
    document, messages = welcomed(federation, state)
    replies = federation.ask(deploy, messages, measuring=True) if messages else {}
    document["names"] = [names[c] for c in federation.newcomers]
    return document, tuple(
        replies[c]["model"] if c in replies else None for c in federation.newcomers
    )


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
