"""A run about to begin: what it is made of is checked and put together, here or at Flower's nodes.

`checked` says whatever can be refused; `prepare` then moves the clients' data to where they train.
A server whose clients are nodes, and a node, go the same way with other data: with none, and with
their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from coalitions.errors import InvalidInputError
from coalitions.plugins import import_plugins
from learners.algorithm import Algorithm, algorithm_of
from learners.client.client import Site
from learners.data.client_data import ClientData, FederatedData, Split, Targets
from learners.data.clients import federated_data, scored_on_held_out, share_with_held_out
from learners.data.dataset import DATASETS
from learners.data.own.paths import (
    bound_to_path,
    check_clients,
    has_own_data,
    own_data,
    with_own_data,
)
from learners.measures.goal import goal_of
from learners.models import MODELS, network_for, suited_model
from learners.privacy.mechanism import Privacy, privacy_of
from learners.rows.parameters import Layout
from learners.rows.workspace import Workspace
from learners.runs.inputs import LastData, UserInputs
from learners.runs.network_checks import (
    bound_to_weights,
    check_metrics,
    check_single_gradients,
    check_validation_data,
    checked_layout,
    fitted_targets,
    load_weights,
)
from learners.server.aggregation import aggregation
from learners.server.engine import ENGINES
from learners.settings.config import RunConfig
from learners.settings.options import options_of
from learners.settings.participation import check_members


@dataclass(frozen=True, kw_only=True)
class PreparedRun:
    """A run about to begin: everything that does not depend on whether it is new or resumed.

    `remark` is a sentence on what was done with the data, `notice` the part nobody should miss.
    """

    site: Site
    network: Callable[[], nn.Module]
    about: dict[str, Any]
    client_names: tuple[str, ...]
    remark: str = ""
    notice: str = ""

    @property
    def config(self) -> RunConfig:
        """The settings, complete."""
        return self.site.config


@dataclass(frozen=True, kw_only=True)
class CheckedRun:
    """A run whose settings, method, network, data, metrics and privacy are known to fit together.

    Attributes
    ----------
    config
        The settings, complete.
    algorithm, workspace, data, privacy
        What clients compute with.
    network
        Makes the network, with its first weights.
    model
        What the network is called.
    remark
        A sentence on what was done with the data.
    """

    config: RunConfig
    algorithm: Algorithm
    workspace: Workspace
    data: FederatedData
    privacy: Privacy | None
    network: Callable[[], nn.Module]
    model: str
    remark: str = ""

    @property
    def domains(self) -> tuple[str, ...]:
        """The domain of each client that takes part in training; ``""`` where there are none."""
        return tuple(each.domain for each in self.data.clients[: self.config.members])

    @property
    def notice(self) -> str:
        """The part of the remark that nobody should miss."""
        return self.data.notice

    def site(self) -> Site:
        """Return what clients compute with, their data on the device."""
        return Site(self.config, self.algorithm, self.workspace, self.data, self.privacy)

    def prepared(self) -> PreparedRun:
        """Return the run about to begin."""
        return PreparedRun(
            site=self.site(),
            network=self.network,
            about=_about(self.model, self.data),
            client_names=tuple(each.name for each in self.data.clients),
            remark=self.remark,
            notice=self.notice,
        )


def _about(model: str, data: FederatedData) -> dict[str, Any]:
    """Return what a file of weights says of the network, so that it can be made again."""
    if not data.inputs:  # nobody here knows them
        return {"model": model, "n_classes": data.n_classes}
    if data.pictures and data.targets.kind == "classification":
        return {"model": model, "shape": list(data.shape), "n_classes": data.n_classes}
    inputs = {name: each.document() for name, each in data.inputs.items()}
    return {"model": model, "inputs": inputs, "targets": data.targets.document()}


# ----------------------------------------------------------------------------------------
# What the clients have.

_DECIDES_NO_DATA = ("metric", "new_clients", "data_sha256")
"""Settings of data that change nothing of what a client has."""


@cache
def _data_settings() -> tuple[str, ...]:
    names = [each.name for each in options_of(RunConfig) if each.group == "Data"]
    return ("seed", *(name for name in names if name not in _DECIDES_NO_DATA))


def data_of(config: RunConfig, last: LastData | None = None) -> FederatedData:
    """Return what the clients of a run have, by the name of a data set or a path.

    Parameters
    ----------
    config
        The run.
    last
        Has the data of the run before; they are returned if this one has the same.
    """
    by_path = has_own_data(config)
    return _data(bound_to_path(config) if by_path else config, by_path, last)


def _data(config: RunConfig, by_path: bool, last: LastData | None) -> FederatedData:
    settings = {name: getattr(config, name) for name in _data_settings()}
    if by_path:  # how many clients there are follows from the data
        settings |= {"clients": None, "data_sha256": config.data_sha256}
    elif config.partition == "auto":
        settings["partition"] = DATASETS[config.dataset].partition
    data: FederatedData = (last or LastData()).of(settings, lambda: _dealt(config, by_path))
    if by_path and config.clients != RunConfig.clients:
        check_clients(Path(config.dataset), len(data.clients), config.clients)
    return data


def _dealt(config: RunConfig, by_path: bool) -> FederatedData:
    held_out = config.evaluate_on == "validation"
    share = share_with_held_out(config) if held_out else config.validation_share
    if by_path:
        data = own_data(replace(config, validation_share=share))
    else:
        data = federated_data(
            config.dataset,
            clients=config.clients,
            partition=config.partition,
            seed=config.seed,
            train_size=config.train_sizes or config.train_size,
            test_size=config.test_sizes or config.test_size,
            validation_share=share,
            poison=config.poison,
            data_dir=None if config.data_dir is None else Path(config.data_dir),
        )
    data = scored_on_held_out(data, config) if held_out else data
    return data.as_task(config.task)


# ----------------------------------------------------------------------------------------
# The way of every run, wherever its clients' data are.


def prepare(
    config: RunConfig, own: UserInputs | None = None, last: LastData | None = None
) -> PreparedRun:
    """Return a run about to begin; see `checked`."""
    return checked(config, own, last).prepared()


def checked(
    config: RunConfig, own: UserInputs | None = None, last: LastData | None = None
) -> CheckedRun:
    """Return a run that nothing stands against; whatever can be refused is refused here.

    Parameters
    ----------
    config
        The run.
    own
        What the user brought in Python.
    last
        Has the data of the run before, which are not dealt again if this one has the same.
    """
    import_plugins(config.plugins)
    own = UserInputs() if own is None else own
    _check_engine(config, own)
    config, brought = own.marked(bound_to_weights(config), last)
    by_path = brought is None and has_own_data(config)
    if not by_path:
        aggregation(config.aggregation).check(config.participants)  # said before any work is done
    if config.model != "auto" and own.model is None:
        MODELS[config.model]
    algorithm = algorithm_of(config)
    device = _device(config.device)
    if brought is not None and config.evaluate_on == "validation":
        raise InvalidInputError(
            "evaluate_on validation is for data sets by name or path; data that are brought are"
            " tested on what is given as their test data"
        )
    if by_path:
        config = bound_to_path(config)
    data = _data(config, by_path, last) if brought is None else brought.as_task(config.task)
    if by_path:
        config = with_own_data(config, data)
        aggregation(config.aggregation).check(config.participants)
    check_members(config)
    algorithm.check_data(data)
    if config.augment is not None:
        data.only_pictures("augment")
    goal = goal_of(data.targets, *_judged_by(config, own))  # said before any work is done
    natural = by_path or brought is not None
    if natural and config.evaluate_on == "test":  # what is held out for tuning is not chosen
        check_metrics(goal, data)
    model = suited_model(data.inputs, data.targets) if config.model == "auto" else config.model
    partition = (
        DATASETS[config.dataset].partition if config.partition == "auto" else config.partition
    )
    config = replace(config, model=model, partition=partition, options=algorithm.options())
    # Not `data` itself: the network would keep it alive beside what the site makes of it.
    inputs, targets = data.inputs, data.targets

    # It can be pickled, and with it the result of a run without a folder.
    network = partial(network_for, model, inputs, targets, seed=config.seed)
    if own.model is not None:
        network = partial(UserInputs(model=own.model).network, config.seed)

    module = network()
    called = model if own.model is None else type(module).__name__
    remark = data.told
    if config.weights is not None:
        remark = f"{remark} {load_weights(Path(config.weights), module, called)}".lstrip()
    data = replace(data, targets=fitted_targets(module, data, called))
    layout = checked_layout(module, data)
    check_validation_data(config, algorithm, data)
    sizes = [len(each.train) for each in data.clients]
    run = _fitting(config, own, algorithm, module, layout, data, sizes, device, network)
    if run.privacy is not None and run.privacy.mode == "records":
        check_single_gradients(run.workspace, data, called)
    return replace(run, remark=remark)


def _fitting(
    config: RunConfig,
    own: UserInputs,
    algorithm: Algorithm,
    module: nn.Module,
    layout: Layout,
    data: FederatedData,
    sizes: Sequence[int],
    device: torch.device,
    network: Callable[[], nn.Module],
) -> CheckedRun:
    """Return a run whose method, metrics and privacy are checked against network and data.

    `sizes` are the clients' training samples, as far as they are known.
    """
    goal = goal_of(data.targets, *_judged_by(config, own))
    for name in algorithm.traits.measures:
        goal.metric(name)
    algorithm.check(config, layout)
    workspace = Workspace(module, layout, device, goal)
    privacy = privacy_of(config, algorithm, sizes, has_batch_norm=workspace.has_batch_norm)
    return CheckedRun(
        config=config,
        algorithm=algorithm,
        workspace=workspace,
        data=data,
        privacy=privacy,
        network=network,
        model=config.model,
    )


# ----------------------------------------------------------------------------------------
# The same where clients are nodes: a server has no data, and a node has its own alone.

AT_NODES = "own"
"""What stands for a data set in the settings of a run whose nodes have data of their own."""


def checked_for_nodes(config: RunConfig, model: Callable[[], nn.Module]) -> CheckedRun:
    """Return a run that nothing stands against, as far as a server without data can tell.

    Parameters
    ----------
    config
        The run.
    model
        Returns the network.
    """
    aggregation(config.aggregation).check(config.participants)
    algorithm = algorithm_of(config)
    if config.epsilon is not None and config.dp == "records":
        raise InvalidInputError(
            "noise for an epsilon of records is chosen by the sizes of all clients' data, which"
            " this server does not know; give noise and clip"
        )
    if config.weights is not None:
        raise InvalidInputError(
            "weights are for networks that a run makes; here your function makes it, on the server"
            " and at each node: have it load them"
        )
    check_members(config)
    own = UserInputs(model=model)
    config, _ = own.marked(config)
    config = replace(
        config, dataset=AT_NODES, engine="flower", partition=AT_NODES, options=algorithm.options()
    )

    def data(targets: Targets) -> FederatedData:
        nothing = Split(torch.zeros((0, 1)), torch.zeros(0, dtype=torch.int64))
        names = tuple(f"client {i}" for i in range(config.clients))
        clients = tuple(ClientData(nothing, nothing, nothing, name=name) for name in names)
        return FederatedData(AT_NODES, clients, {}, targets)

    return _with_own_network(config, own, algorithm, data)


def node_site(
    config: RunConfig, model: Callable[[], nn.Module], data: Callable[[Targets], FederatedData]
) -> Site:
    """Return what a node computes with: the settings of the server, and its own data.

    Parameters
    ----------
    config
        The run, whose network must be the node's.
    model
        Returns the network.
    data
        Returns the node's data as those of a single client.
    """
    own = UserInputs(model=model)
    own.marked(config)  # refuses another network than the server's
    site = _with_own_network(config, own, algorithm_of(config), data).site()
    return site.with_data(site.data * config.clients)  # it is asked for one of them only


def _with_own_network(
    config: RunConfig,
    own: UserInputs,
    algorithm: Algorithm,
    data: Callable[[Targets], FederatedData],
) -> CheckedRun:
    """Return a run of a network that tells what is learnt: nobody knows the data of all."""
    network = partial(UserInputs(model=own.model).network, config.seed)

    module = network()
    layout = Layout.of(module)
    there = data(_learnt(config, layout))
    algorithm.check_data(there)
    if config.augment is not None and there.inputs:
        there.only_pictures("augment")
    # Of clients elsewhere a 1 stands for their size, which decides only what is refused above.
    sizes = [max(1, len(there.clients[0].train))] * config.clients
    cpu = torch.device("cpu")
    return _fitting(config, own, algorithm, module, layout, there, sizes, cpu, network)


def _learnt(config: RunConfig, layout: Layout) -> Targets:
    """Return what nodes learn: classes, unless the run's `task` says otherwise."""
    head = layout.classifiers.get("head")
    if head is None:
        raise InvalidInputError("the network has no linear layer, which would tell its outputs")
    if config.task == "next-token":
        raise InvalidInputError("task is next-token; nodes learn classes, labels or numbers")
    n_outputs = layout.shapes[next(iter(head))][0]
    return Targets("classification" if config.task == "auto" else config.task, n_outputs)


# ----------------------------------------------------------------------------------------
# What is asked of the machine and of the caller.


def _check_engine(config: RunConfig, own: UserInputs) -> None:
    ENGINES[config.engine]
    brings = own.metrics or any(each is not None for each in (own.data, own.model, own.loss))
    if config.engine != "local" and brings:
        raise InvalidInputError(
            f"the engine {config.engine} makes clients from the settings of a run, which cannot"
            " hold what is brought in Python; choose the engine local, or learners.flower"
        )


def _judged_by(config: RunConfig, own: UserInputs) -> tuple[Any, Any]:
    """Return the loss and the metrics: those that were brought, or those of the settings."""
    return own.loss or config.loss, own.metrics or config.metric


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
