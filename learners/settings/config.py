"""Everything that decides a run, checked where it enters; as TOML, a run that can be repeated."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal

from coalitions.errors import InvalidInputError, shown
from coalitions.files.opening import check_whole, decoded
from learners.settings.conversion import from_values
from learners.settings.options import check_options, option
from learners.settings.schedules import check_attendance, check_descent, optimizer_named

NO_EFFECT = ("workers", "evaluate_every", "checkpoint_every", "plugins")
"""Settings that change no figure of the last round: a run or comparison goes on with other ones."""

_method, _data, _training, _privacy, _machine = (
    partial(option, group=group)
    for group in ("Method", "Data", "Training", "Privacy", "Where and how it runs")
)

_DEFAULT_DELTA = 1e-5

_RENAMED = {
    "fedacs": {"delta": "threshold"},
    "fedfomo": {"epsilon": "explore", "epsilon_decay": "explore_decay"},
    "per-fedavg": {"delta": "difference_step"},
    "pfedsv": {"keep": "keep_scores"},
}
"""Options by the names that older folders and files have for them: each method's, old to new."""

_LONGEST = 1 << 16
"""Bytes of the longest TOML file that is read; a complete configuration has two thousand."""


@dataclass(frozen=True)
class RunConfig:
    """The complete description of one federated run.

    Two runs with equal configurations give equal results; `workers`, `device` "cpu" and where
    files are do not change a number.

    Attributes
    ----------
    algorithm
        Federated method; `coalitions algorithms` lists them.
    aggregation
        How the server combines models: mean, median, geometric-median, or trimmed-mean, krum,
        multi-krum, the last three with a share of liars after a colon (0.2 if it is missing).
    norm_limit
        Leave out a reply whose model norm exceeds this many times the median norm of the round; a
        client that is asked alone, this many times the norm of the model it was sent.
    rounds
        Number of rounds.
    participation
        Share of the clients that take part in each round.
    attendance
        Which clients take part: random; fixed, always the same; diurnal:PERIOD, each for that share
        of every PERIOD rounds. Or whose replies are lost: dropout:P loses each with probability P;
        deadline:T those of clients that need more than T times the usual time.
    dataset
        Data set: a name from `coalitions datasets`, a table (.csv .tsv .xlsx .parquet .npz), or a
        folder with one folder per client.
    target
        Column of a table to predict.
    client_column
        Column of a table that names the client.
    group_column
        Column of a table that names the client's true group. It is not an input: reports compare
        coalitions with it, and the method domain uses it.
    schema
        File (.json .toml) with the columns, categories and classes that all clients use.
    share_statistics
        Scale the numbers of a table by pooled sums and counts, which clients then send.
    data_sha256
        Expected checksum of a table or folder.
    data_dir
        Folder with data files.
    clients
        Number of clients; fixed by your data if they name clients.
    new_clients
        Hold out this many clients (the last ones). After training each gets a model in the method's
        way for newcomers.
    partition
        How data are dealt to clients: iid, pathological:K, distinct:K, ring:K, labels:…,
        dirichlet:ALPHA, quantity:ALPHA or domains; auto is the usual one of the data set, mostly
        pathological:2.
    train_size
        Training samples per client, including those for validation.
    train_sizes
        Training samples of each client, in order, if they differ: 200,200,125,197.
    test_size
        Test samples per client.
    test_sizes
        Test samples of each client, in order, if they differ: 240,281,39,76.
    validation_share
        Share of a client's training samples set aside for validation.
    evaluate_on
        Data to score models on: test; or validation, a fifth of the training samples, for choosing
        options.
    task
        What to learn: one class, several labels, numbers, or the next token; auto decides by the
        data.
    metric
        Metrics to judge models by; the first one leads in results.
    poison
        Poisoned data, KIND:CLIENTS: wrong-labels:3,4, swap-1-7:5 or noise:2.
    model
        Network; auto takes one that suits the data.
    weights
        File (.safetensors) with the initial weights; the head may be missing.
    weights_sha256
        Expected checksum of that file.
    loss
        Training loss: cross-entropy, balanced-cross-entropy, bce, mse or huber; auto decides by the
        task.
    local_epochs
        Passes over a client's data per round.
    patience
        Stop a client's local training after this many epochs without a lower validation loss, and
        take its best epoch.
    keep
        Which model a client ends with: that of the last round, or that of the round with the lowest
        validation loss (best). Training is the same.
    batch_size
        Samples per batch.
    optimizer
        Local optimiser: sgd or adam; slower: adadelta, adagrad, adamax, adamw, asgd, nadam, radam,
        rmsprop or rprop of torch.optim. It starts afresh in each round.
    lr
        Learning rate.
    schedule
        Learning rate over rounds: constant; cosine, towards 0; or step:EVERY:FACTOR, multiplied by
        FACTOR every EVERY rounds.
    warmup
        Rounds in which the learning rate grows linearly to `lr` first.
    momentum
        Momentum of sgd.
    weight_decay
        Weight decay: added to the gradient (L2), or decoupled with adamw.
    max_gradient_norm
        Clip longer batch gradients to this norm. This is for stability; `clip` is for privacy.
    augment
        Augmentation of training pictures: flip mirrors half of them, crop shifts them by up to an
        eighth of their side, flip,crop does both.
    noise
        Standard deviation of the noise that clients add, in units of `clip`.
    clip
        Largest norm of an update (with `dp` records: of a sample's gradient).
    epsilon
        Privacy budget ε: sets the noise for the whole run.
    delta
        Privacy parameter δ.
    dp
        What to protect: a client's updates, or its single records (DP-SGD).
    seed
        Source of all randomness.
    device
        Where to compute; auto takes a GPU if there is one.
    compute
        How clients train in one process: one after the other, or stacked as one network with an
        extra dimension; auto stacks on cuda.
    engine
        What carries messages between server and clients.
    workers
        Worker processes; 0 means one per core.
    evaluate_every
        Test all clients every so many rounds, and in the last one.
    checkpoint_every
        Write a checkpoint every so many rounds, and in the last one.
    plugins
        Modules to import first, which register data sets, networks or algorithms of your own.
    options
        The algorithm's own options.
    """

    algorithm: str = _method("fedavg", names="algorithms", changes="models")
    aggregation: str = _method("mean", names="aggregations", changes="models")
    norm_limit: float = _method(10.0, least=1, changes="models")
    rounds: int = _method(20, least=1, changes="rounds")
    participation: float = _method(1.0, above=0, most=1, changes="participants")
    attendance: str = _method("random", changes="participants")
    dataset: str = _data("digits", names="datasets", changes="data")
    target: str | None = _data(None, unset="none", changes="data")
    client_column: str | None = _data(None, unset="none", changes="data")
    group_column: str | None = _data(None, unset="none", changes="data")
    schema: str | None = _data(None, unset="the union of the clients' names", changes="models")
    share_statistics: bool = _data(False, changes="models")
    data_sha256: str | None = _data(None, unset="computed", changes="data")
    data_dir: str | None = _data(None, unset="$COALITIONS_DATA", changes="data")
    clients: int = _data(10, least=1, changes="data")
    new_clients: int = _data(0, least=0, changes="data")
    partition: str = _data("auto", changes="data")
    train_size: int | None = _data(
        None, least=1, unset="the usual number of the data set, mostly all", changes="data"
    )
    train_sizes: tuple[int, ...] = _data((), needs={"train_size": None}, changes="data")
    test_size: int | None = _data(
        None, least=1, unset="a quarter of train_size, or all", changes="scores"
    )
    test_sizes: tuple[int, ...] = _data((), needs={"test_size": None}, changes="scores")
    validation_share: float = _data(0.2, least=0, below=1, changes="data")
    evaluate_on: Literal["test", "validation"] = _data("test", changes="scores")
    task: Literal["auto", "classification", "multi-label", "regression", "next-token"] = _data(
        "auto", changes="scores"
    )
    metric: tuple[str, ...] = _data(
        (), names="metrics", unset="accuracy, or the usual one of the task", changes="scores"
    )
    poison: tuple[str, ...] = _data((), changes="data")
    model: str = _training("auto", names="models", changes="models")
    weights: str | None = _training(None, unset="drawn from the seed", changes="models")
    weights_sha256: str | None = _training(None, unset="computed", changes="models")
    loss: str = _training("auto", changes="models")
    local_epochs: int = _training(2, least=1, changes="models")
    patience: int | None = _training(
        None, least=1, unset="train all local epochs", changes="models"
    )
    keep: Literal["last", "best"] = _training("last", changes="models")
    batch_size: int = _training(10, least=1, changes="models")
    optimizer: str = _training("sgd", changes="models")
    lr: float = _training(0.05, above=0, changes="models")
    schedule: str = _training("constant", changes="models")
    warmup: int = _training(0, least=0, changes="models")
    momentum: float = _training(0.0, least=0, below=1, needs={"optimizer": "sgd"}, changes="models")
    weight_decay: float | None = _training(
        None, least=0, unset="none, but 0.01 with adamw", changes="models"
    )
    max_gradient_norm: float | None = _training(None, above=0, unset="no limit", changes="models")
    augment: str | None = _training(None, unset="nothing", changes="models")
    noise: float | None = _privacy(None, least=0, unset="none", changes="models")
    clip: float | None = _privacy(
        None, above=0, unset="1 with epsilon, else no clipping", changes="models"
    )
    epsilon: float | None = _privacy(None, above=0, unset="given by noise", changes="models")
    delta: float = _privacy(_DEFAULT_DELTA, above=0, below=1, changes="epsilon")
    dp: Literal["updates", "records"] = _privacy("updates", changes="models")
    seed: int = _machine(0, least=0, changes="models")
    device: Literal["auto", "cpu", "cuda", "mps"] = _machine("auto", changes="place")
    compute: Literal["auto", "sequential", "stacked"] = _machine(
        "auto", needs={"engine": "local"}, changes="place"
    )
    engine: str = _machine("local", changes="place")
    workers: int = _machine(0, least=0, changes="place")
    evaluate_every: int = _machine(1, least=1, changes="evaluations")
    checkpoint_every: int = _machine(1, least=1, changes="checkpoints")
    plugins: tuple[str, ...] = _machine((), changes="names")
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", current_options(self.algorithm, self.options))
        object.__setattr__(self, "optimizer", optimizer_named(self.optimizer))
        check_options(self)
        check_descent(self)
        check_attendance(self)
        for name in ("train_sizes", "test_sizes"):
            sizes = getattr(self, name)
            if sizes and len(sizes) != self.clients:
                raise InvalidInputError(
                    f"{name} has {len(sizes)} numbers for {self.clients} clients; it needs one for"
                    " each"
                )
            if sizes and min(sizes) < 1:
                raise InvalidInputError(
                    f"{name} has {min(sizes)}; every client needs 1 image or more"
                )
        if self.noise is not None and self.epsilon is not None:
            raise InvalidInputError("noise and epsilon both decide how much noise: give one")
        if self.noise and self.clip is None:
            raise InvalidInputError(
                f"noise {self.noise} without clip protects nothing: an update of any size could"
                " outweigh it; give a clip"
            )
        if self.new_clients and (self.clip is not None or self.epsilon is not None):
            raise InvalidInputError(
                "new_clients and noise, clip or epsilon do not go together: what newcomers are"
                " asked when training is over would not be covered by the stated epsilon"
            )
        if self.dp == "records" and self.clip is None and self.epsilon is None:
            raise InvalidInputError("dp records needs noise and clip, or epsilon")
        if self.delta != _DEFAULT_DELTA and not self.noise and self.epsilon is None:
            raise InvalidInputError("delta has no effect without noise or epsilon: give one")

    @property
    def members(self) -> int:
        """Number of clients that training is for: all but the new ones."""
        return self.clients - self.new_clients

    @property
    def participants(self) -> int:
        """Number of clients in each round: the share, rounded, at least one."""
        return max(1, round(self.participation * self.members))

    @classmethod
    def of(cls, values: Mapping[str, Any] | RunConfig | str | Path) -> RunConfig:
        """Return a configuration from plain values or a TOML file; an unknown key is an error."""
        if isinstance(values, RunConfig):
            return values
        if isinstance(values, str | Path):
            return cls.read(values)
        if not isinstance(values, Mapping):
            raise InvalidInputError(
                f"{shown(values)} is no configuration; give settings by name, or a TOML file"
            )
        return from_values(cls, values, "setting")

    @classmethod
    def read(cls, path: str | Path) -> RunConfig:
        """Return the configuration in a TOML file."""
        values = read_toml(Path(path))
        try:
            return cls.of(values)
        except InvalidInputError as error:
            raise InvalidInputError(f"{path}: {error}") from None

    def values(self) -> dict[str, Any]:
        """Return all settings as plain values; those that are None are left out."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {key: value for key, value in values.items() if value is not None}

    def toml(self) -> str:
        """Return the configuration as TOML: every setting, then the algorithm's options."""
        values = self.values()
        options = values.pop("options")
        lines = [f"{key} = {toml_value(value)}" for key, value in values.items()]
        lines += ["", "[options]"]
        lines += [
            f"{key} = {toml_value(value)}" for key, value in options.items() if value is not None
        ]
        return "\n".join(lines) + "\n"


