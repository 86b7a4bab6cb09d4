"""A run's data if they are the user's own: read, held against their checksum, made a federation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from coalitions.errors import InvalidInputError
from learners.data.contents import FederatedData
from learners.data.dataset import DATASETS
from learners.data.doors.outcome import Outcome
from learners.data.doors.paths import NATURAL, PathQuestion, checksum, is_path, read_path
from learners.data.own import federation_of
from learners.settings.config import RunConfig

_FOR_PATHS = (
    "target",
    "client_column",
    "group_column",
    "schema",
    "share_statistics",
    "data_sha256",
)


def has_own_data(config: RunConfig) -> bool:
    """Tell whether a run's data are a table or folder of the user's."""
    if is_path(config.dataset, DATASETS):
        return True
    for key in _FOR_PATHS:
        if getattr(config, key):
            raise InvalidInputError(
                f"{key} has no effect unless dataset is a table or a folder; it is {config.dataset}"
            )
    return False


def question_of(config: RunConfig) -> PathQuestion:
    """Return what the settings of a run ask of a path."""
    return PathQuestion(
        Path(config.dataset),
        config.target,
        config.client_column,
        config.group_column,
        None if config.task == "auto" else config.task,
        None if config.schema is None else Path(config.schema),
        config.share_statistics,
        config.train_size,
        config.test_size,
        config.seed,
    )


def own_data(config: RunConfig) -> FederatedData:
    """Return what the clients of a run have; whatever can be refused is refused here."""
    return federation_of_outcome(config, read_own(config))


def read_own(config: RunConfig) -> Outcome:
    """Return what is at the path that a run names, held against its checksum."""
    path = Path(config.dataset)
    if config.partition not in ("auto", NATURAL):
        raise InvalidInputError(
            f"{path}: its clients have their data already, so there is no partition"
            f" {config.partition}"
        )
    for name in ("train_sizes", "test_sizes"):
        if getattr(config, name):
            raise InvalidInputError(f"{path}: {name} has no effect on data of one's own")
    if config.poison:
        raise InvalidInputError(f"{path}: poison is for data sets by name, not for your own data")
    if config.data_sha256 is not None and path.exists() and checksum(path) != config.data_sha256:
        raise InvalidInputError(
            f"{path}: has changed since the run was set up (data_sha256 differs); bring back what"
            " it was, or start another run"
        )
    outcome = read_path(question_of(config))
    if config.clients != RunConfig.clients:  # which is what it is if nobody said anything
        check_clients(path, outcome, config.clients)
    return outcome


def check_clients(path: Path, outcome: Outcome, wanted: int) -> None:
    """Refuse another number of clients than there are."""
    if wanted != len(outcome.clients):
        raise InvalidInputError(
            f"{path}: has {len(outcome.clients)} clients, not {wanted}; the number follows from"
            " the data, so leave it out"
        )


def federation_of_outcome(
    config: RunConfig, outcome: Outcome, name: str | None = None
) -> FederatedData:
    """Return what came in as a federation; what no client may have is refused here.

    Parameters
    ----------
    config
        The run.
    outcome
        What came in.
    name
        What to call the data; None for the name of the file or folder.
    """
    data = federation_of(
        name or Path(config.dataset).name,
        outcome.clients,
        task=outcome.task or "auto",
        codes=outcome.codes,
        class_names=outcome.classes,
        domains=outcome.groups,
        validation_share=config.validation_share,
        poison=config.poison,
        seed=config.seed,
    )
    return replace(data, told="; ".join(filter(None, (outcome.told, data.told))))


def with_own_data(config: RunConfig, data: FederatedData) -> RunConfig:
    """Return the settings with what the data decide: who there is, and what they are bound to."""
    return replace(
        config,
        clients=len(data.clients),
        partition=NATURAL,
        data_sha256=config.data_sha256 or checksum(Path(config.dataset)),
    )
