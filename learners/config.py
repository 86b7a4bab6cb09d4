"""Everything that decides a run, checked where it enters; as TOML, a run that can be repeated."""

from __future__ import annotations

import difflib
import json
import math
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from coalitions.errors import InvalidInputError

T = TypeVar("T")


@dataclass(frozen=True)
class RunConfig:
    """The complete description of one federated run.

    Two runs with equal configurations give equal results; `workers`, `device` "cpu" and where
    files are do not change a number.

    Attributes
    ----------
    algorithm, options
        The federated method by name, and its own options.
    dataset, data_dir, clients, partition, train_size, test_size, validation_share, poison
        What the clients have: see `learners.data`. `data_dir` and the sizes may be None.
    model
        The network by name; ``auto`` takes the one that suits the data set.
    rounds, participation
        Number of rounds; share of the clients that take part in each.
    local_epochs, batch_size, optimizer, lr, momentum
        A client's own training. `optimizer` is sgd or adam; momentum goes with sgd.
    aggregation
        How the server combines models.
    noise, clip, epsilon, delta, dp
        Differential privacy, see `learners.privacy`: σ in units of the clip C, and C; or the ε for
        δ that chooses σ for the whole run (C is 1 then, if not given). `dp` is ``updates`` or
        ``records`` (DP-SGD).
    seed
        Source of all randomness.
    device, engine, workers
        Where to compute (auto, cpu, cuda, mps); who carries messages; worker processes, 0 for as
        many as there are cores.
    evaluate_every, checkpoint_every
        Rounds between evaluations on test data and between checkpoints; the last round always
        has both.
    plugins
        Modules to import first: they register data sets, networks or algorithms of your own.
    """

    algorithm: str = "fedavg"
    dataset: str = "digits"
    data_dir: str | None = None
    clients: int = 10
    partition: str = "auto"
    train_size: int | None = None
    test_size: int | None = None
    validation_share: float = 0.2
    poison: tuple[str, ...] = ()
    model: str = "auto"
    rounds: int = 20
    participation: float = 1.0
    local_epochs: int = 2
    batch_size: int = 10
    optimizer: Literal["sgd", "adam"] = "sgd"
    lr: float = 0.05
    momentum: float = 0.0
    aggregation: str = "mean"
    noise: float | None = None
    clip: float | None = None
    epsilon: float | None = None
    delta: float = 1e-5
    dp: Literal["updates", "records"] = "updates"
    seed: int = 0
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    engine: str = "local"
    workers: int = 0
    evaluate_every: int = 1
    checkpoint_every: int = 1
    plugins: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, least in {
            "clients": 1,
            "rounds": 1,
            "local_epochs": 1,
            "batch_size": 1,
            "seed": 0,
            "workers": 0,
            "evaluate_every": 1,
            "checkpoint_every": 1,
            "train_size": 1,
            "test_size": 1,
        }.items():
            value = getattr(self, key)
            if value is not None and value < least:
                raise InvalidInputError(f"{key} must be {least} or more, not {value}")
        if not 0 < self.participation <= 1:
            raise InvalidInputError(
                f"participation is a share of the clients, above 0 and at most 1,"
                f" not {self.participation}"
            )
        if not 0 <= self.validation_share < 1:
            raise InvalidInputError(
                f"validation_share must be at least 0 and below 1, not {self.validation_share}"
            )
        if not (self.lr > 0 and math.isfinite(self.lr)):
            raise InvalidInputError(f"lr must be a positive number, not {self.lr}")
        if not 0 <= self.momentum < 1:
            raise InvalidInputError(f"momentum must be at least 0 and below 1, not {self.momentum}")
        if self.momentum and self.optimizer != "sgd":
            raise InvalidInputError(
                f"momentum goes with the optimizer sgd, not {self.optimizer}, which has its own"
            )
        self._check_privacy()

    def _check_privacy(self) -> None:
        if self.noise is not None and not 0 <= self.noise < math.inf:
            raise InvalidInputError(f"noise must be 0 or more, not {self.noise}")
        for key in ("clip", "epsilon"):
            value = getattr(self, key)
            if value is not None and not 0 < value < math.inf:
                raise InvalidInputError(f"{key} must be a positive number, not {value}")
        if not 0 < self.delta < 1:
            raise InvalidInputError(f"delta must be above 0 and below 1, not {self.delta}")
        if self.noise is not None and self.epsilon is not None:
            raise InvalidInputError("noise and epsilon both decide how much noise: give one")
        if self.noise and self.clip is None:
            raise InvalidInputError(
                f"noise {self.noise} without clip protects nothing: an update of any size could"
                " outweigh it; give a clip"
            )
        if self.dp == "records" and self.clip is None and self.epsilon is None:
            raise InvalidInputError("dp records needs noise and clip, or epsilon")

    @property
    def participants(self) -> int:
        """Number of clients in each round: the share, rounded, at least one."""
        return max(1, round(self.participation * self.clients))

    @classmethod
    def of(cls, values: Mapping[str, Any] | RunConfig) -> RunConfig:
        """Return a configuration from plain values; an unknown key is an error, not ignored."""
        return values if isinstance(values, RunConfig) else from_values(cls, values, "setting")

    @classmethod
    def read(cls, path: Path) -> RunConfig:
        """Return the configuration in a TOML file."""
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidInputError(f"cannot read {path}: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"{path} is not a TOML file: {error}") from None
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
        lines = [f"{key} = {_toml(value)}" for key, value in values.items()]
        lines += ["", "[options]"]
        lines += [f"{key} = {_toml(value)}" for key, value in options.items() if value is not None]
        return "\n".join(lines) + "\n"


def from_values(kind: type[T], values: Mapping[str, Any], noun: str) -> T:
    """Return an instance of a dataclass from plain values, each checked against its annotation.

    Text is read as the field's type, so that values can come from the command line as they are.

    Parameters
    ----------
    kind
        The dataclass.
    values
        Values by the names of its fields.
    noun
        What a field is called in messages.
    """
    known: dict[str, Field[Any]] = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(kind)
    arguments = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            there = f"; there are: {', '.join(known)}" if known else "; it has none"
            raise InvalidInputError(f"there is no {noun} {key!r}{hint or there}")
        arguments[name] = converted(value, hints[name], f"{noun} {key!r}")
    missing = [
        name
        for name, each in known.items()
        if name not in arguments and each.default is MISSING and each.default_factory is MISSING
    ]
    if missing:
        raise InvalidInputError(f"{noun} {missing[0]!r} is not given, and it has no default")
    return kind(**arguments)


def converted(value: object, hint: Any, what: str) -> Any:  # noqa: ANN401 (a type hint, a value of it)
    """Return `value` as the annotation `hint` wants it, or say what is wrong with it."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        if value is None or (value == "none" and type(None) in arguments):
            if type(None) in arguments:
                return None
        else:
            (hint,) = (each for each in arguments if each is not type(None))
            return converted(value, hint, what)
    elif origin is Literal:
        if value in arguments:
            return value
        close = difflib.get_close_matches(str(value), map(str, arguments), n=1)
        hint_text = f"did you mean {close[0]!r}? " if close else ""
        raise InvalidInputError(
            f"{what} is {value!r}; {hint_text}it can be: {', '.join(map(str, arguments))}"
        )
    elif origin is tuple:
        if isinstance(value, str):
            value = [value]
        if isinstance(value, Sequence):
            return tuple(converted(each, arguments[0], what) for each in value)
    elif origin is not None and issubclass(origin, Mapping):
        if isinstance(value, Mapping):
            return dict(value)
    elif hint is bool:
        truth = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in truth:
            return truth[value.lower()]
    elif hint in (int, float):
        if isinstance(value, str):
            try:
                return hint(value)
            except ValueError:
                pass
        elif isinstance(value, hint) and not isinstance(value, bool):
            return value
        elif hint is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
    elif hint is str and isinstance(value, (str, Path)):
        return str(value)
    raise InvalidInputError(f"{what} must be {_spoken(hint)}, not {value!r}")


def _spoken(hint: Any) -> str:  # noqa: ANN401 (a type hint)
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    arguments = [each for each in typing.get_args(hint) if each is not type(None)]
    if hint in names:
        return names[hint]
    if typing.get_origin(hint) is tuple:
        return f"a list of {_spoken(arguments[0])}"
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(map(_spoken, arguments))
    return "a table"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)  # JSON's escapes are TOML's, too
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return repr(value)
