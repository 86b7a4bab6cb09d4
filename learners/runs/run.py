"""A federated run from its configuration to its result: begin, resume, load what came out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from coalitions.errors import DamagedFileError, InvalidInputError
from coalitions.plugins import import_plugins
from learners.algorithm import Algorithm, algorithm_of
from learners.client.client import Site
from learners.client.tasks import deploy
from learners.data.clients import FederatedData, federated_data
from learners.data.dataset import DATASETS
from learners.models import MODELS, build_model
from learners.privacy.mechanism import privacy_of
from learners.rows.parameters import Layout
from learners.rows.workspace import Workspace
from learners.runs.checkpoint import Checkpoint
from learners.runs.folder import RunFolder, load_into
from learners.server.aggregation import aggregation
from learners.server.engines.engine import ENGINES, MakeEngine
from learners.server.engines.local import n_workers, one_thread
from learners.server.federation import Federation, Round
from learners.server.left_out import left_out
from learners.settings.config import RunConfig

OnRound = Callable[[Round], None]
"""Called after each round."""


@dataclass(frozen=True)
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
    """

    config: RunConfig
    metrics: Mapping[str, Any]
    communication: Mapping[str, int]
    seconds: float
    history: tuple[Mapping[str, Any], ...] = field(repr=False)
    out: Path | None = None
    privacy: Mapping[str, Any] | None = None
    _models: tuple[Tensor | None, ...] = field(default=(), repr=False)
    _network: Callable[[], nn.Module] | None = field(default=None, repr=False)

    @property
    def mean_test_accuracy(self) -> float:
        """Mean over the honest clients of the accuracy on their own test data."""
        return float(self.metrics["mean_test_accuracy"])

    @property
    def worst_client_accuracy(self) -> float:
        """The lowest of these accuracies."""
        return float(self.metrics["worst_client_accuracy"])

    @property
    def per_client_test_accuracy(self) -> list[float | None]:
        """Every client's accuracy on its own test data."""
        return list(self.metrics["per_client_test_accuracy"])

    @property
    def epsilon(self) -> float | None:
        """What the worst client has spent of its privacy; None if there is no finite figure."""
        value: float | None = self.metrics.get("epsilon")
        return value

    def model(self, client: int = 0) -> nn.Module:
        """Return the network a client ended with, ready to predict."""
        if self.out is not None:
            return load_model(self.out, client)
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
            if "test_accuracy" in key or "client_accuracy" in key or "test_loss" in key
        }
        return {
            "algorithm": config.algorithm,
            "dataset": config.dataset,
            "clients": config.clients,
            "rounds": config.rounds,
            "seed": config.seed,
            **scores,
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
    force: bool = False,
    on_round: OnRound | None = None,
) -> Result:
    """Return the result of a federated run.

    Parameters
    ----------
    config
        Settings by name, see `RunConfig`; what is not given has its default.
    out
        Folder to write to, which must not exist; None keeps everything in memory.
    force
        Replace the run that is in `out`.
    on_round
        Called after each round.

    Examples
    --------
    >>> result = run({"algorithm": "fedavg", "clients": 3, "rounds": 1, "workers": 1})
    >>> len(result.per_client_test_accuracy)
    3
    """
    prepared = prepare(RunConfig.of(config))
    if out is None:
        return _carry_out(prepared, None, None, on_round)
    with RunFolder.create(Path(out), prepared.config, force=force) as folder:
        return _carry_out(prepared, folder, None, on_round)


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
        return _carry_out(prepared, None, None, on_round, make)
    if not (out / "config.toml").is_file():
        with RunFolder.create(out, prepared.config) as folder:
            return _carry_out(prepared, folder, None, on_round, make)
    folder = RunFolder.open(out)
    if folder.result() is not None:
        raise InvalidInputError(f"the run in {out} is finished; choose another folder")
    with folder.alone():
        checkpoint = folder.resume_from(prepared.config, prepared.site.workspace.device)
        return _carry_out(prepared, folder, checkpoint, on_round, make)


def resume(out: str | Path, *, on_round: OnRound | None = None) -> Result:
    """Return the result of the run in a folder, going on where it was interrupted.

    A run that was killed at any moment ends with the same numbers as one that was not. A
    finished run is returned as it is.
    """
    folder = RunFolder.open(Path(out))
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
            config,
            history[-1],
            finished["communication"],
            finished["seconds"],
            tuple(history),
            folder.path,
            finished.get("privacy"),
        )
    prepared = prepare(config)
    with folder.alone():
        device = prepared.site.workspace.device
        checkpoint = folder.resume_from(prepared.config, device)
        return _carry_out(prepared, folder, checkpoint, on_round)


def completed(config: Mapping[str, Any] | RunConfig) -> RunConfig:
    """Return a configuration with everything decided that was left open, as a run's folder has it.

    The network, the partition and the method's options get their values. What the run would
    refuse is refused here, before any work is done.
    """
    return prepare(RunConfig.of(config)).config


