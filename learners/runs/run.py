"""A federated run from its configuration to its result: begin, resume, load what came out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from coalitions.errors import DamagedFileError, InputWarning, InvalidInputError
from coalitions.plugins import import_plugins
from learners.client.tasks import deploy
from learners.data.client_data import FederatedData, Input, Kind, Targets
from learners.loggers.callback import Callback
from learners.measures.losses import LossFunction
from learners.measures.metrics import OwnMetric
from learners.models import build_model, network_for
from learners.rows.parameters import Layout
from learners.runs.checkpoint import Checkpoint
from learners.runs.folder import RunFolder, load_into
from learners.runs.inputs import MARK, Clients, Factory, LastData, UserInputs
from learners.runs.prepare import Checked, Prepared, checked, prepare
from learners.server.client_failures import left_out
from learners.server.engine import ENGINES, MakeEngine
from learners.server.federation import Federation, Round
from learners.server.local_engine import compute, n_workers, one_thread
from learners.server.newcomers import welcomed
from learners.settings.config import RunConfig

OnRound = Callable[[Round], None]
"""Called after each round."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What came out of a run.

    Attributes
    ----------
    config
        What was asked, complete.
    metrics
        Of the last round: accuracies and losses, see `metrics.jsonl`.
    communication
        Parameters and bytes, up and down, of the whole run.
    seconds
        Time of all rounds.
    history
        The metrics of every round.
    out
        The run's folder, if it has one.
    privacy
        The noise, and what its ε covers; None if nothing was clipped or noised.
    client_names
        What the clients are called.
    task
        What was learnt.
    new_clients
        Of the clients that were held out of training: how they got their models, and how good these
        are; None if there were none.
    """

    config: RunConfig
    metrics: Mapping[str, Any]
    communication: Mapping[str, int]
    seconds: float
    history: tuple[Mapping[str, Any], ...] = field(repr=False)
    out: Path | None = None
    privacy: Mapping[str, Any] | None = None
    client_names: tuple[str, ...] = ()
    task: Kind = "classification"
    new_clients: Mapping[str, Any] | None = None
    _models: tuple[Tensor | None, ...] = field(default=(), repr=False)
    _network: Callable[[], nn.Module] | None = field(default=None, repr=False)

    @property
    def mean_test_accuracy(self) -> float | None:
        """Mean over the honest clients of the accuracy on their own test data; None without one."""
        value: float | None = self.metrics["mean_test_accuracy"]
        return value

    @property
    def worst_client_accuracy(self) -> float | None:
        """The lowest of these accuracies."""
        value: float | None = self.metrics["worst_client_accuracy"]
        return value

    @property
    def per_client_test_accuracy(self) -> list[float | None]:
        """Every client's accuracy on its own test data."""
        return list(self.metrics["per_client_test_accuracy"] or ())

    @property
    def epsilon(self) -> float | None:
        """What the worst client has spent of its privacy; None if there is no finite figure."""
        value: float | None = self.metrics.get("epsilon")
        return value

    def model(self, client: int = 0) -> nn.Module:
        """Return the network a client ended with, ready to predict."""
        if self.out is not None:
            return load_model(self.out, client, model=self._network)
        row = self._models[client] if 0 <= client < len(self._models) else None
        if self._network is None or row is None:
            raise InvalidInputError(
                f"there is no model of client {client}; clients are numbered 0 …"
                f" {len(self._models) - 1}"
            )
        network = self._network()
        return Layout.of(network).unpack(row, network).eval()

    def document(self) -> dict[str, Any]:
        """Return the result as plain values."""
        config = self.config
        scores = {
            key: value
            for key, value in self.metrics.items()
            if "test_accuracy" in key
            or "client_accuracy" in key
            or "test_loss" in key
            or key == "per_client_kept_round"
        }
        metrics = {key: value for key, value in self.metrics.items() if key.endswith("metrics")}
        return {
            "algorithm": config.algorithm,
            "dataset": config.dataset,
            "clients": config.clients,
            "rounds": config.rounds,
            "seed": config.seed,
            "task": self.task,
            **scores,
            **metrics,
            **({} if self.new_clients is None else {"new_clients": dict(self.new_clients)}),
            "client_names": list(self.client_names),
            "communication": dict(self.communication),
            "epsilon": self.epsilon,
            "privacy": None if self.privacy is None else dict(self.privacy),
            "left_out": left_out(self.history),
            "seconds": self.seconds,
            "out": None if self.out is None else str(self.out),
        }