def current_options(algorithm: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a method's options by their names of today.

    Examples
    --------
    >>> current_options("fedfomo", {"k": 3, "epsilon": 0.5})
    {'k': 3, 'explore': 0.5}
    """
    names = _RENAMED.get(algorithm, {})
    renamed: dict[str, Any] = {}
    for key, value in options.items():
        name = names.get(key.replace("-", "_"), key)
        if name in renamed:
            raise InvalidInputError(
                f"{name} of {algorithm} is given twice: by that name, and by its old one; give it"
                " once"
            )
        renamed[name] = value
    return renamed


def is_of_old(algorithm: str, names: Collection[str]) -> bool:
    """Tell whether a table has an option by a name that no option or setting has any more."""
    settings = {each.name for each in fields(RunConfig)}
    return any(old in names and old not in settings for old in _RENAMED.get(algorithm, {}))


def given_settings(config: Mapping[str, Any] | RunConfig | str | Path | None) -> dict[str, Any]:
    """Return the settings that somebody gave, by name or in a TOML file, and no defaults."""
    if isinstance(config, RunConfig):
        return config.values()
    return read_toml(Path(config)) if isinstance(config, str | Path) else dict(config or {})


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file of settings holds, not checked yet."""
    check_whole(path)
    try:
        with path.open("rb") as file:
            content = file.read(_LONGEST + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidInputError(f"cannot read {path}: {reason}") from None
    import tomllib  # its patterns take longer to compile than `--help` has time for

    text = decoded(content, str(path))
    if len(content) > _LONGEST or any(line.count(".") > 1000 for line in text.split("\n")):
        # Python's parser takes minutes for a name of 64 kB that is all dots.
        raise InvalidInputError(f"{path} is too long or too deep to be settings of a run")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(f"{path} is not a TOML file: {error}") from None
    except (RecursionError, ValueError) as error:  # too many digits in a number
        reason = "its lists are too deep" if isinstance(error, RecursionError) else error
        raise InvalidInputError(f"{path} is not a TOML file to read: {reason}") from None


def toml_value(value: object) -> str:
    """Return a plain value as TOML has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)  # JSON's escapes are TOML's, too
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return repr(value)


def differing_settings(one: RunConfig, other: RunConfig) -> list[tuple[str, Any, Any]]:
    """Return the settings that could change a figure, as (name, in one, in the other)."""
    ours, theirs = plain_settings(one), plain_settings(other)
    return [
        (key, ours.get(key), theirs.get(key))
        for key in dict.fromkeys([*ours, *theirs])
        if key not in NO_EFFECT and ours.get(key) != theirs.get(key)
    ]


_FIRST_SETTINGS = (
    "algorithm aggregation norm_limit rounds participation attendance dataset target "
    "client_column group_column schema share_statistics data_sha256 data_dir clients "
    "new_clients partition train_size train_sizes test_size test_sizes validation_share "
    "evaluate_on task metric poison model weights weights_sha256 loss local_epochs patience "
    "keep batch_size optimizer lr schedule warmup momentum weight_decay max_gradient_norm "
    "augment noise clip epsilon delta dp device compute engine evaluate_every"
)
"""The settings that earlier versions named folders by; those that came later do not count."""


def digest_of_all_settings(config: RunConfig) -> str:
    """Return the digest by which earlier versions named folders: of all settings but the seed.

    Options have the names in it that they had when the first folders were made.
    """
    renamed = _RENAMED.get(config.algorithm, {})
    first = {f"option {new}": f"option {old}" for old, new in renamed.items()}
    settings = sorted((first.get(key, key), value) for key, value in plain_settings(config).items())
    counted = {
        key: value
        for key, value in settings
        if key in _FIRST_SETTINGS.split() or key.startswith("option ")
    }
    return hashlib.sha256(json.dumps(counted).encode()).hexdigest()[:10]


def spoken_setting(value: Any) -> str:  # noqa: ANN401 (any setting)
    """Return a setting as messages put it."""
    return "none" if value is None or value == [] else str(value)


def plain_settings(config: RunConfig) -> dict[str, Any]:
    """Return the settings as a run's folder tells them, the method's options among them."""
    import tomllib

    values = tomllib.loads(config.toml())
    options = values.pop("options")
    return values | {f"option {key}": value for key, value in options.items()}