def load_model(out: str | Path, client: int = 0) -> nn.Module:
    """Return the network that a client ended with, from a run's folder, ready to predict."""
    folder = RunFolder.open(Path(out))
    config = folder.config()
    import_plugins(config.plugins)
    tensors, about = folder.read_model(client)
    if "shape" not in about:  # a network of a Flower project's own
        raise InvalidInputError(
            f"the network {about['model']} of this run is not one of ours: make it yourself, and"
            f" load {folder.path / 'models'}/client-{client:04d}.safetensors into it"
        )
    channels, height, width = about["shape"]
    network = build_model(
        about["model"],
        shape=(channels, height, width),
        n_classes=about["n_classes"],
        seed=config.seed,
    )
    return load_into(network, tensors)


@dataclass(frozen=True)
class Prepared:
    """A run about to begin: everything that does not depend on whether it is new or resumed."""

    config: RunConfig
    algorithm: Algorithm
    site: Site
    layout: Layout
    network: Callable[[], nn.Module]
    about: dict[str, Any]


def data_of(config: RunConfig) -> FederatedData:
    """Return what the clients of a run have."""
    return federated_data(
        config.dataset,
        clients=config.clients,
        partition=config.partition,
        seed=config.seed,
        train_size=config.train_size,
        test_size=config.test_size,
        validation_share=config.validation_share,
        poison=config.poison,
        data_dir=None if config.data_dir is None else Path(config.data_dir),
    )


def _check_validation_data(config: RunConfig, data: FederatedData) -> None:
    for number, client in enumerate(data.clients):
        if not len(client.validation.labels):
            raise InvalidInputError(
                f"{config.algorithm} measures models on validation data, and client {number} has"
                f" none; choose a validation_share above {config.validation_share:g}, or more"
                " images"
            )


def prepare(config: RunConfig) -> Prepared:
    """Return a run about to begin; whatever can be refused is refused here."""
    import_plugins(config.plugins)
    ENGINES[config.engine]
    aggregation(config.aggregation).check(config.participants)  # said before any work is done
    if config.model != "auto":
        MODELS[config.model]
    algorithm = algorithm_of(config)
    device = _device(config.device)
    data = data_of(config)
    model = suited_model(data.shape) if config.model == "auto" else config.model
    partition = (
        DATASETS[config.dataset].partition if config.partition == "auto" else config.partition
    )
    config = replace(config, model=model, partition=partition, options=algorithm.options())

    # Not `data` itself: the network would keep it alive beside what the site makes of it.
    shape, n_classes = data.shape, data.n_classes

    def network() -> nn.Module:
        return build_model(model, shape=shape, n_classes=n_classes, seed=config.seed)

    module = network()
    layout = Layout.of(module)
    algorithm.check(config, layout)
    if algorithm.validates:
        _check_validation_data(config, data)
    workspace = Workspace(module, layout, device)
    privacy = privacy_of(
        config,
        algorithm,
        [len(each.train.labels) for each in data.clients],
        has_batch_norm=workspace.has_batch_norm,
    )
    site = Site(config, algorithm, workspace, data, privacy)
    about = {"model": model, "shape": list(data.shape), "n_classes": data.n_classes}
    return Prepared(config, algorithm, site, layout, network, about)


def _carry_out(
    prepared: Prepared,
    folder: RunFolder | None,
    checkpoint: Checkpoint | None,
    on_round: OnRound | None,
    make: MakeEngine | None = None,
) -> Result:
    config, site = prepared.config, prepared.site
    make = ENGINES[config.engine] if make is None else make
    engine = make(site, folder.path if folder else None)
    try:
        with one_thread():
            federation = Federation(
                config, prepared.algorithm, engine, prepared.layout, site.initial, site.privacy
            )
            if folder is not None:
                place = {
                    "device": str(site.workspace.device),
                    "engine": config.engine,
                    "workers": n_workers(site, config.workers),
                }
                folder.write_circumstances(federation.said_at_the_start(), place)
            seconds, state, done = 0.0, None, 0
            if checkpoint is not None:
                federation.restore(checkpoint.memories)
                federation.ledger.counts[:] = checkpoint.traffic
                seconds, state, done = checkpoint.seconds, checkpoint.state, checkpoint.round
            history = folder.history() if folder else []
            if history:
                federation.recall(history[-1])
            for round in federation.rounds(state, after=done):
                state = round.state
                seconds += round.metrics["seconds"]
                history.append(round.metrics)
                if folder is not None:
                    _write(folder, federation, round, seconds)
                if on_round is not None:
                    on_round(round)
            models = _deployed_models(federation, state or {})
    finally:
        engine.close()
    traffic = federation.ledger.total()
    result = Result(
        config,
        history[-1],
        vars(traffic),
        seconds,
        tuple(history),
        folder.path if folder else None,
        None if site.privacy is None else site.privacy.document(),
        () if folder else models,
        prepared.network,
    )
    if folder is not None:
        folder.write_models(models, prepared.layout, prepared.about)
        folder.write_result(result.document())
        folder.sweep()
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
    messages = next(iter(federation.algorithm.deployed(federation, state).values()))
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


def suited_model(shape: tuple[int, int, int]) -> str:
    """Return the network for pictures of a shape: LeNet-5 wants 28 pixels a side or more."""
    return "lenet-5" if min(shape[1:]) >= 28 else "mlp"


def _device(name: str) -> torch.device:
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        raise InvalidInputError("device cuda: torch finds no GPU here; choose cpu or auto")
    if name == "mps" and not torch.backends.mps.is_available():
        raise InvalidInputError("device mps: torch finds no Apple GPU here; choose cpu or auto")
    return torch.device(name)