def run(
    config: Mapping[str, Any] | RunConfig,
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
        Settings by name, see `RunConfig`; what is not given has its default.
    out
        Folder to write to, which must not exist; None keeps everything in memory.
    data
        Data of your own instead of a data set: what each client trains on and is tested on, in
        order or by name. Both are ``(inputs, targets)`` of arrays or tensors, a torch `Dataset`, or
        a data frame. Or one data frame with the rows of all clients. Frames are treated as files
        are: scaled, filled in and encoded. Validation data are set aside from what a client trains
        on.
    model
        A network of your own: a class or function that makes it without being given anything.
        Several inputs are handed to it by their names.
    loss
        Name of a loss, or a function of outputs and targets.
    metrics
        What models are judged by: names, or functions of targets and outputs (numpy arrays) where
        higher is better.
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
    prepared = prepare(RunConfig.of(config), own)
    say(prepared, tell)
    folder = None if out is None else Path(out)
    return begin(prepared, folder, force=force, on_round=on_round, callbacks=callbacks)


def begin(
    prepared: Prepared,
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
    prepared: Prepared, out: Path | None, make: MakeEngine, on_round: OnRound | None = None
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
    finished = folder.result()
    if finished is not None:
        folder.check_finished(config)
        history = folder.history()
        if len(history) != config.rounds:
            raise DamagedFileError(
                f"{folder.path / 'metrics.jsonl'} is damaged: it has {len(history)} rounds, and the"
                f" finished run had {config.rounds}"
            )
        return Result(
            config=config,
            metrics=history[-1],
            communication=finished["communication"],
            seconds=finished["seconds"],
            history=tuple(history),
            out=folder.path,
            privacy=finished.get("privacy"),
            client_names=tuple(finished.get("client_names", ())),
            task=finished.get("task", "classification"),
            new_clients=finished.get("new_clients"),
        )
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


def say(prepared: Prepared | Checked, tell: Callable[[str], None] | None) -> None:
    """Tell what there is to say of a run's data, or warn whoever called what calls this."""
    if tell is not None:
        if prepared.remark:
            tell(prepared.remark)
    elif prepared.notice:
        warnings.warn(prepared.notice, InputWarning, stacklevel=3)


def load_model(out: str | Path, client: int = 0, *, model: Factory | None = None) -> nn.Module:
    """Return the network that a client ended with, from a run's folder, ready to predict.

    `model` is what `run` was given, if the network is the user's own.
    """
    folder = RunFolder.open(Path(out))
    config = folder.config()
    import_plugins(config.plugins)
    tensors, about = folder.read_model(client)
    if MARK in about["model"]:
        if model is None:
            raise InvalidInputError(
                f"{out} was made with a network of its user's own; give it again, as model="
            )
        return load_into(UserInputs(model=model).network(config.seed), tensors)
    return load_into(_network_of(about, config.seed), tensors)


def _network_of(about: Mapping[str, Any], seed: int) -> nn.Module:
    """Return the network that a model's file tells of."""
    if "inputs" not in about:
        shape = tuple(about["shape"])
        return build_model(about["model"], shape=shape, n_classes=about["n_classes"], seed=seed)
    inputs = {
        name: Input(tuple(each["shape"]), tuple(each["codes"]))
        for name, each in about["inputs"].items()
    }
    target = about["targets"]
    targets = Targets(target["kind"], target["n_outputs"], tuple(target["names"]))
    return network_for(about["model"], inputs, targets, seed=seed)


def _carry_out(
    prepared: Prepared,
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
        folder.write_result(result.document())
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
